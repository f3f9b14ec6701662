"""A file of captions as the context of rows."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from videoqa.captions import with_captions
from videoqa.errors import UserError

ROWS: list[dict[str, Any]] = [{"id": "one", "context": ""}, {"id": "two", "context": "old"}]


def save(tmp_path: Path, told: Any) -> Path:
    path = tmp_path / "captions.json"
    path.write_text(told if isinstance(told, str) else json.dumps(told), "utf-8")
    return path


def test_a_text_stays_and_timed_captions_are_lines_in_order_of_time(tmp_path: Path) -> None:
    told = {"one": " C cooks. ", "two": [[4.5, "C takes\na plate"], [0, "C opens the door"]], "three": "more"}
    rows = with_captions(ROWS, save(tmp_path, told))
    assert [row["context"] for row in rows] == ["C cooks.", "(0.00s) C opens the door\n(4.50s) C takes a plate"]
    assert ROWS[1]["context"] == "old"


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"one": "x"}, "1 of 2 questions have no captions, the first is two"),
        ({"one": "x", "two": ""}, "two: captions are a text, or a list"),
        ({"one": "x", "two": []}, "two: captions are a text, or a list"),
        ({"one": "x", "two": ["C cooks"]}, "two: captions are a text, or a list"),
        ({"one": "x", "two": [["0", "C cooks"]]}, "two: captions are a text, or a list"),
        ({"one": "x", "two": [[True, "C cooks"]]}, "two: captions are a text, or a list"),
        ({"one": "x", "two": [[0, None]]}, "two: captions are a text, or a list"),
        ({"one": "x", "two": 3}, "two: captions are a text, or a list"),
        ('{"one": "x", "two": [[NaN, "C"]]}', "two: captions are a text, or a list"),
        (f'{{"one": "x", "two": [[{"9" * 400}, "C"]]}}', "two: captions are a text, or a list"),
        ([], "an object is expected"),
        ("{", "is no JSON"),
    ],
)
def test_captions_of_another_form_are_named(told: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        with_captions(ROWS, save(tmp_path, told))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        with_captions(ROWS, tmp_path / "none.json")


NUMBERS = st.integers() | st.floats() | st.sampled_from([10**400, -(10**400), math.inf, math.nan])
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=5), lambda of: st.lists(of, max_size=3), max_leaves=6
)


@given(JSON | st.lists(st.tuples(NUMBERS, st.text(max_size=5)), max_size=3))
def test_whatever_stands_for_captions_it_is_text_or_refused_in_words(told: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = save(Path(folder), {"one": told})
        try:
            (row,) = with_captions(ROWS[:1], path)
        except UserError as error:
            assert str(error).startswith(f"{path}: ")
        else:
            assert isinstance(row["context"], str) and row["context"].strip()
