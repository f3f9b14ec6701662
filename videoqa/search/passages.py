"""What a search gives, and what a search is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

MOST_CHARACTERS = 1_500  # of a passage


class SearchError(Exception):
    """This search failed, though another may not: the service was down, or sent what is no list of passages."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a text: `source` is where it is from, a file or an address."""

    title: str
    text: str
    source: str


class Search(Protocol):
    """`name` and `settings` are what makes two searches comparable; neither holds a key."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> dict[str, Any]: ...

    def passages(self, query: str, most: int) -> list[Passage]:
        """At most so many passages, the best first; none where nothing fits. Raises SearchError."""
        ...
