"""How sure a mean is: its standard error, and its 95% interval.

Intervals are t-intervals with the standard error of the jackknife over clips. Its bias and the degrees of freedom are
those of Bell and McCaffrey ("Bias reduction in standard errors for linear regression with multi-stage samples", 2002)
for the numbers of rows that the clips have: ten clips of which two hold most rows say less than ten equal ones. Where
every score is 0 or 1, they are Wilson's intervals with the effective number of rows (Franco et al., "Comparative study
of confidence intervals for proportions in complex sample surveys", 2019): ten right answers of ten are not 100% with
certainty. speed/ranking_simulation.py simulates how often these intervals cover the truth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

FEWEST_CLIPS = 5  # with an interval; below, it would be hardly narrower than the scale
WITHIN_CLIP = 0.1  # correlation of two rows of one clip, for the degrees of freedom only; the data say how wide it gets


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its error."""

    value: float | None
    standard_error: float | None = None
    interval: tuple[float, float] | None = None  # 95%

    def times(self, factor: float) -> Estimate:
        """The same in another unit."""
        error = None if self.standard_error is None else factor * self.standard_error
        interval = None if self.interval is None else (factor * self.interval[0], factor * self.interval[1])
        return Estimate(None if self.value is None else factor * self.value, error, interval)


UNKNOWN = Estimate(None)


def estimates(
    values: Sequence[float | None], sums: Sequence[np.ndarray], limits: np.ndarray, binary: bool = False
) -> list[Estimate]:
    """The values of the types, and last their plain mean, with their errors. `sums` are those of the scores, how many
    these are, and the same two of the ground truth if the values are divided by its mean; each (types, clips)."""
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        # what each value would be without one of the clips, (types, clips); not finite if it were nothing at all
        total, count, *truth = [of.sum(axis=1, keepdims=True) - of for of in sums]
        without = total / count / (truth[0] / truth[1] if truth else 1)
        total, count, *truth = [of.sum(axis=1, keepdims=True) for of in sums]
        moves = without - total / count / (truth[0] / truth[1] if truth else 1)
    types = list(range(len(moves)))
    return [
        _estimate(value, moves[at].mean(axis=0), [of[at] for of in sums[1::2]], limits[at].mean(axis=0), binary)
        if at and value is not None
        else UNKNOWN
        for value, at in zip(values, [*([one] for one in types), types], strict=True)
    ]


def _estimate(
    value: float, moves: np.ndarray, counts: Sequence[np.ndarray], limits: np.ndarray, binary: bool
) -> Estimate:
    """A value with its error: `moves` is by how much it changes when one clip is left out, (clips,); `counts` are the
    numbers of rows that it rests on, each (types, clips)."""
    import numpy as np
    from scipy.special import stdtrit

    if not np.isfinite(moves).all():  # a type of one clip
        return Estimate(value)
    factors, freedoms = zip(*map(_bell_mccaffrey, counts), strict=True)
    error = math.sqrt(max(factors) * float((moves**2).sum()))
    clips = min(int((count.sum(axis=0) > 0).sum()) for count in counts)
    if clips < FEWEST_CLIPS:
        return Estimate(value, error)
    quantile = float(stdtrit(min(freedoms), 0.975))
    if binary:
        return Estimate(value, error, _wilson(value, error, quantile, clips, float(counts[0].sum())))
    low, high = value - quantile * error, value + quantile * error
    lowest, highest = min(float(limits[0]), value), max(float(limits[1]), value)
    return Estimate(value, error, (max(low, lowest), min(high, highest)))


def _bell_mccaffrey(count: np.ndarray) -> tuple[float, float]:
    """Of the mean over types of their rows' means, when clips hold `count` rows (types, clips): the squared moves of
    the jackknife add up to the variance times 1 / the first number, and are known with the second number of degrees of
    freedom, if any two rows of a clip correlate by WITHIN_CLIP. With n clips alike: (n - 1) / n and n - 1."""
    import numpy as np

    types, _ = count.shape
    size = count.sum(axis=1)
    share = 1 / size / types  # of a row in the value, (types,)
    left = 1 / (size[:, None] - count) / types  # the same without one clip, (types, clips)
    inside = WITHIN_CLIP * count[:, None] * count[None]  # covariance of the types' sums of a clip
    inside[range(types), range(types)] += (1 - WITHIN_CLIP) * count
    every = inside.sum(axis=2)
    # the moves' covariance is low @ middle @ low.T + diag(own), and only its trace and its square's are needed
    part = np.einsum("tuc,uc->tc", inside, left)
    own = (part * left).sum(axis=0)
    low = np.vstack([left - share[:, None], part])
    middle = np.block([[every, -np.eye(types)], [-np.eye(types), np.zeros((types, types))]])
    diagonal = np.einsum("ic,ij,jc->c", low, middle, low)
    inner = middle @ (low @ low.T)
    trace = float(diagonal.sum() + own.sum())
    square = float(np.trace(inner @ inner) + 2 * (own * diagonal).sum() + (own**2).sum())
    return float(share @ every @ share) / trace, max(1.0, trace**2 / square)


def _wilson(value: float, error: float, quantile: float, clips: int, rows: float) -> tuple[float, float]:
    """Wilson's interval of a share, for as many independent rows as have this standard error: at most all of them, and
    one for each clip where nothing varies."""
    spread = value * (1 - value)
    n = min(rows, spread / error**2) if error > 0 and spread > 0 else clips
    k = quantile**2 / n
    half = quantile * math.sqrt(spread / n + k / 4 / n)
    return max(0.0, (value + k / 2 - half) / (1 + k)), min(1.0, (value + k / 2 + half) / (1 + k))
