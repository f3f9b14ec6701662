"""Answers that another program had its model give, rated here: one flat record a row, and the figures of many.

    made = records(track, rows, texts, errors, located, scorer)
    figures(made, track)    {"easg_relative": 61.3, "easg_low": 58.0, "easg_high": 64.9, "easg_unreadable": 0.0, ...}

A program that runs our benchmarks (lighteval, lmms-eval, inspect-ai) asks its own model and keeps what it likes; the
verdicts and figures are these. What it is not told by its own command line comes from the environment, read when it is
first needed: EASG_BENCH_DATA, EASG_BENCH_JUDGE and so on (tasks/README.md).
"""

from __future__ import annotations

import functools
import itertools
import json
import logging
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from videoqa import benchmark
from videoqa.benchmark import ScorerOptions, Track
from videoqa.engines import open_engine
from videoqa.errors import UserError
from videoqa.frames import DEFAULT, Policy
from videoqa.measures import alike_in_all, right_in_all
from videoqa.rating import Of, is_withheld, rate, scored_row
from videoqa.reply import Verdict
from videoqa.scorer import Scorer
from videoqa.scores import Calibration, Scored
from videoqa.store import VerdictStore, line_of

log = logging.getLogger(__name__)

# -- settings ---------------------------------------------------------------------------------------------------------


def setting(name: str, otherwise: str | None = None) -> str:
    """The environment variable EASG_BENCH_<name>. Raises ValueError where it is needed and not set."""
    value = os.environ.get(f"EASG_BENCH_{name}", "").strip() or otherwise
    if value is None:
        what = {"JUDGE": "the judge: a model folder, a Hub id, vllm:ID, server:NAME@http://HOST/v1 or ray:COPIES*MODEL"}
        what["VIDEOS"] = "the folder of the videos"
        raise UserError(f"EASG_BENCH_{name} is not set; it names {what[name]}")
    return value


def policy() -> Policy:
    """Which frames are shown."""
    return Policy.parse(setting("FRAMES", str(DEFAULT)))


@functools.cache
def scorer(track: str) -> Scorer:
    """The scorer of a track's tasks, opened once. (Not a part of the metric: lighteval copies and hashes metrics.)"""
    of_track = benchmark.track(track)
    engine = open_engine(setting("JUDGE")) if of_track.rubric is not None else None
    return of_track.scorer(engine, scorer_options())


def scorer_options(rubric: str | None = None, mode: str | None = None, sampling: str | None = None) -> ScorerOptions:
    """How answers are rated; what is None comes from the environment."""
    return ScorerOptions(
        rubric or setting("JUDGE_RUBRIC", "ours"),
        mode or setting("JUDGE_MODE", "") or None,
        sampling or setting("JUDGE_SAMPLING", "greedy"),
    )


# -- records ----------------------------------------------------------------------------------------------------------


def records(
    track: Track,
    rows: Sequence[Mapping[str, Any]],
    texts: Sequence[str],
    errors: Sequence[str],
    located: Sequence[str],
    opened: Callable[[str], Scorer],
) -> list[dict[str, Any]]:
    """Rates the answers (`texts`; `errors` says why there is none) and, where the track's scorer wants it, the ground
    truths: one record of plain values a row. `located` are the replies of a first turn. `opened` gives the scorer of a
    track's name."""
    answers, truths, scorer_json = _rate(track, rows, texts, errors, opened)
    made = []
    for i, (row, truth) in enumerate(zip(rows, truths, strict=True)):
        verdict = answers.get(i)
        made.append(
            {
                "id": row["id"],
                "clip": row["clip"],
                "type": row["type"],
                "score": _score(track, verdict),
                "status": "withheld" if is_withheld(row) else verdict.status if verdict else "unanswered",
                "group": row.get("group") or "",
                "ways": len(row["choices"]) if row.get("group") else 0,
                "choice": scored_row("", "", "", verdict, row).choice if verdict else "",
                "error": errors[i],
                "judge": scorer_json,
                "verdict": json.dumps(line_of(verdict)) if verdict else "",
                "truth_score": _float(truth.score if truth else None),
                "truth_status": truth.status if truth else "",
                "truth_verdict": json.dumps(line_of(truth)) if truth else "",
                "located": located[i],
                **_extras(track, row, texts[i], located[i], verdict),
            }
        )
    return made


def _rate(
    track: Track,
    rows: Sequence[Mapping[str, Any]],
    texts: Sequence[str],
    errors: Sequence[str],
    opened: Callable[[str], Scorer],
) -> tuple[dict[int, Verdict], list[Verdict | None], str]:
    """The verdicts on the answers by row, those on the ground truths, and what is to be said of the scorer, as JSON.
    Whatever fails is the error of the rows that have no verdict yet: an exception here would lose the whole run,
    answers included."""
    about: dict[str, Any] = {"key": "the judge could not be opened"}
    answers: dict[int, Verdict] = {}
    truths: dict[int, Verdict] = {}
    why = ""
    judged = track.rubric is not None  # by a judge, who rates the truths too
    answered = [i for i, error in enumerate(errors) if not error]
    sides: list[tuple[Of, int]] = [("answer", i) for i in answered]
    sides += [("truth", i) for i in range(len(rows))] if judged else []
    asked = [(of, rows[i], texts[i] if of == "answer" else rows[i]["answer"]) for of, i in sides]
    try:
        rater = opened(track.name)
        about = rater.describe()
        store = VerdictStore(setting("STORE", ""), rater.key) if judged else None
        for k, verdict in rate(rater, asked, store):
            of, i = sides[k]
            (answers if of == "answer" else truths)[i] = verdict
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        log.error("the judge failed: %s", why)
    failed = Verdict(None, "judge_error", raw=why)
    of_truth = [truths.get(i, failed) if judged else None for i in range(len(rows))]
    return {i: answers.get(i, failed) for i in answered}, of_truth, json.dumps(about)


