"""The dataset in numbers and in one picture, which the card shows.

    type        questions   grounded   answer grounded
    purpose           668        623               623
    ...
    question words: 5 to 24, median 11

Grounded: the question has a box of something that it or its answer names; answer grounded: a box of what the answer
names. The distribution of types is the EASG-Bench paper's Figure 1. Same rows, same bytes of the picture.
"""

from __future__ import annotations

import statistics
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder.easg.check import grounded
from easg_bench import TYPES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = Mapping[str, Any]
TOP = 15  # most frequent verbs, objects and relations


@dataclass
class Stats:
    """Counts of a dataset; lengths are words, a clip's length is the seconds between its first and last annotation."""

    questions: Counter[str] = field(default_factory=Counter)  # by type, as the next two
    grounded: Counter[str] = field(default_factory=Counter)
    answer_grounded: Counter[str] = field(default_factory=Counter)
    question_words: Counter[int] = field(default_factory=Counter)
    answer_words: Counter[int] = field(default_factory=Counter)
    per_clip: Counter[str] = field(default_factory=Counter)  # questions of a clip
    verbs: Counter[str] = field(default_factory=Counter)  # of the annotated actions, as the next two
    objects: Counter[str] = field(default_factory=Counter)
    relations: Counter[str] = field(default_factory=Counter)
    clip_seconds: dict[str, float] = field(default_factory=dict)


def count(rows: Iterable[Row], graphs: Iterable[Row], stats: Stats | None = None) -> Stats:
    """The statistics of questions and of the rows of the config `graphs`, of which there may be none.

    They are added to `stats`, if given; all rows of a clip must come in one call.
    """
    stats = stats or Stats()
    for row in rows:
        stats.questions[row["type"]] += 1
        stats.grounded[row["type"]] += bool(row["evidence"])
        stats.answer_grounded[row["type"]] += grounded(row)
        stats.question_words[len(row["question"].split())] += 1
        stats.answer_words[len((row["answer"] or "").split())] += 1
        stats.per_clip[row["clip"]] += 1
    spans: defaultdict[str, list[float]] = defaultdict(list)
    for graph in graphs:
        spans[graph["clip"]] += graph["start_s"], graph["end_s"]
        if graph["verb"]:
            stats.verbs[graph["verb"]] += 1
            stats.objects[graph["object"]] += 1
            stats.relations.update(pair["relation"] for pair in graph["relations"])
    stats.clip_seconds.update((clip, max(span) - min(span)) for clip, span in spans.items())
    return stats


def text(stats: Stats) -> str:
    """The statistics for a terminal."""
    lines = [f"{'type':<12}{'questions':>9}{'':>6}{'grounded':>10}{'answer grounded':>17}"]
    total = stats.questions.total()
    kinds = _types(stats)
    for kind in kinds:
        share = f"{stats.questions[kind] / total:.0%}"
        numbers = f"{stats.questions[kind]:>9,}{share:>6}{stats.grounded[kind]:>10,}{stats.answer_grounded[kind]:>17,}"
        lines.append(f"{kind:<12}{numbers}")
    numbers = f"{total:>9,}{'':>6}{stats.grounded.total():>10,}{stats.answer_grounded.total():>17,}"
    lines.append(f"{'all':<12}{numbers}")
    lines.append("")
    lines.append(_range("question words", list(stats.question_words.elements())))
    lines.append(_range("answer words", list(stats.answer_words.elements())))
    lines.append(_range(f"questions a clip, {len(stats.per_clip):,} clips", list(stats.per_clip.values())))
    if stats.clip_seconds:
        seconds = [round(length) for length in stats.clip_seconds.values()]
        lines.append(_range(f"annotated seconds a clip, {len(seconds):,} clips", seconds))
    for name, counter in (("verbs", stats.verbs), ("objects", stats.objects), ("relations", stats.relations)):
        if counter:
            most = ", ".join(f"{word} {n:,}" for word, n in _most(counter))
            lines.append(f"{name} ({len(counter):,}): {most}")
    return "\n".join(lines)


