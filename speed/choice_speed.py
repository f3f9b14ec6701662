"""What a multiple-choice answer costs: by likelihood, by lighteval's own log-probabilities, by generating the letter.

    python speed/choice_speed.py --model build/models/smollm2 --data build/egoschema --limit 100

Same rows, same weights, same prompts (blind), same process. `likelihood` is what `easg-bench run` does: one pass
a row, of which only the last place's logits are made. lighteval's way runs each row once for every letter and makes the
logits of all places. `generation` writes a reply of up to 64 tokens, as `--protocol generation` does, and reads it.

The rows go through in BLOCKS, each block through all ways, so that a load that comes and goes hits all of them alike.
On a CPU seconds are those of the processor. Peak memory is the process's own, started anew for each way where the
system can do that (Linux); the model is in it.

Then: whether the ways give the same. In float32 lighteval's most probable letter must be that of `likelihood` wherever
the best two are more than TOLERANCE apart (exit code 1); how often generation chooses the same option is told.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from videoqa.benchmarks.egoschema import EGOSCHEMA, load
from videoqa.choices import LETTERS
from videoqa.choosing import GENERATION, LIKELIHOOD
from videoqa.engines.transformers import TransformersEngine
from videoqa.reading.choices import is_right, read_choice
from videoqa.rows import Row, sample

BLOCKS = 5
TOLERANCE = 1e-3  # of a log-probability, in float32
LIGHTEVAL = "lighteval"


@dataclass
class Way:
    """One way to answer; `answer` gives the letter of each row of a block, "" for none, and how sure it was."""

    name: str
    answer: Callable[[Sequence[Row]], list[tuple[str, list[float]]]]
    seconds: list[float] = field(default_factory=list)  # of each block
    peak: float = 0.0  # MiB
    answers: list[str] = field(default_factory=list)  # the replies
    logprobs: list[list[float]] = field(default_factory=list)  # of the letters; [] of a reply


def ours(engine: TransformersEngine, protocol: str) -> Way:
    """A protocol of `easg-bench run`."""
    ask = EGOSCHEMA.ways["blind"].protocols[protocol]

    def answer(rows: Sequence[Row]) -> list[tuple[str, list[float]]]:
        found = dict(ask(engine, rows, EGOSCHEMA.max_new_tokens, None))
        if failed := [one.error for one in found.values() if one.error]:
            raise SystemExit(f"{len(failed)} of {len(rows)} rows have no answer: {failed[0]}")
        ordered = [found[n] for n in range(len(rows))]
        return [(one.text or "", [_log(share) for share in one.probabilities or ()]) for one in ordered]

    return Way(protocol, answer)


def lightevals(engine: TransformersEngine, batch_size: int) -> Way:
    """lighteval's own log-probabilities, of the model that the engine has loaded."""
    from lighteval.models.transformers.transformers_model import TransformersModel, TransformersModelConfig

    from videoqa.hosts.lighteval.tasks import put_letters

    config = TransformersModelConfig(
        model_name=engine.name, device=str(engine._model.device), batch_size=batch_size, dtype=engine.settings["dtype"]
    )
    model = TransformersModel.from_model(engine._model, config)
    logging.getLogger("lighteval").setLevel(logging.ERROR)

    def answer(rows: Sequence[Row]) -> list[tuple[str, list[float]]]:
        docs = [put_letters(dict(row), track="egoschema", prompt="blind") for row in rows]
        with torch.inference_mode(), contextlib.redirect_stderr(io.StringIO()):  # its bars
            responses = model._loglikelihood_tokens(docs)
        found = []
        for response in responses:
            logprobs = [float(one) for one in response.logprobs]
            found.append((LETTERS[logprobs.index(max(logprobs))], logprobs))
        return found

    return Way(LIGHTEVAL, answer)


def _log(share: float) -> float:
    return math.log(share) if share else -math.inf


# -- time and memory --------------------------------------------------------------------------------------------------


def now(device: torch.device) -> float:
    """Seconds: of the processor, or of the clock once a GPU has done what it was given."""
    if device.type == "cpu":
        return time.process_time()
    torch.cuda.synchronize(device)
    return time.perf_counter()


def forget_peak(device: torch.device) -> None:
    """Begin to look for the peak anew, where that can be done."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return  # no Linux


def peak(device: torch.device) -> float:
    """MiB at most since `forget_peak`; on other systems than Linux since the process began."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 2**10


def run(ways: Sequence[Way], rows: Sequence[Row], device: torch.device) -> None:
    """Take all rows through all ways, block by block."""
    size = math.ceil(len(rows) / BLOCKS)
    for at in range(0, len(rows), size):
        block = rows[at : at + size]
        for way in ways:
            forget_peak(device)
            began = now(device)
            found = way.answer(block)
            way.seconds.append(now(device) - began)
            way.peak = max(way.peak, peak(device))
            way.answers += [text for text, _ in found]
            way.logprobs += [logprobs for _, logprobs in found]


