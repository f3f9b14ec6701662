"""From verdicts to numbers: mean and relative scores, calibration, 95% intervals, and the comparison of two runs.

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
resample clips, not rows, and p-values flip clips, not rows. An unreadable verdict has no score and is never a 0.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from videoqa.errors import UserError

if TYPE_CHECKING:
    import numpy as np

RESAMPLES = 2_000  # of the bootstrap: the ends of a 95% interval move by a few percent of its width
FLIPS = 9_999  # of the permutation test: the smallest two-sided p-value is 0.0002
SEED = 20_250  # the same rows give the same intervals


@dataclass(frozen=True)
class Scored:
    """One judged row: what the arithmetic needs of a verdict."""

    id: str
    clip: str  # rows of one clip are one cluster
    type: str
    score: float | None  # None: no score could be read; never a stand-in number
    status: str = "ok"  # "empty_prediction" and "judge_error" are counted apart
    group: str = ""  # rows of one group are one question asked in several ways
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
    standard_error: float | None  # of the mean, clustered by clip
    mean_interval: tuple[float, float] | None  # 95%
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

    Intervals are percentiles of a bootstrap over clips, in which the rows of a clip and its share of the calibration
    go together. They are None for fewer than two clips (of rows, or of judged ground truth), and for `avg` when one of
    its types has none: it would leave that type's uncertainty out. They come out too narrow when
    there are fewer than about 20 clips.

    Raises UserError when `key` (of the judge that gave the scores) is not the calibration's, for a type outside
    `types`, and for an id that comes twice.
    """
    import numpy as np

    if calibration is not None and key != calibration.key:
        raise UserError(
            f"these scores and this calibration are not of one judge:\n  scores:      {key}\n"
            f"  calibration: {calibration.key}\nCalibrate the scores' own judge: same mode, rubric, sampling, data."
        )
    checked = each_once(rows, types)
    readable = {row.type for row in checked if row.score is not None}
    present = [name for name in types if name in readable]
    clips = _clips(checked, calibration.rows if calibration else ())
    sums = (*_sums(checked, present, clips), *_truth_sums(calibration, present, clips))

    def statistic(total: np.ndarray, count: np.ndarray, truth: np.ndarray, truths: np.ndarray, axis: int) -> np.ndarray:
        means = total.sum(axis) / count.sum(axis)
        return np.stack([means, 100 * means / (truth.sum(axis) / truths.sum(axis))])

    draws = _resample(statistic, sums)  # (mean and value, types, resamples)
    draws[:, sums[1].astype(bool).sum(axis=1) < 2] = np.nan
    draws[1, _uncertain(calibration, present)] = np.nan
    draws = _with_avg(draws)
    by_type = {}
    for name in types:
        mine = [row for row in checked if row.type == name]
        if name in readable:
            at = present.index(name)
            mean = float(sums[0][at].sum() / sums[1][at].sum())
            scale = calibration.means.get(name) if calibration else 1.0
            by_type[name] = _summary(mine, mean, 100 * mean / scale if scale else None, draws[:, at])
        elif mine:
            by_type[name] = _summary(mine, None, None, draws[:, :0])
    scored = [by_type[name] for name in present]
    means, values = [summary.mean for summary in scored], [summary.value for summary in scored]
    avg = _summary(checked, _mean(means), _mean(values), draws[:, -1])
    return Scores(key, by_type, avg, tuple(name for name in types if name not in readable))


@dataclass(frozen=True, slots=True)
class Measure:
    """What the numbers of a track mean."""

    name: str  # in results: "relative", "percent", "accuracy"
    title: str  # above tables: "Relative score x 100"
    needs_truth: bool  # divided by what the judge gives the ground truth
    every_row: bool = False  # a row without an answer counts as 0, and so does one without a readable answer

    def compute(
        self, rows: Iterable[Scored], calibration: Calibration | None, *, key: str, types: Sequence[str]
    ) -> Scores:
        """The rows' scores; the calibration counts only where the measure divides by it."""
        return summarize(rows, calibration if self.needs_truth else None, key=key, types=types)


RELATIVE = Measure("relative", "Relative score x 100", needs_truth=True)
ACCURACY = Measure("accuracy", "Accuracy x 100", needs_truth=False, every_row=True)


def merged(rows: Sequence[Scored]) -> Scored:
    """One question that was asked in several arrangements of its options: it has the lowest of their scores, so it is
    right only if it was right in all. `choice` is the option that was chosen in all of them, "" where there is none."""
    scores = [row.score for row in rows if row.score is not None]
    statuses = [row.status for row in rows if row.status != "ok"]
    choices = {row.choice for row in rows}
    return Scored(
        rows[0].group or rows[0].id,
        rows[0].clip,
        rows[0].type,
        min(scores) if len(scores) == len(rows) else None,
        statuses[0] if statuses else "ok",
        choice=choices.pop() if len(choices) == 1 else "",
    )


