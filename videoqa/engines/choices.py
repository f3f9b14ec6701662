"""How probable a choice is, from the most probable next tokens that vLLM and servers report.

{"8": -0.2, "1": -2.1, ...} at temperature 0.6, top_p 0.9   ->   {"8": -0.05, "1": -3.2}
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

Token = TypeVar("Token", bound=Hashable)

TAIL = 32  # characters of a prompt's end that decide how what follows is split into tokens


def choice_paths(
    encode: Callable[[str], Sequence[int]], prompt: str, choices: Sequence[str]
) -> tuple[int, dict[str, tuple[int, ...]]]:
    """How many ids at the end of the prompt change when a choice follows (a blank may join it), and the ids of each
    choice from there: "Score: " + "10" may be (..., ":", " ") + ("1", "0") or (..., ":") + (" 10",)."""
    tail = prompt[-TAIL:]
    base, full = list(encode(tail)), [list(encode(tail + c)) for c in choices]
    kept = len(base)
    for ids in full:
        kept = next((i for i in range(min(kept, len(ids))) if ids[i] != base[i]), min(kept, len(ids)))
    return len(base) - kept, {c: tuple(ids[kept:]) for c, ids in zip(choices, full, strict=True)}


def drawn(top: Mapping[Token, float], temperature: float, top_p: float) -> dict[Token, float]:
    """Probability of each reported token (`top`: log-probabilities) when drawn at `temperature` from the top_p part.

    The unreported rest of the vocabulary has the mass that is missing to 1, and is taken to fall off as a power of the
    rank: exact at temperature 1, close below it, where the rest hardly counts.
    """
    order = sorted(top, key=lambda t: -top[t])
    probability = {t: math.exp(top[t]) for t in order}
    if not order or (temperature == 1 and top_p >= 1):
        return probability
    powered = {t: p ** (1 / temperature) for t, p in probability.items()}
    missing, edge = 1 - sum(probability.values()), len(order) * probability[order[-1]]
    rest = 0.0
    if missing > 0 and edge > 0:  # p(rank) = p(last) (rank / last)^-power; both sums over it are taken as integrals
        power = 1 + edge / missing
        rest = len(order) * powered[order[-1]] / max(power / temperature - 1, 1e-3)
    whole = sum(powered.values()) + rest
    kept: dict[Token, float] = {}
    reached = 0.0
    for token in order:
        if reached >= top_p:
            break
        kept[token] = powered[token] / whole
        reached += kept[token]
    return {token: p / max(reached, min(top_p, 1.0)) for token, p in kept.items()}
