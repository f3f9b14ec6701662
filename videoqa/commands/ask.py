"""`run`, `answer`, `judge`, `merge`: let a model answer, have the answers scored."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from videoqa import engines
from videoqa import frames as framing
from videoqa.answering import answer_rows
from videoqa.asked import Asked, about, check_scorer, experts_of, order_of
from videoqa.asking import VIDEO_ERROR
from videoqa.benchmark import ScorerOptions, Track
from videoqa.commands import options as o
from videoqa.commands.results import report
from videoqa.engines import Engine
from videoqa.engines.settings import Settings, set_to
from videoqa.errors import UserError
from videoqa.files import read_yaml, short_hash, write_json
from videoqa.judge import MIN_MASS, Judge
from videoqa.progress import bar as tqdm
from videoqa.rating import item_of
from videoqa.rows import Row
from videoqa.runs import (
    NOT_ASKED,
    Run,
    judge_rows,
    merge_runs,
    opened_data,
    result,
    rows_of,
)
from videoqa.scorer import Scorer
from videoqa.store import VerdictStore, default_store, line_of

app = typer.Typer()


@app.command(epilog=o.SPEC_HELP)
def run(
    model: o.Model,
    judge: o.JudgeOrNone = None,
    match: o.Match = None,
    benchmark: o.Benchmark = None,
    data: o.Data = None,
    config: o.Config = None,
    limit: o.Limit = None,
    out: o.Out = Path("runs/run"),
    prompt: o.Prompt = None,
    protocol: o.Protocol = None,
    circular: o.Circular = False,
    shuffle: o.Shuffle = None,
    stop_early: o.StopEarly = False,
    captions: o.Captions = None,
    max_new_tokens: o.MaxTokens = None,
    temperature: o.Temperature = None,
    top_p: o.TopP = None,
    seed: o.Seed = None,
    system: o.System = None,
    stop: o.Stop = None,
    thinking: o.Thinking = None,
    chat_template: o.ChatTemplate = None,
    revision: o.Revision = None,
    repeats: o.Repeats = None,
    model_args: o.ModelArgs = None,
    videos: o.VideoFolder = None,
    frames: o.FramePolicy = str(framing.DEFAULT),
    expert: o.Experts = None,
    without: o.Without = None,
    shard: o.Shard = None,
    rubric: o.RubricName = "ours",
    mode: o.ModeOption = None,
    sampling: o.Sampling = "greedy",
    reading: o.Reading = "ours",
    explain: o.Explain = 0,
    again: o.Again = False,
    store: o.Store = None,
    dtype: o.DtypeOption = "auto",
    device: o.Device = "auto",
    batch_size: o.BatchSize = 8,
    config_file: o.ConfigFile = None,
) -> None:
    """Answer, score and report in one go. A run that was stopped goes on where it stopped."""
    track, place = opened_data(benchmark, data)
    how = ScorerOptions(rubric, mode, sampling, reading)
    judge = check_scorer(track, judge, how, explain, match)
    set_ = _settings(temperature, top_p, seed, system, stop, repeats)
    more = _model_options(model_args, thinking, chat_template, revision)
    engines.check_engine(model, more)
    if judge is not None:
        engines.check_engine(judge)
    order = order_of(circular, shuffle)
    which = about(track, place, config, limit, order, captions, stop_early, repeats)
    experts = experts_of(track, prompt, expert, without)
    asked = _asked(track, which, out, prompt, protocol, max_new_tokens, videos, frames, shard, experts)
    local: dict[str, Any] = {"dtype": dtype, "device": device, "batch_size": batch_size}
    engine: Engine | None = set_to(engines.open_engine(model, **local, options=more), set_)
    assert engine is not None
    rows, opened = asked.begin(engine, out)
    with opened.alone():
        failed = answer_run(engine, rows, opened, asked)
        if judge != model or more or set_.told:
            engine = None  # a GPU may not hold both models
            engine = engines.open_engine(judge, **local) if judge is not None else None
        scorer = track.scorer(engine, how)
        failed += rate_run(scorer, rows, opened, store, explain, again)
    doubtful = _warn_of_doubts(opened, scorer)
    report([out])
    _finish(failed, out, doubtful)


@app.command(epilog=o.SPEC_HELP)
def answer(
    model: o.Model,
    benchmark: o.Benchmark = None,
    data: o.Data = None,
    config: o.Config = None,
    limit: o.Limit = None,
    out: o.Out = Path("runs/run"),
    prompt: o.Prompt = None,
    protocol: o.Protocol = None,
    circular: o.Circular = False,
    shuffle: o.Shuffle = None,
    stop_early: o.StopEarly = False,
    captions: o.Captions = None,
    max_new_tokens: o.MaxTokens = None,
    temperature: o.Temperature = None,
    top_p: o.TopP = None,
    seed: o.Seed = None,
    system: o.System = None,
    stop: o.Stop = None,
    thinking: o.Thinking = None,
    chat_template: o.ChatTemplate = None,
    revision: o.Revision = None,
    repeats: o.Repeats = None,
    model_args: o.ModelArgs = None,
    videos: o.VideoFolder = None,
    frames: o.FramePolicy = str(framing.DEFAULT),
    expert: o.Experts = None,
    without: o.Without = None,
    shard: o.Shard = None,
    dtype: o.DtypeOption = "auto",
    device: o.Device = "auto",
    batch_size: o.BatchSize = 8,
    config_file: o.ConfigFile = None,
) -> None:
    """Let a model answer the questions."""
    track, place = opened_data(benchmark, data)
    set_ = _settings(temperature, top_p, seed, system, stop, repeats)
    more = _model_options(model_args, thinking, chat_template, revision)
    engines.check_engine(model, more)
    order = order_of(circular, shuffle)
    which = about(track, place, config, limit, order, captions, stop_early, repeats)
    experts = experts_of(track, prompt, expert, without)
    asked = _asked(track, which, out, prompt, protocol, max_new_tokens, videos, frames, shard, experts)
    local: dict[str, Any] = {"dtype": dtype, "device": device, "batch_size": batch_size}
    engine = set_to(engines.open_engine(model, **local, options=more), set_)
    rows, opened = asked.begin(engine, out)
    with opened.alone():
        _finish(answer_run(engine, rows, opened, asked), out)


@app.command(epilog=o.SPEC_HELP)
def judge(
    run_folder: o.RunFolder,
    judge: o.JudgeOrNone = None,
    match: o.Match = None,
    rubric: o.RubricName = "ours",
    mode: o.ModeOption = None,
    sampling: o.Sampling = "greedy",
    reading: o.Reading = "ours",
    explain: o.Explain = 0,
    again: o.Again = False,
    store: o.Store = None,
    dtype: o.DtypeOption = "auto",
    device: o.Device = "auto",
    batch_size: o.BatchSize = 8,
    config_file: o.ConfigFile = None,
) -> None:
    """Rate the answers of a run, and the ground truth for the calibration. Several judges' results stand side by
    side."""
    opened = Run(run_folder)
    how = ScorerOptions(rubric, mode, sampling, reading)
    judge = check_scorer(opened.track, judge, how, explain, match)
    if judge is not None:
        engines.check_engine(judge)
    rows_of(opened)  # the data are there, and as they were
    local: dict[str, Any] = {"dtype": dtype, "device": device, "batch_size": batch_size}
    engine = engines.open_engine(judge, **local) if judge is not None else None
    score_run(opened, opened.track.scorer(engine, how), store, explain, again)


@app.command()
def merge(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="All shards of one run.")],
    out: Annotated[Path, typer.Option(help="The folder of the whole run.")],
) -> None:
    """Put the shards of a run together; `judge` then makes its scores, of the verdicts that are there already."""
    merged = merge_runs([Run(folder) for folder in runs], out)
    print(f"{out}: {len(merged.answers())} answers of {len(runs)} shards; next: easg-bench judge {out} --judge JUDGE")


# -- the steps --------------------------------------------------------------------------------------------------------


def _asked(
    track: Track,
    which: Mapping[str, Any],
    out: Path,
    prompt: str | None,
    protocol: str | None,
    max_new_tokens: int | None,
    videos: Path | None,
    frames: str,
    shard: str | None,
    experts: Mapping[str, str | None] | None,
) -> Asked:
    """What is asked, printed, and the place for it."""
    asked = Asked.of(
        track,
        which,
        prompt,
        protocol=protocol,
        max_new_tokens=max_new_tokens,
        videos=videos,
        frames=frames,
        shard=shard,
        experts=experts,
    )
    asked.check_place(out)
    print("\n".join(asked.said))
    return asked


def _settings(
    temperature: float | None,
    top_p: float | None,
    seed: int | None,
    system: str | None,
    stop: list[str] | None,
    repeats: int | None,
) -> Settings:
    """How the model is asked, as the command line says it."""
    if repeats is not None and repeats > 1 and not temperature:
        raise UserError("--repeats: greedy answers are all alike; give --temperature")
    if system is not None and system.startswith("@"):
        system = Path(system[1:]).read_text(encoding="utf-8").strip()
    return Settings(temperature, top_p, seed, system or "", tuple(stop or ()))


def _model_options(
    file: Path | None, thinking: str | None, chat_template: Path | None, revision: str | None
) -> dict[str, Any]:
    """Further options of the model's engine."""
    options = {} if file is None else read_yaml(file)
    template = None if chat_template is None else str(chat_template)
    given = {
        "thinking": None if thinking is None else thinking == "on",
        "chat_template": template,
        "revision": revision,
    }
    return {**options, **{name: value for name, value in given.items() if value is not None}}


