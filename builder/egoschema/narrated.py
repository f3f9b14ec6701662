"""Narration files -> clips of three minutes with enough narrations to ask about.

    Clip("video-1:180", "video-1", 180.0, 360.0, [(183.2, "#C C opens the door"), ...])

Three forms are read: Ego4D's narration.json ({"videos": {uid: {"narration_pass_1": {"narrations": [...]}}}}, also
without "videos"), {clip: "(1.06s) #C C ... (2.30s) ..."}, and the config `narrations` of a dataset repo of EASG-Bench.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.inputs import as_number, as_text, field, read_object, refuse

CLIP_S = 180.0
LEAST = 30  # narrations of a clip
_PASSES = ("narration_pass_1", "narration_pass_2")
_TIMED = re.compile(r"\((\d+(?:\.\d+)?)s\)\s*(.*?)\s*(?=\(\d+(?:\.\d+)?s\)|\Z)", re.S)

Narration = tuple[float, str]  # second of the video, text


@dataclass(frozen=True, slots=True)
class Clip:
    """A part of a video; seconds of the video."""

    id: str
    video: str
    start_s: float
    end_s: float
    narrations: tuple[Narration, ...]

    @property
    def text(self) -> str:
        """A line for each narration, its second counted from the clip's beginning."""
        return "\n".join(f"({second - self.start_s:.1f}s) {text}" for second, text in self.narrations)


def read(path: Path) -> dict[str, list[Narration]]:
    """The narrations of each video (or of each clip, where the file has clips), in order of time."""
    if path.is_dir():
        from videoqa.benchmarks.easg.data import load

        return {row["video"] or row["clip"]: timed(row["narrations"]) for row in load(path, "narrations")}
    data = read_object(path)
    videos = data["videos"] if isinstance(data.get("videos"), dict) else data
    return {
        name: sorted(timed(of) if isinstance(of, str) else _ego4d(of, f"{path}: video {name}"))
        for name, of in videos.items()
        if isinstance(of, str | dict)
    }


def timed(text: str) -> list[Narration]:
    """The narrations in "(1.06s) #C C picks ... (2.30s) ..."."""
    return sorted((float(one[1]), " ".join(one[2].split())) for one in _TIMED.finditer(text) if one[2].strip())


def _ego4d(of: Mapping[str, Any], where: str) -> list[Narration]:
    """The first pass that has narrations: two passes are two people who saw the same."""
    for name in _PASSES:
        listed = of.get(name, {}).get("narrations") if isinstance(of.get(name, {}), dict) else None
        if listed:
            if not isinstance(listed, list):
                refuse(where, f"{name}: a list of narrations is needed")
            return [
                (
                    as_number(field(one, "timestamp_sec", where), where),
                    as_text(field(one, "narration_text", where), where),
                )
                for one in listed
            ]
    return []


def clips(narrations: Mapping[str, Sequence[Narration]], least: int = LEAST, length: float = CLIP_S) -> list[Clip]:
    """The parts of `length` seconds, one behind the other from second 0 of each video, with at least so many
    narrations."""
    found = []
    for video, of in narrations.items():
        parts: dict[int, list[Narration]] = {}
        for second, text in of:
            parts.setdefault(int(second // length), []).append((second, text))
        for part, inside in sorted(parts.items()):
            if len(inside) >= least:
                start = part * length
                found.append(Clip(f"{video}:{start:g}", video, start, start + length, tuple(inside)))
    return found
