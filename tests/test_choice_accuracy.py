"""The `evaluate` module for multiple choice."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

evaluate = pytest.importorskip("evaluate")

FOLDER = Path(__file__).resolve().parents[1] / "metrics" / "choice_accuracy"
OPTIONS = ["C is cooking.", "C is cleaning.", "C is painting."]


@pytest.fixture
def metric() -> Any:
    return evaluate.load(str(FOLDER))


def test_the_example_of_the_card_is_true() -> None:
    code = re.search(r"```python\n(.*?)```", (FOLDER / "README.md").read_text(), re.S)
    assert code
    exec(code[1].replace("/path/to/easg-bench/metrics/choice_accuracy", str(FOLDER)), {})


def test_what_cannot_be_read_is_wrong_and_counted(metric: Any) -> None:
    found = metric.compute(
        predictions=["B", None, "no idea", "A"], references=[1, 0, 0, 0], choices=[OPTIONS] * 4, clips=list("aabb")
    )
    assert (found["accuracy"], found["unreadable"], found["n"], found["clips"]) == (0.5, 2, 4, 2)
    assert found["low"] is None  # of two clips there is no interval
    many = metric.compute(predictions=["A", "B"] * 10, references=[0] * 20, choices=[OPTIONS] * 20)
    assert 0 <= many["low"] < 0.5 < many["high"] <= 1


def test_rows_that_are_added_one_by_one_give_the_same(metric: Any) -> None:
    for prediction, reference in (("B", 1), ("C", 2), ("(A)", 2)):
        metric.add(prediction=prediction, reference=reference, choices=OPTIONS)
    found = metric.compute()
    assert (found["accuracy"], found["n"]) == (pytest.approx(2 / 3), 3)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"predictions": [3]}, "predictions, row 0"),
        ({"references": [3]}, "references, row 0: 3; an index of the options is expected, 0 to 2"),
        ({"references": [True]}, "references, row 0: True"),
        ({"references": ["1"]}, "references, row 0: '1'"),
        ({"references": [1.0]}, "references, row 0: 1.0"),
        ({"choices": [["one"]]}, "choices, row 0"),
        ({"choices": ["ABC"]}, "choices, row 0"),
        ({"choices": "ABC"}, "not a single text"),
        ({"references": [0, 1]}, "the columns differ in length"),
        ({"choices": None}, "missing: choices"),
    ],
)
def test_a_row_that_cannot_be_scored_is_named(row: dict[str, Any], message: str, metric: Any) -> None:
    with pytest.raises(ValueError, match=message):
        metric.add_batch(**{"predictions": ["B"], "references": [1], "choices": [OPTIONS]} | row)


def test_no_rows_are_no_accuracy(metric: Any) -> None:
    with pytest.raises(ValueError, match="no rows"):
        metric.compute(predictions=[], references=[], choices=[])
