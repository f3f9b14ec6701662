"""The Space's charts, as plotly figures that are readable on light and dark pages. Colours: Okabe and Ito's, which
people who confuse colours can tell apart; marks differ in shape as well. Texts of others are escaped: plotly reads some
tags in them."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
from leaderboard import COLUMNS, TRACK, TYPES, Entry
from questions import Action

GREY = "#858d95"  # readable on white and on black
KINDS = {
    "language-only": ("#0072b2", "circle"),
    "video": ("#d55e00", "square"),
    "two-stage": ("#009e73", "diamond"),
}
ROLES = {"before": "#0072b2", "asked": "#d55e00", "after": "#009e73"}


def _layout(figure: go.Figure, **options: Any) -> go.Figure:
    figure.update_layout(
        template=None,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": GREY, "size": 13, "family": "system-ui, sans-serif"},
        margin={"l": 45, "r": 10, "t": 40, "b": 40},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        hoverlabel={"align": "left"},
        dragmode=False,
        autosize=True,
    )
    grid = {"gridcolor": "rgba(133,141,149,.25)", "zerolinecolor": "rgba(133,141,149,.4)"}
    figure.update_xaxes(**grid, title_font_size=13)
    figure.update_yaxes(**grid, title_font_size=13)
    return figure.update_layout(**options)


def _safe(text: str, most: int = 60) -> str:
    return html.escape(text if len(text) <= most else f"{text[: most - 1]}…")


Series = tuple[str, str, dict[str, float], dict[str, tuple[float, float]]]  # name, kind, scores, intervals


def series(entries: Sequence[Entry] | None) -> list[Series]:
    """What the charts draw of a group's entries, or of the paper's rows (None)."""
    found: list[Series] = []
    if entries is None:
        found += [(row.model, row.kind, dict(row.scores), {}) for row in TRACK.published if not row.way]
        two = (row for row in TRACK.published if row.way == "two-stage")
        return found + [(row.model, "two-stage", dict(row.scores), {}) for row in two]
    for entry in entries:
        summaries = {n: s for n in COLUMNS if (s := entry.result.column(n)) and s.value is not None}
        scores = {n: s.value for n, s in summaries.items() if s.value is not None}
        found.append(
            (entry.result.label, entry.result.kind, scores, {n: s.interval for n, s in summaries.items() if s.interval})
        )
    return found


def by_type(lines: Sequence[Series]) -> go.Figure:
    """Every model's score in each type, with its interval; models in one order within each type."""
    figure = go.Figure()
    step = 0.8 / max(1, len(lines))
    for at, (name, kind, scores, intervals) in enumerate(lines):
        colour, symbol = KINDS[kind]
        types = [t for t in TYPES if t in scores]
        ends = [intervals.get(t, (scores[t], scores[t])) for t in types]
        figure.add_scatter(
            x=[TYPES.index(t) - 0.4 + step * (at + 0.5) for t in types],
            y=[scores[t] for t in types],
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [high - scores[t] for t, (_, high) in zip(types, ends, strict=True)],
                "arrayminus": [scores[t] - low for t, (low, _) in zip(types, ends, strict=True)],
                "thickness": 1.2,
                "width": 0,
            },
            mode="markers",
            marker={"color": colour, "symbol": symbol, "size": 9 if len(lines) < 20 else 6},
            customdata=[
                [_safe(name), t, f"{low:.1f} to {high:.1f}"] for t, (low, high) in zip(types, ends, strict=True)
            ],
            hovertemplate="%{customdata[0]}<br>%{customdata[1]}: %{y:.1f} (%{customdata[2]})<extra></extra>",
            name=kind,
            legendgroup=kind,
            showlegend=kind not in {k for _, k, _, _ in lines[:at]},
        )
    figure.update_xaxes(tickvals=list(range(5)), ticktext=list(TYPES), range=[-0.5, 4.5], showgrid=False)
    figure.update_yaxes(title="relative score × 100", rangemode="tozero")
    for border in range(4):
        figure.add_vline(border + 0.5, line={"color": "rgba(133,141,149,.25)", "width": 1})
    return _layout(figure, height=430)


def best_of_kinds(lines: Sequence[Series]) -> go.Figure:
    """The best score of each kind of model in each type: what seeing the video adds."""
    figure = go.Figure()
    for kind, (colour, _) in KINDS.items():
        best = {}
        for t in TYPES:
            candidates = [(scores[t], name) for name, k, scores, _ in lines if k == kind and t in scores]
            if candidates:
                best[t] = max(candidates)
        if best:
            figure.add_bar(
                x=list(best),
                y=[score for score, _ in best.values()],
                text=[f"{score:.0f}" for score, _ in best.values()],
                customdata=[_safe(name) for _, name in best.values()],
                hovertemplate="%{customdata}<br>%{x}: %{y:.1f}<extra></extra>",
                name=f"best {kind}",
                marker={"color": colour},
            )
    figure.update_xaxes(categoryorder="array", categoryarray=list(TYPES))
    figure.update_yaxes(title="relative score × 100", rangemode="tozero")
    return _layout(figure, barmode="group", height=360, showlegend=True)


