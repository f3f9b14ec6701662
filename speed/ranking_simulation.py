"""How often the intervals of videoqa/intervals.py cover the truth, and how often runs that are alike are called lower.

    python speed/ranking_simulation.py                           clips and rows as in EASG-Bench, drawn
    python speed/ranking_simulation.py --data build/easg-bench   those of a data set

Everything is drawn from seeds: the same command prints the same figures. Half of a score's variance is the run's
own, the rest is shared with the other runs: a quarter by the clip, 9% by its type, 16% by the question. Scores pile up
at the ends of the scale, as judges' do.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from videoqa.measures import ACCURACY, PERCENT, RELATIVE, Measure
from videoqa.ranking import LOWER, against_best
from videoqa.scores import Calibration, Scored

TYPES = ("purpose", "direct", "indirect", "before", "after")
MEAN_ROWS = (3.1, 1.3, 1.4, 1.25, 1.2)  # of a clip, by type: as in EASG-Bench, 1,807 rows of 218 clips
SCORES: dict[
    str, tuple[list[float], list[float]]
] = {  # of a row whose rank among all is u: what judges give to answers and truths, right or wrong, key points
    "answer": ([0.25, 0.45, 0.55, 0.65, 0.8], [1, 2, 4, 7, 8, 9]),
    "truth": ([0.05, 0.1, 0.4], [3, 7, 8, 9]),
    "right": ([0.4], [0, 1]),
    "mostly right": ([0.1], [0, 1]),
    "key points": ([0.5, 0.65, 0.85], [0, 0.3, 0.5, 1]),
}


def mean_of(kind: str) -> float:
    """The true mean of scores of a kind."""
    steps, values = SCORES[kind]
    return float(np.diff([0, *steps, 1]) @ values)


def drawn_counts(clips: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers of rows (types, clips): of the first type every clip has one, of the others many have none."""
    rest = [rng.poisson(rng.gamma(1.0, mean, clips)) for mean in MEAN_ROWS[1:]]
    return np.stack([1 + rng.poisson(MEAN_ROWS[0] - 1, clips), *rest])


def counts_of(data: Path) -> np.ndarray:
    """The numbers of rows (types, clips) of a data set."""
    import easg_bench

    rows = list(easg_bench.load(data))
    clips = sorted({row["clip"] for row in rows})
    counts = np.zeros((len(TYPES), len(clips)), dtype=int)
    for row in rows:
        counts[TYPES.index(row["type"]), clips.index(row["clip"])] += 1
    return counts


