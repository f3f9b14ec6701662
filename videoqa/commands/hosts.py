"""`lighteval`, `rejudge`: lighteval with our tasks, and a finished run of it judged again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from videoqa.asked import check_scorers
from videoqa.benchmark import ScorerOptions
from videoqa.commands import options as o
from videoqa.commands.scoring import check_engines, score_run
from videoqa.errors import UserError
from videoqa.hosts import logs

app = typer.Typer()


@app.command(epilog=o.SPEC_HELP)
def rejudge(
    details: Annotated[
        list[Path], typer.Argument(metavar="DETAILS.parquet...", help="The details that lighteval saved of a run.")
    ],
    judge: o.Panel,
    out: Annotated[Path, typer.Option(help="The run folder that keeps both judges' verdicts.")],
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
) -> None:
    """Judge a finished lighteval run again with another judge, or several; the model under test is not loaded. The
    first judge's result is kept beside the new one."""
    check_engines(judge)
    opened = logs.import_details(details, out)
    how = ScorerOptions(rubric, mode, sampling, reading)
    judges = check_scorers(opened.track, judge, how, explain)
    local = {"dtype": dtype, "device": device, "batch_size": batch_size}
    score_run(opened, judges, how, local, store, explain, again)


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
def lighteval(context: typer.Context) -> None:
    """Run lighteval with the tasks of tasks/; all arguments go to it as they are."""
    try:
        from videoqa.hosts.lighteval.run import main as run_lighteval
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "lighteval":
            raise
        raise UserError("lighteval is not installed: pip install 'easg-bench[lighteval]'") from error
    raise typer.Exit(run_lighteval(context.args))
