"""videoqa/tables.py and report.py: their numbers are those of scores.json, to the last digit, and no text of others is
markup."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import easg_bench
from tests.test_results import result as a_result
from videoqa import figures, report, tables
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
        summaries = [data["avg"], *(data["types"][t] for t in TYPES)]
        assert [float(v) for v in row] == [x for s in summaries for x in (s["value"], *s["interval"])]


def test_the_page_needs_nothing_beside_it(judged: Callable[..., Path]) -> None:
    text, _ = page([judged()])
    assert not Page(text).tags & {"link", "img", "iframe", "object", "embed", "base", "form"}
    assert "src" not in Page(text).attributes and "onclick" not in Page(text).attributes
    assert "http://" not in text and "https://" not in text and "url(" not in text
    assert "default-src 'none'" in text


def scripts(text: str) -> list[str]:
    """The contents of the page's script elements, as a browser ends them."""
    return [part.split("</script", 1)[0].partition(">")[2] for part in text.split("<script")[1:]]


def test_only_the_pages_own_script_runs(judged: Callable[..., Path]) -> None:
    text, _ = page([judged("org/evil", say=lambda text: EVIL)])
    data, script = scripts(text)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text and "unsafe-inline'; img" in text.partition("style-src")[2]
    assert json.loads(data)["rows"][0]["runs"][0]["said"] == EVIL
    assert "innerHTML" not in script and "insertAdjacentHTML" not in script and "eval" not in script


def test_every_row_is_in_the_page_with_what_came_of_it(judged: Callable[..., Path]) -> None:
    folder = judged("org/a", say=lambda text: "" if "tyre" in text else "a cup")
    lines = [json.loads(line) for line in (folder / "answers.jsonl").read_text().splitlines()]
    failed, cut = [line["id"] for line in lines if line["prediction"]][:2]
    with (folder / "answers.jsonl").open("a") as file:
        file.write(json.dumps({"id": failed, "prediction": None, "error": "no file /home/john/x"}) + "\n")
        file.write(json.dumps({"id": cut, "prediction": "a cup", "error": None, "finished": False}) + "\n")
    text, rows = page([folder])
    found = {row["id"]: row for row in json.loads(scripts(text)[0])["rows"]}
    assert len(found) == len(rows) == 60
    states = [of["runs"][0]["state"] for of in found.values()]
    assert states.count("empty") == sum(line["prediction"] == "" for line in lines) > 0
    assert found[failed]["runs"][0] == {"state": "unanswered", "why": "no file x"}
    assert "unrated" not in states
    view = replace(report.View.of(Run(folder), read(folder / "scores.json")), verdicts={})
    assert {report.state(view, row) for row in rows} == {"unrated", "unanswered"}
    assert found[cut]["runs"][0]["cut"] is True and found[cut]["runs"][0]["score"] == pytest.approx(4.889)
    contexts = json.loads(scripts(text)[0])["contexts"]
    assert all(contexts[found[row["id"]]["context"]] == row["context"] for row in rows)


def test_the_distribution_is_the_mean_of_the_judges_probabilities(judged: Callable[..., Path]) -> None:
    folder = judged(rate=lambda text: {"4": 0.5, "6": 0.25} if '"a cup"' in text or "a cup" in text else {"9": 0.9})
    view = report.View.of(Run(folder), read(folder / "scores.json"))
    bars = {bar.name: bar for bar in view.distribution([])}
    assert list(bars) == [str(n) for n in range(1, 11)]
    assert bars["4"].share == pytest.approx(2 / 3, abs=1e-5) and bars["6"].share == pytest.approx(1 / 3, abs=1e-5)
    assert sum(bar.share for bar in bars.values()) == pytest.approx(1)
    assert sum(bar.truth or 0.0 for bar in bars.values()) == pytest.approx(1)
    said = {key: replace(v, probabilities=None, score=6.0) for key, v in view.verdicts.items()}
    assert {b.name: b.share for b in replace(view, verdicts=said).distribution([])}["6"] == 1
    unread = {key: replace(v, score=None, status="unreadable") for key, v in view.verdicts.items()}
    assert replace(view, verdicts=unread).distribution([]) == []


