"""Video file -> frames, by time and never by frame number; and which file belongs to a clip.

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
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from videoqa.errors import UserError

if TYPE_CHECKING:
    from av import Packet, VideoFrame
    from PIL.Image import Image

LIMIT_S = 120.0  # what one file may take, however broken it is
TOLERANCE_S = 0.001  # containers round timestamps, Matroska to whole milliseconds
GRAMMAR = "uniform:N, fps:RATE, fps:RATE:MOST or at:SECONDS,SECONDS,..., then :unrotated or (uniform only) :pad"


class VideoError(UserError):
    """A video that cannot be used; the message begins with its path (or the clip that has no file)."""


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
    with _Video(Path(path), limit_s) as video:
        try:
            return _sample(video, policy, start_s, end_s)
        except video.av.FFmpegError as error:
            raise VideoError(f"{path}: cannot be decoded: {video.reason(error)}") from error


def _sample(video: _Video, policy: Policy, start_s: float, end_s: float | None) -> Frames:
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
            images[began] = _picture(shown[1], policy.rotate)
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


def _times(video: _Video, policy: Policy, begin: float, stop: float) -> list[float]:
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


class _Video:
    """An open file and its decoder, which stands somewhere in it: `shown` is a frame, `next` the one after it.

    Seconds count from the first picture of the file, whatever its container's clock says there.
    """

    def __init__(self, path: Path, limit_s: float) -> None:
        try:
            import av
        except ImportError as error:
            raise UserError("reading videos needs PyAV and Pillow: pip install 'easg-bench[video]'") from error
        self.av = av
        self.path = path
        self.deadline = time.monotonic() + limit_s
        self.limit_s = limit_s
        self.late = False
        self.damaged: set[int | None] = set()  # timestamps of packets that could not be read
        if not path.is_file():
            raise VideoError(f"{path}: {'not a file' if path.exists() else 'no such file'}")
        if path.stat().st_size == 0:
            raise VideoError(f"{path}: the file is empty (0 bytes)")
        self._open()
        self.tick = float(self.stream.time_base or 0)
        self.origin = (self.stream.start_time or 0) * self.tick
        self.header_frames = self.stream.frames
        self.header_end: float | None = None
        if self.stream.duration is not None:
            self.header_end = self.stream.duration * self.tick
        elif self.container.duration is not None:
            self.header_end = self.container.duration / av.time_base
        self.end: tuple[float, VideoFrame] | None = None  # the last frame of the file, once it was met
        self.key_s = self.key_gap_s = 0.0  # the last key frame and the widest step between two that was met
        self.sought = 0.0
        self.frames: Iterator[tuple[float, VideoFrame]] = iter(())
        self.shown: tuple[float, VideoFrame] | None = None
        self.next: tuple[float, VideoFrame] | None = None

    def _open(self) -> None:
        try:
            # file: keeps FFmpeg from reading a protocol out of a name with a colon
            container = self.av.open(f"file:{self.path}", mode="r", metadata_errors="replace", timeout=self.limit_s)
        except self.av.FFmpegError as error:
            raise VideoError(f"{self.path}: not a readable video, perhaps cut off: {self.reason(error)}") from error
        cover = self.av.stream.Disposition.attached_pic
        stream = next((s for s in container.streams.video if s.time_base and not s.disposition & cover), None)
        if stream is None:
            tracks = len(container.streams.audio)
            container.close()
            raise VideoError(f"{self.path}: no pictures in it, {tracks} audio track{'s' * (tracks != 1)}")
        stream.thread_type = "AUTO"
        self.container, self.stream = container, stream

    def __enter__(self) -> _Video:
        return self

    def __exit__(self, *_: object) -> None:
        self.container.close()

    def at(self, t: float) -> tuple[float, VideoFrame] | None:
        """Timestamp and frame of what is shown at `t`: the last frame that begins by then, or the first of all. None
        where nothing decodes. Decodes on from here where that is nearer than the key frame before `t`."""
        behind = self.shown is not None and self.shown[0] > t + TOLERANCE_S
        on_the_way = self.shown is not None and not behind and t < self.key_s + self.key_gap_s
        if self.shown is not None and not behind and self.next is not None and t + TOLERANCE_S < self.next[0]:
            return self.shown
        if not on_the_way:
            here = None if self.shown is None or behind else self.shown[0]
            self._seek(t)
            if here is not None and self.next is not None and self.next[0] <= here:
                self.key_gap_s = max(self.key_gap_s, t - self.next[0])  # no key frame in between: the seek went back
        self._forward(t)
        # a seek may land behind `t` (MPEG-TS looks at decoding times) or where nothing decodes any more
        back = 1.0
        while (self.shown is None or self.shown[0] > t + TOLERANCE_S) and self.sought >= 0 and not self.late:
            self._seek(t - back)
            self._forward(t)
            back *= 4
        return self.shown

    def last(self, until: float) -> tuple[float, VideoFrame] | None:
        """The last frame that begins by the second `until`."""
        end = max(self.timestamps(), default=0.0) if self.header_end is None else self.header_end
        if self.at(min(until, end)) is not None:
            self._forward(until)  # a header may count too little: mp4 sums up durations in the order of decoding
        return self.shown

    def timestamps(self) -> list[float]:
        """When the frames begin, in order, read off the packets without decoding."""
        self._stand_at(0.0)
        found = []
        for packet in self._packets():
            if packet.size and not packet.is_corrupt and not packet.is_discard:
                stamp = packet.dts if packet.pts is None else packet.pts
                found += [] if stamp is None else [stamp * self.tick - self.origin]
        self._stand_at(0.0)
        return sorted(found)

    def ended_before(self, t: float) -> bool:
        """Whether the file's last frame was met and is over at `t`."""
        return self.end is not None and t > self.end[0] + self._length(self.end[1]) + TOLERANCE_S

    def damage(self, until: float) -> list[str]:
        """What is wrong with the file up to the second `until`, as far as it was met."""
        notes = []
        claimed = min(until, self.header_end or 0.0)
        short = self.ended_before(claimed - 1.0)
        if (short or self.damaged) and not self.late:
            readable = len(self.timestamps())
            if readable < self.header_frames:
                notes.append(f"the header says {self.header_frames} frames, {readable} can be read")
            elif short and self.end is not None:
                notes.append(f"the header says {self.header_end:.1f} s, the last frame is at {self.end[0]:.1f} s")
        if self.damaged:
            notes.append(f"damaged packets left out: {len(self.damaged)}")
        if self.late:
            notes.append(self._limit_note())
        return notes

    def reason(self, error: Any) -> str:
        """FFmpeg's words for what went wrong, or ours where it was the time limit."""
        return self._limit_note() if isinstance(error, self.av.error.ExitError) else error.strerror

    def _limit_note(self) -> str:
        return f"stopped at the time limit of {self.limit_s:g} s"

    def _length(self, frame: VideoFrame) -> float:
        if frame.duration:
            return frame.duration * self.tick
        return float(1 / self.stream.average_rate) if self.stream.average_rate else 0.0

    def _seek(self, t: float) -> None:
        """Go to the key frame before `t`; it is `next`."""
        self._stand_at(t)
        self.next = next(self.frames, None)

    def _stand_at(self, t: float) -> None:
        self.sought = t
        try:
            self.container.seek(round((t + self.origin) / self.tick), stream=self.stream)
        except self.av.FFmpegError:  # no index to go by (a cut AVI): from the beginning then
            self.container.close()
            self._open()
        self.frames = self._decode()
        self.shown = self.next = None

    def _forward(self, t: float) -> None:
        """Decode on until `shown` is what is shown at `t`."""
        while self.next is not None and (self.shown is None or self.next[0] <= t + TOLERANCE_S):
            self.shown = self.next
            self.next = next(self.frames, None)
        if self.next is None and self.shown is not None and (self.end is None or self.end[0] < self.shown[0]):
            self.end = self.shown

    def _decode(self) -> Iterator[tuple[float, VideoFrame]]:
        """Frames with their timestamps from where the file stands. What is damaged is left out and remembered."""
        before_s: float | None = None
        key_s: float | None = None
        for packet in self._packets():
            try:
                frames = [] if packet.is_corrupt else packet.decode()
            except self.av.FFmpegError:
                frames = []
                self.damaged.add(packet.pts)
            if packet.is_corrupt:
                self.damaged.add(packet.pts)
            for frame in frames:
                stamp = frame.dts if frame.pts is None else frame.pts
                if stamp is None or frame.is_corrupt:
                    self.damaged.add(stamp)
                    continue
                seconds = stamp * self.tick - self.origin
                if before_s is not None and seconds <= before_s:  # only damage puts time out of order
                    self.damaged.add(stamp)
                    continue
                before_s = seconds
                if frame.key_frame:
                    if key_s is not None:
                        self.key_gap_s = max(self.key_gap_s, seconds - key_s)
                    self.key_s = key_s = seconds
                yield seconds, frame

    def _packets(self) -> Iterator[Packet]:
        """Packets from where the file stands, until the end, what cannot be read or the time limit."""
        packets = self.container.demux(self.stream)
        while True:
            if time.monotonic() > self.deadline:
                self.late = True
                return
            try:
                yield next(packets)
            except (StopIteration, self.av.FFmpegError, IndexError):  # IndexError: PyAV, where damage invents a stream
                return


