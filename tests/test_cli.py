"""videoqa/commands: run, answer, judge and report with scripted engines, and what is said when something is wrong."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from scripted import Scripted

from videoqa import commands
from videoqa.benchmark import track
from videoqa.benchmarks.easg.published import PAPER_TABLE2, TYPES
from videoqa.engines import open_engine
from videoqa.runs import Run, load_rows

ROOT = Path(__file__).resolve().parents[1]
ROWS = [
    {
        "id": f"clip-{i // 5}:{i}:{TYPES[i % 5]}",
        "clip": f"clip-{i // 5}",
        "video": "video",
        "type": TYPES[i % 5],
        "question": f"What was lifted in step {i}?",
        "answer": f"jug {i}",
        "context": f"(1.00s) #C C works in clip {i // 5}.",
    }
    for i in range(20)
]


class Place:
    """Where the command line runs: scripted engines by name, rows, a store and run folders of its own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._monkeypatch, self._capsys = folder, monkeypatch, capsys
        self.rows: list[dict[str, Any]] = ROWS
        self.opened: list[str] = []
        self.model = Scripted(lambda asked, seed: "a cup", name="model")
        self.judge = Scripted(
            lambda asked, seed: "7\nIt is near.",
            chances=lambda asked: {"8": 0.5, "6": 0.25, "2": 0.25} if "a cup" in asked else {"9": 0.9},
            can_force=True,
            name="judge",
        )
        self.other = self.judge
        monkeypatch.setattr("videoqa.engines.open_engine", self._open)
        monkeypatch.setattr("videoqa.benchmarks.easg.data.load", lambda data, config: list(self.rows))

    def _open(self, spec: str, **how: Any) -> Scripted:
        self.opened.append(spec)
        return {"model": self.model, "judge": self.judge, "other": self.other}[spec]

    def __call__(self, command: str, *options: str) -> tuple[int, str, str]:
        """Exit code, output and errors of one command."""
        rates = {"run": True, "judge": True}.get(command, False)
        store = ("--store", str(self.folder / "store")) if rates else ()
        self._monkeypatch.setattr(sys, "argv", ["easg-bench", command, *options, *store])
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            commands.main()
        said = self._capsys.readouterr()
        return int(end.value.code or 0), said.out, re.sub(r"[^\n]*\r[^\n]*\n?", "", said.err)

    def run(self, *options: str, out: str = "run") -> tuple[int, str, str]:
        return self("run", "--model", "model", "--judge", "judge", "--out", str(self.folder / out), *options)

    @property
    def opened_run(self) -> Run:
        return Run(self.folder / "run")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    return Place(tmp_path, monkeypatch, capsys)


def told(place: Place, code: int, error: str, text: str) -> None:
    """The command ended with a wrong argument or file, said in one line."""
    assert code == 2 and re.search(text, error), error
    assert error.startswith("easg-bench: ") and "Traceback" not in error and error.count("\n") == 1, error


# -- the path ---------------------------------------------------------------------------------------------------------


def test_a_run_ends_in_a_table_beside_the_papers_rows(place: Place) -> None:
    code, out, error = place.run()
    assert code == 0, error
    assert all(name in out for name in (*TYPES, "Avg.", "model (narrations)", *(row.model for row in PAPER_TABLE2)))
    line = next(line for line in out.splitlines() if "model (narrations)" in line)
    assert re.findall(r"\d+\.\d\d", line)[:6] == ["66.67"] * 6  # (8 x 0.5 + 6 x 0.25 + 2 x 0.25) / 9
    scored = next(line for line in out.splitlines() if re.match(r"\W*scored\W", line))
    assert re.findall(r"\d+", scored) == [*"44444", "20", "20"]
    assert "mass on the allowed scores: 1.000" in out and str(place.folder / "run") in out
    found = json.loads((place.folder / "run" / "scores.json").read_text(encoding="ascii"))
    assert found["avg"]["n"] == 20 and found["judge"]["mode"] == "dist" and found["model"] == "model"
    assert len(place.model.asked) == 20 and len(place.judge.asked) == 40  # the answers and the ground truths


def test_the_same_command_again_asks_nothing_and_says_the_same(place: Place) -> None:
    first = place.run()
    asked = len(place.model.asked), len(place.judge.asked)
    assert place.run()[:2] == first[:2]
    assert (len(place.model.asked), len(place.judge.asked)) == asked


