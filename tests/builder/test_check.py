"""builder/easg/check.py: each kind of problem in a row made for it, and the counts of the paper's own set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from builder.__main__ import app
from builder.easg.check import KINDS, Problem, check, of_rows, same_question, second_fits, unambiguous
from builder.errors import BuildError
from easg_bench import FEATURES, load

Row = dict[str, Any]
Save = Callable[[dict[str, Any]], Path]


def row(**changes: Any) -> Row:
    shown = {"graph": "g", "frame": 1, "seconds": 0.0, "object": "jug", "box": [0.1, 0.1, 0.5, 0.5], "attribute": None}
    made: Row = {
        "id": "kitchen:4:direct",
        "clip": "kitchen",
        "type": "direct",
        "question": "What did the camera wearer put into the cabinet?",
        "answer": "jug",
        "choices": None,
        "gold": None,
        "evidence": [shown],
    }
    return made | changes


def kinds(*rows: Row, regions: bool = False) -> list[str]:
    return [problem.kind for problem in of_rows(rows, regions)]


def boxed(*box: float, name: str = "jug") -> list[Row]:
    return [row()["evidence"][0] | {"box": list(box), "object": name}]


def test_a_sound_row_has_no_problem() -> None:
    assert kinds(row()) == []


def test_an_id_that_comes_twice_is_told_once() -> None:
    assert kinds(row(), row(), row(), row(id="other")) == ["duplicate id"]


@pytest.mark.parametrize("field", ["id", "clip", "type", "question", "answer"])
@pytest.mark.parametrize("value", ["", " \n", None])
def test_an_empty_field_is_an_error(field: str, value: str | None) -> None:
    assert "empty field" in kinds(row(**{field: value}))


def test_choices_with_a_gold_are_an_answer() -> None:
    assert "empty field" not in kinds(row(answer=None, choices=["a", "b"], gold=1))
    assert "empty field" in kinds(row(answer=None, choices=["a", "b"]))


@pytest.mark.parametrize(
    "box", [(-0.1, 0, 0.5, 0.5), (0, 0, 1.01, 1), (0.5, 0, 0.5, 1), (0, 0.6, 1, 0.5), (0, 0, float("nan"), 1)]
)
def test_a_box_outside_the_frame_or_without_area_is_an_error(box: tuple[float, ...]) -> None:
    assert kinds(row(evidence=boxed(*box))) == ["box outside the frame"]


@pytest.mark.parametrize(
    "text",
    ["the <b>jug</b>", "<object>", "**jug**", "```", "{verb} the jug", "salt &amp; oil", "weighing_scale", "bowl:1"],
)
def test_markup_that_is_left_is_an_error(text: str) -> None:
    assert "markup left" in kinds(row(question=f"Where is {text}?"))
    assert "markup left" in kinds(row(answer=text))


@pytest.mark.parametrize(
    "text", ["at 3:15", "2 < 3", "a & b", "Who's there?", "(near) [it]", "5 * 4", "🙂 {}", "x <- y"]
)
def test_ordinary_signs_are_no_markup(text: str) -> None:
    assert "markup left" not in kinds(row(question=f"What, {text}, is it?"))


def test_a_mark_around_an_object_with_a_box_is_the_papers_own() -> None:
    assert kinds(row(question="Where is the <jug>?", answer="on table, the jug")) == []
    assert kinds(row(question="Where is the <pan>?")) == ["markup left"]


def test_regions_are_markup_but_where_each_has_its_evidence() -> None:
    asked = row(question="What is put into <region 1>?", answer="pan")
    assert kinds(asked, regions=True) == []
    assert "markup left" in kinds(asked)
    assert kinds(asked | {"question": "What is put into <region 2>?"}, regions=True) == ["markup left"]


def test_an_answer_in_the_question_is_told_and_the_camera_wearer_is_no_camera() -> None:
    assert kinds(row(question="Where did the camera wearer put the jug?")) == ["question contains its answer"]
    assert kinds(row(answer="camera", evidence=boxed(0, 0, 1, 1, name="camera"))) == []
    assert kinds(row(question="Where are the jugs?")) == []


@pytest.mark.parametrize(
    ("answer", "name", "grounded"),
    [
        ("jug", "jug", True),
        ("from tray", "trey", True),
        ("tray", "trey", True),
        ("another bowl", "bowl:1", True),
        ("pan", "jug", False),
        ("panel", "pan", False),
    ],
)
def test_an_answer_is_grounded_by_a_box_of_what_it_names(answer: str, name: str, grounded: bool) -> None:
    found = kinds(row(answer=answer, evidence=boxed(0, 0, 1, 1, name=name)))
    assert ("answer not grounded" in found) is not grounded


def test_a_purpose_is_grounded_by_any_box() -> None:
    assert kinds(row(type="purpose", answer="Pouring.")) == []
    assert kinds(row(type="purpose", answer="Pouring.", evidence=[])) == ["answer not grounded"]


def test_one_question_with_two_answers_is_a_problem_of_both_rows() -> None:
    rows = [row(), row(id="b", answer="pan"), row(id="c", clip="garden", answer="pan"), row(id="d", question="?")]
    assert [problem.id for problem in same_question(rows)] == ["kitchen:4:direct", "b"]
    assert list(same_question([row(), row(id="b")])) == []


def graph(index: int, verb: str | None, thing: str | None = None, *relations: str) -> Row:
    pairs = [{"relation": text.split()[0], "tail": text.split()[1]} for text in relations]
    return {"clip": "kitchen", "index": index, "verb": verb, "object": thing, "relations": pairs}


GRAPHS = [
    graph(1, "put", "jug"),
    graph(2, "put", "pan", "on table"),
    graph(3, None),
    graph(4, "put", "jug", "on table"),
    graph(5, "put", "jug", "on table"),
    graph(6, "cut", "dough", "with knife"),
]


def fits(*rows: Row) -> list[Problem]:
    return list(second_fits(rows, GRAPHS))


def test_a_second_object_of_the_same_verb_and_relations_fits_a_direct_question() -> None:
    (problem,) = fits(row())
    assert (problem.kind, problem.detail.split(" - ")[1]) == ("a second object fits", "jug, or pan")
    assert fits(row(id="kitchen:6:direct", answer="dough")) == []


def test_other_relations_of_the_same_verb_and_object_fit_an_indirect_question() -> None:
    (problem,) = fits(row(id="kitchen:4:indirect:1", type="indirect", answer="on table"))
    assert (problem.kind, problem.detail.split(" - ")[1]) == ("a second relation fits", "on table, or no relation")
    assert fits(row(id="kitchen:2:indirect:1", type="indirect", answer="on table")) == []


def test_an_answer_that_repeats_the_asked_action_is_told() -> None:
    (problem,) = fits(row(id="kitchen:4:after", type="after", answer="put jug"))
    assert problem.kind == "answer is the asked action"
    assert fits(row(id="kitchen:4:before", type="before", answer="put pan")) == []


def test_rows_of_no_graph_are_passed_over() -> None:
    assert fits(row(id="kitchen:purpose:jug", type="purpose"), row(id="kitchen:f12:direct"), row(id="x")) == []
    assert fits(row(id="kitchen:99:direct"), row(clip="garden", id="garden:4:direct")) == []


def test_unambiguous_are_the_rows_without_these_problems() -> None:
    good = row(id="kitchen:6:direct", answer="dough", question="What was cut with the knife?")
    twice = [row(id="kitchen:purpose:a", question="Why?"), row(id="kitchen:purpose:b", question="Why?", answer="x")]
    assert unambiguous([row(), good, *twice], GRAPHS) == [good]


def run(*arguments: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def small(raw: dict[str, Any], save: Save, tmp_path: Path) -> Path:
    out = tmp_path / "easg-bench"
    assert run("build", "--source", save(raw), "--out", out)[0] == 0
    return out


def rewrite(folder: Path, config: str, change: Callable[[list[Row]], None]) -> None:
    (path,) = folder.glob(f"data/{config}-*")
    rows = pq.read_table(path).to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=FEATURES.arrow_schema), path)


def test_the_command_line_lists_problems_and_counts_each_kind(small: Path) -> None:
    code, said, _ = run("check", small)
    assert code == 0
    assert "default 17, purpose 3, direct 4" in said
    for kind, severity in KINDS.items():
        assert f"  {severity}: {kind}" in said
    assert "      0  error: duplicate id\n" in said

    def double(rows: list[Row]) -> None:
        for of_row in rows:
            of_row["id"] = rows[0]["id"]
            of_row["question"] += " <b>"

    rewrite(small, "direct", double)
    code, said, _ = run("check", small)
    assert code == 1
    assert said.startswith("error: duplicate id: kitchen:2:direct: 4 rows have this id\nerror: markup left: ")
    assert "error: markup left: ... 1 more\n" in said and "      4  error: markup left\n" in said
    assert "... " not in run("check", small, "--all")[1]


def test_what_is_no_dataset_repo_is_told(small: Path, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="nothing: is no dataset repo"):
        check(tmp_path / "nothing")
    (path,) = small.glob("data/direct-*")
    pq.write_table(pq.read_table(path).drop_columns(["gold"]), path)
    with pytest.raises(BuildError, match="gold is missing"):
        check(small)
    path.write_bytes(b"PAR1")
    with pytest.raises(BuildError, match="config default: does not load"):
        check(small)
    (small / "README.md").write_text("---\nconfigs: {\n---\n")
    with pytest.raises(BuildError, match="its head cannot be read"):
        check(small)
    (small / "README.md").write_text("---\nconfigs:\n- config_name: train\n---\n")
    with pytest.raises(BuildError, match="config 'train' is none of default"):
        check(small)
    (small / "README.md").write_text("---\nlicense: other\n---\n")
    with pytest.raises(BuildError, match="has no config default"):
        check(small)


@pytest.mark.real
def test_the_real_build_has_no_error_and_the_papers_known_ambiguities(real_build: Path) -> None:
    report = check(real_build)
    assert not report.errors and report.unchecked is None
    found = Counter(problem.kind for problem in report.problems)
    assert found["answer is the asked action"] == 113
    assert found["a second object fits"] == 20
    assert found["a second relation fits"] == 153
    assert found["same question, different answers"] == 8, "four questions of two rows"
    assert len({p.detail for p in report.problems if p.kind == "same question, different answers"}) == 4
    clear = load(real_build, "unambiguous")["id"][:]
    assert report.rows["unambiguous"] == len(clear) == 1521
    named = {p.id for p in report.problems if p.kind not in ("answer not grounded", "question contains its answer")}
    assert not named & set(clear) and len(named) + len(clear) == 1807
