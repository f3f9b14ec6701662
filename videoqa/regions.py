"""A question with its evidence: told, and its boxes drawn onto the frames that they were annotated in.

    source = find_video(files, row["clip"], row["video"], row["clip_start_s"], ends.get(row["clip"]))
    for frame in marked_frames(row, source): frame.image.save(f"{frame.number}.png")

A row of the config `language_neutral` names no object, so its boxes are labelled <region 1>, <region 2>, as in the
question; those of other rows are labelled with the object.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from videoqa.frames import Policy, VideoError, read_frames
from videoqa.rows import Row
from videoqa.videos import Shown, Source, Videos, find_video, video_files

if TYPE_CHECKING:
    from PIL.Image import Image

COLORS = ("#e6194b", "#1a7fd4", "#d99a00", "#8a2be2", "#1a9850", "#f032a6")  # tell themselves from each other and wood


@dataclass(frozen=True, slots=True)
class Marked:
    """A frame with boxes on it; `second` is one of the source's file."""

    image: Image
    number: int  # of the frame in the full video
    second: float
    labels: tuple[str, ...]


def describe(row: Row) -> str:
    """The question, its answer, where it is in the video, and its evidence, for a terminal."""
    start = row["clip_start_s"]
    question = (row.get("question_coordinates") or row["question"]).replace("\n", f"\n{'':<10}")
    lines = [
        row["id"],
        f"{'type':<10}{row['type']}",
        f"{'clip':<10}{row['clip']} of the video {row['video'] or '(not known)'}",
        f"{'question':<10}{question}",
        *([f"{'choices':<10}{' | '.join(row['choices'])}"] if row["choices"] else []),
        f"{'answer':<10}{row['answer'] if row['gold'] is None else row['choices'][row['gold']]}",
    ]
    if row["start_s"] is not None:
        moment = f"{row['start_s']:.2f} to {row['end_s']:.2f} s of the full video"
        within = "" if start is None else f", {row['start_s'] - start:.2f} to {row['end_s'] - start:.2f} s of the clip"
        lines.append(f"{'moment':<10}{moment}{within}; frame {row['frame']}")
    for label, item in zip(labels(row), row["evidence"], strict=True):
        box = " ".join(f"{side:.3f}" for side in item["box"])
        name = item["object"] if label == item["object"] else f"{label} {item['object']}"
        attribute = f" ({item['attribute']})" if item.get("attribute") else ""
        lines.append(f"{'box':<10}{name}{attribute}: {box}, frame {item['frame']}, {item['seconds']:.2f} s")
    if not row["evidence"]:
        lines.append(f"{'box':<10}none")
    return "\n".join(lines)


def labels(row: Row) -> list[str]:
    """What stands at each box of the row's evidence."""
    if row.get("question_coordinates"):
        return [f"<region {number}>" for number in range(1, len(row["evidence"]) + 1)]
    return [item["object"] for item in row["evidence"]]


def marked_frames(row: Row, source: Source) -> list[Marked]:
    """The frames of the row's evidence with its boxes, in order of time. Raises VideoError, also where it is not known
    at which second of the full video the file begins."""
    by_frame: dict[tuple[float, int], list[tuple[str, Sequence[float]]]] = {}
    for label, item in zip(labels(row), row["evidence"], strict=True):
        by_frame.setdefault((item["seconds"], item["frame"]), []).append((label, item["box"]))
    if by_frame and source.offset_s is None:
        raise VideoError(f"{source.path}: not known at which second of the full video it begins")
    marked = []
    for (seconds, number), boxes in sorted(by_frame.items()):
        second = seconds - (source.offset_s or 0.0)
        if second < 0:
            raise VideoError(f"{source.path}: begins behind frame {number} of the full video, where the boxes are")
        (image,) = read_frames(source.path, Policy(seconds=(0.0,)), start_s=second).images
        marked.append(Marked(draw_boxes(image, boxes), number, second, tuple(label for label, _ in boxes)))
    return marked


def with_regions(row: Row, shown: Shown, videos: Videos) -> Shown:
    """The clip's frames and, for a language-neutral row, among them those with its regions. Raises VideoError."""
    if not row.get("question_coordinates"):
        return shown
    source = videos.source(row)
    drawn = [(m.second - source.start_s, " and ".join(m.labels), m.image) for m in marked_frames(row, source)]
    plain = [(second, "", image) for second, image in zip(shown.seconds, shown.images, strict=True)]
    seconds, marks, images = zip(*sorted([*plain, *drawn], key=lambda frame: frame[:2]), strict=True)
    return replace(shown, images=list(images), seconds=list(seconds), marks=list(marks))


def save_frames(row: Row, videos: str | Path, out: Path, clip_end_s: float | None) -> list[Path]:
    """Write the row's marked frames into `out` as `<id>-<frame>.png`; their paths. Raises VideoError."""
    source = find_video(video_files(videos), row["clip"], row["video"], row["clip_start_s"], clip_end_s)
    name = re.sub(r"[^\w.-]+", "-", row["id"])
    paths = []
    out.mkdir(parents=True, exist_ok=True)
    for frame in marked_frames(row, source):
        path = out / f"{name}-{frame.number}.png"
        fresh = path.with_name(f".{path.name}.new")
        frame.image.save(fresh, format="PNG")
        paths.append(fresh.replace(path))
    return paths


def draw_boxes(image: Image, boxes: Sequence[tuple[str, Sequence[float]]]) -> Image:
    """A copy of the picture with a labelled frame around each (label, box); boxes are left, top, right, bottom in
    fractions of the picture. Labels stand at their boxes, beside each other where there is room."""
    from PIL import ImageDraw, ImageFont

    drawn = image.convert("RGB")
    drawn = drawn.copy() if drawn is image else drawn
    pen = ImageDraw.Draw(drawn)
    line = max(2, min(image.size) // 150)
    font = ImageFont.load_default(size=max(12, min(image.size) // 28))
    scaled = [[round(side * (size - 1)) for side, size in zip(box, image.size * 2, strict=True)] for _, box in boxes]
    for number, edges in enumerate(scaled):
        pen.rectangle(tuple(edges), outline=COLORS[number % len(COLORS)], width=line)
    taken: list[tuple[int, int, int, int]] = []
    for number, (label, _) in enumerate(boxes):
        _, _, width, height = (int(side) + 2 * line for side in pen.textbbox((0, 0), label, font=font))
        place = _place(scaled[number], width, height, image.size, taken)
        taken.append(place)
        pen.rectangle(place, fill=COLORS[number % len(COLORS)])
        pen.text((place[0] + line, place[1] + line), label, fill="white", font=font)
    return drawn


def _place(
    box: Sequence[int], width: int, height: int, size: tuple[int, int], taken: Sequence[tuple[int, int, int, int]]
) -> tuple[int, int, int, int]:
    """Where a label of this size goes: above its box, below it, or at its sides, wherever no other label is."""
    left, top, right, bottom = box
    corners = [(left, top - height), (left, bottom), (right, top), (left - width, top), (right, bottom - height)]
    corners += [(left - width, bottom - height), (right, top - height), (left - width, bottom), (left, top)]
    places = []
    for x, y in corners:
        x, y = max(0, min(x, size[0] - width)), max(0, min(y, size[1] - height))  # inside the picture
        places.append((x, y, x + width, y + height))
    free = (p for p in places if not any(p[0] < t[2] and t[0] < p[2] and p[1] < t[3] and t[1] < p[3] for t in taken))
    return next(free, places[0])
