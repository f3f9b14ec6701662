"""speed/judge_speed.py runs on a tiny model and its check can fail; the figures themselves are for real models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from speed import judge_speed
from videoqa.reply import Verdict


@pytest.fixture(scope="module")
def tiny_judge(tiny_vision: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny language model of random weights that has a chat template."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    folder = tmp_path_factory.mktemp("models") / "tiny-judge"
    tokenizer = AutoTokenizer.from_pretrained(tiny_vision)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=8192,
        eos_token_id=tokenizer.eos_token_id,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The dataset that the benchmark loads: three clips with four rows and one with a single row."""
    found = [
        {
            "id": f"{clip}:{n}",
            "clip": clip,
            "type": "direct",
            "question": f"What was lifted in step {n}?",
            "answer": thing,
            "context": f"(1.00s) #C C works in the {clip}.",
        }
        for clip in ("kitchen", "garden", "garage")
        for n, thing in enumerate(["jug", "spade", "tyre", "bowl"])
    ]
    found.append({**found[0], "id": "attic:0", "clip": "attic"})
    monkeypatch.setattr(judge_speed.easg_bench, "load", lambda data: found)
    monkeypatch.setattr(judge_speed, "REFERENCE_TOKENS", 40)
    return found


def test_rows_are_the_same_number_of_each_clip_and_answered_by_another_rows_truth(rows: list) -> None:
    items = judge_speed.pick(rows, 2, 3)
    assert [item.context.split()[-1] for item in items] == ["kitchen."] * 3 + ["garden."] * 3
    assert all(item.prediction != item.answer for item in items)
    assert sorted(item.prediction or "" for item in items[:3]) == sorted(item.answer or "" for item in items[:3])


def test_too_few_clips_are_an_error_that_says_how_many_there_are(rows: list) -> None:
    with pytest.raises(SystemExit, match="only 3 clips have 4 rows"):
        judge_speed.pick(rows, 4, 4)


def test_the_interval_of_a_ratio_holds_the_ratio_and_comes_from_the_rows() -> None:
    assert judge_speed.ratio([2.0, 2.0, 2.0, 2.0], 0.5)[0] == 16
    times, low, high = judge_speed.ratio([1.0, 2.0, 3.0, 4.0, 5.0], 0.5)
    assert low < times == 30 < high


def test_a_score_line_is_compared_whole_and_a_reply_without_a_score_by_its_beginning() -> None:
    assert judge_speed.same_line("Score: 1", Verdict(1.0, "ok", raw="Score: 1"))
    assert not judge_speed.same_line("Score: 1", Verdict(10.0, "ok", raw="Score: 10"))
    assert judge_speed.same_line("I like", Verdict(None, "unreadable", raw="I like this.\nAnd that."))
    assert not judge_speed.same_line("I like", Verdict(None, "unreadable", raw="I hate this."))


def test_the_benchmark_runs_and_its_check_passes_in_float32(
    tiny_judge: Path, rows: list, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judge_speed.main(["--model", str(tiny_judge), "--rows", "6", "--clips", "3"]) == 0
    told = capsys.readouterr().out
    assert "6 of 6 rows" in told and "passed" in told
    for way in ("one at a time", "dist", "score", "paper"):
        assert any(line.startswith(way) for line in told.splitlines()), way
    assert "x4" in told


def test_a_difference_in_float32_is_exit_code_1_and_in_bfloat16_only_told(
    tiny_judge: Path, rows: list, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge_speed.Plain, "expected", lambda self, item: 11.0)
    few = ["--model", str(tiny_judge), "--rows", "2", "--clips", "1"]
    assert judge_speed.main(few) == 1
    assert "FAILED" in capsys.readouterr().out
    assert judge_speed.main([*few, "--dtype", "bfloat16"]) == 0
    assert "check" not in capsys.readouterr().out
