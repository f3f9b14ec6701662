"""Rate answers and ground truths, calibrate, summarize: the one place for run folders, lighteval and `evaluate`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from videoqa.judge import Judge
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
    )


def rate(
    scorer: Scorer, asked: Sequence[tuple[Of, Row, str | None]], store: VerdictStore | None
) -> Iterator[tuple[int, Verdict]]:
    """The verdict on each (what it is of, row, answer or ground truth), with its index, as they are known. Answers and
    truths go to the scorer together, since the rows of a clip share their prompt's beginning; what the store knows is
    not asked again."""
    items = [item_of(row, text) for _, row, text in asked]
    return rate_once(scorer, items, store) if isinstance(scorer, Judge) else scorer.rate(items)


def scored(rows: Sequence[Row], verdicts: Mapping[str, Verdict]) -> list[Scored]:
    """The rows that have a verdict, as records for videoqa.scores."""
    return [
        scored_row(row["id"], row["clip"], row["type"], verdicts[row["id"]], row.get("choices"))
        for row in rows
        if row["id"] in verdicts
    ]


def scored_row(id: str, clip: str, type: str, verdict: Verdict, choices: Sequence[str] | None = None) -> Scored:
    """One verdict as a record for videoqa.scores."""
    choice = choices[verdict.choice] if choices and verdict.choice is not None else ""
    return Scored(id, clip, type, verdict.score, verdict.status, choice=choice)


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
    return track.measure.compute(scored(rows, verdicts), scale, key=scale_key, types=track.types), scale
