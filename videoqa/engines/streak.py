"""Rows in a row that fail alike. A run whose every row fails has to end with one line, not after days; a few bad rows
(a clip whose questions are all too long) must never end one.

    streak = Streak()
    for index, reply in ...:
        if streak.count(reply.error) >= MANY: raise UserError(streak.told)
"""

from __future__ import annotations

import re

FEW = 10  # so many rows in a row make one ask whether the engine still answers at all
MANY = 50  # no clip has so many questions: it is not the rows

# What tells the same error of two rows apart: counts and ids ("9012 tokens", "req_8fa3c01d")
OWN = re.compile(r"\b[\w-]*\d[\w-]*\b")


class Streak:
    """How many rows in a row have failed with the same error, over all calls of one engine. Whoever uses it leaves out
    what is a row's own fault (a prompt that does not fit)."""

    def __init__(self) -> None:
        self.rows = 0
        self.error = ""

    def count(self, error: str | None) -> int:
        """The rows in a row that failed as this one did; 0 for a row that went well (`error` None)."""
        same = error is not None and OWN.sub("0", error) == OWN.sub("0", self.error)
        self.rows = 0 if error is None else self.rows + 1 if same else 1
        self.error = error or ""
        return self.rows

    @property
    def told(self) -> str:
        """The streak in words, for the line that ends a run."""
        return (
            f"{self.rows} rows in a row failed alike: {self.error}. What came before is kept; the same command goes on"
        )
