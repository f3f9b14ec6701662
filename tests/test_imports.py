"""Who may import whom, read from the source with ast."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OURS = {"easg_bench", "videoqa", "builder", "metrics", "tasks", "space", "demo", "benchmarks", "tests"}
MAY_IMPORT = {
    "easg_bench": set(),
    "videoqa": {"videoqa"},
    "metrics": {"videoqa"},
    "builder": {"easg_bench", "videoqa", "builder"},
    "tasks": {"easg_bench", "videoqa", "tasks"},
    "space": {"easg_bench", "videoqa", "space"},
}
HEAVY = {"torch", "transformers", "vllm", "datasets", "av", "openai"}
SOURCES = sorted(
    path for package in MAY_IMPORT for path in (*ROOT.glob(f"{package}.py"), *ROOT.glob(f"{package}/**/*.py"))
)


def imported(nodes: Iterator[ast.AST] | list[ast.stmt]) -> set[str]:
    """The top-level names that the import statements among the nodes bring in; "." for a relative import."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add("." if node.level else (node.module or "").split(".")[0])
    return names


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_a_package_imports_only_what_it_may(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0].removesuffix(".py")
    allowed = MAY_IMPORT[package] | ({"easg_bench"} if name(path) == "videoqa/cli.py" else set())
    found = imported(ast.walk(ast.parse(path.read_text(encoding="utf-8")))) & OURS
    assert found <= allowed, f"{name(path)} imports {found - allowed}"


@pytest.mark.parametrize("path", [path for path in SOURCES if name(path).startswith("videoqa/")], ids=name)
def test_importing_the_core_does_not_load_heavy_libraries(path: Path) -> None:
    assert not imported(ast.parse(path.read_text(encoding="utf-8")).body) & HEAVY


def test_the_dataset_module_needs_only_datasets() -> None:
    found = imported(ast.walk(ast.parse((ROOT / "easg_bench.py").read_text(encoding="utf-8"))))
    assert found - set(sys.stdlib_module_names) == {"datasets"}
