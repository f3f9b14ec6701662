"""Figures of the readers' labels: how far two readers agree, and what `unambiguous` and `reviewed` each leave out.

    type        questions   same label   Cohen's kappa
    direct            284        92.6%            0.83
    ...

Raw agreement is the share of questions that both readers give the same label; kappa is (raw - chance) / (1 - chance),
where chance is how often two readers with these frequencies of labels would agree at random (Cohen 1960).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from builder.easg.readings import Readings, Review
from easg_bench import LABELS, REVIEWED, TYPES

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of two readers, over some questions."""

    n: int
    same: int
    kappa: float | None  # None: both gave one label only, the same, and chance explains all

    @property
    def raw(self) -> float:
        return self.same / self.n


def agreement(pairs: Sequence[tuple[str, str]]) -> Agreement | None:
    """The agreement of the readers of these (label, label); None without any."""
    if not pairs:
        return None
    n = len(pairs)
    same = sum(one == two for one, two in pairs)
    first, second = (Counter(pair[k] for pair in pairs) for k in (0, 1))
    chance = sum(first[label] * second[label] for label in first) / n**2
    return Agreement(n, same, None if chance == 1 else (same / n - chance) / (1 - chance))


def of_clips(readings: Readings, clips: Collection[str]) -> list[Review]:
    """The reviews of these clips' questions."""
    return [review for review in readings.reviews.values() if review.clip in clips]


def by_type(reviews: Iterable[Review]) -> dict[str, Agreement]:
    """The agreement of two readers for each type, and "all"; questions with one reader are left out."""
    pairs: dict[str, list[tuple[str, str]]] = {}
    for review in reviews:
        if len(review.labels) == 2:
            for kind in (review.type, "all"):
                pairs.setdefault(kind, []).append((review.labels[0].label, review.labels[1].label))
    return {kind: one for kind in (*TYPES, "all") if (one := agreement(pairs.get(kind, [])))}


def card_text(reviews: Sequence[Review]) -> str:
    """The card's paragraph on the readers' agreement, with a blank line before it; "" where no two readers read."""
    if not (agreements := by_type(reviews)):
        return ""
    lines = [
        "",
        "",
        "Two readers labelled the action questions, each alone. How far they agree:",
        "",
        "| type | questions | same label | Cohen's kappa |",
        "|---|---|---|---|",
    ]
    lines += [f"| {kind} | {one.n:,} | {one.raw:.1%} | {_kappa(one)} |" for kind, one in agreements.items()]
    return "\n".join(lines)


def text(rows: Sequence[Row], unambiguous: Collection[str], reviews: Sequence[Review]) -> str:
    """For a terminal: the labels of these rows by type, the configs compared, and the readers' agreement.

    `unambiguous` are the ids of the config of that name. "" where no row was read.
    """
    read = [row for row in rows if row["review"]]
    if not read:
        return ""
    kinds = [kind for kind in TYPES if any(row["type"] == kind for row in rows)]
    counts = Counter((row["review"], row["type"]) for row in read)
    values = sorted({row["review"] for row in read}, key=_rank)
    lines = [f"{'review':<28}{'all':>7}" + "".join(f"{kind:>10}" for kind in kinds)]
    for value in values:
        of_value = [counts[value, kind] for kind in kinds]
        lines.append(f"{value:<28}{sum(of_value):>7,}" + "".join(f"{n:>10,}" for n in of_value))
    kept = [row for row in read if row["review"] in REVIEWED]
    of_kept = Counter(row["type"] for row in kept)
    lines.append(f"{'reviewed':<28}{len(kept):>7,}" + "".join(f"{of_kept[kind]:>10,}" for kind in kinds))
    lines += ["", *_compared([row for row in read if row["type"] != "purpose"], unambiguous)]
    if agreements := by_type(reviews):
        lines += ["", f"{'agreement':<12}{'questions':>9}{'same label':>12}{'kappa':>7}"]
        lines += [f"{kind:<12}{one.n:>9,}{one.raw:>12.1%}{_kappa(one):>7}" for kind, one in agreements.items()]
    return "\n".join(lines)


def _compared(rows: Sequence[Row], unambiguous: Collection[str]) -> list[str]:
    """What the exact strings of `unambiguous` and the reading of `reviewed` each find in the action questions."""
    by_strings = [row for row in rows if row["id"] in unambiguous]
    missed = Counter(row["review"] for row in by_strings if row["review"] not in REVIEWED)
    too_strict = [row for row in rows if row["id"] not in unambiguous and row["review"] in REVIEWED]
    clear = sum(row["review"] in REVIEWED for row in rows)
    details = ", ".join(f"{value} {missed[value]:,}" for value in sorted(missed, key=_rank))
    by_kind = Counter(row["type"] for row in too_strict)
    of_kinds = ", ".join(f"{kind} {by_kind[kind]:,}" for kind in TYPES if by_kind[kind])
    return [
        f"action questions: {len(rows):,}; unambiguous by exact strings {len(by_strings):,}, reviewed {clear:,}, "
        f"both {len(by_strings) - missed.total():,}",
        f"unambiguous, but not reviewed: {missed.total():,}" + (f" ({details})" if details else ""),
        f"reviewed, but not unambiguous: {len(too_strict):,}" + (f" ({of_kinds})" if of_kinds else ""),
    ]


def _rank(value: str) -> tuple[bool, list[int]]:
    """Single labels before those of readers who differ, in the order of LABELS; judgments of purposes first."""
    labels = value.split("/")
    return len(labels) > 1, [LABELS.index(label) + 1 if label in LABELS else 0 for label in labels]


def _kappa(one: Agreement) -> str:
    return "-" if one.kappa is None else f"{one.kappa:.2f}"
