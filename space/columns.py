"""The Space's tables: every column stands here once, with its name, kind, width and value; heads, cells, widths and the
order of sorting follow from it. Which types a leaderboard has is the track's to say.

A table is HTML made here, so that a score can have its interval below it and a click on a head sorts (TABLE_SCRIPT).
Whatever comes from results, models and judges is escaped.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from leaderboard import Group, Line

from videoqa.benchmark import AVERAGE, Published, Track
from videoqa.results import Summary

T = TypeVar("T")
MOST_ROWS = 500  # of one table
LONGEST = 60  # characters of a name; the whole stands in the cell's title


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """One column: `value` is what it sorts by and, where `text` does not say otherwise, shows. A column without any
    value is left out."""

    name: str
    kind: Literal["number", "text"]
    width: int  # px, at least
    value: Callable[[T], Any]
    text: Callable[[T], str] | None = None
    below: Callable[[T], str] | None = None  # a second, small line
    badges: Callable[[T], Sequence[tuple[str, str]]] | None = None  # (word, what it means)
    folded: tuple[str, Callable[[T], str]] | None = None  # a name, and a text that a click on it opens
    style: str = (
        ""  # a class of CSS: "sticks" stays when the table is moved sideways, "short" is one line, "prose" whole
    )

    def cell(self, row: T) -> str:
        """The column's cell in a row, as HTML."""
        value = self.value(row)
        text = self.text(row) if self.text else _shown(value)
        cut = f"{text[: LONGEST - 1]}…" if len(text) > LONGEST and self.style != "prose" else text
        title = f' title="{html.escape(text)}"' if cut != text else ""
        by = f' data-by="{html.escape(_sorted_by(value))}"'
        small = f"<small>{html.escape(self.below(row))}</small>" if self.below else ""
        marks = "".join(
            f'<i class="badge" title="{html.escape(why)}">{html.escape(word)}</i>'
            for word, why in (self.badges(row) if self.badges else ())
        )
        name, inner = (self.folded[0], self.folded[1](row)) if self.folded else ("", "")
        fold = (
            f'<details><summary>{name}</summary><pre dir="auto">{html.escape(inner)}</pre></details>' if inner else ""
        )
        shown = f'<span dir="auto">{html.escape(cut)}</span>'
        return f'<td class="{self.kind} {self.style}"{by}{title}>{shown}{small}{marks}{fold}</td>'


def _shown(value: Any) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    return f"{value:.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _sorted_by(value: Any) -> str:
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)[:200]


def table(columns: Sequence[Column[T]], rows: Sequence[T], title: str, nothing: str = "No result.") -> str:
    """A table of the rows, without the columns that have no value in any of them."""
    rows, more = rows[:MOST_ROWS], len(rows) - MOST_ROWS
    kept = [column for column in columns if any(column.value(row) not in (None, "") for row in rows)] or columns[:2]
    heads = "".join(
        f'<th scope="col" class="{column.kind} {column.style}" style="--width:{column.width}px" aria-sort="none">'
        f"<button>{html.escape(column.name)}</button></th>"
        for column in kept
    )
    lines = "".join("<tr>" + "".join(column.cell(row) for column in kept) + "</tr>" for row in rows)
    if not rows:
        lines = f'<tr><td colspan="{len(kept)}">{html.escape(nothing)}</td></tr>'
    note = f'<p class="quiet">The first {MOST_ROWS} are listed; {more:,} more are not.</p>' if more > 0 else ""
    return (
        f'<p class="quiet">{html.escape(title)}</p><div class="scroll"><table class="sorts"><thead><tr>{heads}</tr>'
        f"</thead><tbody>{lines}</tbody></table></div>{note}"
    )


# A click on a head sorts by it, numbers from the highest down first; what has no value comes last.
TABLE_SCRIPT = """<script>
document.addEventListener("click", (event) => {
  const head = event.target.closest("table.sorts th");
  if (!head) return;
  const table = head.closest("table"), at = head.cellIndex, number = head.classList.contains("number");
  const way = head.getAttribute("aria-sort") === (number ? "descending" : "ascending") ? !number : number;
  for (const one of head.parentNode.cells) one.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", way ? "descending" : "ascending");
  const by = (row) => row.cells[at]?.dataset.by ?? "";
  const order = (a, b) => number ? Number(a) - Number(b) : a.localeCompare(b);
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => {
    const [x, y] = [by(a), by(b)];
    if (!x || !y) return (x ? 0 : 1) - (y ? 0 : 1);
    return way ? order(y, x) : order(x, y);
  });
  table.tBodies[0].append(...rows);
});
</script>"""

