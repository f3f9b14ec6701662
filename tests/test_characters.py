"""videoqa/characters.py: by Unicode property, not by list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from videoqa.characters import first_unseen, is_unseen, round_brackets, without_unseen


@pytest.mark.parametrize(
    "code", [0xAD, 0x200B, 0x202E, 0x2060, 0x3164, 0x115F, 0xFFA0, 0x2800, 0xFE0F, 0xE0100, 0xE0041]
)
def test_what_is_drawn_as_nothing_is_unseen(code: int) -> None:
    assert is_unseen(chr(code)) and without_unseen(f"a{chr(code)}b") == "a b" and first_unseen(f"a{chr(code)}") == 1


@pytest.mark.parametrize(
    "text", ["a b\tc\n", "日本語 한국어 עברית العربية", "é e\u0301 ñ", "👩 ½ ① √", "«quoted» “too”"]
)
def test_what_is_seen_stays(text: str) -> None:
    assert without_unseen(text) == text


@pytest.mark.parametrize("pair", ["[]", "【】", "［］", "⟦⟧", "⁅⁆", "〔〕", "〚〛", "❲❳", "⦗⦘", "﹝﹞", "「」"])
def test_brackets_of_every_form_become_round(pair: str) -> None:
    assert round_brackets(f"{pair[0]}System{pair[1]}") == "(System)"


@given(st.text())
def test_texts_without_them_are_left_alone_and_length_stays(text: str) -> None:
    assert len(without_unseen(text)) == len(round_brackets(text)) == len(text)
    assert not any(is_unseen(c) for c in without_unseen(text) if c > "\x7f")
