"""The `evaluate` module for key points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.scripted import Scripted

evaluate = pytest.importorskip("evaluate")

FOLDER = Path(__file__).resolve().parents[1] / "metrics" / "keypoints"
TRUTH = "He is late, and it rains."


def grades(text: str) -> dict[str, float] | None:
    said = text.split("The student writes: ")[1].split("\n")[0]
    if "fails" in said:
        return None
    return {"1": 0.9, "0.5": 0.1} if said == TRUTH else {"0.5": 1.0} if "late" in said else {"0": 1.0}


@pytest.fixture
def metric() -> Any:
    return evaluate.load(str(FOLDER))


def judge(metric: Any, *predictions: str | None, **more: Any) -> dict[str, Any]:
    engine = Scripted(lambda *_: "", chances=grades, name="judge")
    columns = {"references": [TRUTH] * len(predictions), "questions": ["Why does he run?"] * len(predictions)}
    return dict(metric.compute(predictions=list(predictions), **columns, engine=engine, store=False, **more))


def test_the_mean_of_the_judge_s_scores_and_what_it_gives_the_truth_beside(metric: Any) -> None:
    found = judge(metric, TRUTH, "He is late.", "A dog barks.", None)
    assert found["keypoints"] == pytest.approx(100 * (0.95 + 0.5 + 0 + 0) / 4)
    assert (found["truth"], found["n"], found["empty"], found["mode"]) == (pytest.approx(95), 4, 1, "dist")
    assert found["judge"].startswith("judge (engine scripted), dist greedy") and found["mass"] == pytest.approx(1)
    assert judge(metric, TRUTH, truth=False)["truth"] is None


def test_a_call_that_fails_is_counted_and_in_no_mean(metric: Any) -> None:
    with pytest.warns(UserWarning, match="1 of 4 calls of the judge failed"):
        found = judge(metric, "He is late.", "This fails.")
    assert (found["keypoints"], found["n"], found["n_scored"], found["errors"]) == (50, 2, 1, 1)


def test_the_interval_resamples_clips(metric: Any) -> None:
    many = judge(metric, *["He is late.", "A dog barks."] * 5, clips=list("abcdefghij"))
    assert many["low"] < 25 < many["high"] and many["clips"] == 10
    assert judge(metric, "He is late.", "A dog barks.", clips=["a", "b"])["low"] is None


def test_rows_that_are_added_one_by_one_give_the_same(metric: Any) -> None:
    for text in (TRUTH, "He is late."):
        metric.add(prediction=text, reference=TRUTH, questions="Why does he run?")
    found = metric.compute(engine=Scripted(lambda *_: "", chances=grades), store=False)
    assert found["keypoints"] == judge(metric, TRUTH, "He is late.")["keypoints"]


def test_without_a_judge_or_a_truth_nothing_is_scored(metric: Any) -> None:
    with pytest.raises(ValueError, match="keypoints needs a judge"):
        metric.compute(predictions=["a"], references=["b"], questions=["c"])
    with pytest.raises(ValueError, match="references, row 0: the ground truth is empty"):
        metric.compute(predictions=["a"], references=[" "], questions=["c"], engine="x")
