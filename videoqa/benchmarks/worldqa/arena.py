"""The arena: two hidden answers to one question, a vote for one of them or for neither, and ratings from the votes.

    {"voter": "anna", "question": "17", "a": "org/model", "b": "org/other", "outcome": "a"}

A voter votes once on a question and pair of models. Two ratings are computed, on one scale (400 points are odds of 10
to 1, the mean is 1000):

Elo           as public arenas compute it: K = 4, start 1000, a tie of either kind is half a win. It depends on the
              order of the votes, which means nothing here, so it is the mean over many orders.
Bradley-Terry the strengths under which the votes are most probable, a tie being half a win for both; no order matters.
              Intervals are a bootstrap over questions, for the votes on one question belong together.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from videoqa.errors import UserError
from videoqa.files import Lines, short_hash

if TYPE_CHECKING:
    import numpy as np

OUTCOMES = ("a", "b", "tie", "both bad")
POINTS = {"a": 1.0, "b": 0.0, "tie": 0.5, "both bad": 0.5}  # for a
K, SCALE, START = 4.0, 400.0, 1000.0
ORDERS = 200  # of the votes, for Elo
RESAMPLES = 500  # of the bootstrap
FEW = 0.025  # of the resamples may have no finite rating; more, and the interval has no end
SEED = 20_250  # the same votes give the same ratings


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

    def __post_init__(self) -> None:
        if self.outcome not in OUTCOMES:
            raise UserError(f"a vote of {self.voter}: outcome {self.outcome!r}; allowed are {', '.join(OUTCOMES)}")
        if self.a == self.b:
            raise UserError(f"a vote of {self.voter} on question {self.question}: {self.a} against itself")

    @property
    def about(self) -> tuple[str, str, frozenset[str]]:
        """What nobody votes on twice: voter, question and the two models, on whatever sides."""
        return self.voter, self.question, frozenset((self.a, self.b))


@dataclass(frozen=True, slots=True)
class Rating:
    """One model's rating."""

    model: str
    votes: int
    wins: int
    ties: int  # of both kinds
    value: float
    interval: tuple[float, float] | None  # 95%; None: too few votes for one


# -- pairs and votes --------------------------------------------------------------------------------------------------


def pairs(answers: Mapping[str, Mapping[str, str]], rounds: int, seed: int = SEED) -> list[Pair]:
    """At most `rounds` pairs for each question, of models that answered it (`answers`: by model, then by question).
    All pairs come about equally often; which ones and on which side depends on the seed alone."""
    if rounds < 1:
        raise UserError(f"{rounds} rounds: at least 1")
    times: Counter[tuple[str, str]] = Counter()
    sides: Counter[tuple[str, str]] = Counter()
    made = []
    for question in sorted({id for of in answers.values() for id in of}):
        able = sorted(model for model, of in answers.items() if of.get(question, "").strip())
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
        self._lines = Lines(path, *Vote.__dataclass_fields__, kinds=dict.fromkeys(Vote.__dataclass_fields__, str))

    def read(self) -> list[Vote]:
        """All votes in the order of the file."""
        first: dict[tuple[str, str, frozenset[str]], Vote] = {}
        for line in self._lines.read():
            vote = Vote(**{name: line[name] for name in Vote.__dataclass_fields__})
            first.setdefault(vote.about, vote)
        return list(first.values())

    def cast(self, vote: Vote) -> None:
        """Put a vote on disk. Raises UserError for a second one on the same question and pair."""
        if any(other.about == vote.about for other in self.read()):
            raise UserError(
                f"{vote.voter} has voted on {vote.a} and {vote.b} at question {vote.question} already; one vote counts"
            )
        self._lines.append(asdict(vote))


# -- ratings ----------------------------------------------------------------------------------------------------------


def elo(votes: Sequence[Vote]) -> dict[str, float]:
    """The ratings after these votes in this order."""
    ratings = dict.fromkeys(models(votes), START)
    for vote in votes:
        expected = 1 / (1 + 10 ** ((ratings[vote.b] - ratings[vote.a]) / SCALE))
        change = K * (POINTS[vote.outcome] - expected)
        ratings[vote.a] += change
        ratings[vote.b] -= change
    return ratings


def elo_ratings(votes: Sequence[Vote], orders: int = ORDERS, seed: int = SEED) -> list[Rating]:
    """Elo as the mean over many orders of the votes, best first. The interval is how far the order alone moves it: it
    says nothing of how few votes there are."""
    import numpy as np

    names = models(votes)
    drawn = random.Random(seed)
    # from one order of the votes, whatever the file's is
    shuffled = sorted(votes, key=lambda vote: (vote.question, vote.voter, vote.a, vote.b, vote.outcome))
    draws = []
    for _ in range(orders):
        drawn.shuffle(shuffled)
        of = elo(shuffled)
        draws.append([of[name] for name in names])
    return _ratings(votes, np.mean(draws, axis=0).tolist() if names else [], _intervals(np.array(draws)))


