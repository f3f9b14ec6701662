"""Video file -> frames, by time and never by frame number; videofile.py opens and decodes it.

A row of the data set says `clip` 4901cdd8-..., `video` (the Ego4D video it was cut from), `clip_start_s` and the
action's seconds `start_s`..`end_s` in the full video. Its pictures may lie in `4901cdd8-....mp4`, whose own time begins
at `clip_start_s`, or in the full video's file, of which only the clip's part may be shown to a model:

    files = video_files("videos")
    source = find_video(files, row["clip"], row["video"], row["clip_start_s"], clip_ends(rows).get(row["clip"]))
    frames = read_frames(source.path, Policy.parse("uniform:8"), source.start_s, source.end_s)
    frames.images, frames.seconds      # upright RGB pictures and where in the file each begins

A frame stands for the time from its own timestamp to the next one's, so "the frame at 5 s" is right for a variable
frame rate too. Broken files give what still decodes, with a warning, or a `VideoError` that names the file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from videoqa.errors import UserError
from videoqa.videofile import LIMIT_S, TOLERANCE_S, VideoError, VideoFile, picture

if TYPE_CHECKING:
    from av import VideoFrame
    from PIL.Image import Image

GRAMMAR = "uniform:N, fps:RATE, fps:RATE:MOST or at:SECONDS,SECONDS,..., then :unrotated or (uniform only) :pad"


@dataclass(frozen=True, slots=True)
class Policy:
    """Which frames to take: exactly one of `n`, `fps` and `seconds`.

    n        so many, evenly spread in time, first and last frame included (the middle one for 1)
    fps      one every 1/fps seconds; where that gives more than `cap`, `cap` of them evenly spread
    seconds  the frames shown at these seconds after the start of the clip, ascending
    pad      repeat frames where there are fewer than `n`
    rotate   turn pictures upright as the file's display matrix says
    """

    n: int | None = None
    fps: float | None = None
    cap: int | None = None
    seconds: tuple[float, ...] | None = None
    pad: bool = False
    rotate: bool = True

    def __post_init__(self) -> None:
        given = [name for name in ("n", "fps", "seconds") if getattr(self, name) is not None]
        if len(given) != 1:
            raise UserError(f"frames: give exactly one of n, fps and seconds, not {' and '.join(given) or 'none'}")
        if self.n is not None and self.n < 1:
            raise UserError(f"frames: n must be at least 1, not {self.n}")
        if self.fps is not None and not 0 < self.fps <= 10_000:
            raise UserError(f"frames: fps must be above 0, not {self.fps}; and at most 10,000")
        if self.cap is not None and (self.fps is None or self.cap < 1):
            raise UserError(f"frames: cap goes with fps and must be at least 1, not {self.cap}")
        if self.pad and self.n is None:
            raise UserError("frames: pad goes with n, which says up to how many")
        if self.seconds is not None:
            good = all(0 <= s <= 1e6 for s in self.seconds)
            if not self.seconds or not good or list(self.seconds) != sorted(set(self.seconds)):
                raise UserError(f"frames: seconds must be 0 or more, at most 1e6, and ascend, not {list(self.seconds)}")

    @classmethod
    def parse(cls, text: str) -> Policy:
        """Read the command line's form: uniform:8, fps:1:128, at:1.5,3,10, uniform:16:pad, fps:1:unrotated."""
        kind, *rest = text.strip().split(":")
        flags = {word for word in rest if word in ("pad", "unrotated")}
        numbers = [word for word in rest if word not in flags]
        options: dict[str, Any] = {"pad": "pad" in flags, "rotate": "unrotated" not in flags}
        try:
            match kind, numbers:
                case "uniform", [n]:
                    options["n"] = int(n)
                case "fps", [fps]:
                    options["fps"] = float(fps)
                case "fps", [fps, cap]:
                    options["fps"], options["cap"] = float(fps), int(cap)
                case "at", [seconds]:
                    options["seconds"] = tuple(float(s) for s in seconds.split(","))
                case _:
                    raise ValueError
        except ValueError:
            raise UserError(f"frames {text!r} is not one of: {GRAMMAR}") from None
        return cls(**options)

    def __str__(self) -> str:
        """The form that `parse` reads."""
        if self.n is not None:
            text = f"uniform:{self.n}"
        elif self.fps is not None:
            text = f"fps:{_number(self.fps)}" + (f":{self.cap}" if self.cap is not None else "")
        else:
            text = "at:" + ",".join(map(_number, self.seconds or ()))
        return text + ":pad" * self.pad + ":unrotated" * (not self.rotate)


