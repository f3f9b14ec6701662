"""videoqa/answers_file.py and parquet_size.py: an answers file from anywhere is bounded before it is made, and what
cannot be of a run is refused."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.test_results import result as a_result
from tests.test_submit import bundle
from videoqa import answers_file, submit
from videoqa.benchmarks.easg.published import TYPES
from videoqa.parquet_size import pages
from videoqa.results import Result, parse

MB = 1_000_000
POOLS: list[pa.MemoryPool] = []  # kept: what was made in a pool must not outlive it


def packed(rows: int, **columns: Any) -> dict[str, Any]:
    """The columns of an answers file, empty but for those that are given."""
    found = {field.name: pa.nulls(rows, field.type) for field in answers_file.schema()}
    return found | columns


def written(columns: dict[str, Any], **options: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns, schema=answers_file.schema()), buffer, compression="zstd", **options)
    return buffer.getvalue()


def shared_text(rows: int, length: int) -> bytes:
    """A file in which every row has the same long text, once in a dictionary."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["a" * length]))
    columns = packed(rows)
    schema = pa.schema([(f.name, text.type if f.name == "prediction" else f.type) for f in answers_file.schema()])
    buffer = io.BytesIO()
    table = pa.table(columns | {"prediction": text}, schema=schema)
    pq.write_table(table, buffer, compression="zstd", store_schema=False, dictionary_pagesize_limit=4 * length)
    return buffer.getvalue()


