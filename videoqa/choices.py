"""The options of a question: their letters, and their rearrangements."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from videoqa.errors import UserError
from videoqa.rows import Row

LETTERS = "ABCDEFGHIJ"


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Options in another order: `order[i]` is the original index of the one at i."""

    choices: tuple[str, ...]
    gold: int | None  # index into these choices; None where it is withheld
    order: tuple[int, ...]


def lettered(choices: Sequence[str]) -> str:
    """One line for each option: A. ..., B. ..., ..."""
    check(choices)
    return "\n".join(f"{letter}. {choice}" for letter, choice in zip(LETTERS, choices, strict=False))


def shifts(choices: Sequence[str], gold: int | None) -> list[Arrangement]:
    """All circular shifts, the given order first."""
    count = len(choices)
    return [_arranged(choices, gold, [(i + by) % count for i in range(count)]) for by in range(count)]


def shuffled(choices: Sequence[str], gold: int | None, seed: int, id: str) -> Arrangement:
    """The options of row `id` in an order that depends on the seed and the id alone."""

    def key(index: int) -> bytes:
        return hashlib.sha256(json.dumps([seed, id, index]).encode()).digest()

    return _arranged(choices, gold, sorted(range(len(choices)), key=key))


CIRCULAR = "circular"


def rearranged(rows: Sequence[Row], order: str | None) -> list[Row]:
    """The rows with their options in another order: "circular" (each row in all its shifts, of one `group`, with ids
    ID#0, ID#1, ...), or "shuffle:SEED". `order` of a row is the index of each option in the data, also where the rows
    were rearranged before. None: as they are."""
    if order is None:
        return list(rows)
    if grouped := [row["id"] for row in rows if row.get("group")]:
        raise UserError(f"question {grouped[0]}: the data have its options in every arrangement already")
    if without := [row["id"] for row in rows if not row.get("choices")]:
        raise UserError(f"question {without[0]} has no options to be put in another order")
    if order == CIRCULAR:
        return [
            {**row, **_options(one, row), "id": f"{row['id']}#{shift}", "group": row["id"]}
            for row in rows
            for shift, one in enumerate(shifts(row["choices"], row["gold"]))
        ]
    seed = re.fullmatch(r"shuffle:(\d{1,9})", order)
    if seed is None:
        raise UserError(f"options in the order {order!r}: it is {CIRCULAR} or shuffle:SEED")
    shuffles = (shuffled(row["choices"], row["gold"], int(seed[1]), row["id"]) for row in rows)
    return [{**row, **_options(one, row)} for row, one in zip(rows, shuffles, strict=True)]


def check_rotations(rows: Sequence[Row], counts: Sequence[int]) -> None:
    """Raise UserError unless the rows of each group are one question in each circular shift of its options once, with
    as many options as `counts` allows; the message names the rows."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.get("group") or "", []).append(row)
    alone = groups.pop("", [])
    faults = [f"{row['id']} belongs to no group of rotations" for row in alone]
    for name, group in groups.items():
        faults += _rotation_faults(name, group, counts)
    if faults:
        more = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise UserError(f"rotations: {'; '.join(faults[:_SHOWN])}{more}")


_SHOWN = 10  # faults that a message lists


def _rotation_faults(name: str, group: Sequence[Row], counts: Sequence[int]) -> Iterator[str]:
    """What keeps the rows of a group from being one question in each of its rotations."""
    first, places = group[0], dict[int, list[str]]()
    base = _original(first)
    for row in group:
        order, count = list(row.get("order") or ()), len(row["choices"] or ())
        if count not in counts:
            yield f"{row['id']} has {count} options; allowed are {', '.join(map(str, counts))}"
        elif not order or order != [(order[0] + i) % count for i in range(count)]:
            yield f"{row['id']}: its order {order} is none in which {count} options are moved round"
        elif row["gold"] is not None and not 0 <= row["gold"] < count:
            yield f"{row['id']}: gold is {row['gold']}; it is an index of its {count} options"
        elif _original(row) != base or any(row[key] != first[key] for key in ("question", "clip", "video", "type")):
            yield f"{row['id']} is no rotation of {first['id']}: it has another question, options or right answer"
        else:
            places.setdefault(order[0], []).append(row["id"])
    yield from (f"{' and '.join(ids)} are one rotation" for ids in places.values() if len(ids) > 1)
    if missing := [shift for shift in range(len(first["choices"] or ())) if shift not in places]:
        ids = ", ".join(row["id"] for row in group)
        yield f"group {name} ({ids}) lacks the rotation that begins with option {missing[0] + 1} of its first order"


def _original(row: Row) -> tuple[Any, ...]:
    """The options in their first order, with the right one; nothing where the order is none of them."""
    choices, order = row["choices"] or (), row.get("order") or ()
    if sorted(order) != list(range(len(choices))):
        return ()
    gold = None if row["gold"] is None or not 0 <= row["gold"] < len(order) else order[row["gold"]]
    return *(choices[order.index(i)] for i in range(len(order))), gold


def _options(one: Arrangement, of: Row) -> dict[str, Any]:
    """The options of a row in another order; `order` leads past an earlier one to the data."""
    before = of.get("order") or range(len(one.order))
    return {"choices": list(one.choices), "gold": one.gold, "order": [before[i] for i in one.order]}


def _arranged(choices: Sequence[str], gold: int | None, order: Sequence[int]) -> Arrangement:
    check(choices, gold)
    moved = None if gold is None else order.index(gold)
    return Arrangement(tuple(choices[i] for i in order), moved, tuple(order))


def check(choices: Sequence[str], gold: int | None = None) -> None:
    if isinstance(choices, str) or not 2 <= len(choices) <= len(LETTERS):
        raise ValueError(f"{len(choices)} options: 2 to {len(LETTERS)} can be lettered")
    whole = isinstance(gold, int) and not isinstance(gold, bool)
    if gold is not None and not (whole and 0 <= gold < len(choices)):
        raise ValueError(f"gold {gold!r}: it is an index into {len(choices)} options, 0 to {len(choices) - 1}")
