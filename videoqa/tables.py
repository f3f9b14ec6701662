"""The scores of runs as tables: in the terminal, in Markdown, LaTeX and CSV.

Runs of one group (judge and questions) stand together, with their intervals and counts and with the published rows;
runs of several groups get a table each.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from typing import Any

from videoqa import repeats, usage
from videoqa.benchmark import AVERAGE, Published, Track, track
from videoqa.errors import UserError
from videoqa.files import short_hash
from videoqa.folders import without_folders
from videoqa.results import Result, Summary, describe_judge

WIDE = 120  # columns of a screen, from which on a table of five types fits in one line an entry
GOOD_MASS = 0.9  # below, a judge's scores mean little
REFUSE = 0.5  # a share of the answers: with more that say nothing a result is not to be trusted
MARK = "*"  # behind an average that does not stand for all of the data
COUNTS = (("scored", "n_scored"), ("unreadable", "unreadable"), ("empty", "empty"), ("mean", "mean"))


def track_of(results: Sequence[Result]) -> Track:
    """The track of these results. Raises UserError where they are of several: their numbers mean different things."""
    names = sorted({result.track for result in results})
    if len(names) > 1:
        raise UserError(f"these runs are of several benchmarks ({', '.join(names)}): report one at a time")
    of_track, sets = track(names[0]), sorted({result.data.config for result in results})
    if len(sets) > 1 and any(row.config for row in of_track.published):
        raise UserError(f"these runs are of several sets of questions ({', '.join(sets)}): report one at a time")
    return of_track


def grouped(results: Sequence[Result]) -> dict[str, list[Result]]:
    """The results by group, in the order of their first ones: only scores of one group can be compared."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.group, []).append(result)
    return groups


def labels(results: Sequence[Result]) -> list[str]:
    """What each is called where all of them stand together: its label and, where others have the same, what tells it
    apart: the judge's model, all of the judge, the data, else its number."""
    told_apart: tuple[Callable[[Result], str], ...] = (
        lambda result: f"judge {describe_judge(result).partition(' (')[0]}",
        lambda result: f"judge {describe_judge(result)}",
        lambda result: f"data {result.data.revision}",
        lambda result: f"judge {short_hash(result.scorer)}",
    )
    names = [result.label for result in results]
    for tell in told_apart:
        alike: dict[str, set[str]] = {}
        for name, result in zip(names, results, strict=True):
            alike.setdefault(name, set()).add(tell(result))
        names = [
            f"{result.label}, {tell(result)}" if len(alike[name]) > 1 else name
            for name, result in zip(names, results, strict=True)
        ]
    return [f"{n}, number {names[: i + 1].count(n)}" if names.count(n) > 1 else n for i, n in enumerate(names)]


def notes(results: Sequence[Result]) -> list[str]:
    """Why the averages with a mark do not stand for all of the data, a line for each."""
    return [
        f"{MARK} {label} is partial: {result.coverage} rows have a score ({'; '.join(result.gaps)})"
        for label, result in zip(labels(results), results, strict=True)
        if result.gaps
    ]


def distrusted(result: Result) -> str:
    """Why a result is not to be trusted, in words: most verdicts unreadable, of too little mass, or of empty answers; a
    judge that judge-check found unfit. Unreadable answers of multiple choice are the model's: they are wrong."""
    judge = result.judge
    counts = {"are empty": result.avg.empty}
    if judge is not None:
        counts |= {"have no verdict that could be read": result.avg.unreadable - result.avg.errors}
        counts |= {"have a verdict of too little mass": judge.low_mass}
    found = [f"{n:,} of {result.avg.n:,} answers {what}" for what, n in counts.items() if n > REFUSE * result.avg.n]
    if judge is not None and judge.check is not None and not judge.check.fit:
        found.append(f"judge-check says of the judge: {judge.check.said}")
    return " and ".join(found)


def checks(results: Sequence[Result]) -> list[str]:
    """What judge-check says of the judge of these results, each thing once."""
    found = (
        result.judge.check.said for result in results if result.judge is not None and result.judge.check is not None
    )
    return list(dict.fromkeys(found))


def about(results: Sequence[Result]) -> list[str]:
    """Judge and data of the results of one group, a line for each."""
    one, lines = results[0], []
    where = ", ".join(dict.fromkeys(str(result.data.data) for result in results))
    lines.append(f"{'judge' if one.judge is not None else 'scorer'}: {describe_judge(one)}")
    masses = [result.judge.mass for result in results if result.judge is not None and result.judge.mass is not None]
    if masses:
        lines.append(f"mass on the allowed scores: {min(masses):.3f} (below {GOOD_MASS:g} the scores mean little)")
    lines += [f"judge-check: {said}" for said in checks(results)]
    if one.calibration is not None and one.calibration.means:
        means = ", ".join(f"{name} {mean:.2f}" for name, mean in one.calibration.means.items())
        lines.append(f"it gives the ground truth: {means}")
    lines.append(f"data: {where}, config {one.data.config}, revision {one.data.revision}, {one.data.rows:,} rows")
    return lines


