"""The steps of an agent's run, each kept with what went in, what came out, by whom and in how many seconds.

    RUN/steps.jsonl   {"key": "0a1b2c3d4e5f", "clip": "12", "id": null, "step": "speech-text", "n": 0,
                       "model": "whisper-tiny.en", "input": {...}, "output": "0.0 s to 2.1 s: Hello.",
                       "seconds": 0.8, "error": null, "finished": true, "refusal": false}

A step with an `id` is of one question, one without of all questions on its clip. `key` stands for everything that the
output depends on, so a step that was done is never done again: after a kill, by the next question on the clip, or by
another run whose steps are given as `others`. A step that failed is kept, to be read, and done again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from videoqa.files import Lines, short_hash
from videoqa.folders import without_folders

FILE = "steps.jsonl"
MOST_ERROR = 500  # characters of an error that are told
REPEATED = ("query", "search", "summary")  # steps that come several times, so that they are numbered
KINDS = {
    **dict.fromkeys(("key", "clip", "step", "model"), str),
    **dict.fromkeys(("id", "output", "error"), str | None),
    **{"n": int, "seconds": float | int},
}


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was done. `output` is None where it failed, which `error` explains."""

    clip: str
    id: str | None
    step: str  # what it is: the name of an expert, "draft", "query", "search", ...
    n: int  # of several steps of one name
    model: str
    input: Any  # JSON
    output: str | None
    seconds: float  # since the reply before it, for replies of one batch: together they are the batch's time
    error: str | None = None
    finished: bool = True  # False: a model's reply that was cut
    refusal: bool = False  # the server says that the model refused


def key_of(step: str, model: str, input: Any) -> str:
    """Stands for what an output depends on."""
    return short_hash(json.dumps([step, model, input], ensure_ascii=True, sort_keys=True))


class Steps:
    """The steps of a run folder. What `others` (folders) have done counts as done and is copied when it is used, so
    that each run's file is whole."""

    def __init__(self, folder: Path, others: Sequence[Path] = ()) -> None:
        self._lines = _lines(folder)
        mine = [line for line in self._lines.read() if line["error"] is None]
        self._mine = {line["key"]: line for line in mine}
        self._copied: dict[str, dict[str, Any]] = {}
        for other in others:
            if other.resolve() != folder.resolve():
                self._copied |= {line["key"]: line for line in _lines(other).read() if line["error"] is None}
        self._placed = {_place(line) for line in mine}

    def done(self, clip: str, id: str | None, step: str, n: int, model: str, input: Any) -> Mapping[str, Any] | None:
        """The line of this step, with its output; None if it was not done."""
        key = key_of(step, model, input)
        line = self._mine.get(key) or self._copied.get(key)
        if line is None:
            return None
        here = {**line, "clip": clip, "id": id, "n": n}
        if _place(here) not in self._placed:  # another question's, or another run's: it belongs to this trace too
            self._append(here)
        return line

    def keep(self, step: Step) -> None:
        """Put a step on disk."""
        self._append({"key": key_of(step.step, step.model, step.input), **asdict(step)})

    def _append(self, line: dict[str, Any]) -> None:
        self._lines.append(line)
        if line["error"] is None:
            self._mine[line["key"]] = line
            self._placed.add(_place(line))


def _lines(folder: Path) -> Lines:
    return Lines(folder / FILE, "key", "clip", "id", "step", "n", "output", "error", kinds=KINDS)


def _place(line: Mapping[str, Any]) -> tuple[Any, ...]:
    return line["clip"], line["id"], line["step"], line["n"], line["key"]


def read_steps(folder: Path) -> list[dict[str, Any]]:
    """All steps of a run, in the order in which they were done; none where the run is no agent's."""
    return _lines(folder).read()


def trace(steps: Sequence[Mapping[str, Any]], id: str, clip: str) -> list[Mapping[str, Any]]:
    """The steps that led to the answer to a question: those of its clip, then its own, each the last time it was
    done."""
    last: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for line in steps:
        if line["clip"] == clip and line["id"] in (None, id):
            place = (line["id"], line["step"], line["n"])
            last.pop(place, None)
            last[place] = line
    return sorted(last.values(), key=lambda line: line["id"] is not None)


def heading(line: Mapping[str, Any]) -> str:
    """What a step is, who did it, and in how many seconds."""
    number = f" {line['n'] + 1}" if line["step"] in REPEATED else ""
    query = line["input"].get("query") if isinstance(line["input"], Mapping) else None
    wanted = f" for {query!r}" if line["step"] == "search" and query is not None else ""
    return f"{line['step']}{number}{wanted}, {without_folders(line['model'])}, {line['seconds']:.1f} s"


def told(steps: Sequence[Mapping[str, Any]]) -> str:
    """Steps as one text for people; what went wrong is told without folders of this machine."""
    return "\n\n".join(f"{heading(line)}\n{_end(line)}" for line in steps)


def _end(line: Mapping[str, Any]) -> str:
    if line["error"] is not None:
        return f"failed: {without_folders(line['error'][:MOST_ERROR])}"
    return line["output"] or "(nothing)"
