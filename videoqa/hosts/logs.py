"""Answers out of the logs of other programs: lighteval's details, and the samples that lmms-eval logs.

    details_easg_bench_narrations:before|0_2026-01-31T12-00-00.parquet      lighteval --save-details
    20260131_120000_samples_easg_bench.jsonl                                lmms-eval --log_samples

A row of our lighteval tasks carries the question itself, so a finished run can be judged again without the data set
(`easg-bench rejudge`). A sample of lmms-eval has the number of its row in the data set, the ground truth and mostly the
question, as `doc` or within the prompt: both must be the row's, and a question that is another row's finds that row.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from videoqa.benchmark import track
from videoqa.errors import UserError
from videoqa.files import Lines, record_in, whole, write_json
from videoqa.hosts.judged import metric_name
from videoqa.rows import Row, revision
from videoqa.runs import Run, result


@dataclass(frozen=True, slots=True)
class Detail:
    """One row of a finished lighteval run."""

    row: dict[str, Any]  # the question, as our task put it into Doc.specific
    prediction: str
    record: dict[str, Any]  # what the metric kept: judge, verdicts, error


def read_details(paths: Sequence[Path]) -> Iterator[Detail]:
    """The rows of details files of our tasks. Raises ValueError for another file and for a row that comes twice."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    seen: dict[str, Path] = {}
    for path in paths:
        try:
            lines = pq.read_table(path).to_pylist()
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise UserError(f"{path}: no parquet file: {error}") from error
        for number, line in enumerate(lines, 1):
            try:
                detail = _detail(line)
            except (LookupError, TypeError) as error:
                raise UserError(
                    f"{path}, row {number}: not the details of one of our tasks, of this version: {error!r}"
                ) from error
            name = detail.row["id"]
            if name in seen:
                raise UserError(f"{path}, row {number}: {name} was there already, in {seen[name]}: one run at a time")
            seen[name] = path
            yield detail


def _detail(line: Mapping[str, Any]) -> Detail:
    doc, response = line["doc"], line["model_response"]
    name = doc["specific"].get("track") or track().name  # details of older versions name none
    metric = line["metric"][metric_name(track(name))]
    text = response["text_post_processed"] or response["text"]
    row = {**doc["specific"], "track": name}
    needed = "id", "clip", "type", "question", "answer", "context", "prompt"
    if missing := [name for name in needed if name not in row]:
        raise LookupError(f"{', '.join(missing)} missing")
    return Detail(row, (text if isinstance(text, str) else text[0]).strip(), metric)


def import_details(paths: Sequence[Path], out: Path) -> Run:
    """A run folder of a finished lighteval run: its questions, answers and verdicts. Opens the folder if it is there
    already and of the same files."""
    details = sorted(read_details(paths), key=lambda detail: detail.row["id"])
    if not details:
        raise UserError(f"{', '.join(map(str, paths))}: no rows")
    prompts = sorted({detail.row["prompt"] for detail in details})
    if len(prompts) > 1:
        raise UserError(f"these are several runs, with the prompts {', '.join(prompts)}: give one at a time")
    rows = [detail.row for detail in details]
    settings = {
        "format": 1,
        "track": details[0].row["track"],
        "data": paths[0].name if len(paths) == 1 else f"{len(paths)} files of {paths[0].resolve().parent.name}",
        "config": "default",
        "limit": None,
        "revision": revision(rows),
        "rows": len(rows),
        "model": _model(paths[0]),
        "model_settings": {"engine": "lighteval"},
        "prompt": prompts[0],
        "max_new_tokens": None,
        "frames": None,
        "shard": None,
    }
    if not out.is_dir() or not any(out.iterdir()):
        with whole(out.resolve()) as fresh:
            _fill(Run(fresh, settings), details)
    return Run(out, settings)


def _fill(run: Run, details: Sequence[Detail]) -> None:
    for detail in details:
        run.questions_file.append(detail.row)
        error = detail.record["error"] or None
        line = {"id": detail.row["id"], "prediction": None if error else detail.prediction, "error": error}
        run.answers_file.append({**line, "finished": True, **_located(detail.record)})
    _keep_verdicts(run, details)


def _model(path: Path) -> str:
    """The model's name out of lighteval's folders: <output>/details/<the model>/<date>/<file>."""
    parts = path.resolve().parts
    return "/".join(parts[parts.index("details") + 1 : -2]) if "details" in parts[:-3] else path.stem


def _located(record: Mapping[str, Any]) -> dict[str, Any]:
    return {"located": record["located"]} if record.get("located") else {}


def _keep_verdicts(run: Run, details: Sequence[Detail]) -> None:
    """The verdicts of the lighteval run's own judge, as the run's first result."""
    scorer = _object(details[0].record["judge"], "judge")
    for detail in details:
        for of, name in (("answer", "verdict"), ("truth", "truth_verdict")):
            if detail.record[name]:
                line = _object(detail.record[name], f"{detail.row['id']}: {name}")
                run.verdicts_file.append({"id": detail.row["id"], "of": of, "judge": scorer["key"], **line})
    if any(verdict.score is not None for verdict in run.verdicts(scorer["key"], "answer").values()):
        write_json(run.scores_path(scorer["key"]), result(run, [detail.row for detail in details], scorer))


