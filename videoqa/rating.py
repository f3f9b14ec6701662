"""Rate answers and ground truths, calibrate, summarize: the one place for run folders, lighteval and `evaluate`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from videoqa.judge import Judge
from videoqa.measures import merged
from videoqa.reply import Verdict
from videoqa.rows import Row, revision
from videoqa.scorer import Item, Scorer
from videoqa.scores import Calibration, Scored, Scores
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


def is_withheld(row: Row) -> bool:
    """Whether the row has options, and nobody but its authors knows which one is right."""
    return bool(row.get("choices")) and row.get("gold") is None


def scored(rows: Sequence[Row], verdicts: Mapping[str, Verdict], *, every_row: bool = False) -> list[Scored]:
    """The rows that have a verdict, as records for videoqa.scores; with `every_row` the others as well, with a score of
    0. Rows of one group are one record, which is there only if all of them are. Rows whose right answer is withheld are
    left out."""
    groups: dict[str, list[Scored | None]] = {}
    for row in rows:
        if not is_withheld(row):
            groups.setdefault(row.get("group") or row["id"], []).append(_scored(row, verdicts, every_row))
    whole = [[one for one in of if one is not None] for of in groups.values() if None not in of]
    return [merged(of) if of[0].group else of[0] for of in whole]


def _scored(row: Row, verdicts: Mapping[str, Verdict], every_row: bool) -> Scored | None:
    if (verdict := verdicts.get(row["id"])) is not None:
        return scored_row(row["id"], row["clip"], row["type"], verdict, row)
    return Scored(row["id"], row["clip"], row["type"], 0.0, "unanswered", row.get("group") or "") if every_row else None


def scored_row(id: str, clip: str, type: str, verdict: Verdict, row: Row | None = None) -> Scored:
    """One verdict as a record for videoqa.scores; `row` has the options, where there are any."""
    row = row or {}
    choice = ""
    if row.get("choices") and verdict.choice is not None:
        shown_at = row["order"].index(verdict.choice) if row.get("order") else verdict.choice
        choice = row["choices"][shown_at]
    return Scored(id, clip, type, verdict.score, verdict.status, row.get("group") or "", choice=choice)


def arrangements(rows: Sequence[Row], verdicts: Mapping[str, Verdict]) -> dict[str, dict[str, dict[str, float]]]:
    """Of questions that were asked in all circular shifts of their options, as extras of a result: how many have the
    same option chosen in all, right or wrong, and how often one arrangement by itself is right."""
    groups: dict[str, list[Scored]] = {}
    for row in rows:
        if row.get("group") and not is_withheld(row) and (one := _scored(row, verdicts, every_row=True)):
            groups.setdefault(row["group"], []).append(one)
    if not groups:
        return {}
    same = [float(bool(merged(of).choice)) for of in groups.values()]
    right = [one.score or 0.0 for of in groups.values() for one in of]
    figures: dict[str, list[float]] = {"consistency": same, "right_in_one": right}
    return {name: {"all": {"n": len(of), "mean": math.fsum(of) / len(of)}} for name, of in figures.items()}


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
