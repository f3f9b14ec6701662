"""The lighteval tasks of WorldQA."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lighteval")

from lighteval.models.model_output import ModelResponse
from lighteval.tasks.registry import Registry
from typer.testing import CliRunner

from builder.__main__ import app as builder_app
from demo import worldqa as demo
from tests.scripted import Scripted
from videoqa.benchmark import track
from videoqa.hosts.lighteval import run as lighteval_run
from videoqa.hosts.lighteval import tasks as lighteval_tasks
from videoqa.hosts.lighteval.tasks import RateRows, figures, put, task_table

FILE = Path(__file__).resolve().parents[1] / "tasks" / "worldqa_tasks.py"
OPEN, CHOICE = track("worldqa-open"), track("worldqa-mc")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("worldqa")
    demo.main(folder / "copy")
    arguments = ["--source", folder / "copy", "--out", folder / "data", "--notes", folder / "copy" / "notes.json"]
    assert CliRunner().invoke(builder_app, ["worldqa", "build", *map(str, arguments)]).exit_code == 0
    return folder / "data"


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, data: Path) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith("EASG_BENCH_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("EASG_BENCH_DATA", str(data))
    lighteval_run._patch()
    lighteval_tasks.scorer.cache_clear()
    lighteval_tasks.rated.clear()
    yield
    lighteval_tasks.scorer.cache_clear()
    lighteval_tasks.rated.clear()


def test_both_tracks_have_tasks_on_one_folder_of_data(data: Path) -> None:
    for name, config in (("worldqa_open:open", "default"), ("worldqa_mc:multiple-choice", "multiple-choice")):
        (task,) = Registry(tasks=name, custom_tasks=str(FILE)).load_tasks().values()
        assert (task.dataset_path, task.dataset_config_name) == (str(data), config)
    names = {one.name for table in (task_table(OPEN, str(data)), task_table(CHOICE, str(data))) for one in table}
    assert {"worldqa_mc_augmented:multiple-choice", "worldqa_open_augmented_8:open"} <= names
    assert not any("likelihood" in name for name in names), "lighteval's mean over rotations is no CircularEval"


def rate(rows: list[dict[str, Any]], say: Any) -> dict[str, float]:
    docs = [
        put(dict(row), "worldqa_mc:multiple-choice|0", track="worldqa-mc", prompt="blind", ends=dict) for row in rows
    ]
    records = RateRows("worldqa-mc").compute([ModelResponse(text=[say(row)], input=None) for row in rows], docs)
    assert all({type(value) for value in record.values()} <= {str, float, int} for record in records)
    return figures(records, CHOICE)


def test_multiple_choice_is_right_only_if_it_is_right_in_all_rotations(data: Path) -> None:
    rows = [dict(row) for row in CHOICE.load(str(data), "multiple-choice")]
    oracle = rate(rows, lambda row: "ABCDE"[row["gold"]])
    assert (oracle["worldqa_mc_circular"], oracle["worldqa_mc_consistency"], oracle["worldqa_mc_n"]) == (100, 1, 12)
    constant = rate(rows, lambda row: "A")
    assert (constant["worldqa_mc_circular"], constant["worldqa_mc_consistency"]) == (0, 0)
    assert (constant["worldqa_mc_right_at_A"], constant["worldqa_mc_right_at_B"]) == (1, 0)
    wrong = rate(rows, lambda row: "ABCDE"[(row["gold"] + 1) % len(row["choices"])])
    assert (wrong["worldqa_mc_circular"], wrong["worldqa_mc_consistency"]) == (0, 1)


def test_a_question_that_lighteval_s_limit_cuts_is_left_out(data: Path) -> None:
    rows = [dict(row) for row in CHOICE.load(str(data), "multiple-choice")][:6]
    found = rate(rows, lambda row: "ABCDE"[row["gold"]])
    assert (found["worldqa_mc_n"], found["worldqa_mc_circular"]) == (1, 100)
    none = rate(rows[:2], lambda row: "A")
    assert none["worldqa_mc_n"] == 0 and math.isnan(none["worldqa_mc_circular"])


def test_open_ended_answers_are_rated_by_key_points(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EASG_BENCH_JUDGE", "judge")
    monkeypatch.setenv("EASG_BENCH_STORE", str(data.parent / "store"))
    engine = Scripted(lambda *_: "", chances=lambda text: {"0.3": 1.0} if "hm" in text else {"1": 1.0}, name="judge")
    monkeypatch.setattr("videoqa.hosts.judged.open_engine", lambda spec: engine)
    rows = [dict(row) for row in OPEN.load(str(data), "default")]
    docs = [put(row, "worldqa_open:open|0", track="worldqa-open", prompt="blind", ends=dict) for row in rows]
    records = RateRows("worldqa-open").compute([ModelResponse(text=["hm"], input=None) for _ in rows], docs)
    found = figures(records, OPEN)
    assert found["worldqa_open_percent"] == pytest.approx(30) and found["worldqa_open_n"] == 12
