"""From a conversation to the text, ids and pictures that a model reads, for engines that tokenize in this process.

    [{"role": "user", "content": "Rate ..."}], start "Score: "   ->   "<|im_start|>user\\nRate ...<|im_end|>\\n
                                                                     <|im_start|>assistant\\nScore: "

A message's content is a text or a list of parts: {"type": "text", "text": ...}, {"type": "image", "image": a PIL image
or a path}.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from videoqa.engines import Conversation, Message
from videoqa.errors import UserError


def parts(message: Message) -> list[dict[str, Any]]:
    """The content of a message as a list of parts, checked."""
    content = message["content"]
    found = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    for part in found:
        if part.get("type") not in ("text", "image"):
            raise UserError(f"a message holds a part of type {part.get('type')!r}; allowed are text, image")
    return found


def pictures(conversation: Conversation) -> list[Any]:
    """The images of a conversation in order, as RGB PIL images. OSError names the file that cannot be read."""
    return [load_picture(p["image"]) for m in conversation for p in parts(m) if p["type"] == "image"]


def has_pictures(conversation: Conversation) -> bool:
    return any(part["type"] == "image" for message in conversation for part in parts(message))


def load_picture(image: Any) -> Any:
    """A PIL image, or the file at a path, as an RGB PIL image."""
    from PIL import Image

    if isinstance(image, str | Path):
        with Image.open(image) as opened:
            return opened.convert("RGB")
    return image.convert("RGB")


def control_tokens(tokenizer: Any) -> re.Pattern[str]:
    """What would end a turn or begin one, if a question or an answer contained it. (Llama 3's tokenizer does not list
    its header and turn marks among `all_special_tokens`.)"""
    added = getattr(tokenizer, "added_tokens_decoder", {}).values()
    marks = {*tokenizer.all_special_tokens, *(token.content for token in added if token.special)}
    names = sorted((mark for mark in marks if len(mark) > 2), key=lambda mark: (-len(mark), mark))
    return re.compile("|".join(map(re.escape, names)) or r"(?!)")


def defuse(text: str, control: re.Pattern[str]) -> str:
    """The text with a blank inside every control token, which makes it plain text that can still be read."""
    return control.sub(lambda m: f"{m[0][0]} {m[0][1:]}", text)


def render(template: Any, conversation: Conversation, start: str, control: re.Pattern[str]) -> str:
    """The prompt as the model's chat template writes it, with the reply begun by `start`.

    `template` is a tokenizer, or a processor where the conversation has images (every content is then a list of parts,
    as vision templates want it). Thinking is switched off where the template knows the switch: an answer is asked for,
    not an essay. Templates without a system role (Gemma) get its text before the first user turn.
    """
    import jinja2

    messages = []
    for message in conversation:
        kept = [
            {"type": "text", "text": defuse(p["text"], control)} if p["type"] == "text" else {"type": "image"}
            for p in parts(message)
        ]
        messages.append({**message, "content": kept})
    if not any(p["type"] == "image" for m in messages for p in m["content"]):
        messages = [{**m, "content": "\n".join(p["text"] for p in m["content"])} for m in messages]
    options = {"tokenize": False, "add_generation_prompt": True, "enable_thinking": False}
    if (tokenizer := getattr(template, "tokenizer", None)) is not None:
        # a processor warns of what its template does not know; its tokenizer writes the same
        options["chat_template"], template = template.chat_template or tokenizer.chat_template, tokenizer
    try:
        return template.apply_chat_template(messages, **options) + start
    except jinja2.TemplateError:
        if messages[0]["role"] != "system" or len(messages) < 2:
            raise
    system, user, *rest = messages
    both = system["content"], user["content"]
    joined = "\n\n".join(both) if isinstance(both[0], str) else [*both[0], *both[1]]
    return template.apply_chat_template([{**user, "content": joined}, *rest], **options) + start


def cuts_in(text: str, stop: Sequence[str]) -> list[int]:
    """Where the stop strings are found, behind leading blanks."""
    blanks = len(text) - len(text.lstrip())
    return [at for s in stop if (at := text.find(s, blanks)) >= 0]


def revision(model: str) -> str:
    """Tells two models of the same name apart: the Hub's commit, or a hash over a folder's config and weights (their
    sizes, beginnings and ends: enough to see a changed file without reading gigabytes). Of a Hub id it is known once
    the model was loaded."""
    if not Path(model).is_dir():
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError

        try:
            config = try_to_load_from_cache(model, "config.json")
        except HFValidationError:
            config = None
        return Path(config).parent.name[:12] if isinstance(config, str) else "unknown"
    digest = hashlib.sha256()
    for path in sorted(Path(model).glob("*")):
        if path.suffix in (".json", ".jinja", ".safetensors", ".bin", ".gguf", ".model"):
            with path.open("rb") as file:
                digest.update(f"{path.name} {path.stat().st_size}".encode())
                digest.update(file.read(1 << 16))
                file.seek(max(0, path.stat().st_size - (1 << 16)))
                digest.update(file.read())
    return digest.hexdigest()[:12]
