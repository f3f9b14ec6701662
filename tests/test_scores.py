"""Scores, calibration, intervals and comparison: hand-made verdicts, the paper's constants, simulated clips."""

from __future__ import annotations

import dataclasses
import doctest
import functools
import json
import math
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from public_script import script_scores
from scipy.stats import t

import videoqa.scores
from speed import ranking_simulation
from videoqa import comparison, intervals, measures, ranking, scores
from videoqa.benchmark import Published
from videoqa.benchmarks.easg.published import (
    PAPER_CALIBRATION,
    PAPER_KEY,
    PAPER_SCALE,
    PAPER_TABLE2,
    PAPER_TABLE3,
    TYPES,
)
from videoqa.benchmarks.easg.rubrics import read_as_script
from videoqa.scores import Calibration, Scored

summarize = functools.partial(scores.summarize, types=TYPES)
compare = functools.partial(comparison.compare, key="judge", types=TYPES)
calibration_of = functools.partial(Calibration.of, types=TYPES)
ONES = Calibration("judge", dict.fromkeys(TYPES, 1.0))
T = TypeVar("T")


def known(value: T | None) -> T:
    assert value is not None
    return value


def width(interval: tuple[float, float] | None) -> float:
    low, high = known(interval)
    return high - low


def rows_of(type: str, *clips: Sequence[float | None]) -> list[Scored]:
    """One row per score; each list is a clip."""
    return [
        Scored(f"clip{c}:{i}:{type}", f"clip{c}", type, score, "ok" if score is not None else "unreadable")
        for c, scores in enumerate(clips)
        for i, score in enumerate(scores)
    ]


def simulated(seed: int, clips: int = 40, per_clip: int = 5, types: tuple[str, ...] = TYPES) -> list[Scored]:
    """Rows of true mean 6 whose clips differ: half of a score's variance is its clip's."""
    rng = np.random.default_rng(seed)
    level = rng.normal(6, 1, clips)
    return [
        Scored(f"{c}:{i}", f"clip{c}", types[i % len(types)], float(rng.normal(level[c], 1)))
        for c in range(clips)
        for i in range(per_clip)
    ]


def test_importing_the_module_imports_no_numpy() -> None:
    code = "import sys, videoqa.scores; sys.exit(bool({'numpy', 'scipy', 'torch', 'datasets'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[1]).returncode == 0


def test_the_example_in_the_docstring_is_true() -> None:
    assert doctest.testmod(videoqa.scores) == (0, 5)


# Equation 1


def equation_1(scale: dict[str, float]) -> None:
    hand_made = {"purpose": [7, 9, 3], "direct": [10, 1], "indirect": [5], "before": [2, 8, 8, 4], "after": [1, 1, 10]}
    rows = [
        Scored(f"{name}{i}", f"clip{i}", name, score)
        for name, scores in hand_made.items()
        for i, score in enumerate(scores)
    ]
    result = summarize(rows, Calibration(PAPER_KEY, scale), key=PAPER_KEY)
    by_hand = {name: statistics.fmean(100 * s / scale[name] for s in scores) for name, scores in hand_made.items()}
    assert {name: summary.value for name, summary in result.by_type.items()} == pytest.approx(by_hand, abs=1e-9)
    assert result.avg.value == pytest.approx(statistics.fmean(by_hand.values()), abs=1e-9)
    assert result.types_missing == ()
    script = script_scores(rows, scale)
    assert {name: 100 * score.relative for name, score in script.items()} == pytest.approx(by_hand, abs=1e-9)


def test_equation_1_holds_on_the_papers_scale() -> None:
    equation_1(PAPER_SCALE)
    assert PAPER_CALIBRATION.means["direct"] == pytest.approx(7.897887323943662, abs=1e-12)


@pytest.mark.real
def test_the_papers_scale_is_the_published_one(upstream: Path) -> None:
    scale = json.loads((upstream / "scale.json").read_text("utf-8"))
    assert scale.keys() == set(TYPES)
    assert scale == pytest.approx(PAPER_SCALE, abs=1e-12)
    equation_1(scale)


def test_the_ground_truth_under_its_own_calibration_scores_100() -> None:
    truth = simulated(0)
    result = summarize(truth, calibration_of("judge", truth), key="judge")
    assert [summary.value for summary in result.by_type.values()] == pytest.approx([100] * 5)
    assert result.avg.interval == pytest.approx((100, 100)), "the same clips are drawn for both, so nothing varies"


@pytest.mark.parametrize("row", [*PAPER_TABLE2, *PAPER_TABLE3], ids=lambda row: f"{row.model}-{row.way}")
def test_the_papers_averages_are_plain_means_of_its_types(row: Published) -> None:
    assert row.avg == pytest.approx(statistics.fmean(row.scores.values()), abs=0.0101)
    assert row.kind in {"language-only", "video"}


def test_the_papers_tables_agree_on_their_common_row() -> None:
    model, regular = PAPER_TABLE2[-1], PAPER_TABLE3[0]
    assert model.model == regular.model
    assert all(model.scores[name] == score for name, score in regular.scores.items())
    assert [row.kind for row in PAPER_TABLE2].count("language-only") == 3


# Unreadable, empty and failed rows


