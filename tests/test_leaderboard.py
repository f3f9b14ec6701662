"""space/: groups, ranks, significance, bad results, uploads, and results that come and go. Without a browser."""

from __future__ import annotations

import io
import json
import shutil
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import easg_bench
from tests.hub_server import HubServer
from tests.test_results import result as a_result
from tests.test_submit import bundle
from videoqa import submit
from videoqa.benchmarks.easg.published import TYPES
from videoqa.results import parse

pytest.importorskip("gradio", reason="the extra `space` is not installed")
app = pytest.importorskip("app")
leaderboard = pytest.importorskip("leaderboard")
questions = pytest.importorskip("questions")


@pytest.fixture
def board(tmp_path: Path) -> Path:
    """A folder of results."""
    folder = tmp_path / "board"
    folder.mkdir()
    return folder


def put(folder: Path, data: dict[str, Any], answers: bytes | None = None, where: str = "") -> Path:
    """Add a result as `submit` does."""
    text = json.dumps(data).encode()
    path = folder / (where or f"results/m/{submit.content_hash(text)}") / "scores.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(text)
    if answers is not None:
        path.with_name("answers.parquet").write_bytes(answers)
    return path


def judged_by(key: str, model: str, score: float) -> dict[str, Any]:
    data = a_result(model, {t: [score, score + 1, score - 1] for t in TYPES})
    return data | {"scorer": key, "judge": data["judge"] | {"key": key}}


def test_results_of_two_judges_are_never_in_one_ranking(board: Path) -> None:
    for key, model, score in (("a", "x", 5.0), ("a", "y", 7.0), ("b", "x", 9.0)):
        put(board, judged_by(key, model, score))
    groups = leaderboard.load(board).groups()
    assert [[e.result.name for e in found] for found in groups.values()] == [["y", "x"], ["x"]]
    frame = leaderboard.leaderboard(next(iter(groups.values())))
    assert list(frame["Model"]) == ["y", "x"] and list(frame["#"]) == [1, 2]


def test_other_questions_are_another_group(board: Path) -> None:
    one, other = a_result("x"), a_result("y")
    other["data"] |= {"revision": "another"}
    put(board, one)
    put(board, other)
    assert len(leaderboard.load(board).groups()) == 2


def test_filters_keep_the_ranks_of_the_whole_group(board: Path) -> None:
    for model, score, kind in (("one", 9.0, "video"), ("two", 8.0, "language-only"), ("three", 7.0, "video")):
        put(board, judged_by("j", model, score) | {"kind": kind})
    (entries,) = leaderboard.load(board).groups().values()
    assert list(leaderboard.leaderboard(entries, search="T")["#"]) == [2, 3]
    assert list(leaderboard.leaderboard(entries, kinds=["video"])["#"]) == [1, 3]
    assert leaderboard.leaderboard(entries, prompts=["blind"]).empty
    assert leaderboard.leaderboard(entries, search="nothing like it").empty


def test_a_cell_shows_the_score_with_its_interval_over_the_number_it_sorts_by(board: Path) -> None:
    put(board, judged_by("j", "m", 8.0))
    (entries,) = leaderboard.load(board).groups().values()
    frame = leaderboard.leaderboard(entries)
    assert frame["Avg."][0] == entries[0].result.avg.value == 100.0
    low, high = entries[0].result.avg.interval
    assert leaderboard.shown(frame, entries)[0][3] == f"100.0 ({low:.0f}–{high:.0f})"


def test_without_answers_intervals_decide_and_it_is_said(board: Path) -> None:
    for model, score in (("best", 9.0), ("near", 8.8), ("far", 2.0)):
        put(board, judged_by("j", model, score))
    (entries,) = leaderboard.load(board).groups().values()
    assert [leaderboard.standing(e, entries[0]) for e in entries] == [
        "best",
        "like the best (intervals meet)",
        "lower (intervals apart)",
    ]


