"""Which file belongs to a clip, and a folder of videos as the frames of its clips."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from videoqa.frames import Policy, VideoError, read_frames
from videoqa.rows import Row

EXTENSIONS = frozenset({".avi", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".ts", ".webm"})


@dataclass(frozen=True, slots=True)
class Source:
    """Where a clip's pictures are: `start_s`..`end_s` (None: to the end) of the file `path`. A second of the file plus
    `offset_s` is a second of the full video (None: not known)."""

    path: Path
    start_s: float
    end_s: float | None
    offset_s: float | None


def video_files(folder: str | Path) -> dict[str, Path]:
    """The videos in `folder` and in the folders directly in it, by name without extension. Of two with the same name
    the less nested one counts, then the first by path."""
    folder = Path(folder)
    if not folder.is_dir():
        raise VideoError(f"{folder}: no such folder of videos")
    found: dict[str, Path] = {}
    for pattern in ("*", "*/*"):
        for path in sorted(folder.glob(pattern)):
            if path.suffix.lower() in EXTENSIONS and not path.name.startswith("."):
                found.setdefault(_key(path.stem), path)
    return found


def clip_ends(rows: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Where each clip ends in its full video: behind its last action, as far as `rows` know (give all of a clip's)."""
    ends: dict[str, float] = {}
    for row in rows:
        if row.get("end_s") is not None:
            ends[row["clip"]] = max(row["end_s"], ends.get(row["clip"], 0.0))
    return ends


def find_video(
    files: Mapping[str, Path],
    clip: str,
    video: str,
    clip_start_s: float | None = None,
    clip_end_s: float | None = None,
) -> Source:
    """The clip's own file, or else its part of the full video's file (seconds of the full video; both are needed then,
    unless the clip is the whole video). Raises VideoError where there is neither."""
    if path := files.get(_key(clip)):
        return Source(path, 0.0, None, 0.0 if clip == video else clip_start_s)
    path = files.get(_key(video)) if video else None
    if path is None:
        raise VideoError(f"clip {clip}: no file is named after it or after its video {video or '(not known)'}")
    if clip_start_s is None or clip_end_s is None:
        raise VideoError(f"clip {clip}: only the full video {path} is there, and not known where the clip lies in it")
    if not 0 <= clip_start_s <= clip_end_s:
        raise VideoError(f"clip {clip}: {clip_start_s} s to {clip_end_s} s is no part of the full video {path}")
    return Source(path, clip_start_s, clip_end_s, 0.0)


def _source(files: Mapping[str, Path], row: Row, ends: Mapping[str, float]) -> Source:
    """The file of a row's clip; releases that name a clip's file after a question of it are read as well."""
    names = (row["clip"], row.get("group") or row.get("id") or "")
    name = next((name for name in names if _key(name) in files), row["clip"])
    return find_video(files, name, row["video"], row["clip_start_s"], ends.get(row["clip"]))


@dataclass(frozen=True, slots=True)
class VideoCheck:
    """What a folder of videos lacks for a set of questions."""

    clips: int
    questions: int
    missing: dict[str, str]  # clip -> what is wrong, in order of clip
    lost: dict[str, int]  # questions without a video, by type in the rows' order

    @property
    def partial(self) -> bool:
        return bool(self.missing)

    def __str__(self) -> str:
        lines = [f"{self.clips - len(self.missing)} of {self.clips} clips have a video that can be read"]
        lines += [f"  missing {clip}: {problem}" for clip, problem in self.missing.items()]
        if self.partial:
            by_type = ", ".join(f"{kind} {n}" for kind, n in self.lost.items())
            lines.append(f"partial: {sum(self.lost.values())} of {self.questions} questions lost ({by_type})")
        return "\n".join(lines)


def check_videos(folder: str | Path, rows: Iterable[Mapping[str, Any]]) -> VideoCheck:
    """Open every clip's video and decode its first frame; say which clips and how many questions have none."""
    rows = list(rows)
    files, ends = video_files(folder), clip_ends(rows)
    missing: dict[str, str] = {}
    clips = {row["clip"]: row for row in rows}
    for clip, row in sorted(clips.items()):
        try:
            source = _source(files, row, ends)
            read_frames(source.path, Policy(seconds=(0.0,)), source.start_s, source.end_s)
        except VideoError as error:
            missing[clip] = str(error).removeprefix(f"clip {clip}: ")
    lost = Counter(row["type"] for row in rows if row["clip"] in missing)
    return VideoCheck(len(clips), len(rows), missing, dict(lost))


def uid_list(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The full videos' uids, sorted, each once: one a line, this is the Ego4D downloader's --video_uid_file."""
    return sorted({row["video"] for row in rows if row["video"]})


def _key(name: str) -> str:
    return unicodedata.normalize("NFC", name)  # some file systems store accents apart from their letters


@dataclass(frozen=True, slots=True)
class Shown:
    """A clip's frames; `seconds` count from the clip's beginning, `marks` are the regions drawn on each frame."""

    images: list[Any]
    seconds: list[float]
    file: str
    warning: str | None
    marks: list[str] = field(default_factory=list)  # empty: none on any

    @property
    def names(self) -> list[str]:
        marks = self.marks or [""] * len(self.seconds)
        told = zip(self.seconds, marks, strict=True)
        return [f"{self.file} at {second:.1f} s{f' with {mark}' if mark else ''}" for second, mark in told]


@dataclass(frozen=True, slots=True)
class Videos:
    """A folder of videos, what is taken of each, and where clips end in their full videos."""

    files: Mapping[str, Path]
    policy: Policy
    ends: Mapping[str, float]

    @classmethod
    def of(cls, folder: str | Path, policy: Policy, rows: Iterable[Row]) -> Videos:
        """`rows` are all questions of the data set: where only a full video is there, a clip ends with its last one."""
        return cls(video_files(folder), policy, clip_ends(rows))

    def source(self, row: Row) -> Source:
        """The file of the row's clip. Raises VideoError."""
        return _source(self.files, row, self.ends)

    def fault(self, row: Row) -> str | None:
        """Why there is no file of the row's clip; None where there is one."""
        try:
            self.source(row)
        except VideoError as error:
            return str(error)
        return None

    def frames(self, row: Row) -> Shown:
        """The frames of the row's clip. Raises VideoError."""
        source = self.source(row)
        found = read_frames(source.path, self.policy, source.start_s, source.end_s)
        seconds = [second - source.start_s for second in found.seconds]
        return Shown(found.images, seconds, source.path.name, found.warning)
