"""videoqa/evaluation.py: a benchmark from Python gives what the command line gives."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from scripted import Scripted

import videoqa
from videoqa import Evaluation, commands, evaluate
from videoqa.errors import UserError

ROOT = Path(__file__).resolve().parents[1]


def model() -> Scripted:
    return Scripted(lambda asked, seed: f"a cup {len(asked) % 7}", name="model")


def judge() -> Scripted:
    def chances(asked: str) -> dict[str, float]:
        at = len(asked) % 5
        return {str(at + 3): 0.6, str(at + 1): 0.3}

    return Scripted(lambda asked, seed: "7", chances=chances, can_force=True, name="judge")


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Any spec that is opened is the scripted judge or model; verdicts go to a folder of the test."""
    monkeypatch.setattr("videoqa.engines.open_engine", lambda spec, **_: model() if spec == "model" else judge())
    monkeypatch.setattr("videoqa.store.default_store", lambda: tmp_path / "store")


@pytest.mark.usefixtures("engines")
def test_the_numbers_are_those_of_the_command_line(
    demo_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["run", "--model", "model", "--judge", "judge", "--data", str(demo_data), "--prompt", "narrations"]
    command += ["--limit", "20", "--out", str(tmp_path / "a"), "--store", str(tmp_path / "other store")]
    monkeypatch.setattr(sys, "argv", ["easg-bench", *command])
    with pytest.raises(SystemExit) as end:
        commands.main()
    assert end.value.code in (0, None)
    found = evaluate("model", "judge", demo_data, prompt="narrations", limit=20, out=tmp_path / "b", progress=False)
    mine, theirs = (json.loads((tmp_path / name / "scores.json").read_text()) for name in "ba")
    for ours in (mine, theirs):
        del ours["date"], ours["command"], ours["usage"]["seconds"]
    assert mine == theirs
    configs = [json.loads((tmp_path / name / "config.json").read_text()) for name in "ab"]
    assert configs[0] == configs[1]
    assert found.score == mine["avg"]["value"] and found.interval == tuple(mine["avg"]["interval"])
    assert found.by_type == {name: one["value"] for name, one in mine["types"].items()}


@pytest.mark.usefixtures("engines")
def test_what_a_notebook_shows(demo_data: Path) -> None:
    found = evaluate(model(), judge(), demo_data, prompt="blind", limit=10, progress=False)
    assert isinstance(found, Evaluation)
    frame = found.to_pandas()
    assert list(frame.columns[:5]) == ["id", "clip", "type", "question", "answer"] and len(frame) == 10
    assert set(frame["status"]) == {"ok"} and frame["prediction"].str.startswith("a cup").all()
    assert re.fullmatch(r"<model \(blind\): \d+\.\d\d.*, 10 of 10 rows have a score>", repr(found)), repr(found)
    shown = found._repr_html_()
    assert "<table>" in shown and "Avg." in shown and f"{found.score:.2f}" in shown
    assert f"{found.score:.2f}" in found.table() and "Qwen2.5-VL-7B" in found.table() and found.failed == 0


@pytest.mark.usefixtures("engines")
def test_names_of_models_are_no_markup(demo_data: Path) -> None:
    hostile = evaluate(model(), judge(), demo_data, prompt="blind", limit=5, progress=False, name="x")
    object.__setattr__(hostile.result, "model", "<img src=x>")
    assert "<img" not in hostile._repr_html_()


@pytest.mark.usefixtures("engines")
def test_a_function_is_a_model(demo_data: Path) -> None:
    asked: list[Any] = []

    def mine(conversations: list[Any]) -> list[str | None]:
        asked.extend(conversations)
        return ["the jug" if one[-1]["role"] == "user" else "" for one in conversations[:-1]] + [None]

    found = evaluate(mine, judge(), demo_data, prompt="blind", limit=10, progress=False, batch_size=5)
    assert len(asked) == 10 and all(isinstance(one[-1]["content"], str) for one in asked)
    assert found.result.model == "mine" and found.failed == 2 == found.result.unanswered
    assert set(found.to_pandas()["error"].dropna()) == {"mine gave no reply"}


@pytest.mark.usefixtures("engines")
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda c: "a text", "a list of 5 replies, not str"),
        (lambda c: ["one"], "a list of 5 replies, not 1 of them"),
        (lambda c: [5] * len(c), "must return texts, not int"),
        (5, "a int is no model"),
        (("a", "b", "c"), "not as 3 things"),
        ("/nowhere/model", "no model folder"),
    ],
)
def test_what_is_no_model_is_said(wrong: Any, said: str, demo_data: Path) -> None:
    with pytest.raises((UserError, FileNotFoundError), match=said):
        evaluate(wrong, judge(), demo_data, prompt="blind", limit=5, progress=False)


