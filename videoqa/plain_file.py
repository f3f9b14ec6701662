"""Answers as a plain table of ids and predictions: CSV (TSV) with a head, or JSON Lines, such as a run's own answers.

    id,prediction                                        {"id": "4901cdd8-...:4:before", "prediction": "A jug."}
    4901cdd8-...:4:before,"A jug, from the table."

Further columns of a CSV are of no concern; of JSON Lines those that a run keeps beside an answer come along. A row of a
file is counted as a spreadsheet shows it: the head of a CSV is row 1.
"""

from __future__ import annotations

import csv
import difflib
import io
import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from videoqa.errors import UserError
from videoqa.files import record_in, unfit
from videoqa.runs import ANSWER_KINDS

TABLES = {".csv": ",", ".tsv": "\t"}  # what stands between two cells
SUFFIXES = (*TABLES, ".jsonl")
KEPT = (*ANSWER_KINDS, "finished", "refusal", "warning", "skipped")  # of a run's own answer lines


def read_plain(path: Path, ids: Collection[str]) -> list[dict[str, Any]]:
    """The answer lines of a file, each with `id`, a text as `prediction`, and `row`, its place in the file; rows that a
    run has failed to answer are left out. Raises UserError, with the row, for whatever cannot be an answer to one of
    the questions `ids`."""
    text = _text(path)
    rows = _table(path, text, TABLES[path.suffix]) if path.suffix in TABLES else _json_lines(path, text)
    lines: list[dict[str, Any]] = []
    places: dict[str, int] = {}
    for number, row in rows:
        where = f"{path}, row {number}"
        if row.get("error") is not None or row.get("skipped"):
            continue
        if not isinstance(row["prediction"], str):
            raise UserError(f"{where}: prediction is {json.dumps(row['prediction'])[:60]}; a text is expected")
        name = str(row["id"]) if type(row["id"]) is int else row["id"]
        if not isinstance(name, str) or name not in ids:
            raise UserError(f"{where}: the data set has no question {json.dumps(name)[:80]}{_nearest(name, ids)}")
        if name in places:
            raise UserError(f"{where}: answers {name} a second time, after row {places[name]}")
        places[name] = number
        lines.append({"finished": True, **{key: row[key] for key in KEPT if key in row}, "id": name, "row": number})
    return lines


def _text(path: Path) -> str:
    """The file's text, without a mark of byte order."""
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        kind = " but seems to be UTF-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        byte = data[error.start]
        raise UserError(
            f"{path}, line {line}: the byte {byte:#04x} is no UTF-8{kind}: save the file as UTF-8"
        ) from None


def _table(path: Path, text: str, between: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a table by the names in its head, each with its number."""
    cells = csv.reader(io.StringIO(text, newline=""), delimiter=between, strict=True)
    head: list[str] = []
    number = 0
    try:
        for number, row in enumerate(cells, 1):
            if not row or (head and not any(row)):  # an empty line
                continue
            if not head:
                head = [name.strip() for name in row]
                _check_head(path, number, head)
            elif len(row) != len(head):
                raise UserError(f"{path}, row {number}: has {len(row)} cells; the head has {len(head)}")
            else:
                found = dict(zip(head, row, strict=True))
                yield number, {"id": found["id"].strip(), "prediction": found["prediction"]}
    except csv.Error as error:
        raise UserError(f"{path}, row {number + 1}: no {path.suffix[1:].upper()} ({error})") from None


def _check_head(path: Path, number: int, head: list[str]) -> None:
    for name in ("id", "prediction"):
        if head.count(name) != 1:
            there = ", ".join(map(repr, head))[:200]
            count = "no column" if name not in head else "several columns"
            raise UserError(f"{path}, row {number}: {count} {name!r}; the head has {there}")


def _json_lines(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects, each with the number of its line."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        record = record_in(line.encode("utf-8", "surrogatepass"))
        if record is None:
            raise UserError(f"{path}, row {number}: no JSON object: {line[:60]}")
        if missing := [name for name in ("id", "prediction") if name not in record]:
            there = ", ".join(map(repr, record))[:200] or "nothing"
            raise UserError(f"{path}, row {number}: no {' and no '.join(map(repr, missing))}; it has {there}")
        kinds = {key: kind for key, kind in ANSWER_KINDS.items() if key not in ("id", "prediction")}
        if (name := unfit(record, kinds)) is not None:
            raise UserError(f"{path}, row {number}: {name} cannot be {record[name]!r}"[:300])
        yield number, record


def _nearest(name: Any, ids: Collection[str]) -> str:
    near = difflib.get_close_matches(str(name)[:200], ids, n=1, cutoff=0.6)
    return f"; the nearest is {near[0]!r}" if near else ""
