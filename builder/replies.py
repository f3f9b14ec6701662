"""Reading what a language model replies where JSON was asked for.

Sure! {"1": "unique", "2": "repeat",   ->   {1: "unique", 2: "repeat"}
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterator
from typing import Any

START = '{"'  # the beginning of a reply that is one JSON object
LONGEST = 120  # characters of one text in a prompt
DEEPEST = 20  # levels of brackets; no real reply has more, and the repair of 50,000 open ones takes 14 s


def shorten(text: str) -> str:
    """The text, cut to LONGEST; no real name is that long."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def json_in(text: str) -> Iterator[tuple[int, int, Any]]:
    """(start, end, value) of the JSON objects and lists in a text, repaired where they need it."""
    import json_repair

    at = 0
    while opening := re.compile(r"[{\[]").search(text, at):
        start = opening.start()
        at, depth = _closing(text, start)
        try:
            data = json.loads(text[start:at])
        except (ValueError, RecursionError):
            data = json_repair.loads(text[start:at]) if depth <= DEEPEST else None
        yield start, at, data


def _closing(text: str, start: int) -> tuple[int, int]:
    """Where the bracket that opens at `start` closes, or the end of the text; and how deep the brackets go in between.

    Brackets in quotes count as well, for models leave quotes open.
    """
    depth = deepest = 0
    for match in re.compile(r"[{}\[\]]").finditer(text, start):
        depth += 1 if match[0] in "{[" else -1
        deepest = max(deepest, depth)
        if depth == 0:
            return match.end(), deepest
    return len(text), deepest


# --- labels of numbered items ---

UNKNOWN = "unknown"  # in place of a label that is none of those asked for
_LABEL_KEYS = (
    *("label", "vote", "class", "classification", "category", "status", "uniqueness"),
    *("verdict", "answer", "tag", "result", "value", "type"),
)
_NUMBER_KEYS = ("index", "id", "number", "no", "action", "action_number", "action_id", "item", "pair", "key")
_ECHOED = ("verb", "object", "relation", "relations", "indirect", "question")  # of an item in the prompt, repeated
_NO_LABEL = ("label", "null", "none", "nan", "n/a", "true", "false")
_NUMBER = re.compile(r"(?:(?:action|index|item|number|pair|no)[\W_]{0,2}|#)?\s*(\d{1,9})", re.I)
_MARKS = " \t\r\n\"'`*_.,;:!()[]{}<>|#"


def read_labels(text: str, numbers: Collection[int], labels: Collection[str]) -> dict[int, str]:
    """{number: label} for the numbers that the reply labels; {} where it cannot be read.

    Labels come from the JSON in the reply, however broken, and else from lines that look like a list. Of several labels
    for a number the last counts. UNKNOWN stands for a word that is none of `labels`. A number, a null, the beginning of
    a label where the reply was cut, and the prompt's own text repeated are no labels.
    """
    text = unicodedata.normalize("NFKC", text)
    from_json: dict[int, str] = {}
    rest = []
    end = 0
    for start, stop, data in json_in(text):
        if "{" in text[start:stop]:  # "repeat: [4]" is left for the lines
            rest.append(text[end:start])
            end = stop
        try:
            from_json.update(_walk(data, numbers, labels))
        except RecursionError:
            continue
    plain = " ".join([*rest, text[end:]])
    return {**_from_lines(plain, numbers, labels), **_from_pairs(text, numbers, labels), **from_json}


def _walk(data: Any, numbers: Collection[int], labels: Collection[str]) -> dict[int, str]:
    """{number: label} in parsed JSON of any of the forms that models choose."""
    by_number: dict[int, str] = {}
    if isinstance(data, list):
        words = [_word(item, labels) for item in data if isinstance(item, str)]
        if len(words) == len(data) == len(numbers) and None not in words and {*words} & {*labels}:
            data = [dict(zip(map(str, numbers), data, strict=True))]  # labels alone, in the order of the actions
        for item in data:
            by_number.update(_walk(item, numbers, labels))
    if not isinstance(data, dict):
        return by_number
    named = {str(key).strip().casefold(): value for key, value in data.items()}
    number = next((named[key] for key in _NUMBER_KEYS if _numbers(named.get(key), numbers)), None)
    if number is not None and (label := _label(data, labels)) is not None:  # {"index": 3, "label": "unique"}
        return dict.fromkeys(_numbers(number, numbers), label)
    for key, value in data.items():
        if of := _numbers(key, numbers):
            if (label := _label(value, labels)) is not None:
                by_number.update(dict.fromkeys(of, label))
        elif (label := _word(str(key), labels)) in labels and label is not None:  # {"unique": [1, 4], "repeat": 2}
            listed = value if isinstance(value, list) else [value]
            by_number.update({n: label for item in listed for n in _numbers(item, numbers)})
        elif isinstance(value, dict | list):
            by_number.update(_walk(value, numbers, labels))
    return by_number


