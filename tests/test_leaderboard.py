"""space/: groups, ranks, significance, bad results, uploads, and results that come and go. Without a browser."""

from __future__ import annotations

import io
import json
import re
import shutil
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
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
from videoqa import answers_file, submit
from videoqa.benchmarks.easg import EASG
from videoqa.benchmarks.easg.published import TYPES
from videoqa.results import parse

pytest.importorskip("gradio", reason="the extra `space` is not installed")
charts = pytest.importorskip("charts")
columns = pytest.importorskip("columns")
leaderboard = pytest.importorskip("leaderboard")
questions = pytest.importorskip("questions")
views = pytest.importorskip("views")


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


def judged_by(key: str, model: str, score: float, times: int = 1) -> dict[str, Any]:
    """A result of three rows of each type, or that many times more."""
    data = a_result(model, {t: [score, score + 1, score - 1] * times for t in TYPES})
    return data | {"scorer": key, "judge": data["judge"] | {"key": key}}


def test_results_of_two_judges_are_never_in_one_ranking(board: Path) -> None:
    for key, model, score in (("a", "x", 5.0), ("a", "y", 7.0), ("b", "x", 9.0)):
        put(board, judged_by(key, model, score))
    groups = leaderboard.load(board).groups()
    assert [[e.result.name for e in group.entries] for group in groups.values()] == [["y", "x"], ["x"]]
    assert [(line.rank, line.entry.result.name) for line in leaderboard.lines(next(iter(groups.values())))] == [
        (1, "y"),
        (2, "x"),
    ]


def test_other_questions_are_another_group(board: Path) -> None:
    one, other = a_result("x"), a_result("y")
    other["data"] |= {"revision": "another"}
    put(board, one)
    put(board, other)
    assert len(leaderboard.load(board).groups()) == 2


def test_filters_keep_the_ranks_of_the_whole_group(board: Path) -> None:
    for model, score, kind in (("one", 9.0, "video"), ("two", 8.0, "language-only"), ("three", 7.0, "video")):
        put(board, judged_by("j", model, score) | {"kind": kind})
    (group,) = leaderboard.load(board).groups().values()

    def ranks(**filters: Any) -> list[int | None]:
        return [line.rank for line in leaderboard.lines(group, **filters)]

    assert ranks(search="T") == [2, 3] and ranks(kinds=["video"]) == [1, 3]
    assert ranks(prompts=["blind"]) == ranks(search="nothing like it") == []


def test_a_cell_shows_the_score_over_its_interval_and_sorts_by_all_digits(board: Path) -> None:
    put(board, judged_by("j", "m", 17 / 3, times=5))
    (group,) = leaderboard.load(board).groups().values()
    avg = group.best.result.avg
    cell = next(c for c in columns.board_columns(group.track) if c.name == "Avg.").cell(leaderboard.lines(group)[0])
    assert f'data-by="{avg.value!r}"' in cell
    assert f">{avg.value:.1f}</span><small>{avg.interval[0]:.1f}–{avg.interval[1]:.1f}</small>" in cell


def test_the_columns_of_a_leaderboard_are_the_tracks_types_after_what_matters_most(board: Path) -> None:
    put(board, judged_by("j", "m", 8.0))
    (group,) = leaderboard.load(board).groups().values()
    shown = columns.board(group, leaderboard.lines(group))
    heads = re.findall(r"<button>(.*?)</button>", shown)
    assert heads == ["#", "Model", "Avg.", "n of N", "Prompt", "Against the best", *TYPES, "Date"]
    assert shown.count("<td ") == len(heads), "what no row has a value of is left out: Unreadable"


def test_repeats_tokens_and_seconds_have_a_column_where_a_result_has_them(board: Path) -> None:
    usage = {"rows": 4, "prompt_tokens": 4_000, "new_tokens": 80, "seconds": 10.0}
    extras = {"repeat_mean": {"all": {"n": 2.0, "mean": 80.0}}, "repeat_se": {"all": {"n": 2.0, "mean": 0.5}}}
    put(board, judged_by("j", "m", 8.0) | {"usage": usage, "settings": {"repeats": 2}, "extras": extras})
    (group,) = leaderboard.load(board).groups().values()
    shown = columns.board(group, leaderboard.lines(group))
    heads = re.findall(r"<button>(.*?)</button>", shown)
    cells = dict(zip(heads, re.findall(r"<td .*?</td>", shown), strict=True))
    assert ">2</span><small>± 0.50</small>" in cells["Repeats"]
    assert ">1,020</span><small>4,000 + 80</small>" in cells["Tokens each"]
    assert ">2.50</span><small>10 s in all</small>" in cells["Seconds each"]


