"""videoqa/benchmarks/egoschema/submission.py: whole or not at all, and nothing invented."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from videoqa.benchmarks.egoschema.submission import SubmissionError, check, write

UIDS = ["u1", "u2", "u3", "u4"]
WHOLE = {"u4": 4, "u1": "C", "u2": "(b)", "u3": "4"}


def test_a_csv_has_a_line_for_every_uid_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "submission.csv"
    write(path, WHOLE, UIDS)
    assert path.read_bytes() == b"q_uid,answer\nu1,2\nu2,1\nu3,4\nu4,4\n"


def test_a_json_is_an_object_of_whole_numbers(tmp_path: Path) -> None:
    path = tmp_path / "submission.json"
    write(path, WHOLE, UIDS, "json")
    assert path.read_bytes().startswith(b"{")
    assert json.loads(path.read_text("utf-8")) == {"u1": 2, "u2": 1, "u3": 4, "u4": 4}


def test_everything_that_is_wrong_is_listed_at_once() -> None:
    checked = check([("u1", 7), ("u2", True), ("u2", 1), ("u9", 1), ("u4", None)], UIDS)
    assert checked.text() == (
        "2 without an answer: u3, u4; 1 twice: u2; 1 not expected: u9; 2 not 0 to 4 or A to E: u1 (7), u2 (True)"
    )
    assert check(WHOLE, UIDS).text() == ""


@pytest.mark.parametrize("value", [7, -1, True, 3.0, "F", "5", "AB", "", "()", "3.0", [1], float("nan"), "٣"])
def test_what_is_no_answer_is_never_made_one(value: Any, tmp_path: Path) -> None:
    path = tmp_path / "submission.csv"
    with pytest.raises(SubmissionError, match="not written: 1 not 0 to 4 or A to E: u1"):
        write(path, {**WHOLE, "u1": value}, UIDS, missing=0)
    assert list(tmp_path.iterdir()) == []


def test_holes_are_listed_and_left_to_the_user(tmp_path: Path) -> None:
    path = tmp_path / "submission.csv"
    path.write_text("before", encoding="utf-8")
    with pytest.raises(SubmissionError, match=r"not written: 2 without an answer: u1, u3$"):
        write(path, {"u2": 1, "u3": None, "u4": 4}, UIDS)
    assert path.read_text("utf-8") == "before"
    checked = write(path, {"u2": 1, "u3": None, "u4": 4}, UIDS, missing=0)
    assert checked.open == ("u1", "u3")
    assert path.read_text("utf-8") == "q_uid,answer\nu1,0\nu2,1\nu3,0\nu4,4\n"


@pytest.mark.parametrize("pairs", [[*WHOLE.items(), ("u5", 1)], [*WHOLE.items(), ("u1", 2)]])
def test_doubled_and_unknown_uids_are_no_submission(pairs: list[tuple[str, Any]], tmp_path: Path) -> None:
    with pytest.raises(SubmissionError, match=r"not expected: u5|twice: u1"):
        write(tmp_path / "submission.csv", pairs, UIDS, missing=0)
    assert list(tmp_path.iterdir()) == []


def test_a_long_list_is_cut_but_counted() -> None:
    text = check({}, [f"u{i}" for i in range(5031)]).text()
    assert text == "5,031 without an answer: u0, u1, u2, u3, u4, u5, u6, u7, u8, u9, and 5,021 more"


@pytest.mark.parametrize(
    "options",
    [{"format": "xml"}, {"missing": 5}, {"missing": True}, {"missing": -1}, {"uids": []}, {"uids": ["a", "a"]}],
)
def test_an_order_that_makes_no_sense_is_refused(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"format|missing|uids"):
        write(tmp_path / "submission.csv", **{"predictions": WHOLE, "uids": UIDS, **options})
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_beside_the_file_goes_with_the_next(tmp_path: Path) -> None:
    (tmp_path / ".submission.csv.part-999999999-ab12").write_text("q_uid")
    write(tmp_path / "submission.csv", WHOLE, UIDS)
    assert [path.name for path in tmp_path.iterdir()] == ["submission.csv"]


def test_a_file_that_cannot_take_its_place_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "submission.csv").mkdir()
    with pytest.raises(OSError):
        write(tmp_path / "submission.csv", WHOLE, UIDS)
    assert [path.name for path in tmp_path.iterdir()] == ["submission.csv"]


@given(
    st.lists(
        st.tuples(st.sampled_from([*UIDS, "u9"]), st.none() | st.integers(-1, 5) | st.text(max_size=3) | st.floats())
    )
)
def test_an_answer_is_a_whole_number_from_0_to_4(pairs: list[tuple[str, Any]]) -> None:
    checked = check(pairs, UIDS)
    assert all(type(index) is int and 0 <= index < 5 for index in checked.answers.values())
    assert set(UIDS) == checked.answers.keys() | set(checked.open) | {uid for uid, _ in checked.outside}
