"""A video file that is open, and its decoder: what is shown at a second, when frames begin, what is damaged.

with VideoFile(Path("4901cdd8.mp4"), LIMIT_S) as video:
    began, frame = video.at(12.5)
    picture(frame, video.pixel_aspect, rotate=True).save("12.5.png")
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from videoqa.errors import UserError
from videoqa.extras import advice

if TYPE_CHECKING:
    from av import Packet, VideoFrame, VideoStream
    from av.container import InputContainer
    from PIL.Image import Image

LIMIT_S = 120.0  # what one file may take, however broken it is
TOLERANCE_S = 0.001  # containers round timestamps, Matroska to whole milliseconds
SQUARE = Fraction(1)
MOST_STRETCH = 10  # a pixel that is said to be more than so many times as wide as high, or as high as wide, is damage


class VideoError(UserError):
    """A video that cannot be used; the message begins with its path (or the clip that has no file)."""


class VideoFile:
    """An open file and its decoder, which stands somewhere in it: `shown` is a frame, `next` the one after it.

    Seconds count from the first picture of the file, whatever its container's clock says there.
    """

    def __init__(self, path: Path, limit_s: float) -> None:
        try:
            import av
        except ImportError as error:
            raise UserError(advice(error) or str(error)) from error
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
        stream = self._main_stream(container)
        if stream is None:
            tracks = len(container.streams.audio)
            container.close()
            raise VideoError(f"{self.path}: no pictures in it, {tracks} audio track{'s' * (tracks != 1)}")
        stream.thread_type = "AUTO"
        self.container, self.stream = container, stream

    def _main_stream(self, container: InputContainer) -> VideoStream | None:
        """The pictures that the file is about: of several streams the one with the most pixels in all its time, of two
        equal ones the file's default. Cover pictures are none."""
        kinds = self.av.stream.Disposition
        still = kinds.attached_pic | kinds.still_image | kinds.timed_thumbnails

        def size(stream: VideoStream) -> tuple[float, bool]:
            pixels = stream.codec_context.width * stream.codec_context.height
            of_container = (container.duration or self.av.time_base) / self.av.time_base
            seconds = of_container if stream.duration is None else float(stream.duration * (stream.time_base or 0))
            return pixels * seconds, bool(stream.disposition & kinds.default)

        # damage may name a codec that there is not: then there is no context to decode with
        readable = [s for s in container.streams.video if s.time_base and s.codec_context is not None]
        moving = [s for s in readable if not s.disposition & still]
        return max(moving, key=size, default=None)

    @property
    def pixel_aspect(self) -> Fraction:
        """Width of a stored pixel / its height, as the file says; square where it says nothing that can be."""
        aspect = self.stream.sample_aspect_ratio
        return aspect if aspect and 1 / MOST_STRETCH <= aspect <= MOST_STRETCH else SQUARE

    def __enter__(self) -> VideoFile:
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


def picture(frame: VideoFrame, pixel_aspect: Fraction, rotate: bool) -> Image:
    """The frame as an RGB picture of square pixels, none lost: the side that is too short is stretched. With `rotate`
    it is turned and mirrored as its display matrix says."""
    from PIL.Image import Transpose

    image = frame.to_image()
    if pixel_aspect > 1:
        image = image.resize((round(image.width * pixel_aspect), image.height))
    elif pixel_aspect < 1:
        image = image.resize((image.width, round(image.height / pixel_aspect)))
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
