"""videoqa/benchmarks/easg/script_file.py and imported.py: the public script's answers file, in and out without loss."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from public_script import script_scores
from typer.testing import CliRunner

import easg_bench
from builder.__main__ import app as builder_app
from videoqa.benchmarks.easg import EASG
from videoqa.benchmarks.easg.published import PAPER_KEY, PAPER_SCALE
from videoqa.benchmarks.easg.script_file import export_lines, read_script
from videoqa.commands import command_line
from videoqa.files import write_json
from videoqa.imported import import_run
from videoqa.reply import Verdict
from videoqa.runs import Run, RunMismatch
from videoqa.scores import Scored
from videoqa.store import line_of

Line = dict[str, Any]


def row(number: int, question: str = "", answer: str = "jug", type: str = "direct", clip: str = "kitchen") -> Line:
    asked = question or f"What did the camera wearer do {number}?"
    return {
        "id": f"{clip}:{number}:{type}",
        "clip": clip,
        "type": type,
        "question": asked,
        "answer": answer,
        "context": "",
    }


def line(of: Line, prediction: str = "a jug", **more: Any) -> Line:
    return {"vid": of["clip"], **{k: of[k] for k in ("type", "question", "answer")}, "prediction": prediction, **more}


def write(path: Path, lines: Any) -> Path:
    path.write_text(lines if isinstance(lines, str) else json.dumps(lines), encoding="utf-8")
    return path


ROWS = [row(1), row(2, type="before", answer="pick jug"), row(3, "Which?", "jar"), row(4, "Which?", "spoon")]


def bring_in(tmp_path: Path, lines: list[Line], rows: list[Line] = ROWS) -> Run:
    import_run(write(tmp_path / "model-a.json", lines), "script", rows, tmp_path / "run", "data", "default", EASG)
    return Run(tmp_path / "run")


def test_answers_become_a_run_and_come_out_again_the_same(tmp_path: Path) -> None:
    lines = [line(ROWS[0]), line(ROWS[1], "It was ☕ \ud800 \u2028"), line(ROWS[2], ""), line(ROWS[3], "x" * 50_000)]
    run = bring_in(tmp_path, lines)
    assert run.config["model"] == "model-a" and run.config["imported"]["file"] == "model-a.json"
    assert run.answers()["kitchen:3:direct"]["prediction"] == ""
    assert export_lines(run, ROWS) == (lines, None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model-a.json", "run"]


def test_the_order_of_the_file_does_not_matter_and_part_of_the_questions_is_enough(tmp_path: Path) -> None:
    run = bring_in(tmp_path, [line(ROWS[3], "b"), line(ROWS[0], "a")])
    exported, left_out = export_lines(run, ROWS)
    assert exported == [line(ROWS[0], "a"), line(ROWS[3], "b")]
    assert left_out == "2 of 4 questions have no answer"


def test_one_question_with_two_answers_is_told_apart_by_the_answer(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", [line(ROWS[3], "for the spoon"), line(ROWS[2], "for the jar")])
    assert [(one.id, one.prediction) for one in read_script(path, ROWS)] == [
        ("kitchen:4:direct", "for the spoon"),
        ("kitchen:3:direct", "for the jar"),
    ]


def test_rows_that_are_the_same_throughout_are_taken_in_order(tmp_path: Path) -> None:
    rows = [row(1, "Which?"), row(2, "Which?")]
    path = write(tmp_path / "a.json", [line(rows[0], "first"), line(rows[1], "second")])
    assert [one.id for one in read_script(path, rows)] == ["kitchen:1:direct", "kitchen:2:direct"]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.text(st.characters(exclude_categories=())), min_size=4, max_size=4), st.randoms())
def test_any_text_survives_the_round_trip(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], rng: random.Random
) -> None:
    lines = [line(of, text) for of, text in zip(ROWS, texts, strict=True)]
    run = bring_in(tmp_path_factory.mktemp("any"), rng.sample(lines, 4))
    assert export_lines(run, ROWS)[0] == lines


def judged(seed: int = 0) -> list[Line]:
    rng = random.Random(seed)
    return [line(of, review=f"Score: {(n := rng.randint(0, 10))}\n\nWell.", scores=n) for of in ROWS]


def test_reviews_and_scores_survive_the_round_trip(tmp_path: Path) -> None:
    lines = judged()
    assert export_lines(bring_in(tmp_path, lines), ROWS) == (lines, None)


def test_imported_scores_are_those_of_the_scripts_own_arithmetic(tmp_path: Path) -> None:
    rows = [row(i, type=kind, clip=f"c{i % 5}") for kind in PAPER_SCALE for i in range(10)]
    rng = random.Random(1)
    lines = [line(of, review="", scores=rng.choice((0, 1, 5, 8, 10))) for of in rows]
    run = bring_in(tmp_path, lines, rows)
    found = json.loads((run.folder / "scores.json").read_text())
    for kind, scale in PAPER_SCALE.items():
        mine = [one["scores"] for one in lines if one["type"] == kind]
        assert found["types"][kind]["value"] == pytest.approx(100 * sum(mine) / len(mine) / scale)
    theirs = script_scores(
        [Scored(r["id"], r["clip"], r["type"], s["scores"]) for r, s in zip(rows, lines, strict=True)]
    )
    assert found["avg"]["value"] == pytest.approx(100 * sum(t.relative for t in theirs.values()) / 5)
    assert found["judge"]["key"] == PAPER_KEY


def test_a_score_of_0_is_the_scripts_unreadable_reply(tmp_path: Path) -> None:
    run = bring_in(tmp_path, [line(ROWS[0], review="I like it: 8/10", scores=0)])
    verdict = run.verdicts(PAPER_KEY, "answer")["kitchen:1:direct"]
    assert (verdict.score, verdict.status, verdict.raw) == (0.0, "unreadable", "I like it: 8/10")


def test_scores_by_another_rubric_are_not_written_into_the_scripts_form(tmp_path: Path) -> None:
    run = bring_in(tmp_path, [line(of) for of in ROWS])
    for of in ROWS:
        verdict = Verdict(6.37, "ok", mass=0.9)
        run.verdicts_file.append({"id": of["id"], "of": "answer", "judge": "k", **line_of(verdict)})
    write_json(run.folder / "scores.json", {"judge": {"key": "k", "rubric": "easg-bench-12", "mode": "dist"}})
    exported, left_out = export_lines(run, ROWS)
    assert exported == [line(of) for of in ROWS]
    assert left_out == "no scores: they are not by the paper's rubric and mode, and the script's scale fits no others"


def test_scores_that_not_all_answers_have_are_left_out(tmp_path: Path) -> None:
    run = bring_in(tmp_path, [line(of) for of in ROWS])
    run.verdicts_file.append({"id": ROWS[0]["id"], "of": "answer", "judge": "k", **line_of(Verdict(7.0, "ok"))})
    write_json(run.folder / "scores.json", {"judge": {"key": "k", "rubric": "paper-12", "mode": "paper"}})
    assert export_lines(run, ROWS)[1] == "no scores: 3 answers have none yet"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("[", "a.json: no valid JSON"),
        ("\xff", "a.json: no valid JSON"),
        ("[" * 100_000, "a.json: no valid JSON"),
        ({"vid": "kitchen"}, "a list of objects with vid, type, question, answer, prediction is expected"),
        ([1], "a list of objects with vid"),
        ([], "a.json: holds no answers"),
        ([{"id": 1, "text": "x"}], "row 1: vid, type, question, answer, prediction missing; it has 'id', 'text'"),
        ([line(ROWS[0]) | {"prediction": None}], "row 1: prediction is null; a text is expected"),
        ([line(ROWS[0]), line(ROWS[0])], "row 2: answers a question a second time: 'What did the camera wearer do 1?'"),
        ([line(ROWS[0]) | {"vid": "attic"}], "row 1: the data set has no questions of clip 'attic'"),
        (
            [line(ROWS[0]) | {"question": "What did the wearer do 1"}],
            "row 1: clip 'kitchen' has no 'direct' question 'What did the wearer do 1'; the nearest: 'What did the cam",
        ),
        ([line(ROWS[0]) | {"question": "\ud800"}], "has no 'direct' question '\\ud800'"),
        ([line(ROWS[0]) | {"type": "when"}], "clip 'kitchen' has no 'when' question"),
        ([line(ROWS[0]) | {"answer": "jar"}], "row 1: the ground truth is 'jar'; the data set's is 'jug'"),
        ([line(ROWS[0], review="7"), line(ROWS[1])], "row 1: scores is null; a number is expected, as in other rows"),
        ([line(ROWS[0], scores=7)], "row 1: review is null; a text is expected"),
        ([line(ROWS[0], review="", scores=True)], "row 1: scores is true; a number is expected"),
        ('[{"scores": NaN}]', "row 1: vid, type, question, answer, prediction missing"),
        ([line(ROWS[0], review="", scores=10**400)], "row 1: scores is 1000000"),
    ],
)
def test_bad_files_are_told_and_leave_no_run(lines: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(lines if isinstance(lines, str) else json.dumps(lines), encoding="latin-1")
    with pytest.raises(ValueError, match=r"a\.json") as error:
        import_run(path, "script", ROWS, tmp_path / "run", "data", "default", EASG)
    assert message in str(error.value)
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_of_many_bad_rows_the_first_are_told(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", [{}] * 300)
    with pytest.raises(ValueError, match="and 295 more rows") as error:
        read_script(path, ROWS)
    assert len(str(error.value).splitlines()) == 7


def test_a_folder_that_is_taken_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.doc").write_text("x")
    with pytest.raises(RunMismatch, match="is there already"):
        bring_in(tmp_path, [line(ROWS[0])])
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["thesis.doc"]


def command(*arguments: str | Path) -> str:
    result = CliRunner().invoke(command_line(), [*map(str, arguments)])
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.stdout


def test_the_command_line_imports_reports_and_exports(
    raw: dict[str, Any], save: Callable[[dict[str, Any]], Path], tmp_path: Path
) -> None:
    data = tmp_path / "easg-bench"
    built = CliRunner().invoke(builder_app, ["build", "--source", str(save(raw)), "--out", str(data)])
    assert built.exit_code == 0, built.output
    rows = list(easg_bench.load(data))
    lines = [line(of, review="Score: 7\n\nGood.", scores=7) for of in rows]
    path, run, again = write(tmp_path / "theirs.json", lines), tmp_path / "run", tmp_path / "again.json"
    said = command("import-answers", path, "--data", data, "--out", run)
    assert said == f"{run}: 17 of 17 questions answered, 17 judged\n"
    assert "99.72" in command("report", run)  # purpose: 7 of 10 over the paper's 4689 / 668
    command("export-answers", run, "--out", again)
    assert json.loads(again.read_text()) == lines
    unknown = CliRunner().invoke(command_line(), ["import-answers", str(path), "--data", str(data), "--from", "x"])
    assert "--from x: allowed are plain, script" in str(unknown.exception)


@pytest.mark.real
def test_all_real_questions_survive_the_round_trip(real_build: Path, tmp_path: Path) -> None:
    rows = list(easg_bench.load(real_build))
    rng = random.Random(0)
    lines = [line(of, f"answer {i}", review="", scores=rng.randint(0, 10)) for i, of in enumerate(rows)]
    run = bring_in(tmp_path, rng.sample(lines, len(lines)), rows)
    assert export_lines(run, rows) == (lines, None)
    relative = json.loads((run.folder / "scores.json").read_text())["types"]
    theirs = script_scores(
        [Scored(r["id"], r["clip"], r["type"], s["scores"]) for r, s in zip(rows, lines, strict=True)]
    )
    for kind, score in theirs.items():
        assert relative[kind]["value"] == pytest.approx(100 * score.relative)
