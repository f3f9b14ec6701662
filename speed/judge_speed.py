"""What the judge costs beside the plain way: one row at a time, the whole reply with its explanation.

    python speed/judge_speed.py --model build/models/smollm2 --dtype bfloat16 --rubric FILE

Same rows, same weights, same process. The reference is transformers' own `generate` on one prompt after the other,
sampled at the rubric's temperature and top_p, cut at 256 new tokens. It runs once; the spread of a ratio is a
bootstrap over its rows. Ours are the judge's modes: `dist` and `score` (median of three passes), `paper` (one pass,
same cut).

Then: whether ours gives what the plain way gives. Each row alone, greedy, must begin with the line that `score` read,
and the distribution from a plain forward pass must have the expected score that `dist` gave, to 1e-3. In float32 a
difference is an error (exit code 1); in bfloat16 and float16 batches round otherwise, so it is only told. Last, how the
cost grows with rows and with the length of the context.
"""

from __future__ import annotations

import argparse
import copy
import functools
import math
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import bootstrap

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import easg_bench
from videoqa.benchmarks.easg import rubric as named_rubric
from videoqa.engines.choices import ANOTHER, FOLLOWED, SEEN
from videoqa.engines.prefixes import plan_groups, shared_length
from videoqa.engines.transformers import TransformersEngine
from videoqa.judge import SCORE_LINE_TOKENS, Judge, prompt
from videoqa.reply import Verdict
from videoqa.rows import Row, sample
from videoqa.rubric import Rubric
from videoqa.scorer import Item

DATA = Path(__file__).resolve().parents[1] / "build" / "easg-bench"
REFERENCE_TOKENS = 256
REPEATS = 3
GOAL, FLOOR = 28, 20  # ratio of `score` and `dist`: 48 rows of 6 clips, bfloat16, 1 thread, the paper's rubric
TOLERANCE = 1e-3  # of the expected score, in float32

# NVIDIA's figures for one H200: dense bfloat16 operations and bytes of memory traffic, per second
H200_OPERATIONS, H200_BYTES = 989e12, 4.8e12


@dataclass
class Pass:
    """One way to rate all rows. `seconds` is per row where rows go one at a time."""

    name: str
    seconds: list[float]
    read: int  # tokens that went through the model as prompts
    new: int  # tokens that were generated
    memory: str
    verdicts: list[Verdict]

    @property
    def total(self) -> float:
        return sum(self.seconds)


# -- rows -------------------------------------------------------------------------------------------------------------


