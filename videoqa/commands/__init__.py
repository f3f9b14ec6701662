"""`easg-bench`: run | answer | judge | report | submit | card | compare | merge | videos | judge-check | rejudge |
lighteval | show | import-answers | arena | build | builder, and the commands that a benchmark brings along
(EASG-Bench: fetch, export-answers).

    easg-bench run --data build/easg-bench --model MODEL --judge JUDGE --prompt narrations --out runs/mine

Exit codes: 0 done; 2 a wrong argument or file, said in one line; 3 done, but some rows failed: run it again and only
those are asked. A traceback is a fault of the program.
"""

from __future__ import annotations

import importlib
import io
import sys
from typing import Annotated

import typer

from videoqa import progress
from videoqa.benchmark import tracks
from videoqa.errors import UserError
from videoqa.extras import advice


def _tell_version(wanted: bool) -> None:
    from importlib.metadata import version

    if wanted:
        print(f"easg-bench {version('easg-bench')}")
        raise typer.Exit


# modules here, in the order of the help
GROUPS = ("ask", "agents", "results", "arena", "data", "check", "hosts", "build")


def general(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_tell_version, help="Print the version and stop.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")] = False,
) -> None:
    """Run a model on a benchmark, have its answers scored, and read the scores."""
    progress.hidden = quiet


def command_line() -> typer.Typer:
    """All commands: those of this package, then those of the benchmarks."""
    app = typer.Typer(
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        help="Run a model on a benchmark, have its answers scored, and read the scores.",
    )
    app.callback()(general)
    modules = [f"{__name__}.{group}" for group in GROUPS]
    modules += dict.fromkeys(track.commands for track in tracks().values() if track.commands)
    for module in modules:
        group = importlib.import_module(module).app
        app.registered_commands += group.registered_commands
        app.registered_groups += group.registered_groups
    return app


def main() -> None:
    """The command line: what a user can mend is one line, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a locale that lacks a letter of a name is no error
    try:
        command_line()()
    except (UserError, OSError) as error:
        print(f"easg-bench: {error}", file=sys.stderr)
        sys.exit(2)
    except ImportError as error:
        if (line := advice(error)) is None:
            raise
        print(f"easg-bench: {line}", file=sys.stderr)
        sys.exit(2)
    except Exception as error:
        import httpx

        if not isinstance(error, httpx.HTTPError):
            raise
        print(f"easg-bench: the Hugging Face Hub cannot be reached: {error}", file=sys.stderr)
        sys.exit(2)
