"""From a conversation to the text, ids and pictures that a model reads, for engines that tokenize in this process.

    [{"role": "user", "content": "Rate ..."}], start "Score: "   ->   "<|im_start|>user\\nRate ...<|im_end|>\\n
                                                                     <|im_start|>assistant\\nScore: "

A message's content is a text or a list of parts: {"type": "text", "text": ...}, {"type": "image", "image": a PIL image
or a path}.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from videoqa.engines import Conversation, Message
from videoqa.errors import UserError
from videoqa.files import write_json

# Some templates write today's date into the prompt (Llama 3.2). A prompt that changes overnight makes other numbers, so
# every model is told this day, which Llama's templates fall back to themselves. The macro takes the place of the
# function `strftime_now` that transformers gives to templates: nothing that can be called may be passed to them.
TODAY = datetime(2024, 7, 26)
_DIRECTIVES = ("%-d", "%-m", *(f"%{letter}" for letter in "aAbBcdDeFHIjmMpSxXyYZ"))
STRFTIME = (
    "{%- macro strftime_now(format) -%}{{ format"
    + "".join(f" | replace('{directive}', '{TODAY.strftime(directive)}')" for directive in _DIRECTIVES)
    + " }}{%- endmacro -%}"
)
HASHED = (".json", ".jinja", ".safetensors", ".bin", ".gguf", ".model", ".txt", ".tiktoken")
SMALL = 1 << 20  # bytes; smaller files are hashed each time


def parts(message: Message) -> list[dict[str, Any]]:
    """The content of a message as a list of parts, checked."""
    given = message["content"]
    content = [{"type": "text", "text": given}] if isinstance(given, str) else list(given)
    for part in content:
        if part.get("type") not in ("text", "image"):
            raise UserError(f"a message holds a part of type {part.get('type')!r}; allowed are text, image")
    return content


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


def chat_template(path: str) -> str:
    """The text of a file that holds a chat template. Raises UserError where it cannot be one."""
    import jinja2

    try:
        text = Path(path).expanduser().read_text(encoding="utf-8")
        jinja2.Environment(extensions=["jinja2.ext.loopcontrols", "jinja2.ext.do"]).parse(_without_generation(text))
    except (OSError, UnicodeDecodeError, jinja2.TemplateSyntaxError) as error:
        raise UserError(f"{path} is no chat template: {error}") from error
    if "messages" not in text:
        raise UserError(f"{path} is no chat template: it writes no messages")
    return text


def _without_generation(text: str) -> str:
    """The text without transformers' own marks of what the assistant writes."""
    return re.sub(r"\{%-?\s*(?:end)?generation\s*-?%\}", "", text)


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


def render(
    template: Any, conversation: Conversation, start: str, control: re.Pattern[str], thinking: bool = False
) -> str:
    """The prompt as the model's chat template writes it, with the reply begun by `start`.

    `template` is a tokenizer, or a processor where the conversation has images (every content is then a list of parts,
    as vision templates want it). Thinking is off unless `thinking`, where the template knows the switch: an answer
    is asked for, not an essay. Every text stands in the prompt: where a template has no system role (Gemma), or
    drops texts without a word, it is tried again with the system text before the first user turn, then with lists of
    parts; UserError where texts are lost in every way.
    """
    import jinja2

    messages = []
    for message in conversation:
        kept = [
            {"type": "text", "text": defuse(p["text"], control)} if p["type"] == "text" else {"type": "image"}
            for p in parts(message)
        ]
        messages.append({**message, "content": kept})
    texts = [part["text"] for message in messages for part in message["content"] if part["type"] == "text"]
    options: dict[str, Any] = {
        "tokenize": False,
        "add_generation_prompt": True,
        "enable_thinking": thinking,
    }
    if (tokenizer := getattr(template, "tokenizer", None)) is not None:
        # a processor warns of what its template does not know; its tokenizer writes the same
        options["chat_template"], template = template.chat_template or tokenizer.chat_template, tokenizer
    text = options.get("chat_template") or getattr(template, "chat_template", None)
    text = template.get_chat_template() if isinstance(text, dict) else text
    if isinstance(text, str):  # given with the call: vLLM's tokenizer lets copies write, which know their own only
        options["chat_template"] = STRFTIME + text if "strftime_now" in text else text
    refused: Exception | None = None
    lost: list[str] = []
    for attempt in _attempts(messages):
        try:
            prompt = template.apply_chat_template(attempt, **options)
        except (jinja2.TemplateError, TypeError) as error:  # a list where the template adds texts
            refused = refused or error
            continue
        if not (missing := lost_texts(prompt, texts)):
            return prompt + start
        lost = lost or missing
    if refused is not None and not lost:
        raise UserError(f"the model's chat template refuses the conversation: {refused}") from refused
    raise UserError(f"the model's chat template drops a text of the conversation: {lost[0][:80]!r}")


