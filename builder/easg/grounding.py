"""Where the objects of a question are: the annotation's boxes of what question and answer name.

Example: "What did the camera wearer put into the cabinet?" - "jug" of graph 4 (boxes for jug, cabinet and left_hand at
its point of no return) is grounded by jug and cabinet; the hand is not named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from builder.easg.questions import Slots
from builder.easg.records import FPS, Action, Graph
from easg_bench import Evidence

ORDER = ("pnr", "pre", "post")  # the paper grounds at the point of no return, else at the other two


def of_action_question(slots: Slots, question: str, answer: str) -> tuple[list[Evidence], str | None]:
    """Boxes of the asked graph for the objects that slots and text name, and the stage that they are from.

    The stage is the first of pnr, pre, post with such a box; ([], None) where there is none. The names of the slots
    count besides the text, because the wording may change them: "tray" for `trey`, "another bowl" for `bowl:1`.
    """
    named = {plain(slots.action.object), *(plain(tail) for _, tail in slots.action.relations)}
    if slots.neighbour and slots.neighbour.action:
        named.add(plain(slots.neighbour.action.object))
    text = f"{question} {answer}".lower()
    for stage in ORDER:
        names = [name for name in slots.graph.boxes[stage] if plain(name) in named or occurs(plain(name), text)]
        if names:
            return [_evidence(slots.graph, stage, name) for name in names], stage
    return [], None


def of_purpose(name: str, actions: Iterable[tuple[Graph, Action]]) -> list[Evidence]:
    """Boxes of one object in every graph whose action names it, each at the first of pnr, pre, post that shows it."""
    evidence = []
    for graph, action in actions:
        if plain(name) in (plain(action.object), *(plain(tail) for _, tail in action.relations)):
            places = [(stage, box) for stage in ORDER for box in graph.boxes[stage] if plain(box) == plain(name)]
            evidence += [_evidence(graph, *places[0])] if places else []
    return evidence


def plain(name: str) -> str:
    """An object's name without the annotation's own spelling: `wire_cutter` -> "wire cutter"; marks (`bowl:1`) stay."""
    return name.replace("_", " ").strip().lower()


def _evidence(graph: Graph, stage: str, name: str) -> Evidence:
    frame, box = graph.frames[stage], graph.boxes[stage][name]
    return {
        "graph": graph.uid,
        "frame": frame,
        "seconds": frame / FPS,
        "object": name,
        "box": [box.left, box.top, box.right, box.bottom],
        "attribute": None,
    }


def occurs(name: str, text: str) -> bool:
    """Whether the name stands in the text as whole words: "pan" is not in "the panel"."""
    return name != "" and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None
