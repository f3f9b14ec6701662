"""Tried before it is believed: does putting rows together change a model's numbers?

Architectures keep coming, and some count padding as distance (ALiBi, attention windows), carry a state that padding
gets into, or keep no cache. So a few short rows are run when a model is loaded, once as the engine would run them and
once each alone through the model's own `generate`. The engine takes the fastest packing that gives the same numbers.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from videoqa.engines.decoding import unusable
from videoqa.engines.prefixes import PACKINGS, Network, Packing, Twigs
from videoqa.errors import UserError

# Mean difference of the log-probabilities over the vocabulary, above which two runs are not the same numbers. What
# rounding alone does is below (SmolLM2-135M: float32 1e-5, float16 0.02, bfloat16 0.09); positions that are off by one
# give 0.42, a mask that is not heeded 5.
TOLERANCE = {"float32": 2e-3, "float16": 0.05, "bfloat16": 0.25}
TEXT = "Somebody lifts the cup from the table, puts 10 knives into jug 2 and wipes the blue cloth with a hand. "
# Rows as (where their first part begins in the text, its length, the length of the rest): prefixes and rests of several
# lengths, so that there is padding before a prefix and between it and the rest.
ROWS = ((0, 13, 2), (0, 13, 9), (31, 6, 5))
STEPS = 1


def settle(network: Network, tokens: Sequence[int], name: str) -> Packing:
    """Give the network the fastest packing that does not change the model's numbers, and say so where it is not the
    one it had. `tokens` are ids of plain text. UserError where even single rows go wrong."""
    import torch

    wanted = network.packing
    rows = check_rows(tokens)
    fed = [list(tokens[k : k + STEPS]) for k in range(len(rows))]
    dtype = str(network.model.dtype).removeprefix("torch.")
    problems: list[str] = []
    try:
        plain = _plain(network, rows, fed)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # whatever an architecture raises that we have never seen
        raise UserError(f"{_what(network, name)} cannot be run: {_line(error)}") from error
    for packing in PACKINGS[PACKINGS.index(wanted) :]:
        try:
            distance = difference(_packed(replace(network, packing=packing, batch_size=4), rows, fed), plain)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            problems.append(_line(error))
            continue
        if distance <= TOLERANCE.get(dtype, TOLERANCE["bfloat16"]):
            if packing != wanted:
                warnings.warn(
                    f"{_what(network, name)} is run in {packing}: its numbers change with {wanted} ({problems[0]})",
                    stacklevel=2,
                )
            network.packing = packing
            network.grows = _grows(network, rows, fed, plain, TOLERANCE.get(dtype, TOLERANCE["bfloat16"]))
            return packing
        problems.append(f"log-probabilities differ by {distance:.2g}")
    raise UserError(
        f"{_what(network, name)} cannot be run in this engine: {problems[-1]}; "
        "serve it and name it as server:NAME@http://HOST/v1"
    )


def check_rows(tokens: Sequence[int]) -> list[list[int]]:
    """Token ids of the rows in ROWS, cut out of `tokens` (repeated as often as needed)."""
    endless = list(tokens) * math.ceil(60 / max(1, len(tokens)))
    rows = []
    for number, (begin, shared, own) in enumerate(ROWS):
        rest = 11 * number + 3
        rows.append([*endless[begin : begin + shared], *endless[rest : rest + own]])
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


def _plain(network: Network, rows: Sequence[list[int]], fed: Sequence[list[int]]) -> list[list[Any]]:
    """The log-probabilities of the next token after each row and after each of the tokens fed to it, one row at a time
    as the model's own `generate` has them."""
    import torch

    results = []
    for row, more in zip(rows, fed, strict=True):
        ids = torch.tensor([row], device=network.model.device)

        def feed(ids: Any, scores: Any, at: int = len(row), more: list[int] = more) -> Any:
            token = [*more, more[-1]][ids.shape[1] - at]
            return torch.full_like(scores, -math.inf).index_fill(1, torch.tensor([token], device=scores.device), 0.0)

        with torch.inference_mode():
            made = network.model.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=STEPS + 1,
                do_sample=False,
                logits_processor=[feed],
                output_logits=True,
                return_dict_in_generate=True,
            )
        results.append([logits[0].float().log_softmax(-1).cpu() for logits in made.logits])
    return results


def _packed(network: Network, rows: Sequence[list[int]], fed: Sequence[list[int]]) -> list[list[Any]]:
    """The same, as the engine runs rows; the row at the second place leaves its batch at once."""
    import torch

    results: list[list[Any]] = [[] for _ in rows]
    for batch in network.batches(rows, range(len(rows)), STEPS):
        with torch.inference_mode():
            for step in range(STEPS + 1):
                for row, logits in zip(batch.rows, batch.logits.log_softmax(-1).cpu(), strict=True):
                    results[row].append(logits)
                if step == STEPS:
                    break
                if step == 0 and len(batch.rows) > 2:
                    results[batch.rows[1]] += [None] * STEPS
                    batch.keep([0, *range(2, len(batch.rows))])
                network.step(batch, torch.tensor([fed[row][step] for row in batch.rows], device=network.model.device))
    return results


def _grows(
    network: Network, rows: Sequence[list[int]], fed: Sequence[list[int]], plain: Sequence[Sequence[Any]], most: float
) -> bool:
    """Whether beginnings can grow side by side (Network.grow): each row's next token beside another one."""
    import torch

    if network.packing != "shared prefixes" or network.window < math.inf:
        return False
    results: list[list[Any]] = [[] for _ in rows]
    try:
        for batch in replace(network, batch_size=4).batches(rows, range(len(rows)), STEPS):
            with torch.inference_mode():
                root = Twigs(batch, range(len(batch.rows)), [()] * len(batch.rows), batch.logits)
                places = [k for k in range(len(batch.rows)) for _ in range(2)]
                tokens = [token for row in batch.rows for token in (rows[row][0], fed[row][0])]
                grown = network.grow(root, places, tokens)
            for k, row in enumerate(batch.rows):
                both = (batch.logits[k], grown.logits[2 * k + 1])
                results[row] = [logits.log_softmax(-1).cpu() for logits in both]
    except torch.OutOfMemoryError:
        raise
    except Exception:  # whatever an architecture raises that does not take such a mask: it is asked otherwise
        return False
    return difference(results, plain) <= most


def _what(network: Network, name: str) -> str:
    return f"the model {name!r} ({network.model.config.model_type})"


def _line(error: Exception) -> str:
    """An error as one line."""
    if isinstance(error, KeyError):
        return "it keeps no cache that a reply could be continued from"
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
