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

from videoqa.judge import Verdict
from videoqa.results import COLUMNS, Result, Summary
from videoqa.runs import Row, Run, calibration, scored
from videoqa.scores import PAPER_TABLE2, PAPER_TABLE3, TYPES, Comparison, compare

LOWEST = 20
COUNTS = (("n", "n"), ("unreadable", "unreadable"), ("empty", "empty"), ("mean 1-10", "mean"))


# -- tables -----------------------------------------------------------------------------------------------------------


def table(results: Sequence[Result]) -> Any:
    """The runs' relative scores with intervals and counts, and the paper's Table 2, as a rich table."""
    from rich.markup import escape
    from rich.table import Table

    shown = Table(title="Relative score x 100 (95% interval), by question type")
    shown.add_column("")
    for name in COLUMNS:
        shown.add_column(name, justify="right")
    for result in results:
        columns = [result.column(name) for name in COLUMNS]
        cells = (f"{_number(c)}\n{_interval(c)}".strip() for c in columns)
        shown.add_row(escape(result.label), *cells, style="bold")
        for title, key in COUNTS:
            shown.add_row(f"  {title}", *(_count(c, key) for c in columns))
        shown.add_section()
    for row in PAPER_TABLE2:
        name = f"{row.model} ({row.kind}, paper's judge)"
        shown.add_row(name, *(f"{row.scores[t]:.2f}" for t in TYPES), f"{row.avg:.2f}", style="dim")
    return shown


def table3(results: Sequence[Result]) -> Any:
    """The paper's Table 3 with the video runs among these: one turn beside two, and how well the first of the two
    located the step."""
    from rich.markup import escape
    from rich.table import Table

    shown = Table(title="One turn and two (Table 3): relative score x 100, and the located time")
    shown.add_column("")
    for name in ("before", "after", "Avg.", "located", "temporal IoU"):
        shown.add_column(name, justify="right")
    for result in results:
        if result.kind == "language-only":
            continue
        summaries = [result.column("before"), result.column("after")]
        known = [s.relative for s in summaries if s is not None and s.relative is not None]
        avg = f"{sum(known) / 2:.2f}" if len(known) == 2 else "-"
        located = (result.located or {}).get("all")
        when = [f"{100 * located.hit_rate:.1f} %", f"{located.iou:.3f}"] if located else ["", ""]
        shown.add_row(escape(result.label), *map(_number, summaries), avg, *when, style="bold")
    for row in PAPER_TABLE3:
        name = f"{row.model} ({row.prompting}, paper's judge)"
        shown.add_row(name, *(f"{row.scores[t]:.2f}" for t in ("before", "after")), f"{row.avg:.2f}", style="dim")
    return shown


def markdown(results: Sequence[Result]) -> str:
    """A GitHub table of the runs."""
    lines = [["Model", "Kind", *COLUMNS], ["---", "---", *("---:" for _ in COLUMNS)]]
    for result in results:
        cells = (f"{_number(c)} {_interval(c)}".strip() for c in map(result.column, COLUMNS))
        lines.append([_markdown(result.label), result.kind, *cells])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines) + "\n" + _judges(results)


def latex(results: Sequence[Result]) -> str:
    """A table in the form of the paper's Table 2: one block for each kind of model, the best of each column bold.
    Needs the package booktabs."""
    best = {}
    for name in COLUMNS:
        values = [s.relative for r in results if (s := r.column(name)) and s.relative is not None]
        best[name] = max(values, default=None) if len({r.group for r in results}) == 1 else None
    lines = [r"\begin{tabular}{l" + "c" * len(COLUMNS) + "}", r"\toprule"]
    lines.append(" & ".join(["Model", *COLUMNS]) + r" \\")
    for kind in dict.fromkeys(result.kind for result in results):
        lines.append(r"\midrule")
        lines.append(rf"\multicolumn{{{len(COLUMNS) + 1}}}{{l}}{{\textit{{{kind}}}}} \\")
        for result in (r for r in results if r.kind == kind):
            cells = []
            for name in COLUMNS:
                summary = result.column(name)
                bold = summary is not None and summary.relative is not None and summary.relative == best[name]
                cells.append(rf"\textbf{{{_number(summary)}}}" if bold else _number(summary))
            lines.append(" & ".join([_latex(result.label), *cells]) + r" \\")
    comments = (f"% {line}" for line in _judges(results).splitlines())
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", *comments, ""])


