"""All figures of an arena: as JSON (ratings.json), as tables for a terminal, and as one HTML page.

    {"format": 1, "track": "...", "players": [...], "rated": [{"by": "people" or an engine's key, "pairs": 72, ...}]}

People's votes and each engine's verdicts are rated apart: nothing mixes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from videoqa import results
from videoqa.arena import ratings
from videoqa.arena.folder import FORMAT, ORDERS, Arena, Match, runs_of
from videoqa.arena.referee import CONTRADICTING, FIRST, HALF, NEITHER, SECOND, Decision
from videoqa.arena.votes import Vote
from videoqa.errors import UserError
from videoqa.folders import without_folders
from videoqa.rating import calibration, scored
from videoqa.reply import Verdict
from videoqa.runs import Run, rows_of
from videoqa.scores import FEWEST_CLIPS, Scored

PEOPLE = "people"
WEAK = 0.5  # share of inconsistent pairs from which on the ratings say little
SHOWN = 12  # pairs on the page


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


# -- for a terminal ---------------------------------------------------------------------------------------------------


def table(one: Rated) -> Any:
    """The players from the best rating down, as a rich table."""
    from rich.markup import escape
    from rich.table import Table

    shown = Table(title=f"Arena: {len(one.votes):,} votes of {escape(short(one.by))}")
    heads = ["votes", "wins", "ties", "points", "Bradley-Terry", "Elo"]
    heads += ["by probability"] if one.points else []
    heads += ["open-ended score"] if one.scores else []
    shown.add_column("")
    for head in heads:
        shown.add_column(head, justify="right")
    strength = {rating.model: rating for rating in one.bradley_terry}
    for rating in one.elo:
        of = strength.get(rating.model)
        cells = [str(rating.votes), str(rating.wins), str(rating.ties)]
        cells.append(f"{100 * (rating.wins + rating.ties / 2) / rating.votes:.1f}%")
        cells.append("-" if of is None else f"{of.value:.0f}{_span(of.interval)}")
        cells.append(f"{rating.value:.1f}{_span(rating.interval, 1)}")
        if one.points:
            cells.append(f"{100 * one.points[rating.model]:.1f}%" if rating.model in one.points else "-")
        if one.scores:
            cells.append(f"{one.scores[rating.model]:.2f}" if rating.model in one.scores else "-")
        shown.add_row(escape(rating.model), *cells)
    return shown


def matrix_table(one: Rated) -> Any:
    """Who beat whom: wins-ties-losses of the row's player against the column's, as a rich table."""
    from rich.markup import escape
    from rich.table import Table

    shown = Table(title="Wins-ties-losses of the row against the column")
    shown.add_column("")
    of = ratings.matrix(one.votes)
    order = [rating.model for rating in one.elo]
    for name in order:
        shown.add_column(escape(name), justify="right")
    for name in order:
        shown.add_row(escape(name), *(_record(of[name].get(other)) for other in order))
    return shown


def _record(record: ratings.Record | None) -> str:
    if record is None or not record.votes:
        return "-"
    return f"{record.wins}-{record.ties + record.both_bad}-{record.losses}"


def _span(interval: tuple[float, float] | None, digits: int = 0) -> str:
    return "" if interval is None else f" ({interval[0]:.{digits}f} to {interval[1]:.{digits}f})"


def lines(one: Rated) -> list[str]:
    """What is to be said beside the tables."""
    said = []
    outcomes = one.outcomes
    ties = len(one.votes) - outcomes["win"]
    both_bad = f", {outcomes['both bad']} of them both bad" if outcomes["both bad"] else ""
    said.append(f"{_percent(ties, len(one.votes))} of the votes are ties ({ties} of {len(one.votes)}{both_bad})")
    if one.kinds:
        said.append(
            f"{_percent(one.inconsistent, len(one.votes))} of the pairs are inconsistent: their two orders disagree, "
            f"so they count as ties ({one.kinds.get(CONTRADICTING, 0)} contradicting, {one.kinds.get(HALF, 0)} half)"
        )
    if one.places is not None and one.places.asked:
        places = one.places
        said.append(
            f"by place: {_percent(places.first, places.asked)} for the first answer, "
            f"{_percent(places.second, places.asked)} for the second, {_percent(places.neither, places.asked)} for "
            f"neither, of {places.asked} verdicts"
        )
    if one.mass is not None:
        said.append(f"mass on the three letters: {one.mass:.3f}")
    missing = one.pairs - len(one.votes)
    if one.by != PEOPLE and missing:
        said.append(
            f"{missing} of {one.pairs} pairs have no outcome ({one.unreadable} verdicts unreadable, {one.failed} failed)"
        )
    if one.empty:
        said.append(f"{one.empty} pairs have an empty answer, which loses unasked")
    if one.no_ratings:
        said.append(f"no Bradley-Terry: {one.no_ratings}")
    if 0 < one.clips < FEWEST_CLIPS:
        said.append(f"no intervals: the votes are on {one.clips} clips, fewer than {FEWEST_CLIPS}")
    said.append(
        f"Elo: K {ratings.K:g}, the mean over {ratings.ORDERS} orders of the votes; its span is that of the orders alone"
    )
    if (found := one.correlation) is not None:
        said.append(
            f"ranks by rating and by open-ended score of {found.models} players: Spearman {found.spearman:.2f}"
            f"{_span(found.spearman_interval, 2)}, Kendall {found.kendall:.2f}{_span(found.kendall_interval, 2)}"
        )
    else:
        said.append(f"no correlation with open-ended scores: {one.no_scores}")
    return said


def doubtful(one: Rated) -> bool:
    """Whether a referee's ratings say little: most of its pairs are inconsistent, or have no outcome."""
    if one.by == PEOPLE:
        return False
    return not one.votes or one.inconsistent > WEAK * len(one.votes) or len(one.votes) < WEAK * one.pairs


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "-"