def test_with_answers_the_paired_comparison_decides(board: Path, judged: Callable[..., Path]) -> None:
    def rate(text: str) -> dict[str, float]:
        return {"9": 0.9} if "right" in text else {"8": 0.9} if "wrong" in text else {"10": 0.9}

    for model, word in (("org/good", "right"), ("org/bad", "wrong")):
        text, answers = bundle(judged(model, say=lambda _, word=word: word, rate=rate))
        put(board, json.loads(text), answers)
    (entries,) = leaderboard.load(board).groups().values()
    assert [e.result.name for e in entries] == ["org/good", "org/bad"]
    assert leaderboard.standing(entries[1], entries[0]).startswith("lower (paired, p = 0.0")


def test_of_one_model_the_newest_result_is_shown(board: Path) -> None:
    put(board, a_result(date="2025-01-01T00:00:00+00:00"))
    put(board, a_result(date="2025-02-01T00:00:00+00:00"))
    found = leaderboard.load(board)
    assert [e.result.date[:7] for e in found.entries] == ["2025-02"] and found.replaced == 1


def test_bad_results_are_refused_with_reasons_and_the_good_ones_stay(board: Path) -> None:
    good = put(board, a_result("good"))
    broken = {
        "nan": json.dumps(a_result()).replace("true", "NaN").replace('"n": 15', '"n": NaN'),
        "version": json.dumps(a_result(format=7)),
        "name": json.dumps(a_result("x" * 100_000)),
        "direction": json.dumps(a_result("a\u202eb")),
        "text": "not json at all",
    }
    for name, text in broken.items():
        path = board / "results/bad" / name / "scores.json"
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    shutil.copytree(good.parent, board / "results/m/twice")
    put(board, a_result("odd"), b"PAR1 no parquet")
    found = leaderboard.load(board)
    assert sorted(e.result.name for e in found.entries) == ["good", "odd"]
    assert all(e.answers is None for e in found.entries)
    said = "\n".join(found.refused)
    for reason in ("format is 7", "at most 200 characters", "U+202E", "no result file", "the same file as", "parquet"):
        assert reason in said
    assert len(found.refused) == len(broken) + 2 and max(map(len, found.refused)) < 1_000


def test_results_are_read_again_and_the_last_good_copy_stays(board: Path, tmp_path: Path) -> None:
    folder = board
    put(folder, a_result("one"))
    results = leaderboard.Results(str(folder), every=0.1)
    assert len(results.board.entries) == 1 and "last good copy" not in results.note
    put(folder, a_result("two"))
    until(lambda: len(results.board.entries) == 2)
    folder.rename(tmp_path / "gone")
    until(lambda: "last good copy" in results.note)
    assert len(results.board.entries) == 2
    (tmp_path / "gone").rename(folder)
    until(lambda: "last good copy" not in results.note)


