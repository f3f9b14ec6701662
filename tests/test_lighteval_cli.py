"""`easg-bench lighteval`: lighteval's command line, run whole, without a network."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("lighteval")

from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc
from typer.testing import CliRunner

from videoqa.commands import command_line
from videoqa.hosts.lighteval import run as lighteval_run
from videoqa.hosts.lighteval import tasks as lighteval_tasks
from videoqa.hosts.logs import read_details
from videoqa.runs import Run

ROOT = Path(__file__).resolve().parents[1]
TASKS = ["--custom-tasks", str(ROOT / "tasks" / "easg_bench_tasks.py")]
MODEL = str(ROOT / "tasks" / "video_model.py")


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, demo_data: Path, tmp_path: Path) -> Iterator[None]:
    """The demo's data, a cache of its own, and no network."""
    for name in [name for name in os.environ if name.startswith("EASG_BENCH_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("EASG_BENCH_DATA", str(demo_data))
    monkeypatch.setenv("EASG_BENCH_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("EASG_BENCH_FRAMES", "uniform:3")
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "datasets")
    monkeypatch.chdir(tmp_path)

    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("a call to the network")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    lighteval_tasks.scorer.cache_clear()
    yield
    lighteval_tasks.scorer.cache_clear()


def lighteval(*arguments: Any) -> Any:
    return CliRunner().invoke(command_line(), ["lighteval", *map(str, arguments)])


def details(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of each task, by the task's name."""
    found = {}
    for path in sorted(folder.glob("details/**/*.parquet")):
        found[path.name.split("|")[0].removeprefix("details_")] = pq.read_table(path).to_pylist()
    return found


def test_an_unknown_task_is_told_with_the_close_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EASG_BENCH_JUDGE", "x")
    done = lighteval("accelerate", "model_name=x", "easg_bench_narations", *TASKS)
    assert isinstance(done.exception, ValueError)
    assert "no task 'easg_bench_narations'; close to it: easg_bench_narrations" in str(done.exception)


def test_no_judge_is_told_with_its_variable() -> None:
    done = lighteval("accelerate", "model_name=x", "easg_bench:before", *TASKS)
    assert isinstance(done.exception, ValueError) and "EASG_BENCH_JUDGE is not set" in str(done.exception)


def test_a_data_folder_without_the_config_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "README.md").write_text("---\nconfigs:\n- config_name: other\n  data_files: x.parquet\n---\n")
    (empty / "x.parquet").write_bytes(b"")
    monkeypatch.setenv("EASG_BENCH_DATA", str(empty))
    monkeypatch.setenv("EASG_BENCH_JUDGE", "x")
    done = lighteval("accelerate", "model_name=x", "easg_bench:before", *TASKS)
    assert isinstance(done.exception, ValueError) and "before" in str(done.exception)


def test_frames_are_not_given_to_a_model_that_would_not_see_them() -> None:
    done = lighteval("accelerate", "model_name=x", "easg_bench_frames:before|0", *TASKS)
    assert isinstance(done.exception, ValueError) and "video_model.py" in str(done.exception)


def test_usage_errors_are_lightevals_own() -> None:
    assert lighteval("accelerate", "model_name=x").exit_code == 2
    assert "accelerate" in lighteval("--help").output


class Counted:
    """A model of lighteval as far as prompts are concerned: a word is a token, a batch is padded to its longest."""

    max_length, use_chat_template, _add_special_tokens = 20, True, True
    prompt_manager = SimpleNamespace(prepare_prompt=lambda doc: doc.query)

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}
        self._tokenizer: Any = self._tokenize

    @property
    def add_special_tokens(self) -> bool:
        return self._add_special_tokens

    def _tokenize(self, text: str, **options: Any) -> dict[str, list[str]]:
        self.options = options
        return {"input_ids": text.split()[-options.get("max_length", 10**6) :]}

    def greedy_until(self, docs: list[Doc]) -> list[ModelResponse]:
        ids = [self._tokenizer(doc.query, max_length=12, add_special_tokens=self.add_special_tokens) for doc in docs]
        width = max(len(one["input_ids"]) for one in ids)
        pads = [width - len(one["input_ids"]) for one in ids]
        return [
            ModelResponse(text=["x"], input_tokens=[0] * width, padded_tokens_count=pad, truncated_tokens_count=99)
            for pad in pads
        ]


def test_prompts_are_cut_at_the_models_own_limit_and_the_cut_is_counted_in_tokens() -> None:
    model, greedy_until = Counted(), lighteval_run._whole(Counted.greedy_until)
    docs = [
        Doc(query="w " * n, choices=[], gold_index=0, generation_size=4, specific={"id": f"row{n}"}, task_name="t|0")
        for n in (3, 16, 17, 30)
    ]
    lighteval_run.cut.clear()
    responses = greedy_until(model, docs)
    assert [response.truncated_tokens_count for response in responses] == [0, 0, 1, 14]
    assert lighteval_run.cut == {"t|0 row17": 1, "t|0 row30": 14}
    assert model.options["add_special_tokens"] is False
    assert model._tokenizer == model._tokenize
    lighteval_run.cut.clear()


@pytest.mark.slow
def test_frames_and_two_stages_with_the_tiny_vision_model(
    tiny_vision: Path, demo_videos: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EASG_BENCH_JUDGE", f"{tiny_vision}?device=cpu")
    some = tmp_path / "some"
    some.mkdir()
    for path in sorted(demo_videos.glob("*.mp4"))[1:]:
        (some / path.name).symlink_to(path)
    monkeypatch.setenv("EASG_BENCH_VIDEOS", str(some))
    missing = sorted(demo_videos.glob("*.mp4"))[0].stem

    out = tmp_path / "out"
    done = lighteval(
        "custom", f"{tiny_vision}?device=cpu", MODEL, "easg_bench_frames,easg_bench_two_stage", *TASKS,
        "--max-samples", "4", "--save-details", "--output-dir", out,
    )  # fmt: skip
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    rows = details(out)
    assert len(rows) == 7
    unanswered = 0
    for name, lines in rows.items():
        for line in lines:
            told, text = json.loads(line["model_response"]["input"]), line["model_response"]["text"]
            assert isinstance(text, list) and len(text) == 1
            if line["doc"]["specific"]["clip"] == missing:
                unanswered += 1
                assert (
                    told["error"].startswith("video_error")
                    and line["metric"]["easg_relative"]["status"] == "unanswered"
                )
                continue
            assert len(text[0]) > 5
            first = told["conversation"][0]["content"]
            assert sum(part["type"] == "image" for part in first) == 3
            assert len(told["conversation"]) == (3 if "two_stage" in name else 1)
    assert done.exit_code == (3 if unanswered else 0)
    (results,) = out.glob("results/**/*.json")
    table = json.loads(results.read_text())["results"]
    assert sum(v["easg_unanswered"] for k, v in table.items() if "_average" in k) == unanswered
    assert "easg_located_hit" in table["easg_bench_two_stage:before|0"]


@pytest.mark.slow
def test_the_scores_are_those_of_easg_bench_run(smollm2: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EASG_BENCH_JUDGE", f"{smollm2}?device=cpu&dtype=float32")
    out = tmp_path / "out"
    done = lighteval(
        "accelerate", f"model_name={smollm2},batch_size=4,dtype=float32,cache_dir={tmp_path / 'cache'}",
        "easg_bench:before,easg_bench:after", *TASKS, "--max-samples", "2", "--save-details", "--output-dir", out,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "easg_bench: Avg. of 2 types" in done.output
    theirs = {d.row["id"]: d for d in read_details(sorted(out.glob("details/**/*.parquet")))}
    assert len(theirs) == 4

    import easg_bench

    rows = [row for row in easg_bench.load(os.environ["EASG_BENCH_DATA"]) if row["id"] in theirs]
    monkeypatch.setattr("videoqa.benchmarks.easg.data.load", lambda *_: rows)
    ours = CliRunner().invoke(
        command_line(),
        ["run", "--model", str(smollm2), "--judge", str(smollm2), "--data", os.environ["EASG_BENCH_DATA"], "--prompt",
         "blind", "--device", "cpu", "--dtype", "float32", "--out", str(tmp_path / "run"), "--store",
         str(tmp_path / "other-store")],
    )  # fmt: skip
    assert ours.exit_code == 0, ours.output
    run = Run(tmp_path / "run")
    (key,) = {line["judge"] for line in run.verdicts_file.read()}
    for name, detail in theirs.items():
        assert run.answers()[name]["prediction"] == detail.prediction
        score = run.verdicts(key, "answer")[name].score
        assert detail.record["score"] == pytest.approx(score, abs=1e-3)
        assert detail.record["truth_score"] == pytest.approx(run.verdicts(key, "truth")[name].score, abs=1e-3)
    table = json.loads(next(out.glob("results/**/*.json")).read_text())["results"]
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())
    assert table["easg_bench:_average|0"]["easg_relative"] == pytest.approx(scores["avg"]["value"], abs=0.01)
    assert table["easg_bench:before|0"]["easg_relative"] == pytest.approx(scores["types"]["before"]["value"], abs=0.01)


@pytest.mark.slow
def test_cut_prompts_are_named_and_the_exit_code_is_3(
    smollm2: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EASG_BENCH_JUDGE", f"{smollm2}?device=cpu")
    whole, short = tmp_path / "whole", tmp_path / "short"
    command = ["easg_bench:before", *TASKS, "--max-samples", "2", "--save-details", "--output-dir"]
    model = f"model_name={smollm2},batch_size=2,dtype=float32,cache_dir={tmp_path / 'cache'}"
    done = lighteval("accelerate", model, *command, whole)
    assert done.exit_code == 0 and not lighteval_run.cut
    done = lighteval("accelerate", f"{model},max_length=140", *command, short)
    assert done.exit_code == 3 and "2 prompts were cut" in done.stderr
    for line in details(short)["easg_bench:before"]:
        assert line["model_response"]["truncated_tokens_count"] > 0
        assert line["doc"]["specific"]["id"] in done.stderr
    assert all(line["model_response"]["truncated_tokens_count"] == 0 for line in details(whole)["easg_bench:before"])


def test_answers_of_other_weights_of_the_same_folder_are_kept_apart(tmp_path: Path) -> None:
    from lighteval.models.custom.custom_model import CustomModelConfig
    from lighteval.utils.cache_management import SampleCache

    lighteval_run._patch()
    model = tmp_path / "model"
    model.mkdir()
    folders = []
    for weights in (b"one", b"two", b"one"):
        (model / "model.safetensors").write_bytes(weights)
        config = CustomModelConfig(model_name=str(model), model_definition_file_path="x.py", cache_dir=str(tmp_path))
        folders.append(SampleCache(config).cache_dir)
    assert folders[0] == folders[2] != folders[1]
    assert not any(model in folder.parents for folder in folders)
