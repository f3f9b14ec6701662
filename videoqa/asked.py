"""What a run asks and how: all that its config says but for the model. It is made and checked before a model is loaded,
so that a wrong argument is said in seconds.

    asked = Asked.of(track, about(track, place), "narrations")
    asked.check_place(Path("runs/mine"))
    rows, run = asked.begin(engine, Path("runs/mine"))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from videoqa import extras
from videoqa import frames as framing
from videoqa.asking import Asker, Way
from videoqa.benchmark import ScorerOptions, Track
from videoqa.choices import CIRCULAR
from videoqa.choosing import GENERATION
from videoqa.engines import Engine
from videoqa.errors import UserError
from videoqa.judge import Judge
from videoqa.rows import Row, clips_revision, questions, revision
from videoqa.rows import shard as part_of
from videoqa.runs import Run, asked_rows, check_place, whole_clips
from videoqa.videos import Videos


@dataclass(frozen=True, slots=True)
class Asked:
    """The questions of a run and the way they are put."""

    track: Track
    about: Mapping[str, Any]  # which rows, as a run's config says it
    prompt: str
    protocol: str | None  # None: the best that the engine has
    way: Way
    max_new_tokens: int
    policy: framing.Policy | None
    videos: Videos | None  # where the prompt shows frames
    clips: str | None  # where the clips of the data lie in their videos, where the prompt shows frames
    shard: str | None
    every: list[Row]  # before they are parted into shards
    rows: list[Row]  # that are asked
    experts: Mapping[str, str | None] | None = None  # of an agent: the spec of each; None: left out

    @classmethod
    def of(
        cls,
        track: Track,
        about: Mapping[str, Any],
        prompt: str | None = None,
        *,
        protocol: str | None = None,
        max_new_tokens: int | None = None,
        videos: Path | None = None,
        frames: str = str(framing.DEFAULT),
        shard: str | None = None,
        experts: Mapping[str, str | None] | None = None,
    ) -> Asked:
        """Raises UserError for everything that can be known to be wrong without a model."""
        prompt = prompt or track.way
        way = track.asked(prompt)
        policy = _policy(track, prompt, frames, videos)
        if about.get("repeats") and way.protocols:
            if protocol not in (None, GENERATION):
                raise UserError(f"--protocol {protocol}: is the same at every repeat; use generation")
            protocol = GENERATION
        way.check_protocol(protocol)
        if "captions" in about and not way.captions:
            showing = ", ".join(name for name, one in track.ways.items() if one.captions) or "no prompt"
            raise UserError(f"--captions is for {showing}, not for {prompt}")
        every = asked_rows(track, about)
        if way.captions and (silent := [row["id"] for row in every if not row["context"].strip()]):
            raise UserError(f"the prompt {prompt} shows captions, and {silent[0]} has none: give --captions")
        rows = part_of(way.of_its_types(every), shard)
        seen = _videos(track, about, policy, videos, rows)
        where = clips_revision(whole_clips(track, about["data"], about["config"])) if policy is not None else None
        longest = max_new_tokens or track.max_new_tokens
        return cls(track, about, prompt, protocol, way, longest, policy, seen, where, shard, every, rows, experts)

    @property
    def said(self) -> list[str]:
        """Lines for people: which data, which prompt."""
        limit = f" (limit {self.about['limit']:,})" if self.about["limit"] else ""
        data = f"data: {self.about['data']}, config {self.about['config']}, revision {revision(self.every)}"
        frames = f", frames {self.policy}" if self.policy is not None else ""
        many = questions(self.every)
        size = f"{len(self.every):,} rows" + (f" of {many:,} questions" if many < len(self.every) else "")
        return [f"{data}, {size}{limit}", f"prompt: {self.prompt}{frames}"]

    @property
    def known(self) -> dict[str, Any]:
        """What the run's config will say, but for what only the model knows."""
        known = {
            "format": 1,
            "track": self.track.name,
            **self.about,
            "revision": revision(self.every),
            "rows": questions(self.every),
            "prompt": self.prompt,
            "max_new_tokens": self.max_new_tokens,
            "frames": None if self.policy is None else str(self.policy),
            "shard": self.shard,
        }
        if self.way.agent is not None and self.experts is not None:
            named = self.way.agent.named
            known["experts"] = {k: None if spec is None else named(k, spec) for k, spec in self.experts.items()}
        return known if self.clips is None else known | {"clips": self.clips}

    def check_place(self, out: Path) -> None:
        """Raise RunMismatch where `out` holds something else, or a run of other questions or another prompt."""
        check_place(out, self.known)

    def begin(self, engine: Engine, out: Path) -> tuple[list[Row], Run]:
        """The rows to ask and the run folder, which is made or found to be of the same run."""
        settings = {**self.known, "model": engine.name, "model_settings": engine.settings}
        if (protocol := self.way.protocol(self.protocol, engine)) is not None:
            settings["protocol"] = protocol
        return self.rows, Run(out, settings)

    def agent(self, run: Run, others: Sequence[Path] = (), device: str = "auto") -> Asker | None:
        """The agent that asks, where the prompt has one. What the runs `others` have done is not done again; the models
        of its experts are loaded to `device`."""
        if self.way.agent is None or self.experts is None:
            return None
        specs = {name: spec for name, spec in self.experts.items() if spec is not None}
        return self.way.agent.open(specs, run.folder, others, device)


