"""Ratings from votes, on one scale: 400 points are odds of 10 to 1, the mean is 1000.

Elo           as public arenas compute it: K = 4, start 1000, a tie of either kind is half a win. It depends on the
              order of the votes, which means nothing here, so it is the mean over many orders.
Bradley-Terry the strengths under which the votes are most probable, a tie being half a win for both; no order matters.
              Intervals are a bootstrap over clips, for the votes on one clip's questions belong together.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from videoqa.arena.votes import OUTCOMES, POINTS, SEED, Vote
from videoqa.errors import UserError
from videoqa.intervals import FEWEST_CLIPS
from videoqa.scores import Scored

if TYPE_CHECKING:
    import numpy as np

K, SCALE, START = 4.0, 400.0, 1000.0
ORDERS = 200  # of the votes, for Elo
RESAMPLES = 500  # of the bootstrap
FEW = 0.025  # of the resamples may have no finite rating; more, and the interval has no end


@dataclass(frozen=True, slots=True)
class Rating:
    """One model's rating."""

    model: str
    votes: int
    wins: int
    ties: int  # of both kinds
    value: float
    interval: tuple[float, float] | None  # 95%; None: too few votes for one


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
    """Bradley-Terry ratings with bootstrap intervals over clips, best first.

    Raises UserError where the votes have no finite ratings: some models never lost nor tied against the others, or
    were never compared with them. Resamples without finite ratings are left out; where they are more than `FEW` of
    all, or the votes are on fewer than `FEWEST_CLIPS` clips, no model has an interval.
    """
    import numpy as np

    names = models(votes)
    points = _points(votes, names, clips(votes))
    whole = points.sum(axis=0)
    if apart := _apart(whole, names):
        raise UserError(
            f"there are no finite ratings: no vote, not even a tie, goes to {' or '.join(apart[1])} against "
            f"{' or '.join(apart[0])}; collect more votes"
        )
    values = _strengths(whole)
    draws = [_strengths(sums) for sums in _resampled(points, resamples, seed) if not _apart(sums, names)]
    enough = len(points) >= FEWEST_CLIPS and len(draws) >= max(1.0, (1 - FEW) * resamples)
    return _ratings(votes, values.tolist(), _intervals(np.array(draws)) if enough else None)


def models(votes: Sequence[Vote]) -> list[str]:
    """The models that were voted on, by name."""
    return sorted({model for vote in votes for model in (vote.a, vote.b)})


def clips(votes: Sequence[Vote]) -> list[str]:
    """What the votes are on; a vote without a clip is on its question."""
    return sorted({_clip(vote) for vote in votes})


def _clip(vote: Vote) -> str:
    return vote.clip or vote.question


# -- who beat whom ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Record:
    """One model against another."""

    wins: int
    losses: int
    ties: int  # both good
    both_bad: int

    @property
    def votes(self) -> int:
        """All of them."""
        return self.wins + self.losses + self.ties + self.both_bad

    @property
    def share(self) -> float | None:
        """Points of the one, 0 to 1, a tie of either kind being half a one; None without votes."""
        return (self.wins + (self.ties + self.both_bad) / 2) / self.votes if self.votes else None


