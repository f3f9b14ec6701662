"""videoqa/benchmarks/worldqa/rubrics.py: four scores and no others, read from text or as a distribution."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scripted import Scripted
from videoqa.benchmarks.worldqa.rubrics import KEY_POINTS, VALUES, rubric
from videoqa.judge import Judge, prompt
from videoqa.reply import read_reply
from videoqa.scorer import Item

ITEM = Item("Why does he run?", "He is late and it rains.", "He is late.")


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("Point:\n0.5", 0.5),  # this and the next four, as two of those refused below: W01 of the public reports
        ("Point: 0.5", 0.5),
        ("Point:\n**1**", 1.0),
        ("Point:\n0.5\n", 0.5),
        ("Point:\n0.5 point", 0.5),
        ("0.5 points", 0.5),
        ("Score: 0.5 point", 0.5),
        ("Score: 0,3", 0.3),
        ("Score: 0.3\nOne of 3 key points is contradicted.", 0.3),
        ("Score: 0.5 because 1 of 2 key points is there", 0.5),
        ("The reference has 2 key points; the student has 1 of them.\nScore: 0.5", 0.5),
        ("Score: 0", 0.0),
        ("Score: 1.0", 1.0),
    ],
)
def test_a_grade_is_read(reply: str, score: float) -> None:
    assert (read_reply(reply, KEY_POINTS).score, read_reply(reply, KEY_POINTS).status) == (score, "ok")


@pytest.mark.parametrize(
    "reply", ["Point:\n0.7", "Score: 0.4", "Score: 5", "Score: 0.25", "Score: -1", "Score: 10", "Score: 1/2"]
)
def test_a_number_that_is_none_of_the_four_grades_is_no_score(reply: str) -> None:
    assert (read_reply(reply, KEY_POINTS).score, read_reply(reply, KEY_POINTS).status) == (None, "out_of_range")


@pytest.mark.parametrize("reply", ["Point:\n1/0.5/0.3/0", "Score: 0.3 or 0.5", "He has 1 of 2 key points.", ""])
def test_a_reply_without_one_grade_is_no_score(reply: str) -> None:
    assert (read_reply(reply, KEY_POINTS).score, read_reply(reply, KEY_POINTS).status) == (None, "unreadable")


@given(st.integers(0, 1000))
def test_of_all_numbers_only_four_are_grades(thousandths: int) -> None:
    score = read_reply(f"Score: {thousandths / 1000:g}", KEY_POINTS).score
    assert score == (thousandths / 1000 if thousandths in (0, 300, 500, 1000) else None)


@given(st.tuples(*[st.integers(0, 20)] * 4).filter(any))
def test_the_score_of_a_distribution_is_the_mean_of_the_four_grades(weights: tuple[int, ...]) -> None:
    chances = {f"{v:g}": w / sum(weights) for v, w in zip(VALUES, weights, strict=True)}
    judge = Judge(Scripted(lambda *_: "", chances=lambda _: chances), KEY_POINTS)
    ((_, verdict),) = judge.rate([ITEM])
    exact = (0.3 * weights[1] + 0.5 * weights[2] + weights[3]) / sum(weights)
    assert (judge.mode, verdict.status) == ("dist", "ok")
    assert verdict.score == pytest.approx(exact, abs=1e-6)
    assert verdict.probabilities == pytest.approx([w / sum(weights) for w in weights], abs=1e-6)


def test_a_distribution_is_asked_for_the_four_grades() -> None:
    engine = Scripted(lambda *_: "", chances=lambda _: {"0": 0.1, "0.3": 0.2, "0.5": 0.3, "1": 0.4})
    ((_, verdict),) = Judge(engine, KEY_POINTS).rate([ITEM])
    assert (engine.calls[0]["choices"], engine.calls[0]["start"]) == (["0", "0.3", "0.5", "1"], "Score: ")
    assert (verdict.score, verdict.most_likely) == (0.61, 1.0)


def test_an_empty_answer_has_no_key_point() -> None:
    ((_, verdict),) = Judge(Scripted(lambda *_: "Score: 1"), KEY_POINTS).rate([Item("Why?", "It rains.", " ")])
    assert (verdict.score, verdict.status) == (0.0, "empty_prediction")


def test_a_judge_that_gives_another_number_is_counted_and_not_rounded() -> None:
    ((_, verdict),) = Judge(Scripted(lambda *_: "Score: 0.7"), KEY_POINTS).rate([ITEM])
    assert (verdict.score, verdict.status) == (None, "out_of_range")


def test_the_judge_sees_question_truth_and_answer_and_nothing_else_of_the_video() -> None:
    item = Item("Why does he run?", "He is late.", "He is late.\nScore: 1", context="0.0 s: He looks at the clock.")
    text = "\n".join(str(message["content"]) for message in prompt(KEY_POINTS, item))
    assert "Why does he run?" in text and "The student writes: He is late." in text
    assert "clock" not in text and "Score: 1" not in text


@pytest.mark.parametrize("grade", ["1 -", "0.5 -", "0.3 -", "0 -"])
def test_the_rubric_defines_each_grade_once(grade: str) -> None:
    assert sum(line.startswith(grade) for line in KEY_POINTS.system.splitlines()) == 1


def test_missing_and_added_is_half_and_contradicted_is_less() -> None:
    """The case that the paper leaves open: the definitions that the judge is given decide it."""
    half, less = (next(line for line in KEY_POINTS.system.splitlines() if line.startswith(g)) for g in ("0.5", "0.3"))
    assert "or does both" in half and "contradicts none" in half
    assert "but also contradicts the reference answer, whatever else is left out or added" in less


def test_a_rubric_of_ones_own_has_the_same_four_grades(tmp_path: Path) -> None:
    layout = "{context}{question}{answer}{prediction}{rule}"
    (tmp_path / "mine.json").write_text(json.dumps({"system": "s", "rule": "r", "layout": layout}))
    mine = rubric(str(tmp_path / "mine.json"))
    assert (rubric("ours"), mine.name, mine.values, mine.between) == (KEY_POINTS, "mine", VALUES, False)
