"""tasks/lmms_eval: the YAML files and their functions, called as lmms-eval 0.7 calls them, give the numbers of
`easg-bench run` on the same answers."""

from __future__ import annotations

import importlib.util
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from datasets import load_dataset
from scripted import Scripted

from builder.egoschema import card, dataset
from videoqa import evaluate
from videoqa.benchmark import track
from videoqa.hosts import judged, lmms_eval

FOLDER = Path(__file__).resolve().parents[1] / "tasks" / "lmms_eval"
FILES = sorted(FOLDER.glob("*.yaml"))


class Loader(yaml.SafeLoader):
    """Reads `!function utils.NAME` as lmms-eval does: out of a module that is loaded anew for every name."""


def function(loader: yaml.Loader, node: Any) -> Any:
    module, name = loader.construct_scalar(node).split(".")
    spec = importlib.util.spec_from_file_location(module, FOLDER / f"{module}.py")
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return getattr(made, name)


Loader.add_constructor("!function", function)


def task(name: str) -> dict[str, Any]:
    return yaml.load((FOLDER / f"{name}.yaml").read_text(), Loader)


def figures(config: dict[str, Any], data: Path, say: Callable[[str], str]) -> dict[str, float]:
    """What lmms-eval does with a task: data, prompts, results by row, aggregation by metric."""
    docs = config["process_docs"](load_dataset(str(data), config["dataset_name"], split=config["test_split"]))
    kwargs = config["lmms_eval_specific_kwargs"]["default"]
    by_metric: dict[str, list[Any]] = {}
    for doc in docs:
        assert config["doc_to_visual"](doc) == []
        reply = say(config["doc_to_text"](doc, kwargs))
        for metric, item in config["process_results"](doc, [reply.strip()]).items():
            by_metric.setdefault(metric, []).append(item)
    return {one["metric"]: one["aggregation"](by_metric[one["metric"]]) for one in config["metric_list"]}


def judge() -> Scripted:
    def chances(asked: str) -> dict[str, float] | None:
        if "a lost cup" in asked:
            return None
        return {str(len(asked) % 5 + 3): 0.6, str(len(asked) % 5 + 1): 0.3}

    return Scripted(lambda asked, seed: "7", chances=chances, can_force=True, name="judge")


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith("EASG_BENCH_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("EASG_BENCH_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("EASG_BENCH_JUDGE", "judge")
    monkeypatch.setattr(judged, "open_engine", lambda spec: judge())
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "datasets")
    monkeypatch.chdir(tmp_path)
    caches = (judged.scorer, lmms_eval.rows_of, lmms_eval._figures)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_task_is_one_way_of_asking_one_track(path: Path) -> None:
    config = task(path.stem)
    named = config["lmms_eval_specific_kwargs"]["default"]
    of_track = track(named["track"])
    assert config["task"] == path.stem
    assert of_track.ways[named["prompt"]].plain
    assert (config["dataset_path"], config["dataset_name"]) == (of_track.repo, of_track.configs[0])
    assert [one["metric"] for one in config["metric_list"]] == lmms_eval.figure_names(of_track)
    assert config["process_docs"].args == (of_track.name,)
    assert config["process_results"].args == (of_track.name, named["prompt"])
    assert config["generation_kwargs"]["max_new_tokens"] == of_track.max_new_tokens


def test_every_track_has_a_task() -> None:
    named = {task(path.stem)["lmms_eval_specific_kwargs"]["default"]["track"] for path in FILES}
    assert named == {"easg-bench", "egoschema", "worldqa-open", "worldqa-mc"}