def test_tokens_seconds_cost_and_repeats_are_in_the_page(judged: Callable[..., Path]) -> None:
    folder = judged()
    path = folder / "scores.json"
    usage = {"rows": 60, "prompt_tokens": 2_000_000, "new_tokens": 1_000_000, "seconds": 30.0}
    extras = {"repeat_mean": {"all": {"n": 4.0, "mean": 71.5}}, "repeat_se": {"all": {"n": 4.0, "mean": 0.5}}}
    data = json.loads(path.read_text()) | {"usage": usage}
    data |= {"extras": data["extras"] | extras, "settings": {"repeats": 4}}
    path.write_text(json.dumps(data))
    rows = list(easg_bench.load(Run(folder).config["data"]))
    view = report.View.of(Run(folder), read(path))
    found = Page(report.html([view], rows, (0.5, 2.0))).tables["usage-table"][1]
    assert [float(value) for value in found] == [30.0, 0.5, 3.0, 71.5, 0.5]
    assert "usage-table" not in report.html([report.View.of(Run(folder), a_whole(view))], rows)


def a_whole(view: report.View) -> Result:
    return view.result.model_copy(update={"usage": None, "settings": {}})


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


def test_unreadable_replies_are_shown_and_are_in_no_distribution(judged: Callable[..., Path]) -> None:
    folder = judged()
    lines = [json.loads(line) for line in (folder / "verdicts.jsonl").read_text().splitlines()]
    first = next(v for v in lines if v["of"] == "answer")
    with (folder / "verdicts.jsonl").open("a") as file:
        file.write(json.dumps(first | {"score": None, "status": "unreadable", "raw": "I would rather not say"}) + "\n")
    text, rows = page([folder])
    view = report.View.of(Run(folder), read(folder / "scores.json"))
    assert "I would rather not say" in text
    assert first["id"] in {row["id"] for row in view.unreadable(rows)}
    shares = replace(view, verdicts={first["id"]: view.verdicts[first["id"]]})
    assert shares.distribution(rows) == []


def results() -> list[Result]:
    video = a_result("org/video_100%", {t: [8.0, 7.0] for t in TYPES}, kind="video", prompt="frames")
    return [parse(json.dumps(data).encode(), "x") for data in (a_result("org/a_b"), video)]


def test_latex_has_a_block_for_each_kind_and_the_best_in_bold() -> None:
    text = tables.latex(results())
    assert r"\textit{language-only}" in text and r"\textit{video}" in text
    assert r"org/video\_100\% (frames) & \textbf{93.75}" in text
    assert r"org/a\_b (narrations) & 70.83" in text
    assert text.count(r"\\") == 3 + 2  # head, two blocks, two rows


def test_markdown_escapes_what_would_break_a_table() -> None:
    text = tables.markdown([parse(json.dumps(a_result("a|b <script> `c`")).encode(), "x")])
    assert r"a\|b \<script\> \`c\`" in text
    assert len(text.splitlines()[0].split("|")) == 11


def test_csv_has_every_digit_and_no_formula() -> None:
    (one,) = [parse(json.dumps(a_result("=1+1", {t: [1 / 3 + 3, 2 / 3 + 5] for t in TYPES})).encode(), "x")]
    lines = list(csv.DictReader(io.StringIO(tables.to_csv([one]))))
    assert [line["type"] for line in lines] == [*TYPES, "Avg."]
    assert [float(line["value"]) for line in lines] == [s.value for s in map(one.column, EASG.columns) if s]
    assert lines[0]["model"] == "'=1+1"


def test_a_line_of_the_csv_says_by_itself_what_was_measured() -> None:  # E05 of the public reports
    data = a_result("org/model")
    data["data"]["config"] = "subset"
    asked: list[dict[str, Any]] = [{"protocol": "likelihood"}, {"protocol": "generation"}, {"order": "circular"}]
    asked.append({"settings": {"seed": 7}})
    runs = [parse(json.dumps(data | of_run).encode(), "x") for of_run in asked]
    lines = list(csv.DictReader(io.StringIO(tables.to_csv(runs))))
    assert {(line["benchmark"], line["config"]) for line in lines} == {("easg-bench", "subset")}
    assert list(dict.fromkeys((line["protocol"], line["order"]) for line in lines)) == [
        ("likelihood", ""),
        ("generation", ""),
        ("", "circular"),
        ("", ""),
    ]
    assert len({line["run"] for line in lines}) == 4


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


# -- what does not stand for all of the data ---------------------------------------------------------------------------


def partial(n: int = 3, of: int = 1807, name: str = "org/partial", **changed: Any) -> dict[str, Any]:
    """A result of n clips, answered best, of data with `of` rows."""
    data = a_result(name, {t: [10.0] * n for t in TYPES})
    data["data"] = data["data"] | {"rows": of}
    return data | {"unanswered": of - n * len(TYPES)} | changed


def parsed(*results: dict[str, Any]) -> list[Result]:
    return [parse(json.dumps(one).encode(), "x") for one in results]


