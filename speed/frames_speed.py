"""What videoqa.frames costs beside plain PyAV, on a file like an EASG clip (3 minutes, 1440x1080, H.264, 30 fps).

    python speed/frames_speed.py

Makes the file in a temporary folder (a minute). Then, in turns and in this process: 8 frames by `read_frames`, and the
same 8 by a bare loop of seek and decode with the same threads; then 128 frames (fps:1:128) by both. Memory is the peak
(Linux: VmHWM) of a process of its own that reads 8 frames of the first 20 seconds, and of the whole file. Exit code 1
where 8 frames cost more than 1.5 times the bare loop.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from videoqa.frames import Policy, read_frames

WIDTH, HEIGHT, RATE, SECONDS = 1440, 1080, 30, 180
LIMIT = 1.5

PEAK = """
import re, sys
from pathlib import Path
from videoqa.frames import Policy, read_frames
read_frames(sys.argv[1], Policy(n=8), 0.0, float(sys.argv[2]))
print(int(re.search("VmHWM:\\s+([0-9]+) kB", Path("/proc/self/status").read_text())[1]) // 1024)
"""


def make_clip(path: Path) -> None:
    """A noisy picture that drifts, so that every frame has motion to decode. x264's usual key frame distance (250)."""
    rng = np.random.default_rng(0)
    scene = np.kron(rng.integers(0, 255, (HEIGHT // 8, WIDTH // 8, 3), dtype=np.uint8), np.ones((8, 8, 1), np.uint8))
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=RATE, options={"preset": "ultrafast", "bf": "2", "crf": "28"})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        shifted = [
            av.VideoFrame.from_ndarray(np.ascontiguousarray(np.roll(scene, 6 * k, axis=1))).reformat(format="yuv420p")
            for k in range(60)
        ]
        for i in range(RATE * SECONDS):
            frame = shifted[min(i % 118, 118 - i % 118)]  # there and back
            frame.pts, frame.time_base = i, Fraction(1, RATE)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def bare(path: Path, times: list[float]) -> list[float]:
    """Seek to each time, decode to it, convert: the least that a user of PyAV would write."""
    found = []
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        assert stream.time_base is not None
        for t in times:
            container.seek(int(t / stream.time_base), stream=stream)
            for frame in container.decode(stream):
                if frame.time >= t - 0.001:
                    frame.to_image()
                    found.append(frame.time)
                    break
    return found


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def compare(path: Path, policy: Policy, rounds: int) -> float:
    """Print and return the ratio of the medians, both timed in turns."""
    times = read_frames(path, policy).seconds
    assert np.allclose(bare(path, times), times), "both must read the same frames"
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(seconds(lambda: bare(path, times)))
        ours.append(seconds(lambda: read_frames(path, policy)))
    ratio = statistics.median(ours) / statistics.median(theirs)
    print(
        f"{policy!s:12} {len(times):4} frames   read_frames {statistics.median(ours):6.2f} s   "
        f"bare seeks {statistics.median(theirs):6.2f} s   ratio {ratio:.2f}"
    )
    return ratio


def peak_mib(path: Path, end_s: float) -> int:
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run([sys.executable, "-c", PEAK, path, str(end_s)], capture_output=True, check=True, cwd=root)
    return int(done.stdout)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clip.mp4"
        made = seconds(lambda: make_clip(path))
        size = path.stat().st_size / 2**20
        print(f"clip: {SECONDS} s, {WIDTH}x{HEIGHT}, {RATE} fps, {size:.0f} MiB, made in {made:.0f} s")
        ratio = compare(path, Policy(n=8), rounds=5)
        compare(path, Policy(fps=1, cap=128), rounds=1)
        print(
            f"peak memory for 8 frames: {peak_mib(path, 20)} MiB of 20 s, {peak_mib(path, SECONDS)} MiB of {SECONDS} s"
        )
    print(f"8 frames at {ratio:.2f} times the bare seeks; the limit is {LIMIT}")
    return int(ratio > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
