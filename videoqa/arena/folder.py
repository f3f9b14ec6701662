"""The folder of an arena: all that is compared and all that was said of it, each line as soon as it is known.

ARENA/config.json    the benchmark and the revision of its questions; the players: which run each is
ARENA/pairs.jsonl    every pair with its question and both answers, so that the arena needs no run folder any more
ARENA/verdicts.jsonl every verdict of an engine, one line for each pair and order
ARENA/votes.jsonl    every vote of a person
ARENA/ratings.json   the figures that summary.py makes of them

{"id": "0a1b2c3d4e5f", "row": "17", "clip": "12", "video": "12", "question": "Why ...?", "context": "...",
 "truth": "...", "a": "org/model", "b": "org/other", "answer_a": "...", "answer_b": "..."}
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from videoqa.arena.referee import Battle, Decision, Referee, answered, decided, prompt, without_asking
from videoqa.arena.votes import SEED, Vote, Votes, pairs
from videoqa.benchmark import Track, track
from videoqa.errors import UserError
from videoqa.files import Lines, record_in, short_hash, write_json, write_text
from videoqa.folders import without_folders
from videoqa.reply import Verdict
from videoqa.rows import Row
from videoqa.runs import NOT_ASKED, Run, rows_of
from videoqa.store import VERDICT_KINDS, VerdictStore, line_of, prompt_hash, verdict_of

FORMAT = 1
ORDERS = ("ab", "ba")  # which answer stands first
CONFIG, PAIRS, VERDICTS, VOTES = "config.json", "pairs.jsonl", "verdicts.jsonl", "votes.jsonl"


@dataclass(frozen=True, slots=True)
class Match:
    """Two players' answers to one question, with all that a judge or a person has to know."""

    id: str
    row: str  # id of the question
    clip: str
    video: str
    question: str
    context: str
    truth: str
    a: str  # players
    b: str
    answer_a: str  # without the model's thinking; may be empty
    answer_b: str

    def battle(self, order: str) -> Battle:
        """The two answers as a referee sees them in this order."""
        answers = (self.answer_a, self.answer_b) if order == "ab" else (self.answer_b, self.answer_a)
        return Battle(self.question, *answers, self.truth, self.context)

    @property
    def whole(self) -> bool:
        """Whether there is something to be compared: neither answer is empty, and they differ."""
        return bool(self.answer_a) and bool(self.answer_b) and self.answer_a != self.answer_b


