"""WorldQA's public copy -> rows of questions.

The copy (lmms-lab/worldqa on the Hub) has three configs. A question of Generation is open-ended; MC has it as multiple
choice, once in each rotation of its options; MC_PPL has it once:

    Generation  {"question_idx": "0", "question": "Why ...?", "answer": "Because ...", "video_idx": "12",
                 "object_description": "...", "rationale": "..."}                                       851 rows
    MC          {"question_idx": "0", "question": "Why ...?", "answer": "B. Because ...", "video_idx": "12",
                 "object_description": "...", "option": ["A. For ...", "B. Because ...", ...]}        3,387 rows
    MC_PPL      as MC                                                                                   851 rows

3,387 rows are 834 questions with four options and 17 with three. Rows of MC that have their video, question and options
in common are one question; each rotation has to be there once. What the copy has no column for may come from a file of
our own form (notes.py).

No row of the copy was at hand when this was written, only its schema; so whatever departs from it is named, all of it
at once, and nothing is mended or guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.worldqa.files import GENERATION, MC, MC_PPL, Placed, Raw, rows_of
from builder.worldqa.notes import check_notes, noted, read_notes
from videoqa.benchmarks.worldqa.data import CHOICE, COUNTS, OPEN
from videoqa.choices import LETTERS
from videoqa.errors import UserError
from videoqa.json_files import form_of, is_text, stop_at
from videoqa.rows import Row

COLUMNS = ("question_idx", "question", "answer", "video_idx", "object_description")


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions of a copy. `alone` are the ids of multiple-choice questions that Generation does not have."""

    open: tuple[Row, ...]
    choice: tuple[Row, ...]
    alone: tuple[str, ...]


def read(folder: Path, notes: Path | None = None) -> Questions:
    """The questions of a folder in the form of the public copy: parquet, JSON or JSON Lines files in a folder of the
    config's name ("MC/test-00000-of-00001.parquet") or named after it ("MC.jsonl"). `notes` is the file with knowledge
    types, steps and events. Raises UserError."""
    raw = {config: rows_of(folder, config) for config in (GENERATION, MC, MC_PPL)}
    if not raw[GENERATION] and not raw[MC] and not raw[MC_PPL]:
        raise UserError(f"{folder}: no files of {GENERATION}, {MC} or {MC_PPL} with rows in them")
    open_ = open_questions(raw[GENERATION])
    choice = choice_questions(raw[MC], open_)
    once = single_questions(raw[MC_PPL], open_)
    if choice and once:
        check_same(choice, once)
    choice = choice or once
    known = {row["id"] for row in open_}
    alone = tuple(row["id"] for row in choice if open_ and row["id"] not in known)
    if notes is not None:
        told = read_notes(notes)
        check_notes(told, [*open_, *choice], str(notes))
        open_, choice = (tuple(noted(row, told) for row in rows) for rows in (open_, choice))
    return Questions(tuple(open_), tuple(choice), alone)


def open_questions(raw: Sequence[Placed]) -> tuple[Row, ...]:
    """The questions of Generation, in its order; their id is the copy's own."""
    faults = [f"{where}: {fault}" for where, row in raw for fault in _faults(row)]
    stop_at(faults, GENERATION)
    places: dict[str, list[str]] = {}
    asked: dict[tuple[str, str], list[str]] = {}
    for where, row in raw:
        places.setdefault(_name(row["question_idx"]), []).append(where)
        asked.setdefault((_name(row["video_idx"]), row["question"].strip()), []).append(where)
    faults = [f"question_idx {id} comes twice: {', '.join(of)}" for id, of in places.items() if len(of) > 1]
    faults += [f"one question of video {v} comes twice: {', '.join(of)}" for (v, _), of in asked.items() if len(of) > 1]
    stop_at(faults, GENERATION)
    return tuple(
        _row(_name(row["question_idx"]), row, OPEN, answer=row["answer"], rationale=row.get("rationale"))
        for _, row in raw
    )


