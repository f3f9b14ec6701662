"""The demo benchmark's source: eight everyday scenes, invented for this project, and the files that they become.

    python demo/scenes.py     # writes demo/data/*.json, which `python -m builder build --source demo/data` reads

A scene lists its things (where each is seen, in percent of the frame) and its steps (what the camera wearer does). One
step becomes one action graph of the EASG schema, boxes included, plus one narration:

    do("take", "cup", "from shelf", to="hand", vote=0.1, says="takes a cup down from the shelf")

    {"graph_uid": "demo-tea-01", "pre": 3660, "pnr": 3687, "post": 3720,
     "triplets": [["CW", "verb", "take"], ["take", "dobj", "cup"], ["take", "from", "shelf"],
                  ["take", "with", "right_hand"]],
     "groundings": {"pre": {"cup": {"left": 1008, "top": 97, "width": 115, "height": 129}, "shelf": ...}, ...}}

A vote stands where the step's action is a candidate of the uniqueness vote: no other step of the scene has the same
verb, object and relations. `write` checks that.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent / "data"
FPS = 30  # of the full video, which frame numbers count in

# Which relation takes the object to its tail, unless the step says `to`.
TAKES_TO = {"on", "onto", "in", "into", "to", "against", "around", "through"}
HOME = {"right": (80, 91), "left": (20, 91), "both": (50, 91)}  # a hand before it reaches out: centre, percent
HELD = {"right": (64, 84), "left": (36, 84), "both": (50, 84)}  # where a thing is held
HAND_SIZE = {"right": (13, 18), "left": (13, 18), "both": (32, 18)}
SPOTS = (0.5, 0.2, 0.8, 0.35, 0.65)  # where things stand on another thing, in parts of its width


@dataclass(frozen=True, slots=True)
class Step:
    """One action. `to` names what its object ends up at: a thing of the scene, or "hand"."""

    verb: str
    object: str
    relations: tuple[tuple[str, str], ...]
    hand: str
    to: str | None
    vote: float | None
    says: str

    @property
    def key(self) -> tuple[str, str, tuple[tuple[str, str], ...]]:
        return self.verb, self.object, self.relations

    @property
    def hand_label(self) -> str:
        return "both_hands" if self.hand == "both" else f"{self.hand}_hand"

    @property
    def tools(self) -> list[str]:
        return [tail for relation, tail in self.relations if relation == "with"]

    @property
    def target(self) -> str | None:
        """The thing that the object is brought to, "hand", or None: it stays where it is."""
        if self.to is not None:
            return self.to
        tails = [tail for relation, tail in self.relations if relation in TAKES_TO]
        return tails[0] if tails else "hand" if any(r == "from" for r, _ in self.relations) else None


@dataclass(frozen=True, slots=True)
class Scene:
    """`things`: name -> (x, y, width, height) or (name of what it is on, width, height); centre and size, percent."""

    clip: str
    video: str
    starts_s: int  # of the clip in the full video
    size: tuple[int, int]
    purposes: int
    things: Mapping[str, tuple[float, float, float, float] | tuple[str, float, float]]
    steps: tuple[Step, ...]


def do(
    verb: str,
    object: str,
    *relations: str,
    says: str,
    hand: str = "right",
    to: str | None = None,
    vote: float | None = None,
) -> Step:
    """A step as it is written below; a relation reads "from shelf"."""
    pairs = tuple((relation.split(" ", 1)[0], relation.split(" ", 1)[1]) for relation in relations)
    return Step(verb, object, pairs, hand, to, vote, says)


SCENES = (
    Scene(
        "demo-tea",
        video="demo-kitchen",
        starts_s=120,
        size=(1440, 1080),
        purposes=2,
        things={
            "counter": (50, 62, 96, 36),
            "shelf": (74, 15, 46, 18),
            "cup": ("shelf", 8, 12),
            "kettle": ("counter", 16, 24),
            "switch": ("kettle", 4, 5),
            "tap": (14, 30, 12, 26),
            "box": ("counter", 13, 12),
            "teabag": ("box", 5, 6),
            "water": ("kettle", 9, 10),
            "spoon": ("counter", 14, 4),
        },
        steps=(
            do("take", "cup", "from shelf", vote=0.1, says="takes a cup down from the shelf"),
            do("put down", "cup", to="counter", vote=0.5, says="puts the cup on the counter"),
            do("pick up", "kettle", to="hand", says="picks up the kettle by its handle"),
            do("turn on", "tap", hand="left", vote=0.3, says="turns the tap on"),
            do("fill", "kettle", to="tap", vote=0.2, says="holds the kettle under the tap and fills it"),
            do("turn off", "tap", hand="left", vote=0.4, says="turns the tap off"),
            do("put down", "kettle", to="counter", says="puts the kettle back on the counter"),
            do("press", "switch", vote=0.1, says="presses the switch of the kettle"),
            do("open", "box", hand="both", vote=0.3, says="opens the box of teabags"),
            do("drop", "teabag", to="cup", vote=0.5, says="drops a teabag into the cup"),
            do("pick up", "kettle", to="hand", says="picks up the kettle"),
            do("pour", "water", to="cup", vote=0.2, says="pours the hot water over the teabag"),
            do("put down", "kettle", to="counter", says="puts the kettle down"),
            do("pick up", "spoon", to="hand", vote=0.4, says="picks up a spoon"),
            do(
                "remove",
                "teabag",
                "from cup",
                "with spoon",
                to="counter",
                vote=0.0,
                says="fishes the teabag out of the cup with the spoon",
            ),
            do("lift", "cup", hand="both", to="hand", vote=0.2, says="lifts the cup and blows on the tea"),
        ),
    ),
    Scene(
        "demo-dishes",
        video="demo-kitchen",
        starts_s=600,
        size=(1440, 1080),
        purposes=1,
        things={
            "sink": (42, 66, 56, 46),
            "tap": (42, 24, 12, 30),
            "rack": (85, 52, 28, 40),
            "sponge": (8, 56, 11, 8),
            "bottle": (8, 28, 9, 28),
            "soap": ("bottle", 6, 8),
            "plate": ("sink", 22, 18),
            "glass": ("sink", 9, 15),
            "pan": ("sink", 24, 20),
        },
        steps=(
            do("turn on", "tap", hand="left", vote=0.3, says="turns on the tap"),
            do("pick up", "sponge", to="hand", vote=0.1, says="picks up the sponge"),
            do(
                "squeeze",
                "soap",
                "onto sponge",
                hand="left",
                vote=0.0,
                says="squeezes some soap onto the sponge",
            ),
            do("scrub", "plate", hand="both", says="scrubs a plate"),
            do("rinse", "plate", hand="both", vote=0.6, says="rinses the plate under the tap"),
            do("put", "plate", "in rack", says="puts the plate in the rack"),
            do("scrub", "plate", hand="both", says="scrubs the other plate"),
            do("put", "plate", "in rack", says="puts the other plate in the rack"),
            do("wash", "glass", hand="both", vote=0.4, says="washes a glass"),
            do("place", "glass", to="rack", vote=0.6, says="places the glass beside the plates"),
            do("scrub", "pan", vote=0.5, says="scrubs the pan"),
            do("turn off", "tap", hand="left", vote=0.3, says="turns off the tap"),
        ),
    ),
    Scene(
        "demo-plant",
        video="demo-balcony",
        starts_s=0,
        size=(1920, 1080),
        purposes=1,
        things={
            "bench": (50, 66, 96, 40),
            "bag": (12, 34, 22, 44),
            "soil": ("bag", 8, 9),
            "container": (38, 56, 12, 18),
            "plant": ("container", 11, 30),
            "roots": ("plant", 8, 9),
            "pot": (68, 56, 18, 26),
            "trowel": ("bench", 14, 6),
            "watering can": (90, 38, 16, 24),
        },
        steps=(
            do("pick up", "trowel", to="hand", says="picks up the trowel"),
            do(
                "scoop",
                "soil",
                "from bag",
                "with trowel",
                vote=0.2,
                says="scoops fresh soil from the bag with the trowel",
            ),
            do("pour", "soil", "into pot", says="pours the soil into the pot"),
            do("put down", "trowel", to="bench", vote=0.4, says="puts the trowel down on the bench"),
            do("squeeze", "container", hand="both", vote=0.2, says="squeezes the container to free the plant"),
            do("remove", "plant", "from container", vote=0.1, says="pulls the plant out of the container"),
            do("loosen", "roots", hand="both", vote=0.0, says="loosens the roots with the fingers"),
            do("place", "plant", hand="both", to="pot", vote=0.5, says="places the plant in the pot"),
            do("pick up", "trowel", to="hand", says="picks up the trowel again"),
            do("pour", "soil", "into pot", says="pours more soil into the pot"),
            do("press", "soil", hand="both", vote=0.3, says="presses the soil down around the stem"),
            do("lift", "watering can", to="hand", vote=0.2, says="lifts the watering can"),
            do("water", "plant", vote=0.1, says="waters the plant"),
        ),
    ),
    Scene(
        "demo-tyre",
        video="demo-workshop",
        starts_s=45,
        size=(1440, 1080),
        purposes=2,
        things={
            "floor": (50, 78, 98, 42),
            "bicycle": (46, 34, 70, 54),
            "wheel": (68, 44, 28, 36),
            "nut": (68, 44, 4, 5),
            "tyre": ("wheel", 26, 33),
            "tube": ("tyre", 22, 26),
            "wrench": (10, 70, 16, 5),
            "lever": (12, 82, 12, 4),
            "sandpaper": (28, 90, 8, 6),
            "glue": (90, 74, 5, 9),
            "patch": (92, 88, 5, 5),
            "pump": (92, 52, 9, 36),
        },
        steps=(
            do("turn over", "bicycle", hand="both", vote=0.1, says="turns the bicycle upside down"),
            do("loosen", "nut", "with wrench", vote=0.0, says="loosens the nut of the axle with a wrench"),
            do("take off", "wheel", hand="both", to="floor", vote=0.3, says="takes the wheel off and lays it down"),
            do("pick up", "lever", to="hand", vote=0.4, says="picks up a tyre lever"),
            do(
                "remove",
                "tyre",
                "from wheel",
                "with lever",
                vote=0.2,
                says="prises the tyre off the wheel with the lever",
            ),
            do("pull out", "tube", hand="left", to="hand", vote=0.1, says="pulls the tube out of the tyre"),
            do("hold", "tube", hand="left", says="holds the tube up to look for the hole"),
            do("pick up", "sandpaper", to="hand", vote=0.4, says="picks up a piece of sandpaper"),
            do("sand", "tube", vote=0.3, says="sands the rubber around the hole"),
            do("hold", "tube", hand="left", says="holds the tube still"),
            do("apply", "glue", to="tube", vote=0.1, says="spreads glue over the hole"),
            do("press", "patch", to="tube", vote=0.2, says="presses a patch onto the glue"),
            do("insert", "tube", hand="both", to="tyre", vote=0.3, says="tucks the tube back into the tyre"),
            do("inflate", "tyre", hand="both", vote=0.1, says="pumps the tyre up"),
        ),
    ),
    Scene(
        "demo-shirt",
        video="demo-laundry",
        starts_s=30,
        size=(1440, 1080),
        purposes=1,
        things={
            "board": (50, 60, 84, 40),
            "basket": (14, 28, 24, 26),
            "shirt": ("basket", 20, 24),
            "collar": ("shirt", 8, 5),
            "sleeve": ("shirt", 7, 14),
            "iron": ("board", 12, 12),
            "plug": (92, 32, 6, 7),
            "hanger": (66, 20, 24, 14),
        },
        steps=(
            do("insert", "plug", vote=0.1, says="pushes the plug of the iron into the socket"),
            do("pick up", "shirt", hand="left", to="hand", vote=0.3, says="picks up a shirt from the basket"),
            do("spread", "shirt", hand="both", to="board", vote=0.2, says="spreads the shirt out on the board"),
            do("pick up", "iron", to="hand", says="picks up the iron"),
            do("iron", "collar", vote=0.1, says="irons the collar"),
            do("iron", "sleeve", says="irons the left sleeve"),
            do("put down", "iron", to="board", says="puts the iron down"),
            do("turn over", "shirt", hand="both", vote=0.2, says="turns the shirt over"),
            do("pick up", "iron", to="hand", says="picks up the iron again"),
            do("iron", "sleeve", says="irons the right sleeve"),
            do("put down", "iron", to="board", says="puts the iron down"),
            do("hang", "shirt", "on hanger", hand="both", vote=0.0, says="hangs the shirt on a hanger"),
            do("fasten", "collar", hand="both", vote=0.2, says="fastens the top button of the collar"),
        ),
    ),
    Scene(
        "demo-shelf",
        video="demo-hallway",
        starts_s=210,
        size=(1920, 1080),
        purposes=1,
        things={
            "wall": (50, 38, 98, 70),
            "floor": (50, 88, 98, 22),
            "spirit level": ("floor", 26, 5),
            "pencil": ("floor", 9, 3),
            "drill": ("floor", 14, 15),
            "hole": (58, 36, 3, 4),
            "dowel": (36, 90, 4, 3),
            "bracket": (30, 84, 9, 14),
            "screw": (58, 36, 3, 5),
            "plank": (84, 62, 28, 7),
        },
        steps=(
            do("pick up", "spirit level", hand="both", to="hand", vote=0.3, says="picks up the spirit level"),
            do(
                "hold",
                "spirit level",
                "against wall",
                hand="both",
                vote=0.1,
                says="holds the spirit level against the wall",
            ),
            do("grab", "pencil", to="hand", vote=0.2, says="grabs the pencil"),
            do("mark", "wall", says="marks the first spot on the wall"),
            do("mark", "wall", says="marks the second spot"),
            do("lift", "drill", to="hand", vote=0.2, says="lifts the drill"),
            do("drill", "hole", says="drills the first hole"),
            do("drill", "hole", says="drills the second hole"),
            do("put down", "drill", to="floor", vote=0.3, says="puts the drill on the floor"),
            do("push", "dowel", to="hole", says="pushes a dowel into the first hole"),
            do("push", "dowel", to="hole", says="pushes a dowel into the second hole"),
            do("position", "bracket", hand="left", to="wall", vote=0.4, says="positions the bracket over the holes"),
            do("tighten", "screw", says="tightens the upper screw"),
            do("tighten", "screw", says="tightens the lower screw"),
            do("place", "plank", hand="both", to="bracket", vote=0.2, says="places the plank on the brackets"),
        ),
    ),
    Scene(
        "demo-parcel",
        video="demo-desk",
        starts_s=15,
        size=(1440, 1080),
        purposes=1,
        things={
            "table": (50, 64, 98, 68),
            "box": (26, 46, 34, 34),
            "paper": (76, 42, 34, 26),
            "book": (64, 70, 16, 12),
            "tape": (88, 72, 9, 9),
            "pen": (88, 86, 12, 3),
            "label": (50, 90, 14, 9),
            "address": (94, 86, 9, 4),
            "string": (12, 80, 14, 9),
        },
        steps=(
            do("unfold", "box", hand="both", vote=0.2, says="unfolds a flat cardboard box"),
            do("wrap", "paper", "around book", hand="both", vote=0.0, says="wraps brown paper around a book"),
            do("tear", "tape", hand="both", says="tears off a strip of tape"),
            do("place", "book", hand="both", to="box", vote=0.5, says="places the book in the box"),
            do("close", "box", hand="both", vote=0.1, says="closes the lid of the box"),
            do("tear", "tape", hand="both", says="tears off a longer strip of tape"),
            do("seal", "box", hand="both", vote=0.2, says="seals the box"),
            do("pick up", "pen", to="hand", vote=0.3, says="picks up a pen"),
            do("write", "address", "on label", vote=0.0, says="writes the address on a label"),
            do("peel off", "label", hand="both", to="hand", vote=0.3, says="peels the label off its backing"),
            do("stick", "label", to="box", vote=0.5, says="sticks the label onto the box"),
            do("cut", "string", hand="both", vote=0.2, says="cuts a length of string"),
            do("tie", "string", hand="both", to="box", vote=0.2, says="ties the string around the box"),
        ),
    ),
    Scene(
        "demo-guitar",
        video="demo-music-room",
        starts_s=300,
        size=(1440, 1080),
        purposes=1,
        things={
            "case": (50, 52, 92, 62),
            "guitar": ("case", 76, 30),
            "bridge": ("guitar", 7, 14),
            "peg": (84, 50, 5, 6),
            "string": ("guitar", 62, 3),
            "fretboard": ("guitar", 34, 9),
            "cloth": (10, 86, 13, 10),
            "packet": (88, 88, 12, 10),
            "pliers": (30, 90, 12, 6),
        },
        steps=(
            do("open", "case", hand="both", vote=0.1, says="opens the guitar case"),
            do("turn", "peg", says="turns a peg to slacken the string"),
            do("unwind", "string", hand="both", vote=0.3, says="unwinds the old string"),
            do("pull off", "string", hand="both", to="hand", vote=0.4, says="pulls the old string off"),
            do("grab", "cloth", to="hand", vote=0.2, says="grabs a cloth"),
            do("wipe", "fretboard", vote=0.1, says="wipes the fretboard clean"),
            do("tear", "packet", hand="both", to="hand", vote=0.2, says="tears open the packet of the new string"),
            do("thread", "string", "through bridge", vote=0.0, says="threads the new string through the bridge"),
            do("hold", "string", hand="left", vote=0.5, says="holds the string tight"),
            do("turn", "peg", says="turns the peg until the string is tight"),
            do("pick up", "pliers", to="hand", vote=0.3, says="picks up the pliers"),
            do("trim", "string", vote=0.4, says="trims the end of the string"),
            do("strum", "guitar", vote=0.1, says="strums the guitar"),
        ),
    ),
)


class _Stage:
    """Where the things of a scene are while its steps happen; centres in percent of the frame."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.size: dict[str, tuple[float, float]] = {}
        self.centre: dict[str, tuple[float, float]] = {}
        self.rests: dict[str, tuple[str, int]] = {}  # thing -> what it is on, and on which spot there
        for name, thing in scene.things.items():
            self.size[name] = (thing[-2], thing[-1])
            if isinstance(thing[0], str):
                self.centre[name] = self._settle(name, thing[0])
            else:
                self.centre[name] = (thing[0], thing[1])

    def _settle(self, name: str, base: str) -> tuple[float, float]:
        """Put the thing on the first free spot of another one."""
        self.rests.pop(name, None)
        taken = {spot for holder, spot in self.rests.values() if holder == base}
        spot = next((k for k in range(len(SPOTS)) if k not in taken), 0)
        self.rests[name] = (base, spot)
        (x, y), width = self.centre[base], self.size[base][0]
        return self._inside(name, (x + (SPOTS[spot] - 0.5) * max(width - self.size[name][0], 0), y))

    def _inside(self, name: str, centre: tuple[float, float]) -> tuple[float, float]:
        """The nearest centre at which the whole thing is in the frame."""
        width, height = self.size[name]
        return min(max(centre[0], width / 2), 100 - width / 2), min(max(centre[1], height / 2), 100 - height / 2)

    def _riders(self, name: str) -> list[str]:
        """The thing itself and all that rests on it: what moves when it moves."""
        above = [rider for rider, (base, _) in self.rests.items() if base == name]
        return [name, *(thing for rider in above for thing in self._riders(rider))]

    def _move(self, name: str, to: tuple[float, float]) -> None:
        dx, dy = to[0] - self.centre[name][0], to[1] - self.centre[name][1]
        for thing in self._riders(name):
            x, y = self.centre[thing]
            self.centre[thing] = self._inside(thing, (x + dx, y + dy))

    def play(self, step: Step) -> dict[str, dict[str, dict[str, int]]]:
        """The boxes of one step in pixels: the hand comes (pre), touches (pnr), has done it (post)."""
        name, hand = step.object, step.hand_label
        self.size[hand] = HAND_SIZE[step.hand]
        x, y = self.centre[name]
        if step.target == "hand":
            self.rests.pop(name, None)
            end = self._inside(name, HELD[step.hand])
        else:
            end = self._settle(name, step.target) if step.target else (x, y)
        for tool in step.tools:
            self.rests.pop(tool, None)

        moving = self._riders(name) if end != (x, y) else []
        named = [name, *(tail for _, tail in step.relations)]
        seen = dict.fromkeys(thing for thing in [*named, step.target, *moving] if thing in self.centre)
        stages = {"pre": {thing: self._box(thing, self.centre[thing]) for thing in seen}}
        stages["pre"][hand] = self._box(hand, HOME[step.hand])
        for stage, way in (("pnr", 0.25), ("post", 1.0)):
            at = (x + way * (end[0] - x), y + way * (end[1] - y))
            self._move(name, at)
            for tool in step.tools:
                self._move(tool, self._inside(tool, at))
            stages[stage] = {thing: self._box(thing, self.centre[thing]) for thing in seen}
            stages[stage][hand] = self._box(hand, self._inside(hand, self.centre[(step.tools or [name])[0]]))
        return stages

    def _box(self, name: str, centre: tuple[float, float]) -> dict[str, int]:
        (x, y), (width, height), (frame_width, frame_height) = centre, self.size[name], self.scene.size
        return {
            "left": int((x - width / 2) / 100 * frame_width),
            "top": int((y - height / 2) / 100 * frame_height),
            "width": int(width / 100 * frame_width),
            "height": int(height / 100 * frame_height),
        }