def test_answers_that_changed_are_rated_anew(place: Place) -> None:
    place.run()
    path = place.opened_run.answers_file.path
    lines = [json.loads(line) | {"prediction": ""} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    code, _, error = place("judge", str(place.folder / "run"), "--judge", "judge")
    assert code == 3 and "WARNING: 20 of 20 answers are empty" in error
    found = json.loads((place.folder / "run" / "scores.json").read_text(encoding="ascii"))
    assert found["avg"]["empty"] == 20 and found["avg"]["mean"] == 1


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [
        ("answers.jsonl", {"id": ["a"], "prediction": "x", "error": None}, r"line 21: id cannot be \['a'\]"),
        ("answers.jsonl", {"id": "a", "prediction": 5, "error": None}, "line 21: prediction cannot be 5"),
        (
            "verdicts.jsonl",
            {"id": "a", "of": "answer", "judge": "j", "score": "7", "status": "ok"},
            "line 41: score cannot be '7'",
        ),
    ],
)
def test_a_line_of_a_run_that_cannot_be_is_named(place: Place, name: str, line: dict[str, Any], said: str) -> None:
    place.run()
    with (place.folder / "run" / name).open("a") as file:
        file.write(json.dumps(line) + "\n")
    code, _, error = place("judge", str(place.folder / "run"), "--judge", "judge")
    told(place, code, error, rf"{name}, {said}")


def test_another_run_takes_known_verdicts_from_the_store(place: Place) -> None:
    first = place.run()
    assert place.run("--prompt", "blind", out="second")[0] == first[0] == 0
    assert len(place.judge.asked) == 40 and len(place.model.asked) == 40


def test_a_limit_is_even_over_the_types(place: Place) -> None:
    assert place.run("--limit", "10")[0] == 0
    assert Counter(identifier.rpartition(":")[2] for identifier in place.opened_run.answers()) == dict.fromkeys(
        TYPES, 2
    )
    assert place.run("--limit", "0")[0] == 2


def test_a_row_that_failed_is_told_and_alone_asked_again(place: Place) -> None:
    place.model.script = lambda asked, seed: None if "step 7?" in asked else "a cup"
    code, _, error = place.run()
    assert code == 3
    assert f"no answer: {ROWS[7]['id']}: the prompt does not fit" in error
    assert (
        "1 of 20 rows have no answer" in error and "1 rows failed; the same command asks only for them again" in error
    )
    place.model.script = lambda asked, seed: "a cup"
    place.model.asked.clear()
    assert place.run()[0] == 0
    assert len(place.model.asked) == 1 and len(place.judge.asked) == 40


def test_a_failed_verdict_is_told_left_out_of_the_mean_and_asked_again(place: Place) -> None:  # J17
    place.model.script = lambda asked, seed: "a cup" if "step 7?" not in asked else "a cup, bad"
    good = place.judge.chances
    assert good is not None
    place.judge.chances = lambda asked: None if "a cup, bad" in asked else good(asked)
    code, out, error = place.run()
    assert code == 3 and f"no verdict: {ROWS[7]['id']}: the prompt does not fit" in error
    found = json.loads((place.folder / "run" / "scores.json").read_text())
    assert (found["avg"]["n"], found["avg"]["n_scored"], found["avg"]["errors"]) == (20, 19, 1)
    assert "66.67" in out
    place.judge.chances = good
    place.judge.asked.clear()
    assert place.run()[0] == 0 and len(place.judge.asked) == 1
    assert json.loads((place.folder / "run" / "scores.json").read_text())["avg"]["n_scored"] == 20


@pytest.mark.parametrize(
    ("unreadable", "warned", "code"), [(0, False, 0), (1, False, 0), (2, True, 0), (10, True, 0), (11, True, 3)]
)
def test_replies_that_cannot_be_read_are_told_and_many_of_them_fail_the_run(
    place: Place, unreadable: int, warned: bool, code: int
) -> None:
    odd = [row["question"] for row in ROWS[:unreadable]]
    place.judge.script = lambda asked, seed: (
        "Well, well." if "a cup" in str(asked) and any(q in str(asked) for q in odd) else "Score: 7"
    )
    got, _, error = place.run("--mode", "score")
    assert (got, "could not be read" in error) == (code, warned)
    if warned:
        assert f"WARNING: {unreadable} of 20 replies" in error and error.count("Well, well.'") == min(3, unreadable)
    place.judge.script = lambda asked, seed: "Score: 7"
    place.judge.asked.clear()
    assert place("judge", str(place.folder / "run"), "--judge", "judge", "--mode", "score", "--again")[0] == 0
    assert len(place.judge.asked) == unreadable