def test_an_unreadable_verdict_is_left_out_and_counted() -> None:
    """Case J05."""
    rows = rows_of("direct", [8, None, 6])
    direct = summarize(rows, Calibration("judge", {"direct": 7.0}), key="judge").by_type["direct"]
    assert (direct.n, direct.n_scored, direct.unreadable) == (3, 2, 1)
    assert (direct.mean, direct.value) == (7, 100)


def test_the_scripts_reading_counts_an_unreadable_verdict_as_zero_and_says_so() -> None:
    """Cases J05 and J11."""
    direct = script_scores(rows_of("direct", [8, None, 6]), {"direct": 7.0})["direct"]
    assert (direct.n, direct.unreadable_as_zero) == (3, 1)
    assert direct.relative == pytest.approx((8 + 0 + 6) / 3 / 7)
    zeros = script_scores(rows_of("direct", [None, None, None]))["direct"]
    assert (zeros.mean, zeros.relative, zeros.unreadable_as_zero) == (0, 0, 3)


def test_zeros_of_the_scripts_reading_are_in_the_mean_and_counted_as_unreadable() -> None:
    """Case J11: three replies that the public script cannot take apart."""
    replies = ["8\nGood.", "8\n\nPara one.\n\nPara two.", "Score: 8/10\n\nGood."]
    verdicts = [read_as_script(reply) for reply in replies]
    assert [verdict.score for verdict in verdicts] == [0, 0, 0]
    rows = [Scored(str(n), "a", "direct", v.score, v.status) for n, v in enumerate(verdicts)]
    direct = summarize(rows, Calibration("judge", {"direct": 7.0}), key="judge").by_type["direct"]
    assert (direct.n, direct.n_scored, direct.unreadable, direct.mean, direct.value) == (3, 0, 3, 0, 0)


def test_empty_predictions_count_with_their_score_and_failed_calls_do_not() -> None:
    rows = [
        Scored("1", "a", "after", 1, "empty_prediction"),
        Scored("2", "a", "after", 9),
        Scored("3", "b", "after", None, "judge_error"),
        Scored("4", "b", "after", None, "out_of_range"),
    ]
    after = summarize(rows, ONES, key="judge").by_type["after"]
    assert (after.n, after.n_scored, after.unreadable, after.empty, after.errors) == (4, 2, 2, 1, 1)
    assert after.mean == 5
    assert after.clusters == 1, "clip b gave no score"


def test_a_type_of_which_nothing_was_read_has_no_score_and_is_named() -> None:
    result = summarize(rows_of("direct", [None], [None]) + rows_of("after", [4, 6], [5]), ONES, key="judge")
    direct = result.by_type["direct"]
    assert (direct.n, direct.n_scored, direct.mean, direct.value, direct.interval) == (2, 0, None, None, None)
    assert result.types_missing == ("purpose", "direct", "indirect", "before")
    assert (result.avg.n, result.avg.n_scored, result.avg.value) == (5, 3, 500)


def test_no_rows_at_all_give_no_score() -> None:
    result = summarize([], ONES, key="judge")
    assert (result.by_type, result.avg.n, result.avg.mean, result.types_missing) == ({}, 0, None, TYPES)


@pytest.mark.parametrize("truth", [{}, {"direct": 0.0}], ids=["absent", "zero"])
def test_a_calibration_without_a_mean_above_zero_gives_no_relative_score(truth: dict[str, float]) -> None:
    clips: list[list[float | None]] = [[4, 6], [7], [5], [5], [8]]
    rows = rows_of("direct", *clips) + rows_of("after", *clips)
    result = summarize(rows, Calibration("judge", {"after": 5.0, **truth}), key="judge")
    assert (result.by_type["direct"].value, result.by_type["direct"].interval) == (None, None)
    assert result.by_type["direct"].mean_interval is not None
    assert result.by_type["after"].interval is not None
    assert (result.avg.value, result.avg.interval) == (None, None), "an Avg. of fewer types would pass for the whole"


# Bad input


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_a_score_that_is_no_number_is_refused(score: float) -> None:
    with pytest.raises(ValueError, match=r"row 'r7': score is (nan|inf)"):
        Scored("r7", "clip", "direct", score)


def test_a_calibration_of_another_judge_is_an_error_with_both_names() -> None:
    with pytest.raises(ValueError, match=r"(?s)scores:\s+llama/paper.*calibration: judge"):
        summarize(rows_of("direct", [1]), ONES, key="llama/paper")


def test_a_type_outside_the_five_is_an_error_that_names_it() -> None:
    with pytest.raises(ValueError, match=r"'when' \(row 'clip0:0:when'\) is not one of: purpose, direct"):
        summarize(rows_of("when", [1]), ONES, key="judge")


def test_another_benchmark_brings_its_own_types() -> None:
    truth = calibration_of("judge", rows_of("open", [1.0, 0.5], [1.0]), types=("open",))
    result = summarize(rows_of("open", [0.3, 0.5], [1.0]), truth, key="judge", types=("open",))
    assert result.avg.value == pytest.approx(100 * 1.8 / 2.5)
    assert result.types_missing == ()


def test_a_row_that_comes_twice_is_an_error() -> None:
    rows = rows_of("direct", [1, 2])
    with pytest.raises(ValueError, match="'clip0:1:direct' comes more than once"):
        summarize([*rows, rows[1]], ONES, key="judge")


# Intervals


