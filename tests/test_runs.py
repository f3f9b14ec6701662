"""videoqa/runs.py: lines that survive a kill, run folders that are not mixed up, and the store of verdicts.

J17, J19, L06 and U01 are cases of the list of public bug reports.
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import Scripted

from videoqa.answering import answer_rows
from videoqa.benchmarks.easg.published import TYPES
from videoqa.benchmarks.easg.rubrics import OURS
from videoqa.errors import UserError
from videoqa.files import Lines, whole, write_json, write_text
from videoqa.judge import Judge
from videoqa.reply import Verdict
from videoqa.rows import revision, sample
from videoqa.runs import Run, RunMismatch, judge_rows, result
from videoqa.scorer import Item
from videoqa.store import VerdictStore, line_of, prompt_hash, rate_once, verdict_of

ROOT = Path(__file__).resolve().parents[1]

HERE = Path(__file__).parent
STRANGE = "é “quoted” 🥄 a\u2028b c\ud800d 做饭"  # U+2028 ends a line for some; the lone surrogate is no UTF-8


def rows(n: int) -> list[dict[str, Any]]:
    """n questions of all types, five a clip."""
    return [
        {
            "id": f"clip-{i // 5}:{i}:{TYPES[i % 5]}",
            "clip": f"clip-{i // 5}",
            "type": TYPES[i % 5],
            "question": f"What was lifted in step {i}?",
            "answer": f"jug {i}",
            "context": f"(1.00s) #C C works in clip {i // 5}.",
        }
        for i in range(n)
    ]


def config(asked: list[dict[str, Any]], **changed: Any) -> dict[str, Any]:
    known = {"data": "here", "config": "default", "limit": None, "rows": len(asked), "revision": revision(asked)}
    return {**known, "model": "scripted", "prompt": "blind", "max_new_tokens": 8, **changed}


def python(code: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """A process of its own that runs this code."""
    paths = os.pathsep.join([str(HERE.parent), str(HERE)])
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": paths, **environment},
        stdout=subprocess.PIPE,
        text=True,
    )


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file can grow beyond `size` bytes: writes stop in the middle, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# -- lines ------------------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters()) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(records=st.lists(st.dictionaries(st.text(st.characters()), JSON, max_size=3), max_size=4))
def test_records_come_back_as_they_were(
    records: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = Lines(tmp_path_factory.mktemp("lines") / "a.jsonl")
    for record in records:
        lines.append(record)
    assert lines.read() == records
    assert not records or lines.path.read_bytes().count(b"\n") == len(records)


@given(data=st.data())
def test_a_file_cut_anywhere_keeps_every_whole_record_and_can_be_gone_on_with(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = Lines(tmp_path_factory.mktemp("lines") / "a.jsonl")
    records = [{"id": n, "text": "}" * n, "inner": {"a": [n]}} for n in range(4)]
    for record in records:
        lines.append(record)
    whole = lines.path.read_bytes()
    at = data.draw(st.integers(0, len(whole)))
    lines.path.write_bytes(whole[:at])
    kept = [r for n, r in enumerate(records) if len(b"".join(whole.splitlines(True)[: n + 1])) - 1 <= at]
    lines.append({"id": "new"})
    assert lines.read() == [*kept, {"id": "new"}]


def test_a_last_line_that_was_cut_off_is_dropped_with_a_warning(tmp_path: Path) -> None:
    lines = Lines(tmp_path / "a.jsonl")
    lines.path.write_text('{"id": 1}\n{"id": 2, "te')
    with pytest.warns(UserWarning, match=r"a\.jsonl, line 2 was cut off and is dropped"):
        assert lines.read() == [{"id": 1}]


@pytest.mark.parametrize("bad", ['{"id": 2, "te', "[1]", "garbage", "\0\0\0", '"text"'])
def test_a_line_in_the_middle_that_is_no_record_is_an_error_with_its_number(bad: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(f'{{"id": 1}}\n{bad}\n{{"id": 3}}\n')
    with pytest.raises(ValueError, match=r"a\.jsonl, line 2: not a JSON object: "):
        Lines(tmp_path / "a.jsonl").read()


def test_a_record_without_its_columns_is_an_error_with_its_number(tmp_path: Path) -> None:
    opened = Run(tmp_path / "run", config(rows(1)))
    for file, told in ((opened.answers_file, "prediction, error"), (opened.verdicts_file, "of, judge, score, status")):
        file.path.write_text('{"id": "x"}\n')
        with pytest.raises(ValueError, match=rf"{file.path.name}, line 1: a record needs {told}"):
            file.read()


def test_two_processes_append_to_one_file_and_no_line_breaks(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from videoqa.runs import Lines
lines = Lines(Path(sys.argv[1]))
for n in range(150):
    lines.append({"who": sys.argv[2], "n": n, "text": sys.argv[2] * (n * 97 % 9000)})
"""
    running = [python(code, str(tmp_path / "a.jsonl"), who) for who in "xy"]
    assert [process.wait(timeout=240) for process in running] == [0, 0]
    found = Lines(tmp_path / "a.jsonl").read()
    for who in "xy":
        assert [r["n"] for r in found if r["who"] == who] == list(range(150))
    assert all(r["text"] == r["who"] * (r["n"] * 97 % 9000) for r in found)


