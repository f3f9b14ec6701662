"""The report of runs: tables (tables.py), and one HTML file that needs nothing beside it.

    easg-bench report runs/a runs/b                        a table in the terminal, the paper's rows below
    easg-bench report runs/a runs/b --format latex         the same as the paper's Table 2
    easg-bench report runs/a runs/b --html report.html     tables, charts, differences, answers and how to reproduce

The HTML file holds every number with all its digits: `<data value="71.81818181818181">71.8</data>`. Texts of models
and judges are escaped by jinja2, charts are inline SVG that takes its colours from the page, light or dark. All rows
are in it as JSON (browsed.py), shown by the one script that the page's policy allows, by its hash (report.js).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from videoqa.benchmark import ScorerOptions, track
from videoqa.browsed import STATES, rows_json, state
from videoqa.choices import LETTERS
from videoqa.comparison import Comparison, compare
from videoqa.errors import UserError
from videoqa.figures import extras_rows, one_type_extras
from videoqa.folders import command_without_folders, without_folders
from videoqa.panel import MEAN, Panel, panel
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
    checks,
    grouped,
    labels,
    main_rows,
    notes,
    published_cells,
    remarks,
    track_of,
)
from videoqa.usage import cost

LOWEST = 20


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a chart of shares."""

    name: str
    share: float
    truth: float | None  # of the ground truth


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

    def distribution(self, rows: Sequence[Row]) -> list[Bar]:
        """The mean probability of each score of the scale, of the answers and of the ground truth; of multiple choice
        how often the option in each place was chosen, and how often it was right."""
        if self.result.judge is None:
            return self._places(rows)
        answers, truths = (self._shares(list(of.values())) for of in (self.verdicts, self.truths))
        if answers is None:
            return []
        names = [f"{value:g}" for value in self.scale()]
        return [Bar(name, answers[at], truths[at] if truths else None) for at, name in enumerate(names)]

    def _shares(self, verdicts: Sequence[Verdict]) -> list[float] | None:
        """The mean over the verdicts that have a score; one without probabilities counts wholly for the score of the
        scale that is nearest to its own. None where there are none."""
        scale = self.scale()
        sums, n = [0.0] * len(scale), 0
        for verdict in verdicts:
            if verdict.score is None or verdict.status == "unreadable":
                continue
            n += 1
            shares = verdict.probabilities or ()
            if len(shares) != len(scale) or not sum(shares):
                nearest = min(scale, key=lambda value: abs(value - (verdict.score or 0.0)))
                shares = tuple(float(value == nearest) for value in scale)
            sums = [total + share / sum(shares) for total, share in zip(sums, shares, strict=True)]
        return [total / n for total in sums] if n else None

    def _places(self, rows: Sequence[Row]) -> list[Bar]:
        """Of the rows with options that have a verdict: how often each place's option was chosen, and was right."""
        asked = [
            row for row in rows if row.get("choices") and state(self, row) not in ("unanswered", "unrated", "skipped")
        ]
        if not asked:
            return []
        chosen = [0] * max(len(row["choices"]) for row in asked)
        gold, known, none = [0] * len(chosen), 0, 0
        for row in asked:
            choice = self.verdicts[row["id"]].choice
            if choice is None:
                none += 1
            else:
                chosen[row["order"].index(choice) if row.get("order") else choice] += 1
            if row.get("gold") is not None:
                gold[row["gold"]] += 1
                known += 1
        bars = [
            Bar(LETTERS[at], chosen[at] / len(asked), gold[at] / known if known else None) for at in range(len(chosen))
        ]
        return [*bars, *([Bar("none", none / len(asked), None)] if none else [])]

    @property
    def truth_mean(self) -> float | None:
        """The mean score of the ground truth."""
        scores = [verdict.score for verdict in self.truths.values() if verdict.score is not None]
        return sum(scores) / len(scores) if scores else None

    def counted(self, rows: Sequence[Row]) -> str:
        """How many rows came out how: "12 right, 30 wrong, 8 unreadable"."""
        states = [state(self, row) for row in rows]
        return ", ".join(f"{states.count(name):,} {name}" for name in STATES if name in states)

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


def panels(views: Sequence[View], rows: Sequence[Row]) -> list[Panel]:
    """The panel of each run that several judges have rated."""
    by_run: dict[Path, list[View]] = {}
    for view in views:
        if view.result.judge is not None:
            by_run.setdefault(view.run.folder, []).append(view)
    found = []
    for of in by_run.values():
        answered = {name for name, line in of[0].answers.items() if line["error"] is None}
        given = [{name: v for name, v in view.verdicts.items() if name in answered} for view in of]
        found.append(panel([view.result for view in of], rows, given, [view.truths for view in of]))
    return [one for one in found if one is not None]


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


def took(view: View, prices: tuple[float, float] | None) -> dict[str, Any]:
    """What a run's answers took, and what its repeats say, for a table; None where it is not known."""
    result, usage = view.result, view.result.usage
    line: dict[str, Any] = {"label": view.label, "rows": usage.rows if usage else 0, "cost": None}
    if usage is not None and usage.rows:
        line |= {"read": usage.prompt_tokens, "written": usage.new_tokens, "seconds": usage.seconds}
        line |= {"each": usage.seconds / usage.rows}
        line["cost"] = cost(usage.model_dump(), prices) if prices else None
    means = {name: of.get("all", {}).get("mean") for name, of in result.extras.items()}
    line |= {"repeats": result.settings.get("repeats", 1), "mean": means.get("repeat_mean")}
    line |= {"error": means.get("repeat_se")}
    line["at"] = {name: 100 * mean for name, mean in means.items() if name.startswith("pass@") and mean is not None}
    return line


def html(views: Sequence[View], rows: Sequence[Row], prices: tuple[float, float] | None = None) -> str:
    """The report of runs on the questions `rows`; the first run is the one that the others are compared with. `prices`
    are those of a million tokens read and written."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

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
    usages = [took(view, prices) for view in views]
    passes = list(dict.fromkeys(name for one in usages for name in one["at"]))
    script = (Path(__file__).parent / "report.js").read_text(encoding="utf-8")
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
        remarks=partial(remarks, took=False),
        columns=columns,
        published=main_rows(of_track, [view.result for view in views]),
        published_cells=published_cells,
        top=20 * (1 + int(max([100.0, *ends, *values]) / 20)) if of_track.measure.needs_truth else 100,  # of the axis
        differences=[(view, difference(view, views[0], rows)) for view in views[1:]],
        groups=grouped(results),
        describe_judge=describe_judge,
        notes=notes(results),
        checks=checks,
        extras=extras_rows(results),
        one_type_extras=one_type_extras,
        letters=LETTERS,
        judged=of_track.rubric is not None,
        good_mass=GOOD_MASS,
        mark=MARK,
        samples=samples(views, rows),
        distributions=[view.distribution(rows) for view in views],
        panels=panels(views, rows),
        panel_mean=MEAN,
        usages=usages if any(one["rows"] or one["repeats"] > 1 for one in usages) else [],
        repeated=any(one["repeats"] > 1 for one in usages),
        passes=passes,
        prices=prices,
        rows_json=rows_json(views, rows, of_track.types),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        readings=4,
        limit=LOWEST,
    )
