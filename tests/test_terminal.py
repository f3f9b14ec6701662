"""What fits on a terminal of 80 columns: help and tables, nothing cut off."""

from __future__ import annotations

import inspect
import io
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from videoqa import figures, tables
from videoqa.commands import command_line
from videoqa.commands import options as o
from videoqa.engines import _made
from videoqa.results import files, read

CUT = "\N{HORIZONTAL ELLIPSIS}"


def commands_of(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands_of(inner, (*path, name))


PASSED_ON = {"lighteval", "build", "builder"}  # their arguments, --help among them, go on to another command line
OURS = list(commands_of(typer.main.get_command(command_line())))


@pytest.mark.parametrize("path", [p for p in OURS if not {*p} & PASSED_ON], ids=" ".join)
def test_nothing_of_a_commands_help_is_cut_off(path: tuple[str, ...]) -> None:
    done = CliRunner().invoke(command_line(), [*path, "--help"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})
    assert done.exit_code == 0 and CUT not in done.output, done.output
    assert max(map(len, done.output.splitlines())) <= 80


def test_nothing_of_the_builders_help_is_cut_off() -> None:
    from builder.__main__ import app

    for path in commands_of(typer.main.get_command(app)):
        done = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})
        assert done.exit_code == 0 and CUT not in done.output, done.output


@pytest.mark.parametrize("kind", o.ENGINE_OPTIONS)
def test_every_option_of_an_engine_is_in_the_help_and_no_other(kind: str) -> None:
    told = {name for names in o.ENGINE_OPTIONS[kind][1] for name in names.split(", ")}
    places = {"model", "api_key", "copies", "options", "local"} | ({"base_url"} if kind == "server" else set())
    assert told == set(inspect.signature(_made(kind)).parameters) - places
    done = CliRunner().invoke(command_line(), ["run", "--help"], env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"})
    assert all(name in done.output for name in told)


@pytest.mark.parametrize("width", [80, 100, 140])
def test_tables_of_runs_show_every_number_whole(width: int, judged: Callable[..., Path]) -> None:
    runs = [judged(name) for name in ("org/a-model-with-a-rather-long-name-that-goes-on-1.5B-instruct", "b")]
    results = [read(path) for run in runs for path in files(run)]
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(tables.table(results, width))
    console.print(figures.extras_table(results))
    text = console.export_text()
    assert CUT not in text and max(map(len, text.splitlines())) <= width
    for summary in (*results[0].types.values(), results[0].avg):
        assert f" {summary.value:.2f} " in text
        low, high = summary.interval or (0.0, 0.0)
        assert f"({low:.1f}-" in text and f"{high:.1f})" in text
    assert (
        "Llama-3.1-8B" in text
        and "Avg." in text
        and "60 of" in text
        and all(re.search(rf"\b{name}\b", text) for name in results[0].types)
    )


@pytest.mark.slow
def test_lightevals_list_of_tasks_has_ours() -> None:
    pytest.importorskip("lighteval", reason="lighteval is not installed")
    command = [sys.executable, "-m", "videoqa.commands", "lighteval", "tasks", "list"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    for task in ("easg_bench:before", "easg_bench_narrations:purpose", "easg_bench_two_stage:after", "egoschema"):
        assert task in done.stdout
    assert "no tasks in this suite" not in done.stdout