def test_the_locale_does_no_harm(tmp_path: Path) -> None:  # U01
    folder = tmp_path / "прогон 做饭 é"
    Lines(folder / "parent.jsonl").append({"id": STRANGE})
    code = """
import json, sys
from pathlib import Path
from videoqa.files import Lines, write_json, write_text
folder = Path(sys.argv[1])
(record,) = Lines(folder / "parent.jsonl").read()
Lines(folder / "child.jsonl").append(record)
write_json(folder / "child.json", record)
write_text(folder / "child.txt", record["id"])
print(sys.stdout.encoding, sys.getfilesystemencoding())
"""
    process = python(code, str(folder), LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    said, _ = process.communicate(timeout=240)
    assert process.returncode == 0 and "utf" not in said.lower(), said
    assert Lines(folder / "child.jsonl").read() == [{"id": STRANGE}]
    assert json.loads((folder / "child.json").read_text("ascii")) == {"id": STRANGE}
    assert (folder / "child.txt").read_text("utf-8") == STRANGE.encode("utf-8", "replace").decode()
    assert (folder / "child.jsonl").read_bytes().count(b"\n") == 1


def test_a_full_disk_leaves_no_half_line_and_names_the_file(tmp_path: Path) -> None:
    lines = Lines(tmp_path / "a.jsonl")
    lines.append({"id": 1})
    before = lines.path.read_bytes()
    with room_for(len(before) + 10), pytest.raises(OSError, match=r"a\.jsonl"):
        lines.append({"id": 2, "text": "x" * 100})
    assert lines.path.read_bytes() == before
    lines.append({"id": 3})
    assert lines.read() == [{"id": 1}, {"id": 3}]


def test_a_full_disk_leaves_the_old_json_file_and_nothing_beside_it(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"old": 1})
    with room_for(100), pytest.raises(OSError, match=r"a\.json"):
        write_json(tmp_path / "a.json", {"new": "x" * 1000})
    assert json.loads((tmp_path / "a.json").read_text()) == {"old": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_nothing_is_left_of_a_file_that_could_not_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, target: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match=r"No space left on device: .*report\.html"):
        write_text(tmp_path / "report.html", "text")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_cleared_by_the_next_that_writes_the_same(tmp_path: Path) -> None:
    code = """
import os, signal, sys
from pathlib import Path
from videoqa.files import whole, write_text
Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] == "text":
    write_text(Path(sys.argv[1]), "half")
with whole(Path(sys.argv[1])) as fresh:
    fresh.mkdir()
"""
    for kind in ("text", "folder"):
        done = subprocess.run([sys.executable, "-c", code, str(tmp_path / kind), kind], cwd=ROOT, timeout=60)
        assert done.returncode == -9
    mine = tmp_path / f".text.part-{os.getppid()}-abc"  # of a process that runs
    others = tmp_path / ".texts.part-1-abc"
    for path in (mine, others):
        path.write_text("x")
    assert len(list(tmp_path.iterdir())) == 4
    write_text(tmp_path / "text", "whole")
    with whole(tmp_path / "folder") as fresh:
        fresh.mkdir()
    assert {path.name for path in tmp_path.iterdir()} == {"text", "folder", mine.name, others.name}


