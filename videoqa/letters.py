"""The scorer of multiple choice: the option that a reply chooses is the right one, or it is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from videoqa.reading.choices import READER, is_right, read_choice
from videoqa.reply import Verdict
from videoqa.scorer import Item


@dataclass(frozen=True, slots=True)
class Letters:
    """Compares the option that a reply chooses with the right one: 1 or 0. A reply that cannot be read is a 0 of status
    "unreadable", with the reason as its explanation; where the right answer is withheld there is no score."""

    needs_truth: bool = False

    @property
    def key(self) -> str:
        """Names the reader: verdicts of two readers are never mixed."""
        return f"letters {READER}"

    def describe(self) -> dict[str, Any]:
        """What a result says of it."""
        return {"key": self.key, "values": [0.0, 1.0]}  # wrong and right

    def rate(self, items: Sequence[Item]) -> Iterator[tuple[int, Verdict]]:
        """The verdict on each item with its index."""
        for index, item in enumerate(items):
            yield index, _compared(item)


def _compared(item: Item) -> Verdict:
    choice = read_choice(item.prediction, item.choices)
    if choice.index is None:
        why = choice.how or choice.status
        return Verdict(None if item.gold is None else 0.0, "unreadable", why, item.prediction or "")
    original = item.order[choice.index] if item.order else choice.index
    score = None if item.gold is None else float(is_right(choice, item.gold, item.choices))
    return Verdict(score, "ok", choice.how, item.prediction or "", choice=original)
