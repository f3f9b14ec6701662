"""JSON files of others, read strictly, and faults in them named all at once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from videoqa.errors import UserError

SHOWN = 10  # faults that a message lists


def read_json(path: Path) -> Any:
    """The content of a JSON file, as `parsed`."""
    return parsed(text_of(path), str(path))


def text_of(path: Path) -> str:
    """The text of a file in UTF-8. Raises UserError."""
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: is not UTF-8: {error}") from None


def parsed(text: str, where: str) -> Any:
    """The value of a text in JSON. Raises UserError, also for a key that comes twice in an object, whose last value
    would count otherwise, and for NaN and Infinity, which are no JSON."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        twice = [key for key, n in Counter(key for key, _ in pairs).items() if n > 1]
        stop_at([f"{key} comes twice" for key in twice], where)
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=_no_number)
    except UserError:
        raise
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: is no JSON: {error}") from None


def is_text(value: Any) -> bool:
    """Whether it is a text with something in it."""
    return isinstance(value, str) and bool(value.strip())


def is_seconds(value: Any) -> bool:
    """Whether it is a number that can be a time."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -1e9 < value < 1e9


def form_of(value: Any) -> str:
    """What a message calls a value that is not what it should be."""
    if isinstance(value, str):
        return "a text" if value.strip() else "empty"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return "an object" if isinstance(value, dict) else repr(value)


def stop_at(faults: Sequence[str], where: str) -> None:
    """Raise UserError with the first of the faults, and how many there are, unless there are none."""
    if faults:
        more = f"; and {len(faults) - SHOWN} more" if len(faults) > SHOWN else ""
        raise UserError(f"{where}: {'; '.join(faults[:SHOWN])}{more}")


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