def _picture(frame: VideoFrame, rotate: bool) -> Image:
    """The frame as an RGB picture, turned and mirrored as its display matrix says."""
    from PIL.Image import Transpose

    image = frame.to_image()
    side_data: Any = frame.side_data  # PyAV's type stub names one of its kinds only
    matrix = side_data.get("DISPLAYMATRIX") if rotate else None
    if matrix is None:
        return image
    # 16.16 fixed point: where the picture's x axis (a, b) and y axis (c, d, downwards) point on the screen
    a, b, _, c, d, *_ = (round(value / 65536) for value in struct.unpack("=9i", bytes(matrix)))
    turn = {
        (0, 1, -1, 0): Transpose.ROTATE_270,  # Pillow turns counter-clockwise
        (-1, 0, 0, -1): Transpose.ROTATE_180,
        (0, -1, 1, 0): Transpose.ROTATE_90,
        (-1, 0, 0, 1): Transpose.FLIP_LEFT_RIGHT,
        (1, 0, 0, -1): Transpose.FLIP_TOP_BOTTOM,
        (0, 1, 1, 0): Transpose.TRANSPOSE,
        (0, -1, -1, 0): Transpose.TRANSVERSE,
    }.get((a, b, c, d))
    return image if turn is None else image.transpose(turn)


def _number(value: float) -> str:
    return repr(float(value)).removesuffix(".0")