def remarks(result: Result, took: bool = True) -> list[str]:
    """What is to be said of a result beside its table; with `took` also its repeats and what it took."""
    of_track, said = track(result.track), []
    if result.unanswered and of_track.measure.every_row:
        said.append(f"{result.unanswered} rows have no answer and count as wrong")
    if result.withheld:
        said.append(
            f"{result.withheld} of {result.data.rows} rows have no public answer and are not scored: this is no score "
            f"of the whole of {result.data.config}"
        )
    if result.unmatched:
        said.append(
            f"{result.unmatched} replies name no option; an engine says of {result.matched} which one they mean, and "
            "the others are wrong"
        )
    if result.skipped:
        said.append(
            f"{result.skipped} rows were not asked, since their question was lost already: nothing is known of the "
            "consistency, nor by shift and position"
        )
    said += repeats.said(result.extras) if took else []
    if result.usage is not None and took:
        said.append(usage.said(result.usage.model_dump()))
    return said + (of_track.lines(result.extras) if of_track.lines else [])


def table(results: Sequence[Result], width: int = 140) -> Any:
    """The scores of one group with intervals and counts, and the published rows, as a rich table. On a screen of less
    than `WIDE` columns there are no lines between them, and an interval is broken behind its hyphen."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    of_track = track_of(results)
    by_type = ", by question type" if len(of_track.types) > 1 else f", {results[0].data.config}"
    narrow = width < WIDE
    look: dict[str, Any] = {"box": box.SIMPLE_HEAD, "padding": (0, 1, 0, 0)} if narrow else {}
    shown = Table(title=f"{of_track.measure.title} (95% interval){by_type}", **look)
    shown.add_column("", overflow="fold")
    for name in of_track.columns:
        shown.add_column(name, justify="right", overflow="fold")
    for label, result in zip(labels(results), results, strict=True):
        columns = [result.column(name) for name in of_track.columns]
        intervals = [_interval(c).replace("-", "-\n" if narrow else "-") for c in columns]
        values = [*map(_number, columns[:-1]), _marked(result)]
        cells = [f"{value}\n{interval}".strip() for value, interval in zip(values, intervals, strict=True)]
        shown.add_row(escape(label), *cells, style="bold")
        for title, key in COUNTS:
            counts = [_count(c, key) for c in columns]
            counts[-1] = result.coverage if key == "n_scored" else counts[-1]
            shown.add_row(f"  {title}", *counts)
        shown.add_section()
    for row in main_rows(of_track, results):
        name = f"{row.model} ({', '.join(filter(None, (row.kind, row.by)))})"
        shown.add_row(name, *published_cells(row, of_track.columns), style="dim")
    return shown


def broken_down(results: Sequence[Result]) -> dict[str, list[tuple[str, list[Summary | None]]]]:
    """The scores by what is known of the questions: of each breakdown its values, each with the score of every run."""
    names = dict.fromkeys(name for result in results for name in result.breakdowns)
    found = {}
    for name in names:
        parts = [result.breakdowns.get(name, {}) for result in results]
        values = dict.fromkeys(value for part in parts for value in part)
        found[name] = [(value, [part.get(value) for part in parts]) for value in values]
    return found


def breakdown_tables(results: Sequence[Result]) -> list[Any]:
    """The same as rich tables."""
    from rich.markup import escape
    from rich.table import Table

    made = []
    for name, rows in broken_down(results).items():
        shown = Table(title=f"{track_of(results).measure.title} (95% interval), by {name}")
        for head in (name, "questions", *labels(results)):
            shown.add_column(escape(head), justify="left" if head == name else "right")
        for value, parts in rows:
            asked = max(part.n for part in parts if part)
            shown.add_row(value, str(asked), *(f"{_number(part)} {_interval(part)}".strip() for part in parts))
        made.append(shown)
    return made


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
    shown.add_column("", overflow="fold")
    for name in (*types, AVERAGE, *(name.replace("_", " ") for name in names)):
        shown.add_column(name, justify="right", overflow="fold")
    for result in results:
        if result.prompt not in of_track.beside:
            continue
        summaries = [result.column(name) for name in types]
        known = [s.value for s in summaries if s is not None and s.value is not None]
        avg = f"{sum(known) / len(known):.2f}" if len(known) == len(types) else "-"
        lacks_rows = any(not gap.startswith("no scores of") for gap in result.gaps)
        avg += MARK if avg != "-" and lacks_rows else ""
        means = [result.extras.get(name, {}).get("all", {}).get("mean") for name in names]
        cells = ["" if mean is None else f"{mean:.3f}" for mean in means]
        shown.add_row(escape(result.label), *map(_number, summaries), avg, *cells, style="bold")
    for row in of_track.published:
        if row.way:
            name = f"{row.model} ({', '.join(filter(None, (row.way, row.by)))})"
            shown.add_row(name, *published_cells(row, (*types, AVERAGE)), style="dim")
    return shown


def markdown(results: Sequence[Result]) -> str:
    """A GitHub table of each group of the runs."""
    of_track = track_of(results)
    columns, tables = of_track.columns, []
    for of_group in grouped(results).values():
        lines = [["Model", "Kind", *columns, "Scored"], ["---", "---", *("---:" for _ in (*columns, "Scored"))]]
        for label, result in zip(labels(of_group), of_group, strict=True):
            cells = [f"{_number(c)} {_interval(c)}".strip() for c in map(result.column, columns)]
            cells[-1] = escaped(f"{_marked(result)} {_interval(result.avg)}".strip())
            lines.append([escaped(label), result.kind, *cells, result.coverage])
        text = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
        below = [f"{of_track.measure.title} with 95% interval.", *about(of_group), *notes(of_group)]
        tables.append(text + "".join(f"\n{escaped(without_folders(line))}\n" for line in below))
    return "\n".join([*tables, *_several(results)])


def latex(results: Sequence[Result]) -> str:
    """A table in the form of the paper's Table 2 for each group: one block for each kind of model, the best of each
    column bold, runs that are partial left aside. Needs the package booktabs."""
    tables = [_tabular(of_group, track_of(results)) for of_group in grouped(results).values()]
    return "\n".join([*tables, *(f"% {line}" for line in _several(results))])


def _tabular(results: Sequence[Result], of_track: Track) -> str:
    columns = of_track.columns
    best = {}
    for name in columns:
        values = [s.value for r in results if (s := r.column(name)) and s.value is not None and not r.gaps]
        best[name] = max(values, default=None)
    lines = [f"% {line}" for line in (f"{of_track.measure.title} with 95% interval", *about(results))]
    lines = [without_folders(line) for line in lines]
    lines += [r"\begin{tabular}{l" + "c" * (len(columns) + 1) + "}", r"\toprule"]
    lines.append(" & ".join(["Model", *columns, "Scored"]) + r" \\")
    names = dict(zip(map(id, results), labels(results), strict=True))
    for kind in dict.fromkeys(result.kind for result in results):
        lines.append(r"\midrule")
        lines.append(rf"\multicolumn{{{len(columns) + 2}}}{{l}}{{\textit{{{kind}}}}} \\")
        for result in (r for r in results if r.kind == kind):
            cells = []
            for name in columns:
                summary = result.column(name)
                value = summary.value if summary is not None else None
                number = _number(summary)
                number += r"$^{*}$" if name == AVERAGE and result.gaps else ""
                bold = value is not None and value == best[name] and not result.gaps
                cells.append(rf"\textbf{{{number}}}" if bold else number)
            lines.append(" & ".join([_latex(names[id(result)]), *cells, result.coverage]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    for note in notes(results):
        text = _latex(note.removeprefix(MARK).strip())
        lines.append(rf"\par{{\footnotesize $^{{*}}$ {text}}}")
    return "\n".join([*lines, ""])


def to_csv(results: Sequence[Result]) -> str:
    """One line for each run and type, with every digit."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    fields = [name for name in Summary.model_fields if not name.endswith("interval")]
    ends = ["mean_low", "mean_high", "value_low", "value_high"]
    about_data = ["data", "rows", "limit", "unanswered", "partial"]
    asked = ["model", "kind", "prompt", "frames", "protocol", "order"]
    writer.writerow(["run", "benchmark", "config", *asked, "type", *fields, *ends, *about_data, "judge"])
    for run, result in zip(labels(results), results, strict=True):
        for name in track(result.track).columns:
            if (summary := result.column(name)) is not None:
                values = [getattr(summary, field) for field in fields]
                intervals = [*(summary.mean_interval or (None, None)), *(summary.interval or (None, None))]
                asked_how = [result.frames, result.protocol, result.order]
                asked_what = [run, result.track, result.data.config, result.name, result.kind, result.asking]
                what = [*asked_what, *asked_how, name]
                data, gaps = result.data, "; ".join(result.gaps)
                of_data = [data.revision, data.rows, data.limit, result.unanswered, gaps]
                row = [*what, *values, *intervals, *of_data, result.scorer]
                writer.writerow([_cell(value) for value in row])
    return buffer.getvalue()


def _cell(value: Any) -> Any:
    """A text that begins like a formula is none: spreadsheets run what begins with these signs."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value


def _several(results: Sequence[Result]) -> list[str]:
    """The warning where scores stand beside each other that cannot be compared."""
    several = "These are several judges or data sets: their scores cannot be compared.\n"
    return [several] if len(grouped(results)) > 1 else []


def _marked(result: Result) -> str:
    """The average, with the mark of one that does not stand for all of the data."""
    return f"{_number(result.avg)}{MARK if result.gaps and result.avg.value is not None else ''}"


def _number(summary: Summary | None) -> str:
    return "-" if summary is None or summary.value is None else f"{summary.value:.2f}"


def _interval(summary: Summary | None) -> str:
    return f"({summary.interval[0]:.1f}-{summary.interval[1]:.1f})" if summary and summary.interval else ""


def _count(summary: Summary | None, key: str) -> str:
    value = None if summary is None else getattr(summary, key)
    return "-" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)


def escaped(text: str) -> str:
    """A text in Markdown that is no markup."""
    return "".join(f"\\{c}" if c in r"\`*_{}[]<>|#!~" else c for c in text)


def _latex(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(special.get(c, f"\\{c}" if c in "&%$#_{}" else c) for c in text)