@dataclass(frozen=True)
class Difference:
    """Run A minus run B on the rows that both have, in points of the measure."""

    n: int
    clusters: int
    a: float
    b: float
    difference: float
    interval: tuple[float, float] | None  # 95%; None for fewer than two clips
    p_value: float  # two-sided; of "the two runs could be swapped clip by clip"


@dataclass(frozen=True)
class Comparison:
    """Two runs side by side. Rows that are not in the differences are counted here."""

    key: str
    by_type: dict[str, Difference]
    avg: Difference  # of the plain means of the types in `by_type`
    types_missing: tuple[str, ...]
    only_a: int  # ids that run B does not have
    only_b: int
    unscored: int  # ids of both of which at least one verdict has no score


def compare(
    rows_a: Iterable[Scored],
    rows_b: Iterable[Scored],
    calibration_a: Calibration | None,
    calibration_b: Calibration | None,
    *,
    key: str,
    types: Sequence[str],
) -> Comparison:
    """Paired difference of two runs per type and for the Avg., A minus B, with 95% interval and p-value.

    The interval is a bootstrap over clips, the p-value a permutation test that swaps the two runs clip by clip (all
    swaps where there are few clips, `FLIPS` random ones else).

    Raises ValueError when the runs were not judged alike (keys, or calibrations of one key that differ), when an id
    means two different rows, when no row was scored in both, and when the calibration lacks a type of these rows.
    """
    import numpy as np

    if calibration_a is not None and calibration_b is not None:
        if calibration_a.key != calibration_b.key:
            raise UserError(
                f"the two runs were not judged alike:\n  a: {calibration_a.key}\n  b: {calibration_b.key}\n"
                "Judge the answers of one of them again with the other's judge."
            )
        if calibration_a != calibration_b:
            raise UserError(f"two different calibrations have the key {calibration_a.key!r}: score both runs with one")
    a, b = ({row.id: row for row in each_once(rows, types)} for rows in (rows_a, rows_b))
    common = [name for name in a if name in b]
    if not common:
        raise UserError(
            f"the two runs have no id in common: a has {len(a)} rows ({_some(a)}), b has {len(b)} ({_some(b)})"
        )
    pairs = [(a[name], b[name]) for name in common]
    for x, y in pairs:
        if (x.clip, x.type) != (y.clip, y.type):
            raise UserError(
                f"id {x.id!r} is not the same row in both runs: "
                f"a has clip {x.clip!r}, type {x.type!r}; b has clip {y.clip!r}, type {y.type!r}"
            )
    paired = [(x, y) for x, y in pairs if x.score is not None and y.score is not None]
    if not paired:
        raise UserError(f"none of the {len(common)} rows that both runs have was scored in both")
    mine, theirs = [x for x, _ in paired], [y for _, y in paired]
    kinds = {row.type for row in mine}
    present = [name for name in types if name in kinds]
    scale = dict.fromkeys(present, 1.0) if calibration_a is None else calibration_a.means
    if without := [name for name in present if not scale.get(name)]:
        raise UserError(f"the calibration has no mean above 0 for: {', '.join(without)} (key: {key})")

    clips = _clips(mine, calibration_a.rows if calibration_a else ())
    (total_a, count), (total_b, _) = _sums(mine, present, clips), _sums(theirs, present, clips)
    sums = (total_a - total_b, count, *_truth_sums(calibration_a, present, clips))

    def statistic(gap: np.ndarray, count: np.ndarray, truth: np.ndarray, truths: np.ndarray, axis: int) -> np.ndarray:
        return 100 * (gap.sum(axis) / count.sum(axis)) / (truth.sum(axis) / truths.sum(axis))

    draws = _resample(statistic, sums)  # (types, resamples)
    draws[(count > 0).sum(axis=1) < 2] = np.nan
    draws[_uncertain(calibration_a, present)] = np.nan
    draws = _with_avg(draws)

    # A relative score is a sum over clips; these are the clips' parts, and the Avg.'s below them: (types + 1, clips)
    unit = np.array([[100 / scale[name]] for name in present]) / count.sum(axis=1, keepdims=True)
    part_a, part_b = (np.vstack([part, part.mean(axis=0)]) for part in (total_a * unit, total_b * unit))
    count = np.vstack([count, count.sum(axis=0)])
    differences = [
        Difference(
            n=int(count[at].sum()),
            clusters=int((count[at] > 0).sum()),
            a=float(part_a[at].sum()),
            b=float(part_b[at].sum()),
            difference=float(part_a[at].sum() - part_b[at].sum()),
            interval=_interval(draws[at]),
            p_value=_p_value((part_a - part_b)[at, count[at] > 0]),
        )
        for at in range(len(count))
    ]
    return Comparison(
        key,
        dict(zip(present, differences[:-1], strict=True)),
        differences[-1],
        tuple(name for name in types if name not in kinds),
        only_a=len(a) - len(common),
        only_b=len(b) - len(common),
        unscored=len(common) - len(paired),
    )


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


def _clips(*groups: Iterable[Scored]) -> list[str]:
    return sorted({row.clip for rows in groups for row in rows})


