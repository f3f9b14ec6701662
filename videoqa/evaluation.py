"""A benchmark from Python: the same run as `easg-bench run`, the same numbers.

from videoqa import evaluate

result = evaluate((model, tokenizer), judge="Qwen/Qwen3-8B", data="build/easg-bench", prompt="narrations")
result.score, result.interval      # 61.3, (58.0, 64.9)
result.to_pandas()                 # a row a question: answer, score, ...
"""

from __future__ import annotations

import contextlib
import html
import io
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tqdm import tqdm

from videoqa import engines, results, tables
from videoqa import frames as framing
from videoqa.answering import answer_rows
from videoqa.asked import Asked, about, check_scorer, experts_of, order_of
from videoqa.benchmark import ScorerOptions
from videoqa.checked import check_of
from videoqa.engines import Engine
from videoqa.engines.settings import Settings, set_to
from videoqa.errors import UserError
from videoqa.files import write_json
from videoqa.judge import Judge
from videoqa.runs import NOT_ASKED, Run, judge_rows, opened_data, result, rows_of
from videoqa.store import VerdictStore

if TYPE_CHECKING:
    from pandas import DataFrame

Model = str | Engine | tuple[Any, Any] | Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A run that is judged: its folder and its result."""

    run: Run
    result: results.Result

    @property
    def score(self) -> float | None:
        """The average over the question types; None where it cannot be computed."""
        return self.result.avg.value

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% interval of `score`."""
        return self.result.avg.interval

    @property
    def by_type(self) -> dict[str, float | None]:
        """The score of each question type."""
        return {name: summary.value for name, summary in self.result.types.items()}

    @property
    def failed(self) -> int:
        """Rows without an answer, or without a score that could be read."""
        return self.result.unanswered + self.result.avg.unreadable

    def table(self, width: int = 100) -> str:
        """What the command line prints: judge and data, the scores beside the published ones, what is doubtful."""
        from rich.console import Console

        console = Console(width=width, file=io.StringIO(), record=True)
        console.print(tables.table([self.result], width))
        lines = [*tables.about([self.result]), *tables.notes([self.result])]
        return "\n".join([*lines, console.export_text().rstrip()])

    def to_pandas(self) -> DataFrame:
        """A row a question: its text, the ground truth, the answer, its score and what came of it."""
        import pandas

        answers, verdicts = self.run.answers(), self.run.verdicts(self.result.scorer, "answer")
        lines = []
        for row in rows_of(self.run):
            answer, verdict = answers.get(row["id"], NOT_ASKED), verdicts.get(row["id"])
            line = {key: row[key] for key in ("id", "clip", "type", "question", "answer")}
            line |= {"prediction": answer.get("prediction"), "error": answer["error"]}
            line |= {"score": verdict and verdict.score, "status": verdict.status if verdict else "unanswered"}
            lines.append(line)
        return pandas.DataFrame(lines)

    def __repr__(self) -> str:
        value, interval = self.score, self.interval
        shown = "no score" if value is None else f"{value:.2f}"
        between = f" ({interval[0]:.1f} to {interval[1]:.1f})" if interval else ""
        return f"<{self.result.label}: {shown}{between}, {self.result.coverage} rows have a score>"

    def _repr_html_(self) -> str:
        """For notebooks."""
        cells = []
        for name in (*self.result.types, *(("Avg.",) if len(self.result.types) > 1 else ())):
            summary = self.result.column(name)
            assert summary is not None
            value = "-" if summary.value is None else f"{summary.value:.2f}"
            low_high = f"{summary.interval[0]:.1f} to {summary.interval[1]:.1f}" if summary.interval else "-"
            cells.append((name, value, low_high, f"{summary.n_scored:,}"))
        head = "<tr><th></th><th>Score</th><th>95%</th><th>Scored</th></tr>"
        body = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in line) + "</tr>" for line in cells)
        notes = [self.result.label, *tables.about([self.result]), *tables.notes([self.result])]
        return f"<table>{head}{body}</table><p>{'<br>'.join(map(html.escape, notes))}</p>"