def _attempts(messages: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The ways to hand messages to a template: contents as texts (as lists of parts where there are pictures), the
    same without a system turn, and both with lists of parts."""
    pictured = any(part["type"] == "image" for message in messages for part in message["content"])
    texts = [{**m, "content": "\n".join(p["text"] for p in m["content"] if p["type"] == "text")} for m in messages]
    system = messages[0]["role"] == "system" and len(messages) > 1
    if not pictured:
        yield texts
        if system:
            both = f"{texts[0]['content']}\n\n{texts[1]['content']}"
            yield [{**texts[1], "content": both}, *texts[2:]]
    yield messages
    if system:
        yield [{**messages[1], "content": [*messages[0]["content"], *messages[1]["content"]]}, *messages[2:]]


def lost_texts(prompt: str, texts: Sequence[str]) -> list[str]:
    """The texts that do not stand in the prompt, each in a place of its own. Blanks do not count, since templates trim
    and join; nor does what stands before the end of a thinking block, which templates drop from earlier turns."""
    whole = "".join(prompt.split())
    lost = []
    for text in sorted(texts, key=len, reverse=True):  # what is part of another text is looked for last
        bare = "".join(text.split())
        place = next((p for p in (bare, "".join(text.rpartition("</think>")[2].split())) if p and p in whole), "")
        if bare and not place:
            lost.append(text)
        whole = whole.replace(place, "\n", 1) if place else whole
    if re.search(r"""['"]type['"]:['"]text['"]""", whole):  # the list itself was written, not its texts
        return list(texts)
    return lost


def cuts_in(text: str, stop: Sequence[str]) -> list[int]:
    """Where the stop strings are found, behind leading blanks."""
    blanks = len(text) - len(text.lstrip())
    return [at for s in stop if (at := text.find(s, blanks)) >= 0]


def revision(model: str, wanted: str | None = None) -> str:
    """Tells two models of the same name apart: the Hub's commit, or a hash over everything in a folder that makes its
    numbers, whole files. Of a Hub id it is known once the model was loaded."""
    if not Path(model).is_dir():
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError

        try:
            config = try_to_load_from_cache(model, "config.json", revision=wanted)
        except HFValidationError:
            config = None
        return Path(config).parent.name[:12] if isinstance(config, str) else "unknown"
    files = sorted(path for path in Path(model).iterdir() if path.suffix in HASHED and path.is_file())
    digest = hashlib.sha256()
    for path, file_digest in zip(files, _digests(files), strict=True):
        digest.update(f"{path.name} {file_digest}\n".encode())
    return digest.hexdigest()[:12]


def _digests(paths: Sequence[Path]) -> list[str]:
    """SHA-256 of each file. Those of large files are kept in the user's cache with what the system says of the file,
    so that gigabytes are read once; a file that was written just now is not kept, since its next change may look the
    same."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "easg-bench" / "digests.json"
    try:
        known = json.loads(cache.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        known = {}
    if not isinstance(known, dict):
        known = {}
    digests, fresh = [], {}
    for path in paths:
        name, stat = str(path.resolve()), path.stat()
        state = f"{stat.st_size} {stat.st_ino} {stat.st_mtime_ns} {stat.st_ctime_ns}"
        if stat.st_size >= SMALL and isinstance(entry := known.get(name), list) and entry[:1] == [state]:
            digests.append(str(entry[-1]))
            continue
        with path.open("rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").hexdigest())
        if stat.st_size >= SMALL and time.time() - stat.st_mtime > 2:
            fresh[name] = [state, digests[-1]]
    if fresh:
        try:
            cache.parent.mkdir(parents=True, exist_ok=True)
            write_json(cache, known | fresh)
        except OSError:
            pass  # it will be read again
    return digests
