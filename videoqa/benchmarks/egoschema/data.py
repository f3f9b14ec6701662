"""EgoSchema's files -> rows of questions.

The official release is three JSON files:

    questions.json        [{"q_uid": "0074f737-...", "google_drive_id": "1Zd...", "question": "Taking into account ...",
                            "option 0": "C is cooking.", ..., "option 4": "C is cleaning the bathroom."}, ...]   5,031
    subset_answers.json   {"0074f737-...": 3, ...}                                                                500
    uid_to_ego4d.json     {"0074f737-...": {"video_uid": "...", "starting_sec": 240, "ending_sec": 420}, ...}    5,031

and so is a row of the copies on the Hub (lmms-lab/egoschema, lmms-eval/egoschema), where an answer is text:

    {"question_idx": "00000", "question": "...", "video_idx": "0074f737-...", "option": ["A. C is cooking.", ...],
     "answer": "3"}

A row has the keys of every benchmark here; its id is the q_uid, and questions about the same three minutes share their
`clip`. Whatever is wrong in the files is named, all of it at once; nothing is mended or guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from videoqa.errors import UserError
from videoqa.json_files import form_of, is_seconds, is_text, read_json, stop_at

COUNT = 5  # options of a question
LETTERS = "ABCDE"
TYPE = "multiple-choice"
CONFIGS = ("subset", "full", "made")  # of the dataset; `made`: questions like these, made by python -m builder
QUESTIONS, SUBSET = "questions.json", "questions_subset.json"
ANSWERS, SPANS = "subset_answers.json", "uid_to_ego4d.json"
HUB_COLUMNS = ("question_idx", "question", "video_idx", "option", "answer")
HUB_CONFIGS = ("GENERATION", "MC", "MC_PPL", "Subset")  # 5,031 rows without answers, but for Subset: 500 with
_KEYS = ("q_uid", "question", *(f"option {i}" for i in range(COUNT)))

Row = dict[str, Any]


def read(folder: Path) -> dict[str, list[Row]]:
    """The rows of the configs that the folder has the official files for: `full` (from questions.json) and `subset`
    (from questions_subset.json, or the questions of questions.json that have an answer).

    subset_answers.json and uid_to_ego4d.json have to be there. Raises UserError.
    """
    answers, spans = read_json(folder / ANSWERS), read_json(folder / SPANS)
    found: dict[str, list[Row]] = {}
    if (folder / QUESTIONS).exists():
        found["full"] = rows(read_json(folder / QUESTIONS), answers, spans, where=QUESTIONS)
        found["subset"] = [row for row in found["full"] if row["gold"] is not None]
        stop_at([f"{uid} is no question of {QUESTIONS}" for uid in _others(answers, found["full"])], ANSWERS)
    if (folder / SUBSET).exists():
        subset = rows(read_json(folder / SUBSET), answers, spans, where=SUBSET)
        faults = [f"{uid} is no question of {SUBSET}" for uid in _others(answers, subset)]
        faults += [f"{row['id']}, of {SUBSET}, has no answer" for row in subset if row["gold"] is None]
        stop_at(faults, ANSWERS)
        if "full" in found:
            check_same(subset, found["full"], f"{SUBSET} and {QUESTIONS}")
        found["subset"] = subset
    if not found:
        raise UserError(f"{folder}: neither {QUESTIONS} nor {SUBSET} is there")
    return found


def rows(questions: Any, answers: Any, spans: Any, where: str = QUESTIONS) -> list[Row]:
    """The questions of an official file, in its order. `gold` is None for a question without an answer."""
    faults: list[str] = []
    questions = _list(questions, where)
    answers, spans = _object(answers, ANSWERS), _object(spans, SPANS)
    stop_at(_span_faults(spans), SPANS)
    stop_at([f"{uid}: {fault}" for uid, value in answers.items() if (fault := _answer_fault(value))], ANSWERS)
    for number, row in enumerate(questions):
        faults += [f"row {number}: {fault}" for fault in _question_faults(row)]
    uids = [row.get("q_uid") for row in questions if isinstance(row, dict)]
    faults += [f"q_uid {uid} comes twice" for uid in _doubles(uids)]
    faults += [f"{uid} is not in {SPANS}" for uid in uids if isinstance(uid, str) and uid not in spans]
    stop_at(faults, where)
    return [
        _row(
            row["q_uid"], row["question"], [row[f"option {i}"] for i in range(COUNT)], answers.get(row["q_uid"]), spans
        )
        for row in questions
    ]


def hub_rows(data: Sequence[Mapping[str, Any]], spans: Any, config: str) -> list[Row]:
    """The rows of a config of a Hub copy, with the spans of uid_to_ego4d.json. "A. " is taken off the options, and that
    alone: an option may hold full stops. Only Subset has answers, and all of its rows have one."""
    if config not in HUB_CONFIGS:
        raise UserError(f"config {config!r}: the configs of the Hub copies are {', '.join(HUB_CONFIGS)}")
    spans = _object(spans, SPANS)
    stop_at(_span_faults(spans), SPANS)
    faults, made = [], []
    for number, row in enumerate(data):
        of_row = _hub_faults(row, number, config == "Subset")
        if not of_row and row["video_idx"] not in spans:
            of_row = [f"{row['video_idx']} is not in {SPANS}"]
        faults += [f"row {number}: {fault}" for fault in of_row]
        if not of_row:
            gold = None if row["answer"] is None else int(row["answer"])
            choices = [option[len("A. ") :] for option in row["option"]]
            made.append(_row(row["video_idx"], row["question"], choices, gold, spans))
    faults += [f"video_idx {uid} comes twice" for uid in _doubles([row.get("video_idx") for row in data])]
    stop_at(faults, f"config {config}")
    return made


def check_same(some: Sequence[Row], others: Sequence[Row], where: str) -> None:
    """Raise UserError unless every question of `some` is in `others` with the same text, options in the same order and
    the same answer, where both have one. An index means nothing once files of another option order are mixed."""
    of_others = {row["id"]: row for row in others}
    faults = []
    for row in some:
        other = of_others.get(row["id"])
        if other is None:
            faults.append(f"{row['id']} is only in the first")
        elif row["choices"] != other["choices"]:
            moved = sorted(row["choices"]) == sorted(other["choices"])
            faults.append(f"{row['id']} has {'its options in another order' if moved else 'other options'}")
        elif row["question"] != other["question"]:
            faults.append(f"{row['id']} has another question")
        elif None not in (row["gold"], other["gold"]) and row["gold"] != other["gold"]:
            faults.append(f"{row['id']} has the answers {row['gold']} and {other['gold']}")
    stop_at(faults, where)


# -- one row ----------------------------------------------------------------------------------------------------------


def _row(uid: str, question: str, choices: list[str], gold: int | None, spans: Mapping[str, Any]) -> Row:
    span = spans[uid]
    start = span["starting_sec"]
    return {
        "id": uid,
        "clip": f"{span['video_uid']}:{int(start) if start == int(start) else start}",
        "video": span["video_uid"],
        "type": TYPE,
        "question": question,
        "answer": None,
        "choices": choices,
        "gold": gold,
        "context": "",
        "frame": None,
        "start_s": float(start),
        "end_s": float(span["ending_sec"]),
        "clip_start_s": float(start),
        "evidence": [],
    }


def _question_faults(row: Any) -> list[str]:
    if not isinstance(row, dict):
        return [f"is {form_of(row)}, not an object"]
    faults = [f"{key!r} is missing" for key in _KEYS if key not in row]
    faults += [f"{key!r} is one option too many" for key in row if key.startswith("option ") and key not in _KEYS]
    return faults + [f"{key!r} is {form_of(row[key])}" for key in _KEYS if key in row and not is_text(row[key])]


def _answer_fault(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < COUNT:
        return ""
    return f"the answer is {value!r}; it is a whole number from 0 to {COUNT - 1}"


def _span_faults(spans: Mapping[str, Any]) -> list[str]:
    faults = []
    for uid, span in spans.items():
        if not isinstance(span, dict) or not {"video_uid", "starting_sec", "ending_sec"} <= span.keys():
            faults.append(f"{uid}: has not video_uid, starting_sec and ending_sec")
        elif not is_text(span["video_uid"]):
            faults.append(f"{uid}: video_uid is {form_of(span['video_uid'])}")
        elif not (is_seconds(span["starting_sec"]) and is_seconds(span["ending_sec"])):
            faults.append(f"{uid}: {span['starting_sec']!r} to {span['ending_sec']!r} are no seconds")
        elif not 0 <= span["starting_sec"] < span["ending_sec"]:
            faults.append(f"{uid}: {span['starting_sec']} to {span['ending_sec']} s is no span")
    return faults


def _hub_faults(row: Mapping[str, Any], number: int, answered: bool) -> list[str]:
    if missing := [name for name in HUB_COLUMNS if name not in row]:
        return [f"column {name} is missing" for name in missing]
    faults = [f"{key} is {form_of(row[key])}" for key in ("question", "video_idx") if not is_text(row[key])]
    if not (isinstance(row["question_idx"], str) and row["question_idx"].isdecimal() and int(row["question_idx"]) >= 0):
        faults.append(f"question_idx is {row['question_idx']!r}; it is the number of the question, in text")
    options, answer = row["option"], row["answer"]
    if not isinstance(options, list | tuple) or len(options) != COUNT:
        faults.append(f"option is {form_of(options)}; it is a list of {COUNT} texts")
    else:
        for letter, option in zip(LETTERS, options, strict=True):
            if not isinstance(option, str) or not option.startswith(f"{letter}. "):
                faults.append(f"option {letter} begins with {option[:8] if isinstance(option, str) else option!r}")
            elif not option[len("A. ") :].strip():
                faults.append(f"option {letter} is empty")
    if answered and not (isinstance(answer, str) and re.fullmatch(f"[0-{COUNT - 1}]", answer)):
        faults.append(f'answer is {answer!r}; it is "0" to "{COUNT - 1}"')
    if not answered and answer is not None:
        faults.append(f"answer is {answer!r}; this config withholds it")
    return faults


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise UserError(f"{where}: holds {form_of(value)}; it is a list of questions")
    return value


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UserError(f"{where}: holds {form_of(value)}; it is an object by q_uid")
    return value


def _others(answers: Mapping[str, int], of: Sequence[Row]) -> list[str]:
    known = {row["id"] for row in of}
    return [uid for uid in answers if uid not in known]


def _doubles(values: Sequence[Any]) -> list[Any]:
    seen: set[Any] = set()
    twice: dict[Any, None] = {}
    for value in values:
        if isinstance(value, str) and value in seen:
            twice[value] = None
        elif isinstance(value, str):
            seen.add(value)
    return list(twice)