def terminal(results: list[Result]) -> str:
    from rich.console import Console

    console = Console(file=io.StringIO(), width=200)
    console.print(tables.table(results))
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_n_of_all_rows_stands_beside_the_average_everywhere() -> None:
    results = parsed(a_result("org/whole"), partial())
    for text in (terminal(results), tables.markdown(results), tables.latex(results)):
        assert "15 of 15" in text and "15 of 1,807" in text
    rows = list(csv.DictReader(io.StringIO(tables.to_csv(results))))
    assert {row["model"]: (row["n_scored"], row["rows"]) for row in rows if row["type"] == "Avg."} == {
        "org/whole": ("15", "15"),
        "org/partial": ("15", "1807"),
    }


def test_a_partial_run_is_marked_and_said_and_never_the_best() -> None:
    whole, lacking = a_result("org/whole"), partial()
    results = parsed(whole, lacking)
    average = f"{lacking['avg']['value']:.2f}"
    assert f"{average}*" in terminal(results)
    assert tables.notes(results) == [
        "* org/partial (narrations) is partial: 15 of 1,807 rows have a score (1,792 rows without an answer)"
    ]
    text = tables.markdown(results)
    assert rf"{average}\*" in text and r"\* org/partial (narrations) is partial: 15 of 1,807 rows" in text
    assert r"\* org/whole" not in text
    text = tables.latex(results)
    assert f"{average}$^{{*}}$" in text and r"$^{*}$ org/partial (narrations) is partial" in text
    assert rf"\textbf{{{whole['avg']['value']:.2f}}}" in text and rf"\textbf{{{average}" not in text
    rows = list(csv.DictReader(io.StringIO(tables.to_csv(results))))
    assert {row["model"]: row["partial"] for row in rows} == {
        "org/whole": "",
        "org/partial": "1,792 rows without an answer",
    }


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"unanswered": 5, "video_errors": 5}, "5 rows without a video that can be read"),
        ({"unanswered": 7, "video_errors": 5}, "5 rows without a video that can be read; 2 rows without an answer"),
        ({"data": {"limit": 15}}, "a limit of 15 rows"),
        ({"data": {"rows": 60}}, "45 rows that were not asked or not rated"),
    ],
)
def test_each_way_to_lack_rows_has_its_reason(changed: dict[str, Any], reason: str) -> None:
    data = a_result()
    of_data = {"rows": 15 + changed.get("unanswered", 0)} | changed.pop("data", {})
    data |= changed | {"data": data["data"] | of_data}
    (one,) = parsed(data)
    assert "; ".join(one.gaps) == reason


def test_a_limit_above_all_rows_lacks_none() -> None:
    data = a_result()
    (one,) = parsed(data | {"data": data["data"] | {"limit": 1_000}})
    assert one.gaps == ()


def test_an_average_over_fewer_types_is_marked() -> None:
    results = parsed(a_result(scores={"before": [9.0, 9.0], "after": [8.0, 9.0]}))
    assert results[0].gaps == ("no scores of purpose, direct, indirect",)
    assert f"{results[0].avg.value:.2f}*" in terminal(results)


def test_two_judges_of_one_run_are_told_apart_everywhere(judged: Callable[..., Path]) -> None:
    first = a_result()
    key = "other True server, score greedy, easg-bench-1a2b3c4d"
    judge = first["judge"] | {"key": key, "model": "org/other", "settings": {"engine": "server", "can_force": True}}
    second = a_result(scorer=key, judge=judge)
    results = parsed(first, second)
    assert tables.labels(results) == [
        "org/model (narrations), judge org/judge",
        "org/model (narrations), judge org/other",
    ]
    text = tables.latex(results)
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 2
    assert "can_force True, engine server" in text and "True server" not in text
    text = tables.markdown(results)
    assert text.count("| Model |") == 2 and "org/judge (dist greedy" in text and "org/other (dist greedy" in text
    assert "cannot be compared" in text


def test_results_that_nothing_tells_apart_are_numbered() -> None:
    assert tables.labels(parsed(a_result(), a_result())) == [
        "org/model (narrations), number 1",
        "org/model (narrations), number 2",
    ]


def test_judges_that_differ_in_what_has_no_name_have_their_keys_hash() -> None:
    keys = [f"judge bfloat16, paper seed {seed}, easg" for seed in (1, 2)]
    results = parsed(*(a_result(scorer=key, judge=a_result()["judge"] | {"key": key}) for key in keys))
    assert len(set(tables.labels(results))) == 2 and "number" not in "".join(tables.labels(results))


def test_the_frames_are_part_of_the_name() -> None:
    (one,) = parsed(a_result(kind="video", prompt="frames", frames="uniform:8"))
    assert one.label == "org/model (frames, uniform:8)"


