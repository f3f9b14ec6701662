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
leave out clips, not rows, and p-values flip clips, not rows. An unreadable verdict has no score and is never a 0.

Intervals are t-intervals with the standard error of the jackknife over clips. Its bias and the degrees of freedom are
those of Bell and McCaffrey ("Bias reduction in standard errors for linear regression with multi-stage samples", 2002)
for the numbers of rows that the clips have: ten clips of which two hold most rows say less than ten equal ones. Where
every score is 0 or 1, they are Wilson's intervals with the effective number of rows (Franco et al., "Comparative study
of confidence intervals for proportions in complex sample surveys", 2019): ten right answers of ten are not 100% with
certainty. speed/ranking_simulation.py simulates how often these intervals cover the truth.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from videoqa.errors import UserError

if TYPE_CHECKING:
    import numpy as np

FEWEST_CLIPS = 5  # with an interval; below, it would be hardly narrower than the scale
WITHIN_CLIP = 0.1  # correlation of two rows of one clip, for the degrees of freedom only; the data say how wide it gets
FLIPS = 9_999  # of the permutation test: the smallest two-sided p-value is 0.0002
LEVEL = 0.05  # a run is called lower than the best where its p-value is below
SEED = 20_250  # the same rows give the same p-values


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
    clips = _clips(checked, calibration.rows if calibration else ())
    sums = _sums(checked, present, clips)
    means: list[float | None] = [float(total.sum() / count.sum()) for total, count in zip(*sums, strict=True)]
    limits = _limits(checked, present)
    binary = calibration is None and {row.score for row in checked} <= {0, 1, None}
    of_means = _estimates([*means, _mean(means)], sums, limits, binary)
    if calibration is None:
        of_values = [estimate.times(100) for estimate in of_means]
    else:
        scale = [calibration.means.get(name) for name in present]
        values = [100 * mean / of if mean is not None and of else None for mean, of in zip(means, scale, strict=True)]
        truth = _truth_sums(calibration, present, clips)
        limits = 100 * limits / _truth_limits(calibration, present)
        of_values = _estimates([*values, _mean(values)], (100 * sums[0], sums[1], *truth), limits)
    by_type = {}
    for name in types:
        mine = [row for row in checked if row.type == name]
        if name in readable:
            at = present.index(name)
            by_type[name] = _summary(mine, of_means[at], of_values[at])
        elif mine:
            by_type[name] = _summary(mine, _UNKNOWN, _UNKNOWN)
    avg = _summary(checked, of_means[-1], of_values[-1])
    return Scores(key, by_type, avg, tuple(name for name in types if name not in readable))


@dataclass(frozen=True, slots=True)
class Measure:
    """What the numbers of a track mean."""

    name: str  # in results: "relative", "percent", "accuracy"
    title: str  # above tables: "Relative score x 100"
    needs_truth: bool  # divided by what the judge gives the ground truth
    counted: Callable[[Iterable[Scored]], list[Scored]] = list  # the rows whose mean it is, of the rows that were rated
    every_row: bool = False  # a row without an answer counts as 0, and so does one without a readable answer

    def compute(
        self, rows: Iterable[Scored], calibration: Calibration | None, *, key: str, types: Sequence[str]
    ) -> Scores:
        """The rows' scores; the calibration counts only where the measure divides by it."""
        return summarize(self.counted(rows), calibration if self.needs_truth else None, key=key, types=types)


def right_in_all(rows: Iterable[Scored]) -> list[Scored]:
    """One row for each group: 1 where the question was answered rightly in all of its ways, else 0. Without a score
    where one of its rows has none. Raises UserError for a group that is not whole, or of several clips or types."""
    return [_one_of(name, group, all(row.score == 1 for row in group)) for name, group in _whole_groups(rows)]


