"""The folder that is a dataset repo: README.md (the card) and data/*.parquet, as load_dataset and the Hub take it.

    easg-bench/
      README.md                            the card; it declares the configs
      statistics.png                       a picture for it
      eval.yaml                            what the Hub's leaderboard of the dataset ranks: a task a config
      data/direct-0d6c7c8a3f52.parquet     the rows of one config

A data file is named after its content. `datasets` keys its cache by the names of the files, so a rebuilt folder, or
another one of the same name, is never answered with the cached rows of the first.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Features

from builder.errors import BuildError
from videoqa.files import abandoned

PICTURE = "statistics.png"
TASKS = "eval.yaml"
# the files of a repo, by path in it
OWN = re.compile(rf"README\.md|{re.escape(PICTURE)}|{re.escape(TASKS)}|data/[^/]+\.parquet")
ROW_GROUP = 10_000  # rows; more than any config of the paper's set has
MARK = "<!-- built by python -m builder: the next build into this folder replaces it -->"


def check_place(out: Path) -> None:
    """Raise BuildError unless `out` is free: absent, an empty folder, or a former build, which will be replaced."""
    if ".." in out.parts:  # where new/.. leads is not known until `new` exists
        raise BuildError(f"{out}: --out names a folder without ..")
    if not out.exists() and not out.is_symlink():
        return
    if not out.is_dir():
        raise BuildError(f"{out}: is a file; --out names a folder")
    data = out / "data"
    paths = [path for path in out.iterdir() if path != data] + (list(data.iterdir()) if data.is_dir() else [])
    names = {path.relative_to(out).as_posix() for path in paths}
    others = sorted(name for name in names if not OWN.fullmatch(name))
    if others:
        raise BuildError(f"{out}: holds something else ({others[0]}); choose a new folder or empty this one")
    if names and ("README.md" not in names or MARK not in (out / "README.md").read_text("utf-8", "replace")):
        raise BuildError(
            f"{out}: holds a dataset that this builder did not make; choose a new folder or empty this one"
        )


@contextmanager
def replaced(out: Path) -> Iterator[Path]:
    """A new folder beside `out` to write the repo into. When the block ends, it takes the place of `out`.

    A former build there is replaced; one that a killed build had put aside comes back first. Where the block raises, or
    the place is taken or cannot be written (BuildError), `out` stays as it was and nothing else is left.
    """
    check_place(out)
    given, out = out, out.resolve()
    _put_back(out)
    fresh = out.with_name(f".{out.name}.new-{os.getpid()}")
    former = out.with_name(f".{out.name}.old-{os.getpid()}")
    try:
        (fresh / "data").mkdir(parents=True)
        yield fresh
        if out.exists():
            out.rename(former)
        try:
            fresh.rename(out)
        except OSError:
            if former.exists():
                former.rename(out)
            raise
    except OSError as error:
        raise BuildError(f"{given}: cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        if out.exists():
            shutil.rmtree(former, ignore_errors=True)


def _put_back(out: Path) -> None:
    """Undo what a killed build left: a former build that it had moved aside becomes `out` again, the rest goes."""
    formers = sorted(abandoned(out, "old"), key=lambda path: path.stat().st_mtime, reverse=True)
    if formers and (not out.exists() or not any(out.iterdir())):
        check_place(formers[0])
        formers.pop(0).replace(out)
    for left in (*formers, *abandoned(out, "new")):
        shutil.rmtree(left, ignore_errors=True)


class Table:
    """One data file of the repo that is written in `folder`, which grows by row groups.

    `path` ends in the start of the file's sha256 once the table is closed.
    """

    def __init__(self, folder: Path, config: str, features: Features) -> None:
        self.path, self.rows = folder / "data" / f"{config}.parquet", 0
        # without the names that this version of `datasets` gives to its features: others have other names ("Sequence")
        self._schema = features.arrow_schema.remove_metadata()
        self._waiting: list[Mapping[str, Any]] = []
        self._writer: pq.ParquetWriter | None = None

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows += len(rows)
        self._waiting += rows
        while len(self._waiting) >= ROW_GROUP:
            self._write(ROW_GROUP)

    def close(self) -> int:
        """Finish the file and return its number of rows; without rows there is no file."""
        if self._waiting:
            self._write(ROW_GROUP)
        if self._writer:
            self._writer.close()
            self.path = self.path.rename(self.path.with_stem(f"{self.path.stem}-{file_sha256(self.path)[:12]}"))
        return self.rows

    def _write(self, count: int) -> None:
        group, self._waiting = self._waiting[:count], self._waiting[count:]
        self._writer = self._writer or pq.ParquetWriter(self.path, self._schema, compression="zstd")
        self._writer.write_table(pa.Table.from_pylist(group, schema=self._schema))


def folder_sha256(folder: Path) -> str:
    """One sha256 over the names and bytes of all files of a folder."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{file_sha256(path)}  {path.relative_to(folder).as_posix()}\n".encode())
    return digest.hexdigest()


def file_sha256(path: Path) -> str:
    """The sha256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