def test_the_page_says_judge_mass_truth_and_what_is_missing_at_its_head(judged: Callable[..., Path]) -> None:
    folder = judged("org/a")
    path = folder / "scores.json"
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {"data": data["data"] | {"rows": 70}, "unanswered": 10}))
    text = page([folder])[0]
    head = text[: text.index('id="scores"')]
    assert "<b>Judge</b>: org/judge" in head and f"{data['judge']['mass']:.3f}" in head
    assert "It gives the ground truth" in head and f"before {data['calibration']['means']['before']:.2f}" in head
    assert "is partial: 60 of 70 rows have a score (10 rows without an answer)" in head
    assert ">60 of 70</td>" in text


def test_what_needs_no_judge_stands_in_terminal_and_page(judged: Callable[..., Path]) -> None:
    folder = judged("org/a", say=lambda text: "pick cup")
    data = json.loads((folder / "scores.json").read_text())
    (one,) = [read(folder / "scores.json")]
    rows = {name: means for _, name, means in figures.extras_rows([one, one])}
    assert list(rows) == ["exact", "f1", "verb", "relation", "object"]
    by_type = data["extras"]["match_f1"]
    assert rows["f1"] == [by_type[t]["mean"] for t in (*TYPES, "all")]
    assert rows["verb"][TYPES.index("purpose")] is None
    text = page([folder])[0]
    assert "Words in common with the ground truth" in text
    found = Page(text).tables["extras-table"]
    assert [float(v) for v in found[2]] == rows["f1"]


def test_the_page_holds_no_folder_of_this_machine(judged: Callable[..., Path]) -> None:
    folder = judged()
    path = folder / "scores.json"
    data = json.loads(path.read_text()) | {"model": "/home/john smith/private dir/mine"}
    data["judge"]["model"], data["data"]["data"] = "/home/john smith/judges/small", "/home/john smith/private dir/ds"
    data["scorer"] = data["judge"]["key"] = data["judge"]["key"].replace("org/judge", "/home/john smith/judges/small")
    data["command"] = "/opt/secret/bin/easg-bench run --data '/home/john smith/private dir/ds' --judge org/j"
    path.write_text(json.dumps(data))
    lines = [json.loads(line) for line in (folder / "verdicts.jsonl").read_text().splitlines()]
    with (folder / "verdicts.jsonl").open("a") as file:
        for line in lines:
            failed = {"score": None, "status": "judge_error", "raw": "no file /home/john smith/x/y"}
            file.write(json.dumps(line | failed | {"judge": data["scorer"]}) + "\n")
    run = Run(folder)
    text = report.html([report.View.of(run, read(path))], list(easg_bench.load(run.config["data"])))
    for word in ("/home", "john", "smith", "private", "secret", str(folder.parent)):
        assert word not in text, word
    assert "<title>EASG-Bench: mine (blind)</title>" in text


def test_a_page_with_half_a_surrogate_pair_is_utf_8(
    judged: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = judged(say=lambda text: "a \udca9 cup")
    monkeypatch.setattr("sys.argv", ["easg-bench", "report", str(folder), "--html", str(tmp_path / "r.html")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert "a ? cup" in (tmp_path / "r.html").read_bytes().decode()


def test_a_partial_run_is_submitted_only_on_request(
    judged: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, board = judged(), tmp_path / "board"
    board.mkdir()
    path = folder / "scores.json"
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {"data": data["data"] | {"limit": data["data"]["rows"]}}))
    for extra, code in (([], 2), (["--partial"], 0)):
        monkeypatch.setattr("sys.argv", ["easg-bench", "submit", str(folder), "--to", str(board), *extra])
        with pytest.raises(SystemExit) as ended:
            main()
        assert (ended.value.code or 0) == code
        assert len(list(board.rglob("scores.json"))) == (not code)
    assert "is partial: 60 of 60 rows have a score (a limit of 60 rows)" in capsys.readouterr().err


def test_the_figures_of_a_track_with_one_type_are_a_column_a_run_also_where_two_have_one_label() -> None:
    rows: list[tuple[str, str, list[float | None]]] = [
        ("a", "chance", [0.2, 0.2]),
        ("a", "mass", [0.9, 0.9]),
        ("a", "chance", [0.25, 0.25]),
        ("b", "chance", [0.2, 0.2]),
        ("b", "mass", [None, None]),
    ]
    assert figures.one_type_extras(rows) == [
        ("a", {"chance": 0.2, "mass": 0.9}),
        ("a", {"chance": 0.25}),
        ("b", {"chance": 0.2}),
    ]