def answer_run(engine: Engine, rows: list[Row], run: Run, asked: Asked, others: Sequence[Path] = ()) -> int:
    """Answer what is missing; the number of rows that failed. `others`: runs whose steps an agent need not do again."""
    asker = asked.agent(run, others)
    have = sum(line["error"] is None for line in run.answers().values())
    failed = []
    with tqdm(total=len(rows), initial=have, desc="answers", unit="row") as bar:
        for line in answer_rows(engine, rows, run, asked.videos, asker):
            bar.update()
            if line["error"] is not None:
                failed.append(line)
    for line in failed[:10]:
        print(f"no answer: {line['id']}: {line['error']}", file=sys.stderr)
    if unseen := sum(line["error"].startswith(VIDEO_ERROR) for line in failed):
        print(f"{unseen} of {len(rows)} rows have no video that can be read (video_error)", file=sys.stderr)
    return len(failed)


def score_run(run: Run, scorer: Scorer, store: Path | None, explain: int, again: bool = False) -> None:
    """Score a run that is answered, report it, and end with exit code 3 where rows failed or have no answer."""
    rows = rows_of(run)
    with run.alone():
        failed = rate_run(scorer, rows, run, store, explain, again)
    doubtful = _warn_of_doubts(run, scorer)
    report([run.folder])
    _finish(failed, run.folder, doubtful)
    answers = run.answers()
    if any(answers.get(row["id"], NOT_ASKED)["error"] is not None for row in rows):
        raise typer.Exit(3)


