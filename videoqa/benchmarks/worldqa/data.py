"""WorldQA's public copy -> rows of questions.

The copy (lmms-lab/worldqa on the Hub) has three configs. A question of Generation is open-ended; MC has it as multiple
choice, once in each rotation of its options; MC_PPL has it once:

    Generation  {"question_idx": "0", "question": "Why ...?", "answer": "Because ...", "video_idx": "12",
                 "object_description": "...", "rationale": "..."}                                       851 rows
    MC          {"question_idx": "0", "question": "Why ...?", "answer": "B. Because ...", "video_idx": "12",
                 "object_description": "...", "option": ["A. For ...", "B. Because ...", ...]}        3,387 rows
    MC_PPL      as MC                                                                                   851 rows

3,387 rows are 834 questions with four options and 17 with three. Rows of MC that have their video, question and options
in common are one question; each rotation has to be there once. Questions may come with what the copy has no column for,
from a file of our own form:

    {"questions": {"0": {"knowledge": ["tool use", "self motive"], "steps": 4}},
     "videos": {"12": {"duration_s": 93.5, "events": [[0, 4.5, "A man opens the bonnet of a car."], ...]}}}

No row of the copy was at hand when this was written, only its schema; so whatever departs from it is named, all of it
at once, and nothing is mended or guessed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from videoqa.benchmarks.worldqa.augmented import in_order, text
from videoqa.choices import LETTERS
from videoqa.errors import UserError
from videoqa.rows import Row

if TYPE_CHECKING:
    from datasets import Features

GENERATION, MC, MC_PPL = "Generation", "MC", "MC_PPL"
OPEN, CHOICE = "open", "multiple-choice"  # question types
COLUMNS = ("question_idx", "question", "answer", "video_idx", "object_description")
COUNTS = (3, 4, 5)  # how many options a question may have
KNOWLEDGE = ("societal norm", "tool use", "self motive", "social interaction", "multimodal association")
STEPS = range(2, 11)  # of reasoning
KINDS = ("parquet", "jsonl", "json")  # of files
_SHOWN = 10  # faults that a message lists

Raw = Mapping[str, Any]  # a row of the copy
Placed = tuple[str, Raw]  # where it stands ("MC row 12"), and the row


class DataError(UserError):
    """Files that are not of the public copy's form, or that contradict each other."""


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions of a copy. `alone` are the ids of multiple-choice questions that Generation does not have."""

    open: tuple[Row, ...]
    choice: tuple[Row, ...]
    alone: tuple[str, ...]


def read(folder: Path, notes: Path | None = None) -> Questions:
    """The questions of a folder in the form of the public copy: parquet, JSON or JSON Lines files in a folder of the
    config's name ("MC/test-00000-of-00001.parquet") or named after it ("MC.jsonl"). `notes` is the file with knowledge
    types, steps and events. Raises DataError."""
    raw = {config: rows_of(folder, config) for config in (GENERATION, MC, MC_PPL)}
    if not raw[GENERATION] and not raw[MC] and not raw[MC_PPL]:
        raise DataError(f"{folder}: no files of {GENERATION}, {MC} or {MC_PPL} with rows in them")
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


# -- files ------------------------------------------------------------------------------------------------------------


def files_of(folder: Path, config: str) -> list[Path]:
    """The files of a config, in the order of their paths. Raises DataError where they are of several kinds: the same
    rows would be read twice."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    files = []
    for path in sorted(folder.rglob("*")):
        *parents, name = path.relative_to(folder).parts
        hidden = any(part.startswith(".") for part in (*parents, name))
        if not hidden and path.is_file() and config in (*parents, re.split(r"[-.]", name)[0]) and _kind(path) in KINDS:
            files.append(path)
    if len({_kind(path) for path in files}) > 1:
        names = ", ".join(path.relative_to(folder).as_posix() for path in files)
        raise DataError(f"{folder}: {config} is there in files of several kinds: {names}; keep one kind")
    return files


def rows_of(folder: Path, config: str) -> list[Placed]:
    """All rows of a config with where they stand: the file and the row in it, from 0."""
    return [
        (f"{path.relative_to(folder).as_posix()} row {number}", row)
        for path in files_of(folder, config)
        for number, row in enumerate(_rows_in(path))
    ]


def _kind(path: Path) -> str:
    return path.suffix.lower().removeprefix(".")


def _rows_in(path: Path) -> Iterator[Raw]:
    if _kind(path) == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            yield from pq.read_table(path).to_pylist()
        except (OSError, pa.ArrowException) as error:
            raise DataError(f"{path}: cannot be read as parquet: {error}") from None
    elif _kind(path) == "jsonl":
        for number, line in enumerate(_text_of(path).split("\n")):
            if line.strip():
                yield _object(_parsed(line, f"{path}, line {number + 1}"), f"{path}, line {number + 1}")
    else:
        rows = _parsed(_text_of(path), str(path))
        if not isinstance(rows, list):
            raise DataError(f"{path}: holds {_said(rows)}; it is a list of rows")
        for number, row in enumerate(rows):
            yield _object(row, f"{path} row {number}")


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8: {error}") from None