def _sums(rows: Iterable[Scored], types: Sequence[str], clips: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Sum and count of the scores, each (types, clips): all that a resample of clips needs to know."""
    import numpy as np

    clip_at = {clip: at for at, clip in enumerate(clips)}
    type_at = {name: at for at, name in enumerate(types)}
    total, count = np.zeros((2, len(types), len(clips)))
    for row in rows:
        if row.score is not None and row.type in type_at:
            total[type_at[row.type], clip_at[row.clip]] += row.score
            count[type_at[row.type], clip_at[row.clip]] += 1
    return total, count


def _truth_sums(
    calibration: Calibration | None, types: Sequence[str], clips: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """As `_sums` for the ground truth; constants are the same in every clip, so that no resample moves them."""
    import numpy as np

    if calibration is None:
        return np.ones((len(types), len(clips))), np.ones((len(types), len(clips)))
    if calibration.rows:
        return _sums(calibration.rows, types, clips)
    means = np.array([calibration.means.get(name, np.nan) for name in types], dtype=float)
    return np.repeat(means[:, None], len(clips), axis=1), np.ones((len(types), len(clips)))


def _uncertain(calibration: Calibration | None, types: Sequence[str]) -> list[bool]:
    """Per type, whether its mean rests on so few clips that its own error is unknown; constants have none."""
    if calibration is None:
        return [False] * len(types)
    truths = [row for row in calibration.rows if row.score is not None]
    return [bool(calibration.rows) and len({row.clip for row in truths if row.type == name}) < 2 for name in types]


def _resample(statistic: Callable[..., np.ndarray], sums: tuple[np.ndarray, ...]) -> np.ndarray:
    """`statistic` of `RESAMPLES` draws of clips, (..., types, resamples); not finite where a draw misses a type."""
    import numpy as np
    from scipy.stats import DegenerateDataWarning, bootstrap

    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        # scipy cannot make an interval of its own where draws miss a type; `_interval` leaves those draws out
        warnings.simplefilter("ignore", DegenerateDataWarning)
        if sums[0].size == 0 or sums[0].shape[-1] < 2:
            return statistic(*sums, axis=-1)[..., None]  # nothing to draw from; no interval is made of it
        return bootstrap(
            sums,
            statistic,
            paired=True,
            vectorized=True,
            axis=-1,
            method="percentile",
            n_resamples=RESAMPLES,
            batch=250,  # bounds the memory: 250 x clips x types numbers at a time
            rng=np.random.default_rng(SEED),
        ).bootstrap_distribution


def _with_avg(draws: np.ndarray) -> np.ndarray:
    """The Avg. of each resample as one more type: (..., types, resamples) -> (..., types + 1, resamples)."""
    import numpy as np

    return np.concatenate([draws, draws.sum(axis=-2, keepdims=True) / max(1, draws.shape[-2])], axis=-2)


def _interval(draws: np.ndarray) -> tuple[float, float] | None:
    """95% of the draws in which the statistic exists (a draw of few clips can miss a type altogether)."""
    import numpy as np

    finite = draws[np.isfinite(draws)]
    if finite.size == 0:
        return None
    low, high = np.quantile(finite, [0.025, 0.975])
    return float(low), float(high)


def _p_value(parts: np.ndarray) -> float:
    """Two-sided p-value of the sum of `parts` (clips,) when each could as well have had the other sign."""
    import numpy as np
    from scipy.stats import permutation_test

    if len(parts) < 2:
        return 1.0  # one clip and its mirror image: both are as far from 0; scipy refuses a sample of one
    test = permutation_test(
        (parts,),  # one sample: scipy flips the signs, in all ways where these are fewer than FLIPS
        lambda x, axis: x.sum(axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=FLIPS,
        batch=1_000,
        rng=np.random.default_rng(SEED),
    )
    return float(test.pvalue)


def _summary(rows: Sequence[Scored], mean: float | None, value: float | None, draws: np.ndarray) -> Summary:
    """Counts of `rows`, and what their resampled means and values `draws` (2, resamples) say."""
    import numpy as np

    # by the script's reading an unreadable reply has a score, 0: it is in the mean, and still told
    scored = [row for row in rows if row.score is not None and row.status != "unreadable"]
    spread = draws[0][np.isfinite(draws[0])]
    return Summary(
        n=len(rows),
        n_scored=len(scored),
        unreadable=len(rows) - len(scored),
        empty=sum(row.status == "empty_prediction" for row in rows),
        errors=sum(row.status == "judge_error" for row in rows),
        clusters=len({row.clip for row in scored}),
        mean=mean,
        standard_error=float(spread.std(ddof=1)) if mean is not None and spread.size > 1 else None,
        mean_interval=None if mean is None else _interval(draws[0]),
        value=value,
        interval=None if value is None else _interval(draws[1]),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """The plain mean; None when there is nothing, or when one of the values is missing."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(values) else None


def _some(ids: Iterable[str]) -> str:
    first = sorted(ids)[:2]
    return ", ".join(map(repr, first)) + ", ..." if first else "none"
