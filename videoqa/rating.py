"""Rate answers and ground truths, calibrate, summarize: the one place for run folders, lighteval and `evaluate`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from videoqa.judge import Judge
from videoqa.measures import alike_in_all, right_in_all
from videoqa.reading.choice_text import text_key
from videoqa.reply import Verdict
from videoqa.rows import Row, revision
from videoqa.scorer import Item, Scorer
from videoqa.scores import Calibration, Scored, Scores, Summary
from videoqa.store import VerdictStore, rate_once

if TYPE_CHECKING:
    from videoqa.benchmark import Track

Of = Literal["answer", "truth"]


def item_of(row: Row, prediction: str | None) -> Item:
    """An answer to the row, as a scorer sees it."""
    return Item(
        row["question"],
        row["answer"],
        prediction,
        row["context"],
        tuple(row.get("choices") or ()),
        row.get("gold"),
        tuple(row.get("order") or ()),
    )


def rate(
    scorer: Scorer, asked: Sequence[tuple[Of, Row, str | None]], store: VerdictStore | None
) -> Iterator[tuple[int, Verdict]]:
    """The verdict on each (what it is of, row, answer or ground truth), with its index, as they are known. Answers and
    truths go to the scorer together, since the rows of a clip share their prompt's beginning; what the store knows is
    not asked again."""
    items = [item_of(row, text) for _, row, text in asked]
    return rate_once(scorer, items, store) if isinstance(scorer, Judge) else scorer.rate(items)


def rate_in_order(
    judge: Judge, asked: Sequence[tuple[Any, Row, str | None]], store: str | Path | Literal[False] | None
) -> list[Verdict]:
    """`rate` for a metric: the verdicts in the order of `asked`, kept in the folder `store` (None: the usual one,
    False: nowhere). Calls of the judge that failed are a warning."""
    kept = None if store is False else VerdictStore(store, judge.key)
    verdicts = dict(rate(judge, asked, kept))
    if failed := [row for row in sorted(verdicts) if verdicts[row].status == "judge_error"]:
        first = verdicts[failed[0]].raw
        warnings.warn(f"{len(failed)} of {len(asked)} calls of the judge failed; the first: {first}", stacklevel=2)
    return [verdicts[row] for row in range(len(asked))]


def is_withheld(row: Row) -> bool:
    """Whether the row has options, and nobody but its authors knows which one is right."""
    return bool(row.get("choices")) and row.get("gold") is None


def scored(rows: Sequence[Row], verdicts: Mapping[str, Verdict], *, every_row: bool = False) -> list[Scored]:
    """The rows that have a verdict, as records for videoqa.scores; with `every_row` the others as well, with a score of
    0. Rows of one group are one record (measures.right_in_all), which is there only if all of them are. Rows whose
    right answer is withheld are left out."""
    public = [row for row in rows if not is_withheld(row)]
    lacking = {row.get("group") for row in public if row["id"] not in verdicts and not every_row}
    each = [one for row in public if (one := _scored(row, verdicts, every_row))]
    grouped = [one for one in each if one.group and one.group not in lacking]
    return [one for one in each if not one.group] + right_in_all(grouped)


def _scored(row: Row, verdicts: Mapping[str, Verdict], every_row: bool) -> Scored | None:
    if (verdict := verdicts.get(row["id"])) is not None:
        return scored_row(row["id"], row["clip"], row["type"], verdict, row)
    if not every_row:
        return None
    return Scored(row["id"], row["clip"], row["type"], 0.0, "unanswered", row.get("group") or "", _ways(row))


def scored_row(id: str, clip: str, type: str, verdict: Verdict, row: Row | None = None) -> Scored:
    """One verdict as a record for videoqa.scores; `row` has the options, where there are any."""
    row = row or {}
    choice = ""
    if row.get("choices") and verdict.choice is not None:
        shown_at = row["order"].index(verdict.choice) if row.get("order") else verdict.choice
        choice = text_key(row["choices"][shown_at])  # options of equal text are one
    return Scored(id, clip, type, verdict.score, verdict.status, row.get("group") or "", _ways(row), choice)


def _ways(row: Row) -> int:
    """How many rows the row's group has: one for each place that an option can have."""
    return len(row.get("choices") or ()) if row.get("group") else 0


def arrangements(rows: Sequence[Row], verdicts: Mapping[str, Verdict]) -> dict[str, dict[str, dict[str, float]]]:
    """Of questions that were asked in all circular shifts of their options, as extras of a result: how many have the
    same option chosen in all, right or wrong; how often one arrangement by itself is right, over all of them and shift
    by shift (number 1 begins with the data's first option). Nothing where rows were left out because their question was
    lost already: of what was not asked nobody knows the choice."""
    shifted = [row for row in rows if row.get("group") and not is_withheld(row)]
    if not shifted or any(v.status == "skipped" for v in verdicts.values()):
        return {}
    each = [one for row in shifted if (one := _scored(row, verdicts, every_row=True))]
    figures: dict[str, list[float]] = {"consistency": [one.score or 0.0 for one in alike_in_all(each)]}
    figures["right_in_one"] = [one.score or 0.0 for one in each]
    for row, one in zip(shifted, each, strict=True):
        figures.setdefault(f"right_in_shift_{row['order'][0] + 1}", []).append(one.score or 0.0)
    ordered = {name: figures[name] for name in sorted(figures)}
    return {name: {"all": {"n": len(of), "mean": math.fsum(of) / len(of)}} for name, of in ordered.items()}


def calibration(track: Track, key: str, rows: Sequence[Row], truths: Mapping[str, Verdict]) -> Calibration | None:
    """What the scorer of this key gives the ground truth of these questions: the published constants where the track
    has them for the key, else from its verdicts on it. None where the track's measure does not ask."""
    if not track.measure.needs_truth:
        return None
    if key in track.constants:
        return track.constants[key]
    return Calibration.of(f"{key}, data {revision(rows)}", scored(rows, truths), types=track.types)


def summarize(
    track: Track, key: str, rows: Sequence[Row], verdicts: Mapping[str, Verdict], truths: Mapping[str, Verdict]
) -> tuple[Scores, Calibration | None]:
    """The track's measure of the verdicts on answers, and the calibration that it rests on."""
    scale = calibration(track, key, rows, truths)
    scale_key = scale.key if scale else key
    asked = scored(rows, verdicts, every_row=track.measure.every_row)
    return track.measure.compute(asked, scale, key=scale_key, types=track.types), scale


def breakdowns(
    track: Track, key: str, rows: Sequence[Row], verdicts: Mapping[str, Verdict], truths: Mapping[str, Verdict]
) -> dict[str, dict[str, Summary]]:
    """The track's measure by what is known of its questions: {"knowledge type": {"tool use": summary, ...}, ...}. A
    question counts for each value that it has; a breakdown of which nothing is known is absent."""
    found: dict[str, dict[str, Summary]] = {}
    for name, of in track.breakdowns.items():
        by_value: dict[str, list[Row]] = {}
        for row in rows:
            for value in of(row):
                by_value.setdefault(value, []).append(row)
        # numbers by size, words by the alphabet
        ordered = sorted(by_value, key=lambda value: (len(value) if value.isdigit() else 0, value))
        if ordered:
            found[name] = {v: summarize(track, key, by_value[v], verdicts, truths)[0].avg for v in ordered}
    return found
