"""The results that the Space shows: read from a folder or a Hub dataset repo, grouped, ranked, compared.

A folder holds what `easg-bench submit` writes (results/MODEL/HASH/scores.json, answers.parquet beside it) or run
folders. Scores of different judges, modes, rubrics or questions cannot be compared, so every result belongs to a group
and is ranked within it alone. A file that is no result is left out with its reason; nothing of it is shown.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from videoqa.answers_file import check_answers
from videoqa.answers_worker import AnswersReader
from videoqa.benchmark import Track, track
from videoqa.ranking import BEST, LIKE_BEST, TOO_FEW_CLIPS, Standing, against_best
from videoqa.results import Result, read
from videoqa.scores import Calibration, Scored
from videoqa.submit import content_hash, moment

LEAST_MASS = 0.5  # mean probability of the allowed scores, below which a judge does not know what it is asked
MOST_UNREADABLE = 0.05  # share of verdicts that could not be read
READER = AnswersReader()  # a damaged file can end the process that reads it
LONGEST_SEARCH = 200  # characters of what is searched for


@dataclass(frozen=True)
class Entry:
    """A result file that passed every check."""

    result: Result = field(compare=False)
    hash: str  # of the file, which stands for the result
    answers: Path | None  # answers.parquet beside it, whose scores give the result's numbers
    moment: datetime = field(default=datetime.fromtimestamp(0, UTC), compare=False)  # when it was made

    @property
    def key(self) -> tuple[str | None, ...]:
        """Of the entries with one key one is shown."""
        result = self.result
        experts = None if result.experts is None else str(sorted(result.experts.items()))
        return result.name, result.kind, result.prompt, experts, result.frames, self.group

    @property
    def group(self) -> str:
        """Only results of one group are ranked together: one track, scorer and revision of the data."""
        return f"{self.result.track} / {self.result.group}"


def missing(result: Result, asked: int) -> list[str]:
    """What a result lacks of a run of all `asked` questions, in words. Whether its limit left any out is the group's to
    say."""
    of_all = result.model_copy(update={"data": result.data.model_copy(update={"rows": asked, "limit": None})})
    more = result.avg.n - asked
    return [*of_all.gaps, *([f"{more:,} rows more than there are questions"] if more > 0 else [])]


def doubts(result: Result) -> list[str]:
    """What speaks against the judge of a result, in words."""
    judge, why = result.judge, []
    if judge is not None and judge.mass is not None and judge.mass < LEAST_MASS:
        why.append(f"the judge gives the allowed scores a probability of {judge.mass:.2f} only")
    if result.avg.n and result.avg.unreadable / result.avg.n > MOST_UNREADABLE:
        why.append(f"{result.avg.unreadable / result.avg.n:.0%} of the verdicts could not be read")
    if judge is not None and judge.check is not None and not judge.check.fit:
        why.append(f"judge-check says of the judge: {judge.check.said}")
    return why


@dataclass(frozen=True)
class Group:
    """The results that can be compared: whole runs from the best average down, then partial ones."""

    track: Track
    whole: tuple[Entry, ...]
    partial: tuple[Entry, ...]  # their average is of other questions than that of the whole ones
    asked: int  # questions of the data

    @classmethod
    def of(cls, entries: Sequence[Entry], asked: int | None = None) -> Group:
        """The group of entries that belong together; `asked` is known where their questions are."""
        # else the data may be somebody's sample
        all_data = asked is not None or any(e.result.data.limit is None for e in entries)
        asked = asked or max(max(e.result.data.rows, e.result.avg.n) for e in entries)

        def partial(entry: Entry) -> bool:
            limit = entry.result.data.limit
            return bool(missing(entry.result, asked)) or (limit is not None and not all_data)

        def rank(entry: Entry) -> tuple[float, str, str]:
            return -(entry.result.avg.value or 0), entry.result.label, entry.hash

        whole = tuple(sorted((e for e in entries if not partial(e)), key=rank))
        return cls(track(entries[0].result.track), whole, tuple(sorted(set(entries) - set(whole), key=rank)), asked)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All of them, the partial ones last."""
        return self.whole + self.partial

    @property
    def name(self) -> str:
        """The scorer and the data."""
        return self.entries[0].result.group

    @property
    def best(self) -> Entry | None:
        """The best whole run; a partial one is never it."""
        return self.whole[0] if self.whole else None


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a leaderboard."""

    rank: int | None  # among the whole runs
    entry: Entry
    asked: int  # questions of the data
    standing: str
    badges: tuple[tuple[str, str], ...]  # (word, what it means)

    @property
    def n(self) -> int:
        """Questions that were answered and scored."""
        return self.entry.result.avg.n_scored


@dataclass(frozen=True)
class Board:
    """All results at one moment."""

    entries: tuple[Entry, ...] = ()  # one of each model, prompt, frames and group
    refused: tuple[str, ...] = ()  # why a file is not shown
    replaced: int = 0  # other results of the same model and group

    def groups(self, of_track: str | None = None, sizes: Mapping[str, int] | None = None) -> dict[str, Group]:
        """The groups of a track (None: of all) by name, the largest first. `sizes` are the numbers of questions of the
        revisions that are known."""
        found = _grouped(entry for entry in self.entries if of_track in (None, entry.result.track))
        groups = {k: Group.of(v, (sizes or {}).get(v[0].result.data.revision)) for k, v in found.items()}
        return dict(sorted(groups.items(), key=lambda pair: (-len(pair[1].entries), pair[0])))


def _grouped(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.group, []).append(entry)
    return groups


def load(folder: Path) -> Board:
    """Read every result file below a folder."""
    refused: list[str] = []
    entries: list[Entry] = []
    known: dict[str, str] = {}
    for path in (path for path in sorted(folder.rglob("scores*.json")) if path.is_file()):
        where = path.relative_to(folder).as_posix()
        try:
            result = read(path)
            made = moment(result)
        except (ValueError, OSError) as error:
            refused.append(f"{where}: {error}".replace(f"{where}: {path}", where, 1))
            continue
        digest = content_hash(path.read_bytes())
        if digest in known:
            refused.append(f"{where}: the same file as {known[digest]}")
            continue
        known[digest] = where
        beside, answers = path.with_name("answers.parquet"), None
        if path.name == "scores.json" and beside.exists():
            try:
                check_answers(READER.read(beside), result, f"{where}'s answers.parquet")
                answers = beside
            except ValueError as error:
                refused.append(str(error).replace(str(beside), f"{where}'s answers.parquet", 1))
        entries.append(Entry(result, digest, answers, made))
    kept = _newest(entries)
    return Board(tuple(kept), tuple(refused), len(entries) - len(kept))


def _newest(entries: Sequence[Entry]) -> list[Entry]:
    """Of the entries with one key the newest one; but a partial run does not replace a whole one."""
    kept: dict[tuple[str | None, ...], Entry] = {}
    for mine in _grouped(entries).values():
        whole = set(Group.of(mine).whole)
        for entry in sorted(mine, key=lambda e: (e in whole, e.moment, e.hash)):
            kept[entry.key] = entry
    chosen = set(kept.values())
    return [entry for entry in entries if entry in chosen]


# -- is a difference real? --------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def table(path: Path) -> pa.Table:
    """The answers of one entry."""
    return READER.read(path)


def _scored(answers: pa.Table, column: str) -> list[Scored]:
    return [
        Scored(row["id"], row["clip"], row["type"], row[column], row["status"] or "ok")
        for row in answers.select(["id", "clip", "type", "status", column]).to_pylist()
    ]


@lru_cache(maxsize=256)
def _compared(whole: tuple[Entry, ...]) -> dict[Entry, Standing]:
    """How the runs stand to the best, those whose answers are here; empty where the best run's are not."""
    with_answers = {entry.hash: entry for entry in whole if entry.answers is not None}
    if not whole or whole[0].hash not in with_answers:
        return {}
    of_track, key, scale = track(whole[0].result.track), whole[0].result.group, None
    rows = {name: _scored(table(entry.answers), "score") for name, entry in with_answers.items() if entry.answers}
    if of_track.measure.needs_truth and whole[0].answers is not None:
        scale = Calibration.of(key, _scored(table(whole[0].answers), "truth_score"), types=of_track.types)
    try:
        found = against_best(rows, scale, key=key, types=of_track.types)
    except ValueError:
        return {}
    return {with_answers[name]: standing for name, standing in found.items()}


