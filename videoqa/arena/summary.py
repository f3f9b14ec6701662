"""All figures of an arena, as JSON (ratings.json); shown.py shows them.

    {"format": 1, "track": "...", "players": [...], "rated": [{"by": "people" or an engine's key, "pairs": 72, ...}]}

People's votes and each engine's verdicts are rated apart: nothing mixes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from videoqa import results
from videoqa.arena import ratings
from videoqa.arena.folder import FORMAT, ORDERS, Arena, runs_of
from videoqa.arena.referee import CONTRADICTING, FIRST, HALF, NEITHER, SECOND, Decision
from videoqa.arena.votes import Vote
from videoqa.errors import UserError
from videoqa.rating import calibration, scored
from videoqa.reply import Verdict
from videoqa.runs import Run, rows_of
from videoqa.scores import Scored

PEOPLE = "people"
WEAK = 0.5  # share of inconsistent pairs from which on the ratings say little


@dataclass(frozen=True, slots=True)
class Places:
    """What a referee said by place, over all verdicts that it was asked for: a fair one has as many first as second."""

    first: int
    second: int
    neither: int

    @property
    def asked(self) -> int:
        """All of them."""
        return self.first + self.second + self.neither


@dataclass(frozen=True, slots=True)
class Rated:
    """One side's verdicts on the pairs, in figures. Engines only: `kinds`, `unreadable`, `failed`, `places`, `mass`,
    `points`."""

    by: str  # PEOPLE, or the engine's key
    pairs: int  # of the arena
    votes: tuple[Vote, ...]
    elo: tuple[ratings.Rating, ...]
    bradley_terry: tuple[ratings.Rating, ...]
    no_ratings: str  # why there is no Bradley-Terry
    kinds: Mapping[str, int]  # of the decisions
    unreadable: int  # verdicts, of two for each pair
    failed: int
    empty: int  # pairs with an empty answer, which loses unasked
    places: Places | None
    mass: float | None  # mean probability of the letters
    points: Mapping[str, float]  # mean points of each player by probability, both orders together
    correlation: ratings.Correlation | None
    scores: Mapping[str, float]  # of the same runs, by player
    no_scores: str  # why there is no correlation

    @property
    def outcomes(self) -> Counter[str]:
        """How often each outcome is there; a win is one, whichever side it is for."""
        return Counter("win" if vote.outcome in ("a", "b") else vote.outcome for vote in self.votes)

    @property
    def inconsistent(self) -> int:
        """Pairs whose two orders disagree; all of them count as ties."""
        return self.kinds.get(HALF, 0) + self.kinds.get(CONTRADICTING, 0)

    @property
    def clips(self) -> int:
        """Clips that the votes are on."""
        return len(ratings.clips(self.votes))

    def as_dict(self) -> dict[str, Any]:
        """For JSON, without the votes, which are in files of their own."""
        return {
            "by": self.by,
            "pairs": self.pairs,
            "votes": len(self.votes),
            "voters": len({vote.voter for vote in self.votes}),
            "clips": self.clips,
            "outcomes": dict(self.outcomes),
            "ties_share": _share(len(self.votes) - self.outcomes["win"], len(self.votes)),
            "decisions": dict(self.kinds),
            "inconsistent_share": _share(self.inconsistent, len(self.votes)),
            "unreadable": self.unreadable,
            "failed": self.failed,
            "empty": self.empty,
            "places": None if self.places is None else asdict(self.places),
            "mass": self.mass,
            "points": dict(self.points),
            "elo": {"orders": ratings.ORDERS, "k": ratings.K, "ratings": [asdict(one) for one in self.elo]},
            "bradley_terry": [asdict(one) for one in self.bradley_terry] or self.no_ratings,
            "matrix": {
                one: {other: asdict(record) for other, record in others.items()}
                for one, others in ratings.matrix(self.votes).items()
            },
            "scores": dict(self.scores),
            "correlation": self.no_scores if self.correlation is None else asdict(self.correlation),
        }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def rated(arena: Arena) -> list[Rated]:
    """People's votes, where there are any, then each engine's verdicts."""
    scores = _Scores.of(arena)
    every = []
    if votes := arena.votes.read():
        names = set(arena.players)
        if strange := [vote for vote in votes if not {vote.a, vote.b} <= names]:
            raise UserError(f"{arena.folder}: a vote is on {strange[0].a} and {strange[0].b}, who are no players")
        every.append(_rated(PEOPLE, arena, votes, {}, {}, scores))
    for key in arena.judges():
        every.append(_rated(key, arena, arena.engine_votes(key), arena.decisions(key), arena.verdicts(key), scores))
    return every


def as_dict(arena: Arena, every: Sequence[Rated]) -> dict[str, Any]:
    """What ratings.json holds."""
    players = [{k: v for k, v in player.items() if k != "run"} for player in arena.config["players"]]
    head = {"format": FORMAT, "track": arena.config["track"], "data": arena.config["data"], "players": players}
    return {**head, "rated": [one.as_dict() for one in every]}


def _rated(
    by: str,
    arena: Arena,
    votes: Sequence[Vote],
    decisions: Mapping[str, Decision],
    verdicts: Mapping[tuple[str, str], Verdict],
    scores: _Scores,
) -> Rated:
    strengths, why = [], ""
    try:
        strengths = ratings.bradley_terry(votes)
    except UserError as error:
        why = str(error)
    asked = [verdict for verdict in verdicts.values() if verdict.status != "empty_prediction"]
    masses = [verdict.mass for verdict in asked if verdict.mass is not None]
    choices = Counter(verdict.choice for verdict in asked)
    found = ratings.correlation(votes, scores.rows, scores.scale) if scores.rows else None
    judged = {m.id for m in arena.matches if any((m.id, order) in verdicts for order in ORDERS)}
    return Rated(
        by=by,
        pairs=len(arena.matches),
        votes=tuple(votes),
        elo=tuple(ratings.elo_ratings(votes)),
        bradley_terry=tuple(strengths),
        no_ratings=why,
        kinds=Counter(decision.kind for id, decision in decisions.items() if id in judged),
        unreadable=sum(verdict.status in ("unreadable", "truncated") for verdict in asked),
        failed=sum(verdict.status == "judge_error" for verdict in asked),
        empty=sum(verdict.status == "empty_prediction" for (_, order), verdict in verdicts.items() if order == "ab"),
        places=Places(choices[FIRST], choices[SECOND], choices[NEITHER]) if verdicts else None,
        mass=sum(masses) / len(masses) if masses else None,
        points=_points(arena, decisions),
        correlation=found,
        scores=scores.values,
        no_scores=scores.missing or ("" if found else "fewer than three players, or all alike on one side"),
    )


def _points(arena: Arena, decisions: Mapping[str, Decision]) -> dict[str, float]:
    points: dict[str, list[float]] = {}
    for match in arena.matches:
        decision = decisions.get(match.id)
        if decision is not None and decision.points is not None:
            points.setdefault(match.a, []).append(decision.points)
            points.setdefault(match.b, []).append(1 - decision.points)
    return {name: sum(of) / len(of) for name, of in sorted(points.items())}


@dataclass(frozen=True, slots=True)
class _Scores:
    """What the judge of the open-ended scores gave the answers of the same runs; `missing` says why it is not known."""

    rows: Mapping[str, list[Scored]]
    scale: Mapping[str, float] | None
    values: Mapping[str, float]  # the runs' averages
    missing: str

    @classmethod
    def of(cls, arena: Arena) -> _Scores:
        def none(why: str) -> _Scores:
            return cls({}, None, {}, why)

        runs = runs_of(arena)
        if absent := [name for name in arena.players if name not in runs]:
            return none(f"the run of {absent[0]} is not where it was")
        found: dict[str, list[results.Result]] = {}
        for name, run in runs.items():
            try:
                found[name] = [results.read(path) for path in results.files(run.folder)]
            except (OSError, UserError):
                return none(f"the run of {name} has no scores: `easg-bench judge` makes them")
        common = [
            one.scorer
            for one in found[arena.players[0]]
            if all(any(other.scorer == one.scorer for other in of) for of in found.values())
        ]
        if not common:
            return none("no judge has rated all of the runs")
        key = common[0]
        try:
            rows, scale = _rows(arena, runs, key)
        except UserError as error:
            return none(str(error))
        values = {name: one.avg.value for name, of in found.items() for one in of if one.scorer == key}
        return cls(rows, scale, {name: value for name, value in values.items() if value is not None}, "")


def _rows(arena: Arena, runs: Mapping[str, Run], key: str) -> tuple[dict[str, list[Scored]], dict[str, float] | None]:
    """Each player's rows with their scores, and what the ground truth is given by type."""
    rows, scale = {}, None
    for name, run in runs.items():
        asked = rows_of(run)
        rows[name] = scored(asked, run.verdicts(key, "answer"))
        of_truth = calibration(run.track, key, asked, run.verdicts(key, "truth"))
        scale = dict(of_truth.means) if of_truth is not None else scale
    return rows, scale


def doubtful(one: Rated) -> bool:
    """Whether a referee's ratings say little: most of its pairs are inconsistent, or have no outcome."""
    if one.by == PEOPLE:
        return False
    return not one.votes or one.inconsistent > WEAK * len(one.votes) or len(one.votes) < WEAK * one.pairs
