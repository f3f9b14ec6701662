"""Several judges of one run as a panel: what each gives, the mean of it, and how far they agree.

    panel(results, rows, given, truths).lines    ["A and B: Spearman 0.71 (0.62 to 0.79), ..."]

Everything here is of the rows that all of the judges gave a score; how many those are, and which judge lacks the rest,
is part of it. The mean of the panel is the plain mean of the judges' scores, each divided by what that judge gives the
ground truth where the measure says so, so that no judge counts for more by a wider scale. Its interval is that of
intervals.py over clips; those of the agreement are percentiles of a bootstrap of clips.

Agreement is Spearman's rank correlation and Cohen's kappa with quadratic weights. For whole scores the kappa is the
usual one; since its weights are squares of differences, it needs only means and variances, and so it is defined for
expected scores as well (there it is the concordance coefficient of Lin, 1989).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from videoqa.benchmark import AVERAGE, Track, track
from videoqa.errors import UserError
from videoqa.intervals import FEWEST_CLIPS, UNKNOWN, Estimate, estimates
from videoqa.rating import calibration, scored
from videoqa.reply import Verdict
from videoqa.results import Result, describe_judge
from videoqa.rows import Row
from videoqa.scores import Calibration, Scored, clips_of, limits_of, sums_of, truth_sums
from videoqa.tables import MARK, escaped

if TYPE_CHECKING:
    import numpy as np

DRAWS = 1_000  # of the bootstrap
MEAN = "mean of the judges"


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two judges agree on the answers; a figure is None where one of them gives every answer the same."""

    a: str
    b: str
    spearman: Estimate
    kappa: Estimate | None  # None: the judges' scales differ


@dataclass(frozen=True, slots=True)
class Panel:
    """Two or more judges of one run."""

    run: str  # the run's label
    judges: tuple[str, ...]  # told apart
    rows: int  # that any of them was given
    common: int  # that all of them gave a score
    clips: int  # of the common rows
    lacking: tuple[str, ...]  # what each judge has not scored, in words, where it lacks any
    scores: tuple[Mapping[str, Estimate], ...]  # of each judge on the common rows, by column
    mean: Mapping[str, Estimate] | None  # None: the judges' scales differ, and the measure does not even them out
    agreement: tuple[Agreement, ...]  # of each pair

    @property
    def lines_of(self) -> list[tuple[str, Mapping[str, Estimate]]]:
        """The table's lines: each judge, then the mean, where there is one."""
        means = [] if self.mean is None else [(MEAN, self.mean)]
        return [*zip(self.judges, self.scores, strict=True), *means]

    @property
    def lines(self) -> list[str]:
        """The agreement and what is left out, for people."""
        said = [
            f"{one.a} and {one.b}: Spearman {_said(one.spearman)}, quadratic weighted kappa "
            f"{'not defined for two scales' if one.kappa is None else _said(one.kappa)}"
            for one in self.agreement
        ]
        said.append(f"of {self.common:,} of {self.rows:,} answers ({self.clips:,} clips): those that all judges scored")
        if self.mean is None:
            said.append("no mean: the judges' scores have different scales")
        return said + [f"left out for all: {text}" for text in self.lacking]