def test_figures_that_need_no_judge_have_a_column_where_a_result_has_them(board: Path) -> None:
    put(board, judged_by("j", "m", 8.0) | {"extras": {"match_verb": {"all": {"n": 9, "mean": 0.25}}}})
    (group,) = leaderboard.load(board).groups().values()
    shown = columns.board(group, leaderboard.lines(group))
    assert "<button>match verb</button>" in shown and 'data-by="0.25"' in shown


def test_without_answers_intervals_decide_and_it_is_said(board: Path) -> None:
    for model, score in (("best", 9.0), ("near", 8.8), ("far", 2.0)):
        put(board, judged_by("j", model, score, times=5))
    (group,) = leaderboard.load(board).groups().values()
    assert [line.standing for line in leaderboard.lines(group)] == [
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
    (group,) = leaderboard.load(board).groups().values()
    assert [e.result.name for e in group.entries] == ["org/good", "org/bad"]
    assert leaderboard.lines(group)[1].standing.startswith("lower (paired, p = 0.0")


def test_equal_runs_are_like_the_best_however_many_there_are(board: Path, judged: Callable[..., Path]) -> None:
    """Each is compared with the luckiest, so the p-values are those of all pairs."""
    for number in range(4):

        def rate(text: str, number: int = number) -> dict[str, float]:
            return {str(4 + (len(text) * 7 + number * 3) % 5): 0.9}

        text, answers = bundle(judged(f"org/{number}", rate=rate))
        put(board, json.loads(text), answers)
    (group,) = leaderboard.load(board).groups().values()
    assert [line.standing.split(" (")[0] for line in leaderboard.lines(group)] == ["best", *["like the best"] * 3]


def test_of_one_model_the_newest_result_is_shown(board: Path) -> None:
    put(board, a_result(date="2025-01-01T00:00:00+00:00"))
    put(board, a_result(date="2025-02-01T00:00:00+00:00"))
    found = leaderboard.load(board)
    assert [e.result.date[:7] for e in found.entries] == ["2025-02"] and found.replaced == 1


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("2025-01-01T12:00:00Z", "2025-01-01T11:00:00-08:00"),
        ("2025-01-01T23:00:00+09:00", "2025-01-01T15:00:00"),
    ],
)
def test_which_result_is_newer_is_a_question_of_utc(board: Path, older: str, newer: str) -> None:
    for date in (older, newer):
        put(board, a_result(date=date))
    assert [e.result.date for e in leaderboard.load(board).entries] == [newer]


@pytest.mark.parametrize("date", ["9999-99-99T99:99", "9998-12-31T00:00:00+00:00"])
def test_a_date_that_cannot_be_does_not_stay_the_newest(board: Path, date: str) -> None:
    put(board, a_result())
    put(board, a_result(date=date))
    found = leaderboard.load(board)
    assert len(found.entries) == 1 and found.replaced == 0
    assert re.fullmatch(r"results/m/\w+/scores\.json: date is .*(no date|in the future).*", found.refused[0])


# -- partial runs and judges ------------------------------------------------------------------------------------------