def test_a_file_is_utf_8_whatever_its_text(tmp_path: Path) -> None:
    write_text(tmp_path / "report.html", "caf\u00e9 \ud83d and \udca9")
    assert (tmp_path / "report.html").read_bytes().decode() == "caf\u00e9 ? and ?"


# -- a run ------------------------------------------------------------------------------------------------------------


def test_a_run_of_something_else_says_what_differs(tmp_path: Path) -> None:
    begun = config(rows(3))
    Run(tmp_path / "run", begun)
    assert Run(tmp_path / "run", begun).config == Run(tmp_path / "run").config == begun
    for changed, told in (
        ({"model": "other"}, "model is 'scripted', not 'other'"),
        ({"revision": "0000"}, "revision is '.{12}', not '0000'"),
        ({"prompt": "narrations", "limit": 5}, "limit is None, not 5; prompt is 'blind', not 'narrations'"),
        ({"seed": 3}, "seed is None, not 3"),
    ):
        with pytest.raises(RunMismatch, match=rf"run is another run \({told}\): give another --out or delete it"):
            Run(tmp_path / "run", {**begun, **changed})
    assert Run(tmp_path / "run").config == begun


@pytest.mark.parametrize("text", ['{"model_type": "llama"}', "[]", "{", ""])
@pytest.mark.parametrize("given_config", [True, False])
def test_another_programs_config_is_not_taken_for_a_run(text: str, given_config: bool, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(RunMismatch, match=r"holds something else than a run: its config\.json is not a run's"):
        Run(tmp_path, config(rows(1)) if given_config else None)
    assert (tmp_path / "config.json").read_text() == text


def test_a_folder_of_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(RunMismatch, match="holds something else than a run: give another --out"):
        Run(tmp_path, config(rows(1)))
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(FileNotFoundError, match=r"is no run folder: it has no config\.json"):
        Run(tmp_path)
    with pytest.raises(OSError, match=r"thesis\.tex"):
        Run(tmp_path / "thesis.tex", config(rows(1)))


def test_a_run_killed_before_its_config_was_there_begins_again(tmp_path: Path) -> None:
    (tmp_path / ".config.json.x1y2z3").write_text('{"da')
    assert Run(tmp_path, config(rows(1))).config["model"] == "scripted"


def test_a_run_is_run_by_one_process_at_a_time(tmp_path: Path) -> None:
    opened = Run(tmp_path / "run", config(rows(1)))
    with (
        opened.alone(),
        pytest.raises(RunMismatch, match="is being run by another process"),
        Run(tmp_path / "run").alone(),
    ):
        pass
    with opened.alone():
        pass


def answer_all(engine: Scripted, asked: list[dict[str, Any]], run: Run) -> dict[str, str | None]:
    list(answer_rows(engine, asked, run))
    return {k: line["prediction"] for k, line in run.answers().items() if line["error"] is None}


def test_only_what_is_missing_is_asked_and_errors_are_asked_again(tmp_path: Path) -> None:  # L06
    asked = rows(10)
    opened = Run(tmp_path / "run", config(asked))
    first = Scripted(lambda prompt, seed: None if "step 3?" in prompt else " a cup\n")
    for _ in zip(range(6), answer_rows(first, asked, opened), strict=False):
        pass  # as far as it got
    done = {k for k, line in opened.answers().items() if line["error"] is None}
    second = Scripted(lambda prompt, seed: None if "step 3?" in prompt else "a cup")
    answer_all(second, asked, opened)
    assert len(second.asked) == 10 - len(done)
    third = Scripted(lambda prompt, seed: "a jug")
    assert answer_all(third, asked, opened) == {
        r["id"]: "a jug" if "step 3?" in r["question"] else "a cup" for r in asked
    }
    assert len(third.asked) == 1
    lines = [line["id"] for line in opened.answers_file.read() if line["error"] is None]
    assert sorted(lines) == sorted(r["id"] for r in asked)


def scripted_judge(fails: str = "never") -> Scripted:
    return Scripted(lambda prompt, seed: None if fails in prompt else "Score: 7")


def test_a_judge_error_is_its_rows_is_not_stored_and_is_asked_for_again(tmp_path: Path) -> None:  # J17
    asked = rows(5)
    opened = Run(tmp_path / "run", config(asked))
    predictions = {row["id"]: f"cup {n}" for n, row in enumerate(asked)}
    for name, text in predictions.items():
        opened.answers_file.append({"id": name, "prediction": text, "error": None})
    failing = scripted_judge("cup 3")
    judge = Judge(failing, OURS, "score")
    found = list(judge_rows(judge, asked, predictions, opened, VerdictStore(tmp_path / "store", judge.key)))
    assert Counter(v.status for _, v in found) == {"ok": 9, "judge_error": 1}
    bad = next(identifier for identifier, v in found if v.status == "judge_error")
    assert bad == asked[3]["id"]
    average = result(opened, asked, judge.describe())["avg"]
    assert (average["n"], average["n_scored"], average["errors"]) == (5, 4, 1)

    mended = scripted_judge()
    again = Judge(mended, OURS, "score")
    store = VerdictStore(tmp_path / "store", again.key)
    assert [i for i, _ in judge_rows(again, asked, predictions, opened, store)] == [bad]
    assert len(mended.asked) == 1
    assert result(opened, asked, judge.describe())["avg"]["n_scored"] == 5
    assert list(judge_rows(again, asked, predictions, opened, store)) == []


def test_a_second_judge_of_one_run_has_its_own_verdicts_and_result_file(tmp_path: Path) -> None:
    asked = rows(5)
    opened = Run(tmp_path / "run", config(asked))
    judges = [Judge(scripted_judge(), OURS, mode) for mode in ("score", "paper")]  # type: ignore[arg-type]
    for judge in judges:
        list(judge_rows(judge, asked, dict.fromkeys((r["id"] for r in asked), "cup"), opened, None))
    assert [len(opened.verdicts(j.key, of)) for j in judges for of in ("answer", "truth")] == [5] * 4
    write_json(opened.scores_path(judges[0].key), {"judge": {"key": judges[0].key}})
    paths = [opened.scores_path(j.key).name for j in judges]
    assert paths[0] == "scores.json" and paths[1].startswith("scores-")


# -- the store --------------------------------------------------------------------------------------------------------


def ask_all(judge: Judge, items: list[Item], store: VerdictStore | None) -> list[Verdict]:
    found = dict(rate_once(judge, items, store))
    return [found[n] for n in range(len(items))]


def test_the_same_prompt_is_asked_once_in_a_call_and_never_again(tmp_path: Path) -> None:
    items = [Item("Q?", "jug", text) for text in ("cup", "jug", "cup", "", "cup")]
    engine = scripted_judge()
    judge = Judge(engine, OURS, "score")
    first = ask_all(judge, items, VerdictStore(tmp_path, judge.key))
    assert len(engine.asked) == 2 and first[3] == judge.empty
    assert ask_all(judge, items, VerdictStore(tmp_path, judge.key)) == first
    assert len(engine.asked) == 2


def test_another_question_or_rubric_or_judge_is_asked_anew(tmp_path: Path) -> None:  # J19
    engine = Scripted(lambda prompt, seed: "Score: 9" if "lifted" in prompt else "Score: 2")
    lifted, washed = Item("What was lifted?", "jug", "cup"), Item("What was washed?", "jug", "cup")
    judge = Judge(engine, OURS, "score")
    store = VerdictStore(tmp_path, judge.key)
    assert [v.score for v in ask_all(judge, [lifted], store) + ask_all(judge, [washed], store)] == [9, 2]
    assert len(engine.asked) == 2
    for other in (
        Judge(engine, replace(OURS, rule=OURS.rule + " Go."), "score"),
        Judge(engine, OURS, "paper"),
        Judge(Scripted(engine.script, name="other"), OURS, "score"),
    ):
        before = len(engine.asked) + len(getattr(other.engine, "asked", []))
        ask_all(other, [lifted], VerdictStore(tmp_path, other.key))
        assert len(engine.asked) + len(getattr(other.engine, "asked", [])) > before
    one, two = (judge.prompt(i) for i in (lifted, washed))
    assert one is not None and two is not None and prompt_hash(one) != prompt_hash(two)


VERDICTS = st.builds(
    Verdict,
    st.none() | st.floats(1, 10),
    st.sampled_from(["ok", "unreadable", "truncated"]),
    explanation=st.text(st.characters()),
    raw=st.text(st.characters()),
    most_likely=st.none() | st.floats(1, 10),
    mass=st.none() | st.floats(0, 1),
    probabilities=st.none() | st.tuples(st.floats(0, 1), st.floats(0, 1)),
)


@given(VERDICTS)
def test_a_verdict_is_the_same_behind_a_line(verdict: Verdict) -> None:
    assert verdict_of(json.loads(json.dumps(line_of(verdict))), "here") == verdict


def test_only_what_could_be_read_is_kept(tmp_path: Path) -> None:
    store = VerdictStore(tmp_path, "judge")
    store.put("a", Verdict(None, "judge_error", raw="429"))
    store.put("b", Verdict(None, "unreadable", raw="hm"))
    again = VerdictStore(tmp_path, "judge")
    assert again.get("a") is None and again.get("b") is None
    again.put("b", Verdict(7.0, "ok", raw="7"))
    assert VerdictStore(tmp_path, "judge").get("b") == Verdict(7.0, "ok", raw="7")
    assert VerdictStore(tmp_path, "another judge").get("b") is None


def test_what_an_older_version_kept_without_a_score_is_asked_again(tmp_path: Path) -> None:
    store = VerdictStore(tmp_path, "judge")
    (path,) = tmp_path.iterdir()
    with path.open("a") as file:
        file.write('{"prompt": "b", "score": null, "status": "unreadable", "raw": "ERROR: no response"}\n')
    assert VerdictStore(tmp_path, "judge").get("b") is None and store.get("b") is None


@pytest.mark.parametrize(
    "change",
    [
        {"score": None},
        {"status": None},
        {"score": math.inf},
        {"score": 10**400},
        {"score": True},
        {"mass": math.nan},
        {"probabilities": [0.5, math.nan]},
        {"probabilities": [10**400]},
        {"probabilities": [["1"]]},
        {"probabilities": [2]},
    ],
)
def test_a_kept_verdict_that_no_judge_gave_is_refused_with_its_place(change: dict[str, Any], tmp_path: Path) -> None:
    VerdictStore(tmp_path, "judge").put("a", Verdict(7.0, "ok", raw="7"))
    (path,) = tmp_path.iterdir()
    head, line = path.read_text().splitlines()
    path.write_text(f"{head}\n{json.dumps(json.loads(line) | change)}\n")
    with pytest.raises(UserError, match=r"\.jsonl, (line|record) 2: "):
        VerdictStore(tmp_path, "judge")
    path.write_text(f"{head}\n{json.dumps({k: v for k, v in json.loads(line).items() if k != 'score'})}\n")
    with pytest.raises(UserError, match="record 2: a verdict needs score and status"):
        VerdictStore(tmp_path, "judge")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"score": 15.0}, "15 is no score of this judge, whose are 1 to 10"),
        ({"most_likely": 0.0}, "0 is no score of this judge, whose are 1 to 10"),
        ({"probabilities": [0.5, 0.5]}, "2 probabilities, but this judge has 10 scores"),
    ],
)
def test_a_verdict_off_the_judges_scale_is_refused_in_the_store_and_in_the_run(
    change: dict[str, Any], why: str, tmp_path: Path
) -> None:
    judge = Judge(scripted_judge(), OURS, "score")
    asked = rows(3)
    known: dict[str, str | None] = dict.fromkeys((row["id"] for row in asked), "cup")
    run = Run(tmp_path / "run", config(asked))
    for row in asked:
        run.answers_file.append({"id": row["id"], "prediction": "cup", "error": None})
    list(judge_rows(judge, asked, known, run, VerdictStore(tmp_path / "store", judge.key)))
    result(run, asked, judge.describe())
    (kept,) = (tmp_path / "store").iterdir()
    for path in (kept, run.verdicts_file.path):
        lines = path.read_text().splitlines()
        path.write_text("\n".join([*lines[:-1], json.dumps(json.loads(lines[-1]) | change)]) + "\n")
    with pytest.raises(UserError, match=re.escape(f"{kept}: {why}")):
        list(
            judge_rows(
                judge, asked, known, Run(tmp_path / "again", config(asked)), VerdictStore(kept.parent, judge.key)
            )
        )
    with pytest.raises(UserError, match=f"verdicts.jsonl: .*: {why}"):
        result(run, asked, judge.describe())


