"""What a benchmark is to the core: a `Track` record. A benchmark is a folder of videoqa/benchmarks whose `__init__` has
`TRACKS`; the folder's name is the registry, so no list is edited to add one.

    track("easg-bench").types    -> the columns of its tables
    track_of("build/easg-bench") -> the track that the data's own card names
"""

from __future__ import annotations

import importlib
import itertools
import math
import pkgutil
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from videoqa.errors import UserError

if TYPE_CHECKING:
    from videoqa.asking import Way
    from videoqa.engines import Engine
    from videoqa.imported import Reader
    from videoqa.measures import Measure
    from videoqa.probes import Probe
    from videoqa.rows import Row
    from videoqa.rubric import Rubric
    from videoqa.scorer import Scorer
    from videoqa.scores import Calibration

AVERAGE = "Avg."  # the last column of every table


@dataclass(frozen=True, slots=True)
class Published:
    """A row of a published table, with the numbers as printed. It is shown beside ours and never ranked with them."""

    model: str
    kind: str  # as Way.kind
    scores: Mapping[str, float]  # by question type
    avg: float
    judge: str = ""  # "paper's judge": who gave the scores, where that is not the measure itself
    way: str = ""  # of the table that compares two ways of asking (Track.beside): "regular", "two-stage"
    config: str = ""  # the questions that it is of; empty: those of every config
    source: str = ""  # where it is printed: "arXiv 2308.09126"

    @property
    def by(self) -> str:
        """Who gave the scores, or else where they are printed; empty where neither is known."""
        return self.judge or self.source


@dataclass(frozen=True, slots=True)
class Extras:
    """Figures beside the scores that need no judge. `of(row, answer line)` gives those that the row has, each a number;
    `names` are all of them, `of_way` those that only one way of asking gives."""

    names: tuple[str, ...]
    of: Callable[[Row, Mapping[str, Any]], Mapping[str, float]]
    of_way: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    title: str = "Without a judge"  # of their table

    def named(self, way: str) -> tuple[str, ...]:
        """The names of the figures that rows asked in this way can have."""
        return self.names + self.of_way.get(way, ())

    def figures(self, row: Row, line: Mapping[str, Any]) -> Mapping[str, float]:
        """The figures of a row. Raises KeyError for one that is not among the names: no table would show it."""
        figures = self.of(row, line)
        if unnamed := sorted(figures.keys() - {*self.names, *itertools.chain(*self.of_way.values())}):
            raise KeyError(f"the track's extras have no name {', '.join(unnamed)}")
        return figures

    def summary(
        self, rows: Sequence[Row], answers: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, dict[str, dict[str, float]]]:
        """{name: {type or "all": {"n": rows that have it, "mean": mean over them}}}."""
        values: dict[str, dict[str, list[float]]] = {}
        for row in rows:
            if row["id"] not in answers:
                continue
            for name, value in self.figures(row, answers[row["id"]]).items():
                for kind in (row["type"], "all"):
                    values.setdefault(name, {}).setdefault(kind, []).append(value)
        return {
            name: {kind: {"n": len(of), "mean": math.fsum(of) / len(of)} for kind, of in by_type.items()}
            for name, by_type in values.items()
        }


@dataclass(frozen=True, slots=True)
class ScorerOptions:
    """What the command line says of the scorer; a track that has no use for one of these refuses it."""

    rubric: str = "ours"
    mode: str | None = None
    sampling: str = "greedy"
    reading: str = "ours"


