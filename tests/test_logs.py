"""Answers out of the logs of lighteval and lmms-eval."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.scripted import Scripted
from videoqa import results
from videoqa.benchmarks.easg.rubrics import OURS
from videoqa.commands import command_line
from videoqa.errors import UserError
from videoqa.hosts.logs import details_answers, import_details, lmms_answers
from videoqa.judge import Judge
from videoqa.reply import Verdict
from videoqa.runs import Run
from videoqa.store import line_of

FIRST = Judge(Scripted(lambda *_: "6\n", name="first"), OURS, mode="score")
ROWS: list[dict[str, Any]] = [
    {
        "id": f"clip{n}:1:before",
        "clip": f"clip{n}",
        "video": "",
        "type": "before",
        "question": f"What came before step {n}?",
        "answer": f"pick jug {n}",
        "context": "",
        "start_s": 1.0,
        "end_s": 2.0,
        "clip_start_s": 0.0,
    }
    for n in range(4)
]


def detail(
    row: dict[str, Any], score: float | None = 6.0, error: str = "", prompt: str = "narrations"
) -> dict[str, Any]:
    verdict = Verdict(score, "ok" if score else "unreadable", raw="6")
    record = {
        "error": error,
        "judge": json.dumps(FIRST.describe()),
        "verdict": "" if error else json.dumps(line_of(verdict)),
        "truth_verdict": json.dumps(line_of(Verdict(8.0, "ok", raw="8"))),
        "located": "",
    }
    return {
        "doc": {"query": "...", "specific": {**row, "prompt": prompt}},
        "metric": {"easg_relative": record},
        "model_response": {"text": [f" answer to {row['id']} é\u2028"], "text_post_processed": None},
    }


def details(folder: Path, lines: list[dict[str, Any]]) -> Path:
    there = folder / "details" / "models" / "tiny" / "2026-01-31T12-00-00"
    there.mkdir(parents=True)
    path = there / "details_easg_bench_narrations:before|0_2026-01-31T12-00-00.parquet"
    pq.write_table(pa.Table.from_pylist(lines), path)
    return path


def test_a_finished_run_becomes_a_run_folder_with_its_first_judge(tmp_path: Path) -> None:
    path = details(
        tmp_path, [detail(ROWS[0]), detail(ROWS[1]), detail(ROWS[2], error="video_error: x"), detail(ROWS[3])]
    )
    run = import_details([path], tmp_path / "run")
    assert run.config["model"] == "models/tiny" and run.config["prompt"] == "narrations" and run.config["rows"] == 4
    answers = run.answers()
    assert answers[ROWS[0]["id"]]["prediction"] == f"answer to {ROWS[0]['id']} é"
    assert answers[ROWS[2]["id"]]["error"] == "video_error: x"
    (file,) = results.files(run.folder)
    found = results.read(file)
    assert found.avg.value == pytest.approx(75.0) and found.avg.n == 3 and found.scorer == FIRST.key


def test_rejudging_loads_no_model_and_keeps_both_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = details(tmp_path, [detail(row) for row in ROWS])
    opened: list[str] = []

    def engine(spec: str, **_: Any) -> Scripted:
        opened.append(spec)
        return Scripted(lambda asked, _: "10\n" if "answer to" not in asked else "4\n", name=spec)

    monkeypatch.setattr("videoqa.engines.open_engine", engine)
    arguments = ["rejudge", path, "--judge", "second", "--mode", "score", "--out", tmp_path / "run"]
    arguments += ["--store", tmp_path / "store"]
    for _ in range(2):
        done = CliRunner().invoke(command_line(), [str(a) for a in arguments])
        assert done.exit_code == 0, done.output
    assert opened == ["second", "second"]
    both = [results.read(file) for file in results.files(tmp_path / "run")]
    assert [one.judge and one.judge.model for one in both] == ["first", "second"]
    assert [one.avg.value for one in both] == pytest.approx([75.0, 40.0])
    assert all(one.judge and "easg-bench-" in one.judge.rubric for one in both)
    assert both[0].data.revision == both[1].data.revision


def test_other_files_and_mixed_runs_are_refused(tmp_path: Path) -> None:
    text = tmp_path / "x.parquet"
    text.write_text("no parquet")
    with pytest.raises(ValueError, match="no parquet file"):
        import_details([text], tmp_path / "run")
    other = tmp_path / "other.parquet"
    pq.write_table(pa.Table.from_pylist([{"doc": {"query": "?"}, "metric": {"acc": 1.0}}]), other)
    with pytest.raises(ValueError, match="row 1: not the details of one of our tasks"):
        import_details([other], tmp_path / "run")
    path = details(tmp_path, [detail(ROWS[0]), detail(ROWS[1], prompt="blind")])
    with pytest.raises(ValueError, match="several runs, with the prompts blind, narrations"):
        import_details([path], tmp_path / "run")
    with pytest.raises(ValueError, match="was there already"):
        import_details([path, path], tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_details_are_checked_against_the_data(tmp_path: Path) -> None:
    path = details(tmp_path, [detail(ROWS[0]), detail(ROWS[1], error="video_error: x")])
    (found,) = details_answers(path, ROWS)
    assert found == (ROWS[0]["id"], f"answer to {ROWS[0]['id']} é")
    assert details_answers(path.parent, ROWS) == [found]
    with pytest.raises(ValueError, match="asked on other data"):
        details_answers(path, [row | {"answer": "other"} for row in ROWS])
    with pytest.raises(FileNotFoundError, match="--save-details"):
        details_answers(tmp_path, ROWS)


def samples(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_samples_of_lmms_eval_are_found_by_their_number(tmp_path: Path) -> None:
    path = samples(
        tmp_path / "samples.jsonl",
        {"doc_id": 2, "target": "pick jug 2", "filtered_resps": ["Took it. "], "doc_hash": "x"},
        {"doc_id": 0, "target": "pick jug 0", "filtered_resps": [["Held it."]]},
        {"doc_id": 9, "target": "pick jug 1", "resps": [["Left it."]], "doc": {"id": ROWS[1]["id"]}},
    )
    assert lmms_answers(path, ROWS) == [
        (ROWS[2]["id"], "Took it."),
        (ROWS[0]["id"], "Held it."),
        (ROWS[1]["id"], "Left it."),
    ]


def other(n: int, **more: Any) -> dict[str, Any]:
    """A sample that answers row n, whose ground truth all rows share."""
    return {"doc_id": n, "target": "jug", "filtered_resps": [f"to {n}"], **more}


ALIKE = [row | {"answer": "jug"} for row in ROWS]  # only the question tells them apart


@pytest.mark.parametrize(
    "carried",
    [
        lambda n: {"doc": {"question": ALIKE[n]["question"]}},
        lambda n: {"input": f"Answer briefly.\n{ALIKE[n]['question']}"},
        lambda n: {"arguments": [[f"Answer briefly. {ALIKE[n]['question']}", {"until": ["\n"]}]]},
    ],
    ids=["doc", "input", "arguments"],
)
def test_samples_with_swapped_numbers_go_to_the_rows_that_were_asked(carried: Any, tmp_path: Path) -> None:
    swapped = [other(1, **carried(0)), other(0, **carried(1)), other(2, **carried(2))]
    assert lmms_answers(samples(tmp_path / "s.jsonl", *swapped), ALIKE) == [
        (ALIKE[0]["id"], "to 1"),
        (ALIKE[1]["id"], "to 0"),
        (ALIKE[2]["id"], "to 2"),
    ]


def test_a_question_that_two_rows_ask_belongs_to_the_numbered_one_or_to_none(tmp_path: Path) -> None:
    twice = [row | {"question": "What came before?"} for row in ALIKE]
    asked = {"doc": {"question": "What came before?"}}
    assert lmms_answers(samples(tmp_path / "a.jsonl", other(2, **asked)), twice) == [(ROWS[2]["id"], "to 2")]
    with pytest.raises(ValueError, match=r"line 1: 'What came before\?' with the answer 'jug' fits 4 rows"):
        lmms_answers(samples(tmp_path / "b.jsonl", other(9, **asked)), twice)


def test_a_question_within_another_is_not_taken_for_it(tmp_path: Path) -> None:
    rows = [ALIKE[0] | {"question": "What came"}, ALIKE[1] | {"question": "What came before step 1?"}]
    line = other(7, input="Now: What came before step 1?")
    assert lmms_answers(samples(tmp_path / "a.jsonl", line), rows) == [(ROWS[1]["id"], "to 7")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"doc_id": 7, "target": "pick jug 0", "filtered_resps": ["x"]}, "rows 0 to 3"),
        ({"doc_id": -1, "target": "pick jug 0", "filtered_resps": ["x"]}, "rows 0 to 3"),
        ({"doc_id": 1, "target": "pick jug 0", "filtered_resps": ["x"]}, "give the --data and --config"),
        ({"doc_id": 0, "target": "pick jug 0", "filtered_resps": []}, "holds no text"),
        ({"doc_id": 0, "target": "pick jug 0"}, "holds no text"),
        ({"doc_id": 0, "target": "pick jug 0", "doc": "text"}, "doc is .text.; an object"),
        ({"doc_id": 0, "target": "pick jug 0", "doc": [1]}, "doc is .1.; an object"),
        ({"doc_id": 0, "target": "pick jug 0", "doc": {"id": [1]}, "resps": ["x"]}, r"doc.id is .1.; a text"),
        ({"doc_id": 0, "target": "pick jug 0", "doc": {"question": 7}, "resps": ["x"]}, "doc.question is 7; a text"),
        ({"doc_id": 0, "target": "pick jug 0", "doc": {"question": ["Who?"]}, "resps": ["x"]}, "a text is expected"),
        ({"doc_id": 0, "target": "pick jug 0", "doc": {"question": "Who?"}}, "'Who.' .* is none of the data set"),
        ({"doc_id": True, "target": "pick jug 1"}, "doc_id is true"),
        ({"doc_id": 10**400, "target": "pick jug 1"}, "doc_id is 10000"),
    ],
)
def test_a_sample_that_fits_no_row_names_its_line(line: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"line 1.*{message}"):
        lmms_answers(samples(tmp_path / "samples.jsonl", line), ROWS)


def test_a_verdict_in_the_details_that_is_no_record_is_named(tmp_path: Path) -> None:
    line = detail(ROWS[0])
    line["metric"]["easg_relative"]["verdict"] = "6"
    with pytest.raises(ValueError, match="clip0:1:before: verdict in the details is no JSON object"):
        import_details([details(tmp_path, [line])], tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_row_that_is_answered_twice_is_refused(tmp_path: Path) -> None:
    line = {"doc_id": 0, "target": "pick jug 0", "filtered_resps": ["x"]}
    with pytest.raises(ValueError, match="line 2: answers clip0:1:before a second time"):
        lmms_answers(samples(tmp_path / "samples.jsonl", line, line), ROWS)
    with pytest.raises(ValueError, match="no samples"):
        lmms_answers(samples(tmp_path / "none.jsonl"), ROWS)


def test_import_answers_takes_both_forms(demo_data: Path, tmp_path: Path) -> None:
    import easg_bench

    rows = list(easg_bench.load(demo_data, "before"))
    lines = [{"doc_id": n, "target": row["answer"], "filtered_resps": ["x"]} for n, row in enumerate(rows)]
    where = ["--data", str(demo_data), "--config", "before"]
    path = samples(tmp_path / "samples.jsonl", *lines)
    done = CliRunner().invoke(
        command_line(), ["import-answers", str(path), "--from", "lmms-eval", "--out", str(tmp_path / "a"), *where]
    )
    assert done.exit_code == 0 and f"{len(rows)} of {len(rows)} questions answered" in done.output
    folder = details(tmp_path, [detail(dict(row)) for row in rows]).parent
    done = CliRunner().invoke(
        command_line(), ["import-answers", str(folder), "--from", "lighteval", "--out", str(tmp_path / "b"), *where]
    )
    assert done.exit_code == 0, done.output
    assert len(Run(tmp_path / "b").answers()) == len(rows)


NUMBERS = st.integers() | st.floats() | st.sampled_from([10**400, math.inf, math.nan])
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.sampled_from([ROWS[0]["id"], ROWS[0]["question"], "pick jug 0", "", "x"]),
    lambda of: st.lists(of, max_size=3) | st.dictionaries(st.sampled_from(["id", "question", "x"]), of, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["doc_id", "doc", "target", "input", "arguments", "resps"]), JSON))
def test_whatever_a_sample_holds_it_answers_a_row_or_is_refused_with_its_line(sample: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = samples(Path(folder) / "samples.jsonl", {"target": "pick jug 0", "resps": ["x"], "doc_id": 0} | sample)
        try:
            ((id, answer),) = lmms_answers(path, ROWS)
        except UserError as error:
            assert str(error).startswith(f"{path}, line 1: ")
        else:
            assert id in {row["id"] for row in ROWS} and isinstance(answer, str)
