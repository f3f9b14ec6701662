"""What the numbers of a track mean: its `Measure`, and the measures that there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from videoqa.errors import UserError
from videoqa.scores import Calibration, Scored, Scores, summarize


@dataclass(frozen=True, slots=True)
class Measure:
    """What the numbers of a track mean."""

    name: str  # in results: "relative", "percent", "accuracy", "circular"
    title: str  # above tables: "Relative score x 100"
    needs_truth: bool  # divided by what the judge gives the ground truth
    every_row: bool = False  # a row without an answer counts as 0, and so does one without a readable answer

    def compute(
        self, rows: Iterable[Scored], calibration: Calibration | None, *, key: str, types: Sequence[str]
    ) -> Scores:
        """The rows' scores; the calibration counts only where the measure divides by it."""
        return summarize(rows, calibration if self.needs_truth else None, key=key, types=types)


def right_in_all(rows: Iterable[Scored]) -> list[Scored]:
    """One row for each group: 1 where the question was answered rightly in all of its ways, else 0. Without a score
    where one of its rows has none. Raises UserError for a group that is not whole, or of several clips or types."""
    return [merged(group) for group in _whole_groups(rows)]


def alike_in_all(rows: Iterable[Scored]) -> list[Scored]:
    """As `right_in_all`: 1 where the same option was chosen in all ways, right or wrong. A row that chose nothing is
    like no other. Rows that are all right are alike, also where two options have one text."""
    return [
        replace(one, score=None if one.score is None else float(one.score == 1 or bool(one.choice)))
        for one in right_in_all(rows)
    ]


def merged(rows: Sequence[Scored]) -> Scored:
    """One question that was asked in several ways, as one row: it has the lowest of their scores, so it is right only
    if it was right in all. Its status is the first that is not ok; a row that was not asked, since its question was
    lost already, is as good as one. `choice` is the option that was chosen in all of them, "" where there is none."""
    first = rows[0]
    scores = [row.score for row in rows if row.score is not None]
    choices = {row.choice for row in rows}
    return Scored(
        first.group or first.id,
        first.clip,
        first.type,
        min(scores) if len(scores) == len(rows) else None,
        next((row.status for row in rows if row.status not in ("ok", "skipped")), "ok"),
        choice=first.choice if len(choices) == 1 else "",
    )


def _whole_groups(rows: Iterable[Scored]) -> Iterator[list[Scored]]:
    """The rows of each group in the order of their ids, in the order of the groups' names."""
    groups: dict[str, list[Scored]] = {}
    for row in sorted(rows, key=lambda row: row.id):
        if not row.group or row.ways < 1:
            raise UserError(f"row {row.id!r} belongs to no group of rows that ask one question in several ways")
        groups.setdefault(row.group, []).append(row)
    for name, group in sorted(groups.items()):
        ids = ", ".join(repr(row.id) for row in group)
        if len({row.id for row in group}) < len(group):
            raise UserError(f"group {name!r} has a row twice: {ids}")
        if {row.ways for row in group} != {len(group)}:
            raise UserError(f"group {name!r} is not whole: it has {len(group)} of {group[0].ways} rows ({ids})")
        if len({(row.clip, row.type) for row in group}) > 1:
            raise UserError(f"group {name!r} is of several clips or types: {ids}")
        yield group


RELATIVE = Measure("relative", "Relative score x 100", needs_truth=True)
PERCENT = Measure("percent", "Score x 100", needs_truth=False)
# of rows with score 1 (right) or 0; the scorer gives a reply that it cannot read a 0 and the status "unreadable"
ACCURACY = Measure("accuracy", "Accuracy x 100", needs_truth=False, every_row=True)
# MMBench's CircularEval (arXiv 2307.06281), of the rows that `right_in_all` gives: a question counts once, however
# often its options were moved round
CIRCULAR = Measure("circular", "CircularEval accuracy x 100", needs_truth=False, every_row=True)
