"""answers.parquet, the answers of a run as others get them: one row a question, checked when it comes from anywhere.

An answers file is read within bounds (its pages say what they unpack to before anything is unpacked), and its rows have
to give the numbers of the result beside it.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from videoqa.benchmark import track
from videoqa.errors import UserError
from videoqa.parquet_size import pages
from videoqa.rating import scored
from videoqa.reply import STATUSES, Verdict
from videoqa.results import Result
from videoqa.steps import told, trace

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

Row = Mapping[str, Any]  # a question: id, clip, type
MAX_ROWS = 20_000
MAX_ANSWERS_BYTES = 50_000_000  # unpacked; the five types of EASG-Bench take about 1 MB
MAX_TEXT = 300_000  # bytes of an answer or a reason; a model that thinks aloud writes some 100 kB
MAX_STEPS = 20_000  # characters of an agent's steps to one answer; what is longer is cut
SCORED = ("ok", "empty_prediction")  # statuses with a score


def schema(steps: bool = False) -> pa.Schema:
    """The columns; those of an agent's answers have the steps to each."""
    import pyarrow as pa

    texts = [(name, pa.string()) for name in ("id", "clip", "type", "prediction")]
    return pa.schema(
        [
            *texts,
            ("score", pa.float64()),
            ("status", pa.string()),
            ("explanation", pa.string()),
            ("truth_score", pa.float64()),  # what the judge gave the ground truth
            *([("steps", pa.string())] if steps else []),
        ]
    )


def answer_table(
    rows: Sequence[Row],
    answers: Mapping[str, Mapping[str, Any]],
    verdicts: Mapping[str, Verdict],
    truths: Mapping[str, Verdict],
    steps: Sequence[Mapping[str, Any]] = (),
) -> pa.Table:
    """One row for each question, in the order of `rows`; without a verdict it has no status. A question that was asked
    in several arrangements of its options is one row as well, with all replies. `steps` are those of an agent's run
    (steps.py); of a question's arrangements those of the first are kept."""
    import pyarrow as pa

    groups: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("group"):
            groups.setdefault(row["group"], []).append(row)
    lines = [_group_line(name, group, answers, verdicts) for name, group in groups.items()]
    asked = [group[0] for group in groups.values()]
    for row in (row for row in rows if not row.get("group")):
        asked.append(row)
        verdict, truth = verdicts.get(row["id"]), truths.get(row["id"])
        lines.append(
            {
                **{k: row[k] for k in ("id", "clip", "type")},
                "prediction": _whole(answers.get(row["id"], {}).get("prediction")),
                "score": verdict and verdict.score,
                "status": verdict and verdict.status,
                "explanation": _whole(verdict.explanation if verdict else None) or None,
                "truth_score": truth and truth.score,
            }
        )
    if steps:
        for line, told in zip(lines, _told(asked, steps), strict=True):
            line["steps"] = told
    return pa.Table.from_pylist(lines, schema=schema(bool(steps)))