def two_stage(entries: Sequence[Entry] | None) -> go.Figure | None:
    """Models that were asked in one turn and in two (locate the action, then its neighbour), or None if there are
    none: before and after, the types that look back and ahead."""
    pairs: list[tuple[str, str, dict[str, float]]] = []
    if entries is None:
        pairs = [(row.model, row.way, dict(row.scores)) for row in TRACK.published if row.way]
    else:
        two = {entry.result.name for entry in entries if entry.result.kind == "two-stage"}
        for entry in entries:
            if entry.result.name in two and entry.result.kind != "language-only":
                way = "two-stage" if entry.result.kind == "two-stage" else "regular"
                scores = {t: s.value for t in ("before", "after") if (s := entry.result.column(t)) and s.value}
                pairs.append((entry.result.name, way, scores))
    figure = go.Figure()
    for way, colour in (("regular", KINDS["video"][0]), ("two-stage", KINDS["two-stage"][0])):
        mine = [(name, t, scores[t]) for name, w, scores in pairs if w == way for t in scores]
        figure.add_bar(
            x=[f"{_safe(name, 24)}<br>{t}" for name, t, _ in mine],
            y=[score for _, _, score in mine],
            text=[f"{score:.0f}" for _, _, score in mine],
            name=way,
            marker={"color": colour},
        )
    figure.update_yaxes(title="relative score × 100", rangemode="tozero")
    return _layout(figure, barmode="group", height=340) if pairs else None


def timeline(actions: Sequence[Action], clip_start_s: float | None) -> go.Figure:
    """The clip's actions in time; those of the question stand out and are named."""
    figure = go.Figure()
    start = clip_start_s or 0.0
    lanes = {"before": 3, "asked": 2, "after": 1, "other": 0}
    for role in ("other", "before", "asked", "after"):
        mine = [action for action in actions if action.role == role]
        if not mine:
            continue
        colour = ROLES.get(role, "rgba(133,141,149,.6)")
        figure.add_bar(
            orientation="h",
            y=[lanes[role]] * len(mine),
            base=[action.start_s - start for action in mine],
            x=[max(0.4, action.end_s - action.start_s) for action in mine],
            width=0.7,
            marker={"color": colour, "line": {"width": 0}},
            customdata=[[_safe(a.text, 90), f"{a.start_s - start:.1f}–{a.end_s - start:.1f} s"] for a in mine],
            hovertemplate="%{customdata[0]}<br>%{customdata[1]}<extra></extra>",
            name=role,
            showlegend=False,
        )
    last = max((action.end_s - start for action in actions), default=1.0)
    roles = [action.role for action in actions]
    for action in actions:
        if action.role in ROLES and roles.count(action.role) == 1:  # several names would lie over each other
            right = action.start_s - start > last * 0.55  # the name then stands left of its bar
            figure.add_annotation(
                x=(action.start_s if right else action.end_s) - start,
                y=lanes[action.role],
                text=_safe(action.text, 44),
                showarrow=False,
                xanchor="right" if right else "left",
                xshift=-5 if right else 5,
                font={"color": GREY, "size": 13},
            )
    figure.update_yaxes(
        tickvals=[3, 2, 1, 0], ticktext=["before", "asked", "after", "all others"], range=[-0.6, 3.6], showgrid=False
    )
    figure.update_xaxes(title="seconds of the clip", range=[min(0.0, -last * 0.01), last * 1.02])
    return _layout(figure, height=230, margin={"l": 75, "r": 10, "t": 10, "b": 40}, barmode="overlay")


def picture(image: Any, evidence: Sequence[dict[str, Any]]) -> go.Figure:
    """A frame with the boxes of the question's objects; without a picture they stand on an empty frame of 16:9."""
    width, height = image.size if image is not None else (16, 9)
    figure = go.Figure()
    if image is not None:
        image.thumbnail((960, 960))
        figure.add_layout_image(
            source=image, x=0, y=0, xref="x", yref="y", sizex=1, sizey=1, sizing="stretch", layer="below"
        )
    else:
        figure.add_shape(type="rect", x0=0, y0=0, x1=1, y1=1, line={"color": GREY}, fillcolor="rgba(133,141,149,.12)")
    colours = ("#e69f00", "#56b4e9", "#2fc79a", "#e394c0", "#d55e00")
    for at, one in enumerate(evidence):
        left, top, right, bottom = one["box"]
        colour = colours[at % len(colours)]
        figure.add_shape(type="rect", x0=left, y0=top, x1=right, y1=bottom, line={"color": colour, "width": 3})
        figure.add_annotation(
            x=left,
            y=top if top > 0.08 else bottom,
            text=_safe(one["object"].replace("_", " ")),
            showarrow=False,
            xanchor="left" if left < 0.75 else "right",
            yanchor="bottom" if top > 0.08 else "top",
            font={"color": "#111", "size": 13},
            bgcolor=colour,
            borderpad=2,
        )
    figure.update_xaxes(range=[0, 1], visible=False, constrain="domain")
    figure.update_yaxes(range=[1, 0], visible=False, scaleanchor="x", scaleratio=height / width, constrain="domain")
    return _layout(figure, height=360, margin={"l": 0, "r": 0, "t": 0, "b": 0})
