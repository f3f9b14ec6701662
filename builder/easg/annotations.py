"""EASG annotations, narrations and recorded votes -> Clip, Graph, Box.

A mistake (a truncated file, a clip without a size, a graph with two verbs) is a BuildError that names the file, the
clip and the graph. Oddities of the real annotations (an unfinished graph, a box outside the frame) are skipped and
counted by kind. The 221 real clips have 18 graphs without a verb, 32 without an action, 14 without boxes, one box of no
area, one wholly outside the frame, 21 votes for no candidate and five above 1.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from builder.easg.questions import THRESHOLD, candidates
from builder.easg.records import STAGES, Action, Box, Clip, Graph
from builder.inputs import as_index, as_number, as_text, as_whole, field, read_object, refuse, show

USUAL_NAMES = {  # of the input files, by what is in them
    "annotations": "EASG_unict_master_final.json",
    "narrations": "clip_narrations.json",
    "votes": "recorded_votes.json",
    "purpose_counts": "recorded_purpose_counts.json",
    "spans": "clip_spans.json",
}


def read_clips(
    annotations: Path,
    narrations: Path | None = None,
    votes: Path | None = None,
    purpose_counts: Path | None = None,
    spans: Path | None = None,
) -> tuple[list[Clip], Counter[str]]:
    """The clips, in the order of the annotations, and how many oddities of each kind were skipped.

    The files, all JSON: `annotations` {clip: {"video_uid", "split", "W", "H", "graphs"}}, `narrations` {clip: text},
    `votes` {"threshold", "scores": {clip: {graph index: score}}}, `purpose_counts` {clip: number of questions} and
    `spans` {clip: {"start_frame"}}. Without a file no clip has its values. Raises BuildError where a
    file cannot be used.
    """
    warnings: Counter[str] = Counter()
    raw_clips = read_object(annotations)
    if not raw_clips:
        refuse(str(annotations), "holds no clips")
    texts = read_object(narrations) if narrations else {}
    scores = _of_known_clips(votes, recorded_scores(votes), raw_clips) if votes else {}
    counts = _of_known_clips(purpose_counts, read_object(purpose_counts), raw_clips) if purpose_counts else {}
    starts = _of_known_clips(spans, read_object(spans), raw_clips) if spans else {}
    warnings["narrations of clips without annotations"] += len(texts.keys() - raw_clips.keys())
    warnings["clips without votes"] += len(raw_clips.keys() - scores.keys()) if votes else 0
    warnings["clips without a purpose count"] += len(raw_clips.keys() - counts.keys()) if purpose_counts else 0
    warnings["clips without a span"] += len(raw_clips.keys() - starts.keys()) if spans else 0

    clips = []
    for uid, raw in raw_clips.items():
        where = f"{annotations}: clip {uid}"
        width, height = _size(raw, "W", where), _size(raw, "H", where)
        graphs = field(raw, "graphs", where)
        if not isinstance(graphs, list) or not graphs:
            refuse(where, f"graphs must be a list of at least one graph, not {show(graphs)}")
        clip = Clip(
            uid=as_text(uid, where),
            video=as_text(field(raw, "video_uid", where), f"{where}: video_uid"),
            split=as_text(raw.get("split", ""), f"{where}: split"),
            width=width,
            height=height,
            graphs=tuple(
                _graph(graph, index, width, height, f"{where}: graph {index}", warnings)
                for index, graph in enumerate(graphs, 1)
            ),
            narrations=_narrations(texts.get(uid), f"{narrations}: clip {uid}", warnings),
            start_frame=_start_frame(starts[uid], f"{spans}: clip {uid}") if uid in starts else None,
            votes={},
            purpose_count=as_whole(counts.get(uid, 0), f"{purpose_counts}: clip {uid}"),
        )
        if (start := clip.start_frame) is not None and start > (first := min(clip.graphs[0].frames.values())):
            refuse(f"{spans}: clip {uid}", f"it starts at frame {start}, behind its first annotated frame {first}")
        clip.votes.update(_votes(scores.get(uid, {}), clip, f"{votes}: clip {uid}", warnings))
        clips.append(clip)
    return clips, +warnings  # unary plus drops the kinds that did not occur


def clip_box(left: float, top: float, width: float, height: float, frame_width: int, frame_height: int) -> Box | str:
    """A pixel box as fractions of its frame, clipped to it; or the kind of warning where nothing is left of it."""
    if width <= 0 or height <= 0:
        return "boxes of no area"
    if left >= frame_width or top >= frame_height or left + width <= 0 or top + height <= 0:
        return "boxes wholly outside the frame"
    box = Box(
        max(left, 0) / frame_width,
        max(top, 0) / frame_height,
        min(left + width, frame_width) / frame_width,
        min(top + height, frame_height) / frame_height,
    )
    return box if box.left < box.right and box.top < box.bottom else "boxes of no area"


def action_of(triplets: tuple[tuple[str, str, str], ...]) -> Action | None:
    """The action of the triplets by the public notebook's rule: the last dobj is the object, hands are left out."""
    verb = next((tail for head, relation, tail in triplets if (head, relation) == ("CW", "verb")), None)
    dobj = [tail for _, relation, tail in triplets if relation == "dobj"]
    if not verb or not dobj:
        return None
    relations = tuple(
        (relation, tail)
        for _, relation, tail in triplets
        if relation not in ("verb", "dobj") and "hand" not in tail.lower()
    )
    return Action(verb, dobj[-1], relations)


