"""From verdicts to numbers: mean and relative scores, calibration, 95% intervals (intervals.py).

A judge does not give the ground truth itself the top score. A relative score divides by what it does give: 100 x mean
score of the answers / mean score of the ground truth, per question type; Avg. is the plain mean of the types. One real
row of EASG-Bench, a `before` question whose answer got 4 of 10:

    >>> clip = "4901cdd8-d7e5-401d-b95c-4bd30f489d64"
    >>> row = Scored(f"{clip}:4:before", clip, "before", 4)
    >>> judge = Calibration("the paper's judge", {"before": 1515 / 272})
    >>> scores = summarize([row], judge, key="the paper's judge", types=("before", "after"))
    >>> round(scores.by_type["before"].value, 2)
    71.82

Questions of one clip share a scene, a narration and a judge's reading of it, so they are not independent: intervals
leave out clips, not rows, and p-values (comparison.py, ranking.py) flip clips, not rows. An unreadable verdict has no
score and is never a 0.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from videoqa.errors import UserError
from videoqa.intervals import UNKNOWN, Estimate, estimates

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Scored:
    """One judged row: what the arithmetic needs of a verdict."""

    id: str
    clip: str  # rows of one clip are one cluster
    type: str
    score: float | None  # None: no score could be read; never a stand-in number
    status: str = "ok"  # "empty_prediction" and "judge_error" are counted apart
    group: str = ""  # rows of one group are one question asked in several ways
    ways: int = 0  # how many rows its group has
    choice: str = ""  # multiple choice: the text of the option that was chosen

    def __post_init__(self) -> None:
        if self.score is not None and not math.isfinite(self.score):
            raise UserError(f"row {self.id!r}: score is {self.score}; allowed are finite numbers and None (unreadable)")


@dataclass(frozen=True)
class Calibration:
    """What one judge gives the ground truth, the measure of its scores.

    `key` names everything that moves a score: judge, mode, rubric, sampling and revision of the data. `rows` are the
    ground truth's own verdicts; without them `means` are constants and add no uncertainty to an interval.
    """

    key: str
    means: Mapping[str, float]  # by type; a type of which nothing could be read is absent
    rows: tuple[Scored, ...] = ()

    @classmethod
    def of(cls, key: str, rows: Iterable[Scored], *, types: Sequence[str]) -> Calibration:
        """The calibration that the judged ground truth `rows` give; unreadable ones are left out of the means."""
        checked = each_once(rows, types)
        means = {}
        for name in types:
            scores = [row.score for row in checked if row.type == name and row.score is not None]
            if scores:
                means[name] = math.fsum(scores) / len(scores)
        return cls(key, means, tuple(checked))


@dataclass(frozen=True)
class Summary:
    """The score of one type, or of all types (`Scores.avg`). What cannot be computed is None."""

    n: int
    n_scored: int
    unreadable: int  # n - n_scored, in no mean (but the script's reading counts each as a 0); includes `errors`
    empty: int  # empty predictions: scored, with the lowest score of the rubric
    errors: int  # calls of the judge that failed
    clusters: int  # clips with a scored row
    mean: float | None  # in the rubric's own unit
    standard_error: float | None  # of the mean, clustered by clip; None for fewer than two clips
    mean_interval: tuple[float, float] | None  # 95%; None for fewer than FEWEST_CLIPS clips
    value: float | None  # the measure: 100 x mean / mean of the ground truth, or 100 x mean
    interval: tuple[float, float] | None  # 95%, of `value`, with the uncertainty of the calibration


@dataclass(frozen=True)
class Scores:
    """The scores of one run under one calibration."""

    key: str
    by_type: dict[str, Summary]  # the types that have rows, in the order of `types`
    avg: Summary  # plain mean of the types that have scored rows; counts are sums
    types_missing: tuple[str, ...]  # expected, without a scored row: not in `avg`


def summarize(rows: Iterable[Scored], calibration: Calibration | None, *, key: str, types: Sequence[str]) -> Scores:
    """Mean scores with counts and 95% intervals; the order of `rows` does not matter. With a calibration the value is
    100 x mean / mean of the ground truth (equation 1 of arXiv 2506.05787), without one it is 100 x mean.

    In intervals the rows of a clip and its share of the calibration go together. They are None for fewer than
    `FEWEST_CLIPS` clips (with rows, or with judged ground truth), and for `avg` also when one of its types has fewer
    than two: it would leave that type's uncertainty out. They do not leave the range of the scores that were given.

    Raises UserError when `key` (of the judge that gave the scores) is not the calibration's, for a type outside
    `types`, and for an id that comes twice.
    """
    if calibration is not None and key != calibration.key:
        raise UserError(
            f"these scores and this calibration are not of one judge:\n  scores:      {key}\n"
            f"  calibration: {calibration.key}\nCalibrate the scores' own judge: same mode, rubric, sampling, data."
        )
    checked = each_once(rows, types)
    readable = {row.type for row in checked if row.score is not None}
    present = [name for name in types if name in readable]
    clips = clips_of(checked, calibration.rows if calibration else ())
    sums = sums_of(checked, present, clips)
    means: list[float | None] = [float(total.sum() / count.sum()) for total, count in zip(*sums, strict=True)]
    binary = calibration is None and {row.score for row in checked} <= {0, 1, None}
    of_means = estimates([*means, _mean(means)], sums, limits_of(checked, present), binary)
    if calibration is None:
        of_values = [estimate.times(100) for estimate in of_means]
    else:
        scale = [calibration.means.get(name) for name in present]
        values = [100 * mean / of if mean is not None and of else None for mean, of in zip(means, scale, strict=True)]
        truth = truth_sums(calibration, present, clips)
        limits = 100 * limits_of(checked, present, calibration)
        of_values = estimates([*values, _mean(values)], (100 * sums[0], sums[1], *truth), limits)
    by_type = {}
    for name in types:
        mine = [row for row in checked if row.type == name]
        if name in readable:
            at = present.index(name)
            by_type[name] = _summary(mine, of_means[at], of_values[at])
        elif mine:
            by_type[name] = _summary(mine, UNKNOWN, UNKNOWN)
    avg = _summary(checked, of_means[-1], of_values[-1])
    return Scores(key, by_type, avg, tuple(name for name in types if name not in readable))


def each_once(rows: Iterable[Scored], types: Collection[str]) -> list[Scored]:
    """The rows in the order of their ids (sums of floats depend on it), all of known types, each id once."""
    checked = sorted(rows, key=lambda row: row.id)
    if strange := sorted({row.type for row in checked if row.type not in types}):
        example = next(row for row in checked if row.type == strange[0])
        raise UserError(f"type {', '.join(map(repr, strange))} (row {example.id!r}) is not one of: {', '.join(types)}")
    for row, following in itertools.pairwise(checked):
        if row.id == following.id:
            raise UserError(f"row id {row.id!r} comes more than once: each row counts once")
    return checked


def scale_of(calibration: Calibration | None, types: Sequence[str], key: str) -> Mapping[str, float]:
    """What the scores of each type are divided by. Raises UserError where the calibration has nothing for one."""
    scale = dict.fromkeys(types, 1.0) if calibration is None else calibration.means
    if without := [name for name in types if not scale.get(name)]:
        raise UserError(f"the calibration has no mean above 0 for: {', '.join(without)} (key: {key})")
    return scale


def clips_of(*groups: Iterable[Scored]) -> list[str]:
    return sorted({row.clip for rows in groups for row in rows})


def sums_of(rows: Iterable[Scored], types: Sequence[str], clips: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Sum and count of the scores, each (types, clips): all that an interval over clips needs."""
    import numpy as np

    clip_at = {clip: at for at, clip in enumerate(clips)}
    type_at = {name: at for at, name in enumerate(types)}
    total, count = np.zeros((2, len(types), len(clips)))
    for row in rows:
        if row.score is not None and row.type in type_at:
            total[type_at[row.type], clip_at[row.clip]] += row.score
            count[type_at[row.type], clip_at[row.clip]] += 1
    return total, count


