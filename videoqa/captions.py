"""A file of captions: what is told of each question's video in place of the video.

{"0074f737-...": "C cuts an onion.", "00b9a0de-...": [[0, "C opens the door"], [4.5, "C takes a plate"]]}
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from videoqa.errors import UserError
from videoqa.json_files import is_seconds
from videoqa.rows import Row


def with_captions(rows: Sequence[Row], path: Path) -> list[Row]:
    """The rows with the file's captions as their context. Raises UserError where a row has none there."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: is no JSON: {error}") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: an object is expected: {{ID: text or [[second, text], ...]}}")
    if missing := [row["id"] for row in rows if row["id"] not in content]:
        raise UserError(f"{path}: {len(missing)} of {len(rows)} questions have no captions, the first is {missing[0]}")
    return [{**row, "context": _text(content[row["id"]], f"{path}: {row['id']}")} for row in rows]


def _text(content: Any, where: str) -> str:
    """Captions as one text, with a line for each second."""
    if isinstance(content, str) and content.strip():
        return content.strip()
    if not isinstance(content, list) or not content or not all(map(_is_timed, content)):
        raise UserError(f"{where}: captions are a text, or a list of [second, text]; this is {str(content)[:60]!r}")
    return "\n".join(f"({second:.2f}s) {' '.join(text.split())}" for second, text in sorted(content))


def _is_timed(one: Any) -> bool:
    if not (isinstance(one, list) and len(one) == 2):
        return False
    second, text = one
    return is_seconds(second) and isinstance(text, str)
