"""The Space's charts: plotly figures, and a frame with its boxes as SVG, that are readable on light and dark pages.
Colours: Okabe and Ito's (the blue lighter), which people who confuse colours can tell apart; marks differ in shape as
well. Texts of others are escaped: plotly reads some tags in them."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import plotly.graph_objects as go
from leaderboard import Group
from plotly.subplots import make_subplots
from questions import Action

from videoqa.benchmark import AVERAGE, Track

GREY = "#858d95"  # readable on white and on black
LOOKS = (  # colour and mark of a kind, in the order of the track's kinds
    ("#1f88cf", "circle"),
    ("#d55e00", "square"),
    ("#009e73", "diamond"),
    ("#cc79a7", "triangle-up"),
    ("#e69f00", "x"),
)
ROLES = {"before": "#1f88cf", "asked": "#d55e00", "after": "#009e73"}


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


MOST_MODELS = 10  # in one chart


@dataclass(frozen=True, slots=True)
class Series:
    """What the charts draw of one run."""

    name: str
    kind: str
    model: str
    way: str  # how it was asked
    scores: dict[str, float]  # by type, and the average
    intervals: dict[str, tuple[float, float]]
    whole: bool = True  # a partial run is drawn hollow and is no kind's best


def look(of_track: Track, kind: str) -> tuple[str, str]:
    """Colour and mark of a kind."""
    kinds = of_track.kinds
    return LOOKS[(kinds.index(kind) if kind in kinds else len(kinds)) % len(LOOKS)]


def published_series(of_track: Track, config: str = "") -> list[Series]:
    """The track's published rows of one set of questions; those of the table that compares two ways carry their way."""
    return [
        Series(row.model, row.kind, row.model, row.way, {**row.scores, AVERAGE: row.avg}, {})
        for row in of_track.published
        if row.config == config
    ]


def group_series(group: Group) -> list[Series]:
    """The runs of a group, the best first and partial ones last."""
    found = []
    for entry in group.entries:
        result = entry.result
        summaries = {name: s for name in (*group.track.types, AVERAGE) if (s := result.column(name))}
        scores = {name: s.value for name, s in summaries.items() if s.value is not None}
        intervals = {name: s.interval for name, s in summaries.items() if s.interval and name in scores}
        whole = entry in group.whole
        name = result.label if whole else f"{result.label}, partial"
        found.append(Series(name, result.kind, result.name, result.prompt, scores, intervals, whole))
    return found


def _axis_names(lines: Sequence[Series]) -> list[str]:
    """The runs as they stand at an axis, each once (plotly puts what has one name in one line): the model without its
    organisation, with the way it was asked where a model has several runs."""
    models = [line.model for line in lines]
    found: list[str] = []
    for line in lines:
        way = f" · {_safe(line.way, 10)}" if models.count(line.model) > 1 else ""
        name = _safe(line.model.rsplit("/", 1)[-1], 12 if way else 23) + way
        while name in found:
            name += "\u200b"
        found.append(name)
    return found


def breakdown(group: Group, name: str) -> tuple[list[Series], Track, tuple[str, ...]]:
    """What `by_type` draws of the runs' scores by something that is known of the questions ("reasoning steps")."""
    found = []
    for entry, line in zip(group.entries, group_series(group), strict=True):
        parts = {value: s for value, s in entry.result.breakdowns.get(name, {}).items() if s.value is not None}
        scores = {value: s.value for value, s in parts.items() if s.value is not None}
        found.append(replace(line, scores=scores, intervals={v: s.interval for v, s in parts.items() if s.interval}))
    panels = tuple(dict.fromkeys(value for line in found for value in line.scores))
    return found, group.track, panels


