"""How probable a choice is, from the most probable next tokens that vLLM and servers report.

{"8": -0.2, "1": -2.1, ...} at temperature 0.6, top_p 0.9   ->   {"8": -0.05, "1": -3.2}
"""

from __future__ import annotations

import math
import re
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


# -- texts of tokens, where their ids are not known ------------------------------------------------------------------

NUMBER = re.compile(r"\d+(?:\.\d+)?")
# What makes another number of the one before it: "80", "8.5", "8,5", "8%", "8½", "7-8", "7 to 8".
ANOTHER = re.compile(r"[.,]?\d|\s*(?:[%‰½¼¾⅓⅔]|(?:[-–—~+*^]|to\b|or\b)\s*\d|percent\b)|\w")
OF = re.compile(r"\s*(?:/|out of\b|of\b)\s*(\d+(?:\.\d+)?)?")
LIST = re.compile(r"[.)][ \t]+\S")  # "1. The reference says": the first of a list
UNDECIDED = re.compile(r"[.,/:–—-]")


def is_whole(choice: str, rest: str, choices: Sequence[str], labelled: bool = True) -> bool:
    """Whether a text that begins with this choice, and goes on with `rest`, says the choice and nothing larger.

    "8" is not said by "80", "8.5", "8/5", "8%" or "8-9", but by "8", "8.", "8/10" (10 being the greatest choice) and
    "8, because"; "A" not by "And" or "A's", but by "A." and "A)". Without a label in front ("Score:"), "1. The
    reference" is the first of a list.
    """
    if not NUMBER.fullmatch(choice):
        return not re.match(r"\w|['’]\w|-\w", rest)
    if (ratio := OF.match(rest)) is not None:
        greatest = max((c for c in choices if NUMBER.fullmatch(c)), key=float)
        if ratio.end() == len(rest):  # perhaps cut: "8/1" of "8/10"
            return greatest.startswith(ratio[1] or "")
        return ratio[1] is not None and float(ratio[1]) == float(greatest)
    return not ANOTHER.match(rest) and (labelled or not LIST.match(rest))


def longest(text: str, choices: Sequence[str]) -> str | None:
    """The longest choice that the text begins with."""
    return max((c for c in choices if text.startswith(c)), key=len, default=None)


def share(
    text: str,
    probability: float,
    following: Mapping[str, float],
    choices: Sequence[str],
    settled: dict[str, float],
    growing: dict[str, float],
) -> None:
    """Share out the probability of `text` by the tokens `following` it (probability of each): to choices, which it is
    added to in `settled`, and to texts that may grow into longer choices, in `growing`.

    Blanks in front do not count. A text that is a choice keeps all that does not lead to a longer one, or to another
    number ("1" + "5" with the choices 1 to 10). A token that holds a choice and more counts only where it is whole
    whatever follows: "8\n" and "8)", but not "80", "8.5" or "1.", which may become "1.5" or the first of a list.
    """
    grown = {text + token: probability * p for token, p in following.items() if token}
    offered = {new.lstrip() for new in grown}
    mine = text.lstrip()
    kept = probability if mine in choices else 0.0
    for new, p in grown.items():
        begun = new.lstrip()
        longer = [c for c in choices if len(c) > len(begun) and c.startswith(begun)]
        choice = longest(begun, choices)
        if longer and not (begun in choices and offered.issuperset(longer)):
            growing[new] = growing.get(new, 0.0) + p
        elif choice is None:
            continue
        elif choice == mine:
            continue  # stays with the text
        else:
            rest = begun[len(choice) :]
            if is_whole(choice, rest, choices) and not (NUMBER.fullmatch(choice) and UNDECIDED.match(rest)):
                settled[choice] += p
        kept -= p
    if kept > 0 and mine in choices:
        settled[mine] += kept