def panel(
    results: Sequence[Result],
    rows: Sequence[Row],
    given: Sequence[Mapping[str, Verdict]],
    truths: Sequence[Mapping[str, Verdict]],
) -> Panel | None:
    """The judges' results of one run as a panel; `given` are each one's verdicts on the answers, `truths` on the ground
    truth. None where there are not two of them."""
    if len(results) < 2 or any(result.judge is None for result in results):
        return None
    of_track = track(results[0].track)
    names = _names(results)
    each = [{one.id: one for one in scored(rows, verdicts) if _has_score(one)} for verdicts in given]
    asked = {name for verdicts in given for name in verdicts}
    common = sorted(set.intersection(*(set(of) for of in each)))
    mine = [[of[name] for name in common] for of in each]
    scales = [calibration(of_track, r.scorer, rows, one) for r, one in zip(results, truths, strict=True)]
    columns = [
        {name: _mean([(of, scale)], _types(name, of_track)) for name in of_track.columns}
        for of, scale in zip(mine, scales, strict=True)
    ]
    alike = len({result.judge.values for result in results if result.judge}) == 1
    mean = None
    if alike or of_track.measure.needs_truth:
        both = list(zip(mine, scales, strict=True))
        mean = {name: _mean(both, _types(name, of_track)) for name in of_track.columns}
    lacking = [
        f"{name} gave no score to {', '.join(parts)}"
        for name, of, verdicts in zip(names, each, truths, strict=True)
        if (parts := _lacking(len(asked - of.keys()), sum(v.score is None for v in verdicts.values())))
    ]
    pairs = [
        _agreement(names[i], names[j], mine[i], mine[j], alike) for i, j in itertools.combinations(range(len(names)), 2)
    ]
    clips = len(clips_of(mine[0]))
    label = results[0].label
    return Panel(label, names, len(asked), len(common), clips, tuple(lacking), tuple(columns), mean, tuple(pairs))


def _has_score(one: Scored) -> bool:
    return one.score is not None and one.status != "unreadable"  # by the script's reading the latter is a 0


def _names(results: Sequence[Result]) -> tuple[str, ...]:
    """The judges by their models and, where that does not tell them apart, by all that does."""
    models = [describe_judge(result).partition(" (")[0] for result in results]
    whole = [describe_judge(result) for result in results]
    names = [full if models.count(model) > 1 else model for model, full in zip(models, whole, strict=True)]
    if len(set(names)) < len(names):
        raise UserError(f"{results[0].label}: two results are of one judge: {names[0]}")
    return tuple(names)


def _lacking(answers: int, of_truth: int) -> list[str]:
    parts = [f"{answers:,} answers"] if answers else []
    return parts + ([f"{of_truth:,} ground truths"] if of_truth else [])


def _types(column: str, of_track: Track) -> tuple[str, ...]:
    return of_track.types if column == AVERAGE else (column,)


def _mean(judges: Sequence[tuple[Sequence[Scored], Calibration | None]], types: Sequence[str]) -> Estimate:
    """The plain mean over judges and types of the measure's values, of the types that have rows."""
    import numpy as np

    clips = clips_of(*(rows for rows, _ in judges), *(scale.rows for _, scale in judges if scale))
    present = [name for name in types if any(row.type == name for row in judges[0][0])]
    values: list[float | None] = []
    sums: list[tuple[np.ndarray, ...]] = []
    limits = []
    for rows, scale in judges:
        total, count = sums_of(rows, present, clips)
        truth = truth_sums(scale, present, clips) if scale else ()
        for at, name in enumerate(present):
            mean, of = float(total[at].sum() / count[at].sum()), scale.means.get(name) if scale else 1.0
            values.append(100 * mean / of if of else None)
        sums.append((100 * total, count, *truth))
        limits.append(100 * limits_of(rows, present, scale))
    if not present or any(value is None for value in values):
        return UNKNOWN
    known = [value for value in values if value is not None]
    stacked = [np.concatenate(parts) for parts in zip(*sums, strict=True)]
    return estimates([*known, math.fsum(known) / len(known)], stacked, np.concatenate(limits))[-1]


def _agreement(a: str, b: str, mine: Sequence[Scored], theirs: Sequence[Scored], alike: bool) -> Agreement:
    import numpy as np

    first, second = (np.array([one.score for one in rows], dtype=float) for rows in (mine, theirs))
    clips = [one.clip for one in mine]
    return Agreement(
        a,
        b,
        bootstrapped(spearman, first, second, clips),
        bootstrapped(kappa, first, second, clips) if alike else None,
    )


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """The rank correlation; NaN where one side is constant."""
    import numpy as np
    from scipy.stats import rankdata

    ranks = [rankdata(of) for of in (a, b)]
    if not len(a) or any(np.ptp(of) == 0 for of in ranks):
        return math.nan
    x, y = (of - of.mean() for of in ranks)
    return float((x @ y) / math.sqrt(float(x @ x) * float(y @ y)))