def pick(rows: Sequence[Row], clips: int, per_clip: int) -> list[Item]:
    """`per_clip` rows, of all types, of each of `clips` clips spread over the dataset; the answers are the right ones
    of the clip's next row. Row after row of one clip."""
    by_clip: dict[str, list[Row]] = {}
    for row in rows:
        by_clip.setdefault(row["clip"], []).append(row)
    enough = [group for group in by_clip.values() if len(group) >= per_clip]
    if len(enough) < clips:
        raise SystemExit(f"only {len(enough)} clips have {per_clip} rows: give fewer --clips or --rows")
    items = []
    for n in range(clips):
        chosen = sample(enough[n * len(enough) // clips], per_clip)
        for row, other in zip(chosen, chosen[1:] + chosen[:1], strict=True):
            items.append(Item(row["question"], row["answer"], other["answer"], row["context"]))
    return items


# -- the plain way ----------------------------------------------------------------------------------------------------


class Plain:
    """One prompt at a time through transformers, with the engine's own model and tokenizer and nothing else of it."""

    def __init__(self, engine: TransformersEngine, rubric: Rubric) -> None:
        self.model, self.tokenizer, self.rubric = engine._model, engine._tokenizer, rubric
        self.start = "" if rubric.start_in_dist_only else rubric.start

    def text(self, item: Item, start: str) -> str:
        conversation = list(prompt(self.rubric, item))
        return self.tokenizer.apply_chat_template(conversation, tokenize=False, add_generation_prompt=True) + start

    def ids(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]

    def generate(self, item: Item, **how: Any) -> tuple[str, int, int]:
        """The reply, tokens of the prompt, new tokens."""
        ids = torch.tensor([self.ids(self.text(item, self.start))], device=self.model.device)
        with torch.inference_mode():
            out = self.model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), **how)
        new = out[0, ids.shape[1] :]
        return self.start + self.tokenizer.decode(new, skip_special_tokens=True), ids.shape[1], len(new)

    def first_line(self, item: Item) -> str:
        """The greedy reply's first line."""
        reply, _, _ = self.generate(item, do_sample=False, max_new_tokens=SCORE_LINE_TOKENS)
        return reply.strip().split("\n")[0].strip()

    def expected(self, item: Item) -> float:
        """The mean score under the distribution behind the start, from forward passes over the whole prompt."""
        text = self.text(item, self.rubric.start)
        names = [f"{value:g}" for value in self.rubric.values]
        tenths = [f"{name}.{tenth}" for name in names for tenth in range(1, 10)]
        ids = {name: self.ids(text + name) for name in [*names, *tenths]}
        kept = min(shared_length(self.ids(text), tokens) for tokens in ids.values())
        paths = {name: tuple(tokens[kept:]) for name, tokens in ids.items()}

        @functools.cache
        def chances(done: tuple[int, ...]) -> torch.Tensor:
            with torch.inference_mode():
                seen = torch.tensor([ids[names[0]][:kept] + list(done)], device=self.model.device)
                return self.model(input_ids=seen).logits[0, -1].double().softmax(-1)

        def chance(path: tuple[int, ...]) -> float:
            share = 1.0
            for n, token in enumerate(path):
                if n and share < FOLLOWED:  # as little as this is not followed
                    return 0.0
                share *= float(chances(path[:n])[token])
            return share

        alone = []  # that the reply says this score and no other number that begins like it: "10", "8.5", "80"
        for name in names:
            mine = paths[name]
            longer = [path for path in paths.values() if len(path) > len(mine) and path[: len(mine)] == mine]
            nearest = [a for a in longer if not any(a != b and a[: len(b)] == b for b in longer)]
            larger = 0.0
            if chance(mine) >= FOLLOWED:
                others = set(chances(mine).topk(SEEN).indices.tolist()) - {path[len(mine)] for path in longer}
                shown = self.tokenizer.decode([mine[-1]])
                behind = {t: self.tokenizer.decode([mine[-1], t]).removeprefix(shown) for t in others}
                larger = sum(float(chances(mine)[t]) for t, rest in behind.items() if ANOTHER.match(rest))
            alone.append(chance(mine) * (1 - larger) - sum(map(chance, nearest)))
        return sum(value * share for value, share in zip(self.rubric.values, alone, strict=True)) / sum(alone)


def one_at_a_time(plain: Plain, items: Sequence[Item], memory: Callable[[], str]) -> Pass:
    """The reference: every row's whole reply, sampled."""
    sampling = plain.rubric.sampling
    how = {"do_sample": True, "temperature": sampling.temperature, "top_p": sampling.top_p}
    seconds, read, new = [], 0, 0
    for item in items:
        torch.manual_seed(sampling.seed)
        began = now(plain.model.device)
        _, prompt_tokens, new_tokens = plain.generate(item, max_new_tokens=REFERENCE_TOKENS, **how)
        seconds.append(now(plain.model.device) - began)
        read, new = read + prompt_tokens, new + new_tokens
    return Pass("one at a time", seconds, read, new, memory(), [])


# -- ours -------------------------------------------------------------------------------------------------------------


def ours(judge: Judge, items: Sequence[Item], repeats: int, memory: Callable[[], str]) -> Pass:
    """The judge's own way; the time is the median of `repeats`."""
    engine: Any = judge.engine
    seconds = []
    for _ in range(repeats):
        began = now(engine._model.device)
        verdicts = [verdict for _, verdict in sorted(judge.rate(items), key=lambda pair: pair[0])]
        seconds.append(now(engine._model.device) - began)
    if failed := [v.raw for v in verdicts if v.status == "judge_error"]:
        raise SystemExit(f"{len(failed)} of {len(items)} rows cannot be rated: {failed[0]}")
    texts = [engine._text(prompt(judge.rubric, item), judge._start) for item in items]
    ids = engine._encode(texts)
    groups = plan_groups(ids)
    read = sum(map(len, ids)) - sum((len(group.rows) - 1) * group.length for group in groups)
    replies = [v.raw.removeprefix(judge._start) for v in verdicts]
    new = 0 if judge.mode == "dist" else sum(map(len, engine._encode(replies)))
    return Pass(str(judge.mode), [statistics.median(seconds)], read, new, memory(), verdicts)


