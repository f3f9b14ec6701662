"""The sound of a file as numbers: one channel, 16,000 a second, each sample at its time."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from videoqa.sound import RATE, read_sound
from videoqa.videofile import VideoError


def write(
    path: Path,
    samples: np.ndarray,
    rate: int = 44_100,
    begins_s: float = 0.0,
    pictures: bool = False,
    codec: str = "aac",
) -> Path:
    """A file with these samples (channels, n) as its sound."""
    with av.open(str(path), "w") as container:
        video = container.add_stream("mpeg4", rate=5) if pictures else None
        audio: Any = container.add_stream(codec, rate=rate, layout="stereo" if len(samples) == 2 else "mono")
        if video is not None:
            video.width = video.height = 32
            video.pix_fmt = "yuv420p"
            for number in range(15):
                frame = av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8), format="rgb24")
                frame.pts, frame.time_base = number, Fraction(1, 5)
                container.mux(video.encode(frame))
            container.mux(video.encode())
        for at in range(0, samples.shape[1], 1024):
            part = np.ascontiguousarray(samples[:, at : at + 1024].astype(np.float32))
            sound = av.AudioFrame.from_ndarray(part, format="fltp", layout="stereo" if len(samples) == 2 else "mono")
            sound.sample_rate, sound.pts = rate, at + round(begins_s * rate)
            sound.time_base = Fraction(1, rate)
            container.mux(audio.encode(sound))
        container.mux(audio.encode())
    return path


def tone(seconds: float, hertz: float = 440.0, rate: int = 44_100) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate))[None]


def loud(samples: np.ndarray) -> np.ndarray:
    """Which tenths of a second are not silent."""
    tenths = samples[: len(samples) // 1600 * 1600].reshape(-1, 1600)
    return np.abs(tenths).max(axis=1) > 0.1


def test_a_tone_comes_out_as_it_went_in(tmp_path: Path) -> None:
    sound = read_sound(write(tmp_path / "a.mp4", tone(2.0)))
    assert sound is not None and sound.warning is None and sound.samples.dtype == np.float32
    assert len(sound.samples) / RATE == pytest.approx(2.0, abs=0.15)
    spectrum = np.abs(np.fft.rfft(sound.samples[4_000:20_000]))
    assert np.argmax(spectrum) == pytest.approx(440, abs=2)


def test_channels_are_mixed(tmp_path: Path) -> None:
    left_only = np.concatenate([tone(1.0), np.zeros((1, 44_100))])
    sound = read_sound(write(tmp_path / "a.mp4", left_only))
    assert sound is not None and sound.samples.ndim == 1 and 0.15 < np.abs(sound.samples[2_000:]).max() < 0.45


def test_a_sound_that_begins_later_than_the_pictures_stands_at_its_time(tmp_path: Path) -> None:
    sound = read_sound(write(tmp_path / "a.mkv", tone(1.0), begins_s=1.0, pictures=True))
    assert sound is not None
    heard = loud(sound.samples)
    assert not heard[:9].any() and heard[11:19].all()


def test_a_part_of_a_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mkv", np.concatenate([tone(1.0), np.zeros((1, 44_100)), tone(1.0)], axis=1))
    sound = read_sound(path, 1.0, 2.5)
    assert sound is not None and len(sound.samples) == 1.5 * RATE
    heard = loud(sound.samples)
    assert not heard[1:9].any() and heard[11:14].all()


def test_a_video_without_sound_has_none(tmp_path: Path) -> None:
    with av.open(str(tmp_path / "a.mp4"), "w") as container:
        video = container.add_stream("mpeg4", rate=5)
        video.width = video.height = 32
        video.pix_fmt = "yuv420p"
        container.mux(video.encode(av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8), format="rgb24")))
        container.mux(video.encode())
    assert read_sound(tmp_path / "a.mp4") is None


def test_what_is_no_video_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"words" * 100)
    for path in (tmp_path / "a.mp4", tmp_path / "none.mp4"):
        with pytest.raises(VideoError, match=path.name):
            read_sound(path)


def test_a_cut_file_gives_what_decodes_or_an_error(tmp_path: Path) -> None:
    whole = write(tmp_path / "a.mkv", tone(3.0)).read_bytes()
    (tmp_path / "cut.mkv").write_bytes(whole[: len(whole) // 2])
    sound = read_sound(tmp_path / "cut.mkv")
    assert sound is not None and 0.5 < len(sound.samples) / RATE < 2.5
    damaged = bytearray(whole)
    damaged[len(whole) // 3 : len(whole) // 2] = bytes(len(whole) // 2 - len(whole) // 3)
    (tmp_path / "damaged.mkv").write_bytes(damaged)
    sound = read_sound(tmp_path / "damaged.mkv")
    assert sound is not None and len(sound.samples) <= 3.2 * RATE
