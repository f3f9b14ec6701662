"""The files of a folder in the form of WorldQA's public copy, and the checks that all of its readers need."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from builder.errors import BuildError

GENERATION, MC, MC_PPL = "Generation", "MC", "MC_PPL"
KINDS = ("parquet", "jsonl", "json")  # of files
_SHOWN = 10  # faults that a message lists
Raw = Mapping[str, Any]  # a row of the copy
Placed = tuple[str, Raw]  # where it stands ("MC row 12"), and the row


def files_of(folder: Path, config: str) -> list[Path]:
    """The files of a config, in the order of their paths. Raises BuildError where they are of several kinds: the same
    rows would be read twice."""
    if not folder.is_dir():
        raise BuildError(f"{folder}: no such folder")
    files = []
    for path in sorted(folder.rglob("*")):
        *parents, name = path.relative_to(folder).parts
        hidden = any(part.startswith(".") for part in (*parents, name))
        if not hidden and path.is_file() and config in (*parents, re.split(r"[-.]", name)[0]) and _kind(path) in KINDS:
            files.append(path)
    if len({_kind(path) for path in files}) > 1:
        names = ", ".join(path.relative_to(folder).as_posix() for path in files)
        raise BuildError(f"{folder}: {config} is there in files of several kinds: {names}; keep one kind")
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
            raise BuildError(f"{path}: cannot be read as parquet: {error}") from None
    elif _kind(path) == "jsonl":
        for number, line in enumerate(text_of(path).split("\n")):
            if line.strip():
                yield as_object(parsed(line, f"{path}, line {number + 1}"), f"{path}, line {number + 1}")
    else:
        rows = parsed(text_of(path), str(path))
        if not isinstance(rows, list):
            raise BuildError(f"{path}: holds {form_of(rows)}; it is a list of rows")
        for number, row in enumerate(rows):
            yield as_object(row, f"{path} row {number}")


def text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise BuildError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BuildError(f"{path}: is not UTF-8: {error}") from None


def parsed(text: str, where: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        twice = [key for key, n in Counter(key for key, _ in pairs).items() if n > 1]
        stop_at([f"{key} comes twice" for key in twice], where)
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=_no_number)
    except BuildError:
        raise
    except (ValueError, RecursionError) as error:
        raise BuildError(f"{where}: is no JSON: {error}") from None


def is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def as_object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BuildError(f"{where}: holds {form_of(value)}, not an object")
    return value


def form_of(value: Any) -> str:
    if isinstance(value, str):
        return "a text" if value.strip() else "empty"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return "an object" if isinstance(value, dict) else repr(value)


def stop_at(faults: Sequence[str], where: str) -> None:
    if faults:
        more = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise BuildError(f"{where}: {'; '.join(faults[:_SHOWN])}{more}")


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
