"""What answers cost, and what was asked: tokens and seconds of a row and a run, prompts made again."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import Scripted
from typer.testing import CliRunner

from videoqa import commands, evaluate
from videoqa.engines import ChoiceLogprobs, Conversation, Reply
from videoqa.engines.settings import Settings, set_to
from videoqa.reproduced import prompt_of
from videoqa.runs import Run
from videoqa.usage import said, usage_of

EGO = Path(__file__).resolve().parents[1] / "demo" / "egoschema"


class Counting(Scripted):
    """Counts a token a word, and keeps the last conversation of every row's text."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.seen: list[Conversation] = []

    def generate(self, conversations: Sequence[Conversation], **how: Any) -> Iterator[tuple[int, Reply]]:
        self.seen += conversations
        for index, reply in super().generate(conversations, **how):
            yield index, replace(reply, prompt_tokens=100, new_tokens=len((reply.text or "").split()))

    def choice_logprobs(
        self, conversations: Sequence[Conversation], choices: Sequence[str], **how: Any
    ) -> Iterator[tuple[int, ChoiceLogprobs]]:
        self.seen += conversations
        for index, found in super().choice_logprobs(conversations, choices, **how):
            yield index, replace(found, prompt_tokens=10)


def judge() -> Scripted:
    return Scripted(lambda *_: "7", chances=lambda asked: {"6": 0.9}, can_force=True, name="judge")


@pytest.fixture(autouse=True)
def own_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("videoqa.store.default_store", lambda: tmp_path / "store")


def bench(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *command: Any) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["easg-bench", *map(str, command)])
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        commands.main()
    told = capsys.readouterr()
    return int(end.value.code or 0), told.out, told.err