def _graphs(scene: Scene) -> list[dict[str, Any]]:
    stage, frame, graphs = _Stage(scene), scene.starts_s * FPS + 60, []
    for index, step in enumerate(scene.steps, 1):
        relations = [*step.relations, ("with", step.hand_label)]
        pnr = frame + 24 + index % 3 * 3
        post = pnr + 33 + index % 4 * 6
        graphs.append(
            {
                "graph_uid": f"{scene.clip}-{index:02}",
                "pre": frame,
                "pnr": pnr,
                "post": post,
                "triplets": [
                    ["CW", "verb", step.verb],
                    [step.verb, "dobj", step.object],
                    *([step.verb, relation, tail] for relation, tail in relations),
                ],
                "groundings": stage.play(step),
            }
        )
        frame = post + 45 + index % 5 * 9
    return graphs


def files() -> dict[str, dict[str, Any]]:
    """File name -> content, the five inputs of the builder."""
    clips: dict[str, dict[str, Any]] = {
        scene.clip: {
            "video_uid": scene.video,
            "split": "val",
            "W": scene.size[0],
            "H": scene.size[1],
            "graphs": _graphs(scene),
        }
        for scene in SCENES
    }
    narrations, votes = {}, {}
    for scene in SCENES:
        narrations[scene.clip] = "\n".join(
            f"({graph['pnr'] / FPS:.2f}s) #C C {step.says}."
            for graph, step in zip(clips[scene.clip]["graphs"], scene.steps, strict=True)
        )
        times = Counter(step.key for step in scene.steps)
        for index, step in enumerate(scene.steps, 1):
            if (times[step.key] == 1) != (step.vote is not None):
                raise ValueError(
                    f"{scene.clip}, step {index} ({step.verb} {step.object}): done {times[step.key]} times, "
                    f"its vote is {step.vote}; an action that is done once has one, others have none"
                )
        votes[scene.clip] = {str(i): step.vote for i, step in enumerate(scene.steps, 1) if step.vote is not None}
    return {
        "EASG_unict_master_final.json": clips,
        "clip_narrations.json": narrations,
        "recorded_votes.json": {"threshold": 0.5, "inferred_clips": [], "scores": votes},
        "recorded_purpose_counts.json": {scene.clip: scene.purposes for scene in SCENES},
        "clip_spans.json": {
            scene.clip: {
                "start_frame": scene.starts_s * FPS,
                "first_frame": clips[scene.clip]["graphs"][0]["pre"],
                "last_frame": clips[scene.clip]["graphs"][-1]["post"],
            }
            for scene in SCENES
        },
    }


def text(content: dict[str, Any]) -> str:
    """JSON with one line per key of the outermost object, so that a changed scene is one changed line."""
    lines = (f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in content.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write(folder: Path) -> None:
    """Write the five files into a folder."""
    contents = {name: text(content) for name, content in files().items()}
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        beside = folder / f"{name}.new"
        beside.write_text(content, encoding="utf-8")
        beside.replace(folder / name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the demo's annotation files.")
    parser.add_argument("--out", type=Path, default=DATA, help="folder to write into (%(default)s)")
    write(parser.parse_args().out)
