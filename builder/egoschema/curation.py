"""The sheet on which people sort made questions out, and what is read from it. A line of it, shortened:

    id,...,question,right,wrong_1,...,annotator,answerable,right_is_right,wrong_is_wrong,long_certificate,no_frequency,note
    v:0:0,...,What is all of it for?,C cooks.,C cleans.,...,ann,yes,yes,maybe,yes,yes,"the third may be right too"

A question is kept where each condition has yes from everybody, dropped where one has a no, and MAYBE otherwise. Two
rounds are two sheets: the second one holds what the first one kept.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from builder.errors import BuildError

CONDITIONS = {
    "answerable": "it can be answered from the video, and needs more than a glimpse of it",
    "right_is_right": "the right answer is right",
    "wrong_is_wrong": "every wrong answer is less right",
    "long_certificate": "to be sure of the answer one has to see more than 30 s",
    "no_frequency": "it does not ask how often something happens",
}
VALUES = ("yes", "no", "maybe")
MOST_MAYBE = 0.03  # share of MAYBE of a careful round
_SHOWN = ("id", "clip", "video", "start_s", "end_s", "question", "right")


@dataclass(frozen=True, slots=True)
class Round:
    """What a round decided."""

    decisions: dict[str, str]  # id -> "kept", "dropped" or "maybe", in the order of the sheet
    same: int  # pairs of annotators with the same decision on a question
    pairs: int

    @property
    def kept(self) -> list[str]:
        return [name for name, decision in self.decisions.items() if decision == "kept"]

    def text(self) -> str:
        """The round in numbers."""
        counts = {what: list(self.decisions.values()).count(what) for what in ("kept", "dropped", "maybe")}
        n = len(self.decisions)
        lines = [f"{n:,} questions: " + ", ".join(f"{what} {of} ({of / n:.0%})" for what, of in counts.items())]
        if counts["maybe"] > MOST_MAYBE * n:
            lines.append(f"MAYBE is more than {MOST_MAYBE:.0%}: have these looked at again")
        agreed = f"{self.same} of {self.pairs} ({self.same / self.pairs:.0%})" if self.pairs else "one annotator each"
        return "\n".join([*lines, f"annotators agree: {agreed}"])


def sheet(rows: Sequence[Mapping[str, Any]]) -> str:
    """The sheet of these questions as CSV, its conditions left open. A text that begins like a formula gets a quote
    before it."""
    wrong = max(len(row["choices"]) for row in rows) - 1
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    names = [f"wrong_{number}" for number in range(1, wrong + 1)]
    writer.writerow([*_SHOWN, *names, "annotator", *CONDITIONS, "note"])
    for row in rows:
        others = [choice for index, choice in enumerate(row["choices"]) if index != row["gold"]]
        head = [row["id"], row["clip"], row["video"], row["start_s"], row["end_s"], row["question"]]
        cells = [*head, row["choices"][row["gold"]], *others, *[""] * (wrong - len(others))]
        writer.writerow([*map(_harmless, cells), "", *[""] * len(CONDITIONS), ""])
    return file.getvalue()


def _harmless(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@") else cell


def read(paths: Sequence[Path], ids: Sequence[str]) -> Round:
    """The round of these filled sheets; each question of `ids` has to be decided by somebody. Raises BuildError."""
    by_question: dict[str, dict[str, str]] = {name: {} for name in ids}
    for path in paths:
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                lines = list(csv.DictReader(file))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise BuildError(f"{path}: cannot be read: {error}") from error
        for number, line in enumerate(lines, 2):
            name, who, decision = _decided(line, f"{path}, line {number}")
            if name not in by_question:
                raise BuildError(f"{path}, line {number}: {name} is no question of this round")
            if who in by_question[name]:
                raise BuildError(f"{path}, line {number}: {who} has decided on {name} twice")
            by_question[name][who] = decision
    if undecided := [name for name, of in by_question.items() if not of]:
        raise BuildError(f"{len(undecided)} questions are not decided, the first is {undecided[0]}")
    pairs = [pair for of in by_question.values() for pair in combinations(of.values(), 2)]
    return Round({name: _together(of) for name, of in by_question.items()}, sum(a == b for a, b in pairs), len(pairs))


def _decided(line: Mapping[str | None, Any], where: str) -> tuple[str, str, str]:
    """Question, annotator and decision of a line."""
    if missing := [name for name in ("id", "annotator", *CONDITIONS) if line.get(name) is None]:
        raise BuildError(f"{where}: {missing[0]} is missing")
    values = {name: line[name].strip().casefold() for name in CONDITIONS}
    for name, value in values.items():
        if value not in VALUES:
            raise BuildError(f"{where}: {name} is {line[name]!r}; allowed are {', '.join(VALUES)}")
    said = set(values.values())
    decision = "dropped" if "no" in said else "maybe" if "maybe" in said else "kept"
    return line["id"].lstrip("'"), line["annotator"].strip() or "somebody", decision


def _together(of: Mapping[str, str]) -> str:
    said = set(of.values())
    return "dropped" if "dropped" in said else "maybe" if "maybe" in said else "kept"