def _told(rows: Sequence[Row], steps: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The steps to the answer of each row, as a text."""
    of_clips: dict[str, list[Mapping[str, Any]]] = {}
    for line in steps:
        of_clips.setdefault(line["clip"], []).append(line)
    for row in rows:
        text = told(trace(of_clips.get(row["clip"], ()), row["id"], row["clip"]))
        yield _whole(text if len(text) <= MAX_STEPS else f"{text[: MAX_STEPS - 1]}…") or ""


def _group_line(
    name: str, group: Sequence[Row], answers: Mapping[str, Mapping[str, Any]], verdicts: Mapping[str, Verdict]
) -> dict[str, Any]:
    """The line of a question that was asked in several arrangements: it is right if it is right in all."""
    found = scored(group, verdicts)
    one = found[0] if found else None
    replies = [answers.get(row["id"], {}).get("prediction") for row in group]
    right = sum(verdicts[row["id"]].score == 1 for row in group if row["id"] in verdicts)
    return {
        **{"id": name, "clip": group[0]["clip"], "type": group[0]["type"]},
        "prediction": _whole(" | ".join("(not asked)" if reply is None else reply for reply in replies)),
        "score": one and one.score,
        "status": one and one.status,
        "explanation": f"right in {right} of {len(group)} arrangements" if one else None,
        "truth_score": None,
    }


def _whole(text: str | None) -> str | None:
    """The text without half surrogate pairs, which UTF-8 cannot write."""
    return text and text.encode("utf-8", "replace").decode()


def answer_bytes(table: pa.Table) -> bytes:
    """The table as a parquet file; the same table gives the same bytes."""
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", row_group_size=2_000)
    return buffer.getvalue()


def read_answers(source: str | Path | io.BytesIO, where: str = "") -> pa.Table:
    """The table of an answers.parquet that may come from anywhere. Raises UserError for another schema and for one that
    is too large: by its pages before anything is unpacked, and by the texts of its cells before they are made, since
    many cells can share one long text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    where = where or str(source)
    try:
        data = _bytes_of(source)
        if len(data) > MAX_ANSWERS_BYTES:
            raise UserError(f"{where}: more than the {MAX_ANSWERS_BYTES:,} bytes that an answers file may have")
        with pq.ParquetFile(pa.BufferReader(data)) as file:
            columns = schema("steps" in file.schema_arrow.names)
            if not file.schema_arrow.equals(columns):
                names = ", ".join(f"{f.name} ({f.type})" for f in schema())
                raise UserError(f"{where}: the columns of an answers file are {names}")
            _check_size(file, data, where)
        texts = [field.name for field in columns if pa.types.is_string(field.type)]
        with pq.ParquetFile(pa.BufferReader(data), read_dictionary=texts) as file:
            table = file.read()
        table.validate(full=True)
        _check_texts(table, texts, where)
        return table.cast(columns)
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise UserError(f"{where}: no parquet file that can be read ({error})") from error


def _bytes_of(source: str | Path | io.BytesIO) -> bytes:
    """The file's bytes, as far as an answers file may go and one more."""
    if isinstance(source, io.BytesIO):
        return source.getvalue()
    with Path(source).open("rb") as file:
        return file.read(MAX_ANSWERS_BYTES + 1)


def _check_size(file: pq.ParquetFile, data: bytes, where: str) -> None:
    """Raise UserError where the file's pages become more rows or bytes than allowed. The counts of the file's footer
    are somebody's word: the pages must agree with them."""
    meta = file.metadata
    if not str(meta.created_by).startswith("parquet-cpp"):
        raise UserError(f"{where}: not written by easg-bench, but by {str(meta.created_by)[:60]!r}")
    groups = [meta.row_group(i) for i in range(min(meta.num_row_groups, MAX_ROWS + 1))]
    rows = max(meta.num_rows, sum(group.num_rows for group in groups), len(groups))
    if rows > MAX_ROWS:
        raise UserError(f"{where}: {rows:,} rows; allowed are {MAX_ROWS:,}")
    size = 0
    for group in groups:
        for at in range(group.num_columns):
            try:
                column = pages(data, group.column(at))
            except ValueError as error:
                raise UserError(f"{where}: no parquet file that can be read ({error})") from error
            size += column.unpacked
            if max(column.values, column.dictionary) > max(group.num_rows, 0):
                raise UserError(f"{where}: a column has more values than the {group.num_rows:,} rows of its group")
    if size > MAX_ANSWERS_BYTES:
        raise UserError(f"{where}: {rows:,} rows of {size:,} bytes; allowed are {MAX_ANSWERS_BYTES:,} bytes")


def _check_texts(table: pa.Table, names: Sequence[str], where: str) -> None:
    """Raise UserError where a text, or all of them together, would be too long; `table` has each different text
    once."""
    import pyarrow.compute as pc

    total = 0
    for name in names:
        for chunk in table[name].chunks:
            lengths = pc.binary_length(chunk.dictionary)
            longest = pc.max(lengths).as_py() or 0
            if longest > MAX_TEXT:
                raise UserError(f"{where}: {name} has a text of {longest:,} bytes; allowed are {MAX_TEXT:,}")
            total += pc.sum(pc.take(lengths, chunk.indices)).as_py() or 0
    if total > MAX_ANSWERS_BYTES:
        raise UserError(f"{where}: texts of {total:,} bytes; allowed are {MAX_ANSWERS_BYTES:,}")


def check_answers(table: pa.Table, result: Result, where: str) -> None:
    """Raise UserError where the answers are none of a run, or do not give the result's numbers: counts and mean of each
    type, and what the ground truth was given."""
    lines = table.select(["id", "clip", "type", "score", "status", "explanation", "truth_score"]).to_pylist()
    if len(lines) > result.data.rows:
        raise UserError(f"{where}: {len(lines):,} rows, but the result's data have {result.data.rows:,}")
    if len({line["id"] for line in lines}) < len(lines):
        raise UserError(f"{where}: an id comes more than once")
    types = track(result.track).types
    for line in lines:
        if fault := _fault(line, types, result):
            raise UserError(f"{where}: row {str(line['id'])[:80]!r} {fault}")
    for name in types:
        mine = [line for line in lines if line["type"] == name]
        _check_type(name, [line for line in mine if line["status"] is not None], result, where)
        _check_truth(name, [s for line in mine if (s := line["truth_score"]) is not None], result, where)
    if result.calibration and (known := sum(line["truth_score"] is not None for line in lines)) > result.calibration.n:
        raise UserError(
            f"{where}: {known} ground truths have a score; the result's calibration is of {result.calibration.n}"
        )


def _fault(line: Mapping[str, Any], types: Sequence[str], result: Result) -> str:
    """What is impossible in a row of answers; empty where nothing is."""
    score, status = line["score"], line["status"]
    values = result.judge.values if result.judge else ()
    if not line["id"] or not line["clip"]:
        return "has no id or no clip"
    if line["type"] not in types:
        return f"has type {str(line['type'])[:60]!r}; the types are {', '.join(types)}"
    if status is None:
        return "was not judged, but has a score or an explanation" if score is not None or line["explanation"] else ""
    if status not in STATUSES:
        return f"has status {status[:60]!r}; allowed are {', '.join(STATUSES)}, or none"
    # by the reading of the authors' script an unreadable reply has the score 0
    if (score is None) == (status in SCORED) and (status, score) != ("unreadable", 0.0):
        return f"has status {status!r} and {'no score' if score is None else f'score {score}'}"
    for given in (score, line["truth_score"]):
        if given is not None and not math.isfinite(given):
            return f"has the score {given}"
        lowest = 0.0 if status == "unreadable" else min(values, default=0.0)
        if given is not None and values and not lowest - 1e-9 <= given <= max(values) + 1e-9:
            return f"has the score {given}; the rubric's are {min(values):g} to {max(values):g}"
    return ""


def _check_type(name: str, judged: Sequence[Mapping[str, Any]], result: Result, where: str) -> None:
    """Raise UserError where the judged rows of a type do not give its counts and its mean."""
    summary = result.types.get(name)
    scores = [line["score"] for line in judged if line["score"] is not None]
    counts = {
        "n": len(judged),
        "n_scored": sum(line["score"] is not None and line["status"] != "unreadable" for line in judged),
        "empty": sum(line["status"] == "empty_prediction" for line in judged),
        "errors": sum(line["status"] == "judge_error" for line in judged),
    }
    expected = {count: getattr(summary, count) if summary else 0 for count in counts}
    mean, expected_mean = math.fsum(scores) / len(scores) if scores else None, summary.mean if summary else None
    if counts["n"] != expected["n"] or not _alike(mean, expected_mean):
        raise UserError(
            f"{where}: {name} has {len(judged)} answers of mean {mean}, the result file says {expected['n']} of mean "
            f"{expected_mean}"
        )
    for count, value in counts.items():
        if value != expected[count]:
            raise UserError(f"{where}: {name} has {count} {value}, the result file says {expected[count]}")


def _check_truth(name: str, scores: Sequence[float], result: Result, where: str) -> None:
    """Raise UserError where a type's ground truths have another mean than the result's calibration. A published
    calibration is of no rows (n is 0), so that there is nothing to compare."""
    if result.calibration is None or result.calibration.n == 0:
        return
    mean, expected = math.fsum(scores) / len(scores) if scores else None, result.calibration.means.get(name)
    if not _alike(mean, expected):
        raise UserError(
            f"{where}: the ground truths of {name} have mean score {mean}, the result's calibration says {expected}"
        )


def _alike(a: float | None, b: float | None) -> bool:
    return (a is None) == (b is None) and math.isclose(a or 0.0, b or 0.0, rel_tol=1e-9)
