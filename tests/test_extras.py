"""videoqa/extras.py: a package that is not installed is one line with the extra that brings it."""

from __future__ import annotations

import builtins
import importlib
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from videoqa import commands
from videoqa.errors import UserError
from videoqa.extras import NEEDED, advice

ROOT = Path(__file__).resolve().parents[1]


def test_every_extra_named_is_one_of_the_projects_and_brings_the_package() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    brought_by_others = {"safetensors"}  # by transformers
    names = {"PIL": "pillow", "json_repair": "json-repair", "faster_whisper": "faster-whisper"}
    for package, (extra, _) in NEEDED.items():
        assert package in brought_by_others or any(
            one.startswith(names.get(package, package)) for one in extras[extra]
        ), package


@pytest.mark.parametrize("package", NEEDED)
def test_a_missing_package_is_told_with_what_needs_it(package: str) -> None:
    extra, option = NEEDED[package]
    for name in (package, f"{package}.deep.inside"):
        line = advice(ModuleNotFoundError(f"No module named {name!r}", name=name)) or ""
        assert f"pip install 'easg-bench[{extra}]'" in line and option in line and "\n" not in line


def test_a_package_that_is_named_only_in_words_or_by_the_cause_is_known() -> None:
    assert "[local]" in (advice(ImportError("Using a `device_map` requires Accelerate: install accelerate")) or "")
    outer = ImportError("cannot import name 'x'", name="ours")
    outer.__cause__ = ModuleNotFoundError("No module named 'av'", name="av")
    assert "[video]" in (advice(outer) or "")


def test_a_fault_of_our_own_imports_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    assert advice(ModuleNotFoundError("No module named 'videoqa.nothing'", name="videoqa.nothing")) is None

    def broken() -> Any:
        raise ModuleNotFoundError("No module named 'videoqa.nothing'", name="videoqa.nothing")

    monkeypatch.setattr(commands, "command_line", lambda: broken)
    with pytest.raises(ModuleNotFoundError):
        commands.main()


@pytest.mark.parametrize("package", NEEDED)
def test_the_command_line_says_it_in_one_line_with_exit_code_2(
    package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lacking() -> None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)

    monkeypatch.setattr(commands, "command_line", lambda: lacking)
    with pytest.raises(SystemExit) as end:
        commands.main()
    error = capsys.readouterr().err
    assert end.value.code == 2 and error.startswith("easg-bench: the package ") and error.count("\n") == 1


@pytest.mark.parametrize("package", ["lemminflect", "matplotlib", "json_repair"])
def test_the_builder_names_its_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from builder import __main__ as line

    monkeypatch.setattr(line, "find_spec", lambda name: None if name == package else True)
    done = CliRunner().invoke(line.app, ["check", "x"])
    assert done.exit_code == 2
    assert done.stderr == f"error: {package} is not installed: pip install 'easg-bench[builder]'\n"


def test_accelerate_is_asked_for_before_a_model_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import torch

    from videoqa.engines import open_engine
    from videoqa.engines import transformers as engine

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(engine, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"accelerate is missing.*easg-bench\[local\]"):
        open_engine(str(tmp_path))


@pytest.mark.parametrize("package", ["gradio", "plotly"])
def test_the_space_names_its_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **named: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *arguments, **named)

    for name in ("app", "charts", "columns", "views", "leaderboard", "upload", "questions"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SystemExit, match=r"easg-bench\[space\]"):
        importlib.import_module("app")
    for name in ("app", "charts", "columns", "views", "leaderboard", "upload", "questions"):
        sys.modules.pop(name, None)