def ranks(counts: np.ndarray, runs: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Normal deviates (runs, rows) of which a clip's rows share a part, so do a question's runs; and each row's type
    and clip."""
    kinds, clips = (np.repeat(at.ravel(), counts.ravel()) for at in np.indices(counts.shape))
    of_clip, of_type, of_row = (rng.normal(size=size) for size in (counts.shape[1:], counts.shape, clips.shape))
    shared = 0.5 * of_clip[clips] + 0.3 * of_type[kinds, clips] + 0.4 * of_row
    return shared + np.sqrt(0.5) * rng.normal(size=(runs, len(clips))), kinds, clips


def scores_of(kind: str, deviates: np.ndarray, shift: float = 0.0) -> np.ndarray:
    """The scores of these deviates (variance 1)."""
    from scipy.special import ndtr

    steps, values = SCORES[kind]
    return np.array(values, dtype=float)[np.searchsorted(steps, ndtr(deviates + shift), side="right")]


def rows_of(values: np.ndarray, kinds: np.ndarray, clips: np.ndarray) -> list[Scored]:
    """One run's rows."""
    every = zip(values.tolist(), kinds.tolist(), clips.tolist(), strict=True)
    return [Scored(f"{at:05}", f"clip {clip:04}", TYPES[kind], value) for at, (value, kind, clip) in enumerate(every)]


def coverage(
    measure: Measure, kind: str, structure: Callable[[np.random.Generator], np.ndarray], times: int
) -> tuple[float, float, int]:
    """Of the intervals that are printed for the Avg. and for the last type: the share that covers the truth, each; and
    how often none is printed for the Avg."""
    truth = 100 * mean_of(kind) / (mean_of("truth") if measure.needs_truth else 1)
    covered: list[list[bool]] = [[], []]
    for seed in range(times):
        rng = np.random.default_rng(seed)
        counts = structure(rng)
        deviates, kinds, clips = ranks(counts, 2, rng)
        scale = None
        types = [name for name, count in zip(TYPES, counts, strict=True) if count.any()]
        if measure.needs_truth:
            scale = Calibration.of("judge", rows_of(scores_of("truth", deviates[1]), kinds, clips), types=TYPES)
        scores = measure.compute(rows_of(scores_of(kind, deviates[0]), kinds, clips), scale, key="judge", types=types)
        for at, summary in enumerate([scores.avg, scores.by_type[types[-1]]]):
            if summary.interval:
                covered[at].append(summary.interval[0] <= truth <= summary.interval[1])
    return float(np.mean(covered[0])), float(np.mean(covered[1])), times - len(covered[0])


def boards(
    runs: int, counts: np.ndarray, times: int, shift: float = 0.0, corrected: bool = True
) -> tuple[float, float]:
    """The share of boards on which a run that is as good as the others is called lower than the best; and on which the
    last run is, whose deviates are lower by `shift`."""

    def lower_of(rows: dict[str, list[Scored]]) -> set[str]:
        standings = against_best(rows, None, key="judge", types=TYPES)
        return {name for name, standing in standings.items() if standing.name == LOWER}

    wrong = right = 0
    for seed in range(times):
        deviates, kinds, clips = ranks(counts, runs, np.random.default_rng(seed))
        deviates[-1] -= shift
        rows = {str(run): rows_of(scores_of("answer", one), kinds, clips) for run, one in enumerate(deviates)}
        if corrected:
            lower = lower_of(rows)
        else:  # each run with the best as if there were no others
            scores = {name: PERCENT.compute(of, None, key="judge", types=TYPES) for name, of in rows.items()}
            best = max(rows, key=lambda name: scores[name].avg.value or 0.0)
            lower = set().union(*(lower_of({best: rows[best], name: rows[name]}) for name in rows if name != best))
        last = {str(runs - 1)} if shift else set()
        wrong += bool(lower - last)
        right += bool(lower & last)
    return wrong / times, right / times


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a data set whose clips and rows are taken (default: drawn ones)")
    parser.add_argument("--times", type=int, default=500, help="data sets that are drawn for a line (default: 500)")
    parser.add_argument("--boards", type=int, default=200, help="boards that are drawn for a line (default: 200)")
    given = parser.parse_args(arguments)
    whole = counts_of(given.data) if given.data else drawn_counts(218, np.random.default_rng(0))
    by_type = ", ".join(f"{name} {count}" for name, count in zip(TYPES, whole.sum(axis=1), strict=True))
    print(f"{whole.sum():,} rows of {whole.shape[1]} clips: {by_type}")

    def some(clips: int, types: slice) -> Callable[[np.random.Generator], np.ndarray]:
        def structure(rng: np.random.Generator) -> np.ndarray:
            counts = np.zeros((len(TYPES), clips), dtype=int)
            counts[types] = whole[types][:, rng.integers(0, whole.shape[1], clips)]
            return counts

        return structure

    print("\n95% intervals that cover the truth (Avg., last type; no interval for Avg.)")
    for measure, kind, types in (
        (RELATIVE, "answer", slice(0, 5)),
        (RELATIVE, "answer", slice(0, 1)),
        (PERCENT, "key points", slice(0, 1)),
        (ACCURACY, "right", slice(0, 1)),
        (ACCURACY, "mostly right", slice(0, 1)),
    ):
        for clips in (5, 10, 20, 50, 218):
            avg, last, none = coverage(measure, kind, some(clips, types), given.times)
            name = f"{measure.name}, {kind}, {types.stop} types"
            print(f"{name:32} {clips:4} clips  {avg:6.1%} {last:6.1%}  {none / given.times:6.1%} without", flush=True)

    print("\nboards on which a run that is as good as the others is called lower than the best")
    for runs, corrected in ((2, True), (20, True), (20, False)):
        times = given.boards if corrected else max(1, given.boards // 10)
        wrong, _ = boards(runs, whole, times, corrected=corrected)
        how = "corrected" if corrected else "each pair with the best tested alone"
        print(f"{runs:3} equal runs, {how}: {wrong:.1%} of {times}", flush=True)
    for shift in (0.1, 0.2, 0.3):
        _, right = boards(20, whole, max(1, given.boards // 4), shift)
        points = 100 * (mean_of("answer") - _shifted(shift)) / mean_of("truth")
        print(f"19 equal runs and one lower by {points:.1f} points: it is called lower on {right:.0%}", flush=True)


def _shifted(shift: float) -> float:
    from scipy.special import ndtr, ndtri

    steps, values = SCORES["answer"]
    return float(np.diff([0, *ndtr(ndtri(steps) + shift), 1]) @ values)


if __name__ == "__main__":
    main()
