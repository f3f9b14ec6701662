"""The lighteval tasks: how they are found, what they ask, and what the metric makes of the answers."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lighteval")

from lighteval.models.model_output import ModelResponse
from lighteval.tasks.registry import Registry
from lighteval.tasks.requests import Doc, SamplingMethod

import easg_bench
from tests.scripted import Scripted
from videoqa.benchmarks.easg import EASG
from videoqa.benchmarks.easg.published import TYPES
from videoqa.benchmarks.easg.rubrics import OURS
from videoqa.hosts.judged import metric_name
from videoqa.hosts.lighteval import run as lighteval_run
from videoqa.hosts.lighteval import tasks as lighteval_tasks
from videoqa.hosts.lighteval.tasks import RateRows, figures, metric, put, task_table
from videoqa.judge import Judge

METRIC = metric_name(EASG)
ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "tasks" / "easg_bench_tasks.py"


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, demo_data: Path, tmp_path: Path) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith("EASG_BENCH_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("EASG_BENCH_DATA", str(demo_data))
    monkeypatch.setenv("EASG_BENCH_JUDGE", "scripted")
    monkeypatch.setenv("EASG_BENCH_STORE", str(tmp_path / "store"))
    lighteval_run._patch()
    lighteval_tasks.rated.clear()
    yield
    lighteval_tasks.rated.clear()


def judged_by(monkeypatch: pytest.MonkeyPatch, script: Any) -> None:
    judge = Judge(Scripted(script), OURS, mode="score")
    monkeypatch.setattr(lighteval_tasks, "scorer", lambda track: judge)


def doc(name: str, kind: str = "before", clip: str = "a", prompt: str = "blind", **more: Any) -> Doc:
    row: dict[str, Any] = {"id": name, "clip": clip, "video": "v", "type": kind, "question": f"Q {name}?"}
    row |= {
        "answer": "pick jug",
        "context": "",
        "start_s": 12.0,
        "end_s": 14.0,
        "clip_start_s": 10.0,
        "prompt": prompt,
    } | more
    return Doc(query="", choices=["pick jug"], gold_index=0, specific=row, task_name=f"easg_bench:{kind}|0")


def said(text: Any, **told: Any) -> ModelResponse:
    given = json.dumps({"conversation": [], "error": None, "located": None} | told) if told else None
    return ModelResponse(text=text, input=given)


# -- how tasks are found ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["absolute", "relative", "module"])
@pytest.mark.parametrize(
    ("names", "count"),
    [
        ("easg_bench:purpose|0", 1),
        ("easg_bench|0", 5),
        ("easg_bench", 5),
        ("custom|easg_bench:purpose|0", 1),
        ("easg_bench_narrations,easg_bench_frames:after", 6),
        ("easg_bench_two_stage", 2),
    ],
)
def test_task_names_resolve(
    given: str, names: str, count: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT))
    there = {"absolute": str(FILE), "relative": os.path.relpath(FILE, tmp_path), "module": "tasks.easg_bench_tasks"}
    assert len(Registry(tasks=names, custom_tasks=there[given]).load_tasks()) == count


def test_an_unknown_name_is_told_with_the_close_ones() -> None:
    with pytest.raises(ValueError) as error:
        Registry(tasks="easg_bench:purpos|0", custom_tasks=str(FILE))
    assert "easg_bench:purpose" in lighteval_run._mended(error.value)
    with pytest.raises(ValueError) as error:
        Registry(tasks="mmlu", custom_tasks=str(FILE))
    assert "there are: easg_bench, easg_bench_" in lighteval_run._mended(error.value)


def test_the_file_imports_without_optional_packages_and_its_tasks_read_the_same_in_every_process() -> None:
    code = (
        "import sys\n"
        "for name in ('openai', 'vllm', 'litellm', 'av', 'PIL.ImageDraw'): sys.modules[name] = None\n"
        "import importlib.util as u\n"
        f"spec = u.spec_from_file_location('easg_bench_tasks', {str(FILE)!r})\n"
        "module = u.module_from_spec(spec); spec.loader.exec_module(module)\n"
        "for config in module.TASKS_TABLE: print(str(config))\n"
    )
    environment = {k: v for k, v in os.environ.items() if k not in ("EASG_BENCH_JUDGE", "PYTHONHASHSEED")}
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**environment, "PYTHONHASHSEED": seed, "HF_HUB_OFFLINE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "2")
    ]
    first, second = (run.communicate(timeout=280) for run in runs)
    assert all(run.returncode == 0 for run in runs), first[1] + second[1]
    assert first[0] == second[0] and "easg_bench_two_stage:after" in first[0] and "0x" not in first[0]


def test_ours_and_no_other_tasks_are_loaded_so_that_nothing_is_fetched() -> None:
    found = Registry.load_all_task_configs(custom_tasks=str(FILE))
    assert len(found) == sum(len(way.types or EASG.types) for way in EASG.ways.values())
    assert all(name.startswith("easg_bench") for name in found)


def test_the_version_changes_with_the_data_and_the_frames(demo_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(folder: Path) -> int:
        return task_table(EASG, str(folder))[0].version

    before = version(demo_data)
    assert version(demo_data) == before
    (demo_data / "data" / "more-000.parquet").write_bytes(b"")
    try:
        assert version(demo_data) != before
    finally:
        (demo_data / "data" / "more-000.parquet").unlink()
    monkeypatch.setenv("EASG_BENCH_FRAMES", "uniform:16")
    assert version(demo_data) != before


# -- what they ask ----------------------------------------------------------------------------------------------------


def test_the_prompt_is_that_of_easg_bench_run(demo_data: Path) -> None:
    for name in ("blind", "narrations"):
        for row in easg_bench.load(demo_data):
            made = put(dict(row), "t", track=EASG.name, prompt=name, ends=dict)
            way = EASG.ways[name]
            assert (made.instruction or "") + made.query == way.instruction + way.query(row)
            assert made.images is None


def test_no_judge_and_no_videos_are_told_before_a_model_is_loaded(
    demo_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = dict(easg_bench.load(demo_data)[0])
    with pytest.raises(ValueError, match="EASG_BENCH_VIDEOS is not set"):
        put(row, "t", track=EASG.name, prompt="frames", ends=dict)
    monkeypatch.delenv("EASG_BENCH_JUDGE")
    with pytest.raises(ValueError, match="EASG_BENCH_JUDGE is not set"):
        put(row, "t", track=EASG.name, prompt="blind", ends=dict)
    monkeypatch.setenv("EASG_BENCH_JUDGE", "x")
    monkeypatch.setenv("EASG_BENCH_VIDEOS", "videos")
    monkeypatch.setenv("EASG_BENCH_FRAMES", "fps:0")
    with pytest.raises(ValueError, match="fps must be above 0"):
        put(row, "t", track=EASG.name, prompt="frames", ends=dict)


def test_every_task_is_generative_so_that_vision_models_of_lighteval_can_run_it(demo_data: Path) -> None:
    for config in task_table(EASG, str(demo_data)):
        assert [m.category for m in config.metrics] == [SamplingMethod.GENERATIVE]


# -- what the metric makes of the answers -----------------------------------------------------------------------------


def test_each_row_gets_its_score_and_the_score_of_its_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    judged_by(monkeypatch, lambda asked, _: "3\n" if "dropped it" in asked else "9\n")
    records = RateRows(EASG.name).compute([said(["dropped it"]), said(["pick jug"])], [doc("1"), doc("2")])
    assert [(r["score"], r["truth_score"], r["status"]) for r in records] == [(3.0, 9.0, "ok"), (9.0, 9.0, "ok")]
    assert [r["match_exact"] for r in records] == [0.0, 1.0]
    found = figures(records, EASG)
    assert found[METRIC] == pytest.approx(100 * 6 / 9) and found["easg_score"] == 6 and found["easg_n"] == 2


def test_a_string_answer_of_lightevals_vision_model_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    judged_by(monkeypatch, lambda *_: "8\n")
    (record,) = RateRows(EASG.name).compute([said("picked up the jug")], [doc("1")])
    assert record["match_object"] == 1.0


def test_a_judge_that_fails_on_one_row_costs_that_row_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    judged_by(monkeypatch, lambda asked, _: None if "Q 2?" in asked and "dropped it" in asked else "5\n")
    records = RateRows(EASG.name).compute(
        [said(["dropped it"])] * 3, [doc("1", clip="a"), doc("2", clip="b"), doc("3", clip="c")]
    )
    found = figures(records, EASG)
    assert found["easg_judge_errors"] == 1 and found["easg_unreadable"] == 1 and found["easg_n"] == 3
    assert found[METRIC] == 100.0


def test_a_judge_that_cannot_be_opened_loses_no_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(track: str) -> Judge:
        raise OSError("no such model")

    monkeypatch.setattr(lighteval_tasks, "scorer", broken)
    (record,) = RateRows(EASG.name).compute([said(["dropped it"])], [doc("1")])
    assert record["status"] == "judge_error" and "no such model" in record["verdict"]
    assert math.isnan(figures([record], EASG)[METRIC])


def test_rows_without_an_answer_are_counted_and_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    judged_by(monkeypatch, lambda *_: "5\n")
    given = [said([""], error="video_error: a.mp4: cut"), said(["dropped it"], warning=None)]
    records = RateRows(EASG.name).compute(given, [doc("1", prompt="frames"), doc("2", prompt="frames")])
    assert [r["status"] for r in records] == ["unanswered", "ok"] and records[0]["error"].startswith("video_error")
    found = figures(records, EASG)
    assert found["easg_unanswered"] == 1 and found["easg_n"] == 1


def test_a_model_that_was_shown_no_frames_gets_no_score_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    judged_by(monkeypatch, lambda *_: "5\n")
    (record,) = RateRows(EASG.name).compute([said(["dropped it"])], [doc("1", prompt="frames")])
    assert record["status"] == "unanswered" and "video_model.py" in record["error"]


def test_the_located_time_is_scored_on_the_clips_axis(monkeypatch: pytest.MonkeyPatch) -> None:
    judged_by(monkeypatch, lambda *_: "5\n")
    given = [said(["dropped it"], located="2 s to 4 s"), said(["dropped it"], located="no idea")]
    records = RateRows(EASG.name).compute(given, [doc("1", prompt="two-stage"), doc("2", prompt="two-stage")])
    found = figures(records, EASG)
    assert (found["easg_located_hit"], found["easg_located_iou"], found["easg_located_read"]) == (0.5, 0.5, 0.5)


def test_every_task_gives_the_same_keys_all_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    judged_by(monkeypatch, lambda *_: "nothing to be read")
    keys = set()
    for kind in TYPES:
        found = metric(EASG).corpus_level_fn.compute_corpus(  # type: ignore[union-attr]
            RateRows(EASG.name).compute([said(["x"])], [doc("1", kind=kind)])
        )
        assert all(type(value) is float for value in found.values())
        keys.add(tuple(found))
    assert len(keys) == 1
    assert not any("mean" in key for key in next(iter(keys)))  # lighteval gives such a key the wrong error bar


def test_the_average_is_over_types_and_its_interval_over_clips(monkeypatch: pytest.MonkeyPatch) -> None:
    judged_by(monkeypatch, lambda asked, _: "8\n" if "dropped it" not in asked else "4\n" if "Q b" in asked else "2\n")
    few = RateRows(EASG.name).compute([said(["dropped it"])] * 2, [doc("b1", clip="1"), doc("b2", clip="2")])
    many = [doc(f"a{n}", kind="after", clip=str(n)) for n in range(6)]
    more = RateRows(EASG.name).compute([said(["dropped it"])] * 6, many)
    found = figures([*few, *more], EASG)
    assert found[METRIC] == pytest.approx((50 + 25) / 2)
    assert found["easg_low"] <= found[METRIC] <= found["easg_high"] and found["easg_n"] == 8
