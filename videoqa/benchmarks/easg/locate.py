"""When is it? Reads the time that turn 1 of a two-stage run names, and scores it against the action's own seconds.

    "S 12.5 s to E 15 s", "between 0:12 and 0:15", "about 13 seconds in"   ->   (12.5, 15.0), (12.0, 15.0), (13.0, 13.0)

A question is grounded: its action lasts from `start_s` to `end_s` of the full video, and the clip begins at
`clip_start_s`. Models see and say seconds of the clip. Located is what has its middle inside the action (a hit), and
how well both stretches of time cover each other is their temporal IoU. A reply without a time is a miss with IoU 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from videoqa.reply import without_thinking

_UNIT = r"(?:s|sec|secs|second|seconds)\b"
_MINUTES = r"(?:m|min|mins|minute|minutes)\b"
_CLOCK = r"(?:(?P<h{0}>\d+):)?(?P<m{0}>\d+):(?P<s{0}>\d\d(?:\.\d+)?)(?!\d)"
_LONG = rf"(?P<lm{{0}}>\d+)\s*{_MINUTES}\s*(?:and\s+)?(?P<ls{{0}}>\d+(?:\.\d+)?)\s*{_UNIT}"
_SHORT = rf"(?P<n{{0}}>\d+(?:\.\d+)?)(?P<unit{{0}}>\s*-?{_UNIT})?"
_TIME = rf"(?<![\d.:])(?:{_CLOCK}|{_LONG}|{_SHORT})"
_END = r"(?:E\b|end(?:s|ing)?\b)\s*(?:time\b|at\b|is\b)?\s*[:=]?"
_BETWEEN = (
    rf"\s*(?:(?P<comma>[,;])\s*(?:and\s+)?(?P<end>{_END})?|(?:-+>?|[–—~→]|to\b|and\b|until\b|till\b)\s*(?:{_END})?)\s*"
)
_FROM = r"(?:(?:about|around|at|the)\s+)?"
_RANGE = re.compile(_TIME.format(1) + _BETWEEN + _FROM + _TIME.format(2), re.I)
_POINT = re.compile(_TIME.format(1), re.I)


def read_time(text: str) -> tuple[float, float] | None:
    """The stretch of time, in seconds, that a reply names: the first range, or else the first single time (its start
    is its end). Numbers without a unit count in a range one of whose ends has one, in a range that is labelled, or
    where the reply holds nothing but numbers. None: there is no time in it."""
    text = re.sub(r"[\"'{}\[\]()*_]", " ", without_thinking(text) or "").strip()
    bare = re.fullmatch(r"(?:[SE\d.,;:\s–—-]|to\b|and\b|start\b|end\b)+", text, re.I) is not None
    labelled = bare or re.search(r"\b(?:start|begin|from|between)", text, re.I) is not None
    for match in _RANGE.finditer(text):
        units = _with_unit(match, 1) + _with_unit(match, 2)
        listed = match["comma"] and not match["end"]  # "5 s, 9 s"
        if bare or (units == 2 if listed else units or labelled):
            start, end = sorted((_seconds(match, 1), _seconds(match, 2)))
            return start, end
    for match in _POINT.finditer(text):
        if bare or _with_unit(match, 1):
            return _seconds(match, 1), _seconds(match, 1)
    return None


def _with_unit(match: re.Match[str], which: int) -> bool:
    return match[f"n{which}"] is None or match[f"unit{which}"] is not None


def _seconds(match: re.Match[str], which: int) -> float:
    if match[f"n{which}"] is not None:
        return float(match[f"n{which}"])
    if match[f"lm{which}"] is not None:
        return 60 * float(match[f"lm{which}"]) + float(match[f"ls{which}"])
    return 3600 * float(match[f"h{which}"] or 0) + 60 * float(match[f"m{which}"]) + float(match[f"s{which}"])


@dataclass(frozen=True, slots=True)
class Located:
    """One answer to "when is it?" beside the truth; seconds of the clip."""

    id: str
    type: str
    truth: tuple[float, float]
    time: tuple[float, float] | None  # that the reply names; None: no time could be read
    hit: bool  # the middle of that time lies within the truth
    iou: float  # temporal intersection over union, 0..1


def score_time(time: tuple[float, float] | None, truth: tuple[float, float]) -> tuple[bool, float]:
    """Hit and temporal IoU of two stretches of time. A single moment has no length, so its IoU is 0, unless the truth
    is that same moment."""
    if time is None:
        return False, 0.0
    hit = truth[0] <= (time[0] + time[1]) / 2 <= truth[1]
    union = max(time[1], truth[1]) - min(time[0], truth[0])
    if union == 0:
        return hit, 1.0
    return hit, max(0.0, min(time[1], truth[1]) - max(time[0], truth[0])) / union


def locate_rows(rows: Iterable[Mapping[str, Any]], replies: Mapping[str, str]) -> list[Located]:
    """The rows that were asked for a time and have one of their own, scored. `replies` is turn 1's text by row id."""
    located = []
    for row in rows:
        if row["id"] not in replies or None in (row["start_s"], row["end_s"], row["clip_start_s"]):
            continue
        truth = row["start_s"] - row["clip_start_s"], row["end_s"] - row["clip_start_s"]
        time = read_time(replies[row["id"]])
        located.append(Located(row["id"], row["type"], truth, time, *score_time(time, truth)))
    return located
