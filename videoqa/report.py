"""The report of runs: a table for the terminal and for papers, and one HTML file that needs nothing beside it.

    easg-bench report runs/a runs/b                        a table in the terminal, the paper's rows below
    easg-bench report runs/a runs/b --format latex         the same as the paper's Table 2
    easg-bench report runs/a runs/b --html report.html     tables, charts, differences, answers and how to reproduce

The HTML file holds every number with all its digits: `<data value="71.81818181818181">71.8</data>`. Texts of models
and judges are escaped by jinja2, charts are inline SVG that takes its colours from the page, light or dark.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from videoqa.benchmark import AVERAGE, Published, ScorerOptions, Track, track
from videoqa.errors import UserError
from videoqa.rating import calibration, scored
from videoqa.reply import Verdict
from videoqa.results import Result, Summary
from videoqa.rows import Row
from videoqa.runs import Run
from videoqa.scores import Comparison, compare

LOWEST = 20
COUNTS = (("n", "n"), ("unreadable", "unreadable"), ("empty", "empty"), ("mean", "mean"))


# -- tables -----------------------------------------------------------------------------------------------------------


def track_of(results: Sequence[Result]) -> Track:
    """The track of these results. Raises UserError where they are of several: their numbers mean different things."""
    names = sorted({result.track for result in results})
    if len(names) > 1:
        raise UserError(f"these runs are of several benchmarks ({', '.join(names)}): report one at a time")
    of_track, sets = track(names[0]), sorted({result.data.config for result in results})
    if len(sets) > 1 and any(row.config for row in of_track.published):
        raise UserError(f"these runs are of several sets of questions ({', '.join(sets)}): report one at a time")
    return of_track


def table(results: Sequence[Result]) -> Any:
    """The runs' scores with intervals and counts, and the published rows, as a rich table."""
    from rich.markup import escape
    from rich.table import Table

    of_track = track_of(results)
    by_type = ", by question type" if len(of_track.types) > 1 else f", {results[0].data.config}"
    shown = Table(title=f"{of_track.measure.title} (95% interval){by_type}")
    shown.add_column("")
    for name in of_track.columns:
        shown.add_column(name, justify="right")
    for result in results:
        columns = [result.column(name) for name in of_track.columns]
        cells = (f"{_number(c)}\n{_interval(c)}".strip() for c in columns)
        shown.add_row(escape(result.label), *cells, style="bold")
        for title, key in COUNTS:
            shown.add_row(f"  {title}", *(_count(c, key) for c in columns))
        shown.add_section()
    for row in main_rows(of_track, results):
        name = f"{row.model} ({', '.join(filter(None, (row.kind, row.judge)))})"
        shown.add_row(name, *published_cells(row, of_track.columns), style="dim")
    return shown


def main_rows(of_track: Track, results: Sequence[Result]) -> list[Published]:
    """The published rows of the track's main table that are of the same questions as the results; those of its second
    table name their way of asking. Results without all right answers are not of the whole set."""
    sets = {"", *(result.data.config for result in results if not result.withheld)}
    return [row for row in of_track.published if not row.way and row.config in sets]


def published_cells(row: Published, columns: Sequence[str]) -> list[str]:
    """The row's numbers as printed, "-" where the table has none."""
    values = [row.avg if name == AVERAGE else row.scores.get(name) for name in columns]
    return ["-" if value is None else f"{value:.2f}" for value in values]


def beside(results: Sequence[Result]) -> Any:
    """The track's second table: two ways of asking beside each other, on the types that the second one asks, and what
    is known of its first turn."""
    from rich.markup import escape
    from rich.table import Table

    of_track = track_of(results)
    types = of_track.ways[of_track.beside[-1]].types or of_track.types
    names = of_track.extras.of_way.get(of_track.beside[-1], ()) if of_track.extras else ()
    shown = Table(title=f"{of_track.beside_title}: {of_track.measure.title}")
    shown.add_column("")
    for name in (*types, AVERAGE, *(name.replace("_", " ") for name in names)):
        shown.add_column(name, justify="right")
    for result in results:
        if result.prompt not in of_track.beside:
            continue
        summaries = [result.column(name) for name in types]
        known = [s.value for s in summaries if s is not None and s.value is not None]
        avg = f"{sum(known) / len(known):.2f}" if len(known) == len(types) else "-"
        means = [result.extras.get(name, {}).get("all", {}).get("mean") for name in names]
        cells = ["" if mean is None else f"{mean:.3f}" for mean in means]
        shown.add_row(escape(result.label), *map(_number, summaries), avg, *cells, style="bold")
    for row in of_track.published:
        if row.way:
            name = f"{row.model} ({', '.join(filter(None, (row.way, row.judge)))})"
            shown.add_row(name, *published_cells(row, (*types, AVERAGE)), style="dim")
    return shown


