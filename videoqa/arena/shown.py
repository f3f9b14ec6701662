"""An arena's figures for people: tables for a terminal, and one HTML page that needs nothing beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from videoqa.arena import ratings
from videoqa.arena.folder import ORDERS, Arena, Match
from videoqa.arena.referee import CONTRADICTING, HALF, Decision
from videoqa.arena.summary import PEOPLE, Rated, doubtful
from videoqa.folders import without_folders
from videoqa.intervals import FEWEST_CLIPS
from videoqa.reply import Verdict

SHOWN = 12  # pairs on the page


# -- for a terminal ---------------------------------------------------------------------------------------------------


def table(one: Rated) -> Any:
    """The players from the best rating down, as a rich table."""
    from rich.markup import escape
    from rich.table import Table

    shown = Table(title=f"Arena: {len(one.votes):,} votes of {escape(short(one.by))}")
    heads = ["votes", "wins", "ties", "points", "Bradley-Terry", "Elo"]
    heads += ["by probability"] if one.points else []
    heads += ["open-ended score"] if one.scores else []
    shown.add_column("")
    for head in heads:
        shown.add_column(head, justify="right")
    strength = {rating.model: rating for rating in one.bradley_terry}
    for rating in one.elo:
        of = strength.get(rating.model)
        cells = [str(rating.votes), str(rating.wins), str(rating.ties)]
        cells.append(f"{100 * (rating.wins + rating.ties / 2) / rating.votes:.1f}%")
        cells.append("-" if of is None else f"{of.value:.0f}{_span(of.interval)}")
        cells.append(f"{rating.value:.1f}{_span(rating.interval, 1)}")
        if one.points:
            cells.append(f"{100 * one.points[rating.model]:.1f}%" if rating.model in one.points else "-")
        if one.scores:
            cells.append(f"{one.scores[rating.model]:.2f}" if rating.model in one.scores else "-")
        shown.add_row(escape(rating.model), *cells)
    return shown


def matrix_table(one: Rated) -> Any:
    """Who beat whom: wins-ties-losses of the row's player against the column's, as a rich table."""
    from rich.markup import escape
    from rich.table import Table

    shown = Table(title="Wins-ties-losses of the row against the column")
    shown.add_column("")
    of = ratings.matrix(one.votes)
    order = [rating.model for rating in one.elo]
    for name in order:
        shown.add_column(escape(name), justify="right")
    for name in order:
        shown.add_row(escape(name), *(_record(of[name].get(other)) for other in order))
    return shown


def _record(record: ratings.Record | None) -> str:
    if record is None or not record.votes:
        return "-"
    return f"{record.wins}-{record.ties + record.both_bad}-{record.losses}"


def _span(interval: tuple[float, float] | None, digits: int = 0) -> str:
    return "" if interval is None else f" ({interval[0]:.{digits}f} to {interval[1]:.{digits}f})"


def lines(one: Rated) -> list[str]:
    """What is to be said beside the tables."""
    said = []
    outcomes = one.outcomes
    ties = len(one.votes) - outcomes["win"]
    both_bad = f", {outcomes['both bad']} of them both bad" if outcomes["both bad"] else ""
    said.append(f"{_percent(ties, len(one.votes))} of the votes are ties ({ties} of {len(one.votes)}{both_bad})")
    if one.kinds:
        said.append(
            f"{_percent(one.inconsistent, len(one.votes))} of the pairs are inconsistent: their two orders disagree, "
            f"so they count as ties ({one.kinds.get(CONTRADICTING, 0)} contradicting, {one.kinds.get(HALF, 0)} half)"
        )
    if one.places is not None and one.places.asked:
        places = one.places
        said.append(
            f"by place: {_percent(places.first, places.asked)} for the first answer, "
            f"{_percent(places.second, places.asked)} for the second, {_percent(places.neither, places.asked)} for "
            f"neither, of {places.asked} verdicts"
        )
    if one.mass is not None:
        said.append(f"mass on the three letters: {one.mass:.3f}")
    missing = one.pairs - len(one.votes)
    if one.by != PEOPLE and missing:
        said.append(
            f"{missing} of {one.pairs} pairs have no outcome "
            f"({one.unreadable} verdicts unreadable, {one.failed} failed)"
        )
    if one.empty:
        said.append(f"{one.empty} pairs have an empty answer, which loses unasked")
    if one.no_ratings:
        said.append(f"no Bradley-Terry: {one.no_ratings}")
    if 0 < one.clips < FEWEST_CLIPS:
        said.append(f"no intervals: the votes are on {one.clips} clips, fewer than {FEWEST_CLIPS}")
    said.append(
        f"Elo: K {ratings.K:g}, the mean over {ratings.ORDERS} orders of the votes; its span is that of the orders"
    )
    if (found := one.correlation) is not None:
        said.append(
            f"ranks by rating and by open-ended score of {found.models} players: Spearman {found.spearman:.2f}"
            f"{_span(found.spearman_interval, 2)}, Kendall {found.kendall:.2f}{_span(found.kendall_interval, 2)}"
        )
    else:
        said.append(f"no correlation with open-ended scores: {one.no_scores}")
    return said


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "-"


def short(by: str) -> str:
    """Who rated, for people: an engine without its settings."""
    return without_folders(by).partition(" (")[0]


# -- the page ---------------------------------------------------------------------------------------------------------


def html(arena: Arena, every: Sequence[Rated]) -> str:
    """One HTML file that needs nothing beside it."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["without_folders"] = without_folders
    return environment.get_template("page.html.j2").render(
        arena=arena,
        track=arena.track,
        players=arena.config["players"],
        every=every,
        matrix={one.by: ratings.matrix(one.votes) for one in every},
        axis={one.by: axis([*one.bradley_terry, *one.elo]) for one in every},
        lines=lines,
        short=short,
        doubtful=doubtful,
        examples={one.by: examples(arena, one) for one in every},
        people=PEOPLE,
    )


def axis(of: Sequence[ratings.Rating]) -> tuple[float, float]:
    """The ends of a chart's axis: whole hundreds around all values and intervals."""
    ends = [end for rating in of for end in (rating.value, *(rating.interval or ()))]
    low, high = min(ends, default=ratings.START), max(ends, default=ratings.START)
    return 100.0 * (low // 100), 100.0 * (high // 100 + 1)


def examples(arena: Arena, one: Rated) -> list[tuple[Match, Decision | None, list[tuple[str, Verdict]]]]:
    """Some pairs with what was said of them: an even choice over all that were judged."""
    if one.by == PEOPLE:
        return []
    decisions, verdicts = arena.decisions(one.by), arena.verdicts(one.by)
    judged = [match for match in arena.matches if any((match.id, order) in verdicts for order in ORDERS)]
    chosen = [judged[i * len(judged) // SHOWN] for i in range(SHOWN)] if len(judged) > SHOWN else judged
    return [
        (m, decisions[m.id], [(order, verdicts[m.id, order]) for order in ORDERS if (m.id, order) in verdicts])
        for m in chosen
    ]
