"""videoqa/answers_worker.py: an answers file that ends its reader ends nothing else."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tests.test_answers_bounds import packed, shared_text, written
from videoqa import answers_file
from videoqa.answers_worker import AnswersReader
from videoqa.errors import UserError


@pytest.fixture(scope="module")
def reader() -> Iterator[AnswersReader]:
    made = AnswersReader()
    yield made
    made.close()


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "answers.parquet"
    path.write_bytes(written(packed(20, id=pa.array([f"id {i}" for i in range(20)]))))
    return path


def test_a_file_is_read_as_in_this_process(reader: AnswersReader, good: Path) -> None:
    table = reader.read(good)
    assert table.equals(answers_file.read_answers(good)) and table.schema.equals(answers_file.schema())


def test_what_is_refused_is_refused_in_the_same_words(reader: AnswersReader, tmp_path: Path, good: Path) -> None:
    bomb = tmp_path / "bomb.parquet"
    bomb.write_bytes(shared_text(2_000, 1_000_000))
    for path in (bomb, tmp_path / "none.parquet", tmp_path):
        with pytest.raises(UserError) as here:
            answers_file.read_answers(path, "x")
        with pytest.raises(UserError) as there:
            reader.read(path, "x")
        assert str(there.value) == str(here.value)
    assert reader.read(good).num_rows == 20, "and the next one is read"


@pytest.mark.parametrize("seed", range(3))
def test_a_damaged_footer_is_read_or_refused_in_one_line(reader: AnswersReader, good: Path, seed: int) -> None:
    """One to four bytes of the footer changed, as in the files that aborted Arrow."""
    whole = good.read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    draw = random.Random(seed)
    damaged = good.with_name("damaged.parquet")
    for _ in range(150):
        content = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            content[draw.randrange(footer, len(content))] = draw.randrange(256)
        damaged.write_bytes(content)
        try:
            reader.read(damaged, "x")
        except UserError as error:
            assert str(error).startswith("x: ")
    assert reader.read(good).num_rows == 20


def test_a_reader_that_dies_is_one_line_and_is_started_again(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = AnswersReader()
    try:
        first = reader._started()
        first.kill()
        first.wait()
        assert reader.read(good).num_rows == 20, "it was gone before the file came"
        # with a file that ends it: as an abort of Arrow does, seen from here
        monkeypatch.setattr(AnswersReader, "_started", lambda self: _dying(self))
        with pytest.raises(UserError, match=r"^x: no parquet file that can be read \(it ends the reader"):
            reader.read(good, "x")
        monkeypatch.undo()
        assert reader.read(good).num_rows == 20
    finally:
        reader.close()


def _dying(reader: AnswersReader) -> object:
    import subprocess
    import sys

    code = "import os, sys; sys.stdin.readline(); os.abort()"
    reader._worker = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    return reader._worker


def test_a_reader_that_takes_too_long_is_ended(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import subprocess
    import sys

    reader = AnswersReader(seconds=0.2)
    code = "import time; time.sleep(600)"
    reader._worker = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        with pytest.raises(UserError, match=r"^x: no parquet file that can be read \(it takes longer than 0.2 s\)"):
            reader.read(good, "x")
        assert reader._worker is None
    finally:
        reader.close()


def test_the_reader_sees_no_token(monkeypatch: pytest.MonkeyPatch, good: Path) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_abcdefghijkl")
    reader = AnswersReader()
    try:
        reader.read(good)
        worker = reader._worker
        assert worker is not None
        environment = Path(f"/proc/{worker.pid}/environ")
        if environment.exists():
            assert b"hf_abcdefghijkl" not in environment.read_bytes()
    finally:
        reader.close()
