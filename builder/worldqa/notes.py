"""What WorldQA's public copy has no column for, from a file of our own form:

    {"questions": {"0": {"knowledge": ["tool use", "self motive"], "steps": 4}},
     "videos": {"12": {"duration_s": 93.5, "events": [[0, 4.5, "A man opens the bonnet of a car."], ...]}}}

An event has its start and end in seconds of the video, and a text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from builder.worldqa.files import Raw, as_object
from videoqa.benchmarks.worldqa.augmented import in_order, text
from videoqa.benchmarks.worldqa.data import KNOWLEDGE
from videoqa.json_files import form_of, is_seconds, is_text, read_json, stop_at
from videoqa.rows import Row

STEPS = range(2, 11)  # of reasoning


def read_notes(path: Path) -> dict[str, dict[str, Any]]:
    """The file with knowledge types, steps and events, checked. Raises UserError."""
    where = str(path)
    notes = as_object(read_json(path), where)
    stop_at([f"{key!r} is unknown" for key in notes if key not in ("questions", "videos")], where)
    questions, videos = (as_object(notes.get(key, {}), f"{where}, {key}") for key in ("questions", "videos"))
    faults = [f"question {id}: {fault}" for id, one in questions.items() for fault in _question_faults(one)]
    faults += [f"video {id}: {fault}" for id, one in videos.items() for fault in _video_faults(one)]
    stop_at(faults, where)
    return {"questions": dict(questions), "videos": dict(videos)}


def check_notes(notes: Mapping[str, Raw], rows: Sequence[Row], where: str) -> None:
    """Raise UserError for notes on questions or videos that are not there."""
    ids, videos = {row["id"] for row in rows}, {row["video"] for row in rows}
    faults = [f"there is no question {id}" for id in notes["questions"] if id not in ids]
    faults += [f"there is no question on video {id}" for id in notes["videos"] if id not in videos]
    stop_at(faults, where)


def noted(row: Row, notes: Mapping[str, Raw]) -> Row:
    """The row with what the notes say of it and of its video."""
    of_question, of_video = notes["questions"].get(row["id"], {}), notes["videos"].get(row["video"], {})
    named = of_question.get("knowledge", ())
    events = in_order([{"start_s": float(a), "end_s": float(b), "text": t} for a, b, t in of_video.get("events", ())])
    duration = of_video.get("duration_s")
    return {
        **row,
        # so that other events or another duration are another revision of the data; the rubric shows it to no judge
        "context": f"{text(events)}\n{'' if duration is None else f'{duration:g} s: end of the video'}".strip(),
        "knowledge": [one for one in KNOWLEDGE if one in named],
        "steps": of_question.get("steps"),
        "events": events,
        "duration_s": None if duration is None else float(duration),
    }


def _question_faults(one: Any) -> list[str]:
    if not isinstance(one, dict):
        return [f"is {form_of(one)}, not an object"]
    faults = [f"{key!r} is unknown" for key in one if key not in ("knowledge", "steps")]
    named, steps = one.get("knowledge", []), one.get("steps")
    if not isinstance(named, list) or any(not isinstance(name, str) or name not in KNOWLEDGE for name in named):
        faults.append(f"knowledge is {named!r}; it is a list of {', '.join(KNOWLEDGE)}")
    elif len(set(named)) < len(named):
        faults.append(f"knowledge names one type twice: {', '.join(named)}")
    if steps is not None and not (isinstance(steps, int) and not isinstance(steps, bool) and steps in STEPS):
        faults.append(f"steps is {steps!r}; it is a whole number from {STEPS[0]} to {STEPS[-1]}")
    return faults


def _video_faults(one: Any) -> list[str]:
    if not isinstance(one, dict):
        return [f"is {form_of(one)}, not an object"]
    faults = [f"{key!r} is unknown" for key in one if key not in ("events", "duration_s")]
    duration, events = one.get("duration_s"), one.get("events", [])
    if duration is not None and not (is_seconds(duration) and duration > 0):
        faults.append(f"duration_s is {duration!r}; it is a number of seconds above 0")
    if not isinstance(events, list):
        return [*faults, f"events is {form_of(events)}; it is a list of [start, end, text]"]
    for number, event in enumerate(events):
        if not isinstance(event, list) or len(event) != 3 or not is_text(event[2]):
            faults.append(f"event {number} is {form_of(event)}; it is [start, end, text]")
        elif not (is_seconds(event[0]) and is_seconds(event[1]) and 0 <= event[0] <= event[1]):
            faults.append(f"event {number}: {event[0]!r} to {event[1]!r} is no span of seconds")
        elif is_seconds(duration) and event[1] > duration:
            faults.append(f"event {number} ends at {event[1]} s, behind the video's end at {duration} s")
    return faults
