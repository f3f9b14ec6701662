"""Asking for one of several options: three protocols, two turns, rearranged options, and the scorer of letters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from tests.scripted import Scripted
from videoqa.asking import Answer
from videoqa.benchmarks.egoschema import prompts
from videoqa.choices import rearranged
from videoqa.choosing import Wording, choice_way
from videoqa.errors import UserError
from videoqa.letters import Letters
from videoqa.measures import ACCURACY
from videoqa.rating import arrangements, item_of, scored
from videoqa.reply import Verdict

OPTIONS = ["cooks rice", "washes a car", "paints a wall", "mends a tyre", "folds a shirt"]


def row(name: str = "q", gold: int | None = 2, **more: Any) -> dict[str, Any]:
    return {
        **{"id": name, "clip": f"clip of {name}", "type": "multiple-choice", "question": f"What does C do in {name}?"},
        **{"answer": None, "choices": list(OPTIONS), "gold": gold, "context": "C holds a brush."},
    } | more


WAY = choice_way("language-only", prompts.BLIND)


def asked(protocol: str, engine: Scripted, rows: list[dict[str, Any]], way: Any = WAY) -> dict[int, Answer]:
    return dict(way.protocols[protocol](engine, rows, 32, None))


def test_generation_gives_the_reply_as_it_came() -> None:
    engine = Scripted(lambda text, seed: " The answer is C.\n")
    (answer,) = asked("generation", engine, [row()]).values()
    assert (answer.text, answer.probabilities, answer.mass) == ("The answer is C.", None, None)
    assert "C. paints a wall" in engine.asked[0]


def test_likelihood_takes_the_most_probable_letter_and_generates_nothing() -> None:
    engine = Scripted(lambda *_: "never", chances=lambda text: {"B": 0.5, "C": 0.2, "A": 0.1})
    (answer,) = asked("likelihood", engine, [row()]).values()
    assert answer.text == "B"
    assert answer.probabilities == pytest.approx((0.125, 0.625, 0.25, 0, 0))
    assert answer.mass == pytest.approx(0.8)
    assert [call["choices"] for call in engine.calls] == [list("ABCDE")]


def test_letters_without_half_of_the_mass_are_asked_again_by_generation() -> None:
    def chances(text: str) -> dict[str, float]:
        return {"B": 0.3, "C": 0.1} if "in odd?" in text else {"D": 0.5}

    answers = asked("likelihood", Scripted(lambda *_: "(E)", chances=chances), [row("odd"), row("even")])
    assert [answers[i].text for i in (0, 1)] == ["(E)", "D"]
    assert answers[0].mass == pytest.approx(0.4) and answers[1].mass == pytest.approx(0.5)


def test_a_server_that_gives_a_text_only_is_asked_again_where_it_names_no_letter() -> None:
    engine = Scripted(lambda *_: "none of these", chances=lambda text: {})
    (answer,) = asked("likelihood", engine, [row()]).values()
    assert (answer.text, answer.mass) == ("none of these", 0.0)


def test_a_tie_is_no_answer_unless_the_options_are_the_same() -> None:
    engine = Scripted(lambda *_: "never", chances=lambda text: {"A": 0.4, "B": 0.4})
    assert asked("likelihood", engine, [row()])[0].text == ""
    same = row(choices=["cooks rice", "cooks rice", *OPTIONS[2:]])
    assert asked("likelihood", engine, [same])[0].text == "A"


def test_an_engine_error_is_the_rows_error() -> None:
    engine = Scripted(lambda *_: None, chances=lambda text: None)
    for protocol in ("generation", "likelihood", "yes"):
        (answer,) = asked(protocol, engine, [row()]).values()
        assert (answer.text, answer.error) == (None, "the prompt does not fit")


def test_yes_asks_each_option_by_itself() -> None:
    def chances(text: str) -> dict[str, float]:
        return {"Yes": 0.6, "No": 0.3} if "mends a tyre" in text else {"Yes": 0.1, "No": 0.8}

    engine = Scripted(lambda *_: "never", chances=chances)
    (answer,) = asked("yes", engine, [row()]).values()
    assert answer.text == "D"
    assert answer.probabilities == pytest.approx((1 / 9, 1 / 9, 1 / 9, 2 / 3, 1 / 9))
    assert answer.mass == pytest.approx(0.9)
    assert all(sum(option in text for option in OPTIONS) == 1 for text in engine.asked)


def test_options_of_different_number_go_together() -> None:
    engine = Scripted(lambda *_: "never", chances=lambda text: {"A": 0.6, "C": 0.3})
    answers = asked("likelihood", engine, [row(), row("two", choices=OPTIONS[:2], gold=0), row("three")])
    assert {i: answer.text for i, answer in answers.items()} == {0: "A", 1: "A", 2: "A"}
    assert [len(answers[i].probabilities or ()) for i in range(3)] == [5, 2, 5]


def test_two_passes_choose_behind_the_reasoning() -> None:
    way = choice_way("language-only", prompts.TWO_PASS, captions=True)

    def script(text: str, seed: int) -> str | None:
        if "in lost?" in text:
            return None
        return "C" if text.startswith("Now choose") else "There is a brush."

    engine = Scripted(script, chances=lambda text: {"C": 0.9} if text.startswith("Now choose") else {"A": 0.9})
    for protocol in ("generation", "likelihood"):
        answers = asked(protocol, engine, [row(), row("lost")], way)
        assert (answers[0].text, answers[0].reasoning) == ("C", "There is a brush.")
        assert [message["role"] for message in answers[0].conversation] == ["user", "assistant", "user"]
        assert (answers[1].text, answers[1].error) == (None, "the prompt does not fit")


def test_the_protocol_is_the_best_that_the_engine_has() -> None:
    sure, unsure = Scripted(lambda *_: "A", chances=lambda text: {}), Scripted(lambda *_: "A")
    assert (WAY.protocol(None, sure), WAY.protocol(None, unsure)) == ("likelihood", "generation")
    assert WAY.protocol("generation", sure) == "generation"
    with pytest.raises(UserError, match="gives no probabilities"):
        WAY.protocol("yes", unsure)
    with pytest.raises(UserError, match="allowed are generation, likelihood, yes"):
        WAY.protocol("guess", sure)


def test_a_row_without_options_shows_the_fixed_texts() -> None:
    for way in (WAY, choice_way("video", Wording("", prompts.blind, prompts.is_right), frames=True)):
        assert "None" not in way.query({"question": "", "context": "", "choices": None})


# -- rearranged options -----------------------------------------------------------------------------------------------


def test_circular_asks_each_question_in_all_shifts() -> None:
    rows = rearranged([row("one"), row("two", gold=None)], "circular")
    assert [one["id"] for one in rows] == [f"{name}#{shift}" for name in ("one", "two") for shift in range(5)]
    assert {one["group"] for one in rows[:5]} == {"one"}
    assert all(one["choices"][one["gold"]] == "paints a wall" for one in rows[:5])
    assert all([OPTIONS[i] for i in one["order"]] == one["choices"] for one in rows)
    assert {one["gold"] for one in rows[5:]} == {None}


def test_a_shuffle_depends_on_seed_and_question_alone() -> None:
    one, two = rearranged([row("one"), row("two")], "shuffle:7")
    assert rearranged([row("two")], "shuffle:7")[0] == two
    assert one["id"] == "one" and one["choices"][one["gold"]] == "paints a wall"
    orders = {tuple(rearranged([row()], f"shuffle:{seed}")[0]["order"]) for seed in range(30)}
    assert len(orders) > 15


def test_an_order_of_an_order_still_leads_to_the_options_of_the_data() -> None:  # C04 of the public reports
    for seed in range(5):
        rows = rearranged(rearranged([row()], f"shuffle:{seed}"), "circular")
        assert all([OPTIONS[i] for i in one["order"]] == one["choices"] for one in rows)
        right = [verdict("ABCDE"[one["choices"].index("paints a wall")], one) for one in rows]
        assert [(one.score, one.choice) for one in right] == [(1.0, 2)] * 5


@pytest.mark.parametrize("order", ["shuffle:", "shuffle:-1", "random", ""])
def test_an_unknown_order_is_named(order: str) -> None:
    with pytest.raises(UserError, match="it is circular or shuffle:SEED"):
        rearranged([row()], order)


def test_questions_without_options_cannot_be_rearranged() -> None:
    with pytest.raises(UserError, match="question q has no options"):
        rearranged([row(choices=None, gold=None)], "circular")


# -- the scorer -------------------------------------------------------------------------------------------------------


def verdict(text: str | None, of: Mapping[str, Any]) -> Verdict:
    return dict(Letters().rate([item_of(of, text)]))[0]


@pytest.mark.parametrize(
    ("reply", "score", "status", "why", "choice"),
    [
        ("C", 1.0, "ok", "letter", 2),
        ("The answer is B.", 0.0, "ok", "statement", 1),
        ("", 0.0, "unreadable", "empty", None),
        (None, 0.0, "unreadable", "empty", None),
        ("I cannot tell from the video.", 0.0, "unreadable", "refusal", None),
        ("A or B", 0.0, "unreadable", "several", None),
        ("Bananas!", 0.0, "unreadable", "nothing", None),
        ("<think>C?", 0.0, "unreadable", "truncated", None),
    ],
)
def test_what_cannot_be_read_is_wrong_and_counted_apart(
    reply: str | None, score: float, status: str, why: str, choice: int | None
) -> None:
    found = verdict(reply, row())
    assert (found.score, found.status, found.explanation, found.choice) == (score, status, why, choice)


def test_equal_options_are_right_together() -> None:
    assert verdict("E", row(choices=[*OPTIONS[:4], OPTIONS[2]])).score == 1.0


def test_a_withheld_answer_is_read_and_has_no_score() -> None:
    found = verdict("B", row(gold=None))
    assert (found.score, found.status, found.choice) == (None, "ok", 1)
    assert verdict("?", row(gold=None)).score is None


def test_the_choice_is_told_in_the_original_order() -> None:
    (shifted,) = [one for one in rearranged([row()], "circular") if one["id"] == "q#1"]
    assert shifted["choices"][0] == "washes a car"
    assert verdict("A", dict(shifted)).choice == 1


def test_a_row_without_an_answer_is_wrong_and_a_withheld_one_is_left_out() -> None:
    rows = [row("a"), row("b"), row("c"), row("d", gold=None)]
    verdicts = {"a": verdict("C", rows[0]), "b": verdict("who knows", rows[1]), "d": verdict("A", rows[3])}
    found = scored(rows, verdicts, every_row=True)
    assert [(one.id, one.score, one.status) for one in found] == [
        ("a", 1.0, "ok"),
        ("b", 0.0, "unreadable"),
        ("c", 0.0, "unanswered"),
    ]
    avg = ACCURACY.compute(found, None, key="letters", types=("multiple-choice",)).avg
    assert avg.value == pytest.approx(100 / 3)
    assert (avg.n, avg.n_scored, avg.unreadable) == (3, 2, 1)
    assert [one.id for one in scored(rows, verdicts)] == ["a", "b"]


def circular(letters: dict[str, str]) -> tuple[list[dict[str, Any]], dict[str, Verdict]]:
    """Rows in all shifts; of each question the reply to each shift, one letter each ("-": none)."""
    rows: Any = rearranged([row(name) for name in letters], "circular")
    replies = [letter for name in letters for letter in letters[name]]
    return rows, {one["id"]: verdict(reply, one) for one, reply in zip(rows, replies, strict=True) if reply != "-"}


def test_circular_is_right_only_if_right_in_all() -> None:
    # gold is C; shift by one: B, then A, E, D
    rows, verdicts = circular({"all": "CBAED", "but one": "CBAEE", "never": "AAAAA", "one lacks": "CBAE-"})
    found = {one.id: one for one in scored(rows, verdicts)}
    assert {name: one.score for name, one in found.items()} == {"all": 1.0, "but one": 0.0, "never": 0.0}
    assert found["all"].choice == "paints a wall" and found["never"].choice == ""
    every = {one.id: one for one in scored(rows, verdicts, every_row=True)}
    assert (every["one lacks"].score, every["one lacks"].status) == (0.0, "unanswered")


def test_consistency_is_the_same_option_right_or_wrong_and_never_below_the_accuracy() -> None:
    rows, verdicts = circular({"all": "CBAED", "same wrong": "BAEDC", "never": "AAAAA", "unread": "?????"})
    extras = arrangements(rows, verdicts)
    assert extras["consistency"] == {"all": {"n": 4, "mean": 0.5}}
    assert extras["right_in_one"]["all"]["mean"] == pytest.approx(6 / 20)
    accuracy = sum(one.score or 0 for one in scored(rows, verdicts)) / 4
    assert accuracy == 0.25 <= extras["consistency"]["all"]["mean"]
    assert arrangements([row()], {}) == {}


def test_every_prompt_says_what_to_answer_with() -> None:
    for text in (prompts.blind(row()), prompts.narrations(row())):
        assert re.search(r"E\. folds a shirt\nReply with the letter", text)
    assert "C holds a brush." in prompts.narrations(row()) and "brush" not in prompts.blind(row())
