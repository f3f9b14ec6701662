"""videoqa/submit.py: one pull request for a result, none for one that is there already, against a Hub on loopback."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from huggingface_hub import HfApi, eval_result_entries_to_yaml, parse_eval_result_entries
from huggingface_hub.repocard_data import model_index_to_eval_results
from typer.testing import CliRunner

import easg_bench
from tests.hub_server import HubServer
from tests.test_results import result as a_result
from videoqa import answers_file, submit
from videoqa.benchmarks.easg.published import TYPES
from videoqa.commands import command_line
from videoqa.results import Result, parse, read
from videoqa.runs import Run

REPO = "org/results"


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with HubServer({REPO: {}}) as server:
        yield server


def api(hub: HubServer) -> HfApi:
    return HfApi(endpoint=hub.url, token="hf_none")


def bundle(folder: Path) -> tuple[bytes, bytes]:
    run, result = Run(folder), read(folder / "scores.json")
    rows = list(easg_bench.load(run.config["data"]))
    key = result.scorer
    table = answers_file.answer_table(rows, run.answers(), run.verdicts(key, "answer"), run.verdicts(key, "truth"))
    return submit.published(result.model_dump(mode="json")), answers_file.answer_bytes(table)


def test_a_submission_is_one_pull_request_with_result_and_answers(hub: HubServer, judged: Callable[..., Path]) -> None:
    text, answers = bundle(judged())
    planned = submit.plan(api(hub), REPO, [(text, answers)])
    assert not hub.pulls[REPO], "a plan changes nothing"
    assert not any(line.startswith("POST") for line in hub.requests)
    assert submit.submit(api(hub), planned) == f"{hub.url}/datasets/{REPO}/discussions/1"
    assert hub.files[REPO]["main"] == {}
    folder = f"results/model/{submit.content_hash(text)}"
    assert hub.files[REPO]["refs/pr/1"] == {f"{folder}/scores.json": text, f"{folder}/answers.parquet": answers}


def test_a_second_submission_is_recognized_in_the_open_pull_request(
    hub: HubServer, judged: Callable[..., Path]
) -> None:
    found = [bundle(judged())]
    submit.submit(api(hub), submit.plan(api(hub), REPO, found))
    again = submit.plan(api(hub), REPO, found)
    assert not again.files and "discussions/1" in str(again) and "Nothing to do" in str(again)
    assert submit.submit(api(hub), again) is None
    assert len(hub.pulls[REPO]) == 1


def test_a_merged_submission_is_recognized_on_main(hub: HubServer, judged: Callable[..., Path]) -> None:
    found = [bundle(judged())]
    submit.submit(api(hub), submit.plan(api(hub), REPO, found))
    hub.files[REPO]["main"] = hub.files[REPO].pop("refs/pr/1")
    hub.pulls[REPO][0]["status"] = "merged"
    assert "already there (main)" in str(submit.plan(api(hub), REPO, found))


def test_a_repo_that_is_not_there_is_named(hub: HubServer, judged: Callable[..., Path]) -> None:
    with pytest.raises(ValueError, match="org/other: the Hub has no such dataset"):
        submit.plan(api(hub), "org/other", [bundle(judged())])


def test_the_command_says_what_it_would_do_then_does_it_once(hub: HubServer, judged: Callable[..., Path]) -> None:
    folder = judged()
    said = []
    for extra in (["--dry-run"], [], []):
        done = subprocess.run(
            [str(Path(sys.executable).with_name("easg-bench")), "submit", str(folder), "--to", REPO, *extra],
            env={**os.environ, "HF_ENDPOINT": hub.url, "HF_TOKEN": "hf_none"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        said.append((done.stdout, len(hub.pulls[REPO])))
    assert [pulls for _, pulls in said] == [0, 1, 1]
    assert "One pull request" in said[0][0] and "Done" not in said[0][0]
    assert "discussions/1" in said[1][0] and "Nothing to do" in said[2][0]


def test_a_hub_that_does_not_answer_is_one_line(judged: Callable[..., Path]) -> None:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("easg-bench")), "submit", str(judged()), "--to", REPO],
        env={**os.environ, "HF_ENDPOINT": "http://127.0.0.1:9", "HF_TOKEN": "hf_none"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "easg-bench: the Hugging Face Hub cannot be reached: " in done.stderr


def test_an_empty_name_is_no_repo(judged: Callable[..., Path]) -> None:
    with pytest.raises(ValueError, match="--to is empty"):
        submit.plan(HfApi(), " ", [bundle(judged())])


def test_half_a_surrogate_pair_in_an_answer_can_be_published(judged: Callable[..., Path]) -> None:
    text, answers = bundle(judged(say=lambda question: "a \ud83d cup"))
    assert answers_file.read_answers(io.BytesIO(answers))["prediction"][0].as_py() == "a ? cup"
    assert submit.plan(HfApi(), ".", [(text, answers)]).files


def test_a_folder_that_is_not_there_is_no_repo(tmp_path: Path, judged: Callable[..., Path]) -> None:
    text, answers = bundle(judged())
    with pytest.raises(FileNotFoundError, match=r"no folder .*board: give one that is there, or .* ORG/REPO"):
        submit.plan(HfApi(), str(tmp_path / "board"), [(text, answers)])


@pytest.mark.parametrize(
    ("part", "value", "why"),
    [
        ("low_mass", 40, "40 of 60 answers have a verdict of too little mass"),
        ("empty", 60, "60 of 60 answers are empty"),
        ("unreadable", 31, "31 of 60 answers have no verdict that could be read"),
        ("low_mass", 30, ""),
    ],
)
def test_a_result_that_is_not_to_be_trusted_is_not_submitted(
    part: str, value: int, why: str, tmp_path: Path, judged: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from videoqa import tables

    folder = judged()
    real = tables.distrusted

    def changed(one: Result) -> str:
        assert one.judge is not None and one.avg.n == 60
        if part == "low_mass":
            return real(one.model_copy(update={"judge": one.judge.model_copy(update={part: value})}))
        return real(one.model_copy(update={"avg": one.avg.model_copy(update={part: value})}))

    monkeypatch.setattr(tables, "distrusted", changed)
    done = CliRunner().invoke(command_line(), ["submit", str(folder), "--to", str(tmp_path)])
    if why:
        assert f"scores.json: {why}; such numbers are not submitted" in str(done.exception)
        assert not list(tmp_path.glob("results"))
    else:
        assert done.exit_code == 0, done.output


def test_a_folder_takes_submissions_as_well(tmp_path: Path, judged: Callable[..., Path]) -> None:
    text, answers = bundle(judged())
    board = tmp_path / "board"
    board.mkdir()
    planned = submit.plan(HfApi(), str(board), [(text, answers)])
    submit.submit(HfApi(), planned)
    (path,) = board.glob("results/*/*/scores.json")
    assert path.read_bytes() == text and path.with_name("answers.parquet").read_bytes() == answers
    assert not submit.plan(HfApi(), str(board), [(text, answers)]).files


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/me/models/mine", "mine"),
        ("build/models/mine", "mine"),
        ("john smith/private dir/run1", "run1"),
        ("file:///home/me/private/mine", "mine"),
        (r"C:\Users\me\models\mine", "mine"),
        ("/home/me/m float32, dist", "m float32, dist"),
        ("easg-bench run --model=/data/x/y --out runs/mine", "easg-bench run --model=y --out runs/mine"),
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("server:m@http://127.0.0.1:8000/v1/x", "server:m@http://127.0.0.1:8000/v1/x"),
    ],
)
def test_folders_of_this_machine_are_not_published(text: str, expected: str) -> None:
    assert json.loads(submit.published({"x": [text]})) == {"x": [expected]}


@pytest.mark.parametrize("model", ["../../etc/passwd", "..", "/", "a b/<script>", "نموذج", "-x" * 90])
def test_a_model_name_makes_no_path_of_its_own(model: str) -> None:
    data = a_result(model=model)
    text = submit.published(data)
    folder = submit.folder_of(text, parse(json.dumps(data).encode(), "x"))
    first, name, digest = folder.split("/")
    assert first == "results" and digest == submit.content_hash(text)
    assert name.strip(".-") == name and 0 < len(name) <= 60 and name.isascii()


def test_answers_that_do_not_give_the_result_are_refused(judged: Callable[..., Path]) -> None:
    text, answers = bundle(judged())
    table = answers_file.read_answers(io.BytesIO(answers), "answers")
    answers_file.check_answers(table, parse(text, "x"), "answers")
    scores = [9.5, *table["score"].to_pylist()[1:]]
    forged = table.set_column(table.column_names.index("score"), "score", pa.array(scores, pa.float64()))
    with pytest.raises(ValueError, match="answers: purpose has 10 answers of mean"):
        answers_file.check_answers(forged, parse(text, "x"), "answers")


def test_an_answers_file_that_unpacks_to_much_is_refused_before_it_is_read() -> None:
    rows = answers_file.MAX_ROWS + 1
    schema = answers_file.schema()
    table = pa.table({field.name: pa.nulls(rows, field.type) for field in schema}, schema=schema)
    with pytest.raises(ValueError, match="bomb: 20,001 rows"):
        answers_file.read_answers(io.BytesIO(answers_file.answer_bytes(table)), "bomb")
    few = {field.name: pa.array([None] * 1000, field.type) for field in schema}
    few["prediction"] = pa.array([f"{i}" + "a" * 60_000 for i in range(1000)])
    buffer = io.BytesIO()
    pq.write_table(pa.table(few, schema=schema), buffer, compression="zstd", use_dictionary=False)
    assert len(buffer.getvalue()) < 1_000_000
    with pytest.raises(ValueError, match="bomb: 1,000 rows of 6"):
        answers_file.read_answers(buffer, "bomb")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" * 100, b"PK\x03\x04"])
def test_what_is_no_parquet_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="no parquet file that can be read"):
        answers_file.read_answers(io.BytesIO(content), "x")


def test_another_table_is_refused_with_the_columns_that_are_expected() -> None:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"id": ["a"]}), buffer)
    with pytest.raises(ValueError, match="the columns of an answers file are id"):
        answers_file.read_answers(buffer, "x")


def test_the_card_is_read_back_by_the_hub_library_with_every_digit() -> None:
    data = a_result("/models/mine", {t: [1 / 3 + 3, 5.0] for t in TYPES})
    found = parse(json.dumps(data).encode(), "x")
    index = yaml.safe_load(submit.card([found]))["model-index"]
    name, entries = model_index_to_eval_results(index)
    assert name == "mine"
    assert [entry.metric_value for entry in entries] == [s.value for s in [*found.types.values(), found.avg]]
    assert entries[-1].dataset_name == "EASG-Bench (all types)" and "dist" in str(entries[-1].metric_name)


def test_the_eval_results_are_read_back_by_the_hub_library_with_every_digit() -> None:
    data = a_result("/models/mine", {t: [1 / 3 + 3, 5.0] for t in TYPES})
    found = parse(json.dumps(data).encode(), "x")
    ((name, text),) = submit.eval_results([found], "org/easg-bench").items()
    entries = parse_eval_result_entries(yaml.safe_load(text))
    assert [(e.dataset_id, e.task_id, e.value) for e in entries] == [
        ("org/easg-bench", "default", found.avg.value),
        *(("org/easg-bench", kind, summary.value) for kind, summary in found.types.items()),
    ]
    assert all(entry.date == found.date and "judge" in str(entry.notes) for entry in entries)
    assert yaml.safe_load(text) == eval_result_entries_to_yaml(entries)
    assert name.startswith("easg-bench-default-") and "/models" not in text
    blind = a_result("/models/mine", {t: [3.0, 5.0] for t in TYPES}, prompt="blind")
    other = parse(json.dumps(blind).encode(), "x")
    assert set(submit.eval_results([other], "org/easg-bench")) != {name}, "another way of asking has a file of its own"


def test_eval_results_need_a_dataset_on_the_hub_and_a_whole_run() -> None:
    data = a_result("/models/mine", {t: [3.0, 5.0] for t in TYPES})
    data["data"]["data"] = "/home/me/easg-bench"
    found = parse(json.dumps(data).encode(), "x")
    for dataset in (None, "easg-bench", "./easg-bench"):
        with pytest.raises(ValueError, match="give --dataset ORG/NAME"):
            submit.eval_results([found], dataset)
    data["data"]["rows"] += 5
    partial = parse(json.dumps(data).encode(), "x")
    with pytest.raises(ValueError, match=r"is partial \(5 rows that were not asked"):
        submit.eval_results([partial], "org/easg-bench")


def test_the_tasks_that_results_name_are_those_of_the_dataset(demo_data: Path, judged: Callable[..., Path]) -> None:
    tasks = yaml.safe_load((demo_data / "eval.yaml").read_text())
    assert tasks["evaluation_framework"] == "easg-bench" and tasks["name"] == "EASG-Bench questions"
    configs = {task["id"]: (task["config"], task["split"]) for task in tasks["tasks"]}
    assert configs == {name: (name, "test") for name in configs} and "graphs" not in configs
    for name in configs:
        easg_bench.load(demo_data, name)
    (text,) = submit.eval_results([read(judged() / "scores.json")], "org/easg-bench").values()
    assert {entry.task_id for entry in parse_eval_result_entries(yaml.safe_load(text))} <= set(configs)


def test_the_command_writes_them_into_the_models_repo(judged: Callable[..., Path], tmp_path: Path) -> None:
    folder = judged()
    arguments = ["card", str(folder), "--dataset", "org/easg-bench"]
    printed = CliRunner().invoke(command_line(), arguments)
    written = CliRunner().invoke(command_line(), [*arguments, "--out", str(tmp_path / "repo")])
    (path,) = (tmp_path / "repo" / ".eval_results").iterdir()
    assert written.output.strip() == str(path)
    assert printed.output == f"# .eval_results/{path.name}\n{path.read_text()}"
    older = CliRunner().invoke(command_line(), ["card", str(folder), "--format", "model-index"])
    assert older.output.startswith("model-index:")
    refused = CliRunner().invoke(command_line(), ["card", str(folder)])
    assert "give --dataset ORG/NAME" in str(refused.exception)


def test_a_card_is_of_one_model() -> None:
    found = [parse(json.dumps(a_result(name)).encode(), "x") for name in ("a", "b")]
    with pytest.raises(ValueError, match="one model; these results are of a, b"):
        submit.card(found)
