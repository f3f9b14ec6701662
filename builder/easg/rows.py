"""A clip and its questions -> rows of the dataset's configs, as easg_bench.py declares their columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from builder.easg import check, grounding, wording
from builder.easg.neutral import neutral_row
from builder.easg.questions import SameFrame, Slots, candidates, questions
from builder.easg.readings import Readings
from builder.easg.records import FPS, STAGES, Action, Clip, Graph
from easg_bench import QA, REVIEWED, TYPES, Evidence


class Pair(NamedTuple):
    """A purpose question: by template, a model's, or written by a reader, who says which graphs show it."""

    object: str  # as annotated
    question: str
    answer: str
    graphs: tuple[int, ...] = ()
    review: str | None = None


NOBODY = Readings()


def clip_rows(clip: Clip, questions: Sequence[QA], counts: Counter[str]) -> dict[str, list[Any]]:
    """The rows of a clip and its questions for every config but `default`. For `counts` see derived_rows."""
    graphs = graph_rows(clip)
    return {
        **{kind: [row for row in questions if row["type"] == kind] for kind in TYPES},
        **derived_rows(questions, graphs, counts),
        "narrations": [narration_row(clip)],
        "graphs": graphs,
    }


def question_rows(
    clip: Clip,
    same_frame: SameFrame,
    counts: Counter[str],
    *,
    worded: Mapping[str, str] = MappingProxyType({}),
    pairs: Sequence[Pair] | None = None,
    readings: Readings = NOBODY,
) -> list[QA]:
    """All questions of a clip: purpose first, then by graph.

    A language model's wording replaces the template's: `worded` {id: question} for action questions; `pairs` for
    purpose are a model's, or those of readers. What the readers say of the action questions is in `readings`. How many
    questions are grounded, at which stage, and how many have a neighbour that is out of order is added to `counts`.
    """
    if pairs is None:
        pairs = [Pair(*pair) for pair in wording.purpose(candidates(clip), clip.purpose_count)]
        counts["purpose questions that the actions do not give"] += clip.purpose_count - len(pairs)
    return _purpose_rows(clip, pairs, counts) + _action_rows(clip, same_frame, worded, readings, counts)


def derived_rows(
    questions: Sequence[QA], graphs: Sequence[Mapping[str, Any]], counts: Counter[str]
) -> dict[str, list[Any]]:
    """The rows of `unambiguous`, `reviewed` and `language_neutral`, which are made from a clip's questions and graphs.

    Without graphs it is unknown which questions are unambiguous: there are no rows. For `counts` see neutral_row.
    """
    neutral = [row for question in questions if (row := neutral_row(question, counts))]
    clear = check.unambiguous(questions, graphs) if graphs else []
    reviewed = [row for row in questions if row["review"] in REVIEWED]
    return {"unambiguous": clear, "reviewed": reviewed, "language_neutral": neutral}


def narration_row(clip: Clip) -> dict[str, Any]:
    """The clip's row of the config `narrations`."""
    return {
        "clip": clip.uid,
        "video": clip.video,
        "split": clip.split,
        "clip_start_s": _clip_start(clip),
        "narrations": clip.narrations,
    }


def graph_rows(clip: Clip) -> list[dict[str, Any]]:
    """The clip's rows of the config `graphs`: every annotated graph, also those without an action."""
    return [
        {
            "clip": clip.uid,
            "video": clip.video,
            "split": clip.split,
            "index": graph.index,
            "graph": graph.uid,
            **graph.frames,
            "start_s": graph.frames["pre"] / FPS,
            "end_s": graph.frames["post"] / FPS,
            "verb": graph.action and graph.action.verb,
            "object": graph.action and graph.action.object,
            "relations": [
                {"relation": relation, "tail": tail}
                for relation, tail in (graph.action.relations if graph.action else ())
            ],
            "vote": clip.votes.get(graph.index),
            "triplets": [list(triplet) for triplet in graph.triplets],
            "boxes": [
                {"stage": stage, "object": name, "box": [box.left, box.top, box.right, box.bottom]}
                for stage in STAGES
                for name, box in graph.boxes[stage].items()
            ],
        }
        for graph in clip.graphs
    ]