def by_type(lines: Sequence[Series], of_track: Track, panels: Sequence[str] = ()) -> go.Figure:
    """A panel for each type (or what else `panels` names) in which every run, named at the side, has its score with
    its interval."""
    panels = panels or (of_track.columns if len(of_track.columns) == 1 else (*of_track.types, AVERAGE))
    lines = lines[:MOST_MODELS]
    names = _axis_names(lines)
    several = len({line.kind for line in lines}) > 1
    panel_height, between, top, bottom = len(names) * 20 + 4, 58, 84 if several else 34, 30  # px
    inner = len(panels) * panel_height + (len(panels) - 1) * between
    figure = make_subplots(
        len(panels),
        1,
        shared_xaxes=True,
        subplot_titles=panels,
        vertical_spacing=between / inner if len(panels) > 1 else 0,
    )
    named: set[str] = set()  # kinds in the legend
    for row, panel in enumerate(panels, 1):
        for kind in dict.fromkeys(line.kind for line in lines):
            colour, symbol = look(of_track, kind)
            mine = [(name, s) for name, s in zip(names, lines, strict=True) if s.kind == kind and panel in s.scores]
            ends = [s.intervals.get(panel, (s.scores[panel], s.scores[panel])) for _, s in mine]
            values = [s.scores[panel] for _, s in mine]
            figure.add_scatter(
                row=row,
                col=1,
                x=values,
                y=[name for name, _ in mine],
                error_x={
                    "type": "data",
                    "symmetric": False,
                    "array": [high - value for value, (_, high) in zip(values, ends, strict=True)],
                    "arrayminus": [value - low for value, (low, _) in zip(values, ends, strict=True)],
                    "thickness": 1.4,
                    "width": 0,
                },
                mode="markers",
                marker={
                    "color": colour,
                    "symbol": [symbol if s.whole else f"{symbol}-open" for _, s in mine],
                    "size": 9,
                },
                customdata=[
                    [_safe(s.name), f" ({low:.1f} to {high:.1f})" if low < high else ""]
                    for (_, s), (low, high) in zip(mine, ends, strict=True)
                ],
                hovertemplate=f"%{{customdata[0]}}<br>{_safe(panel)}: %{{x:.1f}}%{{customdata[1]}}<extra></extra>",
                name=_safe(kind),
                legendgroup=kind,
                showlegend=bool(mine) and kind not in named,
            )
            named |= {kind} if mine else set()
    figure.update_yaxes(categoryorder="array", categoryarray=names[::-1], tickfont_size=12, showgrid=True)
    figure.update_yaxes(range=[-0.6, len(names) - 0.4], fixedrange=True)
    figure.update_xaxes(showticklabels=True, tickfont_size=11, fixedrange=True, range=_range(lines, panels))
    for note in figure.layout.annotations:
        note.update(x=0, xanchor="left", font={"size": 14, "color": GREY}, text=f"<b>{_safe(note.text)}</b>")
    height = inner + top + bottom
    margin = {"l": min(168, 24 + 7 * max(map(len, names), default=0)), "r": 12, "t": top, "b": bottom}
    legend = {"orientation": "h", "y": 1, "yref": "container", "yanchor": "top", "x": 0, "xref": "container"}
    return _layout(figure, height=height, margin=margin, legend=legend, showlegend=several)


LEAST_SPAN = 10.0  # of an axis, so that one score without an interval is not drawn as a scale of its own


def _range(lines: Sequence[Series], panels: Sequence[str]) -> list[float] | None:
    """The ends of the axis where the scores and their intervals hardly differ; none of them is below 0. None: plotly's
    own."""
    scores = [(s.scores[name], s.intervals.get(name)) for s in lines for name in panels if name in s.scores]
    ends = [end for score, interval in scores for end in (interval or (score, score))]
    if not ends or max(ends) - min(ends) >= LEAST_SPAN:
        return None
    middle = max((min(ends) + max(ends)) / 2, LEAST_SPAN / 2 - 0.5)
    return [middle - LEAST_SPAN / 2, middle + LEAST_SPAN / 2]


def best_of_kinds(lines: Sequence[Series], of_track: Track) -> go.Figure | None:
    """The best score of each kind of run in each type; None where there is one kind only."""
    whole = [line for line in lines if line.whole]
    if len({line.kind for line in whole}) < 2:
        return None
    figure = go.Figure()
    for kind in of_track.kinds:
        best = {}
        for name in of_track.columns:
            candidates = [(s.scores[name], s.name) for s in whole if s.kind == kind and name in s.scores]
            if candidates:
                best[name] = max(candidates)
        if best:
            figure.add_bar(
                x=list(best),
                y=[score for score, _ in best.values()],
                text=[f"{score:.0f}" for score, _ in best.values()],
                textposition="outside",
                cliponaxis=False,
                customdata=[_safe(name) for _, name in best.values()],
                hovertemplate="%{customdata}<br>%{x}: %{y:.1f}<extra></extra>",
                name=f"best {_safe(kind)}",
                marker={"color": look(of_track, kind)[0]},
            )
    figure.update_xaxes(
        categoryorder="array", categoryarray=list(of_track.columns), fixedrange=True, tickangle=0, tickfont_size=11
    )
    figure.update_yaxes(rangemode="tozero", fixedrange=True)
    return _layout(figure, barmode="group", height=340, showlegend=True, margin={"l": 36, "r": 8, "t": 40, "b": 40})


