"""The files that the demo's scenes become: annotations, narrations, votes, purpose counts and spans.

    python demo/scenes.py     # scenes.json -> data/*.json, which `python -m builder build --source demo/data` reads

scenes.json holds eight everyday scenes, invented for this project. A scene has its things and its steps. A thing is
[x, y, width, height] or [what it stands on, width, height]: centre and size in percent of the frame. A step is what
the camera wearer does:

    {"verb": "take", "object": "cup", "relations": ["from shelf"], "vote": 0.1, "says": "takes a cup down ..."}

Its other keys: `hand` ("right" if not given; "left", "both"), and `to`, what the object ends up at: a thing of the
scene, or "hand". Without `to` a relation that leads somewhere ("in rack") says it. `says` is the narration behind "The
camera wearer". A `vote` (uniqueness score) stands where no other step of the scene has the same verb, object and
relations: only such a step is a candidate of the uniqueness vote. One step becomes one action graph:

    {"graph_uid": "demo-tea-01", "pre": 3660, "pnr": 3687, "post": 3720,
     "triplets": [["CW", "verb", "take"], ["take", "dobj", "cup"], ["take", "from", "shelf"],
                  ["take", "with", "right_hand"]],
     "groundings": {"pre": {"cup": {"left": 1008, "top": 97, "width": 115, "height": 129}, "shelf": ...}, ...}}
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCENES = Path(__file__).resolve().with_name("scenes.json")
DATA = Path(__file__).resolve().parent / "data"
FPS = 30  # of the full video, which frame numbers count in

# the relations that take the object to their tail, unless the step says `to`
TAKES_TO = {"on", "onto", "in", "into", "to", "against", "around", "through"}
HOME = {"right": (80, 91), "left": (20, 91), "both": (50, 91)}  # a hand before it reaches out: centre, percent
HELD = {"right": (64, 84), "left": (36, 84), "both": (50, 84)}  # where a thing is held
HAND_SIZE = {"right": (13, 18), "left": (13, 18), "both": (32, 18)}
SPOTS = (0.5, 0.2, 0.8, 0.35, 0.65)  # where things stand on another thing, in parts of its width
KEYS = ("verb", "object", "relations", "hand", "to", "vote", "says")  # of a step


@dataclass(frozen=True, slots=True)
class Step:
    """One action, with the keys of scenes.json."""

    verb: str
    object: str
    relations: tuple[tuple[str, str], ...]  # (("from", "shelf"),)
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
    """One clip, with the keys of scenes.json."""

    clip: str
    video: str
    starts_s: int  # of the clip in the full video
    size: tuple[int, int]
    purposes: int  # purpose questions to make
    things: Mapping[str, tuple[float, float, float, float] | tuple[str, float, float]]  # (in the file: lists)
    steps: tuple[Step, ...]


def read(path: Path = SCENES) -> list[Scene]:
    """The scenes of a file like scenes.json. Raises ValueError for a step that is not as the module's text says."""
    scenes = []
    for raw in json.loads(path.read_text(encoding="utf-8")):
        steps = (_step(step, f"{path.name}: {raw['clip']}, step {k}") for k, step in enumerate(raw["steps"], 1))
        scenes.append(Scene(**{**raw, "size": tuple(raw["size"]), "steps": tuple(steps)}))
    return scenes


def _step(raw: dict[str, Any], where: str) -> Step:
    if unknown := sorted(raw.keys() - KEYS):
        raise ValueError(f"{where}: unknown key {unknown[0]}; the keys are {', '.join(KEYS)}")
    if missing := [key for key in ("verb", "object", "says") if key not in raw]:
        raise ValueError(f"{where}: {missing[0]} is missing")
    if (hand := raw.get("hand", "right")) not in HOME:
        raise ValueError(f"{where}: hand {hand!r}; allowed are {', '.join(HOME)}")
    relations = []
    for text in raw.get("relations", ()):
        relation, blank, tail = text.partition(" ")
        if not blank:
            raise ValueError(f"{where}: a relation is a word and a thing, such as 'from shelf', not {text!r}")
        relations.append((relation, tail))
    return Step(raw["verb"], raw["object"], tuple(relations), hand, raw.get("to"), raw.get("vote"), raw["says"])


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
        in_view = dict.fromkeys(thing for thing in [*named, step.target, *moving] if thing in self.centre)
        stages = {"pre": {thing: self._box(thing, self.centre[thing]) for thing in in_view}}
        stages["pre"][hand] = self._box(hand, HOME[step.hand])
        for stage, way in (("pnr", 0.25), ("post", 1.0)):
            at = (x + way * (end[0] - x), y + way * (end[1] - y))
            self._move(name, at)
            for tool in step.tools:
                self._move(tool, self._inside(tool, at))
            stages[stage] = {thing: self._box(thing, self.centre[thing]) for thing in in_view}
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


def files(scenes: Sequence[Scene]) -> dict[str, dict[str, Any]]:
    """File name -> content, the five inputs of the builder. Raises ValueError for a vote that cannot be."""
    clips: dict[str, dict[str, Any]] = {
        scene.clip: {
            "video_uid": scene.video,
            "split": "val",
            "W": scene.size[0],
            "H": scene.size[1],
            "graphs": _graphs(scene),
        }
        for scene in scenes
    }
    narrations, votes = {}, {}
    for scene in scenes:
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
        "recorded_purpose_counts.json": {scene.clip: scene.purposes for scene in scenes},
        "clip_spans.json": {
            scene.clip: {
                "start_frame": scene.starts_s * FPS,
                "first_frame": clips[scene.clip]["graphs"][0]["pre"],
                "last_frame": clips[scene.clip]["graphs"][-1]["post"],
            }
            for scene in scenes
        },
    }


def text(content: dict[str, Any]) -> str:
    """JSON with one line per key of the outermost object, so that a changed scene is one changed line."""
    lines = (f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in content.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write(folder: Path) -> None:
    """Write the five files into a folder."""
    contents = {name: text(content) for name, content in files(read()).items()}
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        beside = folder / f"{name}.new"
        beside.write_text(content, encoding="utf-8")
        beside.replace(folder / name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the demo's annotation files.")
    parser.add_argument("--out", type=Path, default=DATA, help="folder to write into (%(default)s)")
    write(parser.parse_args().out)
