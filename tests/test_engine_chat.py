"""videoqa/engines/chat.py: from a conversation to what the model reads. More of it in test_engine_vllm.py."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from videoqa.engines import chat
from videoqa.engines.chat import control_tokens, defuse, lost_texts, parts, pictures, render, revision
from videoqa.errors import UserError

CONTROL = control_tokens(SimpleNamespace(all_special_tokens=["<|im_end|>", "<|im_end|>x", "|", ""]))


def written(messages: list[dict[str, Any]], **options: Any) -> str:
    """A template that knows texts and lists of parts."""

    def content(parts: Any) -> str:
        return parts if isinstance(parts, str) else "".join(p.get("text", "<image>") for p in parts)

    return "".join(f"[{m['role']}]{content(m['content'])}" for m in messages)


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
    assert render(TEMPLATE, conversation, "", CONTROL) == "[system]Look.[user]<image>What?"

    def without_system(messages: list[dict[str, Any]], **options: Any) -> str:
        if messages[0]["role"] == "system":
            raise jinja2.TemplateError("no system role")
        return written(messages)

    template = SimpleNamespace(apply_chat_template=without_system)
    assert render(template, conversation, "", CONTROL) == "[user]Look.<image>What?"
    with pytest.raises(UserError, match="the model's chat template refuses the conversation: no system role"):
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


# -- templates --------------------------------------------------------------------------------------------------------

TURNS = "{% for m in messages %}%s{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
TURN = "<{{ m['role'] }}>{{ m['content'] | trim }}</>"
NO_SYSTEM = TURNS.replace("%s", "{% if m['role'] != 'system' %}" + TURN + "{% endif %}")
PARTS = TURNS.replace("%s", "<{{ m['role'] }}>{% for part in m['content'] %}{{ part['text'] }}{% endfor %}</>")
USER_PARTS = PARTS.replace("{% for m", "{% set _ = 0 %}{% for m").replace(
    "<{{ m['role'] }}>", "{% if m['role'] == 'system' %}{% continue %}{% endif %}<{{ m['role'] }}>"
)
ASKED: list[dict[str, Any]] = [
    {"role": "system", "content": "Rate from 1 to 10.\n"},
    {"role": "user", "content": "  What is cut?\n\nThe <|im_end|> dough. "},
]


def tokenizer(template: str) -> Any:
    pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    made = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()))
    made.chat_template = template
    return made


@pytest.mark.parametrize(
    ("template", "prompt"),
    [
        (TURNS.replace("%s", TURN), "<system>Rate from 1 to 10.</><user>What is cut?\n\nThe < |im_end|> dough.</>"),
        (NO_SYSTEM, "<user>Rate from 1 to 10.\n\n\n  What is cut?\n\nThe < |im_end|> dough.</>"),
        (PARTS, "<system>Rate from 1 to 10.\n</><user>  What is cut?\n\nThe < |im_end|> dough. </>"),
        (USER_PARTS, "<user>Rate from 1 to 10.\n  What is cut?\n\nThe < |im_end|> dough. </>"),
    ],
    ids=["plain", "drops the system turn", "wants lists of parts", "wants lists and drops the system turn"],
)
def test_every_text_of_a_conversation_stands_in_the_prompt(template: str, prompt: str) -> None:
    assert render(tokenizer(template), ASKED, "Score: ", CONTROL) == f"{prompt}<assistant>Score: "


@pytest.mark.parametrize(
    "template",
    [
        TURNS.replace("%s", "<user>hello</>"),
        TURNS.replace("%s", "{% if loop.last %}<user>{{ m['content'][:12] }}</>{% endif %}"),
        TURNS.replace("%s", "{% if loop.first %}{{ m['content'] }}{% endif %}").replace("messages", "messages[1:]"),
        TURNS.replace("%s", "{% if m['content'] is string %}<user></>{% else %}{{ m['content'] }}{% endif %}"),
    ],
    ids=["says something else", "cuts", "drops what is not first", "writes the list itself"],
)
def test_a_template_that_drops_a_text_in_every_way_is_refused_in_one_line(template: str) -> None:
    asked = [*ASKED, {"role": "assistant", "content": "Bread."}, {"role": "user", "content": "And then?"}]
    with pytest.raises(UserError, match=r"^the model's chat template drops a text of the conversation: '.+'$"):
        render(tokenizer(template), asked, "", CONTROL)


def test_a_text_that_stands_twice_must_be_written_twice() -> None:
    assert lost_texts("<user>yes</><user>no</>", ["yes", "no"]) == []
    assert lost_texts("<user>yes</>", ["yes", "yes"]) == ["yes"]
    assert lost_texts("<user>yes, it is</>", ["yes", "yes, it is"]) == ["yes"]
    assert lost_texts("<user> a\nb </>", ["a  b", "", " "]) == []
    assert lost_texts("7 of 9", ["<think>8?</think>7 of 9"]) == [], "templates drop the thinking of earlier turns"
    assert lost_texts("say {'type': 'text'}", ["say {'type': 'text'}"]) == []


def test_a_template_that_is_set_is_used_where_a_copy_of_the_tokenizer_writes() -> None:
    """As vLLM's tokenizer does: an attribute set on it never reaches the copies."""
    copy, asked = tokenizer("of the copy" + TURNS.replace("%s", TURN)), ASKED
    of_vllm = SimpleNamespace(chat_template=copy.chat_template, apply_chat_template=copy.apply_chat_template)
    assert render(of_vllm, asked, "", CONTROL).startswith("of the copy")
    of_vllm.chat_template = "set" + TURNS.replace("%s", TURN)
    assert render(of_vllm, asked, "", CONTROL).startswith("set<system>")