def test_questions_of_one_clip_are_not_independent() -> None:
    """Case S01: 2 clips with 10 questions each, one all 10, one all 2."""
    direct = summarize(rows_of("direct", [10] * 10, [2] * 10), ONES, key="judge").by_type["direct"]
    naive = statistics.stdev([10] * 10 + [2] * 10) / 20**0.5
    assert direct.clusters == 2
    assert direct.standard_error == pytest.approx(statistics.stdev([10, 2]) / 2**0.5), "as of two values"
    assert known(direct.standard_error) > 4 * naive


def test_the_standard_error_of_clips_alike_is_that_of_their_means() -> None:
    means = [3, 5, 5, 6, 9, 2, 7]
    direct = summarize(rows_of("direct", *([m - 1, m + 1] for m in means)), ONES, key="judge").by_type["direct"]
    error = statistics.stdev(means) / len(means) ** 0.5
    assert direct.standard_error == pytest.approx(error)
    middle, quantile = statistics.fmean(means), 2.446912  # of t with 6 degrees of freedom
    assert direct.mean_interval == pytest.approx((middle - quantile * error, middle + quantile * error), abs=1e-5)
    assert direct.interval == pytest.approx([100 * end for end in known(direct.mean_interval)])


def test_clips_of_which_two_hold_most_rows_say_less_than_ten_alike() -> None:
    def freedom(*sizes: int) -> float:
        """Bell and McCaffrey's, from the whole matrix: how the value moves without each clip, by each clip's sum."""
        n = np.array(sizes, dtype=float)
        moves = np.repeat(1 / (n.sum() - n) - 1 / n.sum(), len(n)).reshape(len(n), len(n))
        np.fill_diagonal(moves, -1 / n.sum())
        covariance = moves @ np.diag(0.1 * n**2 + 0.9 * n) @ moves.T
        return float(np.trace(covariance) ** 2 / (covariance**2).sum())

    def quantile(*sizes: int) -> float:
        clips: list[list[float | None]] = [[5 + (-1) ** at] * size for at, size in enumerate(sizes)]
        clips[-1] = [0, 10]  # so that the ends of the scale are far away
        direct = summarize(rows_of("direct", *clips), ONES, key="judge").by_type["direct"]
        return width(direct.mean_interval) / known(direct.standard_error) / 2

    assert quantile(*[2] * 10) == pytest.approx(2.262157), "of t with 9 degrees of freedom"
    assert quantile(20, 20, *[2] * 8) == pytest.approx(t.ppf(0.975, freedom(20, 20, *[2] * 8))), "2.9"


@pytest.mark.parametrize("clips", range(2, 8))
def test_fewer_clips_than_the_bound_have_an_error_and_no_interval(clips: int) -> None:
    rows = rows_of("direct", *([4, 6 + clip % 2] for clip in range(clips)))
    direct = summarize(rows, ONES, key="judge").by_type["direct"]
    difference = compare(rows, [dataclasses.replace(row, score=5) for row in rows], ONES).by_type["direct"]
    assert direct.standard_error is not None
    for interval in (direct.interval, direct.mean_interval, difference.interval):
        assert (interval is not None) == (clips >= intervals.FEWEST_CLIPS)


def test_one_clip_has_a_score_and_no_interval() -> None:
    result = summarize(rows_of("direct", [3, 9, 4]), ONES, key="judge")
    direct = result.by_type["direct"]
    assert direct.clusters == 1
    assert (direct.value, direct.interval, direct.mean_interval, direct.standard_error) == (
        pytest.approx(1600 / 3),
        None,
        None,
        None,
    )
    assert result.avg.interval is None


def test_an_average_with_a_type_of_one_clip_has_no_interval() -> None:
    result = summarize(rows_of("direct", [3, 9], *[[4]] * 4) + rows_of("after", [5]), ONES, key="judge")
    assert result.by_type["direct"].interval is not None
    assert result.by_type["after"].interval is None
    assert result.avg.interval is None


def test_equal_scores_have_an_interval_of_no_width() -> None:
    direct = summarize(rows_of("direct", [7, 7], *[[7]] * 4), ONES, key="judge").by_type["direct"]
    assert (direct.interval, direct.standard_error) == ((700, 700), 0)


def test_an_average_of_types_in_different_clips_has_the_error_of_their_sum() -> None:
    rows = rows_of("direct", [2], [8], [5]) + [Scored(f"after{i}", f"other{i}", "after", 5 + i) for i in range(4)]
    result = summarize(rows, ONES, key="judge")
    errors = [known(result.by_type[name].standard_error) for name in ("direct", "after")]
    assert result.avg.standard_error == pytest.approx(math.hypot(*errors) / 2, rel=0.1)
    assert result.by_type["direct"].interval is None
    assert result.avg.interval is not None, "seven clips"


def test_an_interval_ends_where_the_scores_end() -> None:
    direct = summarize(rows_of("direct", [1], [1], [1], [1], [9]), ONES, key="judge").by_type["direct"]
    assert known(direct.mean_interval)[0] == 1
    assert known(direct.interval)[0] == 100
    truth = calibration_of("judge", rows_of("direct", [8], [10], [8], [10], [9]))
    relative = summarize(rows_of("direct", [1], [1], [1], [1], [9]), truth, key="judge").by_type["direct"]
    assert known(relative.interval)[0] == pytest.approx(100 * 1 / 10)