def now(device: torch.device) -> float:
    """Seconds, once the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def peak_memory(device: torch.device) -> Callable[[], str]:
    """Tells the peak since the last call on a GPU; of the process so far on a CPU, where it never falls."""

    def of_gpu() -> str:
        peak = torch.cuda.max_memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        return f"{peak / 2**20:.0f} MiB"

    def of_process() -> str:
        unit = 1 if sys.platform == "darwin" else 1024
        return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20:.0f} MiB"

    return of_gpu if device.type == "cuda" else of_process


# -- what is found ----------------------------------------------------------------------------------------------------


def ratio(reference: Sequence[float], seconds: float) -> tuple[float, float, float]:
    """How many times the reference takes, with the 95% interval of a bootstrap over its rows."""
    found = bootstrap((reference,), np.sum, method="percentile", n_resamples=2000, rng=np.random.default_rng(0))
    low, high = found.confidence_interval
    return sum(reference) / seconds, low / seconds, high / seconds


def same_line(line: str, verdict: Verdict) -> bool:
    """Whether the reply begins with this line. Where it has no score, the mode asked for more than the line."""
    said = verdict.raw.strip()
    return said == line if verdict.status == "ok" else said.startswith(line.rstrip("\ufffd"))


def expected_scores(judge: Judge, items: Sequence[Item]) -> list[float]:
    """The mean of each row's distribution, however little of the probability the allowed scores hold."""
    names = [f"{value:g}" for value in judge.rubric.values]
    prompts = [prompt(judge.rubric, item) for item in items]
    replies = dict(judge.engine.choice_logprobs(prompts, names, start=judge.rubric.start))
    chances = [[math.exp((replies[n].logprobs or {})[name]) for name in names] for n in range(len(items))]
    return [sum(p * value for p, value in zip(row, judge.rubric.values, strict=True)) / sum(row) for row in chances]


def check(plain: Plain, items: Sequence[Item], score: Pass, dist: Judge, exact: bool) -> bool:
    """Print whether ours gives what one row at a time gives; True where it must and does not."""
    lines = [plain.first_line(item) for item in items]
    other = [n for n, (line, v) in enumerate(zip(lines, score.verdicts, strict=True)) if not same_line(line, v)]
    ours = expected_scores(dist, items)
    gaps = [abs(plain.expected(item) - mine) for item, mine in zip(items, ours, strict=True)]
    wrong = bool(other) or not max(gaps) <= TOLERANCE
    print(f"same score line as one at a time, greedy: {len(items) - len(other)} of {len(items)} rows")
    for n in other[:3]:
        print(f"  row {n}: one at a time {lines[n]!r}, ours {score.verdicts[n].raw!r}")
    print(f"expected score against a plain forward pass: at most {max(gaps):.1e} apart")
    if exact:
        print(f"check (same lines, at most {TOLERANCE:g} apart): {'FAILED' if wrong else 'passed'}")
    return exact and wrong


def growth(judge: Judge, plain: Plain, items: Sequence[Item], per_clip: int, memory: Callable[[], str]) -> None:
    """Print what `dist` costs for more rows and longer contexts, with and without shared prefixes."""
    engine: Any = copy.copy(judge.engine)
    engine._network.packing = "batches"
    alone = replace(judge, engine=engine)
    print("rows     dist      a row")
    clips = len(items) // per_clip
    for n in sorted({1, math.ceil(clips / 2), clips}):
        seconds = ours(judge, items[: n * per_clip], 1, memory).total
        print(f"{n * per_clip:4}  {seconds:6.2f} s  {seconds / (n * per_clip):6.3f} s")
    few = items[: 2 * per_clip]
    print(f"context of {len(few)} rows   dist   without shared prefixes   one at a time (first row)")
    first: list[float] = []
    for times in (1, 2, 4):
        longer = [replace(item, context=" ".join([item.context] * times)) for item in few]
        costs = [
            ours(judge, longer, 1, memory).total / len(few),
            ours(alone, longer, 1, memory).total / len(few),
            one_at_a_time(plain, longer[:1], memory).total,
        ]
        first = first or costs
        shown = "   ".join(f"{cost:7.3f} s/row (x{cost / base:.2f})" for cost, base in zip(costs, first, strict=True))
        print(f"x{times}  {shown}")


