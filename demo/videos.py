"""The demo's videos: every clip's boxes moving as its graphs say, each with its name, nothing else.

    python demo/videos.py --out build/demo-videos        # demo-tea.mp4, demo-dishes.mp4, ...

Time 0 of a video is the clip's start_frame, as in a clip cut out of an Ego4D video: second 2.0 of demo-tea.mp4 shows
frame 3660 of the full video, where the first graph begins ("pre": 3660, start_frame 3600). Between the pre, pnr and
post frames of a graph a thing moves in a straight line; between two graphs it rests where the last one left it. Hands
are there only while they act. The same source gives the same frames.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import av
from PIL import Image, ImageDraw, ImageFont

FPS = 5
SOURCE_FPS = 30  # of the full video, which frame numbers count in
HEIGHT = 240
TAIL = SOURCE_FPS  # frames that a video goes on after the last graph
BACKGROUND, INK, SKIN = "#f2efe9", "#1d1d1f", "#d9844a"
COLOURS = ("#9db4c0", "#c9a227", "#7a9e7e", "#b5838d", "#6d8ea0", "#d08c60", "#8e7dbe", "#a3a380", "#bc6c6c", "#5f9ea0")

Box = tuple[float, float, float, float]  # left, top, width, height
Track = list[tuple[int, int, Box, Box]]  # from frame, to frame, box there, box there; sorted by time


def tracks(graphs: list[dict[str, Any]]) -> dict[str, Track]:
    """Thing -> how it moves, one entry for each stretch pre..pnr and pnr..post; frames of the full video."""
    by_thing: dict[str, Track] = defaultdict(list)
    for graph in graphs:
        for begin, end in (("pre", "pnr"), ("pnr", "post")):
            first, last = graph["groundings"][begin], graph["groundings"][end]
            for name in first.keys() & last.keys():
                by_thing[name].append((graph[begin], graph[end], _edges(first[name]), _edges(last[name])))
    return {name: sorted(by_thing[name]) for name in sorted(by_thing)}


def _edges(box: dict[str, float]) -> Box:
    return box["left"], box["top"], box["width"], box["height"]


def place(name: str, track: Track, frame: float) -> Box | None:
    """Where a thing is at a frame; None: a hand that does nothing."""
    for begin, end, first, last in track:
        if begin <= frame <= end:
            way = (frame - begin) / max(end - begin, 1)
            left, top, width, height = (a + way * (b - a) for a, b in zip(first, last, strict=True))
            return left, top, width, height
    if "hand" in name:
        return None
    before = [last for _, end, _, last in track if end < frame]
    return before[-1] if before else track[0][2]


def _width(clip: dict[str, Any]) -> int:
    return round(clip["W"] * HEIGHT / clip["H"] / 2) * 2  # H.264 wants an even number


@cache
def _label(name: str) -> Image.Image:
    """The name as a mask to paste; drawing text anew for every frame would take most of the time."""
    font = ImageFont.load_default(size=11)
    text = name.replace("_", " ")
    _, _, right, bottom = font.getbbox(text)
    mask = Image.new("L", (int(right) + 1, int(bottom) + 1))
    ImageDraw.Draw(mask).text((0, 0), text, fill=255, font=font)
    return mask


def draw(clip: dict[str, Any], moving: dict[str, Track], frame: float) -> Image.Image:
    """One picture: big things behind, small ones and hands in front."""
    scale = HEIGHT / clip["H"]
    picture = Image.new("RGB", (_width(clip), HEIGHT), BACKGROUND)
    pen = ImageDraw.Draw(picture)
    visible = [(name, box) for name, track in moving.items() if (box := place(name, track, frame))]
    colours = dict(zip(moving, (COLOURS[i % len(COLOURS)] for i in range(len(moving))), strict=True))
    for name, box in sorted(visible, key=lambda item: ("hand" in item[0], -item[1][2] * item[1][3], item[0])):
        left, top, width, height = (edge * scale for edge in box)
        # a hand is a ring, so that what it holds stays visible
        look = {"outline": SKIN, "width": 4} if "hand" in name else {"fill": colours[name], "outline": INK}
        pen.rounded_rectangle((left, top, left + width, top + height), radius=3, **look)
    for name, box in visible:
        label = _label(name)
        left = min(round(box[0] * scale) + 4, picture.width - label.width)
        picture.paste(INK, (left, round(box[1] * scale) + 2), label)
    return picture


def render(clip: dict[str, Any], start_frame: int, path: Path) -> None:
    """Write one clip as H.264; it ends a second after its last graph."""
    moving = tracks(clip["graphs"])
    seconds = (max(graph["post"] for graph in clip["graphs"]) + TAIL - start_frame) / SOURCE_FPS
    beside = path.with_suffix(".new.mp4")
    with av.open(str(beside), "w") as container:
        # a fixed quantizer: with crf, x264 (mbtree) reads memory that it never wrote, and two renders can differ
        stream = container.add_stream("libx264", rate=FPS, options={"qp": "33", "preset": "veryfast", "threads": "1"})
        stream.pix_fmt, stream.gop_size, stream.time_base = "yuv420p", 4 * FPS, Fraction(1, FPS)
        stream.width, stream.height = _width(clip), HEIGHT
        for i in range(round(seconds * FPS)):
            frame = av.VideoFrame.from_image(draw(clip, moving, start_frame + i * SOURCE_FPS / FPS))
            frame.pts, frame.time_base = i, Fraction(1, FPS)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    beside.replace(path)


def main(source: Path, out: Path) -> None:
    """Render every clip of a folder of annotations to `<clip>.mp4`."""
    clips = json.loads((source / "EASG_unict_master_final.json").read_text(encoding="utf-8"))
    spans = json.loads((source / "clip_spans.json").read_text(encoding="utf-8"))
    out.mkdir(parents=True, exist_ok=True)
    for uid, clip in clips.items():
        render(clip, spans[uid]["start_frame"], out / f"{uid}.mp4")
    print(f"{len(clips)} videos in {out}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Render the demo's videos.")
    parser.add_argument("--source", type=Path, default=Path(__file__).resolve().parent / "data")
    parser.add_argument("--out", type=Path, required=True, help="folder for the .mp4 files")
    arguments = parser.parse_args()
    main(arguments.source, arguments.out)