def choice_questions(raw: Sequence[Placed], of: Sequence[Row]) -> tuple[Row, ...]:
    """The questions of MC, in the order in which they come first, with their options in the order of their first row.
    A question has the id of the open one (`of`) with its video and text, else "mc-" and that of its first row. Raises
    UserError for a rotation that is missing, there twice, or none; its message names the rows."""
    stop_at([f"{where}: {fault}" for where, row in raw for fault in _choice_faults(row)], MC)
    groups: dict[tuple[str, str, tuple[str, ...]], list[Placed]] = {}
    for where, row in raw:
        groups.setdefault((*_asked(row), tuple(sorted(_options(row)))), []).append((where, row))
    faults = [fault for group in groups.values() for fault in _rotation_faults(group)]
    others: dict[tuple[str, str], list[list[Placed]]] = {}
    for key, group in groups.items():
        others.setdefault(key[:2], []).append(group)
    for of_question in others.values():
        whole = [group for group in of_question if not _rotation_faults(group)]
        if len(of_question) > 1 and len(whole) < len(of_question):
            rows = "; ".join(_places(group) for group in of_question)
            faults.append(f"rows of one question have foreign options: {rows}")
    stop_at(faults, MC)
    return _with_ids([group[0][1] for group in groups.values()], of, MC)


def single_questions(raw: Sequence[Placed], of: Sequence[Row]) -> tuple[Row, ...]:
    """The questions of MC_PPL, which has each once."""
    stop_at([f"{where}: {fault}" for where, row in raw for fault in _choice_faults(row)], MC_PPL)
    places: dict[tuple[Any, ...], list[str]] = {}
    for where, row in raw:
        places.setdefault((*_asked(row), tuple(sorted(_options(row)))), []).append(where)
    stop_at([f"one question comes twice: {', '.join(of)}" for of in places.values() if len(of) > 1], MC_PPL)
    return _with_ids([row for _, row in raw], of, MC_PPL)


def check_same(some: Sequence[Row], others: Sequence[Row]) -> None:
    """Raise UserError unless MC (`some`) and MC_PPL (`others`) have the same questions, options and right answers. The
    order of the options may differ."""

    def content(row: Row) -> tuple[Any, ...]:
        return row["video"], row["question"].strip(), tuple(sorted(row["choices"]))

    of_some, of_others = ({content(row): row for row in rows} for rows in (some, others))
    faults = [f"question {row['id']} is only in {MC}" for key, row in of_some.items() if key not in of_others]
    faults += [f"question {row['id']} is only in {MC_PPL}" for key, row in of_others.items() if key not in of_some]
    for key, row in of_some.items():
        other = of_others.get(key, row)
        if row["choices"][row["gold"]] != other["choices"][other["gold"]]:
            faults.append(f"question {row['id']} has two right answers")
    stop_at(faults, f"{MC} and {MC_PPL}")


def _with_ids(rows: Sequence[Raw], of: Sequence[Row], config: str) -> tuple[Row, ...]:
    ids = {(row["video"], row["question"].strip()): row["id"] for row in of}
    named = [(ids.get(_asked(row), f"mc-{_name(row['question_idx'])}"), row) for row in rows]
    twice = [id for id, n in Counter(id for id, _ in named).items() if n > 1]
    stop_at([f"two questions would have the id {id}" for id in twice], config)
    return tuple(_row(id, row, CHOICE, choices=_options(row), gold=_gold(row)) for id, row in named)


