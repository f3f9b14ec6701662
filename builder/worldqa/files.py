"""The files of a folder in the form of WorldQA's public copy, and the rows in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from videoqa.errors import UserError
from videoqa.json_files import form_of, parsed, read_json, text_of
from videoqa.rows import HUB_NAME

GENERATION, MC, MC_PPL = "Generation", "MC", "MC_PPL"
KINDS = ("parquet", "jsonl", "json")  # of files
Raw = Mapping[str, Any]  # a row of the copy
Placed = tuple[str, Raw]  # where it stands ("MC row 12"), and the row


def folder_of(source: str) -> Path:
    """The folder that a command line names; of a dataset on the Hub (ORG/NAME) its data files are fetched first."""
    if Path(source).is_dir() or not HUB_NAME.fullmatch(source):
        return Path(source)
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(source, repo_type="dataset", allow_patterns=[f"*.{kind}" for kind in KINDS]))
    except OSError as error:  # what the Hub's errors are as well
        raise UserError(
            f"{source}: no such folder here, and no dataset of this name to be had from the Hub ({error})"
        ) from error


def files_of(folder: Path, config: str) -> list[Path]:
    """The files of a config, in the order of their paths. Raises UserError where they are of several kinds: the same
    rows would be read twice."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    files = []
    for path in sorted(folder.rglob("*")):
        *parents, name = path.relative_to(folder).parts
        hidden = any(part.startswith(".") for part in (*parents, name))
        if not hidden and path.is_file() and config in (*parents, re.split(r"[-.]", name)[0]) and _kind(path) in KINDS:
            files.append(path)
    if len({_kind(path) for path in files}) > 1:
        names = ", ".join(path.relative_to(folder).as_posix() for path in files)
        raise UserError(f"{folder}: {config} is there in files of several kinds: {names}; keep one kind")
    return files


def rows_of(folder: Path, config: str) -> list[Placed]:
    """All rows of a config with where they stand: the file and the row in it, from 0."""
    return [
        (f"{path.relative_to(folder).as_posix()} row {number}", row)
        for path in files_of(folder, config)
        for number, row in enumerate(_rows_in(path))
    ]


def _kind(path: Path) -> str:
    return path.suffix.lower().removeprefix(".")


def _rows_in(path: Path) -> Iterator[Raw]:
    if _kind(path) == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            yield from pq.read_table(path).to_pylist()
        except (OSError, pa.ArrowException) as error:
            raise UserError(f"{path}: cannot be read as parquet: {error}") from None
    elif _kind(path) == "jsonl":
        for number, line in enumerate(text_of(path).split("\n")):
            if line.strip():
                yield as_object(parsed(line, f"{path}, line {number + 1}"), f"{path}, line {number + 1}")
    else:
        rows = read_json(path)
        if not isinstance(rows, list):
            raise UserError(f"{path}: holds {form_of(rows)}; it is a list of rows")
        for number, row in enumerate(rows):
            yield as_object(row, f"{path} row {number}")


def as_object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UserError(f"{where}: holds {form_of(value)}, not an object")
    return value
