"""EgoSchema from the official files to a checked submission, by the command lines and a scripted model."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from builder.__main__ import app as builder
from tests.scripted import Scripted
from videoqa import engines
from videoqa.benchmark import track, track_of
from videoqa.commands import command_line
from videoqa.results import read
from videoqa.runs import Run

NAMES = [f"q{n}" for n in range(8)]
GOLD = {name: n % 5 for n, name in enumerate(NAMES[:6])}  # A B C D E A; q6 and q7 are withheld


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The official files, with eight questions on four clips."""
    folder = tmp_path / "source"
    folder.mkdir()
    questions = [
        {
            **{"q_uid": name, "google_drive_id": "x", "question": f"What does C do in {name}?"},
            **{
                f"option {i}": f"{name} does thing {word}."
                for i, word in enumerate(("one", "two", "three", "four", "five"))
            },
        }
        for name in NAMES
    ]
    spans = {
        name: {"video_uid": f"v{n // 4}", "starting_sec": 180 * (n // 2), "ending_sec": 180 * (n // 2) + 180}
        for n, name in enumerate(NAMES)
    }
    for file, data in (("questions", questions), ("subset_answers", GOLD), ("uid_to_ego4d", spans)):
        (folder / f"{file}.json").write_text(json.dumps(data), "utf-8")
    return folder


@pytest.fixture
def data(source: Path, tmp_path: Path) -> Path:
    out = tmp_path / "egoschema"
    done = CliRunner().invoke(builder, ["egoschema", "--source", str(source), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "full: 8 questions on 4 clips, 6 with a public answer" in done.output
    return out


def say(text: str, seed: int = 0) -> str | None:
    """The right letter but for q1, whose reply names two, and q7, which fails."""
    name = re.search(r"in (q\d)", text)
    assert name
    if name[1] == "q7":
        return None
    return "A or C" if name[1] == "q1" else f"The answer is {'ABCDE'[NAMES.index(name[1]) % 5]}."


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def use(**more: Any) -> None:
        monkeypatch.setattr(engines, "open_engine", lambda *_, **__: Scripted(say, **more))

    return use


def bench(*arguments: Any) -> Any:
    return CliRunner().invoke(command_line(), list(map(str, arguments)))


def test_the_card_names_the_track_and_its_first_config_is_the_default(data: Path, monkeypatch: Any) -> None:
    from datasets import load_dataset

    assert track_of(str(data)) is track("egoschema")
    monkeypatch.chdir(data.parent)
    rows = load_dataset("egoschema", split="test")
    assert len(rows) == 6 and rows[2]["gold"] == 2 and len(rows[2]["choices"]) == 5
    assert len(load_dataset("egoschema", "full", split="test")) == 8


def test_only_configs_with_files_are_written(source: Path, tmp_path: Path) -> None:
    questions = json.loads((source / "questions.json").read_text())
    (source / "questions_subset.json").write_text(json.dumps(questions[:6]))
    (source / "questions.json").unlink()
    out = tmp_path / "egoschema"
    done = CliRunner().invoke(builder, ["egoschema", "build", "--source", str(source), "--out", str(out)])
    assert "full: not written" in done.output and len(list(out.glob("data/*.parquet"))) == 1
    done = bench("videos", "list", "--data", out, "--config", "full")
    assert "has no config 'full'" in str(done.exception)


def test_a_run_by_generation_counts_what_cannot_be_read_as_wrong(data: Path, tmp_path: Path, model: Any) -> None:
    model()
    done = bench("run", "--data", data, "--config", "subset", "--model", "m", "--out", tmp_path / "run")
    assert done.exit_code == 0, done.output
    one = read(tmp_path / "run" / "scores.json")
    assert (one.protocol, one.avg.n, one.avg.unreadable) == ("generation", 6, 1)
    assert one.avg.value == pytest.approx(100 * 5 / 6)
    assert "LongViViT" in done.output and "56.80" in done.output and "33.30" not in done.output
    assert "always A 33.3, B 16.7" in done.output


def test_withheld_answers_are_no_score_of_the_full_set(data: Path, tmp_path: Path, model: Any) -> None:
    model()
    done = bench("run", "--data", data, "--config", "full", "--model", "m", "--out", tmp_path / "full")
    assert done.exit_code == 3  # q7 has no answer
    one = read(tmp_path / "full" / "scores.json")
    assert (one.withheld, one.unanswered, one.avg.n) == (2, 1, 6)
    told = bench("report", tmp_path / "full").output
    assert "2 of 8 rows have no public answer" in told and "LongViViT" not in told
    bench("run", "--data", data, "--config", "subset", "--model", "m", "--out", tmp_path / "subset")
    both = bench("report", tmp_path / "full", tmp_path / "subset")
    assert "several sets of questions (full, subset)" in str(both.exception)


def test_likelihood_is_the_default_where_the_engine_has_it(data: Path, tmp_path: Path, model: Any) -> None:
    model(chances=lambda text: {"A": 0.9, "Yes": 0.2, "No": 0.7})
    out = tmp_path / "run"
    done = bench("run", "--data", data, "--model", "m", "--out", out)
    assert done.exit_code == 0, done.output
    line = Run(out).answers()["q3"]
    assert (line["prediction"], line["mass"]) == ("A", pytest.approx(0.9))
    assert sum(line["probabilities"]) == pytest.approx(1)
    again = bench("run", "--data", data, "--model", "m", "--out", out, "--protocol", "generation")
    assert "protocol is 'likelihood', not 'generation'" in str(again.exception)
    assert read(out / "scores.json").label == "scripted (blind, likelihood)"


def test_circular_is_in_the_config_and_told(data: Path, tmp_path: Path, model: Any) -> None:
    model(chances=lambda text: {"A": 0.9})
    out = tmp_path / "run"
    done = bench("run", "--data", data, "--model", "m", "--out", out, "--circular")
    assert done.exit_code == 0, done.output
    assert (Run(out).config["order"], Run(out).config["rows"], len(Run(out).answers())) == ("circular", 6, 30)
    one = read(out / "scores.json")
    assert (one.avg.n, one.avg.value, one.coverage, one.gaps) == (6, 0.0, "6 of 6", ())
    assert "the same option 0.0 (of 6 questions); right in a single one 20.0" in done.output
    with pytest.raises(Exception, match="five answers to each question"):
        raise bench("submission", out).exception


def test_the_page_of_a_run_shows_options_and_speaks_of_no_judge(data: Path, tmp_path: Path, model: Any) -> None:
    model(chances=lambda text: {"A": 0.9})
    out, page = tmp_path / "run", tmp_path / "page.html"
    bench("run", "--data", data, "--model", "m", "--out", out)
    assert bench("report", out, "--html", page).exit_code == 0
    text = page.read_text()
    shown = re.sub(
        r"<script(?! type=\"application/json).*?</script>", "", text[text.index("<body>") :], flags=re.DOTALL
    )
    assert "judge" not in shown.casefold() and "None" not in shown
    assert 'class="options"' in shown and "(right)" in shown and "How probable each option was" in shown


def test_captions_are_needed_where_they_are_shown(data: Path, tmp_path: Path, model: Any) -> None:
    model()
    out, file = tmp_path / "run", tmp_path / "captions.json"
    arguments = ["run", "--data", data, "--model", "m", "--out", out, "--prompt", "narrations"]
    assert "q0 has none: give --captions" in str(bench(*arguments).exception)
    file.write_text(json.dumps({name: [[0, f"C is busy in {name}"]] for name in NAMES}))
    assert bench(*arguments, "--captions", file).exit_code == 0
    assert bench("report", out).exit_code == 0
    file.write_text(json.dumps(dict.fromkeys(NAMES, "changed")))
    assert "was answered on revision" in str(bench("judge", out).exception)
    wrong = bench("run", "--data", data, "--model", "m", "--out", tmp_path / "x", "--captions", file)
    assert "--captions is for narrations, two-pass" in str(wrong.exception)


def test_a_judge_is_of_no_use(data: Path, tmp_path: Path, model: Any) -> None:
    model()
    done = bench("run", "--data", data, "--model", "m", "--judge", "m", "--out", tmp_path / "run")
    assert "EgoSchema compares letters" in str(done.exception)


@pytest.fixture
def full(data: Path, tmp_path: Path, model: Any) -> Path:
    model()
    assert (
        bench("answer", "--data", data, "--config", "full", "--model", "m", "--out", tmp_path / "full").exit_code == 3
    )
    return tmp_path / "full"


def test_a_submission_is_whole_or_not_written(full: Path, tmp_path: Path) -> None:
    out = tmp_path / "answers.csv"
    done = bench("submission", full, "--out", out)
    assert "not written: 2 without an answer: q1, q7" in str(done.exception) and not out.exists()
    assert "1 answers could not be read: q1" in done.output
    done = bench("submission", full, "--out", out, "--missing", 0)
    assert "8 answers, checked against the config full, 2 of them filled with 0" in done.output
    assert out.read_text().splitlines()[:3] == ["q_uid,answer", "q0,0", "q1,0"]
    assert bench("submission", full, "--format", "json", "--missing", 0).exit_code == 0
    assert json.loads((full / "submission.json").read_text())["q4"] == 4


def test_a_submission_of_a_subset_says_what_it_lacks(data: Path, tmp_path: Path, model: Any, source: Path) -> None:
    model()
    bench("answer", "--data", data, "--config", "subset", "--model", "m", "--out", tmp_path / "run")
    done = bench("submission", tmp_path / "run", "--uids", source / "uid_to_ego4d.json")
    assert "3 without an answer: q1, q6, q7" in str(done.exception)


def test_a_shuffled_run_is_submitted_in_the_order_of_the_release(data: Path, tmp_path: Path, model: Any) -> None:
    model(chances=lambda text: {"A": 0.9})
    out = tmp_path / "run"
    bench("answer", "--data", data, "--config", "full", "--model", "m", "--out", out, "--shuffle", 3)
    done = bench("submission", out, "--format", "json")
    assert done.exit_code == 0, done.exception
    from videoqa.runs import rows_of

    expected = {row["id"]: row["order"][0] for row in rows_of(Run(out))}
    assert json.loads((out / "submission.json").read_text()) == expected
    assert len(set(expected.values())) > 1


@pytest.fixture
def server() -> Iterator[tuple[str, list[Any]]]:
    """A validation server on loopback that refuses what has no q0, is down at /down, and at /hang says nothing."""
    got: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            if self.path == "/hang":
                self.close_connection = True
                return
            self.send_response(500 if self.path == "/down" else 200 if "q0" in got[-1] else 400)
            self.end_headers()
            self.wfile.write(b"MCQ accuracy: 0.625")

        def log_message(self, *_: Any) -> None:
            pass

    listening = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{listening.server_port}/api", got
    listening.shutdown()
    listening.server_close()


def test_nothing_is_sent_without_the_flag_and_the_answer_is_kept(full: Path, server: Any, tmp_path: Path) -> None:
    url, got = server
    bench("submission", full, "--missing", 0, "--server", url)
    assert not got
    done = bench("submission", full, "--missing", 0, "--server", url, "--post")
    assert done.exit_code == 0, done.exception
    assert got[0]["q3"] == 3 and len(got[0]) == 8
    (kept,) = full.glob("server-*.json")
    assert json.loads(kept.read_text())["text"] == "MCQ accuracy: 0.625"
    (tmp_path / "uids.json").write_text('["q2"]')
    wrong = bench("submission", full, "--uids", tmp_path / "uids.json", "--server", url, "--post")
    assert "not expected" in str(wrong.exception) and len(got) == 1


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/", "http://127.0.0.1:x/", "127.0.0.1"])
def test_a_server_that_cannot_be_reached_is_told(full: Path, address: str) -> None:
    done = bench("submission", full, "--missing", 0, "--post", "--server", address)
    assert "cannot be reached" in str(done.exception)
    assert f"nothing was sent, the answers are in {full / 'submission.csv'}" in str(done.exception)


def test_of_answers_that_were_sent_it_is_not_said_that_nothing_was(full: Path, server: Any) -> None:
    """E03 of the public reports: the server is down, or takes the answers and says nothing."""
    url, got = server
    file = full / "submission.csv"
    done = bench("submission", full, "--missing", 0, "--post", "--server", url.replace("/api", "/hang"))
    assert len(got) == 1 and len(file.read_text().splitlines()) == 9
    assert f"whether it has the answers is not known, they are in {file}" in str(done.exception)
    assert "nothing was sent" not in str(done.exception) and not list(full.glob("server-*"))
    done = bench("submission", full, "--missing", 0, "--post", "--server", url.replace("/api", "/down"))
    assert f"did not take it (status 500); the answers are in {file}" in str(done.exception)


def test_certificates_by_command(tmp_path: Path) -> None:
    file = tmp_path / "spans.csv"
    file.write_text("question,annotator,start,end,clip_length\nq1,ann,12.5,40,180\nq1,ann,43.0,61,180\n")
    for place in (["certificates"], ["egoschema", "certificates"]):
        done = CliRunner().invoke(builder, [*place, str(file), "--plot", str(tmp_path / "plot.png")])
        assert done.exit_code == 0 and "48.5" in done.output, done.output
    assert (tmp_path / "plot.png").stat().st_size > 10_000
