"""builder/easg/grounded_file.py: the authors' own file, its wording and groundings kept."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from builder.__main__ import app
from builder.easg.check import check
from builder.easg.grounded_file import read_rows
from builder.errors import BuildError
from easg_bench import load

File = dict[str, Any]


@pytest.fixture
def grounded() -> File:
    """A file in the documented form, with wording of its own."""
    jug = {"left": 0.1, "top": 0.2, "width": 0.3, "height": 0.4}
    return {
        "kitchen": {
            "purpose": {"jug": {"question": "Why was the JUG needed, chef?", "answer": "To pour  water."}},
            "90": {
                "graph_uid": "g90",
                "narration_text": "#C C pours water",
                "attributes": {"jug": "red", "cup": None},
                "groundings": {"jug": jug, "cup": {"left": 0.0, "top": 0.5, "width": 1.0, "height": 0.5}},
                "questions": [
                    {"type": "direct", "question": "What goes from the <jug> to the cup?", "answer": "water"},
                    {"type": "indirect", "question": "Where does it go?", "answer": "into cup"},
                    {"type": "indirect", "question": "Where from?", "answer": "from jug"},
                    {"type": "before", "question": "And before?", "answer": "pick up cup"},
                ],
            },
            "1200": {"graph_uid": "g1200", "attributes": None, "groundings": {"Jug": jug}, "questions": []},
        },
        "garden": {"60": {"graph_uid": "g", "groundings": {}, "questions": []}},
    }


def save(tmp_path: Path, data: Any, name: str = "grounded.json") -> Path:
    path = tmp_path / name
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def test_wording_boxes_and_attributes_are_those_of_the_file(grounded: File, tmp_path: Path) -> None:
    said = save(tmp_path, {"kitchen": "(2.00s) #C C pours water."}, "said.json")
    counts: Counter[str] = Counter()
    rows, known = read_rows(save(tmp_path, grounded), said, counts)
    assert [(row["id"], row["question"], row["answer"]) for row in rows] == [
        ("kitchen:purpose:jug", "Why was the JUG needed, chef?", "To pour  water."),
        ("kitchen:f90:direct", "What goes from the <jug> to the cup?", "water"),
        ("kitchen:f90:indirect", "Where does it go?", "into cup"),
        ("kitchen:f90:indirect:2", "Where from?", "from jug"),
        ("kitchen:f90:before", "And before?", "pick up cup"),
    ]
    jug, cup = rows[1]["evidence"]
    assert jug == {
        "graph": "g90",
        "frame": 90,
        "seconds": 3.0,
        "object": "jug",
        "box": pytest.approx([0.1, 0.2, 0.4, 0.6]),
        "attribute": "red",
    }
    assert (cup["box"], cup["attribute"]) == ([0.0, 0.5, 1.0, 1.0], None)
    assert [(one["frame"], one["object"]) for one in rows[0]["evidence"]] == [(90, "jug"), (1200, "Jug")]
    assert (rows[0]["frame"], rows[1]["frame"]) == (None, 90)
    assert {(row["video"], row["start_s"], row["clip_start_s"]) for row in rows} == {("", None, None)}
    assert {row["context"] for row in rows} == {"(2.00s) #C C pours water."}
    assert [(row["clip"], row["narrations"]) for row in known] == [("kitchen", "(2.00s) #C C pours water.")]
    assert counts["clips without narrations"] == 1


def run(*arguments: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def test_the_command_line_makes_a_repo_that_loads_and_checks(grounded: File, tmp_path: Path) -> None:
    out = tmp_path / "easg-bench"
    code, said, err = run("import-grounded", save(tmp_path, grounded), "--out", out)
    assert code == 0, err
    assert said.startswith("questions: purpose 1, direct 1, indirect 2, before 1, after 0, total 5\n")
    assert "      2  clips without narrations\n" in said
    assert load(out)[0]["question"] == "Why was the JUG needed, chef?"
    assert [row["question"] for row in load(out, "language_neutral")] == [
        "Why was <region 1> needed, chef?",
        "What goes from <region 1> to <region 2>?",
    ]
    report = check(out)
    assert not report.errors
    assert report.unchecked and report.unchecked.startswith("answer is the asked action; a second object fits")
    assert list(report.rows) == ["default", "purpose", "direct", "indirect", "before", "language_neutral"]
    assert "the authors' own" in " ".join((out / "README.md").read_text().split())
    assert "grounded.json" in (out / "README.md").read_text()


def at(*path: str | int, to: Any) -> Callable[[File], None]:
    def change(data: Any) -> None:
        for step in path[:-1]:
            data = data[step]
        data[path[-1]] = to

    return change


JUG = ("kitchen", "90", "groundings", "jug")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (at("kitchen", "90", "questions", 0, "type", to="when"), 'frame 90: question 1: type "when" is none of direct'),
        (at("kitchen", "90", "questions", 0, "type", to=["x"]), 'type ["x"] is none of'),
        (at("kitchen", "90", "questions", 0, to="x"), 'frame 90: question 1: an object is needed, not "x"'),
        (at("kitchen", "90", "questions", to=None), "frame 90: questions must be a list, not null"),
        (at("kitchen", "90", "questions", 1, "answer", to=None), "question 2: answer: text is needed, not null"),
        (at("kitchen", "90", "questions", 1, to={"type": "after"}), "question 2: question is missing"),
        (at("kitchen", "frame 90", to={}), 'clip kitchen: a key is purpose or a frame number, not "frame 90"'),
        (at("kitchen", "9.5", to={}), 'a key is purpose or a frame number, not "9.5"'),
        (at("kitchen", "٣", to={}), "a key is purpose or a frame number"),
        (at("kitchen", "99999999999", to={}), 'a key is purpose or a frame number, not "99999999999"'),
        (at("kitchen", "90", to=[]), "frame 90: an object is needed, not []"),
        (at("kitchen", "91", to={"questions": []}), "frame 91: graph_uid is missing"),
        (at("kitchen", to=[]), "clip kitchen: an object with purpose and frames is needed, not []"),
        (
            at(*JUG, to={"left": 192, "top": 216, "width": 576, "height": 432}),
            "frame 90: box of jug: its edges (left, top, right, bottom) must be fractions of the frame, 0 to 1, "
            "not 192, 216, 768, 648; these look like pixels",
        ),
        (at(*JUG, "left", to=0.8), "not 0.8, 0.2, 1.1, 0.6"),
        (at(*JUG, "left", to=-0.1), "not -0.1, 0.2, 0.2, 0.6"),
        (at(*JUG, "width", to=0), "its width and height must be above 0, not 0 and 0.4"),
        (at(*JUG, "width", to="0.3"), 'box of jug: width: a finite number is needed, not "0.3"'),
        (at(*JUG, to=[0, 0, 1, 1]), "box of jug: an object is needed, not [0, 0, 1, 1]"),
        (at("kitchen", "90", "groundings", to=["jug"]), 'groundings: an object is needed, not ["jug"]'),
        (at("kitchen", "90", "attributes", to={"jug": 1}), "attribute of jug: text is needed, not 1"),
        (at("kitchen", "purpose", to={"jug": "why"}), 'purpose of jug: an object is needed, not "why"'),
        (at("kitchen", "purpose", to=["jug"]), 'purpose: an object is needed, not ["jug"]'),
        (at("kitchen", "90", "questions", 0, "question", to="\ud800"), "half of a surrogate pair is no text"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    change: Callable[[File], None], message: str, grounded: File, tmp_path: Path
) -> None:
    change(grounded)
    code, said, err = run("import-grounded", save(tmp_path, grounded), "--out", tmp_path / "out")
    assert (code, said) == (2, "")
    assert err.startswith("error: ") and message in err and len(err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["grounded.json"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"kitchen": {', "grounded.json: no valid JSON at line 1"),
        ("[]", "an object with a key per clip is needed"),
        ('{"kitchen": {"90": {}, "90": {}}}', 'the key "90" comes twice'),
        ("{}", "no question comes out of"),
        ('{"kitchen": {"90": {"graph_uid": "g", "questions": [NaN]}}}', "NaN is no number"),
    ],
)
def test_a_file_that_is_none_is_told(text: str, message: str, tmp_path: Path) -> None:
    code, _, err = run("import-grounded", save(tmp_path, text), "--out", tmp_path / "out")
    assert code == 2 and message in err
    assert not (tmp_path / "out").exists()


def test_edges_that_rounding_moved_out_are_moved_back(grounded: File, tmp_path: Path) -> None:
    grounded["kitchen"]["90"]["groundings"]["jug"] = {
        "left": -1e-9,
        "top": 0.2,
        "width": 1 + 2e-9,
        "height": 0.8 + 1e-7,
    }
    rows, _ = read_rows(save(tmp_path, grounded), None, Counter())
    assert rows[1]["evidence"][0]["box"] == [0.0, 0.2, 1.0, 1.0]


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["purpose", "90", "questions", "x"]), JSON, max_size=3))
def test_whatever_json_it_is_the_answer_is_rows_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, clip: Any
) -> None:
    path = save(tmp_path_factory.mktemp("any"), {"kitchen": clip})
    try:
        rows, _ = read_rows(path, None, Counter())
    except BuildError as error:
        assert re.match(r".*grounded\.json", str(error)) and "\n" not in str(error)
    else:
        assert all(row["clip"] == "kitchen" for row in rows)
