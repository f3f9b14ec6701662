"""Pairs of answers, and votes on them.

    {"voter": "anna", "question": "17", "a": "org/model", "b": "org/other", "outcome": "a", "clip": "12"}

A voter votes once on a question and pair of models, whatever the sides.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from videoqa.errors import UserError
from videoqa.files import Lines, short_hash

OUTCOMES = ("a", "b", "tie", "both bad")
POINTS = {"a": 1.0, "b": 0.0, "tie": 0.5, "both bad": 0.5}  # for a
SEED = 20_250  # the same answers give the same pairs


@dataclass(frozen=True, slots=True)
class Pair:
    """Two models' answers to one question, to be voted on; the sides are drawn."""

    question: str
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class Vote:
    """One vote on a pair."""

    voter: str
    question: str
    a: str
    b: str
    outcome: str  # one of OUTCOMES
    clip: str = ""  # of the question: votes on one clip are not independent; empty: the question stands for itself

    def __post_init__(self) -> None:
        if self.outcome not in OUTCOMES:
            raise UserError(f"a vote of {self.voter}: outcome {self.outcome!r}; allowed are {', '.join(OUTCOMES)}")
        if self.a == self.b:
            raise UserError(f"a vote of {self.voter} on question {self.question}: {self.a} against itself")

    @property
    def about(self) -> tuple[str, str, frozenset[str]]:
        """What nobody votes on twice: voter, question and the two models, on whatever sides."""
        return self.voter, self.question, frozenset((self.a, self.b))


def pairs(answers: Mapping[str, Mapping[str, str]], rounds: int | None = None, seed: int = SEED) -> list[Pair]:
    """At most `rounds` pairs for each question (None: all), of models that answered it (`answers`: by model, then by
    question). All pairs come about equally often; which ones and on which side depends on the seed alone."""
    if rounds is not None and rounds < 1:
        raise UserError(f"{rounds} rounds: at least 1")
    times: Counter[tuple[str, str]] = Counter()
    sides: Counter[tuple[str, str]] = Counter()
    made = []
    for question in sorted({id for of in answers.values() for id in of}):
        able = sorted(model for model, of in answers.items() if question in of)
        drawn = {two: short_hash(f"{seed}\n{question}\n{two}") for two in itertools.combinations(able, 2)}
        for two in sorted(drawn, key=lambda two: (times[two], drawn[two]))[:rounds]:
            times[two] += 1
            # the side that this pair had less often; by lot where it had both equally often
            a, b = min(two, two[::-1], key=lambda side: (sides[side], (side == two) == (drawn[two] < "8")))
            sides[a, b] += 1
            made.append(Pair(question, a, b))
    return made


class Votes:
    """The votes of a file, one JSON object a line. Of two votes of one voter on the same pair, which two processes may
    have written at once, the first counts."""

    def __init__(self, path: Path) -> None:
        names = list(Vote.__dataclass_fields__)
        self._lines = Lines(path, *(name for name in names if name != "clip"), kinds=dict.fromkeys(names, str))

    def read(self) -> list[Vote]:
        """All votes in the order of the file."""
        first: dict[tuple[str, str, frozenset[str]], Vote] = {}
        for line in self._lines.read():
            vote = Vote(**{name: line[name] for name in Vote.__dataclass_fields__ if name in line})
            first.setdefault(vote.about, vote)
        return list(first.values())

    def cast(self, vote: Vote) -> None:
        """Put a vote on disk. Raises UserError for a second one on the same question and pair."""
        if any(other.about == vote.about for other in self.read()):
            raise UserError(
                f"{vote.voter} has voted on {vote.a} and {vote.b} at question {vote.question} already; one vote counts"
            )
        self._lines.append(asdict(vote))