def truth_sums(
    calibration: Calibration | None, types: Sequence[str], clips: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """As `sums_of` for the ground truth; constants are the same in every clip, so that they add no uncertainty."""
    import numpy as np

    if calibration is None:
        return np.ones((len(types), len(clips))), np.ones((len(types), len(clips)))
    if calibration.rows:
        return sums_of(calibration.rows, types, clips)
    means = np.array([calibration.means.get(name, np.nan) for name in types], dtype=float)
    return np.repeat(means[:, None], len(clips), axis=1), np.ones((len(types), len(clips)))


def limits_of(rows: Iterable[Scored], types: Sequence[str], calibration: Calibration | None = None) -> np.ndarray:
    """The lowest and the highest score of each type, (types, 2); with a calibration divided by the ground truth's own
    lowest and highest. Not finite where there is no limit, for these are 0 or not known."""
    import numpy as np

    scores: dict[str, list[float]] = {name: [] for name in types}
    for row in rows:
        if row.score is not None and row.type in scores:
            scores[row.type].append(row.score)
    ends = [(min(of), max(of)) if of else (math.nan, math.nan) for of in scores.values()]
    limits = np.array(ends, dtype=float).reshape(-1, 2)
    if calibration is None:
        return limits
    truth = np.array([[calibration.means.get(name, math.nan)] * 2 for name in types], dtype=float).reshape(-1, 2)
    if calibration.rows:
        truth = limits_of(calibration.rows, types)
    with np.errstate(divide="ignore", invalid="ignore"):
        quotients = limits[:, :, None] / truth[:, None, :]
    # of a difference the lowest score is below 0, and furthest below it in relation to the lowest truth
    return np.stack([np.fmin(*quotients[:, 0].T), np.fmax(*quotients[:, 1].T)], axis=1)


def _summary(rows: Sequence[Scored], mean: Estimate, value: Estimate) -> Summary:
    """Counts of `rows` beside their mean and the measure's value."""
    # by the script's reading an unreadable reply has a score, 0: it is in the mean, and counted here too
    scored = [row for row in rows if row.score is not None and row.status != "unreadable"]
    return Summary(
        n=len(rows),
        n_scored=len(scored),
        unreadable=len(rows) - len(scored),
        empty=sum(row.status == "empty_prediction" for row in rows),
        errors=sum(row.status == "judge_error" for row in rows),
        clusters=len({row.clip for row in scored}),
        mean=mean.value,
        standard_error=mean.standard_error,
        mean_interval=mean.interval,
        value=value.value,
        interval=value.interval,
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """The plain mean; None when there is nothing, or when one of the values is missing."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(values) else None
