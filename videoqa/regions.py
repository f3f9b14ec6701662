"""The boxes of a question drawn onto the frames that they were annotated in.

    source = find_video(files, row["clip"], row["video"], row["clip_start_s"], ends.get(row["clip"]))
    for frame in marked_frames(row, source): frame.image.save(f"{frame.number}.png")

A row of the config `language_neutral` names no object, so its boxes are labelled <region 1>, <region 2>, as in the
question; those of other rows are labelled with the object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from videoqa.frames import Policy, Source, VideoError, read_frames

if TYPE_CHECKING:
    from PIL.Image import Image

Row = Mapping[str, Any]  # a question: clip, evidence, and question_coordinates where it is language-neutral
COLORS = ("#e6194b", "#1a7fd4", "#d99a00", "#8a2be2", "#1a9850", "#f032a6")  # tell themselves from each other and wood


@dataclass(frozen=True, slots=True)
class Marked:
    """A frame with boxes on it; `second` is one of the source's file."""

    image: Image
    number: int  # of the frame in the full video
    second: float
    labels: tuple[str, ...]


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


def draw_boxes(image: Image, boxes: Sequence[tuple[str, Sequence[float]]]) -> Image:
    """A copy of the picture with a labelled frame around each (label, box); boxes are left, top, right, bottom in
    fractions of the picture."""
    from PIL import ImageDraw, ImageFont

    drawn = image.convert("RGB")
    drawn = drawn.copy() if drawn is image else drawn
    pen = ImageDraw.Draw(drawn)
    line = max(2, min(image.size) // 150)
    font = ImageFont.load_default(size=max(12, min(image.size) // 28))
    for number, (label, box) in enumerate(boxes):
        color = COLORS[number % len(COLORS)]
        left, top, right, bottom = (round(side * (size - 1)) for side, size in zip(box, image.size * 2, strict=True))
        pen.rectangle((left, top, right, bottom), outline=color, width=line)
        _, _, wide, high = pen.textbbox((0, 0), label, font=font)
        x = min(left, max(0, image.width - wide - 2 * line))
        y = top - high - 2 * line if top >= high + 2 * line else top  # above the box, or in it at the upper edge
        pen.rectangle((x, y, x + wide + 2 * line, y + high + 2 * line), fill=color)
        pen.text((x + line, y + line), label, fill="white", font=font)
    return drawn
