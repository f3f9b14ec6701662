"""Which actions of a clip are asked, and about what: steps 1-3 and 7 of the paper's pipeline (formats.md section 2).

Of the 6,250 real graphs 2,379 are candidates, 994 pass the vote, and 284 of them have an indirect relation and carry
the paper's 1,139 action questions. One of them, before it is put into words by wording.py:

    Slots(clip="4901cdd8-...", graph=<graph 4: put, jug, into cabinet>, type="before", neighbour=<graph 3: pick jug>)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from builder.easg.records import Action, Clip, Graph

THRESHOLD = 0.5  # a uniqueness score below this is kept (the paper's; recorded_votes.json repeats it)
SameFrame = Literal["last", "all"]


@dataclass(frozen=True, slots=True)
class Slots:
    """One action question before wording: which graph is asked, and what of it is the answer."""

    clip: str
    graph: Graph
    action: Action  # of `graph`
    type: Literal["direct", "indirect", "before", "after"]
    which: int | None = None  # indirect: index into action.relations of the one that is the answer
    neighbour: Graph | None = None  # before, after: the graph whose action is the answer

    @property
    def id(self) -> str:
        """`<clip>:<graph index>:<type>`, and for indirect the relation's number from 1 behind it."""
        number = "" if self.which is None else f":{self.which + 1}"
        return f"{self.clip}:{self.graph.index}:{self.type}{number}"

    @property
    def out_of_order(self) -> bool:
        """Whether the neighbour's point of no return is not earlier (before) or later (after) than the asked one.

        The file's order is kept all the same, as the paper does; 9 real rows are like this.
        """
        if self.neighbour is None:
            return False
        lead = self.graph.frames["pnr"] - self.neighbour.frames["pnr"]
        return lead <= 0 if self.type == "before" else lead >= 0


def candidates(clip: Clip) -> list[tuple[int, Action]]:
    """Step 1: (graph index, action) of the actions whose verb, object and relations occur once in the clip."""
    times = Counter(graph.action.key for graph in clip.graphs if graph.action)
    return [(graph.index, graph.action) for graph in clip.graphs if graph.action and times[graph.action.key] == 1]


def kept(clip: Clip, votes: Mapping[int, float], threshold: float = THRESHOLD) -> list[tuple[int, Action]]:
    """Step 2: the candidates whose uniqueness score is below the threshold; without a vote an action is not kept.

    `votes` is {graph index: score in 0..1}: the recorded ones (`clip.votes`) or a language model's.
    """
    return [(index, action) for index, action in candidates(clip) if votes.get(index, math.inf) < threshold]


def questions(clip: Clip, same_frame: SameFrame = "last") -> list[Slots]:
    """Steps 2, 3 and 7: the action questions of a clip, in the order of its graphs.

    `last`: of two asked actions with the same pnr frame only the later one stays, which is what the paper's key
    (clip, pnr frame) does (1,139 real questions); `all` keeps both (1,152).
    """
    pairs = [(clip.graphs[index - 1], action) for index, action in kept(clip, clip.votes) if action.relations]
    if same_frame == "last":
        pairs = list({graph.frames["pnr"]: (graph, action) for graph, action in pairs}.values())
        pairs.sort(key=lambda pair: pair[0].index)
    return [slots for graph, action in pairs for slots in _of_action(clip, graph, action)]


def _of_action(clip: Clip, graph: Graph, action: Action) -> list[Slots]:
    slots = [Slots(clip.uid, graph, action, "direct")]
    slots += [Slots(clip.uid, graph, action, "indirect", which=which) for which in range(len(action.relations))]
    previous = clip.graphs[graph.index - 2] if graph.index > 1 else None
    following = clip.graphs[graph.index] if graph.index < len(clip.graphs) else None
    if previous and not previous.action:
        return slots  # the public notebook then loses `after` too, and its counts are the paper's
    if previous:
        slots.append(Slots(clip.uid, graph, action, "before", neighbour=previous))
    if following and following.action:
        slots.append(Slots(clip.uid, graph, action, "after", neighbour=following))
    return slots
