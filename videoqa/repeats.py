"""Several answers to each question: the rows, and what they say together.

    repeated(rows, 5)    rows with ids ID@1 ... ID@5, each answered with a seed of its own

The score over all of them is their mean, and its interval is of clips, as ever. How far chance alone moves the score of
one pass is the standard error over the passes; of multiple choice, pass@k is the share of questions that at least one
of k answers gets right.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from videoqa.errors import UserError
from videoqa.reply import Verdict
from videoqa.rows import Row

MOST = 100


def repeated(rows: Sequence[Row], count: int | None) -> list[Row]:
    """Each row `count` times, with the number of its pass as `repeat`, from 0. None: the rows."""
    if count is None:
        return list(rows)
    if not 2 <= count <= MOST:
        raise UserError(f"repeats {count}: 2 to {MOST} answers a question")
    if any("group" in row for row in rows):
        raise UserError("repeats and the circular order both ask a question several times: give one")
    return [{**row, "id": f"{row['id']}@{n + 1}", "repeat": n, "of": row["id"]} for row in rows for n in range(count)]


def passes(rows: Sequence[Row]) -> dict[int, list[Row]]:
    """The rows by the number of their pass; all of them in pass 0 where nothing is repeated."""
    found: dict[int, list[Row]] = {}
    for row in rows:
        found.setdefault(row.get("repeat", 0), []).append(row)
    return found


def pass_at(k: int, n: int, right: int) -> float:
    """The probability that of k answers, drawn from n of which `right` are right, at least one is right (the unbiased
    estimate of arXiv 2107.03374)."""
    return 1 - math.comb(n - right, k) / math.comb(n, k)


def figures(
    rows: Sequence[Row], verdicts: Mapping[str, Verdict], score: Callable[[Sequence[Row]], float | None]
) -> dict[str, dict[str, dict[str, float]]]:
    """What repeats add to a result, as extras: `repeat_mean` and `repeat_se`, the mean and the standard error over the
    passes of what `score` gives each pass (n: passes), and for multiple choice `pass@k` (n: questions)."""
    by_pass = passes(rows)
    if len(by_pass) < 2:
        return {}
    values = [score(of) for _, of in sorted(by_pass.items())]
    known = [value for value in values if value is not None]
    found: dict[str, tuple[int, float]] = {}
    if len(known) == len(values):
        found["repeat_mean"] = (len(known), math.fsum(known) / len(known))
        found["repeat_se"] = (len(known), statistics.stdev(known) / math.sqrt(len(known)))
    questions: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("choices") and row.get("gold") is not None:
            questions.setdefault(row["of"], []).append(row)
    n = len(by_pass)
    for k in sorted({1, *(2**power for power in range(1, n.bit_length()) if 2**power < n), n} if questions else ()):
        shares = [pass_at(k, len(of), sum(_right(verdicts.get(r["id"])) for r in of)) for of in questions.values()]
        found[f"pass@{k}"] = (len(shares), math.fsum(shares) / len(shares))
    return {name: {"all": {"n": float(count), "mean": mean}} for name, (count, mean) in found.items()}


def _right(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.score == 1


def said(extras: Mapping[str, Any]) -> list[str]:
    """The figures in words, for people."""
    lines = []
    if "repeat_mean" in extras:
        mean, error = (extras[name]["all"] for name in ("repeat_mean", "repeat_se"))
        lines.append(
            f"{mean['n']:.0f} answers a question: the score of a pass is {mean['mean']:.2f} on average, with a "
            f"standard error of {error['mean']:.2f} over the passes"
        )
    at = [(name, one["all"]["mean"]) for name, one in extras.items() if name.startswith("pass@")]
    if at:
        lines.append(", ".join(f"{name} {100 * mean:.1f}" for name, mean in at))
    return lines
