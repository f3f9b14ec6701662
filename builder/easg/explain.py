"""One question's history, from the graph to the row: `python -m builder explain 4901cdd8-...:4:before`.

    graph     4 of 22: put jug, into cabinet; frames 3018, 3034, 3067 (100.6 to 102.2 s)
    step 1    candidate: no other action of the clip has the same verb, object and relations
    step 2    recorded score 0, kept below 0.5
    ...

Read from the dataset repo, for what a model did also from the stages folder of its build. A question that was not made
has a history too: it says which step it did not pass.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from builder import stages
from builder.easg import wording
from builder.easg.check import rows_of_config
from builder.easg.grounding import plain
from builder.easg.pipeline import DECISIONS
from builder.easg.questions import THRESHOLD, Slots, candidates, questions
from builder.easg.readings import Readings
from builder.easg.readings import read as readings_of
from builder.easg.records import FPS, STAGES, Action, Clip
from builder.easg.rows import clip_of
from builder.errors import BuildError
from easg_bench import TYPES


def explain(id: str, data: Path, folder: Path) -> str:
    """The history of the question `id` of the repo `data`; `folder` is its stages folder, if it has one. Raises
    BuildError where the repo has no such clip or graph."""
    if not data.is_dir():
        raise BuildError(f"{data}: no such folder; --data names a dataset repo")
    graphs = rows_of_config(data, "graphs")
    uid = next((g["clip"] for g in graphs if id.startswith(f"{g['clip']}:")), None)
    if uid is None:
        raise BuildError(f"{id}: no clip of {data}; an id is CLIP:GRAPH:TYPE or CLIP:purpose:OBJECT")
    clip = clip_of([g for g in graphs if g["clip"] == uid])
    rows = {row["id"]: row for row in rows_of_config(data, "default") if row["clip"] == uid}
    readings = readings_of(None)
    decided = {name: stages.read(folder, name) for name in DECISIONS}
    replies = {line["reply"]: line for line in stages.read(folder, "replies")}
    kind, _, rest = id.removeprefix(f"{uid}:").partition(":")
    if kind == "purpose":
        lines = [*_purpose(clip, rest, rows.get(id), decided["purpose"], replies, readings)]
    elif kind.isdecimal() and 1 <= int(kind) <= len(clip.graphs) and rest.split(":")[0] in TYPES:
        lines = [*_action(clip, int(kind), id, rows, decided, replies), *_labels(rows.get(id), readings)]
    else:
        last = len(clip.graphs)
        raise BuildError(f"{id}: an id is CLIP:GRAPH:TYPE, the graph from 1 to {last}, or CLIP:purpose:OBJECT")
    lines += _after(id, rows.get(id), decided, replies)
    return "\n".join([id, *(f"{step:<10}{text}" for step, text in lines)])


def _action(
    clip: Clip,
    index: int,
    id: str,
    rows: Mapping[str, Any],
    decided: Mapping[str, Sequence[Any]],
    replies: Mapping[str, Any],
) -> Iterator[tuple[str, str]]:
    graph = clip.graphs[index - 1]
    frames = ", ".join(str(graph.frames[stage]) for stage in STAGES)
    seconds = f"{graph.frames['pre'] / FPS:.1f} to {graph.frames['post'] / FPS:.1f} s"
    yield "graph", f"{index} of {len(clip.graphs)}: {_action_text(graph.action)}; frames {frames} ({seconds})"
    if graph.action is None:
        yield "step 1", "no candidate: a graph without a verb or an object is no action"
        return
    same = [str(g.index) for g in clip.graphs if g.action and g.action.key == graph.action.key and g.index != index]
    if same:
        yield "step 1", f"no candidate: the same verb, object and relations are in graph {', '.join(same)} too"
        return
    yield "step 1", "candidate: no other action of the clip has the same verb, object and relations"
    yield from _vote(clip, index, decided["votes"], replies)
    if not clip.votes.get(index, 1) < THRESHOLD:
        return
    if not graph.action.relations:
        yield "step 3", "not asked: an action without a relation (hands left out) has purpose questions only"
        return
    slots = {one.id: one for one in questions(clip, "all")}.get(id)
    if slots is None:
        yield "step 3", f"no such question: {_missing(clip, index)}"
        return
    yield "step 3", f"{slots.type} question: {_answer_text(slots)}"
    rival = {one.id: one for one in questions(clip, "last")}
    if id not in rival and id not in rows:
        yield "step 7", f"left out: a later asked action has the same pnr frame {graph.frames['pnr']}"
    made = next((line for line in decided["wording"] if line["id"] == id), None)
    if made is None and id in rows:
        yield "wording", f"template: {rows[id]['question']}"
    for attempt in made["attempts"] if made else ():
        yield from _reply("wording", attempt["reply"], replies)
        yield "", f"{attempt['problem'] or 'holds'}: {attempt['question'] or '-'}"
    if made:
        yield "", f"{made['decision']}: {made['reason']}"


def _vote(clip: Clip, index: int, votes: Sequence[Any], replies: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    score = clip.votes.get(index)
    line = next((v for v in votes if (v["clip"], v["index"]) == (clip.uid, index)), None)
    if line is None or line["score"] != score:  # the stages are not of this build
        verdict = "no score, not kept" if score is None else f"score {score:.3g}"
        if score is not None:
            verdict += f", {'kept' if score < THRESHOLD else 'voted out: kept is'} below {THRESHOLD}"
        yield "step 2", f"recorded: {verdict}"
        return
    yield "step 2", f"{line['decision']}: {line['reason']}; labels {', '.join(str(label) for label in line['labels'])}"
    for key in line["replies"]:
        yield from _reply("", key, replies)


def _missing(clip: Clip, index: int) -> str:
    before = clip.graphs[index - 2] if index > 1 else None
    after = clip.graphs[index] if index < len(clip.graphs) else None
    if before is not None and before.action is None:
        return f"graph {index - 1} is no action, so there is neither before nor after"
    if before is None and after is not None and after.action:
        return "graph 1 has no before, and an indirect question has the number of one of the relations"
    return f"graph {index + 1} is no action" if after else "the last graph has no after"


def _purpose(
    clip: Clip,
    name: str,
    row: Mapping[str, Any] | None,
    pairs: Sequence[Any],
    replies: Mapping[str, Any],
    readings: Readings,
) -> Iterator[tuple[str, str]]:
    words = plain(name.replace("-", " "))
    for index, action in candidates(clip):
        if any(words == plain(noun) for noun in (action.object, *(tail for _, tail in action.relations))):
            yield "graph", f"{index}: {_action_text(action)}"
    of_object = [p for p in pairs if p["clip"] == clip.uid and plain(p["object"]).replace("-", " ") == words]
    for pair in of_object:
        yield from _reply("wording", pair["replies"][0], replies)
        yield "", f"{pair['decision']}: {pair['reason']}: {pair['question']} - {pair['answer']}"
    written = next((p for p in readings.purposes.get(clip.uid, ()) if row and p.question == row["question"]), None)
    if written:
        graphs = ", ".join(map(str, written.graphs))
        yield "wording", f"written, {written.basis} (graph {graphs}): {written.question} - {written.answer}"
        for one in written.judgments:
            yield "review", ": ".join(filter(None, [f"{one.reader}: {one.judgment}", one.reason]))
    elif not of_object and row:
        yield "wording", f"template: {row['question']} - {row['answer']}"


def _labels(row: Mapping[str, Any] | None, readings: Readings) -> Iterator[tuple[str, str]]:
    """What the readers said of an action question, if it was read as it stands."""
    if row is None or row["review"] is None or row["id"] not in readings.reviews:
        return
    for one in readings.reviews[row["id"]].labels:
        graph = "" if one.graph is None else f" (graph {one.graph})"
        yield "review", ": ".join(filter(None, [f"{one.reader}: {one.label}{graph}", one.reason]))


def _after(
    id: str, row: Mapping[str, Any] | None, decided: Mapping[str, Sequence[Any]], replies: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    for line in decided["generic"]:
        if line["id"] == id:
            yield "generic", f"{line['decision']}: {line['reason']}; labels {', '.join(map(str, line['labels']))}"
            for key in line["replies"]:
                yield from _reply("", key, replies)
    if row is None:
        yield "row", "none"
        return
    frames = {item["frame"] for item in row["evidence"]}
    for line in decided["attributes"]:
        if line["clip"] == row["clip"] and line["frame"] in frames:
            yield "attribute", f"frame {line['frame']}: {json.dumps(line['attributes'])}; {line['reason']}"
            yield from _reply("", line["replies"][0], replies)
    boxes = ", ".join(f"{item['object']} at frame {item['frame']}" for item in row["evidence"])
    yield "grounded", boxes or "no box"
    kept = {k: v for k, v in row.items() if k not in ("id", "context", "evidence") and v is not None}
    yield "row", json.dumps(kept, ensure_ascii=False)


def _reply(step: str, key: str, replies: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    line = replies.get(key)
    if line:
        text = json.dumps(line["text"] if line["text"] is not None else line["error"], ensure_ascii=False)
        how = f"{line['model']}, seed {line['seed']}, temperature {line['temperature']}, prompt {line['prompt']}"
        yield step, f"{how}: {text if len(text) <= 400 else text[:399] + '…'}"


def _action_text(action: Action | None) -> str:
    if action is None:
        return "no action"
    return ", ".join(filter(None, [f"{action.verb} {action.object}", action.indirect]))


def _answer_text(slots: Slots) -> str:
    if slots.neighbour is not None and slots.neighbour.action is not None:
        order = " (out of order by its frame)" if slots.out_of_order else ""
        return f"the answer is graph {slots.neighbour.index}: {wording.answer_action(slots.neighbour.action)}{order}"
    if slots.which is not None:
        return f"the answer is relation {slots.which + 1}: {wording.answer_relation(slots.action, slots.which)}"
    return f"the answer is the object: {wording.answer_object(slots.action)}"