def test_a_hub_repo_is_read_and_survived(
    tmp_path: Path, judged: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import snapshot_download

    text, answers = bundle(judged())
    with HubServer({"org/results": {"results/m/x/scores.json": text, "results/m/x/answers.parquet": answers}}) as hub:

        def fetch(source: str) -> Path:
            return Path(
                snapshot_download(source, repo_type="dataset", endpoint=hub.url, token=False, cache_dir=tmp_path / "c")
            )

        results = leaderboard.Results("org/results", every=3600, fetch=fetch)
        assert [e.result.name for e in results.board.entries] == ["org/model"], results.note
        assert results.board.entries[0].answers is not None
        hub.files["org/results"]["main"]["results/m/y/scores.json"] = json.dumps(a_result("new")).encode()
        results.refresh()
        assert len(results.board.entries) == 2, results.note


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


# -- questions --------------------------------------------------------------------------------------------------------


@pytest.fixture
def asked(demo_data: Path) -> Any:
    return questions.Questions.load(str(demo_data))


def test_questions_are_found_by_type_clip_and_words(asked: Any) -> None:
    everything = asked.find(None, None, "")
    assert len(everything) == len(asked.rows)
    assert {asked.rows[i]["type"] for _, i in asked.find("before", None, "")} == {"before"}
    assert {asked.rows[i]["clip"] for _, i in asked.find(None, "demo-tea", "")} == {"demo-tea"}
    found = [asked.rows[i] for _, i in asked.find("purpose", None, "CUP camera")]
    assert found and all("cup" in f"{row['question']} {row['answer']}".casefold() for row in found)


def test_the_actions_before_and_after_are_the_answers(asked: Any) -> None:
    for row in asked.rows.values():
        roles = {action.role: action.text for action in asked.actions(row)}
        if row["type"] in ("before", "after"):
            assert set(row["answer"].split()) <= set(roles[row["type"]].split()), row["id"]
        if row["type"] == "purpose" and row["evidence"]:
            assert "asked" in roles and "before" not in roles


def test_answers_to_other_wordings_of_a_question_are_not_shown(
    board: Path, judged: Callable[..., Path], asked: Any
) -> None:
    text, answers = bundle(judged())
    put(board, json.loads(text), answers)
    other = json.loads(text)
    other["data"]["revision"] = "another"
    put(board, other, answers)
    found = leaderboard.load(board)
    row = next(iter(asked.rows.values()))
    assert len(found.entries) == 2 and len(asked.answers(row, found.entries)) == 1


def test_answers_of_a_run_in_two_stages_are_shown(tmp_path: Path, judged: Callable[..., Path], asked: Any) -> None:
    """Its revision is that of all questions; its answers are to those that look before or after."""
    text, answers = bundle(judged())
    data, table = json.loads(text), pq.read_table(io.BytesIO(answers))
    table = table.filter(pc.is_in(table["type"], pa.array(["before", "after"])))
    result = parse(json.dumps(data | {"prompt": "two-stage", "kind": "two-stage"}).encode(), "x")
    (tmp_path / "answers.parquet").write_bytes(submit.answer_bytes(table))
    entry = leaderboard.Entry(result, "hash", tmp_path / "answers.parquet")
    shown = {row["type"] for row in asked.rows.values() if len(asked.answers(row, [entry]))}
    assert shown == {"before", "after"}


def test_the_action_that_an_indirect_question_asks_about_is_found(asked: Any) -> None:
    for row in asked.rows.values():
        if row["frame"] is not None:
            actions = asked.actions(row)
            (at,) = [n for n, action in enumerate(actions) if action.role == "asked"]
            assert str(asked.graphs[row["clip"]][at]["index"]) == row["id"].split(":")[1], row["id"]


def test_the_demos_results_are_of_the_demos_questions(demo_data: Path) -> None:
    """Otherwise `make space` has no answers to show: answer and judge the demo again, `easg-bench submit RUN --to
    space/demo`, and remove the old ones."""
    from videoqa.rows import revision

    now = revision(list(easg_bench.load(demo_data)))
    board = leaderboard.load(Path(app.DEMO))
    assert not board.refused and {e.result.data.revision for e in board.entries} == {now}


# -- uploads ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def page(tmp_path: Path, demo_data: Path) -> Any:
    (tmp_path / "empty").mkdir(exist_ok=True)
    return app.App(leaderboard.Results(str(tmp_path / "empty"), every=3600), str(demo_data))


def upload(page: Any, *files: Path) -> str:
    return page.check([str(path) for path in files])[0]


def test_a_run_folders_files_are_taken_and_shown_as_they_would_appear(page: Any, judged: Callable[..., Path]) -> None:
    folder = judged("/home/me/models/mine")
    said, preview, todo, _, _ = page.check(
        [str(folder / n) for n in ("scores.json", "answers.jsonl", "verdicts.jsonl")]
    )
    assert "holds together" in said and "Its answers give the same numbers" in said
    assert preview["value"]["data"][0][1] == "mine"
    assert "takes no submissions" in todo


def test_answers_that_give_other_numbers_are_refused(page: Any, judged: Callable[..., Path]) -> None:
    folder = judged()
    lines = [json.loads(line) for line in (folder / "verdicts.jsonl").read_text().splitlines()]
    better = [v | {"score": 9.9} if v["of"] == "answer" else v for v in lines]
    (folder / "verdicts.jsonl").write_text("".join(json.dumps(v) + "\n" for v in better))
    said = upload(page, *(folder / n for n in ("scores.json", "answers.jsonl", "verdicts.jsonl")))
    assert said.startswith("Refused. verdicts.jsonl: purpose has 10 answers of mean 9.9")


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ('{"id": 1}\n', "not as a run writes it"),
        ('{"id": "x", "judge": "J", "of": "answer", "score": NaN, "status": "ok"}\n', "is nan"),
        ('{"id": "no such", "judge": "J", "of": "answer", "score": 1, "status": "ok"}\n', "is no question"),
        ('{"id": "x", "judge": "J", "of": "elsewhere", "score": 1, "status": "ok"}\n', "not as a run writes it"),
        ('{"id": "x", "judge": "J", "of": "answer", "score": 1, "status": "great"}\n', "status 'great'"),
        ("[" * 100_000 + "\n\n{}\n", "Refused."),
    ],
)
def test_strange_verdicts_are_refused(page: Any, judged: Callable[..., Path], lines: str, reason: str) -> None:
    folder = judged()
    key = json.loads((folder / "scores.json").read_text())["judge"]["key"]
    (folder / "verdicts.jsonl").write_text(lines.replace('"J"', json.dumps(key)))
    said = upload(page, *(folder / n for n in ("scores.json", "answers.jsonl", "verdicts.jsonl")))
    assert said.startswith("Refused. ") and reason in said