def about(
    track: Track,
    data: str,
    config: str | None = None,
    limit: int | None = None,
    order: str | None = None,
    captions: Path | None = None,
    stop_early: bool = False,
    repeats: int | None = None,
) -> dict[str, Any]:
    """Which rows are asked, as a run's config says it."""
    said: dict[str, Any] = {"data": data, "config": config or track.configs[0], "limit": limit}
    if stop_early and order != CIRCULAR and not track.grouped:
        raise UserError("--stop-early is for questions that are asked in every arrangement of their options")
    if track.grouped and order is not None:
        raise UserError(f"{track.title} has every arrangement of the options: --circular and --shuffle are not for it")
    if order is not None:
        said["order"] = order
    if stop_early:
        said["stop_early"] = True
    if captions is not None:
        said["captions"] = str(captions.resolve())
    if repeats is not None and repeats != 1:
        said["repeats"] = repeats
    return said


def order_of(circular: bool, shuffle: int | None) -> str | None:
    """The order of the options that the command line says."""
    if circular and shuffle is not None:
        raise UserError("--circular and --shuffle are two orders of the options: give one")
    return CIRCULAR if circular else None if shuffle is None else f"shuffle:{shuffle}"


def experts_of(
    track: Track, prompt: str | None, given: Sequence[str] | None, without: str | None
) -> dict[str, str | None] | None:
    """The spec of each expert of the prompt's agent, None for one that is left out; None where it has no agent. Raises
    UserError."""
    prompt = prompt or track.way
    agent = track.asked(prompt).agent
    if agent is None:
        if given or without is not None:
            having = ", ".join(name for name, way in track.ways.items() if way.agent) or "no prompt"
            raise UserError(f"--expert and --without are for {having}, not for {prompt}")
        return None
    left_out = [name.strip() for name in (without or "").split(",") if name.strip()]
    specs: dict[str, str] = {}
    for name, is_given, spec in (text.partition("=") for text in given or ()):
        if not is_given or not spec or name in specs:
            raise UserError(f"--expert {name}: give NAME=MODEL, each name once")
        specs[name] = spec
    for name in (*specs, *left_out):
        if name not in agent.experts:
            raise UserError(f"no expert is called {name!r}; there are {', '.join(agent.experts)}")
    for name, models in agent.experts.items():
        if name not in specs and name not in left_out:
            raise UserError(f"{name} has no model: give --expert {name}=MODEL ({models}), or leave it out (--without)")
    return {name: None if name in left_out else specs[name] for name in agent.experts}


def _policy(track: Track, prompt: str, frames: str, videos: Path | None) -> framing.Policy | None:
    """Which frames a prompt shows that shows any."""
    if not track.ways[prompt].frames:
        if videos is not None or frames != str(framing.DEFAULT):
            showing = ", ".join(name for name, way in track.ways.items() if way.frames)
            raise UserError(f"--videos and --frames are for the prompts {showing}, not for {prompt}")
        return None
    if videos is None:
        raise UserError(f"the prompt {prompt} shows frames: give --videos, the folder of the videos")
    return framing.Policy.parse(frames)


def _videos(
    track: Track, about: Mapping[str, Any], policy: framing.Policy | None, folder: Path | None, rows: list[Row]
) -> Videos | None:
    """The videos of the rows. Raises UserError where they cannot be read here, or the folder has none of them."""
    if policy is None or folder is None:
        return None
    for package in ("av", "PIL"):
        if find_spec(package) is None:
            raise UserError(extras.said(package))
    videos = Videos.of(folder, policy, whole_clips(track, about["data"], about["config"]))
    errors = {row["clip"]: videos.fault(row) for row in rows}
    if errors and all(errors.values()):
        clip, first = next(iter(errors.items()))
        raise UserError(f"--videos {folder}: has a video of none of the {len(errors)} clips; of {clip}: {first}")
    return videos


@dataclass(frozen=True, slots=True)
class Unloaded:
    """Stands for a judge that is not loaded yet, where only the options around it are checked: it can do everything."""

    name: str

    @property
    def settings(self) -> dict[str, Any]:
        return {}

    can_choose = True
    can_follow = True
    can_force = True

    def generate(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("this engine only stands for another")

    choice_logprobs = generate


def check_scorer(
    track: Track, judge: str | None, how: ScorerOptions, explain: int = 0, match: str | None = None
) -> str | None:
    """The spec of the engine that rates: the judge, or the one that matches replies to options. Says before hours of
    answering that it is missing or of no use, that its rubric cannot be read, or that its options do not go
    together."""
    if match is not None and not track.matches:
        raise UserError(f"--match: {track.title} matches no replies to options by an engine")
    if judge is not None and track.matches:
        raise UserError(f"{track.title} has no judge; --match ENGINE is for replies that name no option")
    judge = judge or match
    if track.rubric is not None and judge is None:
        raise UserError(f"the answers of {track.title} are rated by a judge: name one with --judge")
    scorer = track.scorer(None if judge is None else Unloaded(judge), how)
    if explain and not isinstance(scorer, Judge):
        raise UserError(f"--explain is for judges; {track.title} has none")
    return judge


def check_scorers(
    track: Track, judges: Sequence[str], how: ScorerOptions, explain: int = 0, match: str | None = None
) -> list[str | None]:
    """`check_scorer` of each judge of a panel, and of nobody where none is named."""
    if twice := sorted({judge for judge in judges if judges.count(judge) > 1}):
        raise UserError(f"--judge {twice[0]}: is given more than once")
    named: list[str | None] = [*judges]
    return [check_scorer(track, judge, how, explain, match) for judge in named or [None]]
