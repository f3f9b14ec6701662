"""`run`, `answer`, `judge`, `merge`: let a model answer, have the answers scored."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from videoqa import engines
from videoqa import frames as framing
from videoqa.answering import answer_rows
from videoqa.asked import Asked, about, check_scorers, experts_of, order_of
from videoqa.asking import VIDEO_ERROR
from videoqa.benchmark import ScorerOptions, Track
from videoqa.commands import options as o
from videoqa.commands.results import report
from videoqa.commands.scoring import check_engines, finish, rate_all, score_run
from videoqa.engines import Engine
from videoqa.engines.settings import Settings, set_to
from videoqa.errors import UserError
from videoqa.files import read_yaml
from videoqa.hosts.trackers import check_tracker
from videoqa.progress import bar as tqdm
from videoqa.rows import Row
from videoqa.runs import (
    Run,
    merge_runs,
    opened_data,
)

app = typer.Typer()


@app.command(epilog=o.SPEC_HELP)
def run(
    model: o.Model,
    judge: o.Judges = None,
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
    log: o.Log = None,
    config_file: o.ConfigFile = None,
) -> None:
    """Answer, score and report in one go. A run that was stopped goes on where it stopped."""
    track, place = opened_data(benchmark, data)
    how = ScorerOptions(rubric, mode, sampling, reading)
    judges = check_scorers(track, judge or [], how, explain, match)
    check_tracker(log)
    set_ = _settings(temperature, top_p, seed, system, stop, repeats)
    more = _model_options(model_args, thinking, chat_template, revision)
    engines.check_engine(model, more)
    check_engines(judges)
    order = order_of(circular, shuffle)
    which = about(track, place, config, limit, order, captions, stop_early, repeats)
    experts = experts_of(track, prompt, expert, without)
    asked = _asked(track, which, out, prompt, protocol, max_new_tokens, videos, frames, shard, experts)
    local: dict[str, Any] = {"dtype": dtype, "device": device, "batch_size": batch_size}
    engine: Engine | None = set_to(engines.open_engine(model, **local, options=more), set_)
    assert engine is not None
    rows, opened = asked.begin(engine, out)
    with opened.alone():
        failed = answer_run(engine, rows, opened, asked, device)
        ready = [engine] if judges[0] == model and not more and not set_.told else []
        engine = None
        unrated, doubtful = rate_all(judges, how, ready, local, rows, opened, store, explain, again)
    report([out], log=log)
    finish(failed + unrated, out, doubtful)


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
        finish(answer_run(engine, rows, opened, asked, device), out)


@app.command(epilog=o.SPEC_HELP)
def judge(
    run_folder: o.RunFolder,
    judge: o.Judges = None,
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
    log: o.Log = None,
    config_file: o.ConfigFile = None,
) -> None:
    """Rate the answers of a run, and the ground truth for the calibration. Several judges' results stand side by
    side, with their mean and agreement."""
    opened = Run(run_folder)
    how = ScorerOptions(rubric, mode, sampling, reading)
    judges = check_scorers(opened.track, judge or [], how, explain, match)
    check_tracker(log)
    check_engines(judges)
    local: dict[str, Any] = {"dtype": dtype, "device": device, "batch_size": batch_size}
    score_run(opened, judges, how, local, store, explain, again, log)


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


def answer_run(
    engine: Engine, rows: list[Row], run: Run, asked: Asked, device: str = "auto", others: Sequence[Path] = ()
) -> int:
    """Answer what is missing; the number of rows that failed. Of an agent: `device` of its experts' models, and runs
    whose steps need not be done again (`others`)."""
    asker = asked.agent(run, others, device)
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
