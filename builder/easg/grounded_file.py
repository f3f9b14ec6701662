"""The authors' own file of grounded questions -> rows of the dataset, with their wording and groundings as they are.

    {"4901cdd8-...": {"purpose": {"wrench": {"question": "Why ...?", "answer": "..."}},
                      "1234": {"graph_uid": "...", "narration_text": "#C C puts ...", "attributes": {"jug": "red"},
                               "groundings": {"jug": {"left": 0.1, "top": 0.2, "width": 0.3, "height": 0.4}},
                               "questions": [{"type": "direct", "question": "What ...?", "answer": "jug"}]}}}

Any key but "purpose" is a point of no return, a frame of the full video. The file says neither the video nor where the
clip or the action begins, so `video` is empty and these seconds are null. Its narration texts are ignored; the judge's
context is that of the narrations file.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from builder.easg.grounding import plain
from builder.easg.records import FPS
from builder.inputs import as_index, as_number, as_text, field, read_object, refuse, show
from easg_bench import QA, TYPES, Evidence

ACTION_TYPES = tuple(kind for kind in TYPES if kind != "purpose")
SLACK = 1e-6  # how far rounding may put an edge beyond the frame; more than that is no fraction


def read_rows(file: Path, narrations: Path | None, counts: Counter[str]) -> tuple[list[QA], list[dict[str, Any]]]:
    """The questions in the file's order, and a row of the config `narrations` for each clip that has narrations.

    Ids are `<clip>:f<frame>:<type>`, with `:2` behind it for a second question of the type, and
    `<clip>:purpose:<object>`. A purpose is grounded by every box of its object in the clip. Clips without narrations
    and questions without a box are added to `counts`. Raises BuildError where the file is not of this form.
    """
    clips = read_object(file)
    texts = read_object(narrations) if narrations else {}
    rows: list[QA] = []
    for uid, clip in clips.items():
        where = f"{file}: clip {uid}"
        if not isinstance(clip, dict):
            refuse(where, f"an object with purpose and frames is needed, not {show(clip)}")
        context = as_text(texts.get(uid) or "", f"{narrations}: clip {uid}")
        counts["clips without narrations"] += not context
        moments = {key: _moment(key, value, f"{where}: frame {key}") for key, value in clip.items() if key != "purpose"}
        for name, pair in _object(clip.get("purpose") or {}, f"{where}: purpose").items():
            boxes = [
                item for evidence, _ in moments.values() for item in evidence if plain(item["object"]) == plain(name)
            ]
            question, answer = _pair(pair, f"{where}: purpose of {name}")
            rows.append(_row(uid, f"{uid}:purpose:{name}", "purpose", question, answer, context, boxes, None))
        for key, (evidence, of_moment) in moments.items():
            taken: Counter[str] = Counter()
            for kind, question, answer in of_moment:
                taken[kind] += 1
                again = f":{taken[kind]}" if taken[kind] > 1 else ""
                name = f"{uid}:f{int(key)}:{kind}{again}"
                rows.append(_row(uid, name, kind, question, answer, context, evidence, int(key)))
    counts["questions without a box"] += sum(not row["evidence"] for row in rows)
    narration_rows = [
        {"clip": uid, "video": "", "split": "", "clip_start_s": None, "narrations": texts[uid]}
        for uid in clips
        if texts.get(uid)
    ]
    return rows, narration_rows


def _moment(key: str, raw: Any, where: str) -> tuple[list[Evidence], list[tuple[str, str, str]]]:
    """The boxes of a frame, and its questions as (type, question, answer)."""
    if as_index(key) is None:
        refuse(where.removesuffix(f": frame {key}"), f"a key is purpose or a frame number, not {show(key)}")
    graph = as_text(field(raw, "graph_uid", where), f"{where}: graph_uid")
    attributes = _object(raw.get("attributes") or {}, f"{where}: attributes")
    evidence: list[Evidence] = [
        {
            "graph": graph,
            "frame": int(key),
            "seconds": int(key) / FPS,
            "object": as_text(name, where),
            "box": _box(sides, f"{where}: box of {name}"),
            "attribute": as_text(attributes[name], f"{where}: attribute of {name}") if attributes.get(name) else None,
        }
        for name, sides in _object(raw.get("groundings") or {}, f"{where}: groundings").items()
    ]
    raw_questions = field(raw, "questions", where)
    if not isinstance(raw_questions, list):
        refuse(where, f"questions must be a list, not {show(raw_questions)}")
    questions = []
    for index, raw_question in enumerate(raw_questions, 1):
        here = f"{where}: question {index}"
        kind = field(raw_question, "type", here)
        if kind not in ACTION_TYPES:
            refuse(here, f"type {show(kind)} is none of {', '.join(ACTION_TYPES)}")
        questions.append((kind, *_pair(raw_question, here)))
    return evidence, questions


def _box(raw: Any, where: str) -> list[float]:
    left, top, width, height = (
        as_number(field(raw, side, where), f"{where}: {side}") for side in ("left", "top", "width", "height")
    )
    edges = [left, top, left + width, top + height]
    if width <= 0 or height <= 0:
        refuse(where, f"its width and height must be above 0, not {width:g} and {height:g}")
    if min(edges) < -SLACK or max(edges) > 1 + SLACK:
        values = ", ".join(f"{edge:g}" for edge in edges)
        pixels = "; these look like pixels" if max(edges) > 2 else ""
        refuse(
            where, f"its edges (left, top, right, bottom) must be fractions of the frame, 0 to 1, not {values}{pixels}"
        )
    return [min(max(edge, 0.0), 1.0) for edge in edges]


def _pair(raw: Any, where: str) -> tuple[str, str]:
    question, answer = (as_text(field(raw, name, where), f"{where}: {name}") for name in ("question", "answer"))
    return question, answer


def _object(raw: Any, where: str) -> dict[str, Any]:
    if not isinstance(raw, dict):
        refuse(where, f"an object is needed, not {show(raw)}")
    return raw


def _row(
    clip: str, id: str, kind: str, question: str, answer: str, context: str, evidence: list[Evidence], frame: int | None
) -> QA:
    return {
        "id": id,
        "clip": clip,
        "video": "",
        "type": kind,
        "question": question,
        "answer": answer,
        "choices": None,
        "gold": None,
        "context": context,
        "frame": frame,
        "start_s": None,
        "end_s": None,
        "clip_start_s": None,
        "evidence": evidence,
        "review": None,
    }
