"""builder/__main__.py: benchmarks found by their folders, and what is said of errors."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from typer.testing import CliRunner

import builder
from builder.__main__ import app, command_line
from builder.easg import commands
from builder.errors import BuildError

COMMANDS = """
import typer

app = typer.Typer()


@app.callback()
def main() -> None:
    "Questions about nothing."


@app.command()
def generate(count: int = 1) -> None:
    print("nothing " * count)
"""


def test_a_folder_with_commands_is_a_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nothing").mkdir()
    (tmp_path / "nothing" / "__init__.py").touch()
    (tmp_path / "nothing" / "commands.py").write_text(COMMANDS)
    monkeypatch.setattr(builder, "__path__", [*builder.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    line = command_line()
    done = CliRunner().invoke(line, ["nothing", "generate", "--count", "2"])
    assert (done.exit_code, done.stdout.split()) == (0, ["nothing", "nothing"])
    assert "generate" in CliRunner().invoke(line, ["nothing", "--help"]).stdout
    assert CliRunner().invoke(line, ["check", str(tmp_path)]).exit_code == 2, "the commands of easg have no prefix"
    assert CliRunner().invoke(line, ["build", "--help"]).exit_code == 0


@pytest.mark.parametrize("error", [BuildError("kitchen: no such clip"), OSError("the disk is full")])
def test_what_a_user_can_mend_is_one_line(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(commands, "read_clips", fail)
    done = CliRunner().invoke(app, ["read-notebook", "a.ipynb"])
    assert (done.exit_code, done.stderr) == (2, f"error: {error}\n")


@pytest.mark.parametrize("error", [ValueError("zip() argument 2 is shorter"), TypeError("x"), AttributeError("x")])
def test_a_bug_of_ours_shows_its_traceback(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(commands, "read_clips", fail)
    assert CliRunner().invoke(app, ["read-notebook", "a.ipynb"]).exception is error


def test_a_library_that_is_not_installed_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builder.__main__.EXTRA", ("lemminflect_of_nobody",))
    done = CliRunner().invoke(app, ["check", "x"])
    assert done.exit_code == 2
    assert done.stderr == "error: lemminflect_of_nobody is not installed: pip install 'easg-bench[builder]'\n"


@pytest.mark.parametrize(
    "line", ['{"text": "x"}', '{"reply": "a", "text": 5}', "no JSON\n{}", '{"reply": ["a"], "text": null}']
)
def test_a_damaged_stages_folder_is_named(line: str, tmp_path: Path) -> None:
    (tmp_path / "a.stages").mkdir()
    (tmp_path / "a.stages" / "replies.jsonl").write_text(line + "\n")
    with pytest.raises(BuildError, match=r"a\.stages: cannot be used for the stages: .*line 1"):
        from builder.stages import Stages
        from tests.scripted import Scripted

        Stages(tmp_path / "a.stages", Scripted(lambda text, seed: "x"), ("votes",))
