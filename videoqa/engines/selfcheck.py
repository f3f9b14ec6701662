"""Tried before it is believed: does putting rows together change a model's numbers?

Architectures keep coming, and some count padding as distance (ALiBi, attention windows), carry a state that padding
gets into, or keep no cache. So a few short rows are run when a model is loaded, once as the engine would run them and
once each alone without cache or padding. The engine takes the fastest packing that gives the same numbers.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from videoqa.engines.decoding import unusable
from videoqa.engines.prefixes import PACKINGS, Network, Packing
from videoqa.errors import UserError

# Mean difference of the log-probabilities over the vocabulary, above which two runs are not the same numbers. What
# rounding alone does is far below (SmolLM2-135M: float32 1e-5, bfloat16 0.05); what faults do is far above (0.1 to 3).
TOLERANCE = {"float32": 2e-3, "float16": 0.05, "bfloat16": 0.25}
TEXT = "The camera wearer lifts the cup from the table, puts 10 knives into jug 2 and wipes the blue cloth with a hand. "
# Rows as (which text they begin with, its length, their own length): two prefixes of other lengths, other rests, so
# that there is padding before the prefix, between prefix and rest, and none.
ROWS = ((0, 18, 2), (0, 18, 9), (1, 7, 17), (1, 7, 4))
STEPS = 2


def settle(network: Network, tokens: Sequence[int], name: str) -> Packing:
    """Give the network the fastest packing that does not change the model's numbers, and say so where it is not the
    one it had. `tokens` are ids of plain text. UserError where even single rows go wrong."""
    import torch

    wanted = network.packing
    rows = check_rows(tokens)
    fed = [list(tokens[k : k + STEPS]) for k in range(len(rows))]
    plain = _plain(network, [row + more for row, more in zip(rows, fed, strict=True)])
    dtype = str(network.model.dtype).removeprefix("torch.")
    problems = []
    for packing in PACKINGS[PACKINGS.index(wanted) :]:
        try:
            distance = difference(_packed(replace(network, packing=packing, batch_size=4), rows, fed), plain)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # whatever an architecture raises that we have never seen
            problems.append(f"{packing}: {type(error).__name__}: {error}".splitlines()[0][:200])
            continue
        if distance <= TOLERANCE.get(dtype, TOLERANCE["bfloat16"]):
            if packing != wanted:
                warnings.warn(
                    f"{name} ({_architecture(network)}) is run in {packing}: its numbers change with {wanted} "
                    f"({problems[0].partition(': ')[2]})",
                    stacklevel=2,
                )
            network.packing = packing
            return packing
        problems.append(f"{packing}: log-probabilities differ by {distance:.2g}")
    raise UserError(
        f"the model {name!r} ({_architecture(network)}) cannot be run here: {problems[-1].partition(': ')[2]}; "
        "serve it and name it as server:NAME@http://HOST/v1"
    )


def check_rows(tokens: Sequence[int]) -> list[list[int]]:
    """Token ids of the rows in ROWS, cut out of `tokens` (repeated as often as needed)."""
    endless = list(tokens) * math.ceil(120 / max(1, len(tokens)))
    rows = []
    for number, (text, shared, own) in enumerate(ROWS):
        rows.append([*endless[31 * text : 31 * text + shared], *endless[11 * number + 3 : 11 * number + 3 + own]])
    return rows


def difference(a: Sequence[Sequence[Any]], b: Sequence[Sequence[Any]]) -> float:
    """The largest mean difference of two log-probabilities over the vocabulary. Places where the model itself gives no
    numbers are left out: those rows will be errors; None in `a` is a row that has left."""
    distances = []
    for one, other in zip(a, b, strict=True):
        for x, y in zip(one, other, strict=True):
            if x is None or unusable(y[None]).any():
                continue
            # two -inf are equal
            distance = (x - y).abs().nan_to_num(nan=0.0, posinf=math.inf).mean().item()
            distances.append(math.inf if unusable(x[None]).any() else distance)
    return max(distances, default=0.0)


def _plain(network: Network, rows: Sequence[list[int]]) -> list[list[Any]]:
    """The log-probabilities of the last STEPS + 1 places of each row, alone and in one pass."""
    import torch

    results = []
    for row in rows:
        ids = torch.tensor([row], device=network.model.device)
        with torch.inference_mode():
            logits = network.model(input_ids=ids, use_cache=False).logits[0, -STEPS - 1 :].float()
        results.append(list(logits.log_softmax(-1).cpu()))
    return results


def _packed(network: Network, rows: Sequence[list[int]], fed: Sequence[list[int]]) -> list[list[Any]]:
    """The same, as the engine runs rows; the row at the first place of a batch leaves it after one step."""
    import torch

    results: list[list[Any]] = [[] for _ in rows]
    for batch in network.batches(rows, range(len(rows)), STEPS):
        with torch.inference_mode():
            for step in range(STEPS + 1):
                for row, logits in zip(batch.rows, batch.logits.log_softmax(-1).cpu(), strict=True):
                    results[row].append(logits)
                if step == STEPS:
                    break
                if step == 1 and len(batch.rows) > 1:
                    results[batch.rows[0]].append(None)
                    batch.keep(range(1, len(batch.rows)))
                network.step(batch, torch.tensor([fed[row][step] for row in batch.rows], device=network.model.device))
    return results


def _architecture(network: Network) -> str:
    return str(network.model.config.model_type)