def test_a_store_file_of_another_judge_is_refused(tmp_path: Path) -> None:
    VerdictStore(tmp_path, "judge").put("a", Verdict(7.0, "ok", raw="7"))
    (path,) = tmp_path.iterdir()
    other = VerdictStore(tmp_path, "other").path
    path.rename(other)
    with pytest.raises(UserError, match="holds verdicts of another judge: judge"):
        VerdictStore(tmp_path, "other")


def test_a_store_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    store = VerdictStore(tmp_path, "judge")
    (path,) = tmp_path.iterdir()
    path.write_text('{"format": 2, "judge": "judge"}\n{"prompt": "b", "verdict": [1]}\n')
    with pytest.raises(
        ValueError, match=r"was written by a newer easg-bench \(format 2, this one reads 1\): update, or"
    ):
        VerdictStore(tmp_path, "judge")
    assert store.get("b") is None and path.read_text().count("\n") == 2


def test_two_processes_fill_one_store(tmp_path: Path) -> None:
    code = """
import sys
from videoqa.judge import Verdict
from videoqa.runs import VerdictStore
store = VerdictStore(sys.argv[1], "judge")
for n in range(int(sys.argv[2]), 100):
    store.put(str(n), Verdict(n % 10 + 1.0, "ok", raw="x" * n * 50))
"""
    running = [python(code, str(tmp_path), start) for start in ("0", "50")]
    assert [process.wait(timeout=240) for process in running] == [0, 0]
    store = VerdictStore(tmp_path, "judge")
    assert [store.get(str(n)) for n in range(100)] == [
        Verdict(n % 10 + 1.0, "ok", raw="x" * n * 50) for n in range(100)
    ]


