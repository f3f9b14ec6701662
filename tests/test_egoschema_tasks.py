"""The lighteval tasks of EgoSchema."""

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

from builder.egoschema import card, dataset
from videoqa.benchmarks.egoschema import EGOSCHEMA, load
from videoqa.errors import UserError
from videoqa.hosts.lighteval import run as lighteval_run
from videoqa.hosts.lighteval import tasks as lighteval_tasks
from videoqa.hosts.lighteval.tasks import RateRows, figures, put, put_letters, task_table

FILE = Path(__file__).resolve().parents[1] / "tasks" / "egoschema_tasks.py"


def row(name: str, gold: int | None) -> dict[str, Any]:
    choices = ["C cooks.", "C cleans.", "C paints.", "C digs.", "C sews."]
    return {
        **{"id": name, "clip": name, "video": "v", "type": "multiple-choice", "question": f"What is {name}?"},
        **{"answer": None, "choices": choices, "gold": gold, "context": "", "frame": None, "start_s": 0.0},
        **{"end_s": 180.0, "clip_start_s": 0.0, "evidence": []},
    }


ROWS = [row("a", 0), row("b", 1), row("c", 2), row("d", None)]


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    for name in [name for name in os.environ if name.startswith("EASG_BENCH_")]:
        monkeypatch.delenv(name)
    data = tmp_path / "egoschema"
    dataset.write(data, {"subset": ROWS[:3], "full": ROWS}, [], card.OFFICIAL)
    monkeypatch.setenv("EASG_BENCH_DATA", str(data))
    lighteval_run._patch()
    lighteval_tasks.scorer.cache_clear()
    lighteval_tasks.rated.clear()
    yield data
    lighteval_tasks.scorer.cache_clear()
    lighteval_tasks.rated.clear()


def test_the_tasks_are_found_and_ask_the_subset(settings: Path) -> None:
    for name in ("egoschema:multiple-choice", "egoschema_likelihood:multiple-choice|0"):
        (task,) = Registry(tasks=name, custom_tasks=str(FILE)).load_tasks().values()
        assert (task.dataset_config_name, task.dataset_path) == ("subset", str(settings))


def test_the_prompt_is_that_of_easg_bench_run() -> None:
    way = EGOSCHEMA.ways["blind"]
    doc = put(ROWS[1], "t", track="egoschema", prompt="blind", ends=dict)
    assert f"{doc.instruction}{doc.query}" == way.instruction + way.query(ROWS[1])
    assert (doc.choices, doc.gold_index) == (list("ABCDE"), 1)
    assert put_letters(ROWS[1], "t", track="egoschema", prompt="blind").query == doc.query
    with pytest.raises(UserError, match="question d: its right answer is withheld"):
        put_letters(ROWS[3], "t", track="egoschema", prompt="blind")


def test_log_probability_is_lightevals_own_accuracy(settings: Path) -> None:
    (task,) = [one for one in task_table(EGOSCHEMA, str(settings)) if "likelihood" in one.name]
    (metric,) = task.metrics  # lighteval puts the metric itself in the place of its name
    assert getattr(metric, "value", metric).metric_name == "acc"


def test_the_reply_is_read_without_a_judge_and_what_is_withheld_is_no_score() -> None:
    docs = [put(one, "egoschema:multiple-choice|0", track="egoschema", prompt="blind", ends=dict) for one in ROWS]
    replies = ["(A)", "no idea", "The answer is A.", "B"]
    responses = [ModelResponse(text=[text], input=None) for text in replies]
    records = RateRows("egoschema").compute(responses, docs)
    assert [record["status"] for record in records] == ["ok", "unreadable", "ok", "withheld"]
    found = figures(records, EGOSCHEMA)
    assert found["egoschema_accuracy"] == pytest.approx(100 / 3)
    assert (found["egoschema_n"], found["egoschema_unreadable"], found["egoschema_unanswered"]) == (3, 1, 0)
    assert found["egoschema_chance"] == pytest.approx(0.2) and math.isnan(found["egoschema_mass"])


def test_another_config_can_be_asked(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EASG_BENCH_CONFIG", "full")
    (task,) = Registry(tasks="egoschema:multiple-choice", custom_tasks=str(FILE)).load_tasks().values()
    assert task.dataset_config_name == "full"
    assert len(load(str(settings), "full")) == 4
