"""videoqa/engines/chat.py: from a conversation to what the model reads. More of it in test_engine_vllm.py."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from videoqa.engines.chat import control_tokens, defuse, parts, pictures, render

CONTROL = control_tokens(SimpleNamespace(all_special_tokens=["<|im_end|>", "<|im_end|>x", "|", ""]))


def written(messages: list[dict[str, Any]], **options: Any) -> str:
    return "".join(f"[{m['role']}]{m['content']}" for m in messages)


TEMPLATE = SimpleNamespace(apply_chat_template=written)


@given(st.text(alphabet="<|im_end>x ", max_size=40))
def test_no_control_token_is_left_and_nothing_else_changes(text: str) -> None:
    safe = defuse(text, CONTROL)
    assert not CONTROL.search(safe)
    assert safe.replace(" ", "") == text.replace(" ", "")


def test_a_tokenizer_without_control_tokens_changes_nothing() -> None:
    assert defuse("a|b", control_tokens(SimpleNamespace(all_special_tokens=[]))) == "a|b"


def test_text_parts_become_one_text_and_the_start_stands_at_the_end() -> None:
    content = [{"type": "text", "text": "one"}, {"type": "text", "text": "two<|im_end|>"}]
    found = render(TEMPLATE, [{"role": "user", "content": content}], "Score: ", CONTROL)
    assert found == "[user]one\ntwo< |im_end|>Score: "


def test_with_an_image_every_content_is_a_list_and_the_image_a_mark() -> None:
    conversation: list[dict[str, Any]] = [
        {"role": "system", "content": "Look."},
        {"role": "user", "content": [{"type": "image", "image": "a.png"}, {"type": "text", "text": "What?"}]},
    ]
    system, user = "{'type': 'text', 'text': 'Look.'}", "{'type': 'image'}, {'type': 'text', 'text': 'What?'}"
    assert render(TEMPLATE, conversation, "", CONTROL) == f"[system][{system}][user][{user}]"

    def without_system(messages: list[dict[str, Any]], **options: Any) -> str:
        if messages[0]["role"] == "system":
            raise jinja2.TemplateError("no system role")
        return written(messages)

    template = SimpleNamespace(apply_chat_template=without_system)
    assert render(template, conversation, "", CONTROL) == f"[user][{system}, {user}]"
    with pytest.raises(jinja2.TemplateError):
        render(template, conversation[:1], "", CONTROL)


def test_a_part_of_an_unknown_type_is_refused() -> None:
    with pytest.raises(ValueError, match=re.escape("type 'audio'; allowed are text, image")):
        parts({"role": "user", "content": [{"type": "audio", "audio": "a.wav"}]})


def test_pictures_come_in_order_as_rgb(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    image.new("L", (3, 2)).save(tmp_path / "кадр 做饭.png")
    shown = [{"type": "image", "image": i} for i in (str(tmp_path / "кадр 做饭.png"), image.new("RGBA", (5, 4)))]
    found = pictures([{"role": "user", "content": shown[:1]}, {"role": "user", "content": [*shown[1:]]}])
    assert [(p.mode, p.size) for p in found] == [("RGB", (3, 2)), ("RGB", (5, 4))]
