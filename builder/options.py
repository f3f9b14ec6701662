"""The options of made multiple-choice questions, whatever the benchmark: what is wrong with them by themselves, how far
their length gives the right one away, and what a model chooses that sees nothing else.

    option_faults("Twice.", ["Once.", "Once.", "Never.", "Thrice."], 4)   ->   ["has the same wrong answer twice"]

Length is looked at twice: a right answer that sticks out of its own options, and a whole set in which the longest or
the shortest option is right too often (`length_bias`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from builder.stages import Request, Stages
from videoqa.reading.choices import Choice, read_choice

STICKS_OUT = 1.5  # times the longest wrong answer, or the shortest wrong answer as many times the right one
# words from which on an option that holds the right answer says the same and more ("tea" is not "green tea"); 10 of the
# 500 public EgoSchema questions have such an option
SENTENCE = 5
EMPTY = "has an empty text"
LETTER_TOKENS = 32  # longest reply that names a letter
Item = tuple[str, Sequence[str]]  # right answer, wrong answers

_SPACE = re.compile(r"\s+")


def option_faults(answer: str, wrong: Sequence[str], count: int) -> list[str]:
    """What is wrong with a question's options, of which `count` should be wrong answers; [] where nothing is."""
    options = [_SPACE.sub(" ", option).strip() for option in (answer, *wrong)]
    folded = [option.casefold().rstrip(".") for option in options]
    found = []
    if not all(options):
        found.append(EMPTY)
    if len(wrong) != count:
        found.append(f"has {len(wrong)} wrong answers, not {count}")
    if folded[0] in folded[1:]:
        found.append("has its right answer among the wrong ones")
    if len(set(folded[1:])) < len(wrong):
        found.append("has the same wrong answer twice")
    holds = re.compile(rf"(?<!\w){re.escape(folded[0])}(?!\w)")
    if len(folded[0].split()) >= SENTENCE and any(holds.search(one) for one in folded[1:] if one != folded[0]):
        found.append("has a wrong answer that says all of the right one")
    if out := sticks_out(answer, wrong):
        found.append(f"has a right answer that is the {out} by far")
    return found


def chosen(
    rows: Sequence[Mapping[str, Any]], stages: Stages, stage: str, query: Callable[[Mapping[str, Any]], str]
) -> list[Choice]:
    """What the model of the stages chooses for each row, greedy; `query` says what it is shown."""
    requests = [Request(row["id"], [{"role": "user", "content": query(row)}], LETTER_TOKENS) for row in rows]
    replies = stages.ask(stage, requests, seed=0, temperature=0.0) if requests else []
    return [read_choice(reply.text, row["choices"]) for reply, row in zip(replies, rows, strict=True)]


def sticks_out(answer: str, wrong: Sequence[str], factor: float = STICKS_OUT) -> str:
    """ "longest" or "shortest" where the right answer is that by the factor, in characters; otherwise ""."""
    if not wrong:
        return ""
    lengths = [_length(option) for option in wrong]
    if _length(answer) > factor * max(lengths):
        return "longest"
    return "shortest" if factor * _length(answer) < min(lengths) else ""


# -- the length of the right answers over a set -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LengthBias:
    """How often one is right who takes the longest option, or the shortest, and how often by chance; shares of n.
    Of k options of that length each counts 1/k."""

    n: int
    longest: float
    shortest: float
    chance: float
    margin: float  # two standard errors of a fair set of this size

    @property
    def ruled_out(self) -> bool:
        """Whether the longest or the shortest option is right so seldom that it can be left out when guessing."""
        return min(self.longest, self.shortest) < self.chance - self.margin - 1e-12

    @property
    def given_away(self) -> bool:
        """Whether the longest or the shortest option is right more often than a fair set would have it."""
        return max(self.longest, self.shortest) > self.chance + self.margin + 1e-12


def length_bias(items: Sequence[Item]) -> LengthBias:
    """The bias of a set. ValueError for an empty one."""
    if not items:
        raise ValueError("no questions, so no bias")
    hits = [_hits(answer, wrong) for answer, wrong in items]
    chances = [1 / (1 + len(wrong)) for _, wrong in items]
    return LengthBias(
        n=len(items),
        longest=float(sum(longest for longest, _ in hits) / len(items)),
        shortest=float(sum(shortest for _, shortest in hits) / len(items)),
        chance=math.fsum(chances) / len(items),
        margin=2 * math.sqrt(math.fsum(p * (1 - p) for p in chances)) / len(items),
    )


def give_away(items: Sequence[Item]) -> list[int]:
    """Indices of the questions to leave out so that length gives nothing away in the rest: those whose right answer
    sticks out the most go first, and no more than have to."""
    kept = list(range(len(items)))
    gone: list[int] = []
    while kept and (bias := length_bias([items[i] for i in kept])).given_away:
        longest = bias.longest >= bias.shortest
        worst = max(kept, key=lambda i: (_excess(*items[i], longest=longest), -i))
        kept.remove(worst)
        gone.append(worst)
    return sorted(gone)


def _hits(answer: str, wrong: Sequence[str]) -> tuple[Fraction, Fraction]:
    lengths = [_length(option) for option in (answer, *wrong)]
    return tuple(  # type: ignore[return-value]
        Fraction(lengths[0] == extreme, lengths.count(extreme)) for extreme in (max(lengths), min(lengths))
    )


def _excess(answer: str, wrong: Sequence[str], *, longest: bool) -> float:
    """How many times longer than the longest wrong answer the right one is, or shorter than the shortest."""
    lengths = [_length(option) or 1 for option in wrong] or [1]
    return (_length(answer) or 1) / max(lengths) if longest else min(lengths) / (_length(answer) or 1)


def _length(text: str) -> int:
    return len(_SPACE.sub(" ", text).strip())