def rate_run(scorer: Scorer, rows: list[Row], run: Run, store: Path | None, explain: int, again: bool) -> int:
    """Rate what has no verdict yet and write the result; the number of rows that failed."""
    judge = scorer if isinstance(scorer, Judge) else None
    if explain and judge is None:
        raise UserError(f"--explain is for judges; {run.track.title} has none")
    if explain and judge is not None and judge.mode != "paper":
        list(judge.explain([], []))  # an engine that cannot is said now, not after the rating
    predictions = {k: line["prediction"] for k, line in run.answers().items() if line["error"] is None}
    if missing := sum(row["id"] not in predictions for row in rows):
        print(f"{missing} of {len(rows)} rows have no answer and are not rated ({run.folder})", file=sys.stderr)
    kept = VerdictStore(store or default_store(), judge.key) if judge else None
    known = [v for of in ("answer", "truth") for v in run.verdicts(scorer.key, of).values()]
    types = {row["type"] for row in rows if row["id"] in predictions}
    total = len(predictions) + (sum(row["type"] in types for row in rows) if scorer.needs_truth else 0)
    failed = []
    with tqdm(total=total, initial=sum(v.status != "judge_error" for v in known), desc="verdicts", unit="row") as bar:
        for identifier, verdict in judge_rows(scorer, rows, predictions, run, kept, again):
            bar.update()
            if verdict.status == "judge_error":
                failed.append((identifier, verdict.raw))
    for identifier, why in failed[:10]:
        print(f"no verdict: {identifier}: {why}", file=sys.stderr)
    write_json(run.scores_path(scorer.key), result(run, rows, scorer.describe()))
    if explain and judge is not None and judge.engine.can_force:  # else the replies of mode paper hold the reasons
        _explain(judge, rows, run, explain)
    return len(failed)


