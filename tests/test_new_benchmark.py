"""A benchmark made of nothing but a folder: run, report, lighteval task and leaderboard row work without another
change."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import videoqa.benchmarks
from tests.scripted import Scripted
from videoqa.benchmark import track, track_of, tracks
from videoqa.commands import command_line

FOLDER = '''
"""Toy: which of two options is it? Two types, scored by comparing letters."""

from dataclasses import dataclass

from videoqa.asking import text_way
from videoqa.benchmark import Published, Track
from videoqa.reply import Verdict
from videoqa.measures import Measure

ROWS = [
    {
        "id": f"clip{n // 2}:{n}", "clip": f"clip{n // 2}", "video": "", "type": ("colour", "shape")[n % 2],
        "question": f"What is thing {n}?", "answer": None, "choices": ["red", "round"], "gold": n % 2, "context": "",
        "frame": None, "start_s": None, "end_s": None, "clip_start_s": None, "evidence": [],
    }
    for n in range(8)
]


@dataclass(frozen=True)
class Letters:
    key: str = "letters"
    needs_truth: bool = False

    def rate(self, items):
        for index, item in enumerate(items):
            yield index, Verdict(float("AB".find((item.prediction or "-")[:1]) == item.gold), "ok")

    def describe(self):
        return {"key": self.key}


TOY = Track(
    name="toy", title="Toy", prefix="toy", repo="toy", types=("colour", "shape"), load=lambda data, config: ROWS,
    ways={"blind": text_way("language-only", "Answer A or B. ", lambda row: f"{row['question']} {row['choices']}")},
    way="blind", scorer=lambda engine, options: Letters(),
    measure=Measure("accuracy", "Accuracy x 100", needs_truth=False),
    published=(Published("Guesser", "language-only", {"colour": 50.0, "shape": 50.0}, 50.0),),
)
TRACKS = (TOY,)
'''


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the toy benchmark beside the real ones, and its data with a card that names it."""
    folder = tmp_path / "benchmarks" / "toy"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(FOLDER)
    monkeypatch.setattr(videoqa.benchmarks, "__path__", [*videoqa.benchmarks.__path__, str(folder.parent)])
    data = tmp_path / "data"
    data.mkdir()
    (data / "README.md").write_text("---\npretty_name: Toy questions\n---\n")
    monkeypatch.setattr("videoqa.engines.open_engine", lambda spec, **_: Scripted(lambda *_: "A", name="org/always-a"))
    yield data
    sys.modules.pop("videoqa.benchmarks.toy", None)


def bench(*arguments: object) -> str:
    done = CliRunner().invoke(command_line(), [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_folder_is_a_benchmark(toy: Path, tmp_path: Path) -> None:
    assert list(tracks())[-1] == "toy" and track_of(str(toy)).name == "toy" and track().name == "easg-bench"
    run = tmp_path / "run"
    output = bench("run", "--data", toy, "--model", "m", "--out", run)
    assert "Accuracy x 100" in output and "Guesser" in output and "100.00" in output
    result = json.loads((run / "scores.json").read_text())
    assert (result["track"], result["measure"], result["judge"], result["calibration"]) == (
        "toy",
        "accuracy",
        None,
        None,
    )
    assert {name: one["value"] for name, one in result["types"].items()} == {"colour": 100.0, "shape": 0.0}
    assert result["avg"]["value"] == 50.0 and result["scorer"] == "letters"
    assert "50.00" in bench("report", run, "--format", "markdown")
    bench("report", run, "--html", tmp_path / "report.html")
    assert "<title>Toy" in (tmp_path / "report.html").read_text()
    results = tmp_path / "results"
    results.mkdir()
    bench("submit", run, "--to", results)


def test_a_folder_is_a_row_of_the_leaderboard(toy: Path, tmp_path: Path) -> None:
    leaderboard = pytest.importorskip("leaderboard")
    results = tmp_path / "results"
    results.mkdir()
    bench("run", "--data", toy, "--model", "m", "--out", tmp_path / "run")
    bench("submit", tmp_path / "run", "--to", results)
    (entry,) = leaderboard.load(results).entries
    assert (entry.result.track, entry.result.avg.value) == ("toy", 50.0)


def test_a_folder_is_a_lighteval_task(toy: Path) -> None:
    pytest.importorskip("lighteval")
    from videoqa.hosts.lighteval.tasks import task_table

    assert [config.name for config in task_table(track("toy"), str(toy))] == ["toy:colour", "toy:shape"]
