"""The answers file of the public judge script: into a run folder, and out of one, both ways without loss.

One row of the file (a JSON list); `review` and `scores` are there once the script has judged it:

    {"vid": "4901cdd8-...", "type": "before", "question": "What did the camera wearer do right before putting the jug
     into the cabinet?", "answer": "pick jug", "prediction": "Picked it up.", "review": "...", "scores": 6}

The file has no ids: its rows are found by clip, type and question, and by the answer where one question of a clip has
two (four pairs of the real data). A score of 0 is how the script writes that it could not read its judge's reply.
"""

from __future__ import annotations

import difflib
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from videoqa.benchmarks.easg.published import PAPER_KEY
from videoqa.errors import UserError
from videoqa.imported import Answered
from videoqa.reply import Verdict
from videoqa.rows import Row
from videoqa.runs import Run

FIELDS = ("vid", "type", "question", "answer", "prediction")
LISTED = 5  # problems of one file that are named


def read_script(path: Path, rows: Sequence[Row]) -> list[Answered]:
    """The answers of a file in the public script's form, as answers to `rows`, in the file's order.

    Raises ValueError, with the first rows that are wrong, for a file of another form, a row that fits no question or
    fits one that is answered already, a ground truth that is not the data set's, and scores without reviews.
    """
    lines = _lines(path)
    waiting: defaultdict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        waiting[row["clip"], row["type"], row["question"]].append(row)
    truths = {key: [row["answer"] for row in of_key] for key, of_key in waiting.items()}
    judged = any("review" in line or "scores" in line for line in lines)
    answered, problems = [], []
    for number, line in enumerate(lines, 1):
        try:
            row = _take(line, waiting, truths)
            verdict = _verdict(line) if judged else None
            answered.append(Answered(row["id"], line["prediction"], verdict, SCRIPT_JUDGE))
        except ValueError as error:
            problems.append(f"row {number}: {error}")
    if problems:
        rest = [f"and {len(problems) - LISTED} more rows"] if len(problems) > LISTED else []
        raise UserError("\n  ".join([f"{path}: {len(problems)} of {len(lines)} rows", *problems[:LISTED], *rest]))
    return answered


SCRIPT_JUDGE = {  # what a result says of the public script's verdicts
    "key": PAPER_KEY,
    "model": "as in the imported file",
    "settings": {},
    "mode": "paper",
    "sampling": "paper",
    "reading": "script",
    "rubric": "paper",
}


def export_lines(run: Run, rows: Sequence[Row]) -> tuple[list[dict[str, Any]], str | None]:
    """The run's answers as the file's rows, in the order of the data set, and what is left out, for people.

    Reviews and scores go along where the paper's rubric gave them and every answer has one: the script's scale fits no
    other. A verdict that could not be read is the script's 0.
    """
    answers = {k: line for k, line in run.answers().items() if line["error"] is None}
    there = [row for row in rows if row["id"] in answers]
    verdicts, note = _paper_verdicts(run, [row["id"] for row in there])
    lines = []
    for row in there:
        line = {"vid": row["clip"], **{k: row[k] for k in ("type", "question", "answer")}}
        line["prediction"] = answers[row["id"]]["prediction"]
        if verdicts:
            verdict = verdicts[row["id"]]
            score = verdict.score or 0.0
            line |= {"review": verdict.raw, "scores": int(score) if score.is_integer() else score}
        lines.append(line)
    left_out = [f"{len(rows) - len(there)} of {len(rows)} questions have no answer"] if len(there) < len(rows) else []
    return lines, "; ".join([*left_out, *([note] if note else [])]) or None


def _lines(path: Path) -> list[dict[str, Any]]:
    try:
        lines = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: no valid JSON: {error}") from None
    if not isinstance(lines, list) or not all(isinstance(line, dict) for line in lines):
        raise UserError(f"{path}: a list of objects with {', '.join(FIELDS)} is expected")
    return lines


def _take(
    line: dict[str, Any], waiting: dict[tuple[str, ...], list[Row]], asked: dict[tuple[str, ...], list[str]]
) -> Row:
    """The row that the line answers, taken out of those that wait for an answer."""
    if missing := [name for name in FIELDS if name not in line]:
        raise UserError(f"{', '.join(missing)} missing; it has {', '.join(map(repr, line)) or 'nothing'}")
    if wrong := next((name for name in FIELDS if not isinstance(line[name], str)), None):
        raise UserError(f"{wrong} is {json.dumps(line[wrong])[:60]}; a text is expected")
    key = line["vid"], line["type"], line["question"]
    if key not in asked:
        raise UserError(_unknown(key, asked))
    if line["answer"] not in asked[key]:
        known = " or ".join(map(repr, asked[key]))
        raise UserError(f"the ground truth is {line['answer']!r}; the data set's is {known}")
    row = next((row for row in waiting[key] if row["answer"] == line["answer"]), None)
    if row is None:
        raise UserError(f"answers a question a second time: {line['question']!r}")
    waiting[key].remove(row)
    return row


def _unknown(key: tuple[str, ...], asked: dict[tuple[str, ...], Any]) -> str:
    clip, kind, question = key
    if not any(clip == of for of, _, _ in asked):
        return f"the data set has no questions of clip {clip!r}"
    others = [text for of, other, text in asked if (of, other) == (clip, kind)]
    near = difflib.get_close_matches(question, others, n=1, cutoff=0)
    closest = f"; the nearest: {near[0]!r}" if near else ""
    return f"clip {clip!r} has no {kind!r} question {question!r}{closest}"


def _verdict(line: dict[str, Any]) -> Verdict:
    review, score = line.get("review"), line.get("scores")
    if not isinstance(review, str):
        raise UserError(f"review is {json.dumps(review)[:60]}; a text is expected, as in other rows")
    if isinstance(score, bool) or not isinstance(score, int | float) or not abs(score) < 2**53:
        raise UserError(f"scores is {json.dumps(score)[:60]}; a number is expected, as in other rows")
    return Verdict(float(score), "ok" if score else "unreadable", raw=review)


def _paper_verdicts(run: Run, ids: Sequence[str]) -> tuple[dict[str, Verdict], str | None]:
    """The verdicts by the paper's rubric on all `ids`, or none of them and why."""
    results = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(run.folder.glob("scores*.json"))]
    if not results:
        return {}, None
    judges = [one["judge"] for one in results if one["judge"]["rubric"].split("-")[0] == "paper"]
    judges = [judge for judge in judges if judge["mode"] == "paper"]
    if not judges:
        return {}, "no scores: they are not by the paper's rubric and mode, and the script's scale fits no others"
    verdicts = run.verdicts(judges[0]["key"], "answer")
    lacking = sum(name not in verdicts or verdicts[name].status == "judge_error" for name in ids)
    return ({}, f"no scores: {lacking} answers have none yet") if lacking else (verdicts, None)