@pytest.mark.parametrize(("name", "prompt"), [("easg_bench", "blind"), ("easg_bench_narrations", "narrations")])
def test_the_numbers_are_those_of_our_run(
    name: str, prompt: str, demo_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def say(asked: str) -> str:
        return "a lost cup" if len(asked) % 9 == 0 else "" if len(asked) % 11 == 0 else f"a cup {len(asked) % 7}"

    monkeypatch.setenv("EASG_BENCH_DATA", str(demo_data))
    found = figures(task(name), demo_data, say)
    ours = evaluate(
        lambda conversations: [say(one[-1]["content"]) for one in conversations],
        judge(),
        demo_data,
        prompt=prompt,
        store=tmp_path / "our store",
        out=tmp_path / "run",
        progress=False,
    )
    avg = ours.result.avg
    assert avg.unreadable > 0 and avg.empty > 0, "the answers try what is not a plain score as well"
    assert found["easg_relative"] == ours.score and (found["easg_low"], found["easg_high"]) == ours.interval
    assert [found[f"easg_{one}"] for one in ("n", "unreadable", "empty")] == [avg.n, avg.unreadable, avg.empty]
    assert {kind: found[f"easg_{kind}"] for kind in ours.by_type} == ours.by_type


def rows(golds: list[int | None]) -> list[dict[str, Any]]:
    choices = ["C cooks.", "C cleans.", "C paints.", "C digs.", "C sews."]
    return [
        {
            **{"id": f"q{n}", "clip": f"q{n}", "video": "v", "type": "multiple-choice", "question": f"What is q{n}?"},
            **{"answer": None, "choices": choices, "gold": gold, "context": "", "frame": None, "start_s": 0.0},
            **{"end_s": 180.0, "clip_start_s": 0.0, "evidence": []},
        }
        for n, gold in enumerate(golds)
    ]


def test_multiple_choice_counts_what_it_cannot_read_as_wrong(tmp_path: Path) -> None:
    made = rows([0, 1, 2, None])
    dataset.write(tmp_path / "egoschema", {"subset": made[:3], "full": made}, [], card.OFFICIAL)
    found = figures(task("easgbench_egoschema"), tmp_path / "egoschema", lambda asked: "hm" if "q2" in asked else "A")
    assert found["egoschema_accuracy"] == pytest.approx(100 / 3)
    assert (found["egoschema_n"], found["egoschema_unreadable"]) == (3, 1)
    assert math.isnan(found["egoschema_low"]), "three clips have no interval"


def test_other_data_than_those_that_are_named_end_the_program(tmp_path: Path) -> None:
    for name, golds in (("egoschema", [0, 1, 2]), ("other", [2, 1, 0, 0])):
        made = rows(golds)  # type: ignore[arg-type]
        dataset.write(tmp_path / name, {"subset": made, "full": made}, [], card.OFFICIAL)
    with pytest.raises(SystemExit, match="loaded 4 rows that are not the 3 of"):
        figures(task("easgbench_egoschema"), tmp_path / "other", lambda asked: "A")


def test_a_judge_that_is_not_named_is_told_before_the_model_is_asked(
    demo_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EASG_BENCH_JUDGE")
    monkeypatch.setenv("EASG_BENCH_DATA", str(demo_data))
    with pytest.raises(SystemExit, match="EASG_BENCH_JUDGE is not set"):
        figures(task("easg_bench"), demo_data, lambda asked: pytest.fail("the model was asked"))


def test_a_question_in_all_rotations_is_right_only_if_it_is_right_in_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from builder.__main__ import app
    from demo import worldqa

    worldqa.main(tmp_path / "copy")
    arguments = ["--source", tmp_path / "copy", "--out", tmp_path / "worldqa-open"]
    arguments += ["--notes", tmp_path / "copy" / "notes.json"]
    assert CliRunner().invoke(app, ["worldqa", "build", *map(str, arguments)]).exit_code == 0

    def say(asked: str) -> str:
        return "ABCD"[len(asked) % 3 % 2]

    found = figures(task("easgbench_worldqa_mc"), tmp_path / "worldqa-open", say)
    ours = evaluate(
        lambda conversations: [say(one[-1]["content"]) for one in conversations],
        data=tmp_path / "worldqa-open",
        benchmark="worldqa-mc",
        out=tmp_path / "run",
        progress=False,
    )
    assert (found["worldqa_mc_circular"], found["worldqa_mc_n"]) == (ours.score, ours.result.avg.n)
