"""Fixtures that more than one test file uses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from builder.easg import readings
from builder.easg.annotations import USUAL_NAMES

ROOT = Path(__file__).resolve().parents[1]
# a slow machine is no failure; CI tries the same examples every time, people new ones
settings.register_profile("busy", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("busy")

SHARED = ROOT.parent / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data beside the checkout; tests that need it skip where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("the real data are not here: no folder ../shared beside the checkout")
    return SHARED


@pytest.fixture(scope="session")
def upstream(shared: Path) -> Path:
    """The EASG annotations, recorded votes and narrations."""
    return shared / "upstream"


@pytest.fixture(scope="session")
def real_build(upstream: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real dataset repo, built once a session by the command line; what it printed is build.log beside it."""
    folder = tmp_path_factory.mktemp("real") / "easg-bench"
    command = [sys.executable, "-m", "builder", "build", "--source", str(upstream), "--out", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    folder.with_name("build.log").write_text(done.stdout, encoding="utf-8")
    return folder


def reviewed(id: str, question: str, answer: str, second: str = "clear") -> dict[str, Any]:
    """A line of reviews.jsonl: the first reader calls the question clear."""
    labels = [
        {"reader": f"reader {number}", "label": label, "graph": None, "reason": "", "wording": None}
        for number, label in enumerate(("clear", second), 1)
    ]
    return {"id": id, "question": question, "answer": answer, "labels": labels}


@pytest.fixture
def raw() -> dict[str, Any]:
    """Two small clips, as the JSON of the five input files by role, and the readers' labels as lines; tests change them
    and `save` them.

    In `kitchen` graphs 2 to 4 are asked, and readers called two questions clear; `garden` has a graph without a verb
    and no narrations.
    """

    def graph(pnr: int, verb: str | None, thing: str = "", *relations: tuple[str, str]) -> dict[str, Any]:
        says = [["CW", "verb", verb], [verb, "dobj", thing], *([verb, *pair] for pair in relations)] if verb else []
        shown = {name: {"left": 10.0, "top": 5.0, "width": 20.0, "height": 10.0} for name in (thing, "left_hand")}
        return {
            "graph_uid": f"graph at {pnr}",
            "pre": pnr - 10,
            "pnr": pnr,
            "post": pnr + 20,
            "triplets": says,
            "groundings": {"pre": {}, "pnr": shown, "post": {}} if verb else {},
        }

    kitchen = [
        graph(60, "pick up", "cup"),
        graph(90, "pour", "water", ("into", "cup"), ("from", "jug")),
        graph(120, "put", "jug", ("on", "table"), ("with", "left_hand")),
        graph(150, "wipe", "table", ("with", "cloth")),
    ]
    garden = [graph(60, None), graph(90, "pull", "weed", ("from", "soil")), graph(120, "drop", "weed")]
    size = {"split": "val", "W": 100, "H": 50}
    return {
        "annotations": {
            "kitchen": {"video_uid": "video-1", **size, "graphs": kitchen},
            "garden": {"video_uid": "video-2", **size, "graphs": garden},
        },
        "narrations": {"kitchen": "(2.00s) #C C picks up a cup. (3.00s) #C C pours water.", "garden": ""},
        "votes": {"threshold": 0.5, "scores": {"kitchen": {"2": 0.0, "3": 0.2, "4": 0.4}, "garden": {"2": 0.1}}},
        "purpose_counts": {"kitchen": 2, "garden": 1},
        "spans": {"kitchen": {"start_frame": 30}, "garden": {"start_frame": 0}},
        "reviews": [
            reviewed("kitchen:2:direct", "What did the camera wearer pour from the jug into the cup?", "water"),
            reviewed("kitchen:3:direct", "What did the camera wearer put on the table?", "jug"),
            reviewed("kitchen:4:direct", "What did the camera wearer wipe with the cloth?", "table", "repeats"),
        ],
    }


@pytest.fixture
def save(tmp_path: Path) -> Callable[[dict[str, Any]], Path]:
    """Writes `raw` under the usual names; returns the folder for --source."""

    def write(raw: dict[str, Any]) -> Path:
        folder = tmp_path / "source"
        folder.mkdir(exist_ok=True)
        for role, data in raw.items():
            if role in readings.NAMES and not isinstance(data, str):
                data = "".join(json.dumps(line) + "\n" for line in data)
            text = data if isinstance(data, str) else json.dumps(data)
            (folder / (USUAL_NAMES | readings.NAMES)[role]).write_text(text, encoding="utf-8")
        return folder

    return write


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The folder of SmolLM2-135M-Instruct, a real model; made (94 MB to fetch) where the checkout has none yet."""
    from demo import model

    return model.make()


@pytest.fixture(scope="session")
def tiny_vision(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny random vision model."""
    from demo import tiny_vision_model

    return tiny_vision_model.make(tmp_path_factory.mktemp("models") / "tiny-vision")


@pytest.fixture(scope="session")
def demo_videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a video of every clip of the demo: demo-tea.mp4, ..."""
    from demo import scenes, videos

    folder = tmp_path_factory.mktemp("demo-videos")
    videos.main(scenes.DATA, folder)
    return folder


@pytest.fixture(scope="session")
def demo_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's dataset repo, built in this process."""
    from typer.testing import CliRunner

    from builder.__main__ import app

    folder = tmp_path_factory.mktemp("demo-data") / "demo"
    done = CliRunner().invoke(app, ["build", "--source", str(ROOT / "demo" / "data"), "--out", str(folder)])
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def judged(demo_data: Path, tmp_path: Path) -> Callable[..., Path]:
    """Makes a run folder of the demo's questions with a scripted model and a scripted judge: `say` gives the answer to
    a question, `rate` the probabilities of the scores for an answer."""
    import easg_bench
    from tests.scripted import Scripted
    from videoqa.answering import answer_rows
    from videoqa.benchmarks.easg.rubrics import OURS
    from videoqa.files import write_json
    from videoqa.judge import Judge
    from videoqa.rows import revision
    from videoqa.runs import Run, judge_rows, result

    def make(
        name: str = "org/model",
        say: Callable[[str], str] = lambda text: "a cup",
        rate: Callable[[str], dict[str, float]] = lambda text: {"4": 0.5, "6": 0.4},
        prompt: str = "blind",
    ) -> Path:
        rows = list(easg_bench.load(demo_data))
        config = {
            "format": 1,
            "data": str(demo_data),
            "config": "default",
            "limit": None,
            "revision": revision(rows),
            "rows": len(rows),
            "model": name,
            "model_settings": {},
            "prompt": prompt,
            "max_new_tokens": 64,
        }
        run = Run(tmp_path / f"{name.replace('/', '-')}-{prompt}", config)
        model = Scripted(lambda text, _: say(text), name=name)
        judge = Judge(Scripted(lambda *_: "Because.", chances=rate, can_force=True, name="org/judge"), OURS, "dist")
        for _ in answer_rows(model, rows, run):
            pass
        said = {k: line["prediction"] for k, line in run.answers().items()}
        for _ in judge_rows(judge, rows, said, run, None):
            pass
        write_json(run.folder / "scores.json", result(run, rows, judge.describe()))
        return run.folder

    return make