def alike_in_all(rows: Iterable[Scored]) -> list[Scored]:
    """As `right_in_all`: 1 where the same option was chosen in all ways, right or wrong. A row that chose nothing is
    like no other. Rows that are all right are alike, also where two options have one text."""
    return [
        _one_of(
            name,
            group,
            all(row.score == 1 for row in group) or (len({row.choice for row in group}) == 1 and bool(group[0].choice)),
        )
        for name, group in _whole_groups(rows)
    ]


def _whole_groups(rows: Iterable[Scored]) -> Iterator[tuple[str, list[Scored]]]:
    """The rows of each group in the order of their ids, by the groups' names."""
    groups: dict[str, list[Scored]] = {}
    for row in sorted(rows, key=lambda row: row.id):
        if not row.group or row.ways < 1:
            raise UserError(f"row {row.id!r} belongs to no group of rows that ask one question in several ways")
        groups.setdefault(row.group, []).append(row)
    for name, group in sorted(groups.items()):
        ids = ", ".join(repr(row.id) for row in group)
        if len({row.id for row in group}) < len(group):
            raise UserError(f"group {name!r} has a row twice: {ids}")
        if {row.ways for row in group} != {len(group)}:
            raise UserError(f"group {name!r} is not whole: it has {len(group)} of {group[0].ways} rows ({ids})")
        if len({(row.clip, row.type) for row in group}) > 1:
            raise UserError(f"group {name!r} is of several clips or types: {ids}")
        yield name, group


def _one_of(name: str, group: Sequence[Scored], right: bool) -> Scored:
    """The group as one row; its status is the first that is not ok."""
    status = next((row.status for row in group if row.status != "ok"), "ok")
    known = all(row.score is not None for row in group)
    return Scored(name, group[0].clip, group[0].type, float(right) if known else None, status)


RELATIVE = Measure("relative", "Relative score x 100", needs_truth=True)
PERCENT = Measure("percent", "Score x 100", needs_truth=False)
# of rows with score 1 (right) or 0; the scorer gives a reply that it cannot read a 0 and the status "unreadable"
ACCURACY = Measure("accuracy", "Accuracy x 100", needs_truth=False, every_row=True)
# MMBench's CircularEval (arXiv 2307.06281): a question counts once, however often its options were moved round
CIRCULAR = Measure("circular", "CircularEval accuracy x 100", needs_truth=False, counted=right_in_all)
CONSISTENCY = Measure("consistency", "Consistency x 100", needs_truth=False, counted=alike_in_all)


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
    interval: tuple[float, float] | None  # 95%; None for fewer than FEWEST_CLIPS clips
    p_value: float  # two-sided; of "the two runs could be swapped clip by clip"
    mcnemar: float | None = None  # exact, two-sided; rows that are right or wrong only, as if each were its own clip


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

    The interval is that of the mean difference of the rows, clustered by clip as in `summarize`; the p-value is of a
    permutation test that swaps the two runs clip by clip (all swaps where there are few clips, `FLIPS` random ones
    else). Rows with scores 0 and 1 also get McNemar's test, which knows no clips: it is for comparison with tools that
    use it.

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
    # A relative score is a sum over clips; these are the clips' parts, and the Avg.'s below them: (types + 1, clips)
    unit = np.array([[100 / scale[name]] for name in present]) / count.sum(axis=1, keepdims=True)
    part_a, part_b = (np.vstack([part, part.mean(axis=0)]) for part in (total_a * unit, total_b * unit))
    gaps = [replace(x, score=x.score - y.score) for x, y in paired if x.score is not None and y.score is not None]
    differences = [float(a.sum() - b.sum()) for a, b in zip(part_a, part_b, strict=True)]
    limits = 100 * _limits(gaps, present) / _truth_limits(calibration_a, present)
    sums = (100 * (total_a - total_b), count, *_truth_sums(calibration_a, present, clips))
    estimates = _estimates(differences, sums, limits)
    binary = calibration_a is None and {row.score for pair in paired for row in pair} <= {0, 1}
    count = np.vstack([count, count.sum(axis=0)])
    found = [
        Difference(
            n=int(count[at].sum()),
            clusters=int((count[at] > 0).sum()),
            a=float(part_a[at].sum()),
            b=float(part_b[at].sum()),
            difference=differences[at],
            interval=estimates[at].interval,
            p_value=_p_value((part_a - part_b)[at, count[at] > 0]),
            mcnemar=_mcnemar(gap.score for gap in gaps if gap.type in names) if binary else None,
        )
        for at, names in enumerate([*([name] for name in present), present])
    ]
    return Comparison(
        key,
        dict(zip(present, found[:-1], strict=True)),
        found[-1],
        tuple(name for name in types if name not in kinds),
        only_a=len(a) - len(common),
        only_b=len(b) - len(common),
        unscored=len(common) - len(paired),
    )


