"""tasks/inspect_easg.py: inspect-ai's own `eval` gives the numbers of `easg-bench run` on the same answers."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai")

from inspect_ai import eval as inspect_eval
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log import EvalLog
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from scripted import Scripted

from builder.egoschema import card, dataset
from videoqa import evaluate
from videoqa.hosts import inspect_ai as host

FILE = Path(__file__).resolve().parents[1] / "tasks" / "inspect_easg.py"


def tasks() -> Any:
    spec = importlib.util.spec_from_file_location("inspect_easg", FILE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
    monkeypatch.setattr(host, "open_engine", lambda spec: judge())
    monkeypatch.setattr(host, "check_engine", lambda spec: None)
    monkeypatch.chdir(tmp_path)
    yield


def answered(task: Any, say: Any, tmp_path: Path, **options: Any) -> EvalLog:
    """The log of inspect-ai's run of the task with a model that answers `say(prompt)`."""

    def reply(messages: Any, *_: Any) -> ModelOutput:
        output = ModelOutput.from_content("mockllm", say(messages[-1].text))
        output.usage = ModelUsage(input_tokens=9, output_tokens=3)  # else it would fetch a tokenizer to count them
        return output

    model = get_model("mockllm/model", custom_outputs=reply)
    (log,) = inspect_eval(task, model=model, log_dir=str(tmp_path / "logs"), display="none", **options)
    return log


def numbers(log: EvalLog) -> dict[str, float]:
    assert log.status == "success" and log.results, log.error
    (score,) = log.results.scores
    return {name: metric.value for name, metric in score.metrics.items()}


def test_the_numbers_are_those_of_our_run(demo_data: Path, tmp_path: Path) -> None:
    def say(prompt: str) -> str:
        return "a lost cup" if len(prompt) % 9 == 0 else "" if len(prompt) % 11 == 0 else f"a cup {len(prompt) % 7}"

    log = answered(tasks().easg_bench(data=str(demo_data), judge="judge", prompt="narrations"), say, tmp_path)
    found = numbers(log)
    ours = evaluate(
        lambda conversations: [say(one[-1]["content"]) for one in conversations],
        judge(),
        demo_data,
        prompt="narrations",
        store=tmp_path / "our store",
        out=tmp_path / "run",
        progress=False,
    )
    avg = ours.result.avg
    assert avg.unreadable > 0 and avg.empty > 0, "the answers try what is not a plain score as well"
    assert found["easg_relative"] == ours.score
    assert (found["easg_low"], found["easg_high"]) == ours.interval
    assert {name: found[f"easg_{name}"] for name in ours.by_type} == ours.by_type
    counts = ("easg_n", "easg_unreadable", "easg_empty", "easg_judge_errors")
    assert [found[name] for name in counts] == [avg.n, avg.unreadable, avg.empty, avg.errors]
    frame = ours.to_pandas().set_index("id")
    for sample in log.samples or []:
        assert sample.scores is not None
        (score,) = sample.scores.values()
        mine = frame.loc[sample.id]
        assert score.answer == mine["prediction"] and score.metadata["record"]["status"] == mine["status"]  # type: ignore[index]


def test_multiple_choice_needs_no_judge_and_counts_what_it_cannot_read_as_wrong(tmp_path: Path) -> None:
    choices = ["C cooks.", "C cleans.", "C paints.", "C digs.", "C sews."]
    rows = [
        {
            **{"id": name, "clip": name, "video": "v", "type": "multiple-choice", "question": f"What is {name}?"},
            **{"answer": None, "choices": choices, "gold": gold, "context": "", "frame": None, "start_s": 0.0},
            **{"end_s": 180.0, "clip_start_s": 0.0, "evidence": []},
        }
        for name, gold in (("a", 0), ("b", 1), ("c", 2), ("d", None))
    ]
    dataset.write(tmp_path / "ego", {"subset": rows[:3], "full": rows}, [], card.OFFICIAL)

    def say(prompt: str) -> str:
        return "hm" if "What is c?" in prompt else "A"

    found = numbers(answered(tasks().egoschema(data=str(tmp_path / "ego")), say, tmp_path))
    ours = evaluate(
        lambda conversations: [say(one[-1]["content"]) for one in conversations],
        data=tmp_path / "ego",
        out=tmp_path / "run",
        progress=False,
    )
    assert found["egoschema_accuracy"] == ours.score == pytest.approx(100 / 3)
    assert (found["egoschema_n"], found["egoschema_unreadable"]) == (3, 1)


def test_several_epochs_are_refused_and_not_averaged(demo_data: Path, tmp_path: Path) -> None:
    task = tasks().easg_bench(data=str(demo_data), judge="judge")
    log = answered(task, lambda prompt: "a cup", tmp_path, epochs=2, limit=1)
    assert log.status == "error" and log.error and "one epoch" in log.error.message


def test_what_can_be_mended_is_told_before_the_model_is_asked(demo_data: Path) -> None:
    with pytest.raises(PrerequisiteError, match="EASG_BENCH_JUDGE is not set"):
        tasks().easg_bench(data=str(demo_data))
    with pytest.raises(PrerequisiteError, match="--prompt frames: inspect-ai asks in one turn of text, which is blind"):
        tasks().easg_bench(data=str(demo_data), judge="judge", prompt="frames")
    with pytest.raises(PrerequisiteError, match="--prompt x: EASG-Bench has"):
        tasks().easg_bench(data=str(demo_data), judge="judge", prompt="x")


def test_a_reply_that_a_filter_held_back_is_no_answer() -> None:
    assert "content filter" in host.error_of("content_filter", "half")
    assert host.error_of("max_tokens", "") == "no text came (stop_reason max_tokens)"
    assert host.error_of("stop", "") == "" and host.error_of("max_tokens", "cut") == ""


def test_the_log_can_be_read_again_with_every_record(demo_data: Path, tmp_path: Path) -> None:
    from inspect_ai.log import read_eval_log

    log = answered(tasks().easg_bench(data=str(demo_data), judge="judge"), lambda prompt: "a cup", tmp_path, limit=5)
    again = read_eval_log(log.location)
    assert numbers(again) == numbers(log) and len(again.samples or []) == 5
    record = again.samples[0].scores["easg_bench"].metadata["record"]  # type: ignore[index]
    assert json.loads(record["judge"])["model"] == "judge" and json.loads(record["verdict"])["status"] == "ok"