# -- killed -----------------------------------------------------------------------------------------------------------

CHILD = """
import json, os, sys, time
from scripted import Scripted
from test_runs_data import ROWS, CONFIG
from videoqa.benchmarks.easg.rubrics import OURS
from videoqa.judge import Judge
from videoqa.answering import answer_rows
from videoqa.runs import Run, judge_rows
from videoqa.store import VerdictStore

folder = sys.argv[1]
log = os.open(folder + "-asked", os.O_APPEND | os.O_CREAT | os.O_WRONLY)

def reply(prompt, seed):
    os.write(log, (json.dumps(prompt) + "\\n").encode())
    time.sleep(0.002)
    return f"Score: {len(prompt) % 10 + 1}" if "Score" in prompt else "jug " + prompt[-12:-9]

run = Run(folder, CONFIG)
list(answer_rows(Scripted(reply), ROWS, run))
answers = {k: line["prediction"] for k, line in run.answers().items()}
judge = Judge(Scripted(reply), OURS, "score")
list(judge_rows(judge, ROWS, answers, run, VerdictStore(folder + "-store", judge.key)))
"""


def killed_run(folder: Path, asked: list[dict[str, Any]], kills: int, seed: int) -> tuple[Run, Counter[str]]:
    """A run in processes that are killed -9 at random points, then let finish; and how often each prompt was asked."""
    (folder.parent / "test_runs_data.py").write_text(f"ROWS = {asked!r}\nCONFIG = {config(asked)!r}\n")
    draw = random.Random(seed)
    log = Path(f"{folder}-asked")
    log.touch()
    paths = os.pathsep.join(map(str, (HERE.parent, HERE, folder.parent)))
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    for left in range(kills, -1, -1):
        process = subprocess.Popen([sys.executable, "-W", "ignore", "-c", CHILD, str(folder)], env=environment)
        if left:
            share = (len(asked) * 3 - log.read_bytes().count(b"\n")) / left
            wanted = log.read_bytes().count(b"\n") + draw.randint(1, max(1, int(share)))
            while process.poll() is None and log.read_bytes().count(b"\n") < wanted:
                time.sleep(0.001)
            time.sleep(draw.random() * 0.004)
            process.send_signal(signal.SIGKILL)
            process.wait()
        else:
            assert process.wait(timeout=240) == 0
    return Run(folder), Counter(log.read_text().splitlines())