def _rotation_faults(group: Sequence[Placed]) -> list[str]:
    """What keeps the rows of one question from being each of its rotations once."""
    base = _options(group[0][1])
    wanted = Counter(tuple(base[by:] + base[:by]) for by in range(len(base)))
    places: dict[tuple[str, ...], list[str]] = {}
    for where, row in group:
        places.setdefault(tuple(_options(row)), []).append(where)
    faults = [
        f"{', '.join(of)}: the options are not those of {group[0][0]} moved round"
        for options, of in places.items()
        if options not in wanted
    ]
    faults += [
        f"{', '.join(of)}: one rotation comes {len(of)} times"
        for options, of in places.items()
        if len(of) > wanted[options] > 0
    ]
    for options, count in wanted.items():
        if len(places.get(options, ())) < count:
            faults.append(f"{_places(group)}: the rotation that begins with {options[0][:60]!r} is missing")
    right = {_options(row)[_gold(row)] for _, row in group}
    if len(right) > 1:
        faults.append(f"{_places(group)}: the rotations have {len(right)} different right answers")
    return faults


def _places(group: Sequence[Placed]) -> str:
    return ", ".join(where for where, _ in group)


def _row(
    id: str,
    raw: Raw,
    kind: str,
    *,
    answer: str | None = None,
    rationale: str | None = None,
    choices: list[str] | None = None,
    gold: int | None = None,
) -> Row:
    video = _name(raw["video_idx"])
    return {
        "id": id,
        "clip": video,  # a clip is a whole video
        "video": video,
        "type": kind,
        "question": raw["question"],
        "answer": answer,
        "choices": choices,
        "gold": gold,
        "context": "",
        "frame": None,
        "start_s": None,
        "end_s": None,
        "clip_start_s": 0.0,
        "evidence": [],
        "object_description": raw["object_description"],
        "rationale": rationale,
        "knowledge": [],
        "steps": None,
        "events": [],
        "duration_s": None,
    }


def _faults(row: Raw) -> list[str]:
    if missing := [name for name in COLUMNS if name not in row]:
        return [f"column {name} is missing" for name in missing]
    faults = [f"{key} is {form_of(row[key])}" for key in ("question", "answer") if not is_text(row[key])]
    for key in ("question_idx", "video_idx"):
        if not (is_text(row[key]) or (isinstance(row[key], int) and not isinstance(row[key], bool))):
            faults.append(f"{key} is {form_of(row[key])}")
    for key in ("object_description", "rationale"):
        if not isinstance(row.get(key), str | None):
            faults.append(f"{key} is {form_of(row[key])}; it is a text")
    return faults


def _choice_faults(row: Raw) -> list[str]:
    faults = _faults(row)
    options = row.get("option")
    if not isinstance(options, list) or len(options) not in COUNTS:
        return [*faults, f"option is {form_of(options)}; it is a list of {COUNTS[0]} to {COUNTS[-1]} texts"]
    labelled = True
    for letter, option in zip(LETTERS, options, strict=False):
        if not isinstance(option, str) or not option.startswith(f"{letter}. "):
            faults.append(f"option {letter} begins with {option[:8] if isinstance(option, str) else option!r}")
            labelled = False
        elif not option[len("A. ") :].strip():
            faults.append(f"option {letter} is empty")
            labelled = False
    if not faults and labelled and len({option[len("A. ") :].strip() for option in options}) == 1:
        faults.append("all options have one text")
    if not faults and labelled and _gold_of(row["answer"], options) is None:
        faults.append(f"the answer {row['answer'][:60]!r} is none of the options")
    return faults


def _options(row: Raw) -> list[str]:
    """The texts of the options: "A. " is taken off, and that alone, for an option may hold full stops."""
    return [option[len("A. ") :].strip() for option in row["option"]]


def _gold(row: Raw) -> int:
    gold = _gold_of(row["answer"], row["option"])
    assert gold is not None  # _choice_faults saw to it
    return gold


def _gold_of(answer: str, options: Sequence[str]) -> int | None:
    """Which option an answer is: the option as it stands ("B. Because ..."), or its letter."""
    answer = answer.strip()
    for index, option in enumerate(options):
        if answer == option.strip() or answer.removesuffix(".") == LETTERS[index]:
            return index
    return None


def _asked(row: Raw) -> tuple[str, str]:
    """What a question is about, and its text."""
    return _name(row["video_idx"]), row["question"].strip()


def _name(value: Any) -> str:
    return str(value).strip()
