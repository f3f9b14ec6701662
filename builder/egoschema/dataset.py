"""Rows -> the dataset repo of EgoSchema: its tables and the card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from builder import repo
from builder.egoschema import card
from builder.errors import BuildError
from videoqa.benchmarks.egoschema.data import CONFIGS
from videoqa.dataset import FEATURES


def write(out: Path, configs: Mapping[str, Sequence[Mapping[str, Any]]], sources: Sequence[Path], made: str) -> None:
    """Write the repo; a former build in `out` is replaced. The first config of CONFIGS that has rows is the default
    one. `sources` are the files that the rows were made from, and `made` says how. Raises BuildError without rows."""
    if not any(configs.values()):
        raise BuildError(f"{out}: not written, for no question comes out of {', '.join(map(str, sources))}")
    with repo.replaced(out) as fresh:
        files, sizes = {}, {}
        for config in CONFIGS:
            if rows := configs.get(config):
                table = repo.Table(fresh, config, FEATURES)
                table.add(rows)
                sizes[config] = table.close()
                files[config] = table.path.relative_to(fresh).as_posix()
        (fresh / repo.TASKS).write_text(card.CARD.tasks_file(list(files)), encoding="utf-8")
        (fresh / "README.md").write_text(card.text(files, sizes, sources, made, fresh), encoding="utf-8")