def short(by: str) -> str:
    """Who rated, for people: an engine without its settings."""
    return without_folders(by).partition(" (")[0]


# -- the page ---------------------------------------------------------------------------------------------------------


def html(arena: Arena, every: Sequence[Rated]) -> str:
    """One HTML file that needs nothing beside it."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2").render(
        arena=arena,
        track=arena.track,
        players=arena.config["players"],
        every=every,
        matrix={one.by: ratings.matrix(one.votes) for one in every},
        axis={one.by: axis([*one.bradley_terry, *one.elo]) for one in every},
        lines=lines,
        short=short,
        without_folders=without_folders,
        doubtful=doubtful,
        examples={one.by: examples(arena, one) for one in every},
        people=PEOPLE,
    )


def axis(of: Sequence[ratings.Rating]) -> tuple[float, float]:
    """The ends of a chart's axis: whole hundreds around all values and intervals."""
    ends = [end for rating in of for end in (rating.value, *(rating.interval or ()))]
    low, high = min(ends, default=ratings.START), max(ends, default=ratings.START)
    return 100.0 * (low // 100), 100.0 * (high // 100 + 1)


def examples(arena: Arena, one: Rated) -> list[tuple[Match, Decision | None, list[tuple[str, Verdict]]]]:
    """Some pairs with what was said of them: an even choice over all that were judged."""
    if one.by == PEOPLE:
        return []
    decisions, verdicts = arena.decisions(one.by), arena.verdicts(one.by)
    judged = [match for match in arena.matches if any((match.id, order) in verdicts for order in ORDERS)]
    chosen = [judged[i * len(judged) // SHOWN] for i in range(SHOWN)] if len(judged) > SHOWN else judged
    return [
        (m, decisions[m.id], [(order, verdicts[m.id, order]) for order in ORDERS if (m.id, order) in verdicts])
        for m in chosen
    ]