TABLE_CSS = """
.scroll { overflow: auto; max-height: 900px; border: 1px solid var(--border-color-primary); border-radius: 6px }
.scroll table.sorts { border-collapse: separate; border-spacing: 0; border: 0 !important; width: 100%;
    margin: 0 !important; padding: 0 !important; font-size: 14px; font-variant-numeric: tabular-nums }
table.sorts :is(thead, tbody, tr) { border: 0 !important }
table.sorts :is(th, td) { padding: 6px 8px !important; border: 0 !important; vertical-align: top; text-align: left;
    border-bottom: 1px solid var(--border-color-primary) !important; background: var(--background-fill-primary);
    overflow-wrap: anywhere }
table.sorts tr:last-child td { border-bottom: 0 !important }
table.sorts th { position: sticky; top: 0; z-index: 2; background: var(--background-fill-secondary);
    min-width: var(--width) }
table.sorts :is(th, td).number { text-align: right; overflow-wrap: normal; white-space: nowrap }
table.sorts th button { font: inherit; font-weight: 600; color: inherit; background: none; border: 0; padding: 0;
    cursor: pointer; text-align: inherit }
table.sorts th[aria-sort=ascending] button::after { content: " ↑" }
table.sorts th[aria-sort=descending] button::after { content: " ↓" }
table.sorts small { display: block; opacity: .7; font-size: 12px; white-space: nowrap }
table.sorts td.text small { white-space: normal }
table.sorts pre { white-space: pre-wrap; max-height: 400px; overflow: auto; font-size: 12px; margin: 4px 0 }
table.sorts .sticks { position: sticky; left: 0; z-index: 1 } table.sorts th.sticks { z-index: 3 }
table.sorts .prose { min-width: 160px } table.sorts .short { white-space: nowrap }
.badge { display: inline-block; font-style: normal; font-size: 11px; line-height: 1.3; padding: 1px 6px;
    margin: 2px 4px 0; border-radius: 8px; background: #b45309; color: #fff }
@media (max-width: 640px) {
    .scroll table.sorts { font-size: 13px } table.sorts :is(th, td) { padding: 5px !important }
    table.sorts th.sticks { min-width: 100px } }
"""


# -- the leaderboard --------------------------------------------------------------------------------------------------


def _interval(summary: Summary | None) -> str:
    return f"{summary.interval[0]:.1f}–{summary.interval[1]:.1f}" if summary and summary.interval else ""


def _score(name: str, width: int) -> Column[Line]:
    def summary(line: Line) -> Summary | None:
        return line.entry.result.column(name)

    def value(line: Line) -> float | None:
        return one.value if (one := summary(line)) else None

    def text(line: Line) -> str:
        return "–" if (score := value(line)) is None else f"{score:.1f}"

    return Column(name, "number", width, value, text, below=lambda line: _interval(summary(line)))


def _remarks(line: Line) -> str:
    return "; ".join(why for _, why in line.badges)


def _seen(line: Line) -> str:
    """What the model saw: "video, uniform:16"."""
    result = line.entry.result
    return ", ".join(filter(None, (result.kind, result.frames)))


def _mean(line: Line, name: str) -> float | None:
    return line.entry.result.extras.get(name, {}).get("all", {}).get("mean")


def _extras(names: Sequence[str]) -> list[Column[Line]]:
    """The figures that need no judge: means over all rows that have them. Those of the letters (always_A, always_B,
    ...) are one column, in percent, which sorts by the highest."""
    stems = {name: name.rpartition("_")[0] if re.fullmatch(r".+_[A-J]", name) else name for name in names}
    grouped: dict[str, list[str]] = {}
    for name, stem in stems.items():
        grouped.setdefault(stem, []).append(name)
    return [_extra(of[0]) if of == [stem] else _by_letter(stem, of) for stem, of in grouped.items()]


def _extra(name: str) -> Column[Line]:
    return Column(name.replace("_", " "), "number", 70, lambda line: _mean(line, name))


def _by_letter(stem: str, names: Sequence[str]) -> Column[Line]:
    def known(line: Line) -> list[tuple[str, float]]:
        return [(name[-1], mean) for name in names if (mean := _mean(line, name)) is not None]

    def highest(line: Line) -> float | None:
        return max((mean for _, mean in known(line)), default=None)

    def text(line: Line) -> str:
        return " ".join(f"{letter} {100 * mean:.0f}" for letter, mean in known(line)) or "–"

    return Column(f"{stem.replace('_', ' ')}, %", "number", 150, highest, text)


def _repeats(line: Line) -> int | None:
    count = line.entry.result.settings.get("repeats")
    return count if isinstance(count, int) else None


def _over_passes(line: Line) -> str:
    """The standard error over the passes: "± 0.42"."""
    return "" if (error := _mean(line, "repeat_se")) is None else f"± {error:.2f}"


