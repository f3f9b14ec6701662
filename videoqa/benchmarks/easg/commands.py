"""The commands that only EASG-Bench has: `export-answers` for the public judge script, `fetch` of the public files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from videoqa.benchmarks.easg.script_file import export_lines
from videoqa.benchmarks.easg.sources import fetch as fetch_sources
from videoqa.commands import options as o
from videoqa.files import write_json
from videoqa.runs import Run, rows_of

app = typer.Typer()


@app.command("export-answers")
def export_answers(
    run_folder: o.RunFolder,
    out: Annotated[Path, typer.Option(help="The file to write.")],
) -> None:
    """Write the answers of a run as the public judge script reads and writes them."""
    opened = Run(run_folder)
    lines, left_out = export_lines(opened, rows_of(opened))
    write_json(out, lines)
    print(f"{out}: {len(lines)} answers" + (f" ({left_out})" if left_out else ""))


@app.command()
def fetch(
    source: Annotated[Path | None, typer.Option("--from", help="Take every file from this folder instead.")] = None,
) -> None:
    """Get the public files that the dataset and the paper's judge are made from."""
    fetch_sources(local=source)