# -- a group of runs --------------------------------------------------------------------------------------------------

BEST, LIKE_BEST, LOWER = "best", "like the best", "lower"
TOO_FEW_CLIPS, OTHER_TYPES = "too few clips", "other types"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a run of a group stands to the one with the highest Avg."""

    name: str  # BEST, LIKE_BEST (no difference could be shown), LOWER, TOO_FEW_CLIPS or OTHER_TYPES
    behind: float | None  # Avg. of the best minus that of this run, in points; None: it lacks types that others have
    p_value: float | None  # corrected for all pairs of the group; None: nothing was tested
    clips: int  # of the group


def against_best(
    runs: Mapping[str, Iterable[Scored]], calibration: Calibration | None, *, key: str, types: Sequence[str]
) -> dict[str, Standing]:
    """Which runs of a group are lower than the best one, with a chance of at most `LEVEL` that any run is called lower
    that is as good: for 20 equal runs too, although the best of them is the best by luck.

    That one is the observed best depends on the same answers, so the pairs with the best are not tested alone but as
    some of all pairs of runs: the permutation test of `compare`, in which one flip of a clip swaps the runs of every
    pair, and the largest t of all pairs is what chance can do. Pairs that were told apart leave the rest more power
    (step-down: Westfall and Young, "Resampling-based multiple testing", 1993; Romano and Wolf, "Exact and approximate
    stepdown methods for multiple hypothesis testing", JASA 2005). For two runs it is the p-value of `compare`.

    The averages are those of each run's own scored rows. With so few clips that not even the clearest order of them
    has a p-value below `LEVEL` nothing is tested (5 clips: 1 in 16). A run without a scored row of a type that others
    have is not compared: its Avg. is of fewer types.

    Raises UserError when an id means different rows, and when the calibration lacks a type of these rows.
    """
    import numpy as np

    checked = {name: [row for row in each_once(rows, types) if row.score is not None] for name, rows in runs.items()}
    same: dict[str, Scored] = {}
    for name, rows in checked.items():
        for row in rows:
            other = same.setdefault(row.id, row)
            if (row.clip, row.type) != (other.clip, other.type):
                raise UserError(
                    f"id {row.id!r} is not the same row in all runs: {name} has clip {row.clip!r}, type {row.type!r}; "
                    f"another has clip {other.clip!r}, type {other.type!r}"
                )
    kinds = {row.type for row in same.values()}
    present = [name for name in types if name in kinds]
    scale = dict.fromkeys(present, 1.0) if calibration is None else calibration.means
    if without := [name for name in present if not scale.get(name)]:
        raise UserError(f"the calibration has no mean above 0 for: {', '.join(without)} (key: {key})")
    whole = [name for name, rows in checked.items() if rows and {row.type for row in rows} == kinds]
    clips = _clips(*(checked[name] for name in whole))
    if not whole:
        return {name: Standing(OTHER_TYPES, None, None, 0) for name in checked}

    sums = [_sums(checked[name], present, clips) for name in whole]
    total, count = (np.stack(parts) for parts in zip(*sums, strict=True))  # (runs, types, clips)
    size = count.sum(axis=2, keepdims=True)
    mean = total.sum(axis=2, keepdims=True) / size
    share = count.sum(axis=0) / size.sum(axis=0)  # of a clip in a type, where runs lack different rows
    unit = np.array([[100 / scale[name]] for name in present]) / len(present)
    parts = (unit * ((total - mean * count) / size + mean * share)).sum(axis=1)  # (runs, clips): they sum to the Avg.
    averages = parts.sum(axis=1)
    best = int(averages.argmax())
    testable = 2.0 ** (1 - len(clips)) <= LEVEL
    p_values = _step_down(parts, best) if testable else [None] * len(whole)

    def standing(at: int) -> Standing:
        p = p_values[at]
        name = TOO_FEW_CLIPS if p is None else LOWER if p < LEVEL else LIKE_BEST
        behind = float(averages[best] - averages[at])
        return Standing(BEST, 0.0, None, len(clips)) if at == best else Standing(name, behind, p, len(clips))

    standings = {name: standing(at) for at, name in enumerate(whole)}
    return {name: standings.get(name, Standing(OTHER_TYPES, None, None, len(clips))) for name in checked}


def _step_down(parts: np.ndarray, best: int) -> list[float]:
    """The adjusted p-value of each run's difference to the run `best`, from the clips' `parts` (runs, clips)."""
    import numpy as np

    runs, clips = parts.shape
    one, other = np.triu_indices(runs, 1)
    spread = np.sqrt([((parts[a] - parts[b]) ** 2).sum() for a, b in zip(one, other, strict=True)])
    scale = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)  # equal rows: no difference at all
    # t is a rising function of |sum| / root of the sum of squares, which no flip changes
    sizes = np.abs(parts.sum(axis=1)[one] - parts.sum(axis=1)[other]) * scale
    order = np.argsort(-sizes, kind="stable")
    one, other, scale, sizes = one[order], other[order], scale[order], sizes[order]
    reached = np.zeros(len(sizes))
    flips = 0
    for signs in _flips(clips, batch=max(1, min(1_000, 2_000_000 // max(1, len(sizes))))):
        flipped = signs @ parts.T
        sizes_flipped = np.abs(flipped[:, one] - flipped[:, other]) * scale
        largest = np.maximum.accumulate(sizes_flipped[:, ::-1], axis=1)[:, ::-1]  # of this pair and those below it
        reached += (largest >= sizes * (1 - 1e-9)).sum(axis=0)
        flips += len(signs)
    adjusted = np.maximum.accumulate(reached / flips)
    p_values = [1.0] * runs
    for a, b, p in zip(one, other, adjusted, strict=True):
        if best in (a, b):
            p_values[b if a == best else a] = float(p)
    return p_values


def _flips(clips: int, batch: int) -> Iterator[np.ndarray]:
    """Signs for the clips, (at most `batch`, clips) at a time: all that differ in more than the whole's sign where
    these are at most FLIPS, else none flipped and FLIPS random ones."""
    import numpy as np

    if 2 ** (clips - 1) <= FLIPS:
        every = np.arange(2 ** (clips - 1))[:, None] >> np.arange(clips) & 1
        yield from (1.0 - 2 * every[at : at + batch] for at in range(0, len(every), batch))
        return
    yield np.ones((1, clips))
    rng = np.random.default_rng(SEED)
    for at in range(0, FLIPS, batch):
        yield 1.0 - 2 * rng.integers(0, 2, (min(batch, FLIPS - at), clips), dtype=np.int8)


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


def _truth_sums(
    calibration: Calibration | None, types: Sequence[str], clips: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """As `_sums` for the ground truth; constants are the same in every clip, so that they add no uncertainty."""
    import numpy as np

    if calibration is None:
        return np.ones((len(types), len(clips))), np.ones((len(types), len(clips)))
    if calibration.rows:
        return _sums(calibration.rows, types, clips)
    means = np.array([calibration.means.get(name, np.nan) for name in types], dtype=float)
    return np.repeat(means[:, None], len(clips), axis=1), np.ones((len(types), len(clips)))


def _limits(rows: Iterable[Scored], types: Sequence[str]) -> np.ndarray:
    """The lowest and the highest score of each type, (types, 2)."""
    import numpy as np

    scores: dict[str, list[float]] = {name: [] for name in types}
    for row in rows:
        if row.score is not None and row.type in scores:
            scores[row.type].append(row.score)
    every = [(min(of), max(of)) if of else (math.nan, math.nan) for of in scores.values()]
    return np.array(every, dtype=float).reshape(-1, 2)


def _truth_limits(calibration: Calibration | None, types: Sequence[str]) -> np.ndarray:
    """What the `_limits` of scores are divided by: the highest truth below the lowest score, and the other way round;
    (types, 2)."""
    import numpy as np

    if calibration is None:
        return np.ones((len(types), 2))
    if calibration.rows:
        return _limits(calibration.rows, types)[:, ::-1]
    return np.array([[calibration.means.get(name, math.nan)] * 2 for name in types]).reshape(-1, 2)


# -- how sure a number is ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Estimate:
    """A number with its error."""

    value: float | None
    standard_error: float | None = None
    interval: tuple[float, float] | None = None  # 95%

    def times(self, factor: float) -> _Estimate:
        """The same in another unit."""
        error = None if self.standard_error is None else factor * self.standard_error
        interval = None if self.interval is None else (factor * self.interval[0], factor * self.interval[1])
        return _Estimate(None if self.value is None else factor * self.value, error, interval)


_UNKNOWN = _Estimate(None)


def _estimates(
    values: Sequence[float | None], sums: Sequence[np.ndarray], limits: np.ndarray, binary: bool = False
) -> list[_Estimate]:
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
        else _UNKNOWN
        for value, at in zip(values, [*([one] for one in types), types], strict=True)
    ]


def _estimate(
    value: float, moves: np.ndarray, counts: Sequence[np.ndarray], limits: np.ndarray, binary: bool
) -> _Estimate:
    """A value with its error: `moves` is by how much it changes when one clip is left out, (clips,); `counts` are the
    numbers of rows that it rests on, each (types, clips)."""
    import numpy as np
    from scipy.special import stdtrit

    if not np.isfinite(moves).all():  # a type of one clip
        return _Estimate(value)
    factors, freedoms = zip(*map(_bell_mccaffrey, counts), strict=True)
    error = math.sqrt(max(factors) * float((moves**2).sum()))
    clips = min(int((count.sum(axis=0) > 0).sum()) for count in counts)
    if clips < FEWEST_CLIPS:
        return _Estimate(value, error)
    quantile = float(stdtrit(min(freedoms), 0.975))
    if binary:
        return _Estimate(value, error, _wilson(value, error, quantile, clips, float(counts[0].sum())))
    low, high = value - quantile * error, value + quantile * error
    lowest, highest = min(float(limits[0]), value), max(float(limits[1]), value)
    return _Estimate(value, error, (max(low, lowest), min(high, highest)))


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


def _mcnemar(gaps: Iterable[float | None]) -> float:
    """McNemar's exact test of paired right and wrong rows: are +1 and -1 as frequent?"""
    from scipy.stats import binomtest

    signs = [gap for gap in gaps if gap]
    return float(binomtest(sum(gap > 0 for gap in signs), len(signs)).pvalue) if signs else 1.0


def _summary(rows: Sequence[Scored], mean: _Estimate, value: _Estimate) -> Summary:
    """Counts of `rows` beside their mean and the measure's value."""
    # by the script's reading an unreadable reply has a score, 0: it is in the mean, and still told
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


def _some(ids: Iterable[str]) -> str:
    first = sorted(ids)[:2]
    return ", ".join(map(repr, first)) + ", ..." if first else "none"
