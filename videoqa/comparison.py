"""Two runs side by side: the paired difference, its interval and its p-value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from videoqa.errors import UserError
from videoqa.intervals import estimates
from videoqa.scores import Calibration, Scored, clips_of, each_once, limits_of, scale_of, sums_of, truth_sums

if TYPE_CHECKING:
    import numpy as np

FLIPS = 9_999  # of the permutation test: the smallest two-sided p-value is 0.0002
SEED = 20_250  # the same rows give the same p-values


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
    calibration: Calibration | None,
    *,
    key: str,
    types: Sequence[str],
) -> Comparison:
    """Paired difference of two runs per type and for the Avg., A minus B, with 95% interval and p-value. One judge has
    rated both, so there is one calibration.

    The interval is that of the mean difference of the rows, clustered by clip as in `summarize`; the p-value is of a
    permutation test that swaps the two runs clip by clip (all swaps where there are few clips, `FLIPS` random ones
    else). Rows with scores 0 and 1 also get McNemar's test, which knows no clips: it is for comparison with tools that
    use it.

    Raises UserError when an id means two different rows, when no row was scored in both, and when the calibration lacks
    a type of these rows.
    """
    import numpy as np

    a, b = ({row.id: row for row in each_once(rows, types)} for rows in (rows_a, rows_b))
    common = _common(a, b)
    paired = [(x, y) for x, y in common if x.score is not None and y.score is not None]
    if not paired:
        raise UserError(f"none of the {len(common)} rows that both runs have was scored in both")
    mine, theirs = [x for x, _ in paired], [y for _, y in paired]
    kinds = {row.type for row in mine}
    present = [name for name in types if name in kinds]
    scale = scale_of(calibration, present, key)
    clips = clips_of(mine, calibration.rows if calibration else ())
    (total_a, count), (total_b, _) = sums_of(mine, present, clips), sums_of(theirs, present, clips)
    # A relative score is a sum over clips; these are the clips' parts, and the Avg.'s below them: (types + 1, clips)
    unit = np.array([[100 / scale[name]] for name in present]) / count.sum(axis=1, keepdims=True)
    part_a, part_b = (np.vstack([part, part.mean(axis=0)]) for part in (total_a * unit, total_b * unit))
    gaps = [replace(x, score=x.score - y.score) for x, y in paired if x.score is not None and y.score is not None]
    differences = [float(a.sum() - b.sum()) for a, b in zip(part_a, part_b, strict=True)]
    limits = 100 * limits_of(gaps, present, calibration)
    sums = (100 * (total_a - total_b), count, *truth_sums(calibration, present, clips))
    of_differences = estimates(differences, sums, limits)
    binary = calibration is None and {row.score for pair in paired for row in pair} <= {0, 1}
    count = np.vstack([count, count.sum(axis=0)])
    by_type = [
        Difference(
            n=int(count[at].sum()),
            clusters=int((count[at] > 0).sum()),
            a=float(part_a[at].sum()),
            b=float(part_b[at].sum()),
            difference=differences[at],
            interval=of_differences[at].interval,
            p_value=_p_value((part_a - part_b)[at, count[at] > 0]),
            mcnemar=_mcnemar(gap.score for gap in gaps if gap.type in names) if binary else None,
        )
        for at, names in enumerate([*([name] for name in present), present])
    ]
    return Comparison(
        key,
        dict(zip(present, by_type[:-1], strict=True)),
        by_type[-1],
        tuple(name for name in types if name not in kinds),
        only_a=len(a) - len(common),
        only_b=len(b) - len(common),
        unscored=len(common) - len(paired),
    )


def _common(a: Mapping[str, Scored], b: Mapping[str, Scored]) -> list[tuple[Scored, Scored]]:
    """The rows of both runs, by id."""
    pairs = [(row, b[name]) for name, row in a.items() if name in b]
    if not pairs:
        raise UserError(
            f"the two runs have no id in common: a has {len(a)} rows ({_some(a)}), b has {len(b)} ({_some(b)})"
        )
    for x, y in pairs:
        if (x.clip, x.type) != (y.clip, y.type):
            raise UserError(
                f"id {x.id!r} is not the same row in both runs: "
                f"a has clip {x.clip!r}, type {x.type!r}; b has clip {y.clip!r}, type {y.type!r}"
            )
    return pairs


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


def _some(ids: Iterable[str]) -> str:
    first = sorted(ids)[:2]
    return ", ".join(map(repr, first)) + ", ..." if first else "none"