# -- what is found ----------------------------------------------------------------------------------------------------


def chosen(way: Way, rows: Sequence[Row]) -> list[int | None]:
    """The option that each answer chooses."""
    return [read_choice(text, row["choices"]).index for text, row in zip(way.answers, rows, strict=True)]


def accuracy(way: Way, rows: Sequence[Row]) -> float:
    """Share of right answers, in percent; what cannot be read is wrong."""
    read = [read_choice(text, row["choices"]) for text, row in zip(way.answers, rows, strict=True)]
    right = [is_right(choice, row["gold"], row["choices"]) for choice, row in zip(read, rows, strict=True)]
    return 100 * sum(right) / len(right)


def ratios(way: Way, base: Way) -> tuple[float, float, float]:
    """How many times the base's seconds a way takes: of all blocks, of the cheapest and of the dearest one."""
    each = [mine / other for mine, other in zip(way.seconds, base.seconds, strict=True)]
    return sum(way.seconds) / sum(base.seconds), min(each), max(each)


def table(ways: Sequence[Way], rows: Sequence[Row]) -> str:
    """Seconds, ratios, memory and what comes out, a line for each way."""
    base = ways[0]
    lines = [
        f"{'':12} {'seconds':>8} {'rows/s':>7} {'ratio (of the blocks)':>22} {'peak memory':>12}  accuracy  unread"
    ]
    for way in ways:
        whole, low, high = ratios(way, base)
        told = "1" if way is base else f"{whole:.1f} ({low:.1f} to {high:.1f})"
        total = sum(way.seconds)
        unread = sum(index is None for index in chosen(way, rows))
        memory = f"{way.peak:,.0f} MiB"
        lines.append(
            f"{way.name:12} {total:8.1f} {len(rows) / total:7.2f} {told:>22} {memory:>12}"
            f"  {accuracy(way, rows):8.1f}  {unread:6}"
        )
    return "\n".join(lines)


def same(base: Way, other: Way, rows: Sequence[Row]) -> tuple[int, int]:
    """Rows in which both choose, and in how many of them the same option."""
    pairs = [
        (mine, theirs)
        for mine, theirs in zip(chosen(base, rows), chosen(other, rows), strict=True)
        if mine is not None and theirs is not None
    ]
    return len(pairs), sum(mine == theirs for mine, theirs in pairs)


def differing(base: Way, other: Way) -> list[int]:
    """Rows whose most probable letters differ although the best two are further apart than rounding can move them."""
    found = []
    for n, (mine, theirs) in enumerate(zip(base.logprobs, other.logprobs, strict=True)):
        best = mine.index(max(mine))
        if theirs.index(max(theirs)) != best and max(mine) - sorted(mine)[-2] > TOLERANCE:
            found.append(n)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", required=True, help="an instruct model: folder or Hub id")
    parser.add_argument("--data", required=True, help="folder of `python -m builder egoschema`")
    parser.add_argument("--config", default="subset")
    parser.add_argument("--limit", type=int, help="rows, spread over the data (default: all)")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"))
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=8)
    options = parser.parse_args(arguments)

    torch.set_num_threads(options.threads)
    rows = [row for row in load(options.data, options.config) if row["gold"] is not None]
    rows = rows if options.limit is None else sample(rows, options.limit)
    if not rows:
        parser.error(f"{options.data}: no question of config {options.config} has a public answer")
    engine = TransformersEngine(
        options.model, dtype=options.dtype, device=options.device, batch_size=options.batch_size
    )
    device = torch.device(engine._model.device)
    ways = [ours(engine, LIKELIHOOD), lightevals(engine, options.batch_size), ours(engine, GENERATION)]
    print(
        f"{options.model}, {options.dtype}, {options.device}, {options.threads} threads, batches of "
        f"{options.batch_size}: {len(rows)} rows, blind"
    )
    forget_peak(device)
    for way in ways:
        way.answer(rows[:2])  # what a first call costs
    run(ways, rows, device)
    print(table(ways, rows))
    for other in ways[1:]:
        both, alike = same(ways[0], other, rows)
        print(f"{other.name}: the same option as likelihood in {alike} of {both} rows in which both choose")
    if wrong := differing(ways[0], ways[1]):
        print(f"another letter than lighteval's in {len(wrong)} rows, the first is {rows[wrong[0]]['id']}")
    exact = options.dtype == "float32"
    if exact:
        print(f"check (lighteval's letters, where no rounding decides): {'FAILED' if wrong else 'passed'}")
    return int(exact and bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
