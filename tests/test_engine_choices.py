"""videoqa/engines/choices.py: probabilities of tokens and the ids of choices."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from videoqa.engines.choices import FOLLOWED, Behind, Choices, choice_paths, drawn, is_whole, longest, share, tenths

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


# -- numbers whose tokens are known by their ids -----------------------------------------------------------------------

SCORES = [str(n) for n in range(1, 11)]


def split(choices: list[str]) -> Choices:
    """Choices of one character a token."""
    return Choices(lambda t: [ord(c) for c in t], lambda ids: "".join(map(chr, ids)), "Score: ", choices)


def said(choices: Choices, following: dict[str, dict[str, float]]) -> dict[str, float]:
    """The probability of each choice where `following` are the next characters behind a text."""
    known: dict[tuple[int, ...], Behind] = {}
    for beginning in sorted(choices.steps, key=len):
        text = "".join(map(chr, beginning))
        if choices.followed(known, beginning):
            chances = {ord(c): p for c, p in following.get(text, {"\n": 1.0}).items()}
            known[beginning] = choices.behind(beginning, chances)
    return {c: math.exp(p) for c, p in choices.logprobs(known).items() if p > -math.inf}


def test_a_number_counts_for_the_part_that_ends_with_it() -> None:
    first = {"": {"8": 0.5, "1": 0.4, "I": 0.1}}
    assert said(split(SCORES), first) == pytest.approx({"8": 0.5, "1": 0.4})
    for more in ({"8": {"0": 0.7, "\n": 0.3}}, {"8": {"%": 0.7, " ": 0.3}}, {"8": {"t": 0.7, ",": 0.3}}):
        assert said(split(SCORES), first | more) == pytest.approx({"8": 0.15, "1": 0.4})
    ten = {"1": {"0": 0.5, "5": 0.25, "\n": 0.25}, "10": {"0": 0.5, "\n": 0.5}}
    assert said(split(SCORES), first | ten) == pytest.approx({"8": 0.5, "1": 0.1, "10": 0.1})


def test_a_tenth_is_another_number_and_may_be_a_choice_itself() -> None:
    following = {"": {"8": 1.0}, "8": {".": 0.5, "\n": 0.5}, "8.": {"5": 0.6, "0": 0.2, "\n": 0.2}}
    assert said(split(SCORES), following) == pytest.approx({"8": 0.7})  # "8.0" and "8." are 8
    assert said(split(list(tenths(range(1, 11)))), following) == pytest.approx({"8": 0.6, "8.5": 0.3, "8.0": 0.1})
    four = {"": {"0": 0.5, "1": 0.5}, "0": {".": 0.8, "\n": 0.2}, "0.": {"3": 0.5, "7": 0.5}, "1": {".": 1.0}}
    assert said(split(["0", "0.3", "0.5", "1"]), four | {"1.": {"5": 1.0}}) == pytest.approx({"0": 0.1, "0.3": 0.2})


def test_ten_with_a_tenth_is_taken_out_of_one_only_once() -> None:
    following = {"": {"1": 1.0}, "1": {"0": 0.5, "\n": 0.5}, "10": {".": 0.5, "\n": 0.5}, "10.": {"5": 1.0}}
    assert said(split(SCORES), following) == pytest.approx({"1": 0.5, "10": 0.25})


def test_what_is_hardly_probable_is_not_followed() -> None:
    following = {"": {"8": 1 - FOLLOWED / 2, "7": FOLLOWED / 2}, "7": {"0": 1.0}}
    assert said(split(SCORES), following)["7"] == pytest.approx(FOLLOWED / 2)


def test_letters_are_not_looked_behind() -> None:
    choices = split(["A", "B"])
    assert choices.steps == {(): [ord("A"), ord("B")]}
    assert said(choices, {"": {"A": 0.7, "B": 0.2}, "A": {"n": 1.0}}) == pytest.approx({"A": 0.7, "B": 0.2})


@given(
    st.dictionaries(
        st.sampled_from(["", "8", "8.", "1", "10", "1.", "7"]),
        st.dictionaries(st.sampled_from("0123456789.%\n "), st.floats(0, 1), min_size=1),
    )
)
def test_the_scores_never_have_more_than_all_of_the_probability(weights: dict[str, dict[str, float]]) -> None:
    following = {t: {c: p / max(1.0, math.fsum(of.values())) for c, p in of.items()} for t, of in weights.items()}
    for names in (SCORES, list(tenths(range(1, 11)))):
        assert math.fsum(said(split(names), following).values()) <= 1 + 1e-9


def test_the_scores_in_tenths_are_those_from_the_first_to_the_last() -> None:
    names = tenths(range(1, 11))
    assert len(names) == 91 + 10 and (names["8"], names["8.0"], names["8.5"], names["10.0"]) == (8, 8, 8.5, 10)
    assert "0.9" not in names and "10.1" not in names