def test_the_calibrations_own_uncertainty_widens_the_interval() -> None:
    """By the root of 2 when answers and ground truth vary alike and independently."""
    ratios = []
    for seed in range(0, 20, 2):
        judged = calibration_of("judge", simulated(seed + 1))
        constants = dataclasses.replace(judged, rows=())
        unsure, sure = (summarize(simulated(seed), c, key="judge").avg for c in (judged, constants))
        assert (unsure.value, unsure.mean_interval) == (sure.value, sure.mean_interval)
        ratios.append(width(unsure.interval) / width(sure.interval))
    assert statistics.fmean(ratios) == pytest.approx(2**0.5, abs=0.15)


def test_a_calibration_that_varies_with_the_answers_narrows_the_interval() -> None:
    """Clips on which the judge is generous lift both; drawing them together takes that out."""
    truth = simulated(1)
    rows = [dataclasses.replace(row, score=0.7 * known(row.score) + i % 3 / 10) for i, row in enumerate(truth)]
    together = calibration_of("judge", truth)
    apart = dataclasses.replace(together, rows=())
    narrow, wide = (summarize(rows, calibration, key="judge").avg.interval for calibration in (together, apart))
    assert width(narrow) < width(wide) / 3


def test_a_ground_truth_of_one_clip_leaves_the_relative_score_without_interval() -> None:
    truth = calibration_of("judge", rows_of("direct", [8, 9]))
    direct = summarize(rows_of("direct", [4], [6], [5], [5], [5]), truth, key="judge").by_type["direct"]
    assert direct.value == pytest.approx(100 * 5 / 8.5)
    assert direct.interval is None
    assert direct.mean_interval == pytest.approx((5 - 0.8779, 5 + 0.8779), abs=1e-3)


def test_an_unreadable_ground_truth_is_left_out_of_the_scale() -> None:
    assert calibration_of("judge", rows_of("direct", [8, None], [7])).means == {"direct": 7.5}


@pytest.mark.parametrize("clips", [5, 10, 40])
def test_intervals_of_simulated_clips_cover_the_truth_about_as_often_as_they_say(clips: int) -> None:
    """Of 400 boards 97%, or 388 +- 9, would be the goal's upper end and 93%, or 372 +- 10, its lower one."""
    constants = Calibration("judge", {"direct": 6.0})
    covered = [0, 0]
    for seed in range(400):
        rows, truth = (simulated(s, clips=clips, types=("direct",)) for s in (seed, seed + 5000))
        for at, calibration in enumerate([constants, calibration_of("judge", truth)]):
            low, high = known(summarize(rows, calibration, key="judge").avg.interval)
            covered[at] += low <= 100 <= high
    assert all(362 <= count <= 394 for count in covered), covered


def test_the_simulation_of_intervals_and_boards_runs() -> None:
    """speed/ranking_simulation.py, on a few small sets; its own figures are for many."""
    counts = ranking_simulation.drawn_counts(30, np.random.default_rng(0))
    for measure, kind in (
        (measures.RELATIVE, "answer"),
        (measures.PERCENT, "key points"),
        (measures.ACCURACY, "right"),
    ):
        avg, last, without = ranking_simulation.coverage(measure, kind, lambda rng: counts, 40)
        assert min(avg, last) >= 0.8, (kind, avg, last)
        assert without == 0
    wrong, _ = ranking_simulation.boards(3, counts, 10)
    _, right = ranking_simulation.boards(3, counts, 10, shift=1.5)
    assert wrong <= 0.3 and right == 1
    assert ranking_simulation.mean_of("key points") == pytest.approx(0.295)


# Measures


def right_or_wrong(*clips: list[int]) -> list[Scored]:
    return [Scored(f"{c}:{i}", f"clip{c}", "mc", score) for c, clip in enumerate(clips) for i, score in enumerate(clip)]


def test_ten_right_answers_of_ten_are_not_100_percent_for_sure() -> None:
    avg = measures.ACCURACY.compute(right_or_wrong(*[[1]] * 10), None, key="letters", types=("mc",)).avg
    low, high = known(avg.interval)
    assert (avg.value, high) == (100, 100)
    assert 60 < low < 75
    mean_low, mean_high = known(avg.mean_interval)
    assert (100 * mean_low, 100 * mean_high) == (low, high)
    none_right = measures.ACCURACY.compute(right_or_wrong(*[[0]] * 10), None, key="letters", types=("mc",)).avg
    assert none_right.interval == pytest.approx((0, 100 - low))


def test_the_interval_of_a_share_in_many_clips_is_wilsons() -> None:
    right, n, z = 1_200, 2_000, 1.959964
    share = right / n
    avg = measures.ACCURACY.compute(
        right_or_wrong(*[[1]] * right, *[[0]] * (n - right)), None, key="letters", types=("mc",)
    ).avg
    middle = (share + z**2 / 2 / n) / (1 + z**2 / n)
    half = z * (share * (1 - share) / n + z**2 / 4 / n**2) ** 0.5 / (1 + z**2 / n)
    assert avg.interval == pytest.approx((100 * (middle - half), 100 * (middle + half)), abs=0.01)


def test_answers_that_clips_share_make_the_interval_of_a_share_wider() -> None:
    def wide(*clips: list[int]) -> float:
        return width(measures.ACCURACY.compute(right_or_wrong(*clips), None, key="letters", types=("mc",)).avg.interval)

    assert wide(*[[1, 1], [0, 0]] * 50) == pytest.approx(2**0.5 * wide(*[[1], [0]] * 100), rel=0.03)