def markdown(results: Sequence[Result]) -> str:
    """A GitHub table of the runs."""
    columns = track_of(results).columns
    lines = [["Model", "Kind", *columns], ["---", "---", *("---:" for _ in columns)]]
    for result in results:
        cells = (f"{_number(c)} {_interval(c)}".strip() for c in map(result.column, columns))
        lines.append([_markdown(result.label), result.kind, *cells])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines) + "\n" + _judges(results)


def latex(results: Sequence[Result]) -> str:
    """A table in the form of the paper's Table 2: one block for each kind of model, the best of each column bold.
    Needs the package booktabs."""
    columns = track_of(results).columns
    best = {}
    for name in columns:
        values = [s.value for r in results if (s := r.column(name)) and s.value is not None]
        best[name] = max(values, default=None) if len({r.group for r in results}) == 1 else None
    lines = [r"\begin{tabular}{l" + "c" * len(columns) + "}", r"\toprule"]
    lines.append(" & ".join(["Model", *columns]) + r" \\")
    for kind in dict.fromkeys(result.kind for result in results):
        lines.append(r"\midrule")
        lines.append(rf"\multicolumn{{{len(columns) + 1}}}{{l}}{{\textit{{{kind}}}}} \\")
        for result in (r for r in results if r.kind == kind):
            cells = []
            for name in columns:
                summary = result.column(name)
                bold = summary is not None and summary.value is not None and summary.value == best[name]
                cells.append(rf"\textbf{{{_number(summary)}}}" if bold else _number(summary))
            lines.append(" & ".join([_latex(result.label), *cells]) + r" \\")
    comments = (f"% {line}" for line in _judges(results).splitlines())
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", *comments, ""])


def to_csv(results: Sequence[Result]) -> str:
    """One line for each run and type, with every digit."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    fields = [name for name in Summary.model_fields if not name.endswith("interval")]
    ends = ["mean_low", "mean_high", "value_low", "value_high"]
    writer.writerow(["model", "kind", "prompt", "frames", "type", *fields, *ends, "data", "judge"])
    for result in results:
        for name in track(result.track).columns:
            if (summary := result.column(name)) is not None:
                values = [getattr(summary, field) for field in fields]
                intervals = [*(summary.mean_interval or (None, None)), *(summary.interval or (None, None))]
                about = [result.name, result.kind, result.prompt, result.frames, name]
                row = [*about, *values, *intervals, result.data.revision, result.scorer]
                writer.writerow([_cell(value) for value in row])
    return buffer.getvalue()


def _cell(value: Any) -> Any:
    """A text that begins like a formula is none: spreadsheets run what begins with these signs."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value


def _judges(results: Sequence[Result]) -> str:
    """The groups that the runs are in; scores of two groups cannot be compared."""
    groups = list(dict.fromkeys(result.group for result in results))
    title = track_of(results).measure.title
    lines = [f"{title} with 95% interval. Judge: {group}\n" for group in groups]
    if len(groups) > 1:
        lines.append("These are several judges or data sets: their scores cannot be compared.\n")
    return "".join(lines)


def _number(summary: Summary | None) -> str:
    return "-" if summary is None or summary.value is None else f"{summary.value:.2f}"


def _interval(summary: Summary | None) -> str:
    return f"({summary.interval[0]:.1f}-{summary.interval[1]:.1f})" if summary and summary.interval else ""


def _count(summary: Summary | None, key: str) -> str:
    value = None if summary is None else getattr(summary, key)
    return "-" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)


def _markdown(text: str) -> str:
    return "".join(f"\\{c}" if c in r"\`*_{}[]<>|#!~" else c for c in text)


def _latex(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(special.get(c, f"\\{c}" if c in "&%$#_{}" else c) for c in text)


# -- the HTML file ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class View:
    """A run and one of its results: what a page about it shows."""

    label: str
    run: Run
    result: Result
    answers: Mapping[str, Mapping[str, Any]]  # by id, as in the run's answer lines
    verdicts: Mapping[str, Verdict]  # on the answers
    truths: Mapping[str, Verdict]  # on the ground truth

    @classmethod
    def of(cls, run: Run, result: Result) -> View:
        """The run as this result's judge saw it."""
        key = result.scorer
        verdicts, truths = (run.verdicts(key, of) for of in ("answer", "truth"))
        return cls(result.label, run, result, run.answers(), verdicts, truths)

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
    try:
        mine, theirs = scored(rows, a.verdicts), scored(rows, b.verdicts)
        return compare(mine, theirs, scale, scale, key=key, types=of_track.types)
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
    groups = list(dict.fromkeys(view.result.group for view in views))
    if len({view.label for view in views}) < len(views):  # told apart by their judges
        views = [replace(v, label=f"{v.label}, {v.result.scorer}") for v in views]
    of_track = track_of([view.result for view in views])
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
        columns=columns,
        published=main_rows(of_track, [view.result for view in views]),
        published_cells=published_cells,
        top=20 * (1 + int(max([100.0, *ends, *values]) / 20)),  # of the chart's axis
        differences=[(view, difference(view, views[0], rows)) for view in views[1:]],
        groups=groups,
        samples=samples(views, rows),
        readings=4,
        limit=LOWEST,
    )
