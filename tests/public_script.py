"""The public judge script's arithmetic, written down for comparison: what `--reading script` must come out at."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from videoqa.benchmarks.easg.published import PAPER_SCALE
from videoqa.scores import Scored


@dataclass(frozen=True)
class ScriptScore:
    """A type's score as the public judge script computes it: comparable with its scores file, and with nothing else."""

    n: int
    unreadable_as_zero: int  # verdicts without a score, which the script counts as 0
    mean: float
    relative: float  # a fraction, as in the script's scores file; the paper prints it x 100


def script_scores(rows: Iterable[Scored], scale: Mapping[str, float] = PAPER_SCALE) -> dict[str, ScriptScore]:
    """The public script's arithmetic (eval/ of fpv-iplab/EASG-bench), zeros included: mean / scale per type.

    Kept to reproduce its numbers. An unreadable verdict counts as 0, so a judge that chats lowers the score of a right
    answer.
    """
    checked = sorted(rows, key=lambda row: row.id)
    by_type = {}
    for name in scale:
        if scores := [row.score for row in checked if row.type == name]:
            mean = math.fsum(score or 0 for score in scores) / len(scores)
            by_type[name] = ScriptScore(len(scores), scores.count(None), mean, mean / scale[name])
    return by_type