def peak(read: Callable[[], Any]) -> int:
    """The most bytes that Arrow held at once while `read` ran."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    POOLS.append(pool)
    pa.set_memory_pool(pool)
    try:
        with pytest.raises(ValueError, match=r"allowed|encoding"):
            read()
        return pool.max_memory()
    finally:
        pa.set_memory_pool(before)


def test_one_long_text_that_all_rows_share_is_not_made_two_thousand_times() -> None:
    content = shared_text(2_000, MB)
    assert len(content) < 10_000, "the file is small; its table would have 2 GB"
    assert peak(lambda: answers_file.read_answers(io.BytesIO(content), "bomb")) < 10 * MB


def test_a_text_of_a_length_that_is_allowed_still_counts_once_a_row() -> None:
    content = shared_text(2_000, answers_file.MAX_TEXT)
    assert peak(lambda: answers_file.read_answers(io.BytesIO(content), "bomb")) < 10 * MB


def test_a_page_that_unpacks_to_much_is_not_unpacked_whatever_the_footer_says() -> None:
    content = written(packed(400, prediction=pa.array(["a" * 250_000] * 400)), use_dictionary=False)
    with pq.ParquetFile(io.BytesIO(content)) as file:
        said = file.metadata.row_group(0).total_byte_size
    assert said > 90 * MB

    def varint(number: int, length: int = 0) -> bytes:
        """The number as Thrift writes it, filled up to a length."""
        number <<= 1
        parts = [(number >> 7 * i) & 0x7F for i in range(max(length, (number.bit_length() + 6) // 7))]
        return bytes([part | 0x80 for part in parts[:-1]] + parts[-1:])

    head, _, foot = content.rpartition(varint(said))
    assert head and foot
    forged = head + varint(1_000, len(varint(said))) + foot
    with pq.ParquetFile(io.BytesIO(forged)) as file:
        assert file.metadata.row_group(0).total_byte_size == 1_000
    for one in (content, forged):
        assert peak(partial(answers_file.read_answers, io.BytesIO(one), "bomb")) < 10 * MB


def test_an_encoding_that_repeats_the_beginning_of_a_text_is_refused() -> None:
    content = written(
        packed(100, prediction=pa.array(["a" * 100_000] * 100)),
        use_dictionary=False,
        column_encoding={"prediction": "DELTA_BYTE_ARRAY"},
    )
    assert len(content) < 5_000
    assert peak(lambda: answers_file.read_answers(io.BytesIO(content), "bomb")) < MB


def test_the_pages_of_a_file_add_up_to_what_its_honest_footer_says() -> None:
    rows = 5_000
    texts = pa.array([f"answer {i} " * (i % 50) for i in range(rows)])
    content = written(packed(rows, id=texts, prediction=texts, score=pa.array([1.5] * rows)), row_group_size=700)
    with pq.ParquetFile(io.BytesIO(content)) as file:
        for i in range(file.metadata.num_row_groups):
            group = file.metadata.row_group(i)
            for at in range(group.num_columns):
                column = group.column(at)
                assert pages(content, column).values == column.num_values
                # the footer counts the headers of the pages as well
                assert 0 <= column.total_uncompressed_size - pages(content, column).unpacked < 2_000


@settings(max_examples=300)
@given(st.data())
def test_a_damaged_answers_file_is_read_or_refused_in_words(data: st.DataObject) -> None:
    """But for the footer: a damaged one can abort Arrow itself, which no test can outlive."""
    content = bytearray(written(packed(20, id=pa.array([f"id {i}" for i in range(20)]))))
    pages = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, pages - 1))] = data.draw(st.integers(0, 255))
    try:
        answers_file.read_answers(io.BytesIO(bytes(content)), "x")
    except ValueError as error:
        assert str(error).startswith("x: ")


def test_a_size_that_damage_made_a_struct_is_refused() -> None:
    """Found by a fuzz run: one changed byte made the size of a page a nested struct."""
    for place in range(4, 60):
        for byte in (0x0C, 0x1C, 0x2C, 0x11, 0x12):  # struct and truth value in place of a number
            content = bytearray(written(packed(20, id=pa.array([f"id {i}" for i in range(20)]))))
            content[place] = byte
            try:
                answers_file.read_answers(io.BytesIO(bytes(content)), "x")
            except ValueError as error:
                assert str(error).startswith("x: ")


# -- what cannot be ---------------------------------------------------------------------------------------------------


@pytest.fixture
def sent(judged: Callable[..., Path]) -> tuple[Result, pa.Table]:
    """A result and its answers, which agree."""
    text, answers = bundle(judged())
    result, table = parse(text, "x"), answers_file.read_answers(io.BytesIO(answers), "answers")
    answers_file.check_answers(table, result, "answers")
    return result, table


def changed(table: pa.Table, column: str, values: list[Any]) -> pa.Table:
    at = table.column_names.index(column)
    return table.set_column(at, table.schema.field(at), pa.array(values, table.schema.field(at).type))


def test_the_ground_truths_scores_must_give_the_calibration(sent: tuple[Result, pa.Table]) -> None:
    result, table = sent
    for truths in ([0.5] * len(table), [None] * len(table)):
        with pytest.raises(ValueError, match=r"the ground truths of purpose have mean score|has the score 0\.5"):
            answers_file.check_answers(changed(table, "truth_score", truths), result, "answers")


@pytest.mark.parametrize(
    ("status", "score", "reason"),
    [
        ("", 10.0, "has status ''"),
        (None, 10.0, "was not judged, but has a score"),
        ("great", 10.0, "has status 'great'"),
        ("ok", None, "has status 'ok' and no score"),
        ("judge_error", 3.0, "has status 'judge_error' and score 3.0"),
        ("unreadable", 3.0, "has status 'unreadable' and score 3.0"),
    ],
)
def test_a_row_whose_status_and_score_do_not_go_together_is_refused(
    sent: tuple[Result, pa.Table], status: str | None, score: float | None, reason: str
) -> None:
    result, table = sent
    table = changed(table, "status", [status, *table["status"].to_pylist()[1:]])
    table = changed(table, "score", [score, *table["score"].to_pylist()[1:]])
    with pytest.raises(ValueError) as caught:
        answers_file.check_answers(table, result, "answers")
    assert str(caught.value).startswith("answers: row ") and reason in str(caught.value)


def test_an_unreadable_reply_has_no_score_or_the_zero_of_the_authors_script(sent: tuple[Result, pa.Table]) -> None:
    result, table = sent
    line = table.to_pylist()[0] | {"status": "unreadable"}
    assert [answers_file._fault(line | {"score": score}, TYPES, result) for score in (None, 0.0)] == ["", ""]


def test_more_rows_than_the_data_have_are_refused(sent: tuple[Result, pa.Table]) -> None:
    result, table = sent
    line = dict.fromkeys(table.column_names) | {"clip": "c", "type": "purpose", "status": "", "score": 10.0}
    extra = pa.Table.from_pylist([line | {"id": f"extra {i}"} for i in range(500)], schema=table.schema)
    with pytest.raises(ValueError, match="560 rows, but the result's data have 60"):
        answers_file.check_answers(pa.concat_tables([table, extra]), result, "answers")
    with pytest.raises(ValueError, match="an id comes more than once"):
        answers_file.check_answers(changed(table, "id", ["x"] * len(table)), result, "answers")


def test_a_number_of_empty_answers_that_is_not_the_results_is_refused(sent: tuple[Result, pa.Table]) -> None:
    result, table = sent
    statuses = ["empty_prediction", *table["status"].to_pylist()[1:]]
    with pytest.raises(ValueError, match="purpose has empty 1, the result file says 0"):
        answers_file.check_answers(changed(table, "status", statuses), result, "answers")


# -- dates ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "date", ["9999-99-99T99:99", "2025-13-01T00:00:00+00:00", "2025-01-01T25:00", "0000-01-01T00:00"]
)
def test_a_date_that_is_none_is_refused(date: str) -> None:
    with pytest.raises(ValueError, match="which is no date"):
        submit.moment(parse(json.dumps(a_result(date=date)).encode(), "x"))


def test_dates_are_compared_as_moments() -> None:
    noon, later = (
        submit.moment(parse(json.dumps(a_result(date=date)).encode(), "x"))
        for date in ("2025-01-01T12:00:00Z", "2025-01-01T11:00:00-08:00")
    )
    assert noon < later and noon == datetime(2025, 1, 1, 12, tzinfo=UTC)


def test_a_date_of_the_future_is_refused() -> None:
    now = datetime(2025, 1, 1, 12, tzinfo=UTC)
    soon = parse(json.dumps(a_result(date=(now + timedelta(minutes=5)).isoformat())).encode(), "x")
    assert submit.moment(soon, now) > now, "clocks differ"
    for date in ("2025-01-01T13:00:00+00:00", "9998-12-31T23:59:59+00:00", "2025-01-01T12:00:00-01:00"):
        with pytest.raises(ValueError, match="in the future"):
            submit.moment(parse(json.dumps(a_result(date=date)).encode(), "x"), now)