def two_ways(lines: Sequence[Series], of_track: Track) -> go.Figure | None:
    """Models that were asked in both of the ways that the track compares, in the types that the second one asks; None
    where there is no such model. Published rows call the first way "regular"."""
    if not of_track.beside:
        return None
    second = of_track.beside[-1]
    ways = {"regular": of_track.beside[0], **{way: way for way in of_track.beside}}
    shared = {s.model for s in lines if s.way == second} & {
        s.model for s in lines if ways.get(s.way) == of_track.beside[0]
    }
    mine = [s for s in lines if s.model in shared and s.way in ways]
    types = of_track.ways[second].types or of_track.types
    figure = go.Figure()
    for at, way in enumerate(of_track.beside):
        points = [(s.model, t, s.scores[t]) for s in mine if ways[s.way] == way for t in types if t in s.scores]
        figure.add_bar(
            x=[[_safe(model.rsplit("/", 1)[-1], 24) for model, _, _ in points], [_safe(t) for _, t, _ in points]],
            y=[score for _, _, score in points],
            text=[f"{score:.0f}" for _, _, score in points],
            textposition="outside",
            cliponaxis=False,
            name=_safe(way),
            marker={"color": LOOKS[at + 1][0]},
        )
    figure.update_xaxes(fixedrange=True, tickangle=0, tickfont_size=11, dividercolor="rgba(133,141,149,.4)")
    figure.update_yaxes(rangemode="tozero", fixedrange=True)
    if not mine:
        return None
    return _layout(figure, barmode="group", height=340, margin={"l": 36, "r": 8, "t": 40, "b": 50}, showlegend=True)


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


BOX_COLOURS = ("#e69f00", "#56b4e9", "#2fc79a", "#e394c0", "#d55e00")


def picture(image: Any, evidence: Sequence[dict[str, Any]]) -> str:
    """A frame with the boxes of the question's objects, as SVG that is as wide as its place and has the frame's own
    shape; without a picture the boxes stand on an empty frame of 16:9."""
    width, height = image.size if image is not None else (1280, 720)
    scale = width / 640  # of lines and letters
    if image is not None:
        image.thumbnail((960, 960))
        buffer = io.BytesIO()
        image.convert("RGB").save(buffer, "JPEG", quality=85)
        address = f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
        parts = [f'<image href="{address}" width="{width}" height="{height}" preserveAspectRatio="none"/>']
    else:
        parts = [f'<rect width="{width}" height="{height}" fill="rgba(133,141,149,.15)"/>']
    for at, one in enumerate(evidence):
        left, top, right, bottom = (
            min(1.0, max(0.0, end)) * side for end, side in zip(one["box"], (width, height) * 2, strict=True)
        )
        colour = BOX_COLOURS[at % len(BOX_COLOURS)]
        name = one["object"].replace("_", " ")[:60]
        tag_width, tag_height = (len(name) * 11.5 + 8) * scale, 26 * scale
        x = max(0.0, min(left, width - tag_width))
        y = top - tag_height if top >= tag_height else min(bottom, height - tag_height)
        parts.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{max(0, right - left):.1f}" '
            f'height="{max(0, bottom - top):.1f}" '
            f'fill="none" stroke="{colour}" stroke-width="{3 * scale:.1f}"/>'
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{tag_width:.1f}" height="{tag_height:.1f}" fill="{colour}"/>'
            f'<text x="{x + 4 * scale:.1f}" y="{y + 20 * scale:.1f}" font-size="{20 * scale:.1f}" fill="#111" '
            f'textLength="{tag_width - 8 * scale:.1f}" lengthAdjust="spacingAndGlyphs" '
            f'font-family="system-ui, sans-serif">{html.escape(name)}</text>'
        )
    most = 480 * width / height  # px; a frame of a phone held upright is not higher than the page
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" style="display:block; width:100%; max-width:{most:.0f}px; '
        f'border-radius:6px">{"".join(parts)}</svg>'
    )
