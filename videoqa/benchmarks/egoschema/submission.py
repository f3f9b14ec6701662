"""Predictions -> a file that EgoSchema's validation server and its Kaggle competition take.

    q_uid,answer
    001934bb-81bd-4cd8-a574-0472ef3f6678,3
    ...

one line for each of the 5,031 questions, or {"001934bb-...": 3, ...} as JSON. A file is written whole or not at all,
and a prediction that is not there is never invented.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from videoqa.errors import UserError
from videoqa.files import write_text

LETTERS = "ABCDE"
FORMATS = ("csv", "json")
_SHOWN = 10  # uids that a message lists


class SubmissionError(UserError):
    """Predictions that make no whole submission."""


@dataclass(frozen=True, slots=True)
class Checked:
    """Predictions against the uids that are expected."""

    answers: dict[str, int]  # 0 to 4, in the order of the expected uids
    open: tuple[str, ...]  # expected, but there is no answer or an unreadable one (None)
    doubled: tuple[str, ...]
    unknown: tuple[str, ...]
    outside: tuple[tuple[str, Any], ...]  # with a value that is no answer

    def text(self) -> str:
        """What is wrong, for people; "" where nothing is."""
        parts = [
            _listed("without an answer", self.open),
            _listed("twice", self.doubled),
            _listed("not expected", self.unknown),
            _listed("not 0 to 4 or A to E", [f"{uid} ({value!r})" for uid, value in self.outside]),
        ]
        return "; ".join(part for part in parts if part)


def check(predictions: Mapping[str, Any] | Iterable[tuple[str, Any]], uids: Sequence[str]) -> Checked:
    """Hold predictions against the expected uids. An answer is an index 0 to 4, also in text, or a letter A to E, also
    in brackets; None says that the reply was unreadable."""
    if twice := _twice(uids):
        raise ValueError(f"the expected uids name {twice[0]} twice")
    pairs = list(predictions.items() if isinstance(predictions, Mapping) else predictions)
    expected = set(uids)
    doubled = _twice([uid for uid, _ in pairs])
    read, outside = {}, []
    for uid, value in pairs:
        if uid not in expected or value is None:
            continue
        index = _index(value)
        if index is None:
            outside.append((uid, value))
        else:
            read[uid] = index
    not_open = read.keys() | {uid for uid, _ in outside}
    return Checked(
        answers={uid: read[uid] for uid in uids if uid in read},
        open=tuple(uid for uid in uids if uid not in not_open),
        doubled=tuple(doubled),
        unknown=tuple(dict.fromkeys(uid for uid, _ in pairs if uid not in expected)),
        outside=tuple(outside),
    )


def write(
    path: Path,
    predictions: Mapping[str, Any] | Iterable[tuple[str, Any]],
    uids: Sequence[str],
    format: Literal["csv", "json"] = "csv",
    missing: int | None = None,
) -> Checked:
    """Write the submission, in the order of `uids`, beside `path` and rename it; what was there stays otherwise.

    Raises SubmissionError, with a list, where a uid is doubled or unknown, a value is no answer, or an answer is open
    and `missing` does not say what to put there (0 to 4, for all of them: the user's decision, never ours).
    """
    if format not in FORMATS:
        raise ValueError(f"format {format!r}: the formats are {', '.join(FORMATS)}")
    if missing is not None and (isinstance(missing, bool) or missing not in range(len(LETTERS))):
        raise ValueError(f"missing {missing!r}: it is 0 to 4, or None for no submission with holes")
    if not uids:
        raise ValueError("no uids are expected, so there is nothing to submit")
    checked = check(predictions, uids)
    if checked.doubled or checked.unknown or checked.outside or (checked.open and missing is None):
        raise SubmissionError(f"{path}: not written: {checked.text()}")
    whole = {uid: checked.answers.get(uid, missing) for uid in uids}
    if format == "json":
        text = json.dumps(whole, indent=0) + "\n"
    else:
        lines = io.StringIO()
        csv.writer(lines, lineterminator="\n").writerows([("q_uid", "answer"), *whole.items()])
        text = lines.getvalue()
    write_text(path, text)
    return checked


def _index(value: Any) -> int | None:
    if isinstance(value, str):
        text = value.strip().removeprefix("(").removesuffix(")").upper()
        if len(text) != 1 or text not in f"{LETTERS}01234":
            return None
        return LETTERS.index(text) if text in LETTERS else int(text)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value < len(LETTERS) else None


def _twice(uids: Sequence[str]) -> list[str]:
    return [uid for uid, count in Counter(uids).items() if count > 1]


def _listed(what: str, items: Sequence[str]) -> str:
    more = f", and {len(items) - _SHOWN:,} more" if len(items) > _SHOWN else ""
    return f"{len(items):,} {what}: {', '.join(map(str, items[:_SHOWN]))}{more}" if items else ""
