"""Commands that are killed with -9 at random moments and started again end as if nothing had happened: no row is lost
or double, no file is half written.

    KILLS=100 python -m pytest tests/kills.py      as many kills a command as the figures in the notes

test_kills.py runs this file in a process of its own: a copy of a process with threads (torch, pyarrow) may hang.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import scipy.stats  # before the copies are made, which would each import it
from tqdm import tqdm

from builder.__main__ import app as builder_app
from tests.scripted import Scripted
from videoqa import engines
from videoqa.commands import main

KILLS = int(os.environ.get("KILLS", "5"))
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
assert scipy.stats
# tqdm's own lock is one for all copies: a copy that is killed while it holds it keeps all others waiting for ever. A
# lock of threads is each copy's own, and without the monitor's thread nobody holds it while a copy is made.
tqdm.set_lock(threading.RLock())
tqdm.monitor_interval = 0


def reply(text: str, seed: int) -> str:
    """Fit for a model, for a judge, and for the builder's stages."""
    time.sleep(0.001)
    numbers = [line.split(":")[0] for line in text.splitlines() if line[:1].isdigit()]
    if '"repeat"' in text:
        return json.dumps(dict.fromkeys(numbers, "unique"))
    if '"generic"' in text:
        return json.dumps(dict.fromkeys(numbers, "specific"))
    return f"Score: {len(text) % 10 + 1}" if "Reference answer" in text else f"jug {len(text)}"


def in_a_child(task: Callable[[], Any]) -> int:
    """Start the task in a copy of this process; its process id."""
    if (child := os.fork()) == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        code = 1
        try:
            task()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            os._exit(code)
    return child


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_until(task: Callable[[], Any], folder: Path, same: Callable[[], None], seed: int) -> None:
    """Start `task`, which works in `folder`, and kill it at random moments, KILLS times in all. Whenever it comes to
    its end `same` must hold; then it begins anew."""
    draw = random.Random(seed)
    start = time.monotonic()
    assert ended(in_a_child(task)) == 0
    usual = time.monotonic() - start
    same()
    kills = 0
    while kills < KILLS:
        shutil.rmtree(folder)
        folder.mkdir()
        for _ in range(10):
            child = in_a_child(task)
            time.sleep(draw.random() * usual)
            os.kill(child, signal.SIGKILL)
            if ended(child) == 0:
                break  # it was faster
            kills += 1
        else:
            assert ended(in_a_child(task)) == 0
        same()


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Callable[[], None]]:
    """Makes a task of an `easg-bench` command line with scripted engines."""
    monkeypatch.setattr(engines, "open_engine", lambda spec, **_: Scripted(reply, name=spec))

    def make(*arguments: object) -> Callable[[], None]:
        def task() -> None:
            sys.argv = ["easg-bench", *map(str, arguments)]
            main()

        return task

    return make


def content(folder: Path) -> dict[str, bytes]:
    """The files of a folder but for those that a kill may leave beside them."""
    paths = (p for p in folder.rglob("*") if p.is_file() and not p.name.startswith("."))
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in paths if p.parent.name[:1] != "."}


def rows_of(folder: Path, name: str) -> Counter[str]:
    """How often each record stands in a file of lines, but for the seconds that it took, which are never the same."""
    records = (json.loads(line) for line in (folder / name).read_text().splitlines())
    return Counter(json.dumps(record | {"seconds": None}) for record in records)


def run_is_like(calm: Path, disturbed: Path) -> None:
    for name in ("answers.jsonl", "verdicts.jsonl"):
        assert rows_of(disturbed, name) == rows_of(calm, name) and set(rows_of(calm, name).values()) == {1}
    mine, theirs = (json.loads((folder / "scores.json").read_text()) for folder in (disturbed, calm))
    assert all(mine[key] == theirs[key] for key in ("types", "avg", "calibration", "judge", "unanswered"))


def test_a_run(commands: Callable[..., Any], demo_data: Path, tmp_path: Path) -> None:
    how = ["run", "--data", demo_data, "--model", "m", "--judge", "j", "--mode", "score"]
    calm, work = tmp_path / "calm", tmp_path / "work"
    assert ended(in_a_child(commands(*how, "--out", calm, "--store", tmp_path / "store"))) == 0
    work.mkdir()
    task = commands(*how, "--out", work / "run", "--store", work / "store")
    kill_until(task, work, lambda: run_is_like(calm, work / "run"), seed=1)


def test_a_second_judge(commands: Callable[..., Any], demo_data: Path, tmp_path: Path) -> None:
    answered, calm, work = tmp_path / "answered", tmp_path / "calm", tmp_path / "work"
    assert ended(in_a_child(commands("answer", "--data", demo_data, "--model", "m", "--out", answered))) == 0
    shutil.copytree(answered, calm)
    judge = ["--judge", "j", "--mode", "score", "--store"]
    assert ended(in_a_child(commands("judge", calm, *judge, tmp_path / "store"))) == 0
    work.mkdir()

    def task() -> None:
        if not (work / "run" / "config.json").exists():
            shutil.copytree(answered, work / "run", dirs_exist_ok=True)
        commands("judge", work / "run", *judge, work / "store")()

    kill_until(task, work, lambda: run_is_like(calm, work / "run"), seed=2)


def test_a_submission_to_a_folder(commands: Callable[..., Any], demo_data: Path, tmp_path: Path) -> None:
    run, calm, work = tmp_path / "run", tmp_path / "calm", tmp_path / "work"
    how = ["--data", demo_data, "--model", "m", "--judge", "j", "--mode", "score", "--store", tmp_path / "store"]
    assert ended(in_a_child(commands("run", *how, "--out", run))) == 0
    calm.mkdir()
    work.mkdir()
    assert ended(in_a_child(commands("submit", run, "--to", calm))) == 0

    def same() -> None:
        assert content(work) == content(calm) and len(content(calm)) == 2

    kill_until(commands("submit", run, "--to", work), work, same, seed=3)


def test_a_build_with_a_model(
    commands: Callable[..., Any], raw: dict[str, Any], save: Callable[..., Path], tmp_path: Path
) -> None:
    source, calm, work = save(raw), tmp_path / "calm", tmp_path / "work"
    how = ["build", "--source", str(source), "--votes", "llm", "--wording", "llm", "--runs", "2", "--engine", "x"]

    def build(folder: Path) -> Callable[[], None]:
        return lambda: builder_app([*how, "--out", str(folder / "set")], standalone_mode=False)

    calm.mkdir()
    work.mkdir()
    assert ended(in_a_child(build(calm))) == 0

    def same() -> None:
        assert content(work / "set") == content(calm / "set")
        lines = [json.loads(line)["reply"] for line in (work / "set.stages" / "replies.jsonl").read_text().splitlines()]
        assert len(lines) == len(set(lines)), "no prompt is asked twice"

    kill_until(build(work), work, same, seed=4)
