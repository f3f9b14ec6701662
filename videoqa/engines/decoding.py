"""From logits to tokens and probabilities, for the engine that has the logits in this process."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NOT_A_NUMBER = "the model gave NaN or infinity instead of probabilities"


@dataclass(frozen=True, slots=True)
class Decoding:
    """How replies are decoded; see Engine.generate."""

    max_new_tokens: int
    temperature: float
    top_p: float
    seed: int
    start: str
    stop: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Choosing:
    """Which choices are weighed and how; see Engine.choice_logprobs."""

    choices: tuple[str, ...]
    start: str
    temperature: float
    top_p: float


def unusable(logits: Any) -> Any:
    """(rows,): True where nothing can be read: a NaN, a +inf, or no token that is possible. (A single -inf is a token
    that the model rules out.)"""
    return ~logits.amax(-1).isfinite()


def nucleus(logits: Any, temperature: float, top_p: float) -> tuple[Any, Any]:
    """Probabilities at `temperature` in falling order with 0 outside the top_p part, and the tokens in that order. The
    token that reaches top_p is the last one in."""
    import torch

    probabilities, order = torch.softmax(logits / temperature, dim=-1).sort(dim=-1, descending=True)
    inside = probabilities.cumsum(-1) - probabilities < top_p
    return probabilities * inside, order


def log_probabilities(logits: Any, temperature: float, top_p: float) -> Any:
    """(rows, vocabulary): log-probability of each token when drawn from the top_p part."""
    import torch

    if top_p >= 1:
        return torch.log_softmax(logits / temperature, dim=-1)
    kept, order = nucleus(logits, temperature, top_p)
    return torch.zeros_like(kept).scatter(-1, order, kept / kept.sum(-1, keepdim=True)).log()


def pick(logits: Any, temperature: float, top_p: float, random: list[Any]) -> Any:
    """The next token of each row, (rows,) on the CPU: the most likely, or drawn from the top_p part."""
    import torch

    if temperature == 0:
        return logits.argmax(-1).cpu()
    kept, order = nucleus(logits, temperature, top_p)
    sums = kept.cumsum(-1)
    draws = torch.cat([torch.rand(1, generator=g) for g in random]).to(sums.device)[:, None] * sums[:, -1:]
    place = (sums <= draws).sum(-1, keepdim=True)
    last = (kept > 0).sum(-1, keepdim=True) - 1  # a draw may be rounded up to the whole sum
    return order.gather(-1, place.minimum(last))[:, 0].cpu()


def beginnings(paths: Mapping[str, tuple[int, ...]]) -> list[tuple[int, ...]]:
    """What stands before the last token of some choice, shortest first: () and, where "10" is two tokens, ("1",)."""
    return sorted({path[:n] for path in paths.values() for n in range(len(path))} | {()}, key=lambda b: (len(b), b))


def settled(
    known: Mapping[tuple[int, ...], Any], paths: Mapping[str, tuple[int, ...]]
) -> list[dict[str, float] | None]:
    """Log-probability of each choice for each row, longer choices taken out of shorter ones; None for a row whose
    numbers are not usable. `known` holds what comes next (rows, vocabulary) after each of the `beginnings`."""
    import torch

    total = {}
    for path in set(paths.values()):
        steps = [known[path[:n]][:, path[n]] for n in range(len(path))]
        total[path] = torch.stack(steps).sum(0).double()
    columns = {}
    for choice, path in paths.items():
        longer = [total[p] for p in total if len(p) > len(path) and p[: len(path)] == path]
        probability = total[path].exp() - sum(p.exp() for p in longer)
        columns[choice] = probability.clamp(min=0).log().tolist()
    rows: list[dict[str, float] | None] = []
    for row in range(len(known[()])):
        logprobs = {choice: columns[choice][row] for choice in paths}
        rows.append(None if any(math.isnan(p) or p > 1e-6 for p in logprobs.values()) else logprobs)
    return rows