def to_csv(results: Sequence[Result]) -> str:
    """One line for each run and type, with every digit."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    fields = [name for name in Summary.model_fields if not name.endswith("interval")]
    ends = ["mean_low", "mean_high", "relative_low", "relative_high"]
    writer.writerow(["model", "kind", "prompt", "frames", "type", *fields, *ends, "data", "judge"])
    for result in results:
        for name in COLUMNS:
            if (summary := result.column(name)) is not None:
                values = [getattr(summary, field) for field in fields]
                intervals = [*(summary.mean_interval or (None, None)), *(summary.interval or (None, None))]
                about = [result.name, result.kind, result.prompt, result.frames, name]
                row = [*about, *values, *intervals, result.data.revision, result.judge.key]
                writer.writerow([_cell(value) for value in row])
    return buffer.getvalue()


def _cell(value: Any) -> Any:
    """A text that begins like a formula is none: spreadsheets run what begins with these signs."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value


def _judges(results: Sequence[Result]) -> str:
    """The groups that the runs are in; scores of two groups cannot be compared."""
    groups = list(dict.fromkeys(result.group for result in results))
    lines = [f"Relative score x 100 with 95% interval. Judge: {group}\n" for group in groups]
    if len(groups) > 1:
        lines.append("These are several judges or data sets: their scores cannot be compared.\n")
    return "".join(lines)


def _number(summary: Summary | None) -> str:
    return "-" if summary is None or summary.relative is None else f"{summary.relative:.2f}"


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
        key = result.judge.key
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

    def histogram(self) -> list[int]:
        """How many answers got each score from 1 to 10; expected scores are rounded, what lies outside counts to the
        nearest end."""
        counts = [0] * 10
        for verdict in self.verdicts.values():
            if verdict.score is not None:
                counts[min(10, max(1, round(verdict.score))) - 1] += 1
        return counts


def difference(a: View, b: View, rows: Sequence[Row]) -> Comparison | str:
    """A minus B on the rows of both, or the reason why they cannot be compared."""
    if a.result.group != b.result.group:
        return "another judge or other questions: these two cannot be compared"
    # the ground truth was the same and so was its judge, hence one calibration for both
    scale = calibration(a.result.judge.key, rows, a.truths)
    try:
        return compare(scored(rows, a.verdicts), scored(rows, b.verdicts), scale, scale)
    except ValueError as error:
        return str(error)


def samples(views: Sequence[View], rows: Sequence[Row]) -> list[Row]:
    """One question of each type that all runs answered: the middle one by the first run's score, so a usual one."""
    chosen = []
    for name in TYPES:
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
        views = [replace(v, label=f"{v.label}, {v.result.judge.key}") for v in views]
    ends = [s.interval[1] for v in views for c in COLUMNS if (s := v.result.column(c)) and s.interval]
    values = [s.relative for v in views for c in COLUMNS if (s := v.result.column(c)) and s.relative is not None]
    return environment.get_template(
        "report.html.j2"
    ).render(
        views=views,
        rows=rows,
        types=TYPES,
        columns=COLUMNS,
        paper=PAPER_TABLE2,
        top=20 * (1 + int(max([100.0, *ends, *values]) / 20)),  # of the chart's axis
        differences=[(view, difference(view, views[0], rows)) for view in views[1:]],
        groups=groups,
        samples=samples(views, rows),
        readings=4,
        limit=LOWEST,
    )
