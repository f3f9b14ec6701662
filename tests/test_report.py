"""videoqa/report.py: its numbers are those of scores.json, to the last digit, and no text of others is markup."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import easg_bench
from tests.test_results import result as a_result
from videoqa import report
from videoqa.benchmarks.easg import EASG
from videoqa.benchmarks.easg.published import TYPES
from videoqa.commands import main
from videoqa.results import Result, parse, read
from videoqa.runs import Run

EVIL = '<script>alert("x")</script> <img src=x onerror=alert(1)> [a](javascript:alert(1)) "\' & {{ 7*7 }}'


class Page(HTMLParser):
    """The tables by id as rows of the values of their <data> elements; every tag and attribute."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self._table: list[list[str]] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.add(tag)
        self.attributes |= set(found)
        if tag == "table":
            self._table = self.tables.setdefault(found.get("id") or "", [])
        elif tag == "tr" and self._table is not None:
            self._table.append([])
        elif tag == "data" and self._table is not None and self._table:
            self._table[-1].append(str(found["value"]))

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self._table = None


def page(folders: list[Path]) -> tuple[str, list[dict[str, Any]]]:
    rows = list(easg_bench.load(json.loads((folders[0] / "config.json").read_text())["data"]))
    views = [report.View.of(Run(folder), read(folder / "scores.json")) for folder in folders]
    return report.html(views, rows), rows


def test_the_numbers_of_the_page_are_those_of_the_file_to_the_last_digit(judged: Callable[..., Path]) -> None:
    folders = [
        judged("org/a", rate=lambda text: {"3": 0.2, "7": 0.5 + len(text) % 7 / 20}),
        judged("org/b", rate=lambda text: {"2": 0.3, "9": 0.3 + len(text) % 5 / 20}),
    ]
    text, _ = page(folders)
    found = Page(text).tables["score-table"]
    for folder, row in zip(folders, found[1:3], strict=True):
        data = json.loads((folder / "scores.json").read_text())
        summaries = [*(data["types"][t] for t in TYPES), data["avg"]]
        assert [float(v) for v in row] == [x for s in summaries for x in (s["value"], *s["interval"])]


def test_the_page_needs_nothing_beside_it(judged: Callable[..., Path]) -> None:
    text, _ = page([judged()])
    assert not Page(text).tags & {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
    assert "http://" not in text and "https://" not in text and "url(" not in text
    assert "default-src 'none'" in text


def test_differences_are_those_of_the_paired_comparison(judged: Callable[..., Path]) -> None:
    better = judged("org/a", say=lambda text: "yes", rate=lambda text: {"9": 0.9} if "yes" in text else {"5": 0.9})
    worse = judged("org/b", say=lambda text: "no", rate=lambda text: {"2": 0.9} if '"no"' in text else {"5": 0.9})
    text, rows = page([better, worse])
    views = [report.View.of(Run(f), read(f / "scores.json")) for f in (better, worse)]
    found = report.difference(views[1], views[0], rows)
    assert not isinstance(found, str)
    shown = Page(text).tables["difference-table"][1]
    assert float(shown[0]) == found.by_type["purpose"].difference
    assert str(found.avg.difference) in shown


def test_runs_of_two_judges_are_not_compared(judged: Callable[..., Path]) -> None:
    folders = [judged("org/a"), judged("org/b")]
    path = folders[1] / "scores.json"
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {"scorer": "another judge", "judge": data["judge"] | {"key": "another judge"}}))
    text, _ = page(folders)
    assert "These runs were not judged alike" in text
    assert "these two cannot be compared" in text


def test_texts_of_models_and_judges_are_text(judged: Callable[..., Path]) -> None:
    plain = Page(page([judged("org/plain")])[0])
    folder = judged("org/evil", say=lambda text: EVIL)
    path = folder / "scores.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"model": EVIL[:190], "command": EVIL}))
    lines = [json.loads(line) for line in (folder / "verdicts.jsonl").read_text().splitlines()]
    (folder / "verdicts.jsonl").write_text("".join(json.dumps(v | {"explanation": EVIL}) + "\n" for v in lines))
    text = page([folder])[0]
    evil = Page(text)
    assert evil.tags == plain.tags and evil.attributes == plain.attributes
    assert "&lt;script&gt;" in text and "{{ 7*7 }}" in text


def test_the_lowest_answers_come_with_question_truth_narrations_and_reason(judged: Callable[..., Path]) -> None:
    folder = judged(rate=lambda text: {"1": 0.9} if "tyre" in text else {"8": 0.9})
    run, result = Run(folder), read(folder / "scores.json")
    text, rows = page([folder])
    lowest = report.View.of(run, result).lowest(rows, 20)
    assert len(lowest) == 20 and "tyre" in (lowest[0]["question"] + lowest[0]["context"])
    assert text.count("what the judge was told of the clip") >= 20
    assert "The 20 lowest" in text


def test_unreadable_replies_are_shown_and_are_in_no_histogram(judged: Callable[..., Path]) -> None:
    folder = judged()
    lines = [json.loads(line) for line in (folder / "verdicts.jsonl").read_text().splitlines()]
    first = next(v for v in lines if v["of"] == "answer")
    with (folder / "verdicts.jsonl").open("a") as file:
        file.write(json.dumps(first | {"score": None, "status": "unreadable", "raw": "I would rather not say"}) + "\n")
    text, rows = page([folder])
    view = report.View.of(Run(folder), read(folder / "scores.json"))
    assert "I would rather not say" in text
    assert sum(view.histogram().values()) == len(rows) - 1


def results() -> list[Result]:
    video = a_result("org/video_100%", {t: [8.0, 7.0] for t in TYPES}, kind="video", prompt="frames")
    return [parse(json.dumps(data).encode(), "x") for data in (a_result("org/a_b"), video)]


def test_latex_has_a_block_for_each_kind_and_the_best_in_bold() -> None:
    text = report.latex(results())
    assert r"\textit{language-only}" in text and r"\textit{video}" in text
    assert r"org/video\_100\% (frames) & \textbf{93.75}" in text
    assert r"org/a\_b (narrations) & 70.83" in text
    assert text.count(r"\\") == 3 + 2  # head, two blocks, two rows


def test_markdown_escapes_what_would_break_a_table() -> None:
    text = report.markdown([parse(json.dumps(a_result("a|b <script> `c`")).encode(), "x")])
    assert r"a\|b \<script\> \`c\`" in text
    assert len(text.splitlines()[0].split("|")) == 10


def test_csv_has_every_digit_and_no_formula() -> None:
    (one,) = [parse(json.dumps(a_result("=1+1", {t: [1 / 3 + 3, 2 / 3 + 5] for t in TYPES})).encode(), "x")]
    lines = list(csv.DictReader(io.StringIO(report.to_csv([one]))))
    assert [line["type"] for line in lines] == [*TYPES, "Avg."]
    assert [float(line["value"]) for line in lines] == [s.value for s in map(one.column, EASG.columns) if s]
    assert lines[0]["model"] == "'=1+1"


def test_the_command_writes_the_page_and_the_formats(
    judged: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = judged()
    for extra in (["--html", str(tmp_path / "r.html")], [], ["--format", "markdown"]):
        monkeypatch.setattr("sys.argv", ["easg-bench", "report", str(folder), *extra])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
    assert Page((tmp_path / "r.html").read_text()).tables["score-table"][1]
    out = capsys.readouterr().out
    assert "| org/model (blind) |" in out and "paper's judge" in out
