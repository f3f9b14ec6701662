"""What 10, 100 and 1,000 models cost on so many GPUs, on paper: tokens are counted, the rest is arithmetic.

    python speed/scale.py --data build/easg-bench --tokenizer build/models/smollm2

Every prompt token costs two operations a weight; a step of decoding reads all weights once for its whole batch; a
start reads the weights from disk and waits for the engine. Models are spread over the GPUs whole, one GPU each; the
judge is loaded once on every GPU, and rates everything. `Machine` holds NVIDIA's figures for one H200 and assumptions;
what a real machine reaches of its operations and bytes is `reached`.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

MODELS, GPUS = (10, 100, 1000), (1, 8, 64)


@dataclass(frozen=True, slots=True)
class Machine:
    """One GPU: dense bfloat16 operations and bytes of memory traffic per second, and the way to it."""

    operations: float = 989e12
    bytes: float = 4.8e12
    reached: float = 0.4  # of both
    disk: float = 2e9  # bytes per second
    start_s: float = 60.0  # of the engine, the weights apart: imports, compiled graphs, profiling


@dataclass(frozen=True, slots=True)
class Work:
    """All rows of one model once: tokens that go through it as prompts, and that it makes."""

    read: int
    new: int


def seconds(work: Work, weights: float, batch: int, machine: Machine) -> tuple[float, float]:
    """Of prefill and of decoding, with bfloat16 weights; a token takes its share of a step."""
    prefill = 2 * weights * work.read / (machine.operations * machine.reached)
    decode = 2 * weights * work.new / batch / (machine.bytes * machine.reached)
    return prefill, decode


def load_s(weights: float, machine: Machine) -> float:
    return machine.start_s + 2 * weights / machine.disk


def hours(models: int, gpus: int, per_model: float, judging: float, load: float, judge_load: float) -> float:
    """Wall time: the GPU with the most models ends last."""
    each = math.ceil(models / gpus)
    return (each * (load + per_model + judging) + judge_load) / 3600


def read_once(ids: Sequence[list[int]]) -> int:
    """Prompt tokens, those that rows of a clip begin with in common once."""
    from videoqa.engines.prefixes import plan_groups

    return sum(map(len, ids)) - sum((len(group.rows) - 1) * group.length for group in plan_groups(ids))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", required=True, help="folder of `python -m builder build`")
    parser.add_argument("--tokenizer", required=True, help="folder or Hub id")
    parser.add_argument("--weights", type=float, default=8e9, help="of the models and of the judge")
    parser.add_argument("--new-tokens", type=int, default=40, help="of an answer")
    parser.add_argument("--batch", type=int, default=256, help="rows that are decoded together")
    options = parser.parse_args(arguments)
    from transformers import AutoTokenizer

    import easg_bench
    from videoqa.benchmarks.easg import rubric
    from videoqa.engines.chat import control_tokens, render
    from videoqa.judge import prompt
    from videoqa.scorer import Item

    rows = easg_bench.load(options.data)
    tokenizer = AutoTokenizer.from_pretrained(options.tokenizer)
    control = control_tokens(tokenizer)

    def encoded(conversations: Sequence[object]) -> list[list[int]]:
        texts = [render(tokenizer, one, "", control) for one in conversations]  # type: ignore[arg-type]
        return tokenizer(texts, add_special_tokens=False)["input_ids"]

    asked = encoded([[{"role": "user", "content": f"{row['context']}\n{row['question']}"}] for row in rows])
    rated = encoded(
        [prompt(rubric("ours"), Item(row["question"], row["answer"], row["answer"], row["context"])) for row in rows]
    )
    machine = Machine()
    answer = Work(read_once(asked), options.new_tokens * len(rows))
    judge = Work(read_once(rated), len(rows))  # `dist`: one step a row, and some more
    for name, ids, work in (("answering", asked, answer), ("judging", rated, judge)):
        prefill, decode = seconds(work, options.weights, options.batch, machine)
        print(
            f"{name}: {len(ids)} rows, {sum(map(len, ids))} prompt tokens, {work.read} with beginnings once, "
            f"{work.new} new: prefill {prefill:.1f} s, decode {decode:.1f} s"
        )
    load = load_s(options.weights, machine)
    print(f"load and start: {load:.1f} s a model\n")
    per_model, judging = (sum(seconds(work, options.weights, options.batch, machine)) for work in (answer, judge))
    print("| models | " + " | ".join(f"{gpus} GPU{'s' * (gpus > 1)}" for gpus in GPUS) + " | share of loading |")
    print("| ---: |" + " ---: |" * (len(GPUS) + 1))
    for models in MODELS:
        times = [hours(models, gpus, per_model, judging, load, load) for gpus in GPUS]
        share = load / (load + per_model + judging)
        print(f"| {models:,} | " + " | ".join(f"{time:.2f} h" for time in times) + f" | {100 * share:.0f}% |")


if __name__ == "__main__":
    main()
