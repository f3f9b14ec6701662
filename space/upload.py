"""What somebody uploads: a result file and, if they like, the answers and verdicts of its run folder; read line by line
within bounds, and checked as a submission is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from questions import Questions

from videoqa.answers_file import MAX_TEXT, answer_bytes, answer_table, check_answers
from videoqa.files import record_in
from videoqa.results import MAX_BYTES, Result, parse
from videoqa.store import verdict_of
from videoqa.submit import published

MAX_FILES = 3
MAX_LINES = 100_000  # of one file; a run of 1,807 questions by one judge has 3,614 verdicts
MAX_LINE = 4 * MAX_TEXT  # bytes; a verdict has the judge's reply twice, as JSON
ANSWERS, VERDICTS = "answers.jsonl", "verdicts.jsonl"


def read_upload(files: Sequence[str], questions: Mapping[str, Questions]) -> tuple[Result, bytes, bytes | None, str]:
    """The result, its bytes as they would be published, its answers file and what to say of them. Raises ValueError for
    anything that a run does not write."""
    if len(files) > MAX_FILES:
        raise ValueError(f"{len(files)} files; a result with its answers has {MAX_FILES}")
    paths = {Path(name).name: Path(name) for name in files}
    if strange := [name for name in paths if not name.lower().endswith((".json", ".jsonl"))]:
        raise ValueError(
            f"{strange[0][:80]}: expected are scores.json and, if you like, {ANSWERS} and {VERDICTS} of the same run "
            "folder, not packed"
        )
    results = [name for name in paths if name.lower().endswith(".json")]
    if len(results) != 1:
        raise ValueError(f"one result file (scores.json) is expected, not {len(results)}")
    where = results[0][:80]
    with paths[results[0]].open("rb") as file:
        original = parse(file.read(MAX_BYTES + 1), where)
    text = published(original.model_dump(mode="json"))
    result = parse(text, where)
    note = f"{result.name}: a result of {result.avg.n:,} answers that holds together."
    lines = [paths.get(name) for name in (ANSWERS, VERDICTS)]
    if not any(lines):
        return result, text, None, f"{note} Without answers, so it will be compared by intervals only."
    answers, verdicts = lines
    if answers is None or verdicts is None:
        raise ValueError(f"answers need both {ANSWERS} and {VERDICTS} of the run folder")
    table = _answers(original, answers, verdicts, questions.get(original.track, Questions()).rows)
    return result, text, table, f"{note} Its answers give the same numbers."


def _answers(result: Result, answers: Path, verdicts: Path, rows: Mapping[str, Mapping[str, Any]]) -> bytes:
    """The answers file of a run's lines. Only what the table needs is kept of a line, and a line of no question ends
    the reading, so that the memory is bounded by the data set."""
    if not rows:
        raise ValueError(
            "this Space has not the questions of this result, so it cannot check answers: upload scores.json alone"
        )
    predictions: dict[str, dict[str, Any]] = {}
    given: dict[str, dict[str, Any]] = {"answer": {}, "truth": {}}
    for where, line in _records(answers, rows):
        if not isinstance(text := line.get("prediction"), str | None):
            raise ValueError(f"{where}: prediction is no text")
        predictions[line["id"]] = {"prediction": text}
    for where, line in _records(verdicts, rows):
        try:
            if line["judge"] == result.scorer:
                verdict = verdict_of(line, where)
                if verdict.score is not None and not math.isfinite(verdict.score):
                    raise ValueError(f"the score of {line['id']!r} is {verdict.score}")
                given[line["of"]][line["id"]] = verdict
        except (KeyError, TypeError, AttributeError, OverflowError, ValueError) as error:
            raise ValueError(f"{where} is not as a run writes it: {str(error) or repr(error)}"[:400]) from error
    judged = [row for name, row in rows.items() if name in given["answer"] or name in given["truth"]]
    try:
        table = answer_table(judged, predictions, given["answer"], given["truth"])
    except (TypeError, AttributeError, OverflowError) as error:  # a score that is a list, a reason that is a number
        raise ValueError(f"{ANSWERS} or {VERDICTS} is not as a run writes it: {error!r}"[:400]) from error
    check_answers(table, result, VERDICTS)
    return answer_bytes(table)


def _records(path: Path, rows: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(file and line, record) of the lines of a JSON Lines file whose records have the id of a question. Raises
    ValueError at the first one that has not, and for more or longer lines than a run writes."""
    with path.open("rb") as file:
        for number in range(1, MAX_LINES + 2):
            line = file.readline(MAX_LINE + 1)
            where = f"{path.name}, line {number}"
            if not line:
                return
            if number > MAX_LINES or len(line) > MAX_LINE:
                raise ValueError(f"{where}: at most {MAX_LINES:,} lines of {MAX_LINE:,} bytes are read")
            if not line.strip():
                continue
            record = record_in(line)
            if record is None or not isinstance(record.get("id"), str):
                raise ValueError(f"{where} is not as a run writes it: {line[:60].decode(errors='replace')}")
            if record["id"] not in rows:
                raise ValueError(f"{where}: {record['id'][:80]!r} is no question of this Space's data set")
            yield where, record