def _object(text: Any, where: str) -> dict[str, Any]:
    record = record_in(text.encode()) if isinstance(text, str) else None
    if record is None:
        raise UserError(f"{where} in the details is no JSON object: {json.dumps(text)[:60]}")
    return record


# -- for `easg-bench import-answers` ----------------------------------------------------------------------------------


def details_answers(path: Path, rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Id and answer of each row of a details file, or of all details files of a folder, checked against `rows`. Rows
    without an answer are left out."""
    paths = sorted(path.glob("details_*.parquet")) if path.is_dir() else [path]
    if not paths:
        raise FileNotFoundError(f"{path}: no details_*.parquet in it; run lighteval with --save-details")
    known = {row["id"]: row for row in rows}
    answers = []
    for detail in read_details(paths):
        name = detail.row["id"]
        if name not in known or any(known[name][k] != detail.row[k] for k in ("question", "answer")):
            raise UserError(f"{path}: {name} was asked on other data: {detail.row['question']!r}")
        if not detail.record["error"]:
            answers.append((name, detail.prediction))
    return answers


def lmms_answers(path: Path, rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Id and answer of each sample of an lmms-eval log. The row is that of the sample's own id, else that of its
    `doc_id`, the number of the row in the data set (of the config that its task ran on). Where the sample carries the
    question, its row is the one that asks it; `target` must be the row's answer."""
    known = {row["id"]: row for row in rows}
    by_question: dict[str, list[Row]] = {}
    for one in rows:
        by_question.setdefault(_plain(one["question"]), []).append(one)
    answers: dict[str, str] = {}
    for number, line in enumerate(Lines(path).read(), 1):
        where = f"{path}, line {number}"
        doc = {} if line.get("doc") is None else line["doc"]
        if not isinstance(doc, dict):
            raise UserError(f"{where}: doc is {json.dumps(doc)[:60]}; an object with the row's columns is expected")
        for name in (
            "id",
            "question",
        ):  # no text tells nothing, and a number alone may be another row's
            if not isinstance(doc.get(name), str | None):
                raise UserError(f"{where}: doc.{name} is {json.dumps(doc[name])[:60]}; a text is expected")
        place, own = line.get("doc_id"), doc.get("id")
        row: Row | None = known.get(own) if isinstance(own, str) else None
        if row is None and isinstance(place, int) and not isinstance(place, bool) and 0 <= place < len(rows):
            row = rows[place]
        row = _asked(row, line, doc, by_question, where)
        if row is None:
            raise UserError(f"{where}: doc_id is {json.dumps(place)[:60]}; the data set has rows 0 to {len(rows) - 1}")
        if str(line.get("target")) != row["answer"]:
            raise UserError(
                f"{where}: {row['id']} has the answer {row['answer']!r}, the log has {str(line.get('target'))[:80]!r}: "
                "give the --data and --config that its task ran on"
            )
        if row["id"] in answers:
            raise UserError(f"{where}: answers {row['id']} a second time")
        answers[row["id"]] = _first(line.get("filtered_resps", line.get("resps")), where).strip()
    if not answers:
        raise UserError(f"{path}: no samples in it")
    return list(answers.items())


def _asked(
    row: Row | None,
    line: Mapping[str, Any],
    doc: Mapping[str, Any],
    by_question: Mapping[str, Sequence[Row]],
    where: str,
) -> Row | None:
    """The row whose question the sample carries: `row` where it is that one or the sample carries none."""
    question = doc.get("question")
    prompt = _plain(" ".join(_texts([line.get("input"), line.get("arguments")])))
    if isinstance(question, str):
        fitting = list(by_question.get(_plain(question), []))
    elif prompt and (row is None or _plain(row["question"]) not in prompt):
        # a shorter question may be a part of it
        longest = max((text for text in by_question if text and text in prompt), key=len, default="")
        fitting = list(by_question.get(longest, []))
        question = prompt
    else:
        return row
    if row in fitting:
        return row
    fitting = [one for one in fitting if one["answer"] == str(line.get("target"))]
    if len(fitting) == 1:
        return fitting[0]
    fits = f"fits {len(fitting)} rows" if fitting else "is none"
    raise UserError(
        f"{where}: {question[:80]!r} with the answer {str(line.get('target'))[:40]!r} {fits} of the data set: give the "
        "--data and --config that its task ran on"
    )


def _plain(text: str) -> str:
    return " ".join(text.split())


def _texts(value: Any) -> Iterator[str]:
    """The texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def _first(replies: Any, where: str) -> str:
    """The text in what may be a list of replies, or of lists of them."""
    text = replies
    while isinstance(text, list) and text:
        text = text[0]
    if not isinstance(text, str):
        raise UserError(f"{where}: filtered_resps holds no text: {json.dumps(replies)[:80]}")
    return text
