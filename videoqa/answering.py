"""The answers of a run: what it lacks is asked, pass by pass, and every answer is on disk at once.

A pass asks a question once: where it is asked in several arrangements of its options, or several times with other
seeds, there are several.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from videoqa.asking import Answer, Asker
from videoqa.benchmark import track
from videoqa.engines import Engine
from videoqa.engines.ray import RayEngine
from videoqa.engines.settings import SetEngine, Settings, seeded, set_to
from videoqa.letters import Letters
from videoqa.rating import item_of
from videoqa.repeats import passes
from videoqa.rows import Row
from videoqa.runs import NOT_ASKED, Run
from videoqa.videos import Videos


def answer_rows(
    engine: Engine, rows: Sequence[Row], run: Run, videos: Videos | None = None, asker: Asker | None = None
) -> Iterator[dict[str, Any]]:
    """Ask the model what the run lacks; every answer is on disk when its line comes out here. A row that failed has
    prediction None and its error, and is asked again the next time. `asker`: an agent that was opened (Way.agent)."""
    known = run.answers()
    todo = [row for row in rows if known.get(row["id"], NOT_ASKED)["error"] is not None]
    early = bool(run.config.get("stop_early"))
    parts = [(0, part) for part in _by_shift(todo)] if early else sorted(passes(todo).items())
    before = time.monotonic()
    for repeat, part in parts:
        lost = lost_groups(rows, run.answers()) if early else set()
        asked = [row for row in part if row.get("group") not in lost]
        for row in part:
            if row.get("group") in lost:
                yield _kept(run, {"id": row["id"], "prediction": None, "error": None, "skipped": True})
        for index, answer in _asked(seeded(engine, repeat), asked, run, videos, asker):
            now = time.monotonic()
            yield _kept(run, {**_answer_line(asked[index], answer), "seconds": round(now - before, 3)})
            before = now


def _asked(
    engine: Engine, rows: Sequence[Row], run: Run, videos: Videos | None, asker: Asker | None
) -> Iterator[tuple[int, Answer]]:
    """Each row's index and answer, by the run's way of asking. Where the model is elsewhere and sees videos, the
    rows go there clip by clip, and the frames are read there."""
    most = run.config["max_new_tokens"]
    if asker is not None:
        return asker(engine, rows, most, videos)
    how = (run.track.name, run.config["prompt"], run.config.get("protocol"), most, videos)
    bare, set_ = (engine.engine, engine.set) if isinstance(engine, SetEngine) else (engine, Settings())
    ask = functools.partial(ask_as, *how, set_)
    if videos is None or not isinstance(bare, RayEngine):
        return ask(bare, rows)
    clips: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        clips.setdefault(row["clip"], []).append(index)
    return bare.spread(ask, rows, list(clips.values()), lambda error: Answer(None, error))


def ask_as(
    of_track: str,
    prompt: str,
    protocol: str | None,
    max_new_tokens: int,
    videos: Videos | None,
    set_: Settings,
    engine: Engine,
    rows: Sequence[Row],
) -> Iterator[tuple[int, Answer]]:
    """Ask the rows in one of the track's ways. All but the engine is plain data, so that it can be sent to another
    process."""
    way = track(of_track).asked(prompt)
    ask = way.protocols.get(protocol or "", way.ask)
    return ask(set_to(engine, set_), rows, max_new_tokens, videos)


def _kept(run: Run, line: dict[str, Any]) -> dict[str, Any]:
    run.answers_file.append(line)
    return line


def _answer_line(row: Row, answer: Answer) -> dict[str, Any]:
    line: dict[str, Any] = {"id": row["id"], "prediction": answer.text, "error": answer.error}
    line["finished"] = answer.finished
    extra: dict[str, Any] = {"located": answer.located, "frames": answer.shown or None, "warning": answer.warning}
    extra["refusal"] = answer.refusal or None
    extra |= {"reasoning": answer.reasoning, "probabilities": answer.probabilities, "mass": answer.mass}
    extra |= {"prompt_tokens": answer.prompt_tokens or None, "new_tokens": answer.new_tokens or None}
    return line | {name: value for name, value in extra.items() if value is not None}


def _by_shift(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows by how their options are moved round, the order of the data first: each pass asks a question once."""
    by_shift: dict[int, list[Row]] = {}
    for row in rows:
        by_shift.setdefault((row.get("order") or [0])[0], []).append(row)
    return [by_shift[shift] for shift in sorted(by_shift)]


def lost_groups(rows: Sequence[Row], answers: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """The groups of which a reply chooses a wrong option. A reply that names none may yet be matched to one, so it
    loses nothing here."""
    there = [row for row in rows if row.get("group") and answers.get(row["id"], NOT_ASKED).get("prediction")]
    verdicts = Letters().rate([item_of(row, answers[row["id"]]["prediction"]) for row in there])
    return {there[index]["group"] for index, verdict in verdicts if verdict.score == 0 and verdict.status == "ok"}
