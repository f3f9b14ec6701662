"""videoqa/panel.py: several judges of one run, their mean and agreement, on the rows that all of them scored."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scripted import Scripted
from videoqa import panel as panels
from videoqa.benchmarks.easg.rubrics import OURS
from videoqa.files import write_json
from videoqa.judge import Judge
from videoqa.panel import bootstrapped, kappa, panel, spearman
from videoqa.reply import Verdict
from videoqa.report import View
from videoqa.report import panels as panels_of
from videoqa.results import read
from videoqa.runs import Run, judge_rows, result, rows_of

ROWS = [{"id": f"c{i % 6}:{i}:before", "clip": f"c{i % 6}", "type": "before"} for i in range(24)]


def judge_again(folder: Path, rate: Callable[[str], dict[str, float]], name: str) -> Path:
    """A second judge's result in the run folder."""
    run = Run(folder)
    rows = rows_of(run)
    judge = Judge(Scripted(lambda *_: "Because.", chances=rate, can_force=True, name=name), OURS, "dist")
    said = {key: line["prediction"] for key, line in run.answers().items()}
    for _ in judge_rows(judge, rows, said, run, None):
        pass
    path = run.scores_path(judge.key)
    write_json(path, result(run, rows, judge.describe()))
    return path


def views_of(folder: Path) -> list[View]:
    return [View.of(Run(folder), read(path)) for path in sorted(folder.glob("scores*.json"), key=lambda p: len(p.name))]


def by_length(text: str) -> dict[str, float]:
    return {str(3 + len(text) % 5): 0.6, "9": 0.3}


def weighted_kappa(a: list[int], b: list[int]) -> float:
    """The usual definition, over the table of pairs."""
    values = range(min(a + b), max(a + b) + 1)
    table = {(i, j): sum(pair == (i, j) for pair in zip(a, b, strict=True)) / len(a) for i in values for j in values}
    rows, columns = ({i: of.count(i) / len(a) for i in values} for of in (a, b))
    seen = sum((i - j) ** 2 * table[i, j] for i in values for j in values)
    return 1 - seen / sum((i - j) ** 2 * rows[i] * columns[j] for i in values for j in values)


@given(st.lists(st.tuples(st.integers(1, 10), st.integers(1, 10)), min_size=2, max_size=30))
def test_of_whole_scores_kappa_is_the_quadratic_weighted_one(pairs: list[tuple[int, int]]) -> None:
    import numpy as np

    a, b = ([pair[side] for pair in pairs] for side in (0, 1))
    found = kappa(np.array(a, dtype=float), np.array(b, dtype=float))
    if len({*a, *b}) == 1:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(weighted_kappa(a, b), abs=1e-9)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=2, max_size=20))
def test_rank_correlation_is_scipys_and_none_where_a_judge_gives_all_the_same(pairs: list[tuple[int, int]]) -> None:
    import numpy as np
    from scipy.stats import spearmanr

    a, b = (np.array([pair[side] for pair in pairs], dtype=float) for side in (0, 1))
    if np.ptp(a) and np.ptp(b):
        assert spearman(a, b) == pytest.approx(spearmanr(a, b).statistic, abs=1e-9)
    else:
        assert math.isnan(spearman(a, b))


def test_the_interval_resamples_clips_not_rows() -> None:
    import numpy as np

    rng = np.random.default_rng(1)
    a = rng.integers(1, 11, 40).astype(float)
    b = np.clip(a + rng.integers(-2, 3, 40), 1, 10)
    alone = bootstrapped(kappa, a, b, [f"c{i}" for i in range(40)])
    same = bootstrapped(kappa, np.tile(a, 5), np.tile(b, 5), [f"c{i % 40}" for i in range(200)])  # each row five times
    assert alone.interval is not None and same.interval is not None
    assert same.value == pytest.approx(alone.value) and same.interval == pytest.approx(alone.interval)
    assert bootstrapped(kappa, a, b, [f"c{i % 4}" for i in range(40)]).interval is None  # too few clips


def test_the_mean_of_the_panel_is_the_mean_of_the_judges_scores(judged: Callable[..., Path]) -> None:
    folder = judged("org/m", rate=by_length)
    path = judge_again(folder, lambda text: {"5": 0.2, str(2 + len(text) % 7): 0.7}, "org/second")
    (one,) = panels_of(views_of(folder), rows_of(Run(folder)))
    first, second = read(folder / "scores.json"), read(path)
    assert one.judges == ("org/judge", "org/second") and one.common == one.rows == 60 and not one.lacking
    assert one.mean is not None
    for name in (*first.types, "Avg."):
        a, b = first.column(name), second.column(name)
        assert a and b and a.value is not None and b.value is not None and a.interval
        assert one.mean[name].value == pytest.approx((a.value + b.value) / 2)
        assert one.scores[0][name].value == pytest.approx(a.value)
        assert one.scores[0][name].interval == pytest.approx(a.interval)
    assert one.agreement[0].kappa is not None and one.agreement[0].kappa.interval is not None


def test_a_row_that_one_judge_failed_is_left_out_for_all_and_told(judged: Callable[..., Path]) -> None:
    folder = judged("org/m", say=lambda text: f"a cup, {len(text)}", rate=by_length)
    judge_again(folder, by_length, "org/second")
    views, rows = views_of(folder), rows_of(Run(folder))
    broken = sorted(views[1].verdicts)[:7]
    failed = Verdict(None, "judge_error", raw="timeout")
    views[1] = replace(views[1], verdicts={k: failed if k in broken else v for k, v in views[1].verdicts.items()})
    (one,) = panels_of(views, rows)
    assert (one.rows, one.common) == (60, 53) and one.lacking == ("org/second gave no score to 7 answers",)
    # both rate alike, so all figures are of the same 53 rows and the mean is each one's own
    assert one.mean is not None and one.mean["Avg."].value == pytest.approx(one.scores[0]["Avg."].value)
    assert one.agreement[0].spearman.value == pytest.approx(1.0)
    assert (
        "53 of 60 answers" in one.lines[1]
        and one.lines[-1] == "left out for all: org/second gave no score to 7 answers"
    )
    assert re.search(r"\| mean of the judges \|.*\\\*", panels.markdown(one))


def test_judges_of_two_scales_have_no_kappa(judged: Callable[..., Path]) -> None:
    folder = judged("org/m", rate=by_length)
    judge_again(folder, by_length, "org/second")
    views = views_of(folder)
    other = views[1].result
    assert other.judge is not None
    narrow = other.model_copy(update={"judge": other.judge.model_copy(update={"values": (0.0, 1.0)})})
    made = panel(
        [views[0].result, narrow], rows_of(Run(folder)), *([v.verdicts for v in views], [v.truths for v in views])
    )
    assert made is not None and made.agreement[0].kappa is None and made.agreement[0].spearman.value is not None
    assert made.mean is not None  # each divided by its own ground truth
    assert panel([views[0].result], [], [{}], [{}]) is None


def test_a_judge_that_scored_nothing_leaves_no_mean(judged: Callable[..., Path]) -> None:
    folder = judged("org/m", rate=by_length)
    judge_again(folder, by_length, "org/second")
    views = views_of(folder)
    views[1] = replace(views[1], verdicts={k: Verdict(None, "unreadable") for k in views[1].verdicts})
    (one,) = panels_of(views, rows_of(Run(folder)))
    assert one.common == 0 and one.mean is not None and one.mean["Avg."].value is None
    assert "not defined" in one.lines[0] and "0 of 60" in one.lines[1]