def _tokens(line: Line) -> float | None:
    """Tokens read and written for an answer."""
    usage = line.entry.result.usage
    tokens = usage.prompt_tokens + usage.new_tokens if usage else 0
    return tokens / usage.rows if usage and usage.rows and tokens else None


def _seconds(line: Line) -> float | None:
    usage = line.entry.result.usage
    return usage.seconds / usage.rows if usage and usage.rows else None


def _all_seconds(line: Line) -> str:
    usage = line.entry.result.usage
    return f"{usage.seconds:,.0f} s in all" if usage else ""


def _all_tokens(line: Line) -> str:
    usage = line.entry.result.usage
    return f"{usage.prompt_tokens:,} + {usage.new_tokens:,}" if usage and _tokens(line) else ""


def board_columns(of_track: Track) -> tuple[Column[Line], ...]:
    """The columns of a track's leaderboard, what matters most first."""
    types = [_score(name, 78) for name in of_track.columns if name != AVERAGE]
    return (
        Column("#", "number", 24, lambda line: line.rank),
        Column("Model", "text", 150, lambda line: line.entry.result.name, badges=lambda x: x.badges, style="sticks"),
        _score(AVERAGE, 72),
        Column("n of N", "number", 56, lambda line: line.n, lambda line: f"{line.n:,}", lambda x: f"of {x.asked:,}"),
        Column("Prompt", "text", 96, lambda line: line.entry.result.asking, below=_seen, style="short"),
        Column("Against the best", "text", 150, lambda line: line.standing, below=_remarks),
        *types,
        Column("Unreadable", "number", 70, lambda line: line.entry.result.avg.unreadable or None),
        *(_extras(of_track.extras.names) if of_track.extras else ()),
        Column("Repeats", "number", 60, _repeats, below=_over_passes),
        Column("Tokens each", "number", 80, _tokens, lambda x: f"{n:,.0f}" if (n := _tokens(x)) else "–", _all_tokens),
        Column("Seconds each", "number", 80, _seconds, below=_all_seconds),
        Column("Date", "text", 80, lambda line: f"{line.entry.moment:%Y-%m-%d}", style="short"),
    )


def board(group: Group | None, lines: Sequence[Line]) -> str:
    """The leaderboard of one group, or that there is none."""
    if group is None:
        return table((), (), "", "No results yet.") if not lines else ""
    title = f"{group.track.measure.title.replace(' x ', ' × ')}, below it the 95% interval; a click on a head sorts"
    return table(board_columns(group.track), lines, title, "No result passes the filters.")


# -- published rows ---------------------------------------------------------------------------------------------------


def published_columns(of_track: Track) -> tuple[Column[Published], ...]:
    """The columns of a track's published rows."""

    def of_type(name: str) -> Column[Published]:
        return Column(name, "number", 78, lambda row: row.scores.get(name))

    types = [of_type(name) for name in of_track.types] if len(of_track.types) > 1 else []
    return (
        Column("Model", "text", 150, lambda row: row.model, style="sticks"),
        Column(AVERAGE, "number", 72, lambda row: row.avg),
        *types,
        Column("Kind", "text", 100, lambda row: row.kind, style="short"),
        Column("Asked", "text", 92, lambda row: row.way),
        Column("Printed in", "text", 130, lambda row: row.source, style="short"),
    )


def published(of_track: Track) -> str:
    """The published rows of a track, a table for each set of questions; of those that compare two ways of asking only
    the second, whose numbers stand in no other row."""
    tables = []
    for config in of_track.sets:
        rows = [row for row in of_track.published if row.config == config]
        rows = [row for row in rows if not row.way or row.way == of_track.beside[-1]]
        judges = ", ".join(dict.fromkeys(row.judge for row in rows if row.judge and row.judge != row.source))
        title = ", ".join(
            filter(None, (f"config {config}" if config else "", f"rated by the {judges}" if judges else ""))
        )
        tables.append(table(published_columns(of_track), rows, title or "as published"))
    return "".join(tables)


# -- what the models answered -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Said:
    """What one model answered to one question."""

    model: str
    answer: str
    score: float | None
    reason: str  # the judge's, or the status of a verdict without a score
    scorer: str
    steps: str = ""  # of an agent: what led to the answer


ANSWERS: tuple[Column[Said], ...] = (
    Column("Model", "text", 110, lambda said: said.model, style="sticks"),
    Column(
        "Answer",
        "text",
        200,
        lambda said: said.answer,
        folded=("the steps to this answer", lambda said: said.steps),
        style="prose",
    ),
    Column("Score", "number", 50, lambda said: said.score),
    Column("Reason or reading", "text", 200, lambda said: said.reason, style="prose"),
    Column("Scorer", "text", 160, lambda said: said.scorer, style="prose"),
)
