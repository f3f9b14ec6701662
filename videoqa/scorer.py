"""What turns an answer into a verdict: a judge (judge.py), or the comparison of a letter with the right one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from videoqa.reply import Verdict


@dataclass(frozen=True, slots=True)
class Item:
    """One answer to be rated. `context` may be empty; `prediction` None or blank means that there is no answer."""

    question: str
    answer: str | None
    prediction: str | None
    context: str = ""
    choices: tuple[str, ...] = ()  # multiple choice only
    gold: int | None = None
    order: tuple[int, ...] = ()  # of rearranged options: the original index of each; empty: as they were


class Scorer(Protocol):
    """What turns an answer into a verdict: a judge, or the comparison of a letter with the right one."""

    @property
    def key(self) -> str:
        """Names everything that moves a score: verdicts of two keys are never mixed."""
        ...

    @property
    def needs_truth(self) -> bool:
        """Whether the ground truth is rated as well, so that its own score is known."""
        ...

    def rate(self, items: Sequence[Item]) -> Iterator[tuple[int, Verdict]]:
        """The verdict on each item with its index, as they are known."""
        ...

    def describe(self) -> dict[str, Any]:
        """What a result says of it: at least `key`."""
        ...