def _numbers(value: Any, numbers: Collection[int]) -> list[int]:
    """The numbers that a key or a value names: 3, "3", "Action 3", "#3", "3.", "3, 5 and 8"."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return []
    named = [_NUMBER.fullmatch(part.strip(_MARKS)) for part in re.split(r"\s*(?:,|&|\band\b)\s*", str(value)[:200])]
    return [] if None in named else [n for m in named if m for n in [int(m[1])] if n in numbers]


def _label(value: Any, labels: Collection[str]) -> str | None:
    """The label in a value: a word, a list with one, or an object with a field for it."""
    if isinstance(value, str):
        return _word(value, labels)
    if isinstance(value, list):
        return next((label for item in value if (label := _label(item, labels)) is not None), None)
    if isinstance(value, dict):
        named = {str(key).strip().casefold(): v for key, v in value.items() if isinstance(v, str)}
        for key in _LABEL_KEYS:
            if key in named and (label := _word(named[key], labels)) is not None:
                return label
        distinct = {_word(v, labels) for key, v in named.items() if key not in _ECHOED} & {*labels}
        return distinct.pop() if len(distinct) == 1 else None
    return None


def _word(text: str, labels: Collection[str]) -> str | None:
    """The label that the text is, or begins with; UNKNOWN for another word; None for what is no label."""
    words = " ".join(text.casefold().strip(_MARKS).split())
    if begun := re.match(rf"{_form(labels)}\b(?!\s*(?:[|/,]|or\b))", words):
        return _canonical(begun["label"], labels)
    offered = sum(re.search(rf"\b{label}\b", words) is not None for label in labels) > 1  # "unique|check|repeat"
    cut = any(label.startswith(words) for label in labels)
    if not words or offered or cut or words in _NO_LABEL or not re.search(r"[^\W\d]", words) or len(words.split()) > 3:
        return None
    return UNKNOWN


def _form(labels: Collection[str]) -> str:
    """Pattern of a label with an ending: "repeated", "checks", "uniquely"."""
    return rf"(?P<label>{'|'.join(labels)})(?:ed|s|d|ing|ly)?"


def _behind(labels: Collection[str]) -> str:
    """Pattern of what may follow a label in prose: the end, a mark, a reason; no second choice, no rest of a name."""
    choice = rf"\s*(?:[|/,]|or\b)\s*(?:{'|'.join(labels)})"
    return rf"(?!{choice})(?=[\"'`*_]*(?:\s*(?:$|[^\w\s])|\s*\n|\s+(?:because|since|as|action|of|to|for|with)\b))"


def _canonical(word: str, labels: Collection[str]) -> str:
    """The label as it was asked for: "Unique" -> "unique"."""
    return next(label for label in labels if label == word.casefold())


def _from_pairs(text: str, numbers: Collection[int], labels: Collection[str]) -> dict[int, str]:
    """Labels that stand right behind their number: `1: unique`, `"1": "unique"`, `| 1 | unique |`, `1 -> unique`."""
    pair = re.compile(
        rf"(?<![\w.])(\d{{1,9}})[\"'`*_\])]*\s*(?::|=>?|->|→|\|)\s*[\"'`*_\[]*{_form(labels)}{_behind(labels)}", re.I
    )
    return {int(m[1]): _canonical(m["label"], labels) for m in pair.finditer(text) if int(m[1]) in numbers}


def _from_lines(text: str, numbers: Collection[int], labels: Collection[str]) -> dict[int, str]:
    """Labels in lines that begin with their number: `3. pick cup from table - unique`, `Action 3 (pick cup): repeat`;
    or with the label: `unique: 1, 4`."""
    by_number: dict[int, str] = {}
    unknown: dict[int, str] = {}
    word = re.compile(rf"(?<!not )(?<!\w){_form(labels)}\b", re.I)
    for line in text.splitlines():
        line = line.strip(_MARKS + "-–—•+")
        listed = re.fullmatch(rf"{_form(labels)}\W*[:=]\s*(.+)", line, re.I)
        if listed and (of := _numbers(listed[2], numbers)):
            by_number.update(dict.fromkeys(of, _canonical(listed["label"], labels)))
            continue
        begun = _NUMBER.match(line)
        if not begun or int(begun[1]) not in numbers or line[begun.end() :][:1].isalnum():
            continue
        number, rest = int(begun[1]), line[begun.end() :]
        mentions = list(word.finditer(rest))
        distinct = {m["label"].casefold() for m in mentions}
        ends = mentions and not rest[mentions[-1].end() :].strip(_MARKS)
        if ends and (
            len(distinct) == 1 or rest[: mentions[-1].start()].rstrip().endswith(("-", "–", "—", ":", "=", ">"))
        ):
            by_number[number] = _canonical(mentions[-1]["label"], labels)
        elif (
            mentions
            and re.fullmatch(r"[\W_]*", rest[: mentions[0].start()])
            and re.match(_behind(labels), rest[mentions[0].end() :])
        ):
            by_number[number] = _canonical(mentions[0]["label"], labels)
        elif re.fullmatch(r"\s*[:=]\s*[^\W\d_]+", rest) and _word(rest, labels) == UNKNOWN:
            unknown[number] = UNKNOWN
    return {**unknown, **by_number} if by_number else {}