def partly(data: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """A result with fields of its data, or of itself, replaced."""
    of_data = {k: v for k, v in changed.items() if k in data["data"]}
    return data | {"data": data["data"] | of_data} | {k: v for k, v in changed.items() if k not in of_data}


def test_thirty_best_answers_of_many_are_not_the_best_run(board: Path) -> None:
    whole, part = judged_by("j", "whole", 5.0), judged_by("j", "part", 9.0)
    put(board, partly(whole, rows=15))
    put(board, partly(part, rows=15, unanswered=12))
    (group,) = leaderboard.load(board).groups().values()
    first, second = leaderboard.lines(group)
    assert (first.entry.result.name, first.rank, first.standing, first.badges) == ("whole", 1, "best", ())
    assert (second.entry.result.name, second.rank, second.standing) == ("part", None, "not ranked")
    assert second.badges == (("partial", "12 rows without an answer"),)


@pytest.mark.parametrize("sort", ["fewer rows", "types missing", "limit", "unanswered"])
def test_a_partial_run_is_not_ranked_even_alone(board: Path, sort: str) -> None:
    data = judged_by("j", "m", 9.0)
    if sort == "types missing":
        data = a_result("m", {t: [9.0, 8.0] for t in TYPES[:3]})
    changes = {"fewer rows": {"rows": 1807}, "limit": {"limit": 15}, "unanswered": {"unanswered": 1}}
    put(board, partly(data, **changes.get(sort, {})))
    (group,) = leaderboard.load(board).groups().values()
    (line,) = leaderboard.lines(group)
    assert group.best is None and line.rank is None and line.badges[0][0] == "partial"
    if sort == "fewer rows":
        assert ">15</span><small>of 1,807</small>" in columns.board(group, [line])


def test_fewer_rows_than_the_largest_run_of_the_group_is_partial(board: Path) -> None:
    put(board, a_result("small", {t: [9.0, 9.0] for t in TYPES}))
    put(board, a_result("large"))
    (group,) = leaderboard.load(board).groups().values()
    assert [e.result.name for e in group.whole] == ["large"] and [e.result.name for e in group.partial] == ["small"]


def test_how_many_questions_there_are_is_the_datas_to_say(board: Path) -> None:
    """A result that claims more questions than its revision has makes no partial runs of the others."""
    put(board, a_result("honest"))
    put(board, partly(a_result("boaster"), rows=5_000))
    (group,) = leaderboard.load(board).groups(sizes={"0a1b2c3d4e5f": 15}).values()
    assert "honest" in [e.result.name for e in group.whole]


def test_a_limit_that_took_nothing_away_is_no_partial_run(board: Path) -> None:
    put(board, partly(a_result("a"), limit=100))
    put(board, a_result("b"))
    (group,) = leaderboard.load(board).groups().values()
    assert len(group.whole) == 2 and not group.partial


def test_a_partial_run_does_not_replace_an_older_whole_one(board: Path) -> None:
    put(board, a_result(date="2025-01-01T00:00:00+00:00"))
    put(board, partly(a_result(date="2025-02-01T00:00:00+00:00"), unanswered=3))
    found = leaderboard.load(board)
    assert [e.result.date[:7] for e in found.entries] == ["2025-01"] and found.replaced == 1


def test_a_partial_run_is_no_kinds_best_in_the_charts(board: Path) -> None:
    put(board, judged_by("j", "blind one", 5.0))
    put(board, judged_by("j", "whole", 6.0) | {"kind": "video"})
    put(board, partly(judged_by("j", "part", 9.0), unanswered=1) | {"kind": "video"})
    (group,) = leaderboard.load(board).groups().values()
    figure = charts.best_of_kinds(charts.group_series(group), group.track)
    named = {name for trace in figure.data for name in trace.customdata}
    assert named == {"blind one (narrations)", "whole (narrations)"}


def test_one_kind_is_no_comparison_of_kinds(board: Path) -> None:
    put(board, judged_by("j", "only", 5.0))
    (group,) = leaderboard.load(board).groups().values()
    assert charts.best_of_kinds(charts.group_series(group), group.track) is None


@pytest.mark.parametrize(("mass", "word"), [(0.02, "judge?"), (0.97, None), (None, None)])
def test_a_judge_without_mass_on_the_scores_is_marked(board: Path, mass: float | None, word: str | None) -> None:
    data = judged_by("j", "m", 5.0)
    put(board, data | {"judge": data["judge"] | {"mass": mass}})
    (group,) = leaderboard.load(board).groups().values()
    (line,) = leaderboard.lines(group)
    assert [badge for badge, _ in line.badges] == ([word] if word else [])
    assert line.rank == 1, "a doubt about the judge is said, and takes no rank away"


def test_many_unreadable_verdicts_are_marked(board: Path) -> None:
    data = judged_by("j", "m", 5.0)
    first = data["types"]["before"]
    first |= {"n_scored": 2, "unreadable": 1, "clusters": 2}
    data["avg"] |= {"n_scored": 14, "unreadable": 1}
    put(board, data)
    (group,) = leaderboard.load(board).groups().values()
    (line,) = leaderboard.lines(group)
    assert line.badges == (("judge?", "7% of the verdicts could not be read"),) and line.n == 14 and line.rank == 1


def test_a_judge_that_judge_check_calls_unfit_is_marked(board: Path) -> None:
    date = "2026-12-01T10:00:00+00:00"
    for model, reasons in (("good", []), ("bad", ["it hardly tells right from wrong"])):
        data = judged_by("j", model, 5.0)
        data["judge"]["check"] = {"fit": not reasons, "reasons": reasons, "rows": 30, "date": date}
        put(board, data)
    (group,) = leaderboard.load(board).groups().values()
    badges = {line.entry.result.model: line.badges for line in leaderboard.lines(group)}
    said = "judge-check says of the judge: NOT fit (30 questions, 2026-12-01): it hardly tells right from wrong"
    assert badges == {"good": (), "bad": (("judge?", said),)}


def test_published_rows_stand_in_a_table_of_their_own(page: Any) -> None:
    shown = page.start(None)[6]["value"]
    heads = re.findall(r"<button>(.*?)</button>", shown)
    assert heads == ["Model", "Avg.", *TYPES, "Kind", "Asked"] and "rated by the paper&#x27;s judge" in shown
    assert shown.count("<tr>") == 1 + 7 + 1, "the row of Table 3 that stands in Table 2 as well comes once"


def test_published_rows_of_the_subset_and_of_the_full_set_are_never_in_one_table_or_chart() -> None:
    from videoqa.benchmark import track

    ego = track("egoschema")
    full, subset = columns.published(ego).split("<table")[1:]
    assert "33.30" in full and "56.80" not in full and "56.80" in subset and "33.30" not in subset
    assert "arXiv 2312.07395" in subset and "rated by" not in full + subset
    drawn = [[one.scores["Avg."] for one in charts.published_series(ego, config)] for config in ego.sets]
    assert 56.8 not in drawn[0] and drawn[1] == [56.8]


def test_figures_by_letter_are_one_column(board: Path) -> None:
    means = {"always_A": 0.16, "always_B": 0.2, "chance": 0.2}
    extras = {name: {"all": {"n": 100, "mean": mean}} for name, mean in means.items()}
    put(board, judged_by("j", "m", 8.0) | {"extras": extras})
    (line,) = leaderboard.lines(next(iter(leaderboard.load(board).groups().values())))
    chance, always = columns._extras(["chance", "always_A", "always_B", "always_C"])
    assert (chance.name, chance.value(line)) == ("chance", 0.2)
    assert (always.name, always.value(line), always.text(line)) == ("always, %", 0.2, "A 16 B 20")


# -- tracks -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A second track: one number, multiple choice, measured in percent."""
    from dataclasses import replace

    from videoqa import benchmark
    from videoqa.asking import text_way
    from videoqa.benchmark import Published, track, tracks
    from videoqa.measures import Measure

    row = {
        "id": "q1",
        "clip": "c0",
        "video": "v",
        "type": "all",
        "question": "Which <b>tool</b>?",
        "answer": None,
        "choices": ["a saw", "a <i>plane</i>"],
        "gold": 1,
        "context": "",
        "frame": None,
        "start_s": None,
        "end_s": None,
        "clip_start_s": None,
        "evidence": [],
    }
    made = replace(
        track(),
        name="toy",
        title="Toy",
        repo="toy-data",
        types=("all",),
        load=lambda data, config: [row],
        ways={"plain": text_way("text", "Choose.", lambda row: row["question"])},
        way="plain",
        measure=Measure("percent", "Percent right", needs_truth=False),
        published=(Published("random", "text", {}, 20.0),),
        beside=(),
        extras=None,
        first=False,
    )
    every = {**tracks(), "toy": made}
    monkeypatch.setattr(benchmark, "tracks", lambda: every)
    monkeypatch.setattr(views, "tracks", lambda: every)
    return made


def toy_result(model: str = "org/chooser", scores: tuple[float, ...] = (1.0, 0.0, 1.0)) -> dict[str, Any]:
    from dataclasses import asdict

    from videoqa.scores import Scored, summarize

    rows = [Scored(f"q{i}", f"c{i}", "all", s) for i, s in enumerate(scores)]
    summed = summarize(rows, None, key="k", types=("all",))
    same = {"track": "toy", "measure": "percent", "kind": "text", "prompt": "plain", "judge": None}
    return (
        a_result(model)
        | same
        | {
            "calibration": None,
            "types": {"all": asdict(summed.by_type["all"])},
            "avg": asdict(summed.avg),
            "data": {"data": "toy", "config": "default", "limit": None, "revision": "0a1b2c3d4e5f", "rows": len(rows)},
        }
    )


def test_results_of_two_tracks_are_never_in_one_ranking(board: Path, toy: Any) -> None:
    for data in (toy_result(), a_result("org/other")):
        put(board, data | {"scorer": data["scorer"]})
    groups = leaderboard.load(board).groups()
    assert sorted([e.result.track for e in group.entries] for group in groups.values()) == [["easg-bench"], ["toy"]]
    assert len({group.name for group in groups.values()}) == 1, "even where scorer and revision are one"


def test_a_track_of_one_number_has_one_column_and_a_chooser(board: Path, toy: Any) -> None:
    put(board, toy_result())
    put(board, a_result("org/other"))
    page = views.App(leaderboard.Results(str(board), every=3600), "somewhere/toy-data")
    assert page.names() == ["easg-bench", "toy"]
    chooser, group, *_ = page.start("toy")
    assert chooser["visible"] and chooser["value"] == "toy" and len(group["choices"]) == 1
    heads = re.findall(r"<button>(.*?)</button>", page.rank("toy", None, "", [], []))
    assert heads == ["#", "Model", "Avg.", "n of N", "Prompt", "Against the best", "Date"]
    figure = page.types("toy", None)[0]["value"]
    assert [note.text for note in figure.layout.annotations] == ["<b>Avg.</b>"]
    assert "random" in page.start("toy")[6]["value"] and "Gemma" not in page.start("toy")[6]["value"]


def test_the_choices_of_a_question_are_shown_with_the_right_one(board: Path, toy: Any) -> None:
    page = views.App(leaderboard.Results(str(board), every=3600), "somewhere/toy-data")
    assert page.names() == ["toy"] and not page.start(None)[0]["visible"]
    text = page.question("toy", "q1")[0]
    assert '<li dir="auto">a saw</li><li dir="auto" class=gold>a &lt;i&gt;plane&lt;/i&gt; (right)</li>' in text
    assert "None" not in text and "<b>tool" not in text


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
    (tmp_path / "answers.parquet").write_bytes(answers_file.answer_bytes(table))
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
    board = leaderboard.load(Path(views.DEMO))
    assert not board.refused and {e.result.data.revision for e in board.entries} == {now}


# -- uploads ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def page(tmp_path: Path, demo_data: Path) -> Any:
    (tmp_path / "empty").mkdir(exist_ok=True)
    return views.App(leaderboard.Results(str(tmp_path / "empty"), every=3600), str(demo_data))


def upload(page: Any, *files: Path) -> str:
    return page.check([str(path) for path in files])[0]


def test_a_run_folders_files_are_taken_and_shown_as_they_would_appear(page: Any, judged: Callable[..., Path]) -> None:
    folder = judged("/home/me/models/mine")
    said, preview, todo, button, _ = page.check(
        [str(folder / n) for n in ("scores.json", "answers.jsonl", "verdicts.jsonl")]
    )
    assert "holds together" in said and "Its answers give the same numbers" in said
    assert ">mine</span>" in preview["value"] and ">60</span><small>of 60</small>" in preview["value"]
    assert "takes no submissions" in todo and "takes no submissions" in button["value"] and not button["interactive"]


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
        ('{"id": "ID", "judge": "J", "of": "answer", "score": NaN, "status": "ok"}\n', "is nan"),
        ('{"id": "no such", "judge": "J", "of": "answer", "score": 1, "status": "ok"}\n', "is no question"),
        ('{"id": "ID", "judge": "J", "of": "elsewhere", "score": 1, "status": "ok"}\n', "not as a run writes it"),
        ('{"id": "ID", "judge": "J", "of": "answer", "score": 1, "status": "great"}\n', "status 'great'"),
        ('{"id": "ID", "judge": "J", "of": "answer", "score": [1], "status": "ok"}\n', "not as a run writes it"),
        ("[" * 100_000 + "\n\n{}\n", "Refused."),
    ],
)
def test_strange_verdicts_are_refused(page: Any, judged: Callable[..., Path], lines: str, reason: str) -> None:
    folder = judged()
    key = json.loads((folder / "scores.json").read_text())["judge"]["key"]
    known = next(iter(page.questions["easg-bench"].rows))
    (folder / "verdicts.jsonl").write_text(lines.replace('"J"', json.dumps(key)).replace('"ID"', json.dumps(known)))
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
        monkeypatch.setattr(views, "_api", lambda: HfApi(endpoint=hub.url, token="hf_none"))
        results = leaderboard.Results(str(tmp_path / "empty"), every=3600)
        page = views.App(results, str(demo_data), submit_to="org/results")
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
    assert page.question(None, "<script>")[0] == "" and page.question("no track", None)[0] == ""
    assert page.picture(None, "nothing", 3)[1] == ""