def matrix(votes: Sequence[Vote]) -> dict[str, dict[str, Record]]:
    """Each model's record against each other."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for vote in votes:
        counts[vote.a, vote.b, vote.outcome] += 1
        counts[vote.b, vote.a, {"a": "b", "b": "a"}.get(vote.outcome, vote.outcome)] += 1
    names = models(votes)
    return {
        one: {other: Record(*(counts[one, other, outcome] for outcome in OUTCOMES)) for other in names if other != one}
        for one in names
    }


# -- ratings beside scores --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Correlation:
    """How far the ranks by rating agree with those by score: 1 the same, -1 reversed."""

    spearman: float
    kendall: float  # tau-b
    spearman_interval: tuple[float, float] | None  # 95%; None: too few clips, or ranks that are often all equal
    kendall_interval: tuple[float, float] | None
    models: int


def correlation(
    votes: Sequence[Vote],
    scored: Mapping[str, Sequence[Scored]],
    scale: Mapping[str, float] | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Correlation | None:
    """The correlations of ratings and scores over the models that have both. A model's score is the mean over its types
    of the mean of the type's rows, divided by `scale`, the type's mean for the ground truth, where there is one.

    The rating is Bradley-Terry's where that is finite, else a model's share of the points. The intervals resample
    clips, with their votes and rows together. None for fewer than three models, or where one side is all equal.
    """
    import numpy as np

    names = [name for name in models(votes) if any(row.score is not None for row in scored.get(name, ()))]
    if len(names) < 3:
        return None
    mine = [vote for vote in votes if vote.a in names and vote.b in names]
    every = sorted({*clips(mine), *(row.clip for name in names for row in scored[name])})
    points = _points(mine, names, every)
    sums, counts = _scores_by_clip([scored[name] for name in names], every, scale or {})

    def ranked(times: np.ndarray) -> tuple[float, float] | None:
        whole = np.tensordot(times, points, axes=1)
        count = counts @ times
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.nanmean(np.where(count > 0, (sums @ times) / count, np.nan), axis=1)
            games = (whole + whole.T).sum(axis=1)
            rating = whole.sum(axis=1) / games if _apart(whole, names) else _strengths(whole)
        if not (np.isfinite(means).all() and np.isfinite(rating).all()):
            return None
        return _correlated(rating, means)

    if (whole := ranked(np.ones(len(every)))) is None:
        return None
    drawn = np.random.default_rng(seed)
    draws = [ranked(_times(drawn, len(every))) for _ in range(resamples if len(every) >= FEWEST_CLIPS else 0)]
    finite = np.array([one for one in draws if one is not None])
    ends = _intervals(finite) if len(finite) >= max(1.0, (1 - FEW) * resamples) else None
    of_spearman, of_kendall = (None, None) if ends is None else ((float(low), float(high)) for low, high in ends)
    return Correlation(*whole, of_spearman, of_kendall, len(names))


def _correlated(rating: np.ndarray, means: np.ndarray) -> tuple[float, float] | None:
    """Spearman's and Kendall's coefficient; None where one side is all equal. Differences in the last bits are none."""
    from scipy.stats import kendalltau, spearmanr

    sides = [side.round(9) for side in (rating, means)]
    if any(len(set(side.tolist())) < 2 for side in sides):
        return None
    return float(spearmanr(*sides).statistic), float(kendalltau(*sides).statistic)


def _scores_by_clip(
    scored: Sequence[Sequence[Scored]], every: Sequence[str], scale: Mapping[str, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Sum and count of the models' scores, each (models, types, clips)."""
    import numpy as np

    place = {clip: at for at, clip in enumerate(every)}
    types = sorted({row.type for rows in scored for row in rows})
    sums, counts = np.zeros((2, len(scored), len(types), len(every)))
    for model, rows in enumerate(scored):
        for row in rows:
            if row.score is not None:
                at = model, types.index(row.type), place[row.clip]
                sums[at] += row.score / (scale.get(row.type) or 1.0)
                counts[at] += 1
    return sums, counts


# -- the arithmetic ---------------------------------------------------------------------------------------------------


def _times(drawn: np.random.Generator, count: int) -> np.ndarray:
    """How often each of `count` clips comes in one resample."""
    import numpy as np

    return np.bincount(drawn.integers(count, size=count), minlength=count)


def _resampled(points: np.ndarray, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """The points of all clips together, in resamples of clips."""
    import numpy as np

    drawn = np.random.default_rng(seed)
    for _ in range(resamples):
        yield np.tensordot(_times(drawn, len(points)), points, axes=1)


def _points(votes: Sequence[Vote], names: Sequence[str], every: Sequence[str]) -> np.ndarray:
    """(clips, models, models): how many points the one has against the other, a tie being half a one for both."""
    import numpy as np

    place = {name: at for at, name in enumerate(names)}
    row = {clip: at for at, clip in enumerate(every)}
    points = np.zeros((len(row), len(names), len(names)))
    for vote in votes:
        at, a, b = row[_clip(vote)], place[vote.a], place[vote.b]
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
