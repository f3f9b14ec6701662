"""Figures of multiple-choice answers by position."""

from __future__ import annotations

from typing import Any

import pytest

from videoqa import positions
from videoqa.benchmarks.egoschema import EGOSCHEMA


def row(gold: int | None, name: str = "q") -> dict[str, Any]:
    choices = ["cooks rice", "washes a car", "paints a wall", "mends a tyre", "folds a shirt"]
    return {"id": name, "type": "multiple-choice", "choices": choices, "gold": gold}


def test_an_answer_counts_where_the_right_one_is_and_where_the_chosen_one_is() -> None:
    found = positions.figures(row(3), {"prediction": "B"})
    assert found["right_at_D"] == 0.0 and found["chosen_B"] == 0.0
    assert (found["always_D"], found["always_A"], found["chance"]) == (1.0, 0.0, 0.2)
    assert not {"chosen_D", "right_at_B", "mass"} & found.keys()
    unread = positions.figures(row(3), {"prediction": "?"})
    assert unread["right_at_D"] == 0.0 and not any(name.startswith("chosen") for name in unread)


def test_nothing_is_said_of_what_is_withheld_but_how_sure_the_model_was() -> None:
    line = {"prediction": "B", "probabilities": [0.2, 0.5, 0.1, 0.1, 0.1], "mass": 0.9}
    assert positions.figures(row(None), line) == {"mass": 0.9, "asked_again": 0.0, "confidence": 0.5}
    assert positions.figures(row(None), line | {"mass": 0.1}) == {"mass": 0.1, "asked_again": 1.0}


def test_every_figure_has_its_name_in_the_track() -> None:
    assert EGOSCHEMA.extras is not None
    line = {"prediction": "B", "probabilities": [0.2, 0.5, 0.1, 0.1, 0.1], "mass": 0.9}
    names = {
        name
        for gold in range(5)
        for letter in "ABCDE"
        for name in positions.figures(row(gold), line | {"prediction": letter})
    }
    assert names == set(EGOSCHEMA.extras.names)


def test_the_lines_below_a_table() -> None:
    assert EGOSCHEMA.extras is not None
    rows = [row(gold, f"q{n}") for n, gold in enumerate([0, 0, 1, 4])]
    answers = {f"q{n}": {"prediction": "A", "probabilities": [0.6, 0.1, 0.1, 0.1, 0.1], "mass": 0.9} for n in range(4)}
    lines = positions.lines(EGOSCHEMA.extras.summary(rows, answers))
    assert lines == [
        "chance 20.0; always A 50.0, B 25.0, C 0.0, D 0.0, E 25.0",
        "right where the right answer is A 100.0 (of 2), B 0.0 (of 1), E 0.0 (of 1)",
        "right where the answer chosen is A 50.0 (of 4)",
        "mass on the answers 0.900, 0 rows asked again by generation; mean confidence 0.60",
    ]
    circular = {"consistency": {"all": {"n": 20, "mean": 0.25}}, "right_in_one": {"all": {"n": 100, "mean": 0.4}}}
    assert positions.lines(circular) == [
        "in all shifts the same option 25.0 (of 20 questions); right in a single one 40.0"
    ]
    assert positions.lines({}) == []


@pytest.mark.parametrize("gold", range(5))
def test_a_letter_that_is_always_chosen_is_right_as_often_as_its_baseline_says(gold: int) -> None:
    found = positions.figures(row(gold), {"prediction": "E"})
    assert found["always_E"] == found["chosen_E"]
