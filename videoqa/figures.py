"""What is known of a run without a judge (Track.extras), by type: rows for every page, and a table for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from videoqa.results import Result
from videoqa.tables import track_of


def extras_rows(results: Sequence[Result]) -> list[tuple[str, str, list[float | None]]]:
    """What is known without a judge: run, figure, and its mean by type and over all rows. Each run once, however many
    judges rated it."""
    of_track = track_of(results)
    if of_track.extras is None:
        return []
    heads = {name.partition("_")[0] for name in of_track.extras.names}
    common = f"{heads.pop()}_" if len(heads) == 1 else ""  # "match_" of match_f1, match_verb
    rows, seen = [], []
    for result in results:
        key = (result.label, result.data.revision, result.extras)
        if key in seen:
            continue
        seen.append(key)
        for name in of_track.extras.names:
            if by_type := result.extras.get(name):
                means = [by_type.get(kind, {}).get("mean") for kind in (*of_track.types, "all")]
                rows.append((result.label, name.removeprefix(common).replace("_", " "), means))
    return rows


def one_type_extras(rows: Sequence[tuple[str, str, list[float | None]]]) -> list[tuple[str, dict[str, float]]]:
    """The rows of `extras_rows` of a track with one type: of each run its figures. Two runs may have one label."""
    runs: list[tuple[str, dict[str, float]]] = []
    for label, name, means in rows:
        if not runs or runs[-1][0] != label or name in runs[-1][1]:
            runs.append((label, {}))
        if means[-1] is not None:
            runs[-1][1][name] = means[-1]
    return runs


def extras_table(results: Sequence[Result]) -> Any:
    """The figures that need no judge, as a rich table; None where there are none."""
    from rich.markup import escape
    from rich.table import Table

    rows, of_track = extras_rows(results), track_of(results)
    if not rows or of_track.extras is None:
        return None
    title = f"{of_track.extras.title} (no judge needed; 0 to 1)"
    if len(of_track.types) == 1:  # a figure is one number: those of a run are one cell
        shown = Table(title=title, show_header=False, show_lines=True)
        for label, figures in one_type_extras(rows):
            shown.add_row(escape(label), ", ".join(f"{name} {mean:.2f}" for name, mean in figures.items()))
        return shown
    shown = Table(title=title)
    shown.add_column("", overflow="fold")
    for name in (*of_track.types, "all rows"):
        shown.add_column(name, justify="right", overflow="fold")
    before = None
    for label, name, means in rows:
        if label != before and rows[0][0] != rows[-1][0]:
            shown.add_section()
            shown.add_row(escape(label), style="bold")
        before = label
        shown.add_row(f"  {name}", *("-" if mean is None else f"{mean:.2f}" for mean in means))
    return shown
