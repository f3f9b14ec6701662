"""`arena`: answers of several runs against each other, judged by an engine or by people."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from tqdm import tqdm

from videoqa import engines
from videoqa.arena import shown, summary
from videoqa.arena.folder import ORDERS, Arena, judge_matches, made
from videoqa.arena.referee import Referee
from videoqa.arena.votes import SEED
from videoqa.commands import options as o
from videoqa.commands.results import console
from videoqa.errors import UserError
from videoqa.files import write_json, write_text
from videoqa.runs import Run
from videoqa.store import VerdictStore

app = typer.Typer()
group = typer.Typer(help="Answers of several runs against each other: pairs, verdicts, ratings.", no_args_is_help=True)
app.add_typer(group, name="arena")

Runs = Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders with open answers, two or more.")]
Folder = Annotated[Path, typer.Option("--out", help="The arena folder; what was begun goes on there.")]
Rounds = Annotated[int | None, typer.Option(min=1, help="At most N pairs for each question (default: all).")]
Seed = Annotated[int, typer.Option(min=0, help="Of the pairs and their sides.")]
Html = Annotated[Path | None, typer.Option(help="Write one HTML file with charts, tables and examples.")]


@group.command()
def pairs(runs: Runs, out: Folder, rounds: Rounds = None, seed: Seed = SEED) -> None:
    """Draw the pairs of answers, for `judge` or for the page of the Space (EASG_BENCH_ARENA)."""
    _said(made([Run(folder) for folder in runs], out, rounds, seed))


@group.command()
def judge(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="[RUN...]", help="Run folders; none for an arena that is there.")
    ] = None,
    out: Folder = Path("arenas/arena"),
    judge: o.JudgeOrNone = None,
    rounds: Rounds = None,
    seed: Seed = SEED,
    again: o.Again = False,
    store: o.Store = None,
    html: Html = None,
    dtype: o.DtypeOption = "auto",
    device: o.Device = "auto",
    batch_size: o.BatchSize = 8,
) -> None:
    """Have an engine compare the answers, each pair in both orders, and print the ratings."""
    if judge is None:
        raise UserError("the pairs are compared by an engine: name one with --judge")
    arena = made([Run(folder) for folder in runs], out, rounds, seed) if runs else Arena(out)
    _said(arena)
    referee = Referee(engines.open_engine(judge, dtype=dtype, device=device, batch_size=batch_size))
    failed = []
    with arena.alone():
        key = referee.key
        known = sum(verdict.status != "judge_error" for verdict in arena.verdicts(key).values())
        kept = VerdictStore(store, key)
        with tqdm(total=len(ORDERS) * len(arena.matches), initial=known, desc="verdicts", unit="order") as bar:
            for pair, _, verdict in judge_matches(arena, referee, kept, again):
                bar.update()
                if verdict.status == "judge_error":
                    failed.append((pair, verdict.raw))
        weak = _report(arena, html, referee.key)
    for pair, why in failed[:10]:
        print(f"no verdict: pair {pair}: {why}", file=sys.stderr)
    if failed:
        print(f"{len(failed)} verdicts failed; the same command asks only for them again ({out})", file=sys.stderr)
    if failed or weak:
        raise typer.Exit(3)


@group.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="ARENA", help="An arena folder.")],
    html: Html = None,
) -> None:
    """Print the ratings of an arena by people and by each engine, and write them to its ratings.json."""
    _report(Arena(folder), html, None)


def _said(arena: Arena) -> None:
    """Say what is compared."""
    print(f"{arena.folder}: {len(arena.matches):,} pairs of {len(arena.players)} players ({arena.track.title})")
    for player in arena.config["players"]:
        gaps = [f"{player[what]} {what}" for what in ("unanswered", "empty") if player[what]]
        print(f"  {player['name']}{f' ({chr(44).join(gaps)})' if gaps else ''}")


def _report(arena: Arena, html: Path | None, of: str | None) -> bool:
    """Print the ratings (`of` one engine; None: all), write all of them; whether one that is printed says little."""
    every = summary.rated(arena)
    weak = False
    for one in every:
        if of is not None and one.by != of:
            continue
        console().print(shown.table(one))
        console().print(shown.matrix_table(one))
        for line in shown.lines(one):
            print(f"  {line}")
        if summary.doubtful(one):
            weak = True
            print("WARNING: this engine contradicts itself, or says nothing, on most pairs: no ratings to be trusted")
    if not every:
        print("no votes and no verdicts yet")
    write_json(arena.folder / "ratings.json", summary.as_dict(arena, every))
    if html is not None:
        write_text(html, shown.html(arena, every))
        print(html)
    return weak