def check_killed(tmp_path: Path, n: int, kills: int, seed: int) -> None:
    asked = rows(n)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    disturbed, prompts = killed_run(tmp_path / "a" / "run", asked, kills, seed)
    calm, calm_prompts = killed_run(tmp_path / "b" / "run", asked, 0, seed)
    key = Judge(Scripted(lambda p, s: ""), OURS, "score").key
    for one in (disturbed, calm):
        assert Counter(line["id"] for line in one.answers_file.read()) == Counter(row["id"] for row in asked)
        lines = Counter((v["id"], v["of"]) for v in one.verdicts_file.read())
        assert lines == Counter((row["id"], of) for row in asked for of in ("answer", "truth"))
    said = [[{**line, "seconds": None} for line in run.answers_file.read()] for run in (disturbed, calm)]
    assert sorted(map(str, said[0])) == sorted(map(str, said[1]))
    assert [disturbed.verdicts(key, of) for of in ("answer", "truth")] == [
        calm.verdicts(key, of) for of in ("answer", "truth")
    ]
    numbers = [result(run, asked, {"key": key}) for run in (disturbed, calm)]
    for part in ("types", "avg", "calibration"):
        assert numbers[0][part] == numbers[1][part]
    assert set(prompts) == set(calm_prompts)
    assert sum(prompts.values()) - sum(calm_prompts.values()) <= kills  # at most the one in flight