def _extras(track: Track, row: Mapping[str, Any], text: str, located: str, verdict: Verdict | None) -> dict[str, float]:
    """The track's figures beside the score; not a number where the row has none."""
    if track.extras is None:
        return {}
    line = {"prediction": text, "located": located or None}
    figures = track.extras.figures(row, line) if verdict else {}
    return {name: figures.get(name, math.nan) for name in track.extras.named(row["prompt"])}


# -- figures ----------------------------------------------------------------------------------------------------------


def metric_name(track: Track) -> str:
    """The name of a track's figure in a program's tables; the other figures begin with the track's prefix as well."""
    return f"{track.prefix}_{track.measure.name}"


def figures(records: Sequence[Mapping[str, Any]], track: Track) -> dict[str, float]:
    """The track's measure with its interval, mean score and counts, and its extras, of records of one type or of
    several (then the plain means over the types)."""
    key = "one scorer of this run"
    asked = [record for record in records if record["status"] != "withheld"]
    each = [_scored(r, "score", "status") for r in asked if r["status"] != "unanswered" or track.measure.every_row]
    rows, alike = _questions(each)
    scale = None
    if track.measure.needs_truth:
        truths = [_scored(r, "truth_score", "truth_status") for r in records]
        scale = Calibration.of(key, truths, types=track.types)
    avg = track.measure.compute(rows, scale, key=key, types=track.types).avg
    low, high = avg.interval or (math.nan, math.nan)
    name, prefix = metric_name(track), track.prefix
    numbers = {
        name: _float(avg.value),
        f"{name}_stderr": (high - low) / (2 * 1.959964),
        f"{prefix}_low": low,  # of the 95% interval
        f"{prefix}_high": high,
        f"{prefix}_score": _float(avg.mean),  # in the scorer's own unit
        f"{prefix}_n": float(avg.n),
        f"{prefix}_unreadable": float(avg.unreadable),
        f"{prefix}_empty": float(avg.empty),
        f"{prefix}_judge_errors": float(avg.errors),
        f"{prefix}_unanswered": float(sum(record["status"] == "unanswered" for record in asked)),
    }
    if alike:
        numbers[f"{prefix}_consistency"] = math.fsum(row.score or 0.0 for row in alike) / len(alike)
    every = (*track.extras.names, *itertools.chain(*track.extras.of_way.values())) if track.extras else ()
    names = [name for name in every if records and name in records[0] and f"{prefix}_{name}" not in numbers]
    return numbers | {f"{prefix}_{name}": _mean_over_types(records, name) for name in names}


def figures_and_types(records: Sequence[Mapping[str, Any]], track: Track) -> dict[str, float]:
    """`figures` of all rows, then the measure of each type where the track has several: {"easg_before": 62.1, ...};
    not a number for a type without rows."""
    found = figures(records, track)
    for kind in track.types if len(track.types) > 1 else ():
        of_type = [record for record in records if record["type"] == kind]
        found[type_name(track, kind)] = figures(of_type, track)[metric_name(track)] if of_type else math.nan
    return found


def type_name(track: Track, kind: str) -> str:
    """The name of a type's figure."""
    return f"{track.prefix}_{kind.replace('-', '_')}"


def _score(track: Track, verdict: Verdict | None) -> float:
    """The verdict's score; of a row without an answer 0 where the measure takes every row."""
    return 0.0 if verdict is None and track.measure.every_row else _float(verdict.score if verdict else None)


def _scored(record: Mapping[str, Any], score: str, status: str) -> Scored:
    value = None if math.isnan(record[score]) else record[score]
    grouped = (record.get("group", ""), record.get("ways", 0), record.get("choice", ""))
    return Scored(record["id"], record["clip"], record["type"], value, record[status], *grouped)


def _questions(rows: Sequence[Scored]) -> tuple[list[Scored], list[Scored]]:
    """One row for each question: those that were asked in all arrangements of their options are right if they are right
    in all; and the same with 1 where one option was chosen in all. A question of which a row is missing (a limit of
    lighteval's counts rows) is left out, for nobody knows whether it is right in all."""
    grouped = [row for row in rows if row.group]
    size = Counter(row.group for row in grouped)
    whole = [row for row in grouped if size[row.group] == row.ways]
    if cut := len({row.group for row in grouped}) - len({row.group for row in whole}):
        log.error("%d questions lack some of their arrangements and are left out", cut)
    return [row for row in rows if not row.group] + right_in_all(whole), alike_in_all(whole)


def _mean_over_types(records: Iterable[Mapping[str, Any]], name: str) -> float:
    """The plain mean of the types' means; not a number where no row has the value."""
    values: dict[str, list[float]] = {}
    for record in records:
        if not math.isnan(record[name]):
            values.setdefault(record["type"], []).append(record[name])
    means = [math.fsum(of) / len(of) for of in values.values()]
    return math.fsum(means) / len(means) if means else math.nan


def _float(value: float | None) -> float:
    return math.nan if value is None else float(value)