def test_texts_of_a_question_are_escaped(page: Any) -> None:
    rows = page.questions["easg-bench"].rows
    row = next(iter(rows.values()))
    rows["evil"] = row | {"id": "evil", "question": "<script>alert(1)</script>", "answer": "<img src=x>"}
    shown = page.question(None, "evil")[0]
    assert "<script" not in shown and "<img" not in shown and "&lt;script&gt;" in shown


def test_hostile_names_are_text_in_every_cell(board: Path) -> None:
    for name in ("<img src=x onerror=alert(1)>", '"><script>alert(1)</script>'):
        put(board, judged_by("j", name, 5.0))
    (group,) = leaderboard.load(board).groups().values()
    shown = columns.board(group, leaderboard.lines(group))
    assert "<img" not in shown and "<script" not in shown and shown.count("&lt;") >= 2


def test_a_frame_has_its_own_shape_and_its_boxes_names_are_text() -> None:
    from PIL import Image

    evidence = [{"object": "<b>jug", "box": [0.1, 0.2, 1.4, 0.9]}]
    shown = charts.picture(Image.new("RGB", (300, 400)), evidence)
    assert 'viewBox="0 0 300 400"' in shown and "&lt;b&gt;jug" in shown and 'width="270.0" height="280.0"' in shown
    assert 'viewBox="0 0 1280 720"' in charts.picture(None, evidence)


