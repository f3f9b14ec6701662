"""docs/slurm_array.sh: each task of an array answers its part, in a folder of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "docs" / "slurm_array.sh"


@pytest.fixture
def called(tmp_path: Path) -> Path:
    """A folder for PATH whose easg-bench prints its arguments, one a line, and ends with 3."""
    command = tmp_path / "bin" / "easg-bench"
    command.parent.mkdir()
    command.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\nexit 3\n')
    command.chmod(0o755)
    return command.parent


def task(called: Path, *arguments: str, **slurm: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")} | slurm
    environment["PATH"] = f"{called}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", str(SCRIPT), *arguments], env=environment, capture_output=True, text=True, timeout=30
    )


@pytest.mark.parametrize("first", [0, 1])
def test_the_tasks_of_an_array_share_the_questions_whatever_they_are_counted_from(called: Path, first: int) -> None:
    parts = []
    for n in range(first, first + 3):
        slurm = {"SLURM_ARRAY_TASK_ID": str(n), "SLURM_ARRAY_TASK_MIN": str(first), "SLURM_ARRAY_TASK_COUNT": "3"}
        done = task(called, "runs/my model", "--model", "a b", **slurm)
        assert done.returncode == 3, "what easg-bench says of failed rows reaches Slurm"
        parts.append(done.stdout.splitlines())
    assert parts == [
        ["answer", "--model", "a b", "--shard", f"{n}/3", "--out", f"runs/my model-{n}-of-3"] for n in (1, 2, 3)
    ]


def test_without_a_folder_or_outside_of_an_array_nothing_is_run(called: Path) -> None:
    assert "the run folder" in task(called, SLURM_ARRAY_TASK_ID="1", SLURM_ARRAY_TASK_COUNT="2").stderr
    done = task(called, "runs/m", "--model", "m")
    assert done.returncode not in (0, 3) and "SLURM_ARRAY_TASK_ID" in done.stderr and not done.stdout
