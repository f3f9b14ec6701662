"""Columns of texts, checked."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from videoqa import columns
from videoqa.benchmarks.easg.published import TYPES

checked_columns = functools.partial(columns.checked_columns, allowed=TYPES)

GOOD: dict[str, Any] = {"predictions": ["a", None], "references": ["x", "y"], "types": ["direct", "after"]}


def test_a_prediction_of_none_is_an_empty_answer() -> None:
    assert checked_columns(GOOD)["predictions"] == ["a", ""]


def test_any_sequence_of_texts_will_do() -> None:
    assert checked_columns(GOOD | {"references": ("x", "y")})["references"] == ["x", "y"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"references": None}, "missing: references; each row needs predictions, references, types"),
        ({"references": "xy"}, "references: a list of texts is expected"),
        ({"references": ["x"]}, "2 predictions, 1 references, 2 types"),
        ({"references": ["x", None]}, r"references, row 1: None \(NoneType\)"),
        ({"references": ["x", " "]}, "references, row 1: the ground truth is empty"),
        ({"predictions": ["a", ["b"]]}, r"predictions, row 1: \['b'\] \(list\)"),
        ({"types": ["direct", "during"]}, "types, row 1: 'during'; allowed are purpose, direct, indirect, before, af"),
    ],
)
def test_what_cannot_be_a_row_is_named(change: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        checked_columns(GOOD | change)
