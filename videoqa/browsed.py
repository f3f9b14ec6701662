"""All rows of a report as JSON for the page's own script (report.js), which filters, sorts and shows them.

{"runs": ["a (blind)"], "types": ["before", ...], "contexts": ["(1.00s) ...", ...], "rows": [
 {"id": ..., "type": 0, "clip": ..., "question": ..., "answer": ..., "context": 0, "choices": [...], "gold": 2,
  "runs": [{"said": "A jug.", "score": 6.5, "state": "ok", "cut": true, "why": "...", "truth": 8.2}]}, ...]}

What is not there is left out. `state` says what came of an answer: STATES. Texts of models are in it as they are; what
could end the script element or begin markup is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from videoqa.folders import without_folders
from videoqa.rows import Row

if TYPE_CHECKING:
    from videoqa.report import View

# in the order of the page's filter; multiple choice has right and wrong in the place of ok
STATES = {
    "ok": "with a score",
    "right": "right",
    "wrong": "wrong",
    "withheld": "not scored: the right answer is not public",
    "unreadable": "unreadable",
    "empty": "empty answers",
    "failed": "the judge failed",
    "skipped": "not asked: the question was lost already",
    "unrated": "not rated",
    "unanswered": "no answer",
}


def rows_json(views: Sequence[View], rows: Sequence[Row], types: Sequence[str]) -> Any:
    """The rows as markup-safe JSON for a script element."""
    from jinja2.utils import htmlsafe_json_dumps

    contexts: dict[str, int] = {}
    lines = []
    for row in rows:
        line: dict[str, Any] = {key: row[key] for key in ("id", "clip", "question")}
        line |= {"type": types.index(row["type"]), "runs": [_of_run(view, row) for view in views]}
        if row.get("context"):
            line["context"] = contexts.setdefault(row["context"], len(contexts))
        if row.get("choices"):
            line |= {"choices": list(row["choices"]), "gold": row.get("gold")}
        else:
            line["answer"] = row["answer"]
        lines.append(line)
    there = {run["state"] for line in lines for run in line["runs"]}
    states = {name: text for name, text in STATES.items() if name in there}
    about = {"runs": [view.label for view in views], "types": list(types), "states": states}
    return htmlsafe_json_dumps({**about, "contexts": list(contexts), "rows": lines}, separators=(",", ":"))


def _of_run(view: View, row: Row) -> dict[str, Any]:
    """What a run said to a question, and what came of it."""
    answer: Mapping[str, Any] = view.answers.get(row["id"], {"error": "not asked"})
    verdict, truth = view.verdicts.get(row["id"]), view.truths.get(row["id"])
    found: dict[str, Any] = {"state": state(view, row)}
    if answer["error"] is not None:
        return found | {"why": without_folders(str(answer["error"]))[:400]}
    found["said"] = answer.get("prediction") or ""
    if answer.get("finished") is False:
        found["cut"] = True
    if verdict is not None:
        if verdict.score is not None:
            found["score"] = round(verdict.score, 3)
        reply = without_folders(verdict.raw) if verdict.status == "judge_error" else verdict.raw
        if why := verdict.explanation or (reply[:400] if found["state"] in ("unreadable", "failed") else ""):
            found["why"] = why
    if truth is not None and truth.score is not None:
        found["truth"] = round(truth.score, 3)
    return found


def state(view: View, row: Row) -> str:
    """What came of the run's answer to a question: a key of STATES."""
    verdict = view.verdicts.get(row["id"])
    if view.answers.get(row["id"], {"error": "not asked"})["error"] is not None:
        return "unanswered"
    if verdict is None:
        return "unrated"
    special = {"empty_prediction": "empty", "judge_error": "failed", "skipped": "skipped"}
    if verdict.status in special:
        return special[verdict.status]
    if verdict.status != "ok":
        return "unreadable" if (view.answers[row["id"]].get("prediction") or "").strip() else "empty"
    if row.get("choices"):
        return "withheld" if verdict.score is None else "right" if verdict.score == 1 else "wrong"
    return "ok"
