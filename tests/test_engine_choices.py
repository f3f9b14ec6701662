"""videoqa/engines/choices.py: probabilities of tokens and the ids of choices."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from videoqa.engines.choices import choice_paths, drawn, is_whole, longest, share

top = st.dictionaries(st.integers(0, 99), st.floats(1e-6, 1.0), min_size=1, max_size=8).map(
    lambda found: {t: math.log(p / sum(found.values()) * 0.98) for t, p in found.items()}
)


def test_temperature_one_and_top_p_one_change_nothing() -> None:
    assert drawn({"a": math.log(0.7), "b": math.log(0.2)}, 1.0, 1.0) == pytest.approx({"a": 0.7, "b": 0.2})


def test_the_token_that_reaches_top_p_is_the_last_one_in() -> None:
    found = drawn({"a": math.log(0.6), "b": math.log(0.3), "c": math.log(0.1)}, 1.0, 0.7)
    assert found == pytest.approx({"a": 0.6 / 0.9, "b": 0.3 / 0.9})


def test_a_low_temperature_sharpens_over_the_whole_vocabulary() -> None:
    found = drawn({"a": math.log(0.6), "b": math.log(0.3), "c": math.log(0.1)}, 0.5, 1.0)
    assert found == pytest.approx({"a": 0.36 / 0.46, "b": 0.09 / 0.46, "c": 0.01 / 0.46})


@given(top, st.floats(0.2, 1.0), st.floats(0.1, 1.0))
def test_what_is_drawn_is_a_part_of_what_was_reported(
    found: dict[int, float], temperature: float, top_p: float
) -> None:
    kept = drawn(found, temperature, top_p)
    assert set(kept) <= set(found)
    assert sum(kept.values()) <= 1 + 1e-9
    order = sorted(found, key=lambda t: -found[t])
    assert list(kept) == order[: len(kept)]


@given(top, st.floats(0.1, 0.98))
def test_at_temperature_one_the_kept_tokens_keep_their_ratios(found: dict[int, float], top_p: float) -> None:
    kept = drawn(found, 1.0, top_p)
    first, *others = kept
    for token in others:
        assert kept[token] / kept[first] == pytest.approx(math.exp(found[token] - found[first]))


def test_the_unreported_rest_of_the_vocabulary_is_allowed_for() -> None:
    weights = [rank**-1.5 for rank in range(1, 50_001)]
    whole = [w / sum(weights) for w in weights]
    powered = [p ** (1 / 0.6) for p in whole]
    found = drawn({rank: math.log(p) for rank, p in enumerate(whole[:20])}, 0.6, 1.0)
    assert found == pytest.approx({rank: p / sum(powered) for rank, p in enumerate(powered[:20])}, rel=0.01)


def test_nothing_reported_gives_nothing() -> None:
    assert drawn({}, 0.6, 0.9) == {}


def test_a_choice_that_joins_the_blank_before_it_replaces_the_blank() -> None:
    words = {"Score:": [1], "Score: ": [1, 2], "Score: 8": [1, 38], "Score: 10": [1, 31, 30]}
    assert choice_paths(words.__getitem__, "Score: ", ["8", "10"]) == (1, {"8": (38,), "10": (31, 30)})


def test_a_choice_behind_a_blank_of_its_own_is_what_follows() -> None:
    assert choice_paths(lambda t: [ord(c) for c in t], "Score: ", ["8", "10"]) == (0, {"8": (56,), "10": (49, 48)})


def test_only_the_end_of_a_long_prompt_is_tokenized_for_it() -> None:
    seen: list[str] = []

    def encode(text: str) -> list[int]:
        seen.append(text)
        return [ord(c) for c in text]

    choice_paths(encode, "x" * 9000 + "Score: ", ["8"])
    assert max(map(len, seen)) < 50


DIGITS = [str(n) for n in range(1, 11)]


@pytest.mark.parametrize(
    ("text", "labelled", "whole"),
    [
        *(
            (text, True, True)
            for text in ("8", "8.", "8\n", "8)", "8/10", "8 / 10", "8 out of 10", "8 of 10", "8, good")
        ),
        *((text, True, True) for text in ("8 - good", "10.", "10/10", "8 The", "**8**"[2:], "8. The answer", "8/1")),
        *((text, True, False) for text in ("80", "8.5", "8,5", "8/5", "8/100", "8 out of 5", "8%", "8 %", "8½", "8-9")),
        *((text, True, False) for text in ("8 to 9", "8 or 9", "8–9", "8th", "105", "8/ten", "8x", "8 percent")),
        *((text, False, False) for text in ("1. The reference", "1) The", "2. \tThe")),
        *((text, False, True) for text in ("8", "8.", "8.\nThe answer", "8\n\nThe answer", "8/10. The")),
    ],
)
def test_a_text_says_a_choice_or_something_larger(text: str, labelled: bool, whole: bool) -> None:
    choice = longest(text, DIGITS)
    assert choice is not None
    assert is_whole(choice, text[len(choice) :], DIGITS, labelled) is whole


@pytest.mark.parametrize(("text", "whole"), [("A", True), ("A.", True), ("A)", True), ("And", False), ("A's", False)])
def test_a_letter_is_not_said_by_a_word(text: str, whole: bool) -> None:
    assert is_whole("A", text[1:], ["A", "B"]) is whole


@pytest.mark.parametrize("token", ["80", "8.5", "8.", "8,", "8/", "8/5", "8-", "1.", "15"])
def test_a_token_that_may_be_another_number_counts_for_no_choice(token: str) -> None:
    settled: dict[str, float] = dict.fromkeys(DIGITS, 0.0)
    growing: dict[str, float] = {}
    share("", 1.0, {token: 0.9, "7": 0.1}, DIGITS, settled, growing)
    assert {c: p for c, p in settled.items() if p} == {"7": 0.1} and not growing


@pytest.mark.parametrize("token", ["8", " 8", "8\n", "8)", "\n8**"])
def test_a_token_that_is_a_whole_choice_counts_exactly(token: str) -> None:
    settled: dict[str, float] = dict.fromkeys(DIGITS, 0.0)
    growing: dict[str, float] = {}
    share("", 1.0, {token: 0.9}, DIGITS, settled, growing)
    assert settled["8"] == 0.9


@given(st.sampled_from(DIGITS), st.text(st.sampled_from("0123456789.,/%- \nofut"), max_size=12))
def test_a_digit_behind_a_choice_is_never_a_part_of_it(choice: str, rest: str) -> None:
    if rest[:1].isdigit() or (rest[:1] in ".," and rest[1:2].isdigit()):
        assert not is_whole(choice, rest, DIGITS)
