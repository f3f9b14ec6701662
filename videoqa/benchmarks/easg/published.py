"""The figures that the paper prints, and the calibration of its judge."""

from __future__ import annotations

from videoqa.benchmark import Published
from videoqa.scores import Calibration

TYPES = ("purpose", "direct", "indirect", "before", "after")
# Mean score that the paper's judge gave the ground truth: sum of the scores / questions of the type.
# Source: fpv-iplab/EASG-bench@18e0893, eval/ (there as decimals; the sums are whole because the scores are).
PAPER_SCALE = {
    "purpose": 4689 / 668,
    "direct": 2243 / 284,
    "indirect": 2432 / 315,
    "before": 1515 / 272,
    "after": 1662 / 268,
}
JUDGE = "paper's judge"
PAPER_KEY = "paper: Llama-3-8B, rubric, sampling and scale of fpv-iplab/EASG-bench@18e0893"


# The paper's judge: for scores that this very judge gave, and for no others.
PAPER_CALIBRATION = Calibration(PAPER_KEY, PAPER_SCALE)


def _row(model: str, kind: str, *scores: float) -> Published:
    return Published(model, kind, dict(zip(PAPER_SCALE, scores[:-1], strict=True)), scores[-1], judge=JUDGE)


# Source: EASG-Bench paper, Table 2.
PAPER_TABLE2 = (
    _row("Gemma-2-9B", "language-only", 57.98, 37.34, 50.13, 94.08, 60.48, 60.00),
    _row("Llama-3.1-8B-Instruct", "language-only", 64.67, 39.11, 45.60, 92.46, 67.74, 61.92),
    _row("Qwen3-8B", "language-only", 69.37, 55.06, 56.22, 98.92, 70.81, 70.08),
    _row("TimeChat-7B", "video", 47.44, 58.23, 55.31, 61.22, 49.52, 54.34),
    _row("LITA-13B", "video", 50.14, 40.51, 43.26, 53.68, 40.32, 45.58),
    _row("Sa2VA-8B", "video", 55.98, 57.09, 65.16, 67.50, 53.55, 59.86),
    _row("Qwen2.5-VL-7B", "video", 75.78, 70.38, 72.02, 82.76, 65.97, 73.38),
)
# Source: EASG-Bench paper, Table 3; its average is over the two types that look back and ahead.
PAPER_TABLE3 = (
    Published("Qwen2.5-VL-7B", "video", {"before": 82.76, "after": 65.97}, 74.37, JUDGE, way="regular"),
    Published("Qwen2.5-VL-7B", "video", {"before": 88.33, "after": 69.03}, 78.68, JUDGE, way="two-stage"),
)
