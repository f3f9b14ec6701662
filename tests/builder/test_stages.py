"""builder/stages.py: what is on disk, what is asked again, and a build that is killed and goes on."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted import Scripted
from typer.testing import CliRunner

from builder import stages
from builder.__main__ import app
from builder.easg.pipeline import DECISIONS
from builder.errors import BuildError
from builder.repo import folder_sha256
from builder.stages import Stages

ASKS = [stages.Request(f"item {i}", [{"role": "user", "content": f"prompt {i}"}], 64) for i in range(5)]


def ask(folder: Path, engine: Scripted, seed: int = 1, asks: list[stages.Request] = ASKS) -> list[str | None]:
    with Stages(folder, engine, DECISIONS) as opened:
        return [said.text for said in opened.ask("votes", asks, seed=seed, temperature=0.7)]


def test_a_reply_is_on_disk_with_all_that_it_depends_on(tmp_path: Path) -> None:
    assert ask(tmp_path, Scripted(lambda text, seed: f"{text}, {seed}")) == [f"prompt {i}, 1" for i in range(5)]
    lines = {line["item"]: line for line in stages.read(tmp_path, "replies")}
    assert len({line["reply"] for line in lines.values()}) == 5
    line = lines["item 3"]
    del line["reply"]
    prompts = {p["prompt"]: p["messages"] for p in stages.read(tmp_path, "prompts")}
    assert prompts[line.pop("prompt")] == ASKS[3].prompt
    assert line == {
        "stage": "votes", "item": "item 3", "seed": 1, "temperature": 0.7, "max_new_tokens": 64, "start": "",
        "model": "scripted", "settings": {"engine": "scripted"},
        "text": "prompt 3, 1", "error": None, "finished": True, "new_tokens": 0,
    }  # fmt: skip


def test_what_was_asked_is_not_asked_again_but_another_seed_prompt_or_model_is(tmp_path: Path) -> None:
    first = Scripted(lambda text, seed: f"first {seed}")
    ask(tmp_path, first)
    again = Scripted(lambda text, seed: "second")
    assert ask(tmp_path, again) == ["first 1"] * 5 and again.asked == []
    assert ask(tmp_path, again, seed=2) == ["second"] * 5
    more = [*ASKS, stages.Request("new", [{"role": "user", "content": "new"}], 64)]
    assert ask(tmp_path, again, asks=more) == ["first 1"] * 5 + ["second"]
    other = Scripted(lambda text, seed: "other", name="other")
    assert ask(tmp_path, other) == ["other"] * 5


def test_the_same_prompt_twice_is_asked_once(tmp_path: Path) -> None:
    engine = Scripted(lambda text, seed: "x")
    assert ask(tmp_path, engine, asks=[ASKS[0], ASKS[0]]) == ["x", "x"] and len(engine.asked) == 1


def test_a_reply_is_made_to_begin_as_asked_where_the_engine_can_do_that(tmp_path: Path) -> None:
    asks = [stages.Request("item", [{"role": "user", "content": "x"}], 64, start='{"')]
    assert ask(tmp_path, Scripted(lambda text, seed: 'a": 1}', can_force=True), asks=asks) == ['{"a": 1}']
    assert ask(tmp_path, Scripted(lambda text, seed: '{"b": 2}'), asks=asks) == ['{"b": 2}']


def test_what_the_model_thought_is_no_part_of_its_reply(tmp_path: Path) -> None:
    thought = "<think>1: unique? No.</think>\n1: repeat"
    for _ in range(2):  # from the engine, then from disk
        texts = ask(tmp_path, Scripted(lambda text, seed: thought), asks=ASKS[:1])
        assert [text and text.strip() for text in texts] == ["1: repeat"]
    assert stages.read(tmp_path, "replies")[0]["text"] == thought


def test_an_error_is_no_reply_and_is_tried_again(tmp_path: Path) -> None:
    assert ask(tmp_path, Scripted(lambda text, seed: None if "3" in text else "x")) == ["x", "x", "x", None, "x"]
    engine = Scripted(lambda text, seed: "y")
    assert ask(tmp_path, engine) == ["x", "x", "x", "y", "x"] and engine.asked == ["prompt 3"]


def test_an_engine_that_only_fails_stops_the_build(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"scripted gives no reply in the stage votes: the prompt does not fit"):
        ask(tmp_path, Scripted(lambda text, seed: None))


def test_decisions_take_their_names_when_the_build_is_whole(tmp_path: Path) -> None:
    engine = Scripted(lambda text, seed: "x")
    with Stages(tmp_path, engine, DECISIONS) as opened:
        opened.decide("votes", index=1)
        opened.decide("generic", index=2)
    assert stages.read(tmp_path, "votes") == [{"index": 1}]
    with pytest.raises(KeyboardInterrupt), Stages(tmp_path, engine, DECISIONS) as opened:
        opened.decide("votes", index=3)
        raise KeyboardInterrupt
    assert stages.read(tmp_path, "votes") == [{"index": 1}], "the whole former one stays"
    with Stages(tmp_path, engine, DECISIONS) as opened:
        opened.decide("votes", index=4)
    assert stages.read(tmp_path, "votes") == [{"index": 4}]
    assert stages.read(tmp_path, "generic") == [], "this build has no such stage"


def test_a_folder_of_something_else_is_told(tmp_path: Path) -> None:
    (tmp_path / "replies.jsonl").write_text('{"a": 1}\n{"a": 2}\n')
    with pytest.raises(BuildError, match="give another --stages"):
        Stages(tmp_path, Scripted(lambda text, seed: "x"), DECISIONS)


# -- a whole build that is killed


def fit(text: str, seed: int) -> str:
    """A reply fit for each stage, by what the prompt asks for."""
    numbers = [line.split(":")[0] for line in text.splitlines() if line[:1].isdigit()]
    if '"repeat"' in text:
        return json.dumps(dict.fromkeys(numbers, "unique"))
    if '"generic"' in text:
        return json.dumps(dict.fromkeys(numbers, "specific"))
    return "I do not know."


def build(engine: Scripted, source: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("videoqa.engines.open_engine", lambda spec: engine)
    options = ["--source", source, "--out", out, "--votes", "llm", "--wording", "llm", "--runs", "2", "--engine", "x"]
    result = CliRunner().invoke(app, ["build", *map(str, options)], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_a_build_that_is_killed_at_any_point_goes_on_and_ends_with_the_same_bytes(
    raw: dict[str, Any], save: Callable[[dict[str, Any]], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, whole, killed = save(raw), tmp_path / "whole", tmp_path / "killed"
    engine = Scripted(fit)
    build(engine, source, whole, monkeypatch)
    total = len(engine.asked)
    assert total > 40
    left = 0

    def deadly(text: str, seed: int) -> str:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return fit(text, seed)

    on_disk = 0
    for left in (1, 2, 20, total // 2):
        child = os.fork()
        if child == 0:
            build(Scripted(deadly), source, killed, monkeypatch)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
        on_disk += left
        assert len(stages.read(tmp_path / "killed.stages", "replies")) == on_disk and not killed.exists()
    half = (tmp_path / "killed.stages" / "replies.jsonl").read_bytes()
    (tmp_path / "killed.stages" / "replies.jsonl").write_bytes(half[:-9])  # killed in the middle of a line
    engine = Scripted(fit)
    with pytest.warns(UserWarning, match="was cut off and is dropped"):
        build(engine, source, killed, monkeypatch)
    assert len(engine.asked) == total - on_disk + 1
    engine = Scripted(fit)
    assert " 0 prompts of this build" in build(engine, source, killed, monkeypatch)
    assert engine.asked == []
    assert folder_sha256(killed) == folder_sha256(whole)
    for name in DECISIONS:
        assert stages.read(tmp_path / "killed.stages", name) == stages.read(tmp_path / "whole.stages", name), name