def draw(stats: Stats, path: Path) -> None:
    """Write the picture, a PNG of 1500 x 1260 pixels; the same statistics give the same bytes."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    style: Any = {
        **matplotlib.rcParamsDefault,
        "font.family": "DejaVu Sans",  # comes with matplotlib
        "font.size": 11,
        "text.parse_math": False,  # a label may hold dollars
        "axes.titlesize": 12.5,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.edgecolor": "#9aa0a6",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "xtick.color": "#5f6368",
        "ytick.color": "#202124",
    }
    with matplotlib.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # a label may hold any script
        figure = Figure(figsize=(15, 12.6), dpi=100)
        FigureCanvasAgg(figure)
        spaces = {"left": 0.06, "right": 0.985, "top": 0.97, "bottom": 0.015, "wspace": 0.27, "hspace": 0.24}
        panels = figure.subplots(3, 3, gridspec_kw=spaces)
        kinds = _types(stats)
        total = stats.questions.total()
        shares = {kind: f"{n:,} ({n / total:.0%})" for kind, n in stats.questions.items()}
        _bars(panels[0, 0], f"{total:,} questions by type", [(k, stats.questions[k], shares[k]) for k in kinds])
        _shares(panels[0, 1], stats, kinds)
        _histogram(panels[0, 2], "Questions per clip", list(stats.per_clip.values()), "questions", "clips")
        _histogram(panels[1, 0], "Length of the questions", list(stats.question_words.elements()), "words", "questions")
        _histogram(panels[1, 1], "Length of the answers", list(stats.answer_words.elements()), "words", "questions")
        seconds = list(stats.clip_seconds.values())
        _histogram(panels[1, 2], "Annotated length of the clips", seconds, "seconds", "clips")
        for panel, name in zip(panels[2], ("verbs", "objects", "relations"), strict=True):
            most = _most(getattr(stats, name))
            _bars(panel, f"Most frequent {name}", [(_short(word), n, f"{n:,}") for word, n in most])
        figure.savefig(path, format="png", metadata={"Software": None})


BLUE, PALE, ORANGE = "#2f6db3", "#b9d0ea", "#e0803a"


def _bars(panel: Axes, title: str, bars: Sequence[tuple[str, int, str]]) -> None:
    """Horizontal bars from the top, each with its number behind it."""
    if not _titled(panel, title, bars):
        return
    at = range(len(bars))
    panel.barh(at, [n for _, n, _ in bars], color=BLUE, height=0.72)
    panel.set_yticks(at, [name for name, _, _ in bars])
    panel.invert_yaxis()
    for y, (_, n, label) in zip(at, bars, strict=True):
        panel.annotate(label, (n, y), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9.5)
    panel.set_xlim(0, max(n for _, n, _ in bars) * 1.25)
    panel.xaxis.set_visible(False)
    panel.spines["bottom"].set_visible(False)
    panel.tick_params(left=False)


def _shares(panel: Axes, stats: Stats, kinds: Sequence[str]) -> None:
    """How many of a type's questions have a box, and a box of what the answer names."""
    if not _titled(panel, "Questions with a box", kinds):
        return
    at = range(len(kinds))
    for color, counter, name in (
        (PALE, stats.grounded, "of something named"),
        (BLUE, stats.answer_grounded, "of what the answer names"),
    ):
        shares = [100 * counter[kind] / stats.questions[kind] for kind in kinds]
        panel.barh(at, shares, color=color, height=0.72, label=name)
        if color == BLUE:
            for y, share in zip(at, shares, strict=True):
                panel.annotate(
                    f"{share:.0f}%",
                    (share, y),
                    xytext=(-4, 0),
                    textcoords="offset points",
                    va="center",
                    ha="right",
                    fontsize=9.5,
                    color="white",
                )
    panel.set_yticks(at, kinds)
    panel.invert_yaxis()
    panel.set_xlim(0, 100)
    panel.set_xticks([0, 25, 50, 75, 100], ["0", "25", "50", "75", "100%"])
    panel.tick_params(left=False)
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.06), ncols=2, frameon=False, fontsize=9.5)


def _histogram(panel: Axes, title: str, values: Sequence[float], unit: str, of: str) -> None:
    """A histogram with its median. Whole numbers get one bar for each value where there are few."""
    from matplotlib.ticker import MaxNLocator

    if not _titled(panel, title, values):
        return
    low, high = min(values), max(values)
    whole = all(float(value).is_integer() for value in values)
    bins: Any = 20
    if whole:
        step = max(1, -(-int(high - low + 1) // 24))
        bins = [low - 0.5 + step * k for k in range(int((high - low) // step) + 2)]
    panel.hist(values, bins=bins, color=BLUE, edgecolor="white", linewidth=0.6)
    median = statistics.median(values)
    panel.axvline(median, color=ORANGE, linewidth=2)
    panel.annotate(
        f"median {median:.0f}",
        (median, 1),
        xycoords=("data", "axes fraction"),
        xytext=(6, -12),
        textcoords="offset points",
        color="#a8541a",
        fontsize=10,
    )
    panel.set_xlabel(unit)
    panel.set_ylabel(of)
    panel.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
    panel.yaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
    panel.margins(x=0.01)


def _titled(panel: Axes, title: str, values: Sequence[Any]) -> bool:
    """Set the title, and say in the panel if there are no values. Returns whether there are any."""
    panel.set_title(title)
    if not values:
        panel.axis("off")
        panel.text(0, 0.9, "not known", transform=panel.transAxes, color="#5f6368")
    return bool(values)


def _types(stats: Stats) -> list[str]:
    return [*(kind for kind in TYPES if stats.questions[kind]), *sorted(stats.questions.keys() - set(TYPES))]


def _most(counter: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counter.items(), key=lambda item: (-item[1], item[0]))[:TOP]


def _range(name: str, values: Sequence[int]) -> str:
    if not values:
        return f"{name}: none"
    return f"{name}: {min(values):,} to {max(values):,}, median {statistics.median(values):,g}"


def _short(word: str) -> str:
    return word if len(word) <= 15 else f"{word[:14]}…"