def test_a_run_that_is_killed_loses_and_doubles_nothing(tmp_path: Path) -> None:
    check_killed(tmp_path, 20, 3, seed=1)


@pytest.mark.slow
def test_ten_kills_on_200_rows_lose_and_double_nothing(tmp_path: Path) -> None:
    check_killed(tmp_path, 200, 10, seed=2)


# -- rows -------------------------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from(TYPES), min_size=1, max_size=40), st.integers(1, 50))
def test_a_sample_is_even_over_the_types_and_in_order(types: list[str], limit: int) -> None:
    asked = [{"id": n, "type": name} for n, name in enumerate(types)]
    found = sample(asked, limit)
    ids = [row["id"] for row in found]
    assert len(found) == min(limit, len(types)) and ids == sorted(set(ids))
    counts, there = Counter(row["type"] for row in found), Counter(types)
    most = max(counts.values())
    assert all(counts[name] >= min(there[name], most - 1) for name in there)


def test_a_sample_is_spread_over_a_types_rows_and_never_empty() -> None:
    asked = [{"id": n, "type": "direct"} for n in range(100)]
    assert [row["id"] for row in sample(asked, 4)] == [0, 25, 50, 75]
    assert sample(asked, None) == asked
    with pytest.raises(ValueError, match="limit 0: at least 1 row"):
        sample(asked, 0)


@pytest.mark.parametrize("name", ["id", "type", "question", "answer", "context"])
def test_the_data_revision_changes_with_every_word_that_is_asked(name: str) -> None:
    asked = rows(3)
    texts = (asked[1][name], "x", "", STRANGE)
    found = {revision([asked[0], {**asked[1], name: text}, asked[2]]) for text in texts}
    assert len(found) == 4 and revision(asked) in found
    assert revision([{**row, "frame": 3} for row in asked]) == revision(asked)
    assert revision(asked[::-1]) == revision(asked)  # an imported run has its own order


# -- imports ----------------------------------------------------------------------------------------------------------


def test_judge_scores_and_runs_are_cheap_to_import() -> None:
    code = """
import sys
import videoqa.judge, videoqa.scores, videoqa.runs, videoqa.benchmark
videoqa.benchmark.tracks()
print(sorted({"torch", "transformers", "datasets", "scipy", "numpy", "vllm", "httpx"} & set(sys.modules)))
"""
    process = python(code, PYTHONWARNINGS="error")
    said, _ = process.communicate(timeout=240)
    assert (process.returncode, said.strip()) == (0, "[]")
