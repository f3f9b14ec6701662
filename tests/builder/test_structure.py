"""Who may import whom in builder/, read from the source with ast."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "builder").rglob("*.py"))
}


def imports(module: str) -> set[str]:
    """The modules of builder/ that a module imports, at its top or in a function."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= (inner & MODULES.keys()) or {node.module}
    return names & MODULES.keys() - {"builder", module}


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert list(TopologicalSorter({module: imports(module) for module in MODULES}).static_order())


def test_the_shared_part_knows_no_benchmark() -> None:
    shared = [module for module in MODULES if len(module.split(".")) <= 2 and MODULES[module].parent.name == "builder"]
    assert {"builder.repo", "builder.stages", "builder.replies", "builder.inputs"} <= {*shared}
    for module in shared:
        assert all(name in shared for name in imports(module)), f"{module} imports {imports(module)}"