def test_answers_that_were_cut_are_told_and_counted(place: Place) -> None:
    place.run()
    path = place.opened_run.answers_file.path
    lines = [json.loads(line) | {"finished": False} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    code, _, error = place("judge", str(place.folder / "run"), "--judge", "judge")
    assert code == 0 and "WARNING: 20 of 20 answers were cut at the longest length" in error
    assert json.loads((place.folder / "run" / "scores.json").read_text())["cut"] == 20


@pytest.mark.parametrize("case", ["every call fails", "every answer is empty"])
def test_a_table_without_scores_is_a_table(place: Place, case: str) -> None:
    if case == "every call fails":
        place.judge.chances = lambda asked: None
    else:
        place.model.script = lambda asked, seed: "<think>hm</think>  "
    code, out, error = place.run()
    assert (code, "Traceback" in error) == (3, False)
    assert "model (narrations)" in out
    found = json.loads((place.folder / "run" / "scores.json").read_text())
    if case == "every call fails":
        assert (found["avg"]["errors"], found["avg"]["mean"], found["judge"]["mass"]) == (20, None, None)
    else:
        assert (found["avg"]["empty"], found["avg"]["mean"]) == (20, 1.0)


def test_answer_judge_and_report_are_the_parts_of_run(place: Place) -> None:
    whole = place.run()
    out = str(place.folder / "parts")
    assert place("answer", "--model", "model", "--out", out)[0] == 0
    assert place("judge", out, "--judge", "judge")[0] == 0
    code, table, _ = place("report", out, str(place.folder / "run"))
    assert code == 0 and table.count("model (narrations)") == 2
    same = [json.loads((place.folder / n / "scores.json").read_text())["types"] for n in ("run", "parts")]
    assert same[0] == same[1] and "66.67" in whole[1]


def test_a_second_judges_result_stands_beside_the_first(place: Place) -> None:
    place.run()
    code, out, _ = place("judge", str(place.folder / "run"), "--judge", "judge", "--mode", "score")
    assert code == 0 and out.count("model (narrations)") == 3  # a table of each judge, and their panel
    assert len(list((place.folder / "run").glob("scores*.json"))) == 2
    assert "judge engine" not in out and "dist greedy" in out and "score greedy" in out


def test_an_unfinished_run_is_judged_as_far_as_it_is_answered_and_says_so(place: Place) -> None:
    place("answer", "--model", "model", "--out", str(place.folder / "run"))
    lines = place.opened_run.answers_file.path
    lines.write_bytes(b"".join(lines.read_bytes().splitlines(True)[:12]))
    code, _, error = place("judge", str(place.folder / "run"), "--judge", "judge")
    assert code == 3 and "8 of 20 rows have no answer and are not rated" in error
    assert json.loads((place.folder / "run" / "scores.json").read_text())["avg"]["n"] == 12


def test_the_lowest_scores_are_explained_once(place: Place) -> None:
    place.judge.chances = lambda asked: {str(int(re.findall(r"jug (\d+)", asked)[0]) % 9 + 1): 1.0}
    for _ in range(2):
        assert place.run("--explain", "3")[0] == 0
    key = json.loads((place.folder / "run" / "scores.json").read_text())["judge"]["key"]
    explained = {k: v for k, v in place.opened_run.verdicts(key, "answer").items() if v.explanation}
    assert sorted(v.score or 0 for v in explained.values()) == [1, 1, 1]
    assert {v.explanation for v in explained.values()} == {"7\nIt is near."}
    assert sum(call["n"] for call in place.judge.calls if call["start"] == "Score: 1\n") == 3


def test_a_rubric_of_a_file_is_another_judge(place: Place) -> None:
    path = place.folder / "mine.json"
    layout = "[C]\\n{context}\\n{question}\\n{answer}\\n{prediction}\\n{rule}"
    path.write_text(json.dumps({"system": "Rate.", "rule": "Score?", "layout": layout, "sampling": {"seed": 7}}))
    assert place.run("--rubric", str(path), "--mode", "paper")[0] == 0
    assert {(c["seed"], c["temperature"], c["top_p"]) for c in place.judge.calls if c["n"]} == {(7, 0.6, 0.9)}


def test_one_model_that_answers_and_judges_is_opened_once(place: Place) -> None:
    place.model.chances, place.model.can_choose = place.judge.chances, True
    code, _, error = place("run", "--model", "model", "--judge", "model", "--out", str(place.folder / "run"))
    assert (code, place.opened) == (0, ["model"]), error


# -- what is wrong ----------------------------------------------------------------------------------------------------


def test_a_run_folder_of_another_run_is_left_alone(place: Place) -> None:
    place.run()
    before = {p.name: p.read_bytes() for p in (place.folder / "run").iterdir()}
    code, _, error = place.run("--prompt", "blind")
    told(
        place, code, error, "run is another run \\(prompt is 'narrations', not 'blind'\\): give another --out or delete"
    )
    place.model.settings = {"engine": "scripted", "dtype": "bfloat16"}
    code, _, error = place.run()
    told(place, code, error, "model_settings is .* not .*bfloat16")
    place.model.settings = {"engine": "scripted"}
    place.rows = [{**ROWS[0], "question": "What was dropped?"}, *ROWS[1:]]
    code, _, error = place.run()
    told(place, code, error, "revision is '.{12}', not '.{12}'")
    code, _, error = place("judge", str(place.folder / "run"), "--judge", "judge")
    told(
        place, code, error, "was answered on revision .{12} of .*, which is now .{12}: run it again with another --out"
    )
    assert {p.name: p.read_bytes() for p in (place.folder / "run").iterdir()} == before


def test_a_folder_that_holds_something_else_is_left_alone(place: Place) -> None:
    (place.folder / "run").mkdir()
    (place.folder / "run" / "thesis.tex").write_text("x")
    code, _, error = place.run()
    told(place, code, error, "holds something else than a run: give another --out")
    for command in ("judge", "report"):
        options = ("--judge", "judge") if command == "judge" else ()
        code, _, error = place(command, str(place.folder / "run"), *options)
        told(place, code, error, str(place.folder / "run"))
    assert [p.name for p in (place.folder / "run").iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--mode", "score", "--reading", "script"), "use it with mode paper"),
        (("--rubric", "no/such.json"), "no rubric file no/such.json"),
        (("--mode", "score", "--explain", "2"), "judge cannot go on behind a score line: explanations need mode paper"),
        (("--mode", "dist"), "judge gives no probabilities: mode dist needs them, use mode score"),
    ],
)
def test_a_judge_that_cannot_be_is_said_before_it_rates(place: Place, options: tuple[str, ...], text: str) -> None:
    place.judge.can_choose = place.judge.can_force = False
    code, _, error = place.run(*options)
    told(place, code, error, text)
    assert place.judge.asked == []


