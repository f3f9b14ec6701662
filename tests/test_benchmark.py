"""What a benchmark's folder says of itself: mistakes in it come to light at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from videoqa.benchmark import Extras, track
from videoqa.benchmarks.easg import published

ROW: Any = {"id": "a", "type": "direct"}


def test_a_figure_that_no_table_would_show_is_a_fault() -> None:
    extras = Extras(("match_f1",), lambda row, line: {"match_f1": 1.0, "length": 0.5})
    with pytest.raises(KeyError, match="no name length"):
        extras.summary([ROW], {"a": {}})


def test_a_figure_of_one_way_of_asking_has_a_name() -> None:
    extras = Extras((), lambda row, line: {"located_hit": 1.0}, {"two-stage": ("located_hit",)})
    assert extras.summary([ROW], {"a": {}})["located_hit"]["all"] == {"n": 1, "mean": 1.0}


def test_a_further_question_type_leaves_the_published_rows_as_printed() -> None:
    source = Path(published.__file__).read_text(encoding="utf-8")
    further = source.replace('"before", "after")', '"before", "after", "during")', 1)
    names: dict[str, Any] = {"__name__": published.__name__}
    exec(compile(further, published.__file__, "exec"), names)
    assert "during" in names["TYPES"]
    assert names["PAPER_TABLE2"] == published.PAPER_TABLE2


def test_a_rubric_that_is_not_there_is_refused_with_the_names_that_are() -> None:
    rubric = track().rubric
    assert rubric is not None
    with pytest.raises(FileNotFoundError, match="no rubric file strickt; allowed are ours, paper and a file"):
        rubric("strickt")
