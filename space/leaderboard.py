"""The results that the Space shows: read from a folder or a Hub dataset repo, grouped, ranked, compared.

A folder holds what `easg-bench submit` writes (results/MODEL/HASH/scores.json, answers.parquet beside it) or run
folders. Scores of different judges, modes, rubrics or questions cannot be compared, so every result belongs to a group
and is ranked within it alone. A file that is no result is left out with its reason; nothing of it is shown.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

import pandas as pd
import pyarrow as pa

from videoqa.benchmark import track
from videoqa.results import Result, read
from videoqa.scores import Calibration, Scored, compare
from videoqa.submit import check_answers, content_hash, read_answers

SIGNIFICANT = 0.05
TRACK = track()
TYPES, COLUMNS = TRACK.types, TRACK.columns


@dataclass(frozen=True)
class Entry:
    """A result file that passed every check."""

    result: Result = field(compare=False)
    hash: str  # of the file, which stands for the result
    answers: Path | None  # answers.parquet beside it, whose scores give the result's numbers

    @property
    def key(self) -> tuple[str | None, ...]:
        """Of the entries with one key the newest is shown."""
        result = self.result
        return result.name, result.kind, result.prompt, result.frames, result.group


@dataclass(frozen=True)
class Board:
    """All results at one moment."""

    entries: tuple[Entry, ...] = ()  # of each model, prompt, frames and group the newest one
    refused: tuple[str, ...] = ()  # why a file is not shown
    replaced: int = 0  # older results of the same model and group

    def groups(self) -> dict[str, list[Entry]]:
        """The entries by group, the largest group first, each from the best average down; a result that lacks a type
        stands behind those that have it, since its average is of fewer types."""
        found: dict[str, list[Entry]] = {}
        for entry in self.entries:
            found.setdefault(entry.result.group, []).append(entry)

        def rank(entry: Entry) -> tuple[int, float, str, str]:
            return len(entry.result.types_missing), -(entry.result.avg.value or 0), entry.result.label, entry.hash

        ranked = {k: sorted(v, key=rank) for k, v in found.items()}
        return dict(sorted(ranked.items(), key=lambda pair: (-len(pair[1]), pair[0])))


def load(folder: Path) -> Board:
    """Read every result file below a folder."""
    refused: list[str] = []
    newest: dict[tuple[str | None, ...], Entry] = {}
    seen: dict[str, str] = {}
    paths = [path for path in sorted(folder.rglob("scores*.json")) if path.is_file()]
    for path in paths:
        where = path.relative_to(folder).as_posix()
        try:
            result = read(path)
        except (ValueError, OSError) as error:
            refused.append(str(error).replace(str(path), where, 1))
            continue
        digest = content_hash(path.read_bytes())
        if digest in seen:
            refused.append(f"{where}: the same file as {seen[digest]}")
            continue
        seen[digest] = where
        answers = path.with_name("answers.parquet") if path.name == "scores.json" else None
        if answers is not None and answers.exists():
            try:
                check_answers(read_answers(answers), result, f"{where}'s answers.parquet")
            except ValueError as error:
                refused.append(str(error).replace(str(answers), f"{where}'s answers.parquet", 1))
                answers = None
        else:
            answers = None
        entry = Entry(result, digest, answers)
        if entry.key not in newest or (result.date, digest) > (newest[entry.key].result.date, newest[entry.key].hash):
            newest[entry.key] = entry
    return Board(tuple(newest.values()), tuple(refused), len(seen) - len(newest))


# -- is a difference real? --------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def table(path: Path) -> pa.Table:
    """The answers of one entry."""
    return read_answers(path)


def _scored(answers: pa.Table, column: str) -> list[Scored]:
    return [
        Scored(row["id"], row["clip"], row["type"], row[column], row["status"] or "ok")
        for row in answers.select(["id", "clip", "type", "status", column]).to_pylist()
    ]


@lru_cache(maxsize=4096)
def _paired(best: Entry, other: Entry) -> float | None:
    """p-value of the paired difference of two averages; None where it cannot be had."""
    if best.answers is None or other.answers is None:
        return None
    truth = _scored(table(best.answers), "truth_score")
    calibration = Calibration.of(best.result.group, truth, types=TYPES)
    try:
        found = compare(
            _scored(table(best.answers), "score"),
            _scored(table(other.answers), "score"),
            calibration,
            calibration,
            key=best.result.group,
            types=TYPES,
        )
    except ValueError:
        return None
    return found.avg.p_value if found.avg.n else None


def standing(entry: Entry, best: Entry) -> str:
    """How an entry stands to the best of its group, and by which evidence: the paired comparison of the answers where
    both are there, otherwise whether the intervals of the averages meet."""
    if entry is best:
        return "best"
    if (p := _paired(best, entry)) is not None:
        said = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
        return f"{'like the best' if p >= SIGNIFICANT else 'lower'} (paired, {said})"
    mine, theirs = entry.result.avg.interval, best.result.avg.interval
    if mine is None or theirs is None:
        return "unknown (no interval)"
    return "like the best (intervals meet)" if mine[1] >= theirs[0] else "lower (intervals apart)"


def leaderboard(
    entries: Sequence[Entry], search: str = "", kinds: Sequence[str] = (), prompts: Sequence[str] = ()
) -> pd.DataFrame:
    """The rows of one group that pass the filters (an empty one passes all); ranks are those of the whole group."""
    lines = []
    for rank, entry in enumerate(entries, 1):
        result = entry.result
        if search.strip().casefold() not in result.name.casefold():
            continue
        if (kinds and result.kind not in kinds) or (prompts and result.prompt not in prompts):
            continue
        scores = {name: (s.value if (s := result.column(name)) else None) for name in COLUMNS}
        lines.append(
            {
                "#": rank,
                "Model": result.name,
                "Prompt": result.prompt + (f", {result.frames}" if result.frames else ""),
                "Avg.": scores.pop("Avg."),
                "Against the best": standing(entry, entries[0]),
                **scores,
                "Kind": result.kind,
                "Rows": result.avg.n,
                "Unreadable": result.avg.unreadable,
                "Date": result.date[:10],
            }
        )
    columns = ["#", "Model", "Prompt", "Avg.", "Against the best", *TYPES, "Kind", "Rows", "Unreadable", "Date"]
    return pd.DataFrame(lines, columns=columns)


def shown(frame: pd.DataFrame, entries: Sequence[Entry]) -> list[list[str]]:
    """What stands in the cells of a leaderboard: scores with their intervals."""
    intervals = {
        rank: {name: s.interval if (s := entry.result.column(name)) else None for name in COLUMNS}
        for rank, entry in enumerate(entries, 1)
    }
    cells = []
    for line in frame.to_dict("records"):
        row = []
        for name, value in line.items():
            if name in COLUMNS:
                interval = intervals[line["#"]][str(name)]
                ends = f" ({interval[0]:.0f}–{interval[1]:.0f})" if interval else ""
                row.append("–" if pd.isna(value) else f"{value:.1f}{ends}")
            else:
                row.append(f"{text[:59]}…" if len(text := str(value)) > 60 else text)
        cells.append(row)
    return cells


def paper() -> pd.DataFrame:
    """The paper's rows (Tables 2 and 3), whose judge and scale are the paper's own."""
    lines = []
    for row in (row for row in TRACK.published if row.way != "regular"):
        scores = {name: row.scores.get(name) for name in TYPES}
        lines.append(
            {"Model": row.model, "Kind": row.kind, "Prompting": row.way or "regular", **scores, "Avg.": row.avg}
        )
    return pd.DataFrame(lines)


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
                for entries in board.groups().values():
                    for entry in entries:
                        standing(entry, entries[0])  # worked out now, so that no viewer waits for it
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