def _parsed(text: str, where: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        twice = [key for key, n in Counter(key for key, _ in pairs).items() if n > 1]
        _stop_at([f"{key} comes twice" for key in twice], where)
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=_no_number)
    except DataError:
        raise
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: is no JSON: {error}") from None


# -- questions --------------------------------------------------------------------------------------------------------


def open_questions(raw: Sequence[Placed]) -> tuple[Row, ...]:
    """The questions of Generation, in its order; their id is the copy's own."""
    faults = [f"{where}: {fault}" for where, row in raw for fault in _faults(row)]
    _stop_at(faults, GENERATION)
    places: dict[str, list[str]] = {}
    asked: dict[tuple[str, str], list[str]] = {}
    for where, row in raw:
        places.setdefault(_name(row["question_idx"]), []).append(where)
        asked.setdefault((_name(row["video_idx"]), row["question"].strip()), []).append(where)
    faults = [f"question_idx {id} comes twice: {', '.join(of)}" for id, of in places.items() if len(of) > 1]
    faults += [f"one question of video {v} comes twice: {', '.join(of)}" for (v, _), of in asked.items() if len(of) > 1]
    _stop_at(faults, GENERATION)
    return tuple(
        _row(_name(row["question_idx"]), row, OPEN, answer=row["answer"], rationale=row.get("rationale"))
        for _, row in raw
    )


def choice_questions(raw: Sequence[Placed], of: Sequence[Row]) -> tuple[Row, ...]:
    """The questions of MC, in the order in which they come first, with their options in the order of their first row.
    A question has the id of the open one (`of`) with its video and text, else "mc-" and that of its first row. Raises
    DataError for a rotation that is missing, there twice, or none; its message names the rows."""
    _stop_at([f"{where}: {fault}" for where, row in raw for fault in _choice_faults(row)], MC)
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
    _stop_at(faults, MC)
    return _with_ids([group[0][1] for group in groups.values()], of, MC)


def single_questions(raw: Sequence[Placed], of: Sequence[Row]) -> tuple[Row, ...]:
    """The questions of MC_PPL, which has each once."""
    _stop_at([f"{where}: {fault}" for where, row in raw for fault in _choice_faults(row)], MC_PPL)
    places: dict[tuple[Any, ...], list[str]] = {}
    for where, row in raw:
        places.setdefault((*_asked(row), tuple(sorted(_options(row)))), []).append(where)
    _stop_at([f"one question comes twice: {', '.join(of)}" for of in places.values() if len(of) > 1], MC_PPL)
    return _with_ids([row for _, row in raw], of, MC_PPL)