# -- bounds -----------------------------------------------------------------------------------------------------------


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts the lines that an upload's reading parses."""
    import upload as upload_module

    from videoqa.files import record_in

    lengths: list[int] = []

    def count(line: bytes) -> Any:
        lengths.append(len(line))
        return record_in(line)

    monkeypatch.setattr(upload_module, "record_in", count)
    return lengths


@pytest.mark.parametrize(
    ("line", "most"), [(b"{}\n", 1), (b'{"id": "ID"}\n', 1_000), (b"\n", 0), (b"[" * 3_000_000, 0)]
)
def test_an_upload_of_endless_lines_ends_early(
    page: Any, judged: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, line: bytes, most: int
) -> None:
    import upload as upload_module

    monkeypatch.setattr(upload_module, "MAX_LINES", 1_000)
    parsed, folder = counted(monkeypatch), judged()
    known = next(iter(page.questions["easg-bench"].rows)).encode()
    line = line.replace(b"ID", known)
    (folder / "answers.jsonl").write_bytes(line * max(1, 3_000_000 // len(line)))
    said = upload(page, *(folder / n for n in ("scores.json", "answers.jsonl", "verdicts.jsonl")))
    assert said.startswith("Refused. answers.jsonl, line ") and len(parsed) == most


def test_no_more_files_than_a_run_has_are_looked_at(page: Any, tmp_path: Path) -> None:
    files = [tmp_path / f"{i}.json" for i in range(50)]
    assert "50 files; a result with its answers has 3" in upload(page, *files)


def test_a_search_looks_for_ten_words_at_most(asked: Any) -> None:
    looked = []

    class Text(str):
        def __contains__(self, word: object) -> bool:
            looked.append(word)
            return True

    asked.find(None, None, "")
    asked._texts = {name: Text() for name in asked._texts}
    assert len(asked.find(None, None, "a " * 100_000)) == len(asked.rows)
    assert len(looked) == 10 * len(asked.rows)


def test_the_axis_of_one_score_does_not_begin_below_zero(board: Path) -> None:
    zero = charts.Series("m", "video", "m", "", {"Avg.": 0.0}, {})
    apart = replace(zero, scores={"Avg.": 40.0}, intervals={"Avg.": (30.0, 50.0)})
    assert charts.by_type([zero], EASG, ("Avg.",)).layout.xaxis.range == (-0.5, 9.5)
    assert charts.by_type([replace(zero, scores={"Avg.": 56.5})], EASG, ("Avg.",)).layout.xaxis.range == (51.5, 61.5)
    assert charts.by_type([zero, apart], EASG, ("Avg.",)).layout.xaxis.range is None
