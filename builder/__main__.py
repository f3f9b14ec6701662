"""The command line of the builder.

    python -m builder build --source ../shared/upstream --out build/easg-bench

reads the annotations, words the 1,807 questions of the paper's selection and writes the dataset repo. Of the files
that it needs, `easg-bench fetch` gets the public ones; `read-notebook` and `spans` make the others out of them.

A benchmark is a folder of builder/ with a module `commands` that has a Typer `app`. The commands of easg/ are called by
their own names, those of any other folder behind the folder's name: `python -m builder egoschema build ...`.
"""

from __future__ import annotations

import importlib
import pkgutil
from importlib.util import find_spec
from typing import Any

import typer
from typer.core import TyperGroup

import builder
from builder.errors import BuildError
from videoqa.errors import UserError
from videoqa.extras import advice

UNPREFIXED = "easg"  # its commands were there before there were other benchmarks
EXTRA = ("lemminflect", "matplotlib", "json_repair")  # libraries of the extra `builder`


class OneLine(TyperGroup):
    """Prints what a user can mend as one line, with exit code 2; a bug of ours shows its traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (BuildError, UserError, OSError) as error:
            line = str(error)
        except ImportError as error:
            if (line := advice(error) or "") == "":
                raise
        typer.echo(f"error: {line}", err=True)
        raise typer.Exit(2) from None


def main() -> None:
    """Scene-graph annotations -> questions -> dataset repo."""
    if missing := [name for name in EXTRA if find_spec(name) is None]:
        raise BuildError(f"{missing[0]} is not installed: pip install 'easg-bench[builder]'")


def command_line() -> typer.Typer:
    """The commands of every benchmark's folder, put together."""
    line = typer.Typer(
        cls=OneLine,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # its boxes cut off names of files that are longer than their column
    )
    line.callback()(main)
    for folder in pkgutil.iter_modules(builder.__path__, "builder."):
        if folder.ispkg and find_spec(f"{folder.name}.commands"):
            name = folder.name.removeprefix("builder.")
            commands = importlib.import_module(f"{folder.name}.commands")
            line.add_typer(commands.app, name=None if name == UNPREFIXED else name)
            if hasattr(commands, "general"):  # commands for data of any benchmark
                line.add_typer(commands.general)
    return line


app = command_line()

if __name__ == "__main__":
    app(prog_name="python -m builder")