def test_tokens_and_seconds_stand_in_every_answer_and_add_up(
    demo_data: Path, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    model = Counting(lambda asked, seed: "a blue cup", name="model")
    found = evaluate(model, judge(), demo_data, prompt="blind", limit=10, out=tmp_path / "run", progress=False)
    lines = list(found.run.answers().values())
    assert all((line["prompt_tokens"], line["new_tokens"]) == (100, 3) and line["seconds"] >= 0 for line in lines)
    usage = found.result.usage
    assert usage is not None and (usage.rows, usage.prompt_tokens, usage.new_tokens) == (10, 1000, 30)
    code, out, _ = bench(monkeypatch, capsys, "usage", tmp_path / "run", "--price", "2000,10000")
    assert code == 0 and "1,000 tokens read and 30 written" in out and "2.3000 at 2000 and 10000 a million" in out
    assert "1,000 tokens read" in " ".join(bench(monkeypatch, capsys, "report", tmp_path / "run")[1].split())
    for wrong in ("1", "a,b", "-1,2", "nan,1", "inf,1"):
        code, _, err = bench(monkeypatch, capsys, "usage", tmp_path / "run", "--price", wrong)
        assert code == 2 and "--price" in err and err.count("\n") == 1


def test_a_run_of_an_older_version_has_no_usage_and_says_so(judged: Any, monkeypatch: Any, capsys: Any) -> None:
    run = Run(judged())
    lines = [json.loads(line) for line in run.answers_file.path.read_text().splitlines()]
    old = [{k: v for k, v in line.items() if k not in ("seconds", "new_tokens", "prompt_tokens")} for line in lines]
    run.answers_file.path.write_text("".join(json.dumps(line) + "\n" for line in old))
    code, _, err = bench(monkeypatch, capsys, "usage", run.folder)
    assert code == 2 and "neither tokens nor time" in err


@pytest.fixture(scope="module")
def ego(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from builder.__main__ import app as builder

    data = tmp_path_factory.mktemp("ego") / "ego"
    done = CliRunner().invoke(builder, ["egoschema", "build", "--source", str(EGO), "--out", str(data), "--made"])
    assert done.exit_code == 0, done.output
    return data


@pytest.mark.parametrize(
    ("prompt", "protocol", "tokens"),
    [
        ("blind", "generation", (100, 1)),
        ("blind", "likelihood", (10, 0)),
        ("blind", "yes", (50, 0)),  # five options
        ("two-pass", "generation", (200, 2)),
        ("two-pass", "likelihood", (110, 1)),
    ],
)
def test_all_turns_of_a_row_count_and_its_prompt_can_be_made_again(
    prompt: str, protocol: str, tokens: tuple[int, int], ego: Path, tmp_path: Path
) -> None:
    model = Counting(lambda asked, seed: "B", chances=lambda asked: {"A": 0.9, "Yes": 0.6, "No": 0.4}, name="model")
    captions: dict[str, Any] = {"captions": EGO / "captions.json"} if prompt == "two-pass" else {}
    how: dict[str, Any] = {"config": "made", "protocol": protocol, "limit": 1, "progress": False, **captions}
    found = evaluate(model, data=ego, prompt=prompt, out=tmp_path / "run", **how)
    (identifier, line), *_ = found.run.answers().items()
    assert (line["prompt_tokens"], line.get("new_tokens", 0)) == tokens
    assert list(prompt_of(found.run, identifier)) in [list(one) for one in model.seen]


def test_an_unsure_likelihood_that_is_asked_again_costs_both(ego: Path, tmp_path: Path) -> None:
    model = Counting(lambda asked, seed: "B", chances=lambda asked: {"A": 0.01}, name="model")
    found = evaluate(model, data=ego, config="made", protocol="likelihood", limit=1, progress=False)
    (line,) = found.run.answers().values()
    assert (line["prompt_tokens"], line["new_tokens"]) == (110, 1)


def test_the_prompt_of_a_row_is_printed_with_its_system_text(
    demo_data: Path, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    inner = Counting(lambda asked, seed: "a cup", name="model")
    evaluate(
        set_to(inner, Settings(system="Be brief.")), judge(), demo_data,
        prompt="narrations", limit=5, out=tmp_path / "run", progress=False,
    )  # fmt: skip
    identifier = next(iter(Run(tmp_path / "run").answers()))
    code, out, err = bench(monkeypatch, capsys, "prompt", tmp_path / "run", identifier)
    assert code == 0, err
    wanted = prompt_of(Run(tmp_path / "run"), identifier)
    assert list(wanted) in [list(one) for one in inner.seen]
    assert out.startswith("[system]\nBe brief.\n\n[user]\n") and wanted[-1]["content"] in out
    code, _, err = bench(monkeypatch, capsys, "prompt", tmp_path / "run", "nothing")
    assert code == 2 and "asks no question 'nothing'" in err


def test_frames_and_two_stages_are_made_again_from_the_videos(
    demo_data: Path, demo_videos: Path, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    model = Counting(lambda asked, seed: "1.0 s to 2.0 s", name="model")
    model.script = lambda asked, seed: "1.0 s to 2.0 s"

    def text(conversations: Sequence[Conversation], **how: Any) -> Iterator[tuple[int, Reply]]:
        yield from ((i, Reply("1.0 s to 2.0 s", prompt_tokens=100, new_tokens=6)) for i in range(len(conversations)))

    monkeypatch.setattr(model, "generate", text)
    how: dict[str, Any] = {"videos": demo_videos, "frames": "uniform:2", "limit": 2, "progress": False}
    found = evaluate(model, judge(), demo_data, prompt="two-stage", config="before", out=tmp_path / "run", **how)
    identifier, line = next(iter(found.run.answers().items()))
    assert (line["prompt_tokens"], line["new_tokens"]) == (200, 12)
    code, out, err = bench(monkeypatch, capsys, "prompt", tmp_path / "run", identifier, "--videos", demo_videos)
    assert code == 0, err
    assert out.count("[assistant]\n1.0 s to 2.0 s") == 1 and all(f"<{name}>" in out for name in line["frames"])
    code, _, err = bench(monkeypatch, capsys, "prompt", tmp_path / "run", identifier)
    assert code == 2 and "give --videos" in err


@given(st.lists(st.fixed_dictionaries({}, optional={"new_tokens": st.integers(0, 9), "seconds": st.floats(0, 9)})))
def test_sums_are_of_the_rows_that_tell(lines: list[dict[str, Any]]) -> None:
    found = usage_of(lines)
    told = [line for line in lines if line]
    assert (found is None) == (not told)
    if found is not None:
        assert found["rows"] == len(told) and found["new_tokens"] == sum(line.get("new_tokens", 0) for line in told)
        assert f"{len(told):,} answers" in said(found)