class Arena:
    """An arena that is on disk. Raises UserError for a folder that is none."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        path = self.folder / CONFIG
        if not path.exists():
            raise UserError(f"{self.folder} is no arena: it has no {CONFIG}; `easg-bench arena pairs` makes one")
        config = record_in(path.read_bytes())
        if config is None or not isinstance(config.get("players"), list):
            raise UserError(f"{self.folder} is no arena: its {CONFIG} is something else")
        if config.get("format") != FORMAT:
            raise UserError(f"{path} was written by another easg-bench (format {config.get('format')}, not {FORMAT})")
        self.config: dict[str, Any] = config
        names = Match.__dataclass_fields__
        lines = Lines(self.folder / PAIRS, *names, kinds=dict.fromkeys(names, str))
        self.matches = [Match(**{name: line[name] for name in names}) for line in lines.read()]
        self.verdicts_file = Lines(
            self.folder / VERDICTS, "pair", "order", "judge", "score", "status", kinds=VERDICT_KINDS | {"pair": str}
        )
        self.votes = Votes(self.folder / VOTES)

    @property
    def track(self) -> Track:
        """The benchmark that the questions are of."""
        return track(self.config["track"])

    @property
    def players(self) -> list[str]:
        """The names of all players."""
        return [player["name"] for player in self.config["players"]]

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep a second process from writing verdicts at the same time."""
        with (self.folder / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise UserError(f"{self.folder} is being judged by another process") from error
            yield

    def judges(self) -> list[str]:
        """The keys of the engines that gave verdicts, in the order of their first ones."""
        return list(dict.fromkeys(line["judge"] for line in self.verdicts_file.read()))

    def verdicts(self, judge: str) -> dict[tuple[str, str], Verdict]:
        """The judge's last verdict on each (pair, order)."""
        lines = (line for line in self.verdicts_file.read() if line["judge"] == judge)
        path = self.verdicts_file.path
        return {(line["pair"], line["order"]): verdict_of(line, f"{path}: {line['pair']}") for line in lines}

    def decisions(self, judge: str) -> dict[str, Decision]:
        """The outcome of each pair by this judge."""
        verdicts = self.verdicts(judge)
        return {m.id: decided(*(verdicts.get((m.id, order)) for order in ORDERS)) for m in self.matches}

    def engine_votes(self, judge: str) -> list[Vote]:
        """The judge's outcomes as votes, without the pairs that have none."""
        decisions = self.decisions(judge)
        return [
            Vote(judge, match.row, match.a, match.b, outcome, match.clip)
            for match in self.matches
            if (outcome := decisions[match.id].outcome) is not None
        ]


def judge_matches(
    arena: Arena, referee: Referee, store: VerdictStore | None, again: bool = False
) -> Iterator[tuple[str, str, Verdict]]:
    """Ask for the verdicts that the arena lacks; each is on disk when it comes out here, with its pair and order.
    Calls that failed are tried again, with `again` also replies that could not be read."""
    settled = ("ok", "empty_prediction") if again else ("ok", "empty_prediction", "unreadable", "truncated")
    known = arena.verdicts(referee.key)
    waiting: dict[str, list[tuple[str, str]]] = {}
    prompts: dict[str, Any] = {}

    def keep(pair: str, order: str, verdict: Verdict) -> tuple[str, str, Verdict]:
        arena.verdicts_file.append({"pair": pair, "order": order, "judge": referee.key, **line_of(verdict)})
        return pair, order, verdict

    for match in arena.matches:
        for order in ORDERS:
            if (verdict := known.get((match.id, order))) is not None and verdict.status in settled:
                continue
            battle = match.battle(order)
            if (verdict := without_asking(battle.first, battle.second)) is not None:
                yield keep(match.id, order, verdict)
                continue
            conversation = prompt(battle)
            digest = prompt_hash(conversation)
            if store is not None and (verdict := store.get(digest)) is not None and verdict.choice is not None:
                yield keep(match.id, order, verdict)
                continue
            prompts[digest] = conversation
            waiting.setdefault(digest, []).append((match.id, order))
    digests = list(prompts)
    for index, verdict in referee.rate_prompts([prompts[digest] for digest in digests]):
        if store is not None:
            store.put(digests[index], verdict)
        for pair, order in waiting[digests[index]]:
            yield keep(pair, order, verdict)


# -- making one -------------------------------------------------------------------------------------------------------


def made(runs: Sequence[Run], folder: str | Path, rounds: int | None = None, seed: int = SEED) -> Arena:
    """The arena of these runs: made, or found to be of the same answers. Raises UserError for runs that cannot be
    compared, and for a folder that holds something else."""
    folder = Path(folder)
    matches, config = _matches(runs, folder, rounds, seed)
    path = folder / CONFIG
    if path.exists():
        kept = Arena(folder)
        if differing := [key for key in config if config[key] != kept.config.get(key)]:
            raise UserError(
                f"{folder} is an arena of other answers or pairs ({', '.join(differing)} differ): give another --out"
            )
        return kept
    if folder.exists() and any(not one.name.startswith(".") for one in folder.iterdir()):
        raise UserError(f"{folder} holds something else than an arena: give another --out")
    write_text(folder / PAIRS, "".join(json.dumps(asdict(match)) + "\n" for match in matches))
    write_json(path, config)  # last: with it, the arena is whole
    return Arena(folder)


def _matches(runs: Sequence[Run], folder: Path, rounds: int | None, seed: int) -> tuple[list[Match], dict[str, Any]]:
    if len(runs) < 2:
        raise UserError(f"an arena needs two or more runs; {len(runs)} given")
    first = runs[0]
    if first.track.rubric is None:
        raise UserError(f"{first.folder}: {first.track.title} has no open answers to be compared")
    for run in runs[1:]:
        if (run.track.name, run.config["revision"]) != (first.track.name, first.config["revision"]):
            raise UserError(
                f"only runs on the same questions can be compared: {first.folder} has {first.track.name}, revision "
                f"{first.config['revision']}, {run.folder} {run.track.name}, revision {run.config['revision']}"
            )
    names = player_names(runs)
    rows: dict[str, Row] = {}
    answers: dict[str, dict[str, str]] = {}
    players = []
    for name, run in zip(names, runs, strict=True):
        mine = {row["id"]: row for row in rows_of(run)}
        given = run.answers()
        if choices := [id for id, row in mine.items() if row.get("choices")]:
            raise UserError(f"{run.folder}: question {choices[0]} has options; an arena compares open answers")
        rows |= mine
        answers[name] = {
            id: answered(given[id]["prediction"]) for id in mine if given.get(id, NOT_ASKED)["error"] is None
        }
        players.append(
            {
                "name": name,
                "run": os.path.relpath(run.folder.resolve(), folder.resolve()),  # says little of this machine
                "model": without_folders(run.config["model"]),
                "prompt": run.config["prompt"],
                "frames": run.config.get("frames"),
                "answers": short_hash(json.dumps(sorted(answers[name].items()))),
                "unanswered": len(mine) - len(answers[name]),
                "empty": sum(not text for text in answers[name].values()),
            }
        )
    drawn = pairs(answers, rounds, seed)
    matches = [
        _match(rows[pair.question], pair.a, pair.b, answers[pair.a][pair.question], answers[pair.b][pair.question])
        for pair in drawn
    ]
    if not matches:
        raise UserError("no question has answers of two of these runs")
    config = {
        "format": FORMAT,
        "track": first.track.name,
        "data": {key: first.config.get(key) for key in ("config", "revision")},
        "players": players,
        "rounds": rounds,
        "seed": seed,
    }
    return matches, config


def _match(row: Row, a: str, b: str, answer_a: str, answer_b: str) -> Match:
    id = short_hash("\n".join((row["id"], a, b, answer_a, answer_b)))
    return Match(
        id,
        row["id"],
        row["clip"],
        row["video"],
        row["question"],
        row["context"] or "",
        row["answer"] or "",
        a,
        b,
        answer_a,
        answer_b,
    )


def player_names(runs: Sequence[Run]) -> list[str]:
    """What each run is called: its model, with what tells it apart from others of the same model: the prompt, the
    frames, the folder, else its number."""
    told_apart: tuple[Callable[[Run], str], ...] = (
        lambda run: run.config["prompt"],
        lambda run: f"frames {run.config.get('frames')}",
        lambda run: f"run {run.folder.name}",
    )
    names = [without_folders(run.config["model"]) for run in runs]
    parts: list[list[str]] = [[] for _ in runs]
    shown = list(names)
    for tell in told_apart:
        alike = Counter(shown)
        if max(alike.values()) == 1:
            break
        groups: dict[str, set[str]] = {}
        for name, run in zip(shown, runs, strict=True):
            groups.setdefault(name, set()).add(tell(run))
        for at, run in enumerate(runs):
            if len(groups[shown[at]]) > 1:
                parts[at].append(tell(run))
        shown = [f"{name} ({', '.join(of)})" if of else name for name, of in zip(names, parts, strict=True)]
    return [f"{n}, number {shown[: i + 1].count(n)}" if shown.count(n) > 1 else n for i, n in enumerate(shown)]


def vote_of(match: Match, voter: str, outcome: str, swap: bool) -> Vote:
    """The vote of somebody who saw the sides so: `outcome` "a" is for what stood as A."""
    meant = {"a": "b", "b": "a"}.get(outcome, outcome) if swap else outcome
    return Vote(voter, match.row, match.a, match.b, meant, match.clip)


def runs_of(arena: Arena) -> Mapping[str, Run]:
    """The runs of the players that are still where they were."""
    runs = {}
    for player in arena.config["players"]:
        with contextlib.suppress(UserError, OSError):
            runs[player["name"]] = Run(arena.folder / player["run"])
    return runs
