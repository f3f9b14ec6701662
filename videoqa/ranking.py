"""A group of runs: which are lower than the best one, by more than chance can do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from videoqa.comparison import FLIPS, SEED
from videoqa.errors import UserError
from videoqa.scores import Calibration, Scored, clips_of, each_once, scale_of, sums_of

if TYPE_CHECKING:
    import numpy as np

LEVEL = 0.05  # a run is called lower than the best where its p-value is below
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
    scale = scale_of(calibration, present, key)
    whole = [name for name, rows in checked.items() if rows and {row.type for row in rows} == kinds]
    clips = clips_of(*(checked[name] for name in whole))
    if not whole:
        return {name: Standing(OTHER_TYPES, None, None, 0) for name in checked}

    sums = [sums_of(checked[name], present, clips) for name in whole]
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
