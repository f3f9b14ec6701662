"""`build` and `builder`: the dataset builder. In a checkout it is the folder builder/ (`python -m builder`); the wheel
holds that folder as videoqa/shipped/builder, where its short name can clash with no other package's.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import typer

import videoqa
from videoqa.errors import UserError

app = typer.Typer()
AS_THEY_ARE = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


@app.command(context_settings=AS_THEY_ARE, add_help_option=False)
def build(context: typer.Context) -> None:
    """Make the dataset of EASG-Bench from the files of `fetch`; the same as `easg-bench builder build`."""
    _builder()(["build", *context.args], prog_name="easg-bench builder")


@app.command(context_settings=AS_THEY_ARE, add_help_option=False)
def builder(context: typer.Context) -> None:
    """All commands of the dataset builder: build, check, stats, publish, egoschema ..., worldqa ..."""
    _builder()(context.args, prog_name="easg-bench builder")


def _builder() -> Any:
    """The builder's command line."""
    package = Path(videoqa.__file__).parent
    home = package / "shipped" if (package / "shipped").is_dir() else package.parent
    if not (home / "builder" / "__main__.py").is_file():
        raise UserError(f"this installation holds no builder ({home})")
    sys.path.insert(0, str(home))
    module = importlib.import_module("builder.__main__")
    if home not in Path(str(module.__file__)).parents:
        raise UserError(f"another package of the name builder was imported before: {module.__file__}")
    return module.app