def test_a_missing_judge_is_said_before_anything_is_asked(demo_data: Path) -> None:
    with pytest.raises(UserError, match="name one with --judge"):
        evaluate(lambda c: pytest.fail("asked"), data=demo_data)


def loaded() -> tuple[Any, Any]:
    """A tiny model and its tokenizer, as people have them in a notebook."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    from tiny_models import tiny

    folder = str(tiny("llama"))
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    return model, transformers.AutoTokenizer.from_pretrained(folder)


@pytest.mark.usefixtures("engines")
def test_a_loaded_model_answers_as_its_folder_does_and_is_given_back_as_it_was(demo_data: Path) -> None:
    from tiny_models import tiny

    from videoqa.engines.transformers import TransformersEngine, weights_hash

    model, tokenizer = loaded()
    model.train()
    kept = model.generation_config
    how: dict[str, Any] = {"prompt": "blind", "limit": 10, "max_new_tokens": 8, "progress": False}
    found = evaluate((model, tokenizer), judge(), demo_data, **how)
    assert model.training and model.generation_config is kept
    other = evaluate(TransformersEngine(str(tiny("llama"))), judge(), demo_data, **how)
    assert found.to_pandas()["prediction"].tolist() == other.to_pandas()["prediction"].tolist()
    assert found.run.config["model_settings"]["revision"] == f"loaded {weights_hash(model)}"
    before = weights_hash(model)
    next(model.parameters()).data.add_(1.0)
    assert weights_hash(model) != before, "another state of the model is another model"


@pytest.mark.usefixtures("engines")
def test_the_readmes_lines_run(demo_data: Path, tmp_path: Path) -> None:
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("## From Python\n")[1].split("\n## ")[0]
    code = re.findall(r"```python\n(.*?)```", section, re.S)[0]
    assert "build/easg-bench" in code and len([line for line in code.splitlines() if line.strip()]) <= 5
    model, tokenizer = loaded()
    names: dict[str, Any] = {"model": model, "tokenizer": tokenizer}
    exec(code.replace("build/easg-bench", str(demo_data)), names)
    assert isinstance(names["result"], videoqa.Evaluation) and len(names["worst"]) == 5


@pytest.mark.usefixtures("engines")
def test_a_trainer_logs_the_scores_of_each_evaluation(demo_data: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    model, tokenizer = loaded()
    texts = [tokenizer("the camera wearer lifts the cup")["input_ids"]] * 4
    data = [{"input_ids": ids, "labels": ids} for ids in texts]
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "trained"),
        max_steps=2,
        eval_strategy="steps",
        eval_steps=1,
        per_device_train_batch_size=2,
        learning_rate=0.1,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = transformers.Trainer(model, arguments, train_dataset=data, eval_dataset=data, processing_class=tokenizer)
    videoqa.log_scores(trainer, data=demo_data, judge=judge(), prompt="blind", limit=5, max_new_tokens=4)
    with torch.enable_grad():  # importing lighteval, as other tests do, turns gradients off for good
        trainer.train()
    logged = [line for line in trainer.state.log_history if "eval_easg_score" in line]
    assert [line["step"] for line in logged] == [1, 2]
    assert {"eval_easg_failed", "eval_easg_before"} <= set(logged[0]) and logged[0]["eval_easg_score"] > 0
    configs = [json.loads(p.read_text()) for p in sorted((tmp_path / "trained" / "easg-bench").glob("*/config.json"))]
    assert len({one["model_settings"]["revision"] for one in configs}) == 2, "each step is a model of its own"
    assert "eval_easg_score" in trainer.evaluate()


def test_importing_videoqa_loads_nothing_heavy() -> None:
    import subprocess

    code = "import sys, videoqa; print(sorted({'torch', 'transformers', 'datasets', 'pandas'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        videoqa.nothing  # noqa: B018