def evaluate(
    model: Model,
    judge: Model | None = None,
    data: str | Path | None = None,
    *,
    benchmark: str | None = None,
    config: str | None = None,
    prompt: str | None = None,
    limit: int | None = None,
    out: str | Path | None = None,
    name: str = "",
    videos: str | Path | None = None,
    frames: str = str(framing.DEFAULT),
    expert: Sequence[str] = (),
    without: str | None = None,
    protocol: str | None = None,
    circular: bool = False,
    shuffle: int | None = None,
    captions: str | Path | None = None,
    max_new_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    system: str = "",
    stop: Sequence[str] = (),
    repeats: int | None = None,
    match: Model | None = None,
    rubric: str = "ours",
    mode: str | None = None,
    sampling: str = "greedy",
    reading: str = "ours",
    store: str | Path | None = None,
    batch_size: int = 8,
    dtype: str = "auto",
    device: str = "auto",
    progress: bool = True,
) -> Evaluation:
    """Ask a model the questions of a benchmark and have its answers scored; the arguments are the options of
    `easg-bench run`.

    `model` and `judge` are what --model takes, an Engine, a loaded (model, tokenizer) of transformers, or a function
    from a list of conversations to a list of replies. `name` is what the results call the model. `out` is the run's
    folder, where a run that was stopped goes on; without it a new temporary one. Raises UserError for what can be
    mended, before a model is loaded where that can be known.
    """
    track, place = opened_data(benchmark, None if data is None else str(data))
    settings = Settings(temperature, top_p, seed, system, tuple(stop))
    if repeats is not None and repeats > 1 and not temperature:
        raise UserError("repeats: greedy answers are all alike; give a temperature")
    how = ScorerOptions(rubric, mode, sampling, reading)
    check_scorer(track, None if judge is None else "judge", how, 0, None if match is None else "match")
    rater = judge if judge is not None else match
    for spec in (model, rater):
        if isinstance(spec, str):
            engines.check_engine(spec)
    order = order_of(circular, shuffle)
    asked = Asked.of(
        track,
        about(
            track,
            place,
            config,
            limit,
            order,
            None if captions is None else Path(captions),
            repeats=repeats,
        ),
        prompt,
        protocol=protocol,
        max_new_tokens=max_new_tokens,
        videos=None if videos is None else Path(videos),
        frames=frames,
        experts=experts_of(track, prompt, list(expert), without),
    )
    folder = Path(tempfile.mkdtemp(prefix="easg-bench-")) if out is None else Path(out)
    asked.check_place(folder)
    local: dict[str, Any] = {"batch_size": batch_size, "dtype": dtype, "device": device}
    with contextlib.ExitStack() as stack:
        engine = set_to(engine_of(model, stack, name, **local), settings)
        rows, run = asked.begin(engine, folder)
        stack.enter_context(run.alone())
        for _ in tqdm(
            answer_rows(engine, rows, run, asked.videos, asked.agent(run, device=device)),
            desc="answers",
            disable=not progress,
        ):
            pass
        if rater is not None and (rater is not model or settings.told):
            engine = engine_of(rater, stack, "", **local)
        scorer = track.scorer(engine if rater is not None else None, how)
        known = {key: line["prediction"] for key, line in run.answers().items() if line["error"] is None}
        kept = VerdictStore(store, scorer.key) if isinstance(scorer, Judge) else None
        for _ in tqdm(judge_rows(scorer, rows, known, run, kept), desc="verdicts", disable=not progress):
            pass
        path = run.scores_path(scorer.key)
        check = {"check": check_of(scorer.key, store)} if isinstance(scorer, Judge) else {}
        write_json(path, result(run, rows, scorer.describe() | check))
    return Evaluation(run, results.read(path))


def engine_of(model: Model, stack: contextlib.ExitStack, name: str = "", **local: Any) -> Engine:
    """The engine that `evaluate` makes of its argument; what it borrows is given back when the stack ends."""
    if isinstance(model, str):
        return engines.open_engine(model, **local)
    if isinstance(model, tuple):
        if len(model) != 2:
            raise UserError(f"a loaded model is given as (model, tokenizer), not as {len(model)} things")
        from videoqa.engines.transformers import TransformersEngine, borrowed

        stack.enter_context(borrowed(model[0]))
        return TransformersEngine.loaded(*model, name=name, batch_size=local["batch_size"])
    if all(hasattr(model, part) for part in ("generate", "choice_logprobs", "can_choose", "settings")):
        return cast("Engine", model)
    if callable(model) and not hasattr(model, "generate"):
        from videoqa.engines.function import FunctionEngine

        return FunctionEngine(model, name, local["batch_size"])
    raise UserError(
        f"a {type(model).__name__} is no model: give a spec, an Engine, (model, tokenizer), or a function from "
        "conversations to replies"
    )
