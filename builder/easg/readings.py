"""What readers wrote of EASG-Bench's questions, and the closed lists of what they could say.

The readers are language models that read every clip's graphs and narrations as text; none saw a video. Three files,
one JSON object a line, in builder/data for the public clips; a source folder may have its own beside its annotations:

    purposes.jsonl  {"clip": "4ad40842-...", "object": "rake", "question": "What did the camera wearer need the rake
                     for?", "answer": "to draw bread out of the oven", "graphs": [41, 45, 46], "basis": "shown",
                     "judgments": [{"reader": "reader 1", "judgment": "supported", "reason": ""}, ...]}
    reviews.jsonl   {"id": "fc162164-...:7:direct", "question": "What did the camera wearer remove from the tomato?",
                     "answer": "pedal", "labels": [{"reader": "reader 1", "label": "implausible", "graph": null,
                     "reason": "a pedal cannot be part of a tomato", "wording": null}, ...]}
    wording.jsonl   {"id": "23...:13:direct", "template": <what the template says>, "question": <what is asked>}

A pair that was rewritten has the `former` ones with their judgments; the last of `judgments` is the one that counts. A
question that was worded better after it had been read has what the readers saw as `read`. The labels of a question
hold for its text and answer as they stand here, and for no other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder.inputs import as_text, as_whole, refuse, show
from builder.inputs import field as value_of
from easg_bench import JUDGMENTS, LABELS, review_of

DATA = Path(__file__).resolve().parents[1] / "data"
NAMES = {"purposes": "purposes.jsonl", "reviews": "reviews.jsonl", "wording": "wording.jsonl"}
BASES = ("shown", "inferred")  # by later graphs or narrations; from common knowledge of what the clip shows


@dataclass(frozen=True, slots=True)
class Judgment:
    """What a reader says of a purpose; the writer's own follows from the basis."""

    reader: str
    judgment: str  # one of JUDGMENTS; of a former pair, which is not read here, also "generic" or "wrong"
    reason: str


@dataclass(frozen=True, slots=True)
class Purpose:
    """A purpose pair that a reader wrote."""

    clip: str
    object: str  # as annotated
    question: str
    answer: str
    graphs: tuple[int, ...]  # that show the use
    basis: str  # one of BASES
    judgments: tuple[Judgment, ...]

    @property
    def review(self) -> str:
        """The judgment that counts."""
        return self.judgments[-1].judgment


@dataclass(frozen=True, slots=True)
class Label:
    """What a reader says of an action question. `graph` is the one that answers it differently."""

    reader: str
    label: str  # one of LABELS
    graph: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Review:
    """The labels of one action question."""

    id: str
    question: str
    answer: str
    labels: tuple[Label, ...]

    @property
    def clip(self) -> str:
        """The clip of the question, from its id."""
        return self.id.split(":")[0]

    @property
    def type(self) -> str:
        """The type of the question, from its id."""
        return self.id.split(":")[2]

    @property
    def review(self) -> str:
        """The value of the column `review`."""
        return review_of([label.label for label in self.labels])


@dataclass(frozen=True, slots=True)
class Readings:
    """The three files. `paths` are those that have lines."""

    purposes: Mapping[str, Sequence[Purpose]] = field(default_factory=dict)  # by clip
    reviews: Mapping[str, Review] = field(default_factory=dict)  # by id
    wording: Mapping[tuple[str, str], str] = field(default_factory=dict)  # (id, text of the template) -> question
    paths: Sequence[Path] = ()

    def worded(self, id: str, question: str) -> str:
        """The better wording of a template's question, where there is one."""
        return self.wording.get((id, question), question)

    def review(self, id: str, question: str, answer: str) -> str | None:
        """The value of the column `review`; None for a question that nobody read, or that reads differently now."""
        one = self.reviews.get(id)
        return one.review if one and (one.question, one.answer) == (question, answer) else None


def read(source: Path | None = None) -> Readings:
    """The files of `source`, a folder of annotations, and in place of those that it lacks the project's own. Raises
    BuildError for a line that is not of the form above."""
    paths = {role: DATA / name for role, name in NAMES.items()}
    if source is not None:
        paths |= {role: source / name for role, name in NAMES.items() if (source / name).is_file()}
    purposes: dict[str, list[Purpose]] = {}
    for raw, where in _lines(paths["purposes"]):
        one = _purpose(raw, where)
        purposes.setdefault(one.clip, []).append(one)
    reviews: dict[str, Review] = {}
    for raw, where in _lines(paths["reviews"]):
        review = _review(raw, where)
        if review.id in reviews:
            refuse(where, f"the id {review.id} comes twice")
        reviews[review.id] = review
    wording = {}
    for raw, where in _lines(paths["wording"]):
        id, template, question = (_text(raw, key, where) for key in ("id", "template", "question"))
        wording[id, template] = question
    return Readings(purposes, reviews, wording, [path for path in paths.values() if path.is_file()])


def _lines(path: Path) -> Iterator[tuple[Any, str]]:
    """Each line's JSON, with what to call it in a message."""
    if not path.is_file():
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        where = f"{path}, line {number}"
        try:
            yield json.loads(line), where
        except (ValueError, RecursionError):
            refuse(where, f"no valid JSON: {show(line)}")


def _purpose(raw: Any, where: str) -> Purpose:
    clip, name, question, answer = (_text(raw, key, where) for key in ("clip", "object", "question", "answer"))
    graphs = tuple(as_whole(index, f"{where}: graphs") for index in _list(raw, "graphs", where))
    judgments = tuple(
        Judgment(_text(one, "reader", where), _one_of(one, "judgment", JUDGMENTS, where), _text(one, "reason", where))
        for one in _list(raw, "judgments", where)
    )
    return Purpose(clip, name, question, answer, graphs, _one_of(raw, "basis", BASES, where), judgments)


def _review(raw: Any, where: str) -> Review:
    labels = []
    for one in _list(raw, "labels", where):
        graph = value_of(one, "graph", where)
        index = None if graph is None else as_whole(graph, f"{where}: graph")
        label = _one_of(one, "label", LABELS, where)
        labels.append(Label(_text(one, "reader", where), label, index, _text(one, "reason", where)))
    id, question, answer = (_text(raw, key, where) for key in ("id", "question", "answer"))
    return Review(id, question, answer, tuple(labels))


def _text(raw: Any, key: str, where: str) -> str:
    return as_text(value_of(raw, key, where), f"{where}: {key}")


def _one_of(raw: Any, key: str, allowed: Sequence[str], where: str) -> str:
    if (value := value_of(raw, key, where)) not in allowed:
        refuse(f"{where}: {key}", f"allowed are {', '.join(allowed)}, not {show(value)}")
    return str(value)


def _list(raw: Any, key: str, where: str) -> list[Any]:
    value = value_of(raw, key, where)
    if not isinstance(value, list) or not value:
        refuse(f"{where}: {key}", f"a list of at least one is needed, not {show(value)}")
    return value