DEFAULT = Policy(n=8)


@dataclass(frozen=True, slots=True)
class Frames:
    """RGB pictures (upright unless the policy says otherwise) in order of time, each one's timestamp in seconds of the
    file, and what was wrong with the file."""

    images: list[Image]
    seconds: list[float]
    warning: str | None = None


def read_frames(
    path: str | Path, policy: Policy, start_s: float = 0.0, end_s: float | None = None, *, limit_s: float = LIMIT_S
) -> Frames:
    """Frames of `path` between `start_s` and `end_s` (seconds of the file; None: to its end) as `policy` says.

    Without `pad` every frame comes once, so that a short clip gives fewer than asked, with a warning. Raises VideoError
    for a file that is missing, empty, without pictures or not decodable, or that ends before `start_s`. Gives what it
    has after `limit_s` seconds. Only frames that are wanted are converted.
    """
    if start_s < 0 or (end_s is not None and end_s < start_s):
        raise UserError(f"{path}: start_s {start_s} and end_s {end_s} must be 0 or more and in order")
    with VideoFile(Path(path), limit_s) as video:
        try:
            return _sample(video, policy, start_s, end_s)
        except video.av.FFmpegError as error:
            raise VideoError(f"{path}: cannot be decoded: {video.reason(error)}") from error


def _sample(video: VideoFile, policy: Policy, start_s: float, end_s: float | None) -> Frames:
    warnings: list[str] = []
    until = math.inf if end_s is None else end_s
    last: tuple[float, VideoFrame] | None = None
    if policy.seconds is not None:
        wanted = [start_s + s for s in policy.seconds]
    else:
        # the end first: the rest is then one way through the file, and this frame is one of the wanted ones anyway
        last = video.last(until)
        first = video.at(start_s)
        if first is None or last is None:
            raise VideoError("; ".join([f"{video.path}: no frame can be decoded", *video.damage(until)]))
        begin = max(start_s, first[0])
        if video.ended_before(begin):
            raise VideoError(f"{video.path}: the clip should begin at {begin:g} s, the file ends at {last[0]:.2f} s")
        wanted = _times(video, policy, begin, max(begin, last[0]))

    images: dict[float, Image] = {}
    seconds: list[float] = []
    beyond: list[float] = []
    for t in wanted:
        shown = last if last is not None and t + TOLERANCE_S >= last[0] else video.at(t)
        if shown is None or video.late:
            break
        if t > until + TOLERANCE_S or video.ended_before(t):
            beyond.append(t)
            continue
        began = max(shown[0], seconds[-1]) if seconds else shown[0]  # seeks in a damaged file may end anywhere
        if began not in images:
            images[began] = picture(shown[1], video.pixel_aspect, policy.rotate)
        elif not policy.pad:
            continue
        seconds.append(began)

    if beyond:
        warnings.append(f"nothing is shown at {', '.join(map(_number, beyond))} s, which is behind the end")
    elif policy.n is not None and len(images) < policy.n:
        warnings.append(f"{policy.n} frames asked for, {len(images)} different ones found")
    warnings += video.damage(until if policy.seconds is None else min(until, wanted[-1]))
    if not images:
        raise VideoError("; ".join([f"{video.path}: no frame", *warnings]))
    return Frames([images[s] for s in seconds], seconds, "; ".join(warnings) or None)


def _times(video: VideoFile, policy: Policy, begin: float, stop: float) -> list[float]:
    """The seconds at which `policy` (uniform or fps) looks, from `begin` to `stop`, the last frame's timestamp."""
    n = policy.n
    if n is None:
        assert policy.fps is not None
        n = int((stop - begin + TOLERANCE_S) * policy.fps) + 1
        if policy.cap is None or n <= policy.cap:
            return [begin + k / policy.fps for k in range(n)]
        n = policy.cap
    elif 0 < video.header_frames <= n:
        # as many as there are, or more: even steps would miss some where the frame rate varies
        there = [begin] + [t for t in video.timestamps() if begin + TOLERANCE_S < t <= stop + TOLERANCE_S]
        return [there[round(k * (len(there) - 1) / max(n - 1, 1))] for k in range(n)] if policy.pad else there
    if n == 1:
        return [(begin + stop) / 2]
    return [begin + (stop - begin) * k / (n - 1) for k in range(n)]


def _number(value: float) -> str:
    return repr(float(value)).removesuffix(".0")