def clip_of(rows: Sequence[Mapping[str, Any]]) -> Clip:
    """The clip as the config `graphs` has it, for the rules of questions.py; boxes and sizes are not needed there."""
    graphs = []
    for row in sorted(rows, key=lambda row: row["index"]):
        relations = tuple((pair["relation"], pair["tail"]) for pair in row["relations"])
        action = Action(row["verb"], row["object"], relations) if row["verb"] else None
        frames = {stage: row[stage] for stage in STAGES}
        triplets = tuple((head, relation, tail) for head, relation, tail in row["triplets"])
        graphs.append(Graph(row["index"], row["graph"], frames, triplets, {stage: {} for stage in STAGES}, action))
    votes = {row["index"]: row["vote"] for row in rows if row["vote"] is not None}
    first = rows[0]
    return Clip(first["clip"], first["video"], first["split"], 1, 1, tuple(graphs), votes=votes)


def _action_rows(
    clip: Clip, same_frame: SameFrame, worded: Mapping[str, str], readings: Readings, counts: Counter[str]
) -> list[QA]:
    rows: list[QA] = []
    for slots in questions(clip, same_frame):
        question, answer = worded_by_template(slots)
        question = worded.get(slots.id, readings.worded(slots.id, question))
        evidence, stage = grounding.of_action_question(slots, question, answer)
        counts[f"action questions grounded at {stage}" if stage else "action questions without a box"] += 1
        counts["rows whose neighbour is out of order"] += slots.out_of_order
        review = readings.review(slots.id, question, answer)
        rows.append(_row(clip, slots.id, slots.type, question, answer, evidence, slots.graph, review))
    return rows


def worded_by_template(slots: Slots) -> tuple[str, str]:
    """Question and answer of an action question."""
    if slots.which is not None:
        return wording.indirect(slots.action, slots.which), wording.answer_relation(slots.action, slots.which)
    if slots.neighbour and slots.neighbour.action:
        ask = wording.before if slots.type == "before" else wording.after
        return ask(slots.action), wording.answer_action(slots.neighbour.action)
    if slots.type != "direct":
        raise ValueError(f"{slots.id}: no wording for questions of the type {slots.type!r}")
    return wording.direct(slots.action), wording.answer_object(slots.action)


def _purpose_rows(clip: Clip, pairs: Sequence[Pair], counts: Counter[str]) -> list[QA]:
    actions = {graph.index: (graph, graph.action) for graph in clip.graphs if graph.action}
    asked = [actions[index] for index, _ in candidates(clip)]
    rows: list[QA] = []
    taken: Counter[str] = Counter()
    for name, question, answer, graphs, review in pairs:
        slug = re.sub(r"\W+", "-", name.replace("_", " ")).strip("-")
        taken[slug] += 1
        number = f"-{taken[slug]}" if taken[slug] > 1 else ""
        evidence = grounding.of_purpose(name, [actions[index] for index in graphs if index in actions] or asked)
        if graphs and not evidence:  # no box in the graphs that show its use
            evidence = grounding.of_purpose(name, actions.values())
        counts["purpose questions grounded" if evidence else "purpose questions without a box"] += 1
        id = f"{clip.uid}:purpose:{slug}{number}"
        rows.append(_row(clip, id, "purpose", question, answer, evidence, None, review))
    return rows


def _row(
    clip: Clip,
    id: str,
    type: str,
    question: str,
    answer: str,
    evidence: list[Evidence],
    graph: Graph | None,
    review: str | None,
) -> QA:
    return {
        "id": id,
        "clip": clip.uid,
        "video": clip.video,
        "type": type,
        "question": question,
        "answer": answer,
        "choices": None,
        "gold": None,
        "context": clip.narrations,
        "frame": graph.frames["pnr"] if graph else None,
        "start_s": graph.frames["pre"] / FPS if graph else None,
        "end_s": graph.frames["post"] / FPS if graph else None,
        "clip_start_s": _clip_start(clip),
        "evidence": evidence,
        "review": review,
    }


def _clip_start(clip: Clip) -> float | None:
    return None if clip.start_frame is None else clip.start_frame / FPS
