"""Files that are whole or not there: JSON Lines that survive a kill, and writing beside and renaming."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import math
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from videoqa.errors import UserError


class Lines:
    """A JSON Lines file that many processes may append to and that survives being killed.

    Every record is one write to a file opened for appending, under a lock; what cannot be written whole is taken back.
    A last line that was cut off when a process died is dropped: by `read` with a warning, by `append` for good. Text is
    escaped to ASCII, so the locale, U+2028 and lone surrogates do no harm. `keys` are what every record must have,
    `kinds` of which type the values of some keys must be.
    """

    def __init__(self, path: Path, *keys: str, kinds: Mapping[str, Any] | None = None) -> None:
        self.path = path
        self.keys = keys
        self.kinds = kinds or {}

    def read(self) -> list[dict[str, Any]]:
        """All whole records. Anything else, but for a last line that was cut off, is an error with its line number."""
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)  # not while another process writes a line
            lines = file.read().split(b"\n")
        records = []
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            if (record := record_in(line)) is None and number == len(lines):
                warnings.warn(f"{self.path}, line {number} was cut off and is dropped", stacklevel=2)
                break
            if record is None:
                raise UserError(f"{self.path}, line {number}: not a JSON object: {line[:60].decode(errors='replace')}")
            if missing := [key for key in self.keys if key not in record]:
                raise UserError(f"{self.path}, line {number}: a record needs {', '.join(missing)}")
            if (name := unfit(record, self.kinds)) is not None:
                raise UserError(f"{self.path}, line {number}: {name} cannot be {record[name]!r}"[:300])
            records.append(record)
        return records

    def append(self, record: dict[str, Any]) -> None:
        """Put one record on disk. OSError names the file, which is then as it was before."""
        line = json.dumps(record, ensure_ascii=True).encode() + b"\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            end = file.seek(0, os.SEEK_END)
            if end and file.seek(end - 1) >= 0 and file.read(1) != b"\n":
                file.seek(0)
                tail = file.readall().rpartition(b"\n")[2]
                if record_in(tail) is None:
                    end -= len(tail)
                    file.truncate(end)
                else:
                    line = b"\n" + line
            try:
                if file.write(line) != len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError as error:
                file.truncate(end)
                raise OSError(error.errno, error.strerror, str(self.path)) from error


def unfit(record: Mapping[str, Any], kinds: Mapping[str, Any]) -> str | None:
    """The first key whose value is not of its kind, or a number that cannot be reckoned with; None where all fit."""
    for key, kind in kinds.items():
        value = record.get(key)
        fits = isinstance(value, kind) and not isinstance(value, bool) and reckonable(value)
        if key in record and not fits:
            return key
    return None


def reckonable(value: Any) -> bool:
    """Whether all numbers in a value of JSON can be reckoned with: none is NaN, infinite or of 400 digits."""
    if isinstance(value, Mapping | list | tuple):
        return all(map(reckonable, value.values() if isinstance(value, Mapping) else value))
    try:
        return not isinstance(value, int | float) or math.isfinite(value)
    except OverflowError:  # an integer beyond the floats
        return False


def record_in(line: bytes) -> dict[str, Any] | None:
    """The JSON object in a line; None if it is none."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def write_json(path: Path, data: Any) -> None:
    """A JSON file, escaped to ASCII."""
    write_text(path, json.dumps(data, indent=2) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write beside and rename, so that the file is always whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for part in abandoned(path, "part"):
        part.unlink(missing_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.part-{os.getpid()}-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:  # half a surrogate pair is no UTF-8
            file.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def abandoned(target: Path, kind: str) -> list[Path]:
    """What a process that was killed left beside `target`, named .<target>.<kind>-<its id>, sorted."""
    name = re.compile(rf"\.{re.escape(target.name)}\.{kind}-(\d{{1,9}})(-\w+)?")
    paths = target.parent.iterdir() if target.parent.is_dir() else ()
    return sorted(path for path in paths if (of := name.fullmatch(path.name)) and not _runs(int(of[1])))


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):  # another user's; no process id
        return True
    return True


def short_hash(text: str) -> str:
    """Twelve hex digits that stand for a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


@contextlib.contextmanager
def whole(out: Path) -> Iterator[Path]:
    """A folder beside `out` that becomes `out` once everything is in it."""
    fresh = out.with_name(f".{out.name}.new-{os.getpid()}")
    for left in abandoned(out, "new"):
        shutil.rmtree(left, ignore_errors=True)
    try:
        yield fresh
        fresh.replace(out)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML file that is a mapping. Raises UserError where it is none."""
    import yaml

    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict):
        raise UserError(f"{path}: names with values are needed, not a {type(found).__name__}")
    return found
