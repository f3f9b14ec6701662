"""videoqa/plain_file.py: answers as CSV or JSON Lines become a run, and what is none is named with its row."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import easg_bench
from tests.scripted import Scripted
from videoqa.benchmarks.easg.rubrics import OURS
from videoqa.commands import command_line
from videoqa.errors import UserError
from videoqa.judge import Judge
from videoqa.plain_file import read_plain
from videoqa.reproduced import prompt_of
from videoqa.results import parse
from videoqa.runs import Run, judge_rows, result, rows_of

IDS = ("clip:1:before", "clip:2:after", "7")
TEXTS = st.text(st.characters(codec="utf-8"))


@given(st.tuples(TEXTS, TEXTS, TEXTS), st.sampled_from([",", "\t"]), st.booleans())
def test_any_text_comes_out_of_a_table_as_it_went_in(
    tmp_path_factory: pytest.TempPathFactory, texts: tuple[str, ...], between: str, marked: bool
) -> None:
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=between)
    writer.writerows([["prediction", "note", "id"], *([text, "", id] for text, id in zip(texts, IDS, strict=True))])
    path = tmp_path_factory.getbasetemp() / ("answers.csv" if between == "," else "answers.tsv")
    path.write_text(file.getvalue(), encoding="utf-8-sig" if marked else "utf-8", newline="")
    found = read_plain(path, IDS)
    assert [(line["id"], line["prediction"], line["row"]) for line in found] == list(
        zip(IDS, texts, (2, 3, 4), strict=True)
    )


@given(st.lists(st.text(), min_size=3, max_size=3))
def test_any_text_comes_out_of_json_lines_as_it_went_in(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    path = tmp_path_factory.getbasetemp() / "answers.jsonl"
    lines = [json.dumps({"id": int(i) if i == "7" else i, "prediction": t}) for i, t in zip(IDS, texts, strict=True)]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert [(line["id"], line["prediction"]) for line in read_plain(path, IDS)] == list(zip(IDS, texts, strict=True))


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.csv", b"id,answer\n7,x\n", "row 1: no column 'prediction'; the head has 'id', 'answer'"),
        ("a.csv", b"id;prediction\n7;x\n", "row 1: no column 'id'"),
        ("a.csv", b"id,prediction,id\n7,x,7\n", "row 1: several columns 'id'"),
        ("a.csv", b"id,prediction\n7,x\n\n7,y\n", "row 4: answers 7 a second time, after row 2"),
        ("a.csv", b"id,prediction\nclip:1:befor,x\n", "row 2: .* no question \"clip:1:befor\"; .* 'clip:1:before'"),
        ("a.csv", b"id,prediction\n7,x,y\n", "row 2: has 3 cells; the head has 2"),
        ("a.csv", b'id,prediction\n7,"x" y\n', "row 2: no CSV"),
        ("a.csv", b'id,prediction\n7,"x\n', "row 2: no CSV"),
        ("a.csv", "id,prediction\n7,café\n".encode("latin-1"), "line 2: the byte 0xe9 is no UTF-8"),
        ("a.csv", "id,prediction\n7,x\n".encode("utf-16"), "line 1: .* seems to be UTF-16"),
        ("a.jsonl", b'{"id": "7", "prediction": null}', "row 1: prediction is null; a text"),
        ("a.jsonl", b'{"id": "7", "prediction": 2}', "row 1: prediction is 2; a text"),
        ("a.jsonl", b'\n{"id": "7"}', "row 2: no 'prediction'; it has 'id'"),
        ("a.jsonl", b'{"id": true, "prediction": "x"}', "row 1: .* no question true"),
        ("a.jsonl", b'{"id": "7", "prediction": "x", "seconds": NaN}', "row 1: seconds cannot be nan"),
        ("a.jsonl", b'{"id": "7", "prediction": "x"}\n{"id": "7", "pred', "row 2: no JSON object"),
        ("a.jsonl", b'[1]', "row 1: no JSON object"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_named_with_its_row(name: str, data: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(UserError, match=said) as caught:
        read_plain(path, IDS)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


def import_answers(*arguments: object) -> Any:
    return CliRunner().invoke(command_line(), ["import-answers", *map(str, arguments)])


def score(folder: Path) -> tuple[Run, dict[str, Any], list[str]]:
    """The imported run with a scripted judge's result, and the ids of the ground truths that it was asked about."""
    run = Run(folder)
    rows = rows_of(run)
    judge = Judge(Scripted(lambda *_: "", chances=lambda text: {"6": 1.0}, can_force=True, name="org/j"), OURS, "dist")
    said = {name: line["prediction"] for name, line in run.answers().items()}
    for _ in judge_rows(judge, rows, said, run, None):
        pass
    made = json.loads(json.dumps(result(run, rows, judge.describe())))
    return run, made, sorted(run.verdicts(judge.key, "truth"))