def _explain(judge: Judge, rows: list[Row], run: Run, lowest: int) -> None:
    """Add the judge's reasons for its lowest scores to the verdict lines."""
    verdicts = run.verdicts(judge.key, "answer")
    answers = run.answers()
    rated = [r for r in rows if (v := verdicts.get(r["id"])) and v.status == "ok"]
    rated = sorted(rated, key=lambda r: (verdicts[r["id"]].score, r["id"]))[:lowest]
    wanted = [r for r in rated if not verdicts[r["id"]].explanation]
    if not wanted:
        return
    items = [item_of(r, answers[r["id"]]["prediction"]) for r in wanted]
    given = [verdicts[r["id"]] for r in wanted]
    for index, text in tqdm(judge.explain(items, given), total=len(items), desc="explanations", unit="row"):
        digest = short_hash(items[index].prediction or "")
        line = {"id": wanted[index]["id"], "of": "answer", "judge": judge.key, "rated": digest}
        run.verdicts_file.append(line | line_of(replace(given[index], explanation=text)))


WARN, REFUSE = 0.05, 0.5  # shares of the answers: above the first it is said, above the second it is exit code 3


def _warn_of_doubts(run: Run, scorer: Scorer) -> bool:
    """Say above the table what makes its numbers doubtful; whether it is so much that the run has failed."""
    verdicts = run.verdicts(scorer.key, "answer")
    answers = [line for line in run.answers().values() if line["error"] is None]
    unread = {name: v for name, v in verdicts.items() if v.status in ("unreadable", "out_of_range", "truncated")}
    low = [v for v in verdicts.values() if v.mass is not None and v.mass < MIN_MASS]
    empty = [v for v in verdicts.values() if v.status == "empty_prediction"]
    cut = [line for line in answers if line.get("finished") is False]
    doubts = (  # what, how many, of how many, whether so many can make the run fail
        (
            f"{'replies of the judge' if isinstance(scorer, Judge) else 'answers'} could not be read",
            unread,
            verdicts,
            True,
        ),
        (f"answers have a mass below {MIN_MASS:g} on the allowed scores", low, verdicts, True),
        ("answers are empty", empty, verdicts, True),
        ("answers were cut at the longest length (--max-new-tokens)", cut, answers, False),
    )
    fatal = False
    for what, part, whole, counts in doubts:
        if len(part) > WARN * len(whole):
            print(f"WARNING: {len(part)} of {len(whole)} {what}", file=sys.stderr)
            fatal |= counts and len(part) > REFUSE * len(whole)
    for name, verdict in sorted(unread.items())[: 3 if len(unread) > WARN * len(verdicts) else 0]:
        print(f"  {name}: {verdict.status}: {' '.join(verdict.raw.split())[:160]!r}", file=sys.stderr)
    return fatal


def _finish(failed: int, out: Path, doubtful: bool = False) -> None:
    if failed:
        print(f"{failed} rows failed; the same command asks only for them again ({out})", file=sys.stderr)
    if doubtful:
        print(f"these numbers are not to be trusted, see the warnings above ({out})", file=sys.stderr)
    if failed or doubtful:
        raise typer.Exit(3)
