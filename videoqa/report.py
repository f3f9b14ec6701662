"""The report of runs: tables (tables.py), and one HTML file that needs nothing beside it.

    easg-bench report runs/a runs/b                        a table in the terminal, the paper's rows below
    easg-bench report runs/a runs/b --format latex         the same as the paper's Table 2
    easg-bench report runs/a runs/b --html report.html     tables, charts, differences, answers and how to reproduce

The HTML file holds every number with all its digits: `<data value="71.81818181818181">71.8</data>`. Texts of models
and judges are escaped by jinja2, charts are inline SVG that takes its colours from the page, light or dark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from videoqa.benchmark import ScorerOptions, track
from videoqa.choices import LETTERS
from videoqa.comparison import Comparison, compare
from videoqa.errors import UserError
from videoqa.folders import command_without_folders, without_folders
from videoqa.rating import calibration, scored
from videoqa.reply import Verdict
from videoqa.results import Result, describe_judge
from videoqa.rows import Row
from videoqa.runs import Run
from videoqa.steps import read_steps, trace
from videoqa.tables import (
    GOOD_MASS,
    MARK,
    broken_down,
    extras_rows,
    grouped,
    labels,
    main_rows,
    notes,
    published_cells,
    remarks,
    track_of,
)

LOWEST = 20


@dataclass(frozen=True)
class View:
    """A run and one of its results: what a page about it shows."""

    label: str
    run: Run
    result: Result
    answers: Mapping[str, Mapping[str, Any]]  # by id, as in the run's answer lines
    verdicts: Mapping[str, Verdict]  # on the answers
    truths: Mapping[str, Verdict]  # on the ground truth
    steps: Sequence[Mapping[str, Any]] = ()  # of an agent's run

    @classmethod
    def of(cls, run: Run, result: Result) -> View:
        """The run as this result's judge saw it."""
        key = result.scorer
        verdicts, truths = (run.verdicts(key, of) for of in ("answer", "truth"))
        return cls(result.label, run, result, run.answers(), verdicts, truths, read_steps(run.folder))

    def trace(self, row: Row) -> list[Mapping[str, Any]]:
        """The steps that led to the answer to this question."""
        return trace(self.steps, row["id"], row["clip"]) if self.steps else []

    def lowest(self, rows: Sequence[Row], n: int) -> list[Row]:
        """The n rows with the lowest scores, lowest first."""
        read = [row for row in rows if (v := self.verdicts.get(row["id"])) and v.score is not None]
        return sorted(read, key=lambda row: (self.verdicts[row["id"]].score, row["id"]))[:n]

    def unreadable(self, rows: Sequence[Row]) -> list[Row]:
        """The rows whose verdict has no score, or the 0 of the script's reading."""
        return [
            row for row in rows if (v := self.verdicts.get(row["id"])) and (v.score is None or v.status == "unreadable")
        ]

    def histogram(self) -> dict[float, int]:
        """How many answers got each score of the scale; an expected score counts to the nearest one."""
        counts = dict.fromkeys(self.scale(), 0)
        for score in (verdict.score for verdict in self.verdicts.values()):
            if score is not None:
                counts[min(counts, key=lambda value: abs(value - score))] += 1
        return counts

    def likelihoods(self, verdict: Verdict) -> list[tuple[float, float]]:
        """Each score of the scale and its probability; the places of the scores where the scale is not recorded."""
        shares = verdict.probabilities or ()
        scale = self.scale()
        names = scale if len(scale) == len(shares) else [float(place) for place in range(1, len(shares) + 1)]
        return list(zip(names, shares, strict=True))

    def scale(self) -> list[float]:
        """The scores that the rubric allows, by the result's own word; where it says nothing (format 1), the track's
        own rubric's, or those that occur."""
        judge, of_track = self.result.judge, track(self.result.track)
        if judge is not None and judge.values:
            return list(judge.values)
        if judge is not None and of_track.rubric is not None:
            return list(of_track.rubric(ScorerOptions().rubric).values)
        return sorted({verdict.score for verdict in self.verdicts.values() if verdict.score is not None})


def difference(a: View, b: View, rows: Sequence[Row]) -> Comparison | str:
    """A minus B on the rows of both, or the reason why they cannot be compared."""
    if a.result.group != b.result.group:
        return "another judge or other questions: these two cannot be compared"
    # the ground truth was the same and so was its judge, hence one calibration for both
    of_track, key = track(a.result.track), a.result.scorer
    scale = calibration(of_track, key, rows, a.truths)
    every = of_track.measure.every_row  # then a row without an answer is a wrong one
    try:
        mine, theirs = (scored(rows, one.verdicts, every_row=every) for one in (a, b))
        return compare(mine, theirs, scale, key=key, types=of_track.types)
    except UserError as error:
        return str(error)


def samples(views: Sequence[View], rows: Sequence[Row]) -> list[Row]:
    """One question of each type that all runs answered: the middle one by the first run's score, so a usual one."""
    chosen = []
    for name in track(views[0].result.track).types:
        read = [
            (score, row["id"], row)
            for row in rows
            if row["type"] == name and all(row["id"] in view.verdicts for view in views)
            if (score := views[0].verdicts[row["id"]].score) is not None
        ]
        if read:
            chosen.append(sorted(read, key=lambda one: one[:2])[len(read) // 2][2])
    return chosen


def html(views: Sequence[View], rows: Sequence[Row]) -> str:
    """The report of runs on the questions `rows`; the first run is the one that the others are compared with."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    results = [view.result for view in views]
    views = [replace(view, label=label) for view, label in zip(views, labels(results), strict=True)]
    of_track = track_of(results)
    environment.filters |= {"without_folders": without_folders, "command": command_without_folders}
    columns = of_track.columns
    ends = [s.interval[1] for v in views for c in columns if (s := v.result.column(c)) and s.interval]
    values = [s.value for v in views for c in columns if (s := v.result.column(c)) and s.value is not None]
    return environment.get_template(
        "report.html.j2"
    ).render(
        views=views,
        rows=rows,
        track=of_track,
        types=of_track.types,
        by_type=[(name, [view.result.column(name) for view in views]) for name in of_track.types],
        breakdowns=broken_down(results),
        remarks=remarks,
        columns=columns,
        published=main_rows(of_track, [view.result for view in views]),
        published_cells=published_cells,
        top=20 * (1 + int(max([100.0, *ends, *values]) / 20)) if of_track.measure.needs_truth else 100,  # of the axis
        differences=[(view, difference(view, views[0], rows)) for view in views[1:]],
        groups=grouped(results),
        describe_judge=describe_judge,
        notes=notes(results),
        extras=extras_rows(results),
        letters=LETTERS,
        judged=of_track.rubric is not None,
        good_mass=GOOD_MASS,
        mark=MARK,
        samples=samples(views, rows),
        readings=4,
        limit=LOWEST,
    )