def standings(whole: tuple[Entry, ...]) -> dict[Entry, str]:
    """How each whole run stands to the best of its group, and by which evidence: the answers where both are there,
    otherwise whether the intervals of the averages meet."""
    compared = _compared(whole)
    return {entry: _standing(entry, whole[0], compared.get(entry)) for entry in whole}


def _standing(entry: Entry, best: Entry, standing: Standing | None) -> str:
    if entry is best:
        return "best"
    if standing is not None and standing.p_value is not None:
        p = "p < 0.001" if standing.p_value < 0.001 else f"p = {standing.p_value:.3f}"
        return f"{LIKE_BEST if standing.name == BEST else standing.name} (paired, {p})"
    if standing is not None and standing.name == TOO_FEW_CLIPS:
        return f"unknown ({TOO_FEW_CLIPS})"
    mine, theirs = entry.result.avg.interval, best.result.avg.interval
    if mine is None or theirs is None:
        return "unknown (no interval)"
    return "like the best (intervals meet)" if mine[1] >= theirs[0] else "lower (intervals apart)"


def lines(group: Group, search: str = "", kinds: Sequence[str] = (), prompts: Sequence[str] = ()) -> list[Line]:
    """The rows of one group that pass the filters (an empty one passes all); ranks are those of the whole group."""
    wanted = search[:LONGEST_SEARCH].strip().casefold()
    listed, standing = [], standings(group.whole)
    for at, entry in enumerate(group.entries):
        result = entry.result
        if wanted not in result.name.casefold():
            continue
        if (kinds and result.kind not in kinds) or (prompts and result.prompt not in prompts):
            continue
        whole = at < len(group.whole)
        listed.append(
            Line(
                at + 1 if whole else None,
                entry,
                group.asked,
                standing.get(entry, "not ranked"),
                tuple(_badges(result, group.asked, whole)),
            )
        )
    return listed


