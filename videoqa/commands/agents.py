"""`index`, `trace`, `ablation`: an agent's search, what it did for an answer, what each of its experts is worth."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from videoqa import comparison, engines, results
from videoqa import frames as framing
from videoqa.asked import Asked, about, check_scorer, experts_of
from videoqa.benchmark import ScorerOptions
from videoqa.commands import options as o
from videoqa.commands.ask import answer_run
from videoqa.commands.results import console, report
from videoqa.commands.scoring import rate_run
from videoqa.errors import UserError
from videoqa.rating import calibration, scored
from videoqa.runs import Run, opened_data, rows_of
from videoqa.steps import heading, read_steps
from videoqa.steps import trace as steps_of

app = typer.Typer()
FULL = "full"


@app.command()
def index(
    source: Annotated[
        Path, typer.Argument(help="A folder of texts (.txt, .md, .rst), or a Wikipedia dump (.xml, .xml.bz2).")
    ],
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("world.sqlite"),
) -> None:
    """Make a local index of texts, which an agent searches."""
    from videoqa.search.index import build

    print(f"{out}: {build(source, out):,} passages of {source}")


@app.command()
def trace(
    run_folder: o.RunFolder,
    id: Annotated[str, typer.Argument(metavar="ID", help="The question's id.")],
    whole: Annotated[bool, typer.Option("--whole", help="Also what went into each step.")] = False,
) -> None:
    """Print each step that led to an agent's answer: who did it, in how many seconds, what came out."""
    from rich.text import Text

    run = Run(run_folder)
    rows = {row["id"]: row for row in rows_of(run)}
    if id not in rows:
        near = difflib.get_close_matches(id, rows, n=1, cutoff=0)
        raise UserError(f"{run_folder}: no question {id!r}; the nearest is {near[0] if near else 'none'}")
    every = read_steps(run_folder)
    if not every:
        raise UserError(f"{run_folder}: has no steps; only the runs of an agent have")
    row, out = rows[id], console()
    out.print(Text(f"{row['question']}  ({id}, video {row['video']})", style="bold"))
    for line in steps_of(every, id, row["clip"]):
        out.print(Text(f"\n{_printable(heading(line))}", style="cyan"))
        if whole:
            out.print(Text(_printable(json.dumps(line["input"], ensure_ascii=False, indent=1)), style="dim"))
        if line["error"] is not None:
            out.print(Text(_printable(f"failed: {line['error']}"), style="red"))
        else:
            out.print(Text(_printable(line["output"]) or "(nothing)"))
    answer = run.answers().get(id, {"prediction": None, "error": "not asked yet"})
    said = answer["prediction"] if answer["error"] is None else f"(no answer: {answer['error']})"
    out.print(Text(f"\nanswer: {_printable(said)}", style="bold"))
    out.print(Text(f"ground truth: {row['answer']}"))


def _printable(text: str) -> str:
    """A text for the terminal, in which nothing steers the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


@app.command(epilog=o.SPEC_HELP)
def ablation(
    model: o.Model,
    judge: o.JudgeOrNone = None,
    benchmark: o.Benchmark = None,
    data: o.Data = None,
    config: o.Config = None,
    limit: o.Limit = None,
    out: Annotated[Path, typer.Option(help="The folder of all runs: full, without-NAME, ...")] = Path("runs/ablation"),
    prompt: o.Prompt = None,
    max_new_tokens: o.MaxTokens = None,
    videos: o.VideoFolder = None,
    frames: o.FramePolicy = str(framing.DEFAULT),
    expert: o.Experts = None,
    without: o.Without = None,
    rubric: o.RubricName = "ours",
    mode: o.ModeOption = None,
    store: o.Store = None,
    dtype: o.DtypeOption = "auto",
    device: o.Device = "auto",
    batch_size: o.BatchSize = 8,
) -> None:
    """Run an agent whole and once without each of its experts, score all runs and print them beside each other. What
    one run has done is not done again by the next; stopped, it goes on where it stopped."""
    track, place = opened_data(benchmark, data)
    agents = [name for name, way in track.ways.items() if way.agent]
    if not agents:
        raise UserError(f"{track.title} has no agent")
    prompt = prompt or agents[0]
    whole = experts_of(track, prompt, expert, without)
    if whole is None:
        raise UserError(f"--prompt {prompt} has no experts; those that have are {', '.join(agents)}")
    scorer_options = ScorerOptions(rubric, mode)
    check_scorer(track, judge, scorer_options)
    for spec in (model, judge):
        if spec is not None:
            engines.check_engine(spec)
    local: dict[str, Any] = {"dtype": dtype, "device": device, "batch_size": batch_size}
    which = about(track, place, config, limit)
    variants: dict[str, Mapping[str, str | None]] = {FULL: whole}
    variants |= {f"without-{name}": {**whole, name: None} for name, spec in whole.items() if spec is not None}
    plans = {
        name: Asked.of(
            track, which, prompt, max_new_tokens=max_new_tokens, videos=videos, frames=frames, experts=experts
        )
        for name, experts in variants.items()
    }
    for name, asked in plans.items():
        asked.check_place(out / name)
    print("\n".join(plans[FULL].said))
    engine = engines.open_engine(model, **local)
    done: dict[str, Run] = {}
    failed = 0
    for name in plans:
        print(f"{name}:")
        asked = plans[name]
        rows, run = asked.begin(engine, out / name)
        with run.alone():
            failed += answer_run(engine, rows, run, asked, device, [one.folder for one in done.values()])
        done[name] = run
    rater = engine if judge == model else engines.open_engine(judge, **local) if judge is not None else None
    scorer = track.scorer(rater, scorer_options)
    for run in done.values():
        with run.alone():
            failed += rate_run(scorer, rows_of(run), run, store, 0, False)
    report([run.folder for run in done.values()])
    console().print(_differences(done, scorer.key))
    if failed:
        print(f"{failed} rows failed; the same command asks only for them again ({out})", file=sys.stderr)
        raise typer.Exit(3)


def _differences(runs: Mapping[str, Run], key: str) -> Any:
    """What each run scores, and how much less than the whole agent on the same rows, as a rich table."""
    from rich.table import Table

    full = runs[FULL]
    rows, of_track = rows_of(full), full.track
    scale = calibration(of_track, key, rows, full.verdicts(key, "truth"))
    scores = {name: scored(rows, run.verdicts(key, "answer")) for name, run in runs.items()}
    table = Table(title=f"{of_track.title}: what each expert is worth, {of_track.measure.title.lower()}")
    table.add_column("")
    for head in ("score", "minus full", "95% interval", "p", "rows in both"):
        table.add_column(head, justify="right")
    for name, run in runs.items():
        value = results.read(run.scores_path(key)).avg.value
        cells = ["-" if value is None else f"{value:.2f}"]
        if name != FULL:
            try:
                found = comparison.compare(scores[name], scores[FULL], scale, key=key, types=of_track.types).avg
                span = f"{found.interval[0]:+.2f} to {found.interval[1]:+.2f}" if found.interval else "-"
                cells += [f"{found.difference:+.2f}", span, f"{found.p_value:.3f}", str(found.n)]
            except UserError as error:
                cells += ["-", str(error), "", ""]
        table.add_row(name.replace("-", " ", 1) if name != FULL else name, *cells)
    return table