def test_what_is_no_result_file_is_refused_with_a_reason(page: Any, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("scores.json", b"0" * 50_000_000)
    (tmp_path / "scores.json").write_text("{}")
    (tmp_path / "more.json").write_text("{}")
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(10_000_000)
    assert "not packed" in upload(page, tmp_path / "bomb.zip")
    assert "format is None" in upload(page, tmp_path / "scores.json")
    assert "one result file (scores.json) is expected, not 2" in upload(
        page, tmp_path / "scores.json", tmp_path / "more.json"
    )
    assert "a result file has at most" in upload(page, tmp_path / "large.json")
    assert page.check(None)[0] == ""


def test_an_upload_is_sent_once_by_the_code_of_submit(
    tmp_path: Path, demo_data: Path, judged: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import HfApi

    folder = judged()
    (tmp_path / "empty").mkdir()
    with HubServer({"org/results": {}}) as hub:
        monkeypatch.setattr(app, "_api", lambda: HfApi(endpoint=hub.url, token="hf_none"))
        results = leaderboard.Results(str(tmp_path / "empty"), every=3600)
        page = app.App(results, str(demo_data), submit_to="org/results")
        _, _, todo, _, checked = page.check([str(folder / "scores.json")])
        assert "One pull request on the dataset org/results" in todo and not hub.pulls["org/results"]
        assert "discussions/1" in page.send(checked)[0]
        assert "Nothing to do" in page.send(checked)[0]
        assert len(hub.pulls["org/results"]) == 1
        hub.down = True
        assert "Not sent" in page.send(checked)[0]
        (content,) = hub.files["org/results"]["refs/pr/1"].values()
        assert parse(content, "x").name == "org/model"


def test_a_question_that_is_not_there_is_no_error(page: Any) -> None:
    assert page.question("<script>")[0] == "" and page.question(None)[0] == ""
    assert page.picture("nothing", 3)[1] == ""


def test_texts_of_a_question_are_escaped(page: Any) -> None:
    row = next(iter(page.questions.rows.values()))
    page.questions.rows["evil"] = row | {"id": "evil", "question": "<script>alert(1)</script>", "answer": "<img src=x>"}
    shown = page.question("evil")[0]
    assert "<script" not in shown and "<img" not in shown and "&lt;script&gt;" in shown