def kappa(a: np.ndarray, b: np.ndarray) -> float:
    """Cohen's kappa with quadratic weights; NaN where both sides are one and the same constant."""
    if not len(a):
        return math.nan
    chance = float(a.var() + b.var() + (a.mean() - b.mean()) ** 2)  # mean squared difference of independent ratings
    return 1 - float(((a - b) ** 2).mean()) / chance if chance > 1e-12 else math.nan


def bootstrapped(
    figure: Callable[[np.ndarray, np.ndarray], float], a: np.ndarray, b: np.ndarray, clips: Sequence[str]
) -> Estimate:
    """The figure with its 95% interval: percentiles over resamples of the clips, which are the same at every call.
    Without an interval for few clips, and where the figure is not defined for one of the resamples."""
    import numpy as np

    value = figure(a, b)
    if math.isnan(value):
        return UNKNOWN
    names = sorted(set(clips))
    if len(names) < FEWEST_CLIPS:
        return Estimate(value)
    rows_of: dict[str, list[int]] = {name: [] for name in names}
    for at, clip in enumerate(clips):
        rows_of[clip].append(at)
    places = [np.array(rows_of[name]) for name in names]
    draws = np.random.default_rng(0).integers(0, len(names), (DRAWS, len(names)))
    values = np.array([figure(a[at], b[at]) for at in (np.concatenate([places[i] for i in draw]) for draw in draws)])
    if np.isnan(values).any():
        return Estimate(value)
    low, high = (float(end) for end in np.quantile(values, (0.025, 0.975)))
    return Estimate(value, interval=(low, high))


def _said(figure: Estimate) -> str:
    if figure.value is None:
        return "not defined (a judge gives all the same)"
    interval = f" ({figure.interval[0]:.2f} to {figure.interval[1]:.2f})" if figure.interval else ""
    return f"{figure.value:.2f}{interval}"


def _cells(one: Panel, name: str, columns: Mapping[str, Estimate]) -> list[tuple[str, str]]:
    """Value and interval of each column of a line of the table."""
    mark = MARK if name == MEAN and one.lacking else ""
    return [
        (
            "-" if of.value is None else f"{of.value:.2f}{mark}",
            f"({of.interval[0]:.1f}-{of.interval[1]:.1f})" if of.interval else "",
        )
        for of in columns.values()
    ]


def table(one: Panel, width: int = 140) -> Any:
    """The panel as a rich table."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    look: dict[str, Any] = {"box": box.SIMPLE_HEAD, "padding": (0, 1, 0, 0)} if width < 120 else {}
    shown = Table(
        title=f"Panel of {len(one.judges)} judges: {escape(one.run)}, on the rows that all of them scored", **look
    )
    shown.add_column("", overflow="fold")
    for name in one.scores[0]:
        shown.add_column(name, justify="right", overflow="fold")
    for name, columns in one.lines_of:
        ends = [f"{value}\n{interval}".strip() for value, interval in _cells(one, name, columns)]
        shown.add_row(escape(name), *ends, style="bold" if name == MEAN else None)
    return shown


def markdown(one: Panel) -> str:
    """The panel as a GitHub table with its lines below."""
    lines = [["Panel of judges", *one.scores[0]], ["---", *("---:" for _ in one.scores[0])]]
    for name, columns in one.lines_of:
        cells = [escaped(f"{value} {interval}".strip()) for value, interval in _cells(one, name, columns)]
        lines.append([escaped(name), *cells])
    text = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    return text + "".join(f"\n{escaped(line)}\n" for line in (one.run, *one.lines))