def _graph(raw: Any, index: int, width: int, height: int, where: str, warnings: Counter[str]) -> Graph:
    triplets = _triplets(field(raw, "triplets", where), where)
    verbs = [tail for head, relation, tail in triplets if (head, relation) == ("CW", "verb")]
    if len(verbs) > 1:
        refuse(where, f"a graph has one verb, this one {len(verbs)}: {', '.join(verbs)}")
    frames = {stage: as_whole(field(raw, stage, where), f"{where}: {stage}") for stage in STAGES}
    if not frames["pre"] <= frames["pnr"] <= frames["post"]:
        refuse(where, f"frames must be in the order pre, pnr, post, not {', '.join(map(str, frames.values()))}")
    boxes = _boxes(raw.get("groundings") or {}, width, height, where, warnings)
    action = action_of(triplets)
    warnings["graphs without a verb"] += not verbs
    warnings["graphs without an action"] += action is None
    warnings["graphs without boxes"] += not any(boxes.values())
    uid = as_text(field(raw, "graph_uid", where), f"{where}: graph_uid")
    return Graph(index, uid, frames, triplets, boxes, action)


def _triplets(raw: Any, where: str) -> tuple[tuple[str, str, str], ...]:
    if not isinstance(raw, list):
        refuse(where, f"triplets must be a list, not {show(raw)}")
    triplets = []
    for triplet in raw:
        if not isinstance(triplet, list) or len(triplet) != 3:
            refuse(where, f"a triplet is [head, relation, tail], not {show(triplet)}")
        head, relation, tail = (as_text(part, f"{where}: triplet {show(triplet)}").strip() for part in triplet)
        if not tail:
            refuse(where, f"a triplet needs a tail: {show(triplet)}")
        triplets.append((head, relation, tail))
    return tuple(triplets)


def _boxes(raw: Any, width: int, height: int, where: str, warnings: Counter[str]) -> dict[str, dict[str, Box]]:
    if not isinstance(raw, dict) or not raw.keys() <= set(STAGES):
        refuse(where, f"groundings must be an object with the keys {', '.join(STAGES)}, not {show(raw)}")
    boxes: dict[str, dict[str, Box]] = {stage: {} for stage in STAGES}
    for stage in STAGES:
        of_stage = raw.get(stage) or {}
        if not isinstance(of_stage, dict):
            refuse(where, f"{stage} boxes must be an object {{name: box}}, not {show(of_stage)}")
        for name, sides in of_stage.items():
            here = f"{where}: {stage} box of {as_text(name, where)}"
            left, top, wide, high = (
                as_number(field(sides, side, here), f"{here}: {side}") for side in ("left", "top", "width", "height")
            )
            box = clip_box(left, top, wide, high, width, height)
            if isinstance(box, Box):
                boxes[stage][name] = box
            else:
                warnings[box] += 1
    return boxes


def _narrations(text: Any, where: str, warnings: Counter[str]) -> str:
    if not text:  # missing, null or empty: the context is the empty string
        warnings["clips without narrations"] += 1
        return ""
    return as_text(text, where)


def _start_frame(raw: Any, where: str) -> int:
    return as_whole(field(raw, "start_frame", where), f"{where}: start_frame")


def recorded_scores(path: Path) -> Any:
    """What a file of recorded votes has under `scores`: {clip: {graph index: score}}, not checked yet."""
    recorded = read_object(path)
    if (threshold := recorded.get("threshold", THRESHOLD)) != THRESHOLD:
        refuse(str(path), f"the votes are meant for a threshold of {show(threshold)}; the builder's is {THRESHOLD}")
    return field(recorded, "scores", str(path))


def _votes(raw: Any, clip: Clip, where: str, warnings: Counter[str]) -> dict[int, float]:
    """{graph index: score} of the clip's candidates; votes above 1 and votes for anything else are skipped."""
    if not isinstance(raw, dict):
        refuse(where, f"scores must be an object {{graph index: score}}, not {show(raw)}")
    known = {index for index, _ in candidates(clip)}
    votes = {}
    for key, value in raw.items():
        index = as_index(key)
        if index is None:
            refuse(where, f"a vote is for a graph index, a whole number from 1, not {show(key)}")
        score = as_number(value, f"{where}: graph {key}: score")
        if score < 0:
            refuse(f"{where}: graph {key}", f"a score is between 0 and 1, not {score:g}")
        if index not in known:
            warnings["votes for no candidate"] += 1
            warnings["votes for a graph that does not exist"] += not 1 <= index <= len(clip.graphs)
        warnings["votes above 1"] += score > 1
        if index in known and score <= 1:
            votes[index] = score
    return votes


def _of_known_clips(path: Path | None, raw: Any, clips: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(raw, dict):
        refuse(str(path), f"an object with a key per clip is needed, not {show(raw)}")
    for uid in raw:
        if uid not in clips:
            refuse(f"{path}: clip {uid}", "the annotations have no such clip")
    return raw


def _size(raw: Any, key: str, where: str) -> int:
    size = as_whole(field(raw, key, where), f"{where}: {key}")
    if size == 0:
        refuse(where, f"{key}, the size of the frame in pixels, is 0")
    return size
