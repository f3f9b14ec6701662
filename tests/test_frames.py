"""videoqa/frames.py and videofile.py, on tiny videos made here: the shade of grey of a frame tells which one it is."""

from __future__ import annotations

import io
import itertools
import os
import random
import struct
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from videoqa.frames import DEFAULT, Frames, Policy, VideoError, read_frames
from videoqa.videos import Source, check_videos, clip_ends, find_video, uid_list, video_files

av = pytest.importorskip("av", reason="the extra 'video' is not installed")
from PIL import Image  # noqa: E402

UNEVEN = [0.0, 0.1, 0.2, 0.3, 5.0, 5.1, 5.2, 5.3, 7.0, 10.0]
CLOCKWISE = (0, 1, -1, 0)


def shade(i: int) -> int:
    return 20 + 23 * (i % 10)


def grey(i: int) -> Image.Image:
    return Image.new("RGB", (64, 48), (shade(i),) * 3)


def make_video(
    path: Path,
    seconds: Iterable[float],
    picture: Any = grey,
    *,
    codec: str = "libx264",
    gop: int = 12,
    faststart: bool = False,
    start_s: float = 0.0,
    tb: int = 1000,
    pixel: Fraction | None = None,
) -> Path:
    """A video whose frame i begins at seconds[i] and shows picture(i)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(f"file:{path}", "w", options={"movflags": "+faststart"} if faststart else {}) as container:
        stream = container.add_stream(codec, rate=25)
        stream.width, stream.height = picture(0).size
        stream.pix_fmt = "yuv420p"
        stream.gop_size = gop
        if pixel is not None:
            stream.codec_context.sample_aspect_ratio = pixel
        stream.codec_context.thread_count = 1  # the same bytes each time
        stream.codec_context.time_base = Fraction(1, tb)
        for i, at in enumerate(seconds):
            frame = av.VideoFrame.from_image(picture(i))
            frame.pts = round((start_s + at) * tb)
            frame.time_base = Fraction(1, tb)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def even(n: int, rate: float = 25) -> list[float]:
    return [i / rate for i in range(n)]


def shades(frames: Frames) -> list[int]:
    """Which frame (modulo 10) each picture is."""
    return [round((int(np.asarray(image)[24, 32, 0]) - 20) / 23) for image in frames.images]


def set_matrix(path: Path, a: int, b: int, c: int, d: int) -> Path:
    """Write a display matrix into the track header of an mp4 (ISO 14496-12, 8.3.2: 40 bytes behind its name)."""
    data = path.read_bytes()
    at = data.index(b"tkhd") + 4 + 40
    matrix = struct.pack(">9i", a << 16, b << 16, 0, c << 16, d << 16, 0, 0, 0, 1 << 30)
    path.write_bytes(data[:at] + matrix + data[at + len(matrix) :])
    return path


def audio_only(path: Path) -> Path:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=16000)
        stream.layout = "mono"
        frame = av.AudioFrame(format="fltp", layout="mono", samples=1024)
        frame.planes[0].update(bytes(4096))
        frame.rate, frame.pts = 16000, 0
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


# -- which frames ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".mov"])
def test_frames_at_given_seconds_of_an_uneven_file_are_those_shown_then(tmp_path: Path, suffix: str) -> None:
    path = make_video(tmp_path / f"v{suffix}", UNEVEN)
    frames = read_frames(path, Policy(seconds=(0, 5, 10)))
    assert frames.seconds == pytest.approx([0, 5, 10], abs=0.001)
    assert shades(frames) == [0, 4, 9]
    assert frames.warning is None


def test_a_frame_is_shown_until_the_next_one_begins(tmp_path: Path) -> None:
    path = make_video(tmp_path / "v.mp4", UNEVEN)
    assert shades(read_frames(path, Policy(seconds=(0.05, 4.9, 6.99, 9.9)))) == [0, 3, 7, 8]


def test_uniform_goes_by_time_from_the_first_to_the_last_frame(tmp_path: Path) -> None:
    path = make_video(tmp_path / "v.mp4", UNEVEN)
    assert read_frames(path, Policy(n=3)).seconds == pytest.approx([0, 5, 10])
    assert read_frames(path, Policy(n=1)).seconds == pytest.approx([5])


def test_a_short_clip_gives_each_frame_once_in_order(tmp_path: Path) -> None:  # V01
    path = make_video(tmp_path / "v.mp4", even(9))
    frames = read_frames(path, Policy(n=16))
    assert shades(frames) == list(range(9))
    assert frames.warning == "16 frames asked for, 9 different ones found"


def test_a_short_clip_with_pad_gives_as_many_as_asked(tmp_path: Path) -> None:  # V01
    frames = read_frames(make_video(tmp_path / "v.mp4", even(9)), Policy(n=16, pad=True))
    assert len(frames.images) == len(frames.seconds) == 16
    assert shades(frames) == sorted(shades(frames))
    assert set(shades(frames)) == set(range(9))


def test_asking_for_all_frames_of_an_uneven_file_misses_none(tmp_path: Path) -> None:
    frames = read_frames(make_video(tmp_path / "v.mp4", UNEVEN), Policy(n=10))
    assert frames.seconds == pytest.approx(UNEVEN)
    assert frames.warning is None


def test_a_long_clip_is_sampled_to_its_end(tmp_path: Path) -> None:  # V05
    path = make_video(tmp_path / "v.mp4", even(960, rate=4), gop=40)
    frames = read_frames(path, Policy(fps=1, cap=128))
    assert len(frames.images) == 128
    assert frames.seconds[0] == 0
    assert frames.seconds[-1] >= 238
    steps = [b - a for a, b in zip(frames.seconds, frames.seconds[1:], strict=False)]
    assert max(steps) - min(steps) <= 0.251  # one frame


def test_fps_below_its_cap_takes_a_frame_each_step(tmp_path: Path) -> None:
    path = make_video(tmp_path / "v.mp4", even(100))
    assert read_frames(path, Policy(fps=2, cap=50)).seconds == pytest.approx([0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5], abs=0.03)


def test_half_a_frame_a_second_of_a_short_clip_is_one_frame(tmp_path: Path) -> None:  # V07
    assert len(read_frames(make_video(tmp_path / "v.mp4", even(37)), Policy(fps=0.5)).images) == 1


def test_a_part_of_a_file_gives_frames_of_that_part_only(tmp_path: Path) -> None:
    path = make_video(tmp_path / "v.mp4", even(250))
    assert read_frames(path, Policy(n=3), 4.0, 6.0).seconds == pytest.approx([4, 5, 6])
    assert read_frames(path, Policy(seconds=(1, 3)), 4.0).seconds == pytest.approx([5, 7])
    beyond = read_frames(path, Policy(seconds=(1, 3)), 4.0, 6.0)
    assert beyond.seconds == pytest.approx([5])
    assert beyond.warning == "nothing is shown at 7 s, which is behind the end"


def test_seconds_behind_the_end_are_left_out_with_a_warning(tmp_path: Path) -> None:
    frames = read_frames(make_video(tmp_path / "v.mp4", even(50)), Policy(seconds=(1, 1.99, 2.5)))
    assert frames.seconds == pytest.approx([1, 1.96])
    assert frames.warning == "nothing is shown at 2.5 s, which is behind the end"


def test_a_part_behind_the_end_is_an_error(tmp_path: Path) -> None:
    path = make_video(tmp_path / "v.mp4", even(50))
    for policy in (Policy(n=4), Policy(fps=1), Policy(seconds=(0,))):
        with pytest.raises(VideoError, match=r"v\.mp4: .*(30|end)"):
            read_frames(path, policy, 30.0, 40.0)


def test_seconds_count_from_the_first_frame_whatever_the_clock_of_the_container(tmp_path: Path) -> None:
    path = make_video(tmp_path / "v.ts", even(50), start_s=100)
    frames = read_frames(path, Policy(n=3))
    assert frames.seconds == pytest.approx([0, 0.96, 1.96], abs=0.021)
    assert shades(frames) == [0, 4, 9]


@settings(max_examples=25, deadline=None)
@given(
    steps=st.lists(st.integers(1, 3000), min_size=0, max_size=11),
    gop=st.integers(1, 12),
    asked=st.lists(st.integers(0, 30000), min_size=1, max_size=5, unique=True).map(sorted),
)
def test_the_frame_shown_is_the_last_that_began(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], gop: int, asked: list[int]
) -> None:
    starts = [sum(steps[:i]) for i in range(len(steps) + 1)]
    path = make_video(tmp_path_factory.mktemp("v") / "v.mkv", [s / 1000 for s in starts], gop=gop)
    asked = [t for t in asked if t <= starts[-1]] or [0]
    # a frame that begins a millisecond late counts as begun: what is shown at t is told at t + 1
    expected = sorted({max(s for s in starts if s <= t + 1) for t in asked})
    assert read_frames(path, Policy(seconds=tuple(t / 1000 for t in asked))).seconds == pytest.approx(
        [s / 1000 for s in expected]
    )


def test_dense_and_sparse_reading_give_the_same_pictures(tmp_path: Path) -> None:
    path = make_video(tmp_path / "v.mp4", even(200), gop=30)
    dense = read_frames(path, Policy(fps=25))
    assert len(dense.images) == 200
    for k in (0, 29, 30, 31, 137, 199):
        alone = read_frames(path, Policy(seconds=(k / 25,)))
        assert alone.seconds == [dense.seconds[k]]
        assert alone.images[0].tobytes() == dense.images[k].tobytes()


# -- rotation ----------------------------------------------------------------------------------------------------------


def corner(_: int) -> Image.Image:
    """Black, its top left quarter white."""
    image = Image.new("RGB", (64, 48))
    image.paste((255, 255, 255), (0, 0, 32, 24))
    return image


def white_corner(image: Image.Image) -> tuple[bool, bool]:
    """(it is on the right, it is at the bottom)"""
    x, y = np.unravel_index(np.asarray(image.convert("L").reduce(8)).T.argmax(), (image.width // 8, image.height // 8))
    return bool(x >= image.width // 16), bool(y >= image.height // 16)


@pytest.mark.parametrize(
    ("matrix", "size", "where"),
    [
        ((1, 0, 0, 1), (64, 48), (False, False)),
        (CLOCKWISE, (48, 64), (True, False)),
        ((-1, 0, 0, -1), (64, 48), (True, True)),
        ((0, -1, 1, 0), (48, 64), (False, True)),
        ((-1, 0, 0, 1), (64, 48), (True, False)),
        ((1, 0, 0, -1), (64, 48), (False, True)),
        ((0, 1, 1, 0), (48, 64), (False, False)),
        ((0, -1, -1, 0), (48, 64), (True, True)),
    ],
)
def test_pictures_come_out_upright(  # V04
    tmp_path: Path, matrix: tuple[int, int, int, int], size: tuple[int, int], where: tuple[bool, bool]
) -> None:
    path = set_matrix(make_video(tmp_path / "v.mp4", even(3), corner), *matrix)
    image = read_frames(path, Policy(n=1)).images[0]
    assert (image.size, white_corner(image), image.mode) == (size, where, "RGB")


def test_with_rotation_off_pictures_stay_as_stored(tmp_path: Path) -> None:  # V04
    path = set_matrix(make_video(tmp_path / "v.mp4", even(3), corner), *CLOCKWISE)
    image = read_frames(path, Policy(n=1, rotate=False)).images[0]
    assert (image.size, white_corner(image)) == ((64, 48), (False, False))


# -- pixels and streams ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pixel", "size"),
    [
        (Fraction(4, 3), (85, 48)),  # a DVD's wide picture
        (Fraction(3, 4), (64, 64)),
        (Fraction(1), (64, 48)),
        (Fraction(1, 200), (64, 48)),  # damage: no pixel is like that
    ],
)
@pytest.mark.parametrize("suffix", [".mp4", ".mkv"])
def test_a_picture_has_the_shape_that_it_is_shown_in(
    tmp_path: Path, pixel: Fraction, size: tuple[int, int], suffix: str
) -> None:
    path = make_video(tmp_path / f"v{suffix}", even(3), corner, pixel=pixel)
    image = read_frames(path, Policy(n=1)).images[0]
    assert (image.size, white_corner(image)) == (size, (False, False))


def test_a_picture_of_oblong_pixels_is_turned_after_it_got_its_shape(tmp_path: Path) -> None:
    path = set_matrix(make_video(tmp_path / "v.mp4", even(3), corner, pixel=Fraction(2)), *CLOCKWISE)
    image = read_frames(path, Policy(n=1)).images[0]
    assert (image.size, white_corner(image)) == ((48, 128), (True, False))


def two_streams(path: Path, *streams: tuple[int, int, int, bool]) -> Path:
    """A file of several streams: width, number of frames, shade, whether it is the default."""
    with av.open(str(path), "w") as container:
        added = []
        for width, *_, default in streams:
            stream = container.add_stream("libx264", rate=25)
            stream.width, stream.height, stream.pix_fmt = width, width, "yuv420p"
            stream.disposition = av.stream.Disposition.default if default else av.stream.Disposition(0)
            added.append(stream)
        for stream, (width, frames, i, _) in zip(added, streams, strict=True):
            for at in range(frames):
                frame = av.VideoFrame.from_image(Image.new("RGB", (width, width), (shade(i),) * 3))
                frame.pts, frame.time_base = at, Fraction(1, 25)
                container.mux(stream.encode(frame))
            container.mux(stream.encode())
    return path


@pytest.mark.parametrize(
    "streams",
    [
        [(32, 20, 1, True), (64, 20, 5, False)],  # a preview before the video
        [(64, 20, 5, False), (32, 20, 1, True)],
        [(128, 1, 1, True), (64, 20, 5, False)],  # a large still
        [(64, 20, 1, False), (64, 20, 5, True)],  # of two equal ones the default
    ],
)
def test_of_several_streams_the_one_with_the_most_pixels_is_the_video(tmp_path: Path, streams: Any) -> None:
    frames = read_frames(two_streams(tmp_path / "v.mp4", *streams), Policy(n=3))
    assert [round((int(np.asarray(image)[8, 8, 0]) - 20) / 23) for image in frames.images] == [5, 5, 5]


# -- damaged files -----------------------------------------------------------------------------------------------------


def noise(i: int) -> Image.Image:
    """Grey as `grey`, with noise around, so that frames take space in the file."""
    image = Image.frombytes("RGB", (64, 48), random.Random(i).randbytes(64 * 48 * 3))
    image.paste((shade(i),) * 3, (16, 12, 48, 36))
    return image


def cut_video(path: Path, frames: int, keep: float) -> Path:
    """A file whose header, at its start, promises more than is there."""
    make_video(path, even(frames), noise, faststart=True)
    data = path.read_bytes()
    start = data.index(b"mdat")
    path.write_bytes(data[: start + int((len(data) - start) * keep)])
    return path


def test_a_header_that_promises_too_much_gives_frames_of_what_is_there(tmp_path: Path) -> None:  # V02
    path = cut_video(tmp_path / "v.mp4", 431, 300 / 431)
    began = time.monotonic()
    frames = read_frames(path, Policy(n=8))
    assert time.monotonic() - began < 60
    assert len(frames.images) == 8
    assert 10 < frames.seconds[-1] < 13
    steps = [b - a for a, b in zip(frames.seconds, frames.seconds[1:], strict=False)]
    assert max(steps) - min(steps) < 0.081
    assert frames.warning is not None
    assert "the header says 431 frames, " in frames.warning
    readable = int(frames.warning.split("431 frames, ")[1].split()[0])
    assert 280 <= readable <= 320


def test_a_file_cut_off_gives_what_lies_before_the_cut(tmp_path: Path) -> None:
    path = cut_video(tmp_path / "v.mp4", 250, 0.5)
    assert read_frames(path, Policy(seconds=(0, 1))).warning is None
    frames = read_frames(path, Policy(seconds=(1, 2, 8)))
    assert frames.seconds == pytest.approx([1, 2])
    assert frames.warning is not None
    assert "nothing is shown at 8 s" in frames.warning
    assert "the header says 250 frames" in frames.warning
    capped = read_frames(path, Policy(fps=1, cap=128))
    assert 4 <= len(capped.images) <= 6
    assert "the header says 250 frames" in str(capped.warning)


def test_garbage_in_the_middle_costs_only_frames_there(tmp_path: Path) -> None:
    path = make_video(tmp_path / "v.mp4", even(250), noise)
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + len(data) // 20] = bytes(len(data) // 20)
    path.write_bytes(bytes(data))
    frames = read_frames(path, Policy(n=8))
    assert len(frames.images) >= 6
    assert frames.seconds[-1] == pytest.approx(9.96)
    assert frames.warning is not None
    assert "damaged packets left out" in frames.warning


def test_a_file_without_its_index_names_itself(tmp_path: Path) -> None:
    path = make_video(tmp_path / "v.mp4", even(50), noise)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(VideoError, match=r"v\.mp4: not a readable video, perhaps cut off"):
        read_frames(path, DEFAULT)


@pytest.mark.parametrize("name", ["v.avi", "v.mkv", "v.ts"])
def test_a_cut_file_with_its_index_behind_is_read_to_the_cut(tmp_path: Path, name: str) -> None:
    path = make_video(tmp_path / name, even(250), noise, codec="mpeg4", tb=25)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with av.open(str(path)) as container:
        there = [frame.time for frame in container.decode(video=0)]
    frames = read_frames(path, Policy(n=4))
    assert len(frames.images) == 4
    assert frames.seconds[-1] == pytest.approx(there[-1], abs=0.041)  # the last one may be half a frame
    assert shades(frames) == [round(s * 25) % 10 for s in frames.seconds]


def test_random_bytes_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "v.mp4"
    path.write_bytes(random.Random(0).randbytes(5000))
    with pytest.raises(VideoError, match=r"v\.mp4"):
        read_frames(path, DEFAULT)


@settings(max_examples=40, deadline=None)
@given(
    changes=st.lists(st.tuples(st.integers(0, 9999), st.integers(0, 255)), min_size=1, max_size=20),
    keep=st.integers(1, 10000),
)
def test_a_file_with_changed_bytes_gives_frames_or_a_video_error(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]], keep: int
) -> None:
    path = make_video(tmp_path_factory.mktemp("v") / "v.mp4", even(30), faststart=True)
    content = bytearray(path.read_bytes())
    for place, value in changes:  # places are ten-thousandths of the file
        content[place * len(content) // 10000] = value
    path.write_bytes(bytes(content[: 1 + keep * len(content) // 10000]))
    try:
        frames = read_frames(path, Policy(n=4), limit_s=5)
    except VideoError as error:
        assert str(error).startswith(str(path))
    else:
        assert 1 <= len(frames.images) <= 4


def test_one_bad_file_does_not_end_the_rest(tmp_path: Path) -> None:  # V06
    good = make_video(tmp_path / "good.mp4", even(20))
    empty = tmp_path / "empty.mp4"
    empty.touch()
    missing = tmp_path / "missing.mp4"
    outcomes: list[int | str] = []
    for path in (good, empty, missing, good):
        try:
            outcomes.append(len(read_frames(path, DEFAULT).images))
        except VideoError as error:
            outcomes.append(str(error))
    assert outcomes == [8, f"{empty}: the file is empty (0 bytes)", f"{missing}: no such file", 8]


def test_audio_only_is_an_error(tmp_path: Path) -> None:
    path = audio_only(tmp_path / "v.mp4")
    with pytest.raises(VideoError, match=r"v\.mp4: no pictures in it, 1 audio track"):
        read_frames(path, DEFAULT)


def test_a_folder_and_a_pipe_are_errors_and_nothing_waits(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.mp4")
    for path in (tmp_path, tmp_path / "pipe.mp4"):
        with pytest.raises(VideoError, match="not a file"):
            read_frames(path, DEFAULT)


def test_the_time_limit_ends_the_reading(tmp_path: Path) -> None:
    path = make_video(tmp_path / "v.mp4", even(50))
    with pytest.raises(VideoError, match=r"v\.mp4: .*time limit of 0 s"):
        read_frames(path, DEFAULT, limit_s=0)


def test_what_was_read_by_the_time_limit_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_video(tmp_path / "v.mp4", even(500))
    clock = itertools.count()
    monkeypatch.setattr("videoqa.videofile.time.monotonic", lambda: float(next(clock)))  # a second a packet
    frames = read_frames(path, Policy(n=50), limit_s=200)
    assert 2 < len(frames.images) < 50
    assert frames.seconds == sorted(frames.seconds)
    assert "stopped at the time limit of 200 s" in str(frames.warning)


def test_damage_is_not_printed_over_the_progress_bar(tmp_path: Path) -> None:
    path = cut_video(tmp_path / "v.mp4", 100, 0.5)
    code = "import sys; from videoqa.frames import *; print(read_frames(sys.argv[1], Policy(n=4)).warning is None)"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_memory_holds_only_the_wanted_frames(tmp_path: Path) -> None:
    path = make_video(tmp_path / "v.mp4", even(300), lambda i: grey(i).resize((640, 480)), gop=50)
    read_frames(path, Policy(n=2))
    tracemalloc.start()
    read_frames(path, Policy(n=2))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 * 640 * 480 * 3


# -- the policy --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("uniform:8", Policy(n=8)),
        ("fps:1:128", Policy(fps=1, cap=128)),
        ("fps:0.5", Policy(fps=0.5)),
        ("at:1.5,3,10", Policy(seconds=(1.5, 3, 10))),
        ("uniform:16:pad", Policy(n=16, pad=True)),
        ("fps:1:64:unrotated", Policy(fps=1, cap=64, rotate=False)),
    ],
)
def test_the_command_lines_form_is_read_and_written(text: str, policy: Policy) -> None:
    assert Policy.parse(text) == policy
    assert str(policy) == text


def test_the_default_says_what_it_is() -> None:  # V07
    assert str(DEFAULT) == "uniform:8"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not one of: uniform:N, fps:RATE"),
        ("uniform", "is not one of"),
        ("uniform:eight", "'uniform:eight' is not one of"),
        ("uniform:8,fps:1", "is not one of"),
        ("uniform:8:fps:1", "is not one of"),
        ("fps:1:2:3", "is not one of"),
        ("uniform:0", "n must be at least 1, not 0"),
        ("fps:0", "fps must be above 0, not 0"),
        ("fps:-1", "fps must be above 0"),
        ("fps:nan", "fps must be above 0"),
        ("fps:1:0", "cap goes with fps and must be at least 1, not 0"),
        ("at:3,1", "ascend"),
        ("at:-1", "0 or more"),
        ("at:inf", "0 or more"),
        ("at:", "is not one of"),
        ("fps:1:pad", "pad goes with n"),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(text: str, message: str) -> None:  # V07
    with pytest.raises(ValueError, match=message):
        Policy.parse(text)


def test_both_a_count_and_a_rate_are_refused() -> None:  # V07
    with pytest.raises(ValueError, match="exactly one of n, fps and seconds, not n and fps"):
        Policy(n=8, fps=1)
    with pytest.raises(ValueError, match="not none"):
        Policy()


COUNTS = st.integers(1, 10**6)
SECONDS = st.lists(st.floats(0, 1e6), min_size=1, max_size=6, unique=True).map(lambda s: tuple(sorted(s)))
POLICIES = st.one_of(
    st.builds(Policy, n=COUNTS, pad=st.booleans(), rotate=st.booleans()),
    st.builds(Policy, fps=st.floats(1e-6, 1e4), cap=st.none() | COUNTS, rotate=st.booleans()),
    st.builds(Policy, seconds=SECONDS, rotate=st.booleans()),
)


@given(POLICIES)
def test_every_policy_reads_back_as_itself(policy: Policy) -> None:
    assert Policy.parse(str(policy)) == policy


@given(st.text(alphabet="uniformfpsat:0123456789.,- pad", max_size=20))
def test_any_text_is_a_policy_or_a_value_error(text: str) -> None:
    try:
        assert isinstance(Policy.parse(text), Policy)
    except ValueError as error:
        assert str(error).startswith("frames")


# -- files of clips ----------------------------------------------------------------------------------------------------


def row(clip: str, kind: str = "direct", **more: Any) -> dict[str, Any]:
    base = {"id": f"{clip}:{kind}", "clip": clip, "video": f"video-of-{clip}", "type": kind}
    return base | {"clip_start_s": 100.0, "start_s": 103.0, "end_s": 104.0} | more


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def test_a_clips_own_file_begins_where_the_clip_begins(tmp_path: Path) -> None:
    files = video_files(touch(tmp_path, "c1.mp4", "v1.mp4"))
    assert find_video(files, "c1", "v1", 100.0, 284.0) == Source(tmp_path / "c1.mp4", 0.0, None, 100.0)


def test_of_a_full_video_only_the_clips_part_is_taken(tmp_path: Path) -> None:
    files = video_files(touch(tmp_path, "v1.mp4"))
    assert find_video(files, "c1", "v1", 100.0, 284.0) == Source(tmp_path / "v1.mp4", 100.0, 284.0, 0.0)


def test_a_full_video_without_the_clips_place_is_an_error(tmp_path: Path) -> None:
    files = video_files(touch(tmp_path, "v1.mp4"))
    with pytest.raises(VideoError, match=r"clip c1: only the full video .*v1\.mp4 is there"):
        find_video(files, "c1", "v1", 100.0, None)
    with pytest.raises(VideoError, match=r"clip c1: 100.0 s to 90.0 s is no part of the full video .*v1\.mp4"):
        find_video(files, "c1", "v1", 100.0, 90.0)


def test_a_clip_that_is_the_whole_video_needs_no_place(tmp_path: Path) -> None:
    files = video_files(touch(tmp_path, "v1.mp4"))
    assert find_video(files, "v1", "v1") == Source(tmp_path / "v1.mp4", 0.0, None, 0.0)


def test_a_clip_without_a_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(VideoError, match="clip c1: no file is named after it or after its video v1"):
        find_video(video_files(tmp_path), "c1", "v1", 100.0, 284.0)


def test_files_are_found_with_any_usual_extension_and_one_folder_down(tmp_path: Path) -> None:
    touch(tmp_path, "a.MP4", "b.mkv", "clips/c.webm", "clips/a.mp4", "._d.mp4", "e.txt", "deep/er/f.mp4")
    assert video_files(tmp_path) == {
        "a": tmp_path / "a.MP4",
        "b": tmp_path / "b.mkv",
        "c": tmp_path / "clips" / "c.webm",
    }


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(VideoError, match=r"nowhere: no such folder"):
        video_files(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["Видео/clip 做饭 é.mp4", "with space/clip.mp4", "a: b/x:y.mp4", "100%d/%03d.mp4"])
def test_any_path_opens_and_gives_the_same_frames(tmp_path: Path, name: str) -> None:  # V08
    plain = read_frames(make_video(tmp_path / "plain.mp4", even(20)), Policy(n=4))
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_bytes((tmp_path / "plain.mp4").read_bytes())
    found = find_video(video_files(tmp_path), Path(name).stem, "")
    frames = read_frames(found.path, Policy(n=4))
    assert frames.seconds == plain.seconds
    assert [i.tobytes() for i in frames.images] == [i.tobytes() for i in plain.images]

    out = tmp_path / "кадры"
    out.mkdir()
    for i, image in enumerate(frames.images):
        image.save(out / f"кадр {i}.png")
        assert Image.open(io.BytesIO((out / f"кадр {i}.png").read_bytes())).tobytes() == image.tobytes()


def test_an_accent_stored_apart_from_its_letter_is_the_same_name(tmp_path: Path) -> None:
    files = video_files(touch(tmp_path, "cafe\u0301.mp4"))
    assert find_video(files, "caf\u00e9", "").path.name == "cafe\u0301.mp4"


def test_a_clip_ends_behind_its_last_action() -> None:
    rows = [row("a", end_s=104.0), row("a", "purpose", end_s=None), row("a", end_s=250.5), row("b", end_s=None)]
    assert clip_ends(rows) == {"a": 250.5}


def test_the_check_lists_missing_clips_and_lost_questions_by_type(tmp_path: Path) -> None:  # V09
    make_video(tmp_path / "a.mp4", even(10))
    make_video(tmp_path / "video-of-b.mp4", [i / 2 for i in range(220)])
    rows: Sequence[dict[str, Any]] = [
        row("a", "purpose"),
        row("a", "before"),
        row("b", "direct"),
        row("c", "purpose"),
        row("c", "before"),
        row("c", "before"),
    ]
    check = check_videos(tmp_path, rows)
    assert (check.clips, check.questions, check.partial) == (3, 6, True)
    assert check.missing == {"c": "no file is named after it or after its video video-of-c"}
    assert check.lost == {"purpose": 1, "before": 2}
    assert str(check).splitlines()[-1] == "partial: 3 of 6 questions lost (purpose 1, before 2)"
    whole = check_videos(tmp_path, rows[:3])
    assert not whole.partial
    assert str(whole) == "2 of 2 clips have a video that can be read"


def test_the_check_opens_the_files(tmp_path: Path) -> None:
    touch(tmp_path, "a.mp4")
    make_video(tmp_path / "video-of-b.mp4", even(10))  # ends long before the clip begins
    check = check_videos(tmp_path, [row("a"), row("b")])
    assert list(check.missing) == ["a", "b"]
    assert "a.mp4: the file is empty" in check.missing["a"]
    assert "behind the end" in check.missing["b"]


def test_the_uid_list_has_each_video_once_in_order() -> None:
    rows = [row("b", video="v2"), row("a", video="v1"), row("c", video="v2"), row("d", video="")]
    assert uid_list(rows) == ["v1", "v2"]
