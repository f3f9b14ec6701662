"""The figures that papers print, each with its set: `full` (5,031 questions) or `subset` (500, which are easier). The
paper knows the full set only; the answers of the subset were released after it."""

from __future__ import annotations

from videoqa.benchmark import Published
from videoqa.benchmarks.egoschema.data import TYPE

PAPER = "arXiv 2308.09126"
FIRST_VERSION = f"{PAPER}v1"
LONG_VIVIT = "arXiv 2312.07395"


def _row(model: str, kind: str, accuracy: float, config: str, source: str) -> Published:
    return Published(model, kind, {TYPE: accuracy}, accuracy, config=config, source=source)


PUBLISHED = (
    _row("people, 1 minute", "human", 67.0, "full", PAPER),
    _row("people, 3 minutes", "human", 68.0, "full", PAPER),
    _row("people, 180 frames", "human", 67.2, "full", PAPER),
    _row("people, no limit", "human", 75.0, "full", PAPER),
    _row("people, video before question", "human", 76.2, "full", PAPER),
    _row("FrozenBiLM", "video", 26.9, "full", PAPER),
    _row("VIOLET", "video", 19.9, "full", PAPER),
    _row("mPLUG-Owl", "video", 31.1, "full", FIRST_VERSION),
    _row("InternVideo", "video", 32.1, "full", FIRST_VERSION),
    _row("LongViViT", "video", 33.3, "full", LONG_VIVIT),
    _row("LongViViT", "video", 56.8, "subset", LONG_VIVIT),
)
