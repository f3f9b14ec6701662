"""The extras `local` and `vllm` can be installed together: what vLLM's newest release asks for leaves room for what we
ask for. A whole run of the resolver takes minutes and gigabytes; what releases declare is read in seconds."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
# what vllm 0.33.0 declares of the packages that we ask for too
VLLM = ["transformers<5.21.0,>=5.16.1", "huggingface_hub>=1.31.0", "torch==2.14.0", "numpy", "pydantic>=2.12.0"]


def ours(extra: str) -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [*project["dependencies"], *project["optional-dependencies"][extra]]


def conflicts(*sides: Iterable[str]) -> list[str]:
    """The packages for which no version satisfies all sides, each with its ranges."""
    ranges: dict[str, SpecifierSet] = {}
    for requirement in map(Requirement, (one for side in sides for one in side)):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            name = canonicalize_name(requirement.name)
            ranges[name] = ranges.get(name, SpecifierSet()) & requirement.specifier
    return [f"{name} {both}" for name, both in sorted(ranges.items()) if both.is_unsatisfiable()]


def test_the_release_of_vllm_that_was_tried_goes_with_a_local_model() -> None:
    assert conflicts(ours("local"), VLLM) == []


def test_ranges_without_a_version_in_common_are_told() -> None:
    assert conflicts(["transformers>=5.24", "torch"], VLLM) == ["transformers <5.21.0,>=5.16.1,>=5.24"]
    other_system = "transformers<5; sys_platform == 'nowhere'"
    assert conflicts(["Torch>=2.6", other_system], VLLM) == []


@pytest.mark.slow
def test_the_newest_release_of_vllm_goes_with_a_local_model(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    how = ["--dry-run", "--quiet", "--no-deps", "--ignore-installed", "--retries", "0", "--timeout", "15"]
    command = [sys.executable, "-m", "pip", "install", *how, "--report", str(report)]
    vllm = next(one for one in ours("vllm") if one.startswith("vllm"))
    try:
        done = subprocess.run([*command, vllm], capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        pytest.skip("the package registry did not answer within 120 s")
    if done.returncode != 0:
        pytest.skip(f"no release of vllm can be asked for here: {' '.join(done.stderr.split())[-200:]}")
    newest = json.loads(report.read_text())["install"][0]["metadata"]
    assert conflicts(ours("local"), newest["requires_dist"]) == [], f"vllm {newest['version']}"