def test_of_a_partial_file_only_the_truths_of_its_types_are_rated(demo_data: Path, tmp_path: Path) -> None:
    rows = list(easg_bench.load(demo_data))
    chosen = [row for row in rows if row["type"] == "before"][:3]
    path = tmp_path / "three.csv"
    path.write_text(
        "id,prediction\n" + "".join(f"{row['id']},{'' if row is chosen[1] else 'a cup'}\n" for row in chosen)
    )
    asked = import_answers(
        path, "--data", demo_data, "--out", tmp_path / "run", "--model", "org/m", "--prompt", "narrations"
    )
    assert asked.exit_code == 0, asked.output
    assert f"3 of {len(rows)} questions answered" in asked.output
    assert f"row 3: no words in the answer to {chosen[1]['id']}; 1 in all" in " ".join(asked.output.split())
    run, made, truths = score(tmp_path / "run")
    assert truths == sorted(row["id"] for row in rows if row["type"] == "before")
    read = parse(json.dumps(made).encode(), "it")
    assert (read.model, read.prompt, read.avg.n, read.avg.empty) == ("org/m", "narrations", 3, 1)
    assert f"3 of {len(rows)}" == read.coverage and read.gaps
    with pytest.raises(UserError, match="imported, nobody here asked"):
        prompt_of(run, chosen[0]["id"])


def test_a_runs_own_answers_give_its_own_numbers(judged: Callable[..., Path], demo_data: Path, tmp_path: Path) -> None:
    folder = judged("org/m", rate=lambda text: {"6": 1.0})
    lines = [json.loads(line) for line in (folder / "answers.jsonl").read_text().splitlines()]
    failed = {"id": lines[0]["id"], "prediction": None, "error": "timeout"}  # asked again, so an answer comes behind it
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in [failed, *lines]))
    asked = import_answers(path, "--data", demo_data, "--out", tmp_path / "run", "--model", "org/m")
    assert asked.exit_code == 0, asked.output
    run, made, _ = score(tmp_path / "run")
    before = json.loads((folder / "scores.json").read_text())
    assert [made[key] for key in ("types", "avg", "usage", "cut")] == [
        before[key] for key in ("types", "avg", "usage", "cut")
    ]
    assert made["prompt"] == "imported" and run.answers().keys() == {line["id"] for line in lines}


def test_an_unknown_prompt_or_an_invisible_name_is_refused(demo_data: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"id,prediction\n{easg_bench.load(demo_data)[0]['id']},x\n")
    for wrong, said in (
        (["--prompt", "nice"], "--prompt nice"),
        (["--model", " "], "--model"),
        (["--model", "a\u200bb"], "--model"),
    ):
        asked = import_answers(path, "--data", demo_data, "--out", tmp_path / "run", *wrong)
        assert asked.exit_code and isinstance(asked.exception, UserError) and said in str(asked.exception)
        assert not (tmp_path / "run").exists()
