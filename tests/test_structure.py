"""The house: who may import whom, no circles, a core that knows no paper, and a benchmark made of one folder."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import typer

ROOT = Path(__file__).resolve().parents[1]
OURS = {"easg_bench", "videoqa", "builder", "metrics", "tasks", "space", "demo", "speed", "tests"}
MAY_IMPORT = {
    "easg_bench": {"videoqa"},
    "videoqa": {"videoqa"},
    "metrics": {"videoqa"},
    "builder": {"easg_bench", "videoqa", "builder"},
    "tasks": {"videoqa", "tasks"},
    "space": {"easg_bench", "videoqa", "space"},
}
LINES = 400  # of a file; a longer one has a seam where it can be split
HEAVY = {"torch", "transformers", "vllm", "datasets", "av", "openai"}
# What may import `datasets` at its top: imported itself only where rows are loaded
READS_DATASETS = re.compile(r"videoqa/dataset\.py|videoqa/benchmarks/\w+/data\.py")
SOURCES = sorted(
    path for package in MAY_IMPORT for path in (*ROOT.glob(f"{package}.py"), *ROOT.glob(f"{package}/**/*.py"))
)
CORE = [path for path in SOURCES if re.match(r"videoqa/(?!benchmarks/\w+/)", path.relative_to(ROOT).as_posix())]
# What only a benchmark's own folder may say: its question types, its texts, its tables
PAPERS_WORDS = re.compile(
    r"\bTYPES\b|PAPER|(?i:\bpurposes?\b|\bindirect\b|\bnarrations?\b|camera wearer|two[-_]stage|\beasg(?![-_]bench)"
    r"|Table \d|EgoSchema|WorldQA|\bq_uid\b)"
)


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def running(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes that run: not those under `if TYPE_CHECKING`."""
    for node in tree.body:
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield from ast.walk(node)


def tops(nodes: Iterator[ast.AST] | list[ast.stmt]) -> set[str]:
    """The top-level names that the import statements among the nodes bring in; "." for a relative import."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add("." if node.level else (node.module or "").split(".")[0])
    return names


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_a_package_imports_only_what_it_may(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0].removesuffix(".py")
    imported = tops(ast.walk(parsed(path))) & OURS
    assert imported <= MAY_IMPORT[package], f"{name(path)} imports {imported - MAY_IMPORT[package]}"


@pytest.mark.parametrize("path", [path for path in SOURCES if name(path).startswith("videoqa/")], ids=name)
def test_importing_the_core_does_not_load_heavy_libraries(path: Path) -> None:
    allowed = {"datasets"} if READS_DATASETS.fullmatch(name(path)) else set()
    assert not tops(parsed(path).body) & (HEAVY - allowed)


MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in SOURCES
    if name(path).startswith("videoqa/")
}


def modules_of(path: Path) -> set[str]:
    """The modules of videoqa that a file imports when it is imported or when one of its functions runs."""
    names: set[str] = set()
    for node in running(parsed(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= (inner & MODULES.keys()) or {node.module}
    return names & MODULES.keys() - {"videoqa"}


def test_no_module_of_the_core_imports_itself_by_way_of_others() -> None:
    graph = {module: modules_of(path) - {module} for module, path in MODULES.items()}
    # `open_engine` opens engines by name, each of which fills in what `videoqa.engines` declares
    graph["videoqa.engines"] = {one for one in graph["videoqa.engines"] if not one.startswith("videoqa.engines.")}
    assert list(TopologicalSorter(graph).static_order())


@pytest.mark.parametrize("path", CORE, ids=name)
def test_the_core_imports_no_benchmark(path: Path) -> None:
    assert not [module for module in modules_of(path) if module.startswith("videoqa.benchmarks.")]


@pytest.mark.parametrize("path", CORE, ids=name)
def test_the_core_knows_no_paper(path: Path) -> None:
    """Names and texts of the code; docstrings may show a real row."""
    tree = parsed(path)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body
        if isinstance(node.body[0], ast.Expr)
    }
    words = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            words.append(node.value)
        elif isinstance(node, ast.Name | ast.arg):
            words.append(node.id if isinstance(node, ast.Name) else node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            words.append(node.name)
    assert not [word for word in words if PAPERS_WORDS.search(word)], f"{name(path)} knows a paper"


@pytest.mark.parametrize("path", sorted((ROOT / "videoqa").rglob("*.j2")), ids=name)
def test_the_templates_know_no_paper(path: Path) -> None:
    assert not PAPERS_WORDS.search(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_no_file_is_too_long_to_be_read_at_once(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LINES


def test_the_command_line_keeps_every_command_and_option() -> None:
    """tests/data/commands.json holds those of the version before the house was built."""
    from videoqa.commands import command_line

    found: dict[str, set[str]] = {}

    def walk(command: typer.core.TyperCommand, path: str) -> None:
        for key, inner in getattr(command, "commands", {}).items():
            walk(inner, f"{path} {key}".strip())
        found[path] = {option for p in command.params for option in (*p.opts, *p.secondary_opts)}

    walk(typer.main.get_command(command_line()), "")  # type: ignore[arg-type]
    for command, options in json.loads((ROOT / "tests" / "data" / "commands.json").read_text()).items():
        assert set(options) <= found[command], command


def test_the_public_face_keeps_its_names() -> None:
    import easg_bench

    names = "CONFIGS FEATURES GRAPH_FEATURES NARRATION_FEATURES NEUTRAL_FEATURES QA REPO TYPES Evidence load"
    assert all(hasattr(easg_bench, one) for one in names.split())
    assert not {"torch", "transformers"} & tops(parsed(ROOT / "easg_bench.py").body)
    assert "videoqa" in sys.modules


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_who_expects_json_that_cannot_be_read_expects_a_hundred_thousand_brackets(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Try) and "json.loads(" in " ".join(map(ast.unparse, node.body)):
            caught = " ".join(ast.unparse(handler.type) for handler in node.handlers if handler.type)
            assert "ValueError" not in caught or "RecursionError" in caught, f"{name(path)}, line {node.lineno}"