def test_an_engine_without_probabilities_is_asked_for_a_score_line(place: Place) -> None:
    place.judge.can_choose = place.judge.can_force = False
    code, out, _ = place.run()
    assert code == 0 and "score greedy" in out
    assert {c["stop"] for c in place.judge.calls if c["n"]} == {("\n",)}


def test_a_model_that_cannot_be_opened_leaves_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("videoqa.engines.open_engine", open_engine)
    missing = str(place.folder / "no" / "model")
    for spec, text in ((missing, "no model folder at .*no/model"), ("server:x", "must be given as server:NAME@http")):
        code, _, error = place("run", "--model", spec, "--judge", spec, "--out", str(place.folder / "run"))
        told(place, code, error, text)
    assert not (place.folder / "run").exists()


@pytest.mark.parametrize("name", ["answers.jsonl", "verdicts.jsonl", "scores.json"])
def test_a_damaged_file_of_a_run_is_named(place: Place, name: str) -> None:
    place.run()
    path = place.folder / "run" / name
    path.write_text('{"id": 3}\n{"x"\n')
    code, _, error = place.run()
    assert code == 2 and name in error and "Traceback" not in error, error


def test_a_full_disk_is_one_line(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, target: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    code, _, error = place.run()
    told(place, code, error, r"No space left on device: '.*run/config\.json'")
    assert list((place.folder / "run").iterdir()) == []


@pytest.mark.parametrize("options", [(), ("nothing",), ("run", "--prompt", "loud"), ("run", "--mode", "dist")])
def test_a_wrong_use_has_exit_code_2(place: Place, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]) -> None:
    monkeypatch.setattr(sys, "argv", ["easg-bench", *options])
    with pytest.raises(SystemExit) as end:
        commands.main()
    assert end.value.code == 2


# -- as a process -----------------------------------------------------------------------------------------------------

