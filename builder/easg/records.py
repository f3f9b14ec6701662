"""The records of a scene-graph annotation: Clip, Graph, Box, Action.

One real graph of the public EASG file, as it comes in (boxes shortened):

    {"graph_uid": "258ce8...", "pre": 27105, "pnr": 27113, "post": 27141,
     "triplets": [["CW", "verb", "place"], ["place", "dobj", "cardboard"], ["place", "on", "table"],
                  ["place", "with", "both_hands"]],
     "groundings": {"pnr": {"cardboard": {"left": 511.51, "top": 701.87, "width": 383.31, "height": 308.2}}}}

and its action: Action(verb="place", object="cardboard", relations=(("on", "table"),)).
"""

from __future__ import annotations

from dataclasses import dataclass, field

FPS = 30  # of the full Ego4D videos that frame numbers and narration times refer to (EASG paper, section 3)
STAGES = ("pre", "pnr", "post")  # precondition, point of no return, postcondition


@dataclass(frozen=True, slots=True)
class Box:
    """Edges in fractions of the frame, 0 <= left < right <= 1 and 0 <= top < bottom <= 1."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Action:
    """What the camera wearer does in a graph, in the annotation's own words (`losse`, `bowl:1`)."""

    verb: str
    object: str
    relations: tuple[tuple[str, str], ...]  # (relation, tail), hands left out: (("from", "table"),)

    @property
    def indirect(self) -> str:
        """The relations as the public notebook joins them: "from table, with cutter"."""
        return ", ".join(f"{relation} {tail}" for relation, tail in self.relations)

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes two actions of a clip the same in step 1."""
        return self.verb, self.object, self.indirect


@dataclass(frozen=True, slots=True)
class Graph:
    """One annotated action. `index` counts from 1 within the clip and is what ids and votes refer to."""

    index: int
    uid: str  # repeats within some clips: no key
    frames: dict[str, int]  # stage -> frame of the full video
    triplets: tuple[tuple[str, str, str], ...]
    boxes: dict[str, dict[str, Box]]  # stage -> object -> box, clipped to the frame
    action: Action | None  # None: the graph has no verb or no object


@dataclass(frozen=True, slots=True)
class Clip:
    uid: str
    video: str
    split: str  # of EASG: train or val
    width: int
    height: int
    graphs: tuple[Graph, ...]
    narrations: str = ""  # "(891.97s) #C C places the cardboard ...", seconds of the full video
    start_frame: int | None = None  # of the clip in the full video; None: unknown
    votes: dict[int, float] = field(default_factory=dict)  # graph index -> recorded uniqueness score; empty: none
    purpose_count: int = 0  # purpose questions to make