def check_same(some: Sequence[Row], others: Sequence[Row]) -> None:
    """Raise DataError unless MC (`some`) and MC_PPL (`others`) have the same questions, options and right answers. The
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
    _stop_at(faults, f"{MC} and {MC_PPL}")


def _with_ids(rows: Sequence[Raw], of: Sequence[Row], config: str) -> tuple[Row, ...]:
    ids = {(row["video"], row["question"].strip()): row["id"] for row in of}
    named = [(ids.get(_asked(row), f"mc-{_name(row['question_idx'])}"), row) for row in rows]
    twice = [id for id, n in Counter(id for id, _ in named).items() if n > 1]
    _stop_at([f"two questions would have the id {id}" for id in twice], config)
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


# -- knowledge types, steps and events --------------------------------------------------------------------------------


def read_notes(path: Path) -> dict[str, dict[str, Any]]:
    """The file with knowledge types, steps and events, checked. Raises DataError."""
    where = str(path)
    notes = _object(_parsed(_text_of(path), where), where)
    _stop_at([f"{key!r} is unknown" for key in notes if key not in ("questions", "videos")], where)
    questions, videos = (_object(notes.get(key, {}), f"{where}, {key}") for key in ("questions", "videos"))
    faults = [f"question {id}: {fault}" for id, one in questions.items() for fault in _question_faults(one)]
    faults += [f"video {id}: {fault}" for id, one in videos.items() for fault in _video_faults(one)]
    _stop_at(faults, where)
    return {"questions": dict(questions), "videos": dict(videos)}


def check_notes(notes: Mapping[str, Raw], rows: Sequence[Row], where: str) -> None:
    """Raise DataError for notes on questions or videos that are not there."""
    ids, videos = {row["id"] for row in rows}, {row["video"] for row in rows}
    faults = [f"there is no question {id}" for id in notes["questions"] if id not in ids]
    faults += [f"there is no question on video {id}" for id in notes["videos"] if id not in videos]
    _stop_at(faults, where)


def noted(row: Row, notes: Mapping[str, Raw]) -> Row:
    """The row with what the notes say of it and of its video."""
    of_question, of_video = notes["questions"].get(row["id"], {}), notes["videos"].get(row["video"], {})
    named = of_question.get("knowledge", ())
    events = in_order([{"start_s": float(a), "end_s": float(b), "text": t} for a, b, t in of_video.get("events", ())])
    duration = of_video.get("duration_s")
    return {
        **row,
        # so that other events or another duration are another revision of the data; the rubric shows it to no judge
        "context": f"{text(events)}\n{'' if duration is None else f'{duration:g} s: end of the video'}".strip(),
        "knowledge": [one for one in KNOWLEDGE if one in named],
        "steps": of_question.get("steps"),
        "events": events,
        "duration_s": None if duration is None else float(duration),
    }


def _question_faults(one: Any) -> list[str]:
    if not isinstance(one, dict):
        return [f"is {_said(one)}, not an object"]
    faults = [f"{key!r} is unknown" for key in one if key not in ("knowledge", "steps")]
    named, steps = one.get("knowledge", []), one.get("steps")
    if not isinstance(named, list) or any(not isinstance(name, str) or name not in KNOWLEDGE for name in named):
        faults.append(f"knowledge is {named!r}; it is a list of {', '.join(KNOWLEDGE)}")
    elif len(set(named)) < len(named):
        faults.append(f"knowledge names one type twice: {', '.join(named)}")
    if steps is not None and not (isinstance(steps, int) and not isinstance(steps, bool) and steps in STEPS):
        faults.append(f"steps is {steps!r}; it is a whole number from {STEPS[0]} to {STEPS[-1]}")
    return faults


def _video_faults(one: Any) -> list[str]:
    if not isinstance(one, dict):
        return [f"is {_said(one)}, not an object"]
    faults = [f"{key!r} is unknown" for key in one if key not in ("events", "duration_s")]
    duration, events = one.get("duration_s"), one.get("events", [])
    if duration is not None and not (_seconds(duration) and duration > 0):
        faults.append(f"duration_s is {duration!r}; it is a number of seconds above 0")
    if not isinstance(events, list):
        return [*faults, f"events is {_said(events)}; it is a list of [start, end, text]"]
    for number, event in enumerate(events):
        if not isinstance(event, list) or len(event) != 3 or not _text(event[2]):
            faults.append(f"event {number} is {_said(event)}; it is [start, end, text]")
        elif not (_seconds(event[0]) and _seconds(event[1]) and 0 <= event[0] <= event[1]):
            faults.append(f"event {number}: {event[0]!r} to {event[1]!r} is no span of seconds")
        elif _seconds(duration) and event[1] > duration:
            faults.append(f"event {number} ends at {event[1]} s, behind the video's end at {duration} s")
    return faults


# -- one row ----------------------------------------------------------------------------------------------------------


def features() -> Features:
    """The columns of a row: those of every benchmark, and WorldQA's own."""
    from datasets import Features, List, Value

    from videoqa.dataset import FEATURES

    event = {"start_s": Value("float64"), "end_s": Value("float64"), "text": Value("string")}
    return Features(
        {
            **FEATURES,
            "object_description": Value("string"),
            "rationale": Value("string"),
            "knowledge": List(Value("string")),  # of KNOWLEDGE; empty: none is known
            "steps": Value("int32"),  # of reasoning; None: not known
            "events": List(event),  # what people say happens in the video, in order of time
            "duration_s": Value("float64"),  # of the video; None: not known
        }
    )


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
    faults = [f"{key} is {_said(row[key])}" for key in ("question", "answer") if not _text(row[key])]
    for key in ("question_idx", "video_idx"):
        if not (_text(row[key]) or (isinstance(row[key], int) and not isinstance(row[key], bool))):
            faults.append(f"{key} is {_said(row[key])}")
    for key in ("object_description", "rationale"):
        if not isinstance(row.get(key), str | None):
            faults.append(f"{key} is {_said(row[key])}; it is a text")
    return faults


def _choice_faults(row: Raw) -> list[str]:
    faults = _faults(row)
    options = row.get("option")
    if not isinstance(options, list) or len(options) not in COUNTS:
        return [*faults, f"option is {_said(options)}; it is a list of {COUNTS[0]} to {COUNTS[-1]} texts"]
    labelled = True
    for letter, option in zip(LETTERS, options, strict=False):
        if not isinstance(option, str) or not option.startswith(f"{letter}. "):
            faults.append(f"option {letter} begins with {option[:8] if isinstance(option, str) else option!r}")
            labelled = False
        elif not option[len("A. ") :].strip():
            faults.append(f"option {letter} is empty")
            labelled = False
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


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _seconds(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -1e9 < value < 1e9


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"{where}: holds {_said(value)}, not an object")
    return value


def _said(value: Any) -> str:
    if isinstance(value, str):
        return "a text" if value.strip() else "empty"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return "an object" if isinstance(value, dict) else repr(value)


def _stop_at(faults: Sequence[str], where: str) -> None:
    if faults:
        more = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise DataError(f"{where}: {'; '.join(faults[:_SHOWN])}{more}")


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