def h200_floor(plain: Plain, passes: Sequence[Pass], rows: int) -> None:
    """Print what one H200 needs at the least: every prompt token costs two operations a weight, every token that is
    generated alone reads all weights once."""
    weights = plain.model.num_parameters()
    for p in passes:
        least = 2 * weights * p.read / H200_OPERATIONS
        if p.name == "one at a time":
            least += weights * plain.model.dtype.itemsize * p.new / H200_BYTES
        print(
            f"{p.name:14} {1807 * p.total / rows:8.1f} s for 1,807 rows; floor of one H200 for this model "
            f"{1807 * least / rows:8.2f} s"
        )
    print("for Llama-3-8B, by the same arithmetic: about 1,730 s one at a time, 21 s score only, 12 s with prefixes")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", required=True, help="an instruct model: folder or Hub id")
    parser.add_argument("--data", default=str(DATA), help="folder of `python -m builder build`")
    parser.add_argument("--rubric", default="ours", help="ours, or a file with the paper's")
    parser.add_argument("--rows", type=int, default=48)
    parser.add_argument("--clips", type=int, default=6, help="of which the rows are, the same number of each")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"))
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=8)
    options = parser.parse_args(arguments)
    per_clip, rest = divmod(options.rows, options.clips)
    if rest or per_clip < 2:
        parser.error("--rows must be a multiple of --clips, at least twice as many")

    torch.set_num_threads(options.threads)
    items = pick(list(easg_bench.load(options.data)), options.clips, per_clip)
    rubric = named_rubric(options.rubric)
    rubric = replace(rubric, sampling=replace(rubric.sampling, max_new_tokens=REFERENCE_TOKENS))
    engine = TransformersEngine(
        options.model, dtype=options.dtype, device=options.device, batch_size=options.batch_size
    )
    plain = Plain(engine, rubric)
    dist, score, paper = (Judge(engine, rubric, mode) for mode in ("dist", "score", "paper"))
    memory = peak_memory(plain.model.device)
    print(
        f"{options.model}, {options.dtype}, {options.device}, {options.threads} threads, batches of "
        f"{options.batch_size}, rubric {rubric.name}: {len(items)} rows of {options.clips} clips"
    )
    plain.generate(items[0], max_new_tokens=2)  # what a first call costs, both sides
    ours(score, items[:2], 1, memory)
    print(f"memory with the model loaded: {memory()}")

    reference = one_at_a_time(plain, items, memory)
    passes = [
        reference,
        *(ours(judge, items, n, memory) for judge, n in ((dist, REPEATS), (score, REPEATS), (paper, 1))),
    ]
    print(f"{'':14} {'seconds':>9} {'rows/s':>8} {'ratio (95% interval)':>24} {'read':>8} {'new':>7}  peak memory")
    for p in passes:
        times, low, high = ratio(reference.seconds, p.total)
        told = "1" if p is reference else f"{times:.1f} ({low:.1f} to {high:.1f})"
        rate = len(items) / p.total
        print(f"{p.name:14} {p.total:9.2f} {rate:8.3f} {told:>24} {p.read:8} {p.new:7}  {p.memory}")
    print(f"goal {GOAL}, at least {FLOOR}, for score and dist: 48 rows of 6 clips, bfloat16, 1 thread, paper's rubric")
    if options.device != "cpu":
        h200_floor(plain, passes[:3], len(items))
    failed = check(plain, items, passes[2], Judge(engine, rubric, "dist"), exact=options.dtype == "float32")
    growth(dist, plain, items, per_clip, memory)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