def bradley_terry(votes: Sequence[Vote], resamples: int = RESAMPLES, seed: int = SEED) -> list[Rating]:
    """Bradley-Terry ratings with bootstrap intervals over questions, best first.

    Raises UserError where the votes have no finite ratings: some models never lost nor tied against the others, or
    were never compared with them. Resamples without finite ratings are left out; where they are more than `FEW` of
    all, no model has an interval.
    """
    import numpy as np

    names = models(votes)
    points = _points(votes, names)  # by question, (model, model) -> points of the one against the other
    whole = points.sum(axis=0)
    if apart := _apart(whole, names):
        raise UserError(
            f"there are no finite ratings: no vote, not even a tie, goes to {' or '.join(apart[1])} against "
            f"{' or '.join(apart[0])}; collect more votes"
        )
    values = _strengths(whole)
    drawn = np.random.default_rng(seed)
    draws = []
    for _ in range(resamples):
        counts = np.bincount(drawn.integers(len(points), size=len(points)), minlength=len(points))
        sums = np.tensordot(counts, points, axes=1)
        if not _apart(sums, names):
            draws.append(_strengths(sums))
    enough = len(points) > 1 and len(draws) >= (1 - FEW) * resamples
    return _ratings(votes, values.tolist(), _intervals(np.array(draws)) if enough else None)


def models(votes: Sequence[Vote]) -> list[str]:
    """The models that were voted on, by name."""
    return sorted({model for vote in votes for model in (vote.a, vote.b)})


def rank_correlation(ratings: Sequence[Rating], scores: Mapping[str, float]) -> float | None:
    """Spearman's correlation of ratings and scores over the models that have both; None for fewer than three, or where
    one side is all equal."""
    from scipy.stats import spearmanr

    both = [(rating.value, scores[rating.model]) for rating in ratings if rating.model in scores]
    if len(both) < 3 or any(len(set(side)) < 2 for side in zip(*both, strict=True)):
        return None
    return float(spearmanr(*zip(*both, strict=True)).statistic)


def _points(votes: Sequence[Vote], names: Sequence[str]) -> np.ndarray:
    """(questions, models, models): how many points the one has against the other, a tie being half a one for both."""
    import numpy as np

    place = {name: at for at, name in enumerate(names)}
    row = {question: at for at, question in enumerate(sorted({vote.question for vote in votes}))}
    points = np.zeros((len(row), len(names), len(names)))
    for vote in votes:
        at, a, b = row[vote.question], place[vote.a], place[vote.b]
        points[at, a, b] += POINTS[vote.outcome]
        points[at, b, a] += 1 - POINTS[vote.outcome]
    return points


def _apart(points: np.ndarray, names: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """Models that have no point against them from the others, and those others; None where there are no such models,
    which is when the most probable strengths are finite (Ford, 1957)."""
    from scipy.sparse.csgraph import connected_components

    if len(names) < 2:
        return None
    count, of = connected_components(points > 0, connection="strong")
    for one in range(count if count > 1 else 0):
        inside = of == one
        if not points[~inside][:, inside].any():
            return [names[i] for i in inside.nonzero()[0]], [names[i] for i in (~inside).nonzero()[0]]
    return None


def _strengths(points: np.ndarray) -> np.ndarray:
    """The strengths under which these points are most probable, as ratings with mean START."""
    import numpy as np
    from scipy.optimize import minimize
    from scipy.special import expit

    n = len(points)
    if n < 2:
        return np.full(n, START)
    games = points + points.T

    def loss(strength: np.ndarray) -> tuple[float, np.ndarray]:
        gaps = strength[:, None] - strength[None, :]
        return float((points * np.logaddexp(0, -gaps)).sum()), (games * expit(gaps) - points).sum(axis=1)

    def curvature(strength: np.ndarray) -> np.ndarray:
        chance = expit(strength[:, None] - strength[None, :])
        weight = games * chance * (1 - chance)
        # the mean is free: a constant on all entries holds it and leaves the maximum where it is
        return np.diag(weight.sum(axis=1)) - weight + 1 / n

    close = {"gtol": 1e-10 * float(games.sum())}
    fitted = minimize(loss, np.zeros(n), jac=True, hess=curvature, method="trust-exact", options=close)
    return START + SCALE / math.log(10) * (fitted.x - fitted.x.mean())


def _intervals(draws: np.ndarray) -> np.ndarray | None:
    """(models, 2): the middle 95% of the draws of each model."""
    import numpy as np

    return np.quantile(draws, (0.025, 0.975), axis=0).T if draws.size else None


def _ratings(votes: Sequence[Vote], values: Sequence[float], intervals: np.ndarray | None) -> list[Rating]:
    """The models with their counts, best first."""
    names = models(votes)
    wins: Counter[str] = Counter()
    every: Counter[str] = Counter()
    ties: Counter[str] = Counter()
    for vote in votes:
        every.update((vote.a, vote.b))
        if vote.outcome in ("a", "b"):
            wins[vote.a if vote.outcome == "a" else vote.b] += 1
        else:
            ties.update((vote.a, vote.b))
    spans = [None] * len(names) if intervals is None else [(float(low), float(high)) for low, high in intervals]
    made = [
        Rating(name, every[name], wins[name], ties[name], value, span)
        for name, value, span in zip(names, values, spans, strict=True)
    ]
    return sorted(made, key=lambda rating: (-rating.value, rating.model))
