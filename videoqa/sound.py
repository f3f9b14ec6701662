"""Video or sound file -> its sound as numbers, for models that hear.

    sound = read_sound("4901cdd8.mp4")     # None: the file has no sound track
    sound.samples                          # float32, one channel, 16,000 a second, -1 to 1
    len(sound.samples) / RATE              # seconds

Second 0 is the first picture, as for frames (videofile.py); of a file without pictures it is the first sound. Where
the track begins later, or a packet is damaged, there is silence, so that a sample's place is its time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from videoqa.errors import UserError
from videoqa.extras import advice
from videoqa.videofile import LIMIT_S, VideoError

if TYPE_CHECKING:
    import numpy as np

RATE = 16_000  # samples a second: what speech and sound models are trained on
SLACK_S = 0.1  # a sound may be so far from its timestamp: decoders begin with a few milliseconds that are cut
LONGEST_S = 2 * 3600.0  # of a sound track; it is held in memory, 64 kB a second


@dataclass(frozen=True, slots=True)
class Sound:
    """One channel at RATE, and what was wrong with the file."""

    samples: np.ndarray
    warning: str | None = None


def read_sound(
    path: str | Path, start_s: float = 0.0, end_s: float | None = None, *, limit_s: float = LIMIT_S
) -> Sound | None:
    """The sound of `path` between `start_s` and `end_s` (seconds of the file; None: to its end), all channels mixed.

    None where the file has no sound track. Raises VideoError for a file that cannot be read, or whose track does not
    decode at all, or not within `limit_s` seconds.
    """
    try:
        import av
    except ImportError as error:
        raise UserError(advice(error) or str(error)) from error
    path = Path(path)
    if not path.is_file():
        raise VideoError(f"{path}: {'not a file' if path.exists() else 'no such file'}")
    try:
        # file: keeps FFmpeg from reading a protocol out of a name with a colon
        with av.open(f"file:{path}", mode="r", metadata_errors="replace", timeout=limit_s) as container:
            tracks = [s for s in container.streams.audio if s.time_base and s.codec_context is not None]
            if not tracks:
                return None
            return _decoded(container, max(tracks, key=_weight), path, start_s, end_s, time.monotonic() + limit_s)
    except av.FFmpegError as error:
        raise VideoError(f"{path}: its sound cannot be read: {error.strerror}") from error


def _weight(stream: Any) -> tuple[bool, int]:
    """The default track first, then the one with the most channels, then the first."""
    return bool(stream.disposition & type(stream.disposition).default), stream.codec_context.channels or 0


def _decoded(
    container: Any, stream: Any, path: Path, start_s: float, end_s: float | None, deadline: float
) -> Sound | None:
    import numpy as np

    pictures = next((s for s in container.streams.video if s.time_base and s.start_time is not None), None)
    clock = stream if pictures is None else pictures
    origin = (clock.start_time or 0) * float(clock.time_base)
    until = LONGEST_S if end_s is None else end_s
    chunks: list[np.ndarray] = []
    at = round(start_s * RATE)  # where the next sample belongs
    damaged: list[int] = []
    for seconds, samples in _chunks(container, stream, damaged, path, deadline):
        begins = round((seconds - origin) * RATE)
        if begins >= until * RATE:
            break
        samples = samples[max(0, at - begins) :] if begins < at - SLACK_S * RATE else samples
        if begins > at + SLACK_S * RATE:
            chunks.append(np.zeros(begins - at, np.float32))
            at = begins
        chunks.append(samples)
        at += len(samples)
    whole = np.concatenate(chunks) if chunks else np.zeros(0, np.float32)
    if not len(whole) and damaged:
        raise VideoError(f"{path}: its sound track does not decode ({len(damaged)} damaged packets)")
    if end_s is None and at > LONGEST_S * RATE:
        raise VideoError(f"{path}: its sound track is said to be longer than {LONGEST_S / 3600:g} hours")
    if end_s is not None:
        whole = whole[: max(0, round((end_s - start_s) * RATE))]
    return Sound(np.clip(whole, -1.0, 1.0), f"damaged packets of sound: {len(damaged)}" if damaged else None)


def _chunks(
    container: Any, stream: Any, damaged: list[int], path: Path, deadline: float
) -> Iterator[tuple[float, np.ndarray]]:
    """Pieces of one channel at RATE, each with the second of the container's clock at which it begins. `damaged` gets
    the numbers of the packets that cannot be decoded."""
    import av
    import numpy as np

    made: tuple[Any, ...] = ()
    resampler: Any = None
    expected = 0.0
    packets = container.demux(stream)
    number = -1
    while True:
        number += 1
        if time.monotonic() > deadline:
            raise VideoError(f"{path}: its sound was not read within the time limit")
        try:
            packet = next(packets)
            frames = packet.decode()
        except StopIteration:
            break
        except (av.FFmpegError, IndexError):  # IndexError: PyAV, where damage invents a stream
            damaged.append(number)
            if len(damaged) > 10_000:
                break
            continue
        for frame in frames:
            kind = (frame.format.name, frame.layout.name, frame.sample_rate)
            if kind != made:
                resampler, made = av.AudioResampler(format="flt", layout="mono", rate=RATE), kind
            seconds = expected if frame.pts is None else float(frame.pts * (frame.time_base or stream.time_base))
            expected = seconds + frame.samples / frame.sample_rate
            pieces = [piece.to_ndarray().ravel() for piece in resampler.resample(frame)]
            if pieces and math.isfinite(seconds):
                yield seconds, np.nan_to_num(np.concatenate(pieces))
