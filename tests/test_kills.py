"""Commands that are killed and started again (kills.py), in a process without the threads of the other tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_killed_commands_end_as_if_nothing_had_happened() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/kills.py"]
    done = subprocess.run(command, cwd=Path(__file__).resolve().parents[1], capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stdout[-3000:]