def test_intervals_of_simulated_shares_cover_them() -> None:
    """Of 400 boards; where only few of a few rows are wrong they cover more."""
    for clips, share in ((10, 0.6), (20, 0.85), (60, 0.3)):
        covered = 0
        for seed in range(400):
            rng = np.random.default_rng(seed)
            chance = rng.beta(4 * share, 4 * (1 - share), clips)
            rows = right_or_wrong(*(rng.binomial(1, p, 3).tolist() for p in chance))
            low, high = known(measures.ACCURACY.compute(rows, None, key="letters", types=("mc",)).avg.interval)
            covered += low <= 100 * share <= high
        assert 368 <= covered <= 396, (clips, share, covered)


def test_percent_is_the_mean_that_no_truth_divides() -> None:
    rows = [Scored(str(at), f"clip{at}", "open", score) for at, score in enumerate([0, 0.3, 0.5, 1, 1])]
    avg = measures.PERCENT.compute(rows, ONES, key="judge", types=("open",)).avg
    assert (avg.mean, avg.value) == (pytest.approx(0.56), pytest.approx(56))
    low, high = known(avg.interval)
    assert 0 <= low < 56 < high <= 100


def rotations(group: str, *rows: tuple[float | None, str], clip: str = "clip", ways: int = 0) -> list[Scored]:
    return [
        Scored(
            *(f"{group}:{at}", clip, "mc", score, "judge_error" if score is None else "ok"),
            *(group, ways or len(rows), choice),
        )
        for at, (score, choice) in enumerate(rows)
    ]


def circular(rows: list[Scored], one_of: Callable[..., list[Scored]] = measures.right_in_all) -> scores.Summary:
    return measures.CIRCULAR.compute(one_of(rows), None, key="letters", types=("mc",)).avg


def test_a_question_is_right_only_if_it_is_right_in_all_rotations() -> None:
    rows = [
        *rotations("right", (1, "cup"), (1, "cup"), (1, "cup"), (1, "cup")),
        *rotations("once wrong", (1, "cup"), (1, "cup"), (0, "jug")),
        *rotations("always the jug", (0, "jug"), (0, "jug"), (0, "jug")),
        *rotations("unread", (0, ""), (0, ""), (0, "")),
    ]
    assert (circular(rows).n, circular(rows).value) == (4, 25)
    assert circular(rows, measures.alike_in_all).value == 50, (
        "right, and always the jug; what was not read is like nothing"
    )


def test_a_constant_letter_has_an_accuracy_and_a_consistency_of_0() -> None:
    rows = rotations("q", *((float(at == 0), f"option {at}") for at in range(4)))
    assert (circular(rows).value, circular(rows, measures.alike_in_all).value) == (0, 0)


def test_a_rotation_that_failed_leaves_its_question_without_a_score_and_counted() -> None:
    rows = [*rotations("a", (1, "cup"), (None, "")), *rotations("b", (1, "cup"), (1, "cup"))]
    for one_of in (measures.right_in_all, measures.alike_in_all):
        avg = circular(rows, one_of)
        assert (avg.n, avg.n_scored, avg.errors, avg.value) == (2, 1, 1, 100)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            rotations("q", (1, "cup"), (1, "cup"), ways=3),
            r"group 'q' is not whole: it has 2 of 3 rows \('q:0', 'q:1'\)",
        ),
        (rotations("q", (1, "cup"), (1, "cup"), ways=1), "group 'q' is not whole: it has 2 of 1"),
        (rotations("q", (1, "cup")) * 2, "group 'q' has a row twice"),
        ([Scored("alone", "clip", "mc", 1)], "row 'alone' belongs to no group"),
        (
            [dataclasses.replace(row, clip=row.id) for row in rotations("q", (1, "cup"), (1, "cup"))],
            "group 'q' is of several clips",
        ),
    ],
    ids=["missing", "foreign", "double", "no group", "clips"],
)
def test_rotations_that_are_no_whole_question_are_an_error(rows: list[Scored], message: str) -> None:
    for one_of in (measures.right_in_all, measures.alike_in_all):
        with pytest.raises(ValueError, match=message):
            circular(rows, one_of)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from([0.0, 1.0, 1.0, None]), st.sampled_from(["a", "b", ""])), min_size=1, max_size=5
        ),
        min_size=1,
        max_size=8,
    )
)
def test_accuracy_is_never_above_consistency(groups: list[list[tuple[float | None, str]]]) -> None:
    rows = [row for at, group in enumerate(groups) for row in rotations(str(at), *group, clip=str(at % 3))]
    accuracy, consistency = circular(rows), circular(rows, measures.alike_in_all)
    assert (accuracy.n_scored, accuracy.unreadable) == (consistency.n_scored, consistency.unreadable)
    if accuracy.value is not None:
        assert accuracy.value <= known(consistency.value)
        per_rotation = statistics.fmean(row.score for row in rows if row.score is not None)
        if all(row.score is not None for row in rows) and len({len(group) for group in groups}) == 1:
            assert accuracy.value <= 100 * per_rotation + 1e-9


def test_the_same_rows_give_the_same_numbers() -> None:
    calibration = calibration_of("judge", simulated(3))
    assert summarize(simulated(4), calibration, key="judge") == summarize(simulated(4), calibration, key="judge")
    assert compare(simulated(4), simulated(5), calibration) == compare(simulated(4), simulated(5), calibration)


