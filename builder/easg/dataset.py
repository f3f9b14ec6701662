"""Rows -> the dataset repo of EASG-Bench: its tables, the picture of its statistics, and the card."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from builder import repo
from builder.easg import card, stats
from builder.errors import BuildError
from easg_bench import CONFIGS, TYPES


def write(
    out: Path, batches: Iterable[Mapping[str, Sequence[Mapping[str, Any]]]], sources: Sequence[Path], made: str
) -> None:
    """Write the repo; a former build in `out` is replaced.

    A batch holds the rows of whole clips for each config but `default`. Only the rows of the last row groups are in
    memory. A config without rows is not declared, for `datasets` cannot read a file without rows. `sources` are the
    files that the rows were made from; the card names them with their sha256, and `made` is what it says of how.
    Raises BuildError where there are no questions, or as repo.replaced does; then nothing is left.
    """
    with repo.replaced(out) as fresh:
        tables = {config: repo.Table(fresh, config, features) for config, features in CONFIGS.items()}
        counted = stats.Stats()
        for batch in batches:
            for config, rows in batch.items():
                tables[config].add(rows)
            questions = (row for kind in TYPES for row in batch.get(kind, ()))
            stats.count(questions, batch.get("graphs", ()), counted)
        sizes = {config: table.close() for config, table in tables.items()}
        if not any(sizes[kind] for kind in TYPES):
            raise BuildError(f"{out}: not written, for no question comes out of {', '.join(map(str, sources))}")
        files = {config: tables[config].path.relative_to(fresh).as_posix() for config in tables if sizes[config]}
        stats.draw(counted, fresh / repo.PICTURE)
        (fresh / repo.TASKS).write_text(card.CARD.tasks_file(["default", *files]), encoding="utf-8")
        (fresh / "README.md").write_text(card.text(files, sizes, sources, made, fresh), encoding="utf-8")
