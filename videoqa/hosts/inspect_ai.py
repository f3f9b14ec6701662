"""A benchmark as an inspect-ai task: its prompts, its rows, our scorer, and the figures of `easg-bench run`.

    inspect eval tasks/inspect_easg.py@easg_bench --model openai/ID -T data=build/easg-bench -T judge=JUDGE

inspect-ai asks the model and keeps the log. Rows that end at the same time are rated together, so that a judge in this
process works in batches; each sample's score holds its whole record, of which the metric makes the figures.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
from pathlib import Path
from typing import Any

import anyio
from inspect_ai import Task
from inspect_ai._util.error import PrerequisiteError  # the error that it tells in one line; it has no public name
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser, GenerateConfig
from inspect_ai.scorer import Metric, SampleScore, Score, Target, metric
from inspect_ai.scorer import Scorer as InspectScorer
from inspect_ai.scorer import scorer as as_scorer
from inspect_ai.solver import TaskState, generate
from rich.markup import escape

from videoqa import benchmark
from videoqa.benchmark import Track
from videoqa.engines import check_engine, open_engine
from videoqa.errors import UserError
from videoqa.hosts.judged import figures_and_types, records, scorer_options, setting
from videoqa.runs import load_rows, opened_data
from videoqa.scorer import Scorer


def inspect_task(name: str, **given: str | None) -> Task:
    """The task of the track `name`; `given` are options of `easg-bench run` (those of `_task`), and what is None comes
    from the environment as with the other programs. What can be mended is told in one line before the model is
    asked."""
    try:
        # inspect-ai reads a task file in the file's own folder; folders are meant from where the command was given
        with contextlib.chdir(os.environ.get("PWD", ".") if Path("inspect_easg.py").is_file() else "."):
            return _task(name, **given)
    except (UserError, OSError) as error:
        raise PrerequisiteError(escape(str(error))) from error


def _task(
    name: str,
    data: str | None = None,
    config: str | None = None,
    prompt: str | None = None,
    judge: str | None = None,
    rubric: str | None = None,
    mode: str | None = None,
    sampling: str | None = None,
) -> Task:
    track, place = opened_data(name, data or setting("DATA", benchmark.track(name).repo))
    prompt = prompt or track.way
    way = track.asked(prompt)
    if not way.plain:
        plain = ", ".join(one for one, of in track.ways.items() if of.plain)
        raise UserError(f"--prompt {prompt}: inspect-ai asks in one turn of text, which is {plain}")
    rater = (judge or setting("JUDGE")) if track.rubric is not None else None
    if rater is not None:
        check_engine(rater)
    options = scorer_options(rubric, mode, sampling)
    rows = load_rows(track, place, config)
    if way.captions and not any(row["context"] for row in rows):
        raise UserError(f"--prompt {prompt}: these data tell nothing of their videos")
    samples = [
        Sample(
            id=row["id"],
            input=[ChatMessageUser(content=way.instruction + way.query(row))],
            target=row["answer"] or "",
            metadata={"row": {**row, "prompt": prompt}},
        )
        for row in rows
    ]

    @functools.cache
    def opened(_: str) -> Scorer:
        return track.scorer(open_engine(rater) if rater is not None else None, options)

    return Task(
        name=track.family,
        dataset=MemoryDataset(samples, name=place),
        solver=generate(),
        scorer=rated(Together(track, opened)),
        metrics=[figures_of(track.name)],
        config=GenerateConfig(max_tokens=track.max_new_tokens, temperature=0.0),
    )


class Together:
    """Rates what waits: whoever comes first takes all that have come since."""

    def __init__(self, track: Track, opened: Any) -> None:
        self.track, self._opened = track, opened
        self._lock = anyio.Lock()
        self._waiting: list[dict[str, Any]] = []

    async def record(self, row: dict[str, Any], text: str, error: str) -> dict[str, Any]:
        """The record of an answer (videoqa.hosts.judged)."""
        mine = {"row": row, "text": text, "error": error}
        self._waiting.append(mine)
        async with self._lock:
            if "record" not in mine:
                taken, self._waiting = self._waiting, []
                for one, made in zip(taken, await anyio.to_thread.run_sync(self._records, taken), strict=True):
                    one["record"] = made
        return mine["record"]  # type: ignore[return-value]

    def _records(self, taken: list[dict[str, Any]]) -> list[dict[str, Any]]:
        rows, texts, errors = ([one[key] for one in taken] for key in ("row", "text", "error"))
        return records(self.track, rows, texts, errors, [""] * len(taken), self._opened)


@as_scorer(metrics=[], name="easg_bench")
def rated(together: Together) -> InspectScorer:
    """Our scorer as inspect-ai's."""

    async def score(state: TaskState, target: Target) -> Score:
        if state.epoch > 1:
            raise UserError("one epoch: more answers are no more questions (`easg-bench run --repeats` has them)")
        text = state.output.completion.strip()
        record = await together.record(state.metadata["row"], text, error_of(state.output.stop_reason, text))
        # a mapping: of a plain number that is none inspect-ai would keep the whole row from the metric
        return Score(value={"score": record["score"]}, answer=text, metadata={"record": record})

    return score


def error_of(stop_reason: str, text: str) -> str:
    """Why a reply is no answer; "" where it is one."""
    if stop_reason == "content_filter":
        return "the provider's content filter held the reply back"
    return "" if text or stop_reason == "stop" else f"no text came (stop_reason {stop_reason})"


@metric
def figures_of(name: str) -> Metric:
    """The track's figures (those of all rows, then the measure by type) of the records that the scores hold."""
    track = benchmark.track(name)

    def compute(scores: list[SampleScore]) -> dict[str, float | None]:
        made = [(one.score.metadata or {})["record"] for one in scores]
        found = figures_and_types(made, track)
        return {key: None if math.isnan(value) else value for key, value in found.items()}

    return compute
