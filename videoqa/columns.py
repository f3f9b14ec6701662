"""Rows that come as columns of texts, as `evaluate` hands them over: checked once, before anything is computed.

{"predictions": ["the jug", None], "references": ["jug", "pan"], "types": ["direct", "direct"]}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from videoqa.errors import UserError


def checked_columns(columns: Mapping[str, Sequence[Any] | None], allowed: Sequence[str]) -> dict[str, list[str]]:
    """The columns as lists of texts; a prediction of None becomes "", which is an empty answer and nothing worse.

    Raises ValueError, with the row, for a column that is missing, columns of different lengths, anything else than a
    text, a type that is not `allowed`, and a reference without text.
    """
    if missing := [name for name, column in columns.items() if column is None]:
        raise UserError(f"missing: {', '.join(missing)}; each row needs {', '.join(columns)}")
    if texts := [name for name, column in columns.items() if isinstance(column, str)]:
        raise UserError(f"{', '.join(texts)}: a list of texts is expected, one a row, not a single text")
    lists = {name: list(column) for name, column in columns.items() if column is not None}
    if len(set(map(len, lists.values()))) > 1:
        lengths = ", ".join(f"{len(column)} {name}" for name, column in lists.items())
        raise UserError(f"the columns differ in length: {lengths}")
    lists["predictions"] = ["" if text is None else text for text in lists["predictions"]]
    for name, column in lists.items():
        for row, text in enumerate(column):
            if not isinstance(text, str):
                raise UserError(f"{name}, row {row}: {text!r} ({type(text).__name__}); a text is expected")
            if name == "types" and text not in allowed:
                raise UserError(f"types, row {row}: {text!r}; allowed are {', '.join(allowed)}")
            if name == "references" and not text.strip():
                raise UserError(f"references, row {row}: the ground truth is empty")
    return lists