def _badges(result: Result, asked: int, whole: bool) -> Iterable[tuple[str, str]]:
    if not whole:
        limit = f"a sample of {result.data.limit:,}" if result.data.limit else ""
        yield "partial", "; ".join([*missing(result, asked), *([limit] if limit else [])])
    if why := doubts(result):
        yield "judge?", "; ".join(why)


# -- where they come from ---------------------------------------------------------------------------------------------


class Results:
    """The newest board of a folder or of a Hub dataset repo. Looks again every `every` seconds in a thread of its own;
    when that fails the last good board stays, and `note` says so."""

    def __init__(self, source: str, every: float = 300.0, fetch: Callable[[str], Path] | None = None) -> None:
        self.source, self._every = source, every
        self._fetch = fetch or _fetch
        self._board, self._seen = Board(), ""
        self._read: datetime | None = None
        self._failed = ""
        self.refresh()
        threading.Thread(target=self._keep, daemon=True, name="results").start()

    @property
    def board(self) -> Board:
        """The newest good board."""
        return self._board

    @property
    def note(self) -> str:
        """Where the results are from and how old they are."""
        when = f"read {self._read:%Y-%m-%d %H:%M} UTC" if self._read else "never read"
        text = f"Results from {self.source}, {when}: {len(self._board.entries)}."
        if self._failed:
            return f"{text} The newest could not be read, so this is the last good copy: {self._failed}"
        return text

    def refresh(self) -> None:
        """Look for new results."""
        try:
            folder = self._fetch(self.source)
            paths = [p for p in sorted(folder.rglob("*")) if p.suffix in (".json", ".parquet")]
            stats = [(p.relative_to(folder), p.stat()) for p in paths]
            seen = str([(str(p), s.st_mtime_ns, s.st_size) for p, s in stats])
            if seen != self._seen:
                board = load(folder)
                for group in board.groups().values():
                    lines(group)  # worked out now, so that no viewer waits for it
                self._board, self._seen = board, seen
                table.cache_clear()
            self._read, self._failed = datetime.now(UTC), ""
        except Exception as error:  # whatever it is, the page lives on with what it has
            self._failed = f"{type(error).__name__}: {error}"[:500]

    def _keep(self) -> None:
        while True:
            time.sleep(self._every)
            self.refresh()


def _fetch(source: str) -> Path:
    """A folder with the results of a folder or Hub dataset repo."""
    if Path(source).is_dir():
        return Path(source)
    if source.startswith(("/", ".")) or source.count("/") != 1:
        raise FileNotFoundError(f"{source}: no such folder")
    from huggingface_hub import snapshot_download

    patterns = ["results/*/*/scores.json", "results/*/*/answers.parquet"]
    return Path(snapshot_download(source, repo_type="dataset", allow_patterns=patterns))
