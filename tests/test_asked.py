"""What is wrong is said before a model is loaded: with engines that fail the test when they are opened."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from videoqa import commands

EGO = Path(__file__).resolve().parents[1] / "demo" / "egoschema"


@pytest.fixture
def refused(
    demo_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    """Runs a command that must end with one line and exit code 2, its engines unopened; the line."""

    def opened(spec: str, **_: Any) -> None:
        pytest.fail(f"{spec} was opened before the wrong value was said")

    monkeypatch.setattr("videoqa.engines.open_engine", opened)
    monkeypatch.chdir(tmp_path)

    def run(*command: str | Path) -> str:
        monkeypatch.setattr(sys, "argv", ["easg-bench", *map(str, command)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            commands.main()
        error = capsys.readouterr().err
        assert end.value.code == 2, error
        assert error.startswith("easg-bench: ") and error.count("\n") == 1, error
        return error

    return run


def other_run(folder: Path) -> Path:
    """The folder of a run of other questions."""
    folder.mkdir()
    about = {"format": 1, "data": "x", "config": "default", "revision": "0", "rows": 5, "model": "m", "prompt": "blind"}
    (folder / "config.json").write_text(json.dumps(about))
    return folder


WRONG = [
    (["--data", "/nowhere"], "no such folder"),
    (["--config", "nothing"], "no config|the configs are"),
    (["--benchmark", "none"], "no benchmark 'none'"),
    (["--prompt", "nothing"], "--prompt nothing: EASG-Bench has"),
    (["--protocol", "yes"], "is for multiple choice"),
    (["--shard", "5/4"], "shard '5/4'"),
    (["--circular"], "has no options"),
    (["--captions", "captions.json"], "--captions is for"),
    (["--prompt", "frames"], "give --videos"),
    (["--prompt", "frames", "--videos", "/nowhere"], "no such folder of videos"),
    (["--prompt", "frames", "--videos", "."], "a video of none of the 8 clips"),
    (["--prompt", "frames", "--videos", ".", "--frames", "none:5"], "is not one of"),
    (["--prompt", "two-stage", "--videos", ".", "--config", "direct"], "asks before and after"),
    (["--model", "/nowhere/model"], "no model folder at /nowhere/model"),
    (["--model", "org/name?nothing=1"], "has no option 'nothing'; allowed are dtype, device, batch_size"),
    (["--model", "org/name?batch_size=x"], "must be int"),
    (["--model", "server:name"], "must be given as server:NAME@"),
    (["--out", "other"], "is another run"),
    (["--out", "full"], "holds something else"),
]
WRONG_JUDGE = [
    (["--rubric", "/nowhere.json"], "nowhere.json"),
    (["--reading", "nothing"], "--reading nothing: allowed are"),
    (["--reading", "script", "--mode", "dist"], "with mode paper"),
    (["--judge", "/nowhere/judge"], "no model folder at /nowhere/judge"),
    (["--judge", "server:name@ftp://x"], "must begin with http"),
]


@pytest.mark.parametrize(("options", "said"), [*WRONG, *WRONG_JUDGE])
def test_a_wrong_value_of_a_run_is_said_before_anything_is_loaded(
    options: list[str], said: str, refused: Any, demo_data: Path, tmp_path: Path
) -> None:
    other_run(tmp_path / "other")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("x")
    given = {"--data": str(demo_data), "--model": "model", "--judge": "judge", "--out": str(tmp_path / "run")}
    flags = [option for option in options if option == "--circular"]
    pairs = [option for option in options if option != "--circular"]
    given |= dict(zip(pairs[::2], pairs[1::2], strict=True))
    if given["--out"] in ("other", "full"):
        given["--out"] = str(tmp_path / given["--out"])
    line = refused("run", *(part for pair in given.items() for part in pair), *flags)
    assert re.search(said, line), line
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("options", "said"), WRONG_JUDGE)
def test_a_wrong_value_of_judge_is_said_before_anything_is_loaded(
    options: list[str], said: str, refused: Any, judged: Any
) -> None:
    run = judged()
    judge = [] if "--judge" in options else ["--judge", "judge"]
    assert re.search(said, refused("judge", run, *judge, *options))


def test_what_only_judges_can_do_is_refused_of_a_benchmark_without_one(refused: Any, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from builder.__main__ import app as builder

    data = tmp_path / "ego"
    done = CliRunner().invoke(builder, ["egoschema", "build", "--source", str(EGO), "--out", str(data), "--made"])
    assert done.exit_code == 0, done.output
    command = ("run", "--data", data, "--config", "made", "--model", "model", "--out", tmp_path / "run")
    assert "--explain is for judges" in refused(*command, "--explain", "3")
    assert "has no judge" in refused(*command, "--judge", "judge")
    assert "has no judge" in refused(*command, "--mode", "dist")
    assert "--protocol" not in refused(*command, "--prompt", "frames")
    assert "of none of the" in refused(*command, "--prompt", "frames", "--videos", tmp_path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rubric", "/nowhere.json"], "nowhere.json"),
        (["--judge", "/nowhere"], "no model folder"),
        (["--data", "x"], "x: no"),
    ],
)
def test_a_wrong_value_of_judge_check_is_said_before_anything_is_loaded(
    options: list[str], said: str, refused: Any, demo_data: Path
) -> None:
    given = {"--data": str(demo_data), "--judge": "judge"} | dict(zip(options[::2], options[1::2], strict=True))
    assert said in refused("judge-check", *(part for pair in given.items() for part in pair))


def test_a_run_whose_data_are_gone_says_so_before_its_judge_is_loaded(
    refused: Any, judged: Any, tmp_path: Path
) -> None:
    run = judged()
    config = json.loads((run / "config.json").read_text()) | {"data": str(tmp_path / "gone")}
    (run / "config.json").write_text(json.dumps(config))
    assert "no such folder" in refused("judge", run, "--judge", "judge")
