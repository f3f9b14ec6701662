"""The wheel, installed into an environment of its own: what pip users get."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling", reason="hatchling, which builds the wheel, is not here: pip install -e '.[dev]'")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index", "--quiet"]
    done = subprocess.run([*command, "-w", str(folder), str(ROOT)], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment that has the wheel, and the packages that the tests' own has."""
    folder = tmp_path_factory.mktemp("env")
    venv.create(folder, with_pip=False, symlinks=True)
    scripts = {"base": str(folder), "platbase": str(folder)}
    site = Path(sysconfig.get_path("purelib", "venv", vars=scripts))
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")  # its own .pth files are not followed
    programs = Path(sysconfig.get_path("scripts", "venv", vars=scripts))
    command = [sys.executable, "-m", "pip", "--python", str(programs / "python"), "install", "--no-deps", "--no-index"]
    done = subprocess.run([*command, "--quiet", str(wheel)], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return programs


def run(installed: Path, place: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [str(installed / command[0]), *command[1:]],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_the_wheel_takes_only_its_own_names_at_the_top_and_says_that_it_is_typed(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"videoqa", "easg_bench.py", "easg_bench-0.1.0.dist-info"}
    assert {"videoqa/py.typed", "videoqa/shipped/builder/data/reviews.jsonl"} <= set(names)
    assert not [name for name in names if "__pycache__" in name]


def test_an_installed_wheel_builds_the_demos_dataset_and_loads_it(installed: Path, tmp_path: Path) -> None:
    out = tmp_path / "demo"
    made = run(installed, tmp_path, "easg-bench", "build", "--source", str(ROOT / "demo" / "data"), "--out", str(out))
    assert made.returncode == 0, made.stderr
    assert "total 60" in made.stdout
    code = f"import easg_bench, videoqa; print(len(easg_bench.load({str(out)!r})), videoqa.__file__)"
    loaded = run(installed, tmp_path, "python", "-c", code)
    assert loaded.stdout.startswith("60 ") and str(ROOT) not in loaded.stdout, loaded.stderr


def test_the_commands_of_every_benchmarks_builder_are_there(installed: Path, tmp_path: Path) -> None:
    told = run(installed, tmp_path, "easg-bench", "builder", "--help").stdout
    assert all(name in told for name in ("build", "check", "publish", "egoschema", "worldqa"))
    wrong = run(installed, tmp_path, "easg-bench", "builder", "check", "nowhere")
    assert wrong.returncode == 2 and wrong.stderr.count("\n") == 1 and "nowhere" in wrong.stderr


def test_nothing_of_the_name_builder_is_put_in_the_way_of_others(installed: Path, tmp_path: Path) -> None:
    found = run(installed, tmp_path, "python", "-c", "import builder; print(builder.__file__)")
    assert found.returncode != 0 and "No module named 'builder'" in found.stderr