@dataclass(frozen=True, slots=True)
class Track:
    """One table of a benchmark: its questions, how they are asked, and how answers become numbers."""

    name: str  # "easg-bench"; also the name of its leaderboard tab and, with underscores, of its lighteval tasks
    title: str  # "EASG-Bench"; the `pretty_name` of its data's card begins with it
    prefix: str  # of its figures in lighteval's tables: "easg"
    repo: str  # the dataset where none is named: a folder beside you, or ORG/NAME on the Hub
    types: tuple[str, ...]  # question types, the columns of its tables
    load: Callable[[str, str], list[Row]]  # (folder or repo, config) -> checked rows
    ways: Mapping[str, Way]  # values of --prompt
    way: str  # the default one
    scorer: Callable[[Engine | None, ScorerOptions], Scorer]
    measure: Measure
    rubric: Callable[[str], Rubric] | None = None  # by what --rubric takes: "ours", another name, a file
    constants: Mapping[str, Calibration] = field(default_factory=dict)  # published calibrations, by judge key
    published: tuple[Published, ...] = ()
    beside: tuple[str, ...] = ()  # ways that a second table compares, on the types that the last of them asks
    beside_title: str = ""
    extras: Extras | None = None
    lines: Callable[[Mapping[str, Any]], list[str]] | None = None  # a result's extras in words, below its table
    configs: tuple[str, ...] = ("default",)  # that have all questions of their clips; the first is the default
    importers: Mapping[str, Reader] = field(default_factory=dict)  # by the name that `import-answers --from` takes
    paraphrase: Callable[[str, str], str] | None = None  # (ground truth, type) -> sentence, for judge-check
    probes: Callable[[Rubric, Rubric], list[Probe]] | None = None  # (rubric, ours) -> judge-check's, in place of rows'
    breakdowns: Mapping[str, Callable[[Row], Sequence[str]]] = field(default_factory=dict)  # scores by what a row is
    grouped: bool = False  # its data have each question in every arrangement of its options
    matches: bool = False  # an engine may say which option a reply means that names none (--match)
    commands: str | None = None  # module with further subcommands, as `app`
    max_new_tokens: int = 64  # longest answer
    first: bool = False  # runs and results from before there were tracks are of this one

    @property
    def columns(self) -> tuple[str, ...]:
        """Of every table: the types and their average; one column where there is one type."""
        return (*self.types, AVERAGE) if len(self.types) > 1 else (AVERAGE,)

    @property
    def sets(self) -> tuple[str, ...]:
        """The configs that the published rows are of; ("",) where each is of all of them."""
        return tuple(dict.fromkeys(row.config for row in self.published))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of runs, in the order of the ways."""
        return tuple(dict.fromkeys(way.kind for way in self.ways.values()))

    @property
    def family(self) -> str:
        """What the names of its lighteval tasks begin with."""
        return self.name.replace("-", "_")

    def asked(self, name: str) -> Way:
        """The way of asking of this name. Raises UserError for a name that the track does not have."""
        if name not in self.ways:
            raise UserError(f"--prompt {name}: {self.title} has {', '.join(self.ways)}")
        return self.ways[name]


def tracks() -> dict[str, Track]:
    """All tracks by name, folder by folder in the order of the folders' names, the first one first."""
    from videoqa import benchmarks

    modules = [importlib.import_module(f"{benchmarks.__name__}.{m.name}") for m in _folders(benchmarks.__path__)]
    every = [track for module in modules for track in getattr(module, "TRACKS", ())]
    return {track.name: track for track in sorted(every, key=lambda track: not track.first)}


def _folders(path: Any) -> list[pkgutil.ModuleInfo]:
    return [module for module in pkgutil.iter_modules(path) if module.ispkg]


def track(name: str | None = None) -> Track:
    """The track of this name; None: the first one. Raises UserError for an unknown name."""
    known = tracks()
    if name is None:
        return next(iter(known.values()))
    if name not in known:
        raise UserError(f"no benchmark {name!r}; there are {', '.join(known)}")
    return known[name]


def track_of(data: str) -> Track:
    """The track that the data are of: by the `pretty_name` on the card of a folder, by the name of a Hub repo; the
    first one where neither says it."""
    card = Path(data) / "README.md"
    named = re.search(r"^pretty_name:\s*(.+)$", card.read_text("utf-8", "replace"), re.M) if card.is_file() else None
    title = named[1].strip("'\" ") if named else ""
    for one in tracks().values():
        if title.startswith(one.title) or data.split("/")[-1] == one.repo:
            return one
    return track()
