"""builder/egoschema/filters.py and builder/options.py: the rules for made questions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.egoschema.filters import faults
from builder.options import give_away, length_bias, sticks_out

ANSWER = "C washes the pan."
WRONG = ["C dries the pan.", "C fills the pan.", "C breaks a pan.", "C cooks an egg."]


def of(question: str = "What does C do with the pan?", answer: str = ANSWER, wrong: list[str] = WRONG) -> list[str]:
    return faults(question, answer, wrong)


def test_a_good_question_passes() -> None:
    assert of() == []
    assert of("When C washes the pan, what does he want to reach, and which tools does he use?") == []
    assert of("Why does C stir so frequently, and what is the narrative of the video?") == []
    assert of("Why does C go back to the log pile in the course of the video?") == []


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("What is the long-term goal of C?", "long-term"),
        ("What is the long term goal?", "long term"),
        ("Based on the narrations, what is it?", "narrations"),
        ("What happens at the timestamp 12?", "timestamp"),
        ("What does the caption say?", "caption"),
    ],
)
def test_words_of_the_prompt_are_found(question: str, word: str) -> None:
    assert of(question) == [f"has a word of the prompt: {word}"]


def test_words_of_the_prompt_are_found_in_an_answer_too() -> None:
    assert of(wrong=[*WRONG[:3], "Narrations end."]) == ["has a word of the prompt: narrations"]


@pytest.mark.parametrize(
    "question",
    [
        "How many pans does C wash?",
        "How often does C wash?",
        "What tool is most frequently used?",
        "What does C use most often?",
        "What is the number of times C washes?",
    ],
)
def test_a_question_for_a_frequency_is_found(question: str) -> None:
    assert of(question) == ["asks for a frequency"]


@pytest.mark.parametrize(
    "question",
    [
        "When does C wash the pan?",
        "When exactly did C stop?",
        "At what point does C stop?",
        "In which minute does C stop?",
    ],
)
def test_a_question_for_a_time_is_found(question: str) -> None:
    assert of(question) == ["asks when"]


def test_options_that_are_no_choice_are_found() -> None:
    assert of(wrong=[*WRONG[:3], " c washes  the pan"]) == ["has its right answer among the wrong ones"]
    assert of(wrong=[*WRONG[:3], WRONG[0]]) == ["has the same wrong answer twice"]
    assert of(wrong=WRONG[:3]) == ["has 3 wrong answers, not 4"]
    assert "has an empty text" in of(wrong=[*WRONG[:3], " "])
    assert "has an empty text" in of(" ")


def test_a_wrong_answer_that_says_the_right_one_and_more_is_found() -> None:
    answer = "C shows how to make tea."
    more = ["C shows how to make tea with another bag.", "C shows how to cook.", "C cleans a tea pot.", "C drinks tea."]
    assert of(answer=answer, wrong=more) == ["has a wrong answer that says all of the right one"]
    assert of(answer=answer, wrong=[answer.replace("tea", "teacups"), *more[1:]]) == []
    assert of(answer="C makes tea.", wrong=["C makes tea and juice.", *more[1:3], "C eats."]) == []  # too short to tell


def test_a_right_answer_that_sticks_out_is_found() -> None:
    assert of(answer="C washes the pan, and after that he dries it.") == [
        "has a right answer that is the longest by far"
    ]
    assert of(answer="He eats.") == ["has a right answer that is the shortest by far"]
    assert sticks_out("xxx", ["xx"] * 4) == ""  # exactly 1.5 times
    assert sticks_out("xxxx", ["xx"] * 4) == "longest"
    assert sticks_out("", []) == ""


def test_the_bias_of_a_set_is_what_taking_the_longest_option_gets() -> None:
    items = [
        ("xxx", ["x", "xx", "xx", "xx"]),
        ("xx", ["xx", "x", "x", "x"]),
        ("x", ["xx"] * 4),
        ("xx", ["x", "xxx", "xx", "xx"]),
    ]
    bias = length_bias(items)
    assert (bias.n, bias.longest, bias.shortest, bias.chance) == (4, 1.5 / 4, 1 / 4, 0.2)
    assert bias.margin == pytest.approx(0.4)
    assert not bias.given_away


def test_options_of_one_length_give_nothing_away() -> None:
    bias = length_bias([("x", ["y"] * 4)] * 1000)
    assert (bias.longest, bias.shortest) == (0.2, 0.2)
    assert not bias.given_away


def test_an_empty_set_has_no_bias() -> None:
    with pytest.raises(ValueError, match="no questions"):
        length_bias([])


def test_those_that_stick_out_most_are_left_out_first() -> None:
    fair = [("xx", ["x", "xxx", "x", "xxx"])] * 30
    items = [("x" * 9, ["xx"] * 4), *fair, *[("xxx", ["xx"] * 4)] * 20, ("x" * 10, ["xx"] * 4)]
    gone = give_away(items)
    assert {0, len(items) - 1} <= set(gone)
    assert not length_bias([item for i, item in enumerate(items) if i not in gone]).given_away
    assert length_bias([item for i, item in enumerate(items) if i not in gone[1:]]).given_away
    assert give_away(fair) == []


@given(st.lists(st.tuples(st.text(max_size=6), st.lists(st.text(max_size=6), min_size=1, max_size=4)), max_size=12))
def test_what_is_kept_gives_nothing_away(items: list[tuple[str, list[str]]]) -> None:
    gone = give_away(items)
    kept = [item for i, item in enumerate(items) if i not in gone]
    assert not kept or not length_bias(kept).given_away


@given(st.text(max_size=30), st.text(max_size=20), st.lists(st.text(max_size=20), max_size=5))
def test_no_text_raises(question: str, answer: str, wrong: list[str]) -> None:
    assert all(isinstance(fault, str) for fault in faults(question, answer, wrong))


@pytest.mark.real
def test_the_longest_option_of_the_public_questions_is_seldom_right(shared: Path) -> None:
    questions = json.loads((shared / "egoschema" / "questions_subset.json").read_text("utf-8"))
    answers = json.loads((shared / "egoschema" / "subset_answers.json").read_text("utf-8"))
    items = []
    for row in questions:
        options = [row[f"option {i}"] for i in range(5)]
        items.append((options.pop(answers[row["q_uid"]]), options))
    bias = length_bias(items)
    assert (bias.n, round(bias.longest, 4), round(bias.shortest, 4)) == (500, 0.0743, 0.185)
    assert bias.ruled_out and not bias.given_away
    assert give_away(items) == []