CHILD = r"""
import sys
from scripted import Scripted
from videoqa import commands, engines
model = Scripted(lambda asked, seed: "a cup \u00e9", name="Mod\u00e8le \u505a\u996d")
judge = Scripted(lambda asked, seed: "7", chances=lambda asked: {"7": 1.0}, name="judge")
engines.open_engine = lambda spec, **how: {"model": model, "judge": judge}[spec]
commands.main()
"""


def test_a_dataset_repo_is_run_in_a_locale_without_letters(tmp_path: Path, demo_data: Path) -> None:  # U01
    command = ["run", "--data", str(demo_data), "--model", "model", "--judge", "judge", "--limit", "5"]
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *command, "--out", str(tmp_path / "run"), "--store", str(tmp_path / "store")],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
            **{"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        },
        capture_output=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert b"Avg." in done.stdout and b"Mod\\xe8le" in done.stdout
    assert json.loads((tmp_path / "run" / "config.json").read_text())["model"] == "Modèle 做饭"
    assert {line["prediction"] for line in Run(tmp_path / "run").answers().values()} == {"a cup é"}
    assert len((tmp_path / "run" / "answers.jsonl").read_text("ascii").splitlines()) == 5


@pytest.mark.parametrize(
    ("change", "said"),
    [({"id": ROWS[0]["id"]}, "comes more than once"), ({"type": "why"}, "type 'why'.* is not one of: purpose")],
)
def test_rows_that_could_not_be_scored_are_refused_before_a_model_is_asked(
    change: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("videoqa.benchmarks.easg.data.load", lambda data, config: [*ROWS[:4], {**ROWS[4], **change}])
    with pytest.raises(ValueError, match=f"some/repo, config default: .*{said}"):
        load_rows(track(), "some/repo", "default")


def test_two_judges_are_a_panel_with_their_mean_and_agreement(place: Place) -> None:
    place.other = Scripted(lambda *_: "7", chances=lambda asked: {str(2 + len(asked) % 7): 0.9}, name="other")
    code, out, error = place.run("--judge", "other")
    assert code == 0, error
    assert len(list((place.folder / "run").glob("scores*.json"))) == 2
    assert "Panel of 2 judges" in out and "mean of the judges" in out
    assert re.search(r"judge and other: Spearman \S+", out) and "of 20 of 20 answers" in out
    code, out, _ = place("report", str(place.folder / "run"), "--format", "markdown")
    assert code == 0 and "| Panel of judges |" in out and "Spearman" in out
    told(place, *place.run("--judge", "judge")[::2], "--judge judge: is given more than once")


def test_a_panel_says_where_a_judge_failed_a_row(place: Place) -> None:
    place.other = Scripted(
        lambda *_: None, chances=lambda asked: None if "jug 3\n" in asked else {"7": 0.9}, name="other"
    )
    code, out, error = place.run("--judge", "other")
    assert code == 3 and "rows failed" in error
    assert re.search(r"left out for all: other gave no score to \d", out)


def test_a_tracker_that_is_missing_is_one_line_before_a_model_is_loaded(place: Place) -> None:
    told(place, *place.run("--log", "mlflow:me")[::2], "--log mlflow:me: TRACKER:PROJECT .* trackio, wandb")
    told(place, *place.run("--log", "trackio")[::2], "--log trackio: TRACKER:PROJECT")
    assert not place.opened


def test_scores_are_logged_by_a_flag(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    import types

    calls: list[Any] = []
    run = types.SimpleNamespace(log=calls.append, finish=lambda: calls.append("finish"))
    tracker = types.ModuleType("trackio")
    tracker.__spec__ = types.SimpleNamespace()  # type: ignore[assignment]

    def init(**how: Any) -> Any:
        calls.append(how)
        return run

    tracker.init = init  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "trackio", tracker)
    assert place.run("--log", "trackio:mine")[0] == 0
    begun, figures, end = calls
    assert (begun["project"], begun["name"], end) == ("mine", "model (narrations)", "finish")
    avg = json.loads((place.folder / "run" / "scores.json").read_text())["avg"]
    assert figures["easg_score"] == avg["value"] and figures["easg_failed"] == 0


def test_one_judge_of_a_yaml_file_is_not_its_letters(place: Place) -> None:
    file = place.folder / "run.yaml"
    file.write_text("judge: judge\nmodel: model\n")
    assert place("run", "--config-file", str(file), "--out", str(place.folder / "run"))[0] == 0
