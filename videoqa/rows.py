"""A question, and sets of questions: their revision, an even sample, the parts for several machines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from videoqa.errors import UserError
from videoqa.files import short_hash

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")  # ORG/NAME, as a dataset on the Hub is called


class Evidence(TypedDict):
    """What grounds a question: one object in one frame."""

    graph: str  # graph_uid of the annotation (repeats within some clips)
    frame: int  # of the full video
    seconds: float  # of the full video
    object: str
    box: list[float]  # left, top, right, bottom in 0..1
    attribute: str | None  # "wooden", where a narration near the frame says so; None also where nobody asked


class Question(TypedDict):
    """One question. The same row serves all benchmarks."""

    id: str
    clip: str
    video: str
    type: str
    question: str
    answer: str | None
    choices: list[str] | None  # multiple choice only
    gold: int | None  # index into choices; None also where it is withheld
    context: str  # the clip's timestamped narrations, what the judge sees; "" where there are none
    frame: int | None  # the frame of the action; None where the question is about no single one
    start_s: float | None  # of the moment that is asked about, seconds of the full video
    end_s: float | None
    clip_start_s: float | None  # where the clip's own file starts in the full video
    evidence: list[Evidence]


Row = Mapping[str, Any]  # a Question, or a row of a log that has some of its fields


def revision(rows: Sequence[Row]) -> str:
    """Identifies a set of questions by its content, wherever it was loaded from and in whatever order. Options and the
    right one count where a question has any: with other options it is another question."""

    def content(row: Row) -> list[Any]:
        options = [row["choices"], row.get("gold")] if row.get("choices") else []
        return [row[key] for key in ("id", "type", "question", "answer", "context")] + options

    kept = sorted(map(content, rows), key=lambda row: [str(value) for value in row])
    return short_hash(json.dumps(kept, ensure_ascii=True))


def clips_revision(rows: Sequence[Row]) -> str:
    """Identifies where the clips of all rows of a data set lie in which videos: what frames are shown depends on it."""
    spans = {json.dumps([row["clip"], row["video"], row["clip_start_s"], row["end_s"]]) for row in rows}
    return short_hash("\n".join(sorted(spans)))


def sample(rows: Sequence[Row], limit: int | None) -> list[Row]:
    """At most `limit` questions, the same number of each type as far as there are so many, spread evenly over each
    type's and kept in their order. The rows of a group are one question."""
    units: dict[str | int, list[Row]] = {}
    for index, row in enumerate(rows):
        units.setdefault(row.get("group") or index, []).append(row)
    if limit is None or limit >= len(units):
        return list(rows)
    if limit < 1:
        raise UserError(f"limit {limit}: at least 1 row")
    questions = list(units.values())
    by_type: dict[str, list[int]] = {}
    for index, unit in enumerate(questions):
        by_type.setdefault(unit[0]["type"], []).append(index)
    quota = dict.fromkeys(by_type, 0)
    while sum(quota.values()) < limit:
        fewest = min((t for t in by_type if quota[t] < len(by_type[t])), key=lambda t: quota[t])
        quota[fewest] += 1
    chosen = {by_type[t][i * len(by_type[t]) // n] for t, n in quota.items() for i in range(n)}
    return [row for i in sorted(chosen) for row in questions[i]]


def questions(rows: Iterable[Row]) -> int:
    """How many questions the rows ask: those of a group are one."""
    return len({row.get("group") or row["id"] for row in rows})


def shard(rows: Sequence[Row], shard: str | None) -> list[Row]:
    """The part "2/4" of the rows: those of every fourth clip, beginning with the second; all rows for None."""
    if shard is None:
        return list(rows)
    match = re.fullmatch(r"(\d+)/(\d+)", shard)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise UserError(f"shard {shard!r}: give the part and the number of parts, from 1/4 to 4/4")
    place = {clip: n for n, clip in enumerate(dict.fromkeys(row["clip"] for row in rows))}
    return [row for row in rows if place[row["clip"]] % int(match[2]) == int(match[1]) - 1]