@st.composite
def run(draw: st.DrawFn) -> list[Scored]:
    size = draw(st.integers(1, 30))
    scores = st.one_of(st.none(), st.integers(1, 10), st.floats(1, 10))
    return [
        Scored(
            f"row{i}",
            draw(st.sampled_from("abcdefg")),
            draw(st.sampled_from(TYPES)),
            draw(scores),
            draw(st.sampled_from(["ok", "empty_prediction", "judge_error"])),
        )
        for i in range(size)
    ]


@settings(max_examples=30, deadline=None)
@given(rows=run(), truth=run(), random_=st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(rows: list[Scored], truth: list[Scored], random_: random.Random) -> None:
    before = summarize(rows, calibration_of("judge", truth), key="judge")
    random_.shuffle(rows)
    random_.shuffle(truth)
    assert summarize(rows, calibration_of("judge", truth), key="judge") == before


@settings(max_examples=30, deadline=None)
@given(rows=run(), factor=st.sampled_from([0.5, 2.0, 4.0]))
def test_relative_scores_do_not_depend_on_the_unit_of_the_rubric(rows: list[Scored], factor: float) -> None:
    scaled = [dataclasses.replace(row, score=row.score if row.score is None else factor * row.score) for row in rows]
    result, other = (summarize(rs, calibration_of("judge", rs), key="judge") for rs in (rows, scaled))
    assert other.avg.value == pytest.approx(result.avg.value)
    assert other.avg.interval == pytest.approx(result.avg.interval)


@settings(max_examples=30, deadline=None)
@given(rows=run())
def test_counts_add_up_and_intervals_stay_inside_the_scores(rows: list[Scored]) -> None:
    result = summarize(rows, ONES, key="judge")
    for name, summary in result.by_type.items():
        scores = [row.score for row in rows if row.type == name and row.score is not None]
        assert (summary.n_scored, summary.unreadable) == (len(scores), summary.n - len(scores))
        if summary.interval:
            low, high = summary.interval
            assert 100 * min(scores) - 1e-6 <= low <= high <= 100 * max(scores) + 1e-6
    assert result.avg.n == sum(summary.n for summary in result.by_type.values()) == len(rows)
    assert (result.avg.value is None) == (not any(row.score is not None for row in rows))


# Comparison


def test_a_run_that_is_better_everywhere_wins() -> None:
    a = simulated(6)
    b = [dataclasses.replace(row, score=known(row.score) - 1) for row in a]
    calibration = Calibration("judge", dict.fromkeys(TYPES, 5.0))
    result = compare(a, b, calibration)
    assert list(result.by_type) == [name for name in TYPES if name not in result.types_missing]
    for difference in [*result.by_type.values(), result.avg]:
        assert difference.difference == pytest.approx(20)
        assert difference.interval == pytest.approx((20, 20))
        assert difference.p_value == pytest.approx(0.0002)
    assert result.avg.a == pytest.approx(summarize(a, calibration, key="judge").avg.value)


def test_swapping_the_runs_only_changes_the_sign() -> None:
    a, b, calibration = simulated(7), simulated(8), calibration_of("judge", simulated(9))
    there, back = compare(a, b, calibration), compare(b, a, calibration)
    for name in there.by_type:
        one, two = there.by_type[name], back.by_type[name]
        assert (one.a, one.b, one.p_value, one.n) == (two.b, two.a, two.p_value, two.n)
        assert one.difference == -two.difference
        assert one.interval == pytest.approx(tuple(-end for end in reversed(known(two.interval))))
    assert there.avg.p_value == back.avg.p_value


def test_a_run_against_itself_shows_no_difference() -> None:
    rows = simulated(7)
    avg = compare(rows, rows, ONES).avg
    assert (avg.difference, avg.interval, avg.p_value) == (0, (0, 0), 1)


def test_few_clips_are_swapped_in_all_ways() -> None:
    a, b = rows_of("direct", [9], [8], [7]), rows_of("direct", [1], [2], [3])
    direct = compare(a, b, ONES).by_type["direct"]
    assert direct.p_value == pytest.approx(2 / 2**3), "of the 8 swaps two are as far apart as these"
    assert (direct.n, direct.clusters) == (3, 3)


def test_one_clip_can_prove_nothing() -> None:
    direct = compare(rows_of("direct", [9, 9, 9]), rows_of("direct", [1, 1, 1]), ONES).by_type["direct"]
    assert (direct.difference, direct.interval, direct.p_value) == (pytest.approx(800), None, 1)


def test_pairing_finds_a_difference_that_two_intervals_hide() -> None:
    a = simulated(10)
    b = [dataclasses.replace(row, score=known(row.score) - 0.2 - i % 3 / 10) for i, row in enumerate(a)]
    result = compare(a, b, ONES)
    (low_a, _), (_, high_b) = (known(summarize(rows, ONES, key="judge").avg.interval) for rows in (a, b))
    assert low_a < high_b
    assert known(result.avg.interval)[0] > 0
    assert result.avg.p_value < 0.001


def test_the_interval_of_a_difference_below_0_reaches_to_both_sides_of_it() -> None:
    """The lowest gap, -4, is lowest in relation to the lowest truth, 5: it is no limit at -4 / 9."""
    truth = Calibration.of("judge", rows_of("direct", *[[5], [9]] * 10), types=TYPES)
    difference = compare(rows_of("direct", *[[1]] * 20), rows_of("direct", *[[5]] * 20), truth).avg
    low, high = known(difference.interval)
    assert difference.difference == pytest.approx(-100 * 4 / 7)
    assert low < difference.difference < high


@pytest.mark.filterwarnings("error")
def test_a_ground_truth_that_was_given_nothing_has_no_relative_score_and_no_warning() -> None:
    nothing = Calibration.of("judge", rows_of("direct", *[[0]] * 6), types=TYPES)
    avg = summarize(rows_of("direct", *[[0, 5]] * 6), nothing, key="judge").avg
    assert (avg.mean, avg.value, avg.interval) == (2.5, None, None)


def test_only_rows_that_both_runs_scored_are_compared_and_the_others_are_counted() -> None:
    a = [*rows_of("direct", [9, None, 5], [7, 7]), Scored("a only", "clip9", "after", 10)]
    b = [*rows_of("direct", [8, 4, 5], [None, 6]), Scored("b 1", "clip9", "after", 1), Scored("b 2", "x", "after", 1)]
    result = compare(a, b, ONES)
    assert (result.only_a, result.only_b, result.unscored) == (1, 2, 2)
    direct = result.by_type["direct"]
    assert (direct.n, direct.a, direct.b) == (3, pytest.approx(700), pytest.approx(1900 / 3))
    assert result.types_missing == ("purpose", "indirect", "before", "after")


def test_mcnemars_test_counts_the_rows_that_only_one_run_has_right() -> None:
    a = right_or_wrong(*[[1]] * 9, [0], *[[1]] * 5)
    b = right_or_wrong(*[[0]] * 9, [1], *[[1]] * 5)
    avg = comparison.compare(a, b, None, key="letters", types=("mc",)).avg
    assert avg.mcnemar == pytest.approx(2 * (1 + 10) / 2**10), "9 of 10 or more, and as much on the other side"
    assert avg.difference == pytest.approx(100 * 8 / 15)
    same = comparison.compare(a, a, None, key="letters", types=("mc",))
    assert (same.avg.mcnemar, same.by_type["mc"].mcnemar) == (1, 1)


def test_mcnemars_test_is_for_right_and_wrong_rows_only() -> None:
    a = right_or_wrong([1], [0], [1])
    half = [dataclasses.replace(row, score=0.5) for row in a]
    assert comparison.compare(a, half, None, key="letters", types=("mc",)).avg.mcnemar is None
    ones = Calibration("letters", {"mc": 1.0})
    assert comparison.compare(a, a, ones, key="letters", types=("mc",)).avg.mcnemar is None


def test_p_values_are_about_uniform_where_there_is_no_difference() -> None:
    p_values = [
        compare(
            simulated(seed, clips=15, types=("direct",)),
            simulated(seed + 1000, clips=15, types=("direct",)),
            ONES,
        )
        .by_type["direct"]
        .p_value
        for seed in range(60)
    ]
    assert 0.35 < statistics.fmean(p_values) < 0.65
    assert sum(p < 0.05 for p in p_values) <= 9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a, b: (a, [Scored("z", "c", "direct", 1)], ONES), "no id in common: a has 2 rows.*b has 1"),
        (lambda a, b: (a, [], ONES), r"no id in common: .* b has 0 \(none\)"),
        (lambda a, b: (a, [dataclasses.replace(b[0], clip="x")], ONES), "not the same row in both.*clip 'x'"),
        (lambda a, b: (a, [dataclasses.replace(b[0], score=None)], ONES), "none of the 1 rows"),
        (lambda a, b: (a, b, Calibration("judge", {"after": 7.0})), "no mean above 0 for: direct"),
        (lambda a, b: (a, [*b, b[0]], ONES), "comes more than once"),
    ],
    ids=["ids", "empty run", "clips", "unreadable", "no mean", "double id"],
)
def test_runs_that_cannot_be_compared_are_an_error(change: Callable, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare(*change(rows_of("direct", [1], [2]), rows_of("direct", [3], [4])))


# A group of runs


def board(seed: int, runs: int, clips: int = 30, lower: float = 0.0, per_clip: int = 3) -> dict[str, list[Scored]]:
    """Equal runs whose rows share the difficulty of their clip and question; the last run is lower by so much."""
    rng = np.random.default_rng(seed)
    hard = rng.normal(6, 1, (clips, 1)) + rng.normal(0, 1, (clips, per_clip))
    return {
        f"run {run:02}": [
            Scored(f"{c}:{i}", f"clip{c}", TYPES[i % 2], score - lower * (run == runs - 1))
            for c, clip in enumerate((hard + rng.normal(0, 1, hard.shape)).tolist())
            for i, score in enumerate(clip)
        ]
        for run in range(runs)
    }


against_best = functools.partial(ranking.against_best, key="judge", types=TYPES)


def test_of_two_runs_the_p_value_against_the_best_is_that_of_their_comparison() -> None:
    for clips in (8, 30):
        runs = board(3, 2, clips, lower=0.4)
        (a, b), standings = runs.values(), against_best(runs, ONES)
        avg = compare(a, b, ONES).avg
        assert standings["run 00"] == ranking.Standing(ranking.BEST, 0, None, clips)
        assert standings["run 01"].behind == pytest.approx(avg.difference)
        assert standings["run 01"].p_value == pytest.approx(avg.p_value, abs=0.02 if clips > 14 else 1e-9)


def test_of_20_equal_runs_none_is_called_lower_on_more_than_one_board_of_20() -> None:
    """speed/ranking_simulation.py has the figures of many boards; without a correction it is 19 boards of 20."""
    wrong = [
        any(standing.name == ranking.LOWER for standing in against_best(board(seed, 20), ONES).values())
        for seed in range(40)
    ]
    assert sum(wrong) <= 5, "more than 5 of 40 has a chance of 1% where the chance of each is 5%"
    lonely = [
        min(compare(runs["run 00"], other, ONES).avg.p_value for other in list(runs.values())[1:]) < 0.05
        for runs in (board(seed, 20) for seed in range(3))
    ]
    assert any(lonely), "there is something to correct"


def test_a_run_that_is_really_lower_is_called_lower_and_the_others_are_not() -> None:
    standings = against_best(board(5, 20, lower=1.5), ONES)
    assert standings["run 19"].name == ranking.LOWER
    assert known(standings["run 19"].p_value) < 0.01
    names = [standing.name for standing in standings.values()]
    assert (names.count(ranking.BEST), names.count(ranking.LIKE_BEST), names.count(ranking.LOWER)) == (1, 18, 1)


def test_a_run_told_apart_leaves_the_others_more_power() -> None:
    """The p-values of the rest are those of the rest alone, but for the pairs with the run that is told apart."""
    runs = board(5, 8, lower=3)
    rest = dict(list(runs.items())[:-1])
    alone, together = against_best(rest, ONES), against_best(runs, ONES)
    assert all(
        known(together[name].p_value) == pytest.approx(known(alone[name].p_value), abs=0.02)
        for name in rest
        if alone[name].p_value is not None
    )


def test_equal_rows_are_like_the_best_and_the_first_run_is_it() -> None:
    rows = board(1, 1)["run 00"]
    standings = against_best({"b": rows, "a": rows, "c": rows}, ONES)
    assert [(s.name, s.behind, s.p_value) for s in standings.values()] == [
        (ranking.BEST, 0, None),
        (ranking.LIKE_BEST, 0, 1),
        (ranking.LIKE_BEST, 0, 1),
    ]


@pytest.mark.parametrize(
    ("clips", "name"), [(1, ranking.TOO_FEW_CLIPS), (5, ranking.TOO_FEW_CLIPS), (6, ranking.LOWER)]
)
def test_with_too_few_clips_nothing_is_called_lower(clips: int, name: str) -> None:
    a = rows_of("direct", *[[9]] * clips)
    worse = [dataclasses.replace(row, score=1) for row in a]
    standing = against_best({"a": a, "worse": worse}, ONES)["worse"]
    assert (standing.name, standing.behind, standing.clips) == (name, pytest.approx(800), clips)
    assert (standing.p_value is None) == (name == ranking.TOO_FEW_CLIPS)


def test_a_run_that_lacks_a_type_is_not_compared() -> None:
    runs = board(2, 3)
    runs["half"] = [row for row in runs["run 00"] if row.type == TYPES[0]]
    runs["nothing"] = [dataclasses.replace(row, score=None) for row in runs["run 00"]]
    standings = against_best(runs, ONES)
    assert standings["half"] == standings["nothing"] == ranking.Standing(ranking.OTHER_TYPES, None, None, 30)
    assert {name: standings[name] for name in list(runs)[:3]} == against_best(board(2, 3), ONES)
    assert list(standings) == list(runs)


def test_rows_that_one_run_lacks_change_its_average_and_no_more() -> None:
    runs = board(4, 3, lower=2)
    runs["run 01"] = [
        dataclasses.replace(row, score=None if at % 7 == 0 else row.score) for at, row in enumerate(runs["run 01"])
    ]
    standings = against_best(runs, ONES)
    averages = {name: known(summarize(rows, ONES, key="judge").avg.value) for name, rows in runs.items()}
    assert {name: standing.behind for name, standing in standings.items()} == pytest.approx(
        {name: max(averages.values()) - value for name, value in averages.items()}
    )
    assert standings["run 02"].name == ranking.LOWER


def test_the_scale_of_the_types_moves_what_a_run_is_behind() -> None:
    runs = board(4, 2, lower=2)
    half = Calibration("judge", dict.fromkeys(TYPES, 2.0))
    (one, two) = (against_best(runs, scale)["run 01"] for scale in (ONES, half))
    assert known(two.behind) == pytest.approx(known(one.behind) / 2)
    assert two.p_value == one.p_value


def test_no_runs_and_runs_without_rows_have_no_best() -> None:
    assert against_best({}, ONES) == {}
    assert against_best({"a": []}, ONES) == {"a": ranking.Standing(ranking.OTHER_TYPES, None, None, 0)}
    assert against_best({"a": rows_of("direct", [5])}, ONES)["a"].name == ranking.BEST


def test_runs_of_other_rows_are_an_error() -> None:
    a = rows_of("direct", [1], [2])
    with pytest.raises(ValueError, match="id 'clip0:0:direct' is not the same row in all runs: b has clip 'x'"):
        against_best({"a": a, "b": [dataclasses.replace(a[0], clip="x")]}, ONES)
    with pytest.raises(ValueError, match="no mean above 0 for: direct"):
        against_best({"a": a}, Calibration("judge", {"after": 7.0}))
