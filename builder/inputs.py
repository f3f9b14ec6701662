"""Reading JSON files that people give: what is wrong with one is a BuildError that names the file and the place in it.

    clip_spans.json: clip 49d65bed-...: a whole number of at least 0 is needed, not "26760"

In every function `where` says which thing is read, for the message.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

from builder.errors import BuildError

LARGEST = 2**31 - 1  # whole numbers end up in 32-bit columns of the dataset


def read_object(path: Path) -> dict[str, Any]:
    """A JSON file that is an object, no key twice and all numbers finite; anything else is a BuildError."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
            refuse(str(path), f"the key {show(twice)} comes twice in one object")
        return values

    def no_number(name: str) -> NoReturn:
        refuse(str(path), f"{name} is no number that can be used")

    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=once, parse_constant=no_number)
    except FileNotFoundError:
        refuse(str(path), "no such file")
    except OSError as error:
        refuse(str(path), f"cannot be read: {error.strerror}")
    except json.JSONDecodeError as error:
        whole = "the file ends too early" if error.pos >= len(error.doc.rstrip()) else error.msg
        refuse(str(path), f"no valid JSON at line {error.lineno}, column {error.colno}: {whole}")
    except (ValueError, RecursionError) as error:  # not UTF-8, a number of 5,000 digits, 100,000 open brackets
        refuse(str(path), f"no valid JSON: {error}")
    if not isinstance(data, dict):
        refuse(str(path), f"an object with a key per clip is needed, not {show(data)}")
    return data


def field(raw: Any, key: str, where: str) -> Any:
    """What `raw` has under the key; `where` says in a BuildError which thing is wrong, as in the functions below."""
    if not isinstance(raw, dict):
        refuse(where, f"an object is needed, not {show(raw)}")
    if key not in raw:
        refuse(where, f"{key} is missing")
    return raw[key]


def as_text(value: Any, where: str) -> str:
    """The value, which must be text that can be written as UTF-8."""
    if not isinstance(value, str):
        refuse(where, f"text is needed, not {show(value)}")
    if any("\ud800" <= char <= "\udfff" for char in value):
        refuse(where, f"half of a surrogate pair is no text: {show(value)}")
    return value


def as_number(value: Any, where: str) -> float:
    """The value, which must be a finite number."""
    try:
        finite = not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value)
    except OverflowError:  # a whole number of 400 digits
        finite = False
    if not finite:
        refuse(where, f"a finite number is needed, not {show(value)}")
    return value


def as_index(text: str) -> int | None:
    """The whole number in a text of digits, as a key of an object is one; None where it is none or too large."""
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= len(str(LARGEST)) else LARGEST + 1
    return number if number <= LARGEST else None


def as_whole(value: Any, where: str) -> int:
    if as_number(value, where) != math.floor(value) or not 0 <= value <= LARGEST:
        refuse(where, f"a whole number of at least 0 is needed, not {show(value)}")
    return int(value)


def show(value: Any) -> str:
    """The value as JSON, cut to what fits into a message."""
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def refuse(where: str, what: str) -> NoReturn:
    """Raise a BuildError."""
    raise BuildError(f"{where}: {what}")