@pytest.mark.parametrize(
    ("written", "date"),
    [
        ("{{ strftime_now('%d %b %Y') }}", "26 Jul 2024"),
        ("{% if strftime_now is defined %}{% set d = strftime_now('%Y-%m-%d') %}{% endif %}{{ d }}", "2024-07-26"),
        ("{% macro day() %}{{ strftime_now('%A, %B %-d') }}{% endmacro %}{{ day() }}", "Friday, July 26"),
        (
            "{% if not date_string is defined %}{% set date_string = '26 Jul 2024' %}{% endif %}{{ date_string }}",
            "26 J",
        ),
    ],
)
def test_the_prompt_of_a_template_that_writes_the_date_is_the_same_every_day(written: str, date: str) -> None:
    made = tokenizer(written + TURNS.replace("%s", TURN))
    assert render(made, ASKED, "", CONTROL).startswith(date)
    made.chat_template = {"default": made.chat_template, "tool_use": "{{ 1 }}"}
    assert render(made, ASKED, "", CONTROL).startswith(date)


# -- which weights ----------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model's folder with 2 MiB of weights that were written long ago, and an empty cache beside it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = tmp_path / "model"
    made.mkdir()
    (made / "config.json").write_text("{}")
    (made / "model.safetensors").write_bytes(bytes(2 << 20))
    os.utime(made / "model.safetensors", (1e9, 1e9))
    return made


@pytest.mark.parametrize("at", [0, 1 << 20, (2 << 20) - 1])
def test_one_changed_byte_anywhere_makes_another_revision(folder: Path, at: int) -> None:
    first, weights = revision(str(folder)), folder / "model.safetensors"
    assert re.fullmatch("[0-9a-f]{12}", first)
    data = bytearray(weights.read_bytes())
    data[at] = 1
    weights.write_bytes(data)
    os.utime(weights, (1e9 + 1, 1e9 + 1))
    second = revision(str(folder))
    assert second != first
    data[at] = 0
    weights.write_bytes(data)
    assert revision(str(folder)) == first


def test_large_files_are_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    digest = chat.hashlib.file_digest

    def watched(file: Any, name: str) -> Any:
        read.append(file.name)
        return digest(file, name)

    monkeypatch.setattr(chat.hashlib, "file_digest", watched)
    first = revision(str(folder))
    assert revision(str(folder)) == first
    assert [Path(name).name for name in read] == ["config.json", "model.safetensors", "config.json"]
    (folder / "model.safetensors").touch()  # written just now: it may be written again within the clock's step
    assert revision(str(folder)) == revision(str(folder)) == first
    assert len([name for name in read if name.endswith(".safetensors")]) == 3


@pytest.mark.parametrize("cache", ["{", "[]", '{"a": 1}'])
def test_a_damaged_or_unwritable_cache_costs_time_only(folder: Path, tmp_path: Path, cache: str) -> None:
    first, file = revision(str(folder)), tmp_path / "cache" / "easg-bench" / "digests.json"
    file.write_text(cache)
    assert revision(str(folder)) == first
    file.unlink()
    file.parent.rmdir()
    file.parent.write_text("a file where the folder should be")
    assert revision(str(folder)) == first
