"""Every number, name and count arrives where it is printed or kept: what mutants of the code once survived."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import easg_bench
from tests.test_judge_check import OURS, ROWS, probes
from tests.test_results import lighteval, text
from tests.test_results import result as a_result
from videoqa import judge_check, rating, report, results, tables
from videoqa.answering import answer_rows
from videoqa.benchmarks.easg import EASG
from videoqa.benchmarks.easg.published import TYPES
from videoqa.files import write_json
from videoqa.hosts.lighteval import families
from videoqa.hosts.lighteval.results import from_lighteval
from videoqa.judge import Judge
from videoqa.measures import ACCURACY
from videoqa.reply import Verdict
from videoqa.results import MAX_BYTES, Result, parse, read
from videoqa.runs import Run, judge_rows, merge_runs, opened_data, rows_of
from videoqa.scores import Calibration, Scored

Make = Callable[..., Path]


# -- where data come from ---------------------------------------------------------------------------------------------


def test_without_data_a_run_asks_the_data_set_of_this_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert opened_data(None, None) == (EASG, "easg-bench")
    assert easg_bench.REPO == "easg-bench"
    (tmp_path / "easg-bench").mkdir()
    assert opened_data(None, None) == (EASG, str(tmp_path / "easg-bench")), "a folder beside you comes first"
    assert opened_data("easg-bench", "somebody/easg-bench") == (EASG, "somebody/easg-bench")


# -- lighteval's results ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "prompt", "kind"),
    [
        ("easg_bench", "blind", "language-only"),
        ("easg_bench_narrations", "narrations", "language-only"),
        ("easg_bench_frames", "frames", "video"),
        ("easg_bench_two_stage", "two-stage", "two-stage"),
    ],
)
def test_each_family_of_lighteval_tasks_is_read_as_its_own_way_of_asking(family: str, prompt: str, kind: str) -> None:
    data = lighteval()
    data["results"] = {
        name.replace("easg_bench_narrations", family): figures for name, figures in data["results"].items()
    }
    (one,) = from_lighteval(text(data), "results_2026-11-29T23-21-28.json")
    assert (one.prompt, one.kind, one.track) == (prompt, kind, "easg-bench")


def test_all_families_of_tasks_are_tried_above() -> None:
    easg = {family for family, (track, _) in families().items() if track is EASG}
    assert easg == {"easg_bench", "easg_bench_narrations", "easg_bench_frames", "easg_bench_two_stage"}


def test_every_figure_of_lighteval_stands_in_its_own_field() -> None:
    figures = {"easg_n": 9.0, "easg_unreadable": 4.0, "easg_empty": 3.0, "easg_judge_errors": 2.0}
    figures |= {"easg_relative": 50.0, "easg_score": 4.0, "easg_low": 41.0, "easg_high": 59.0}
    (one,) = from_lighteval(text(lighteval(**figures)), "results_x.json")
    before = one.types["before"]
    assert (before.n, before.n_scored, before.unreadable, before.empty, before.errors) == (9, 5, 4, 3, 2)
    assert (before.value, before.mean, before.interval, before.standard_error) == (50, 4, (41, 59), None)
    assert one.calibration is not None
    assert one.calibration.means == pytest.approx({"before": 8.0, "after": 8.0})
    assert (one.avg.n, one.avg.unreadable, one.avg.errors, one.data.limit) == (14, 5, 3, 5)
    assert one.avg.mean == pytest.approx((4.0 + 4.8) / 2)


def test_a_lighteval_type_without_a_score_is_missing_and_takes_the_interval_with_it() -> None:
    nothing = dict.fromkeys(["easg_relative", "easg_score", "easg_low", "easg_high"], math.nan)
    data = lighteval(easg_n=3.0, easg_unreadable=3.0, **nothing)
    (one,) = from_lighteval(text(data), "results_x.json")
    assert (one.types["before"].value, one.types["before"].interval) == (None, None)
    assert "before" in one.types_missing
    assert one.avg.value == 60.0, "of what was read"


def test_data_of_two_repos_have_no_name() -> None:
    data = lighteval()
    data["config_tasks"]["easg_bench_narrations:after"] = {"hf_repo": "another/repo"}
    (one,) = from_lighteval(text(data), "results_x.json")
    assert (one.data.data, one.data.revision, one.date) == ("not recorded", "not recorded", "1970-01-01T00:00:00")


# -- result files -----------------------------------------------------------------------------------------------------


def test_a_result_of_format_1_keeps_what_it_said_of_located_steps() -> None:
    old = json.loads(text(a_result()))
    for summary in (*old["types"].values(), old["avg"]):
        summary["relative"] = summary.pop("value")
    for key in ("track", "measure", "scorer"):
        del old[key]
    old |= {"format": 1, "located": {"before": {"n": 4, "read": 3, "hit_rate": 0.5, "iou": 0.25}}}
    one = parse(text(old), "x")
    assert one.extras == {
        "located_read": {"before": {"n": 4, "mean": 0.75}},
        "located_hit": {"before": {"n": 4, "mean": 0.5}},
        "located_iou": {"before": {"n": 4, "mean": 0.25}},
    }
    new = parse(text(a_result()), "x")
    assert (one.types, one.avg, one.track, one.measure, one.scorer) == (
        new.types,
        new.avg,
        "easg-bench",
        "relative",
        new.scorer,
    )
    for broken in ({"before": {"n": 0, "read": 0, "hit_rate": 0, "iou": 0}}, {"before": 3}, [3]):
        with pytest.raises(ValueError, match="x: extras"):
            parse(text(old | {"located": broken}), "x")


def test_a_value_that_no_truth_divides_is_100_times_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = dataclasses.replace(EASG, measure=ACCURACY)
    monkeypatch.setattr(results, "track", lambda name=None: toy)
    rows = [Scored(f"{at}:{kind}", str(at), kind, float(at % 3 > 0)) for at in range(6) for kind in TYPES]
    made = ACCURACY.compute(rows, None, key="letters", types=TYPES)
    summaries: dict[str, Any] = {
        "types": {name: dataclasses.asdict(one) for name, one in made.by_type.items()},
        "avg": dataclasses.asdict(made.avg),
    }
    data = a_result(measure="accuracy", calibration=None, judge=None, scorer="letters", **summaries)
    assert parse(text(data), "x").avg.value == pytest.approx(200 / 3)
    data["types"]["before"]["value"] = 33.0
    with pytest.raises(ValueError, match=r"types\.before\.value is 33\.0, but 100 x mean is 66"):
        parse(text(data), "x")


def test_a_file_of_the_largest_size_is_read_and_one_byte_more_is_not() -> None:
    whole = text(a_result())
    assert parse(whole.ljust(MAX_BYTES), "x")
    with pytest.raises(ValueError, match="1,000,001 bytes; a result file has at most 1,000,000"):
        parse(whole.ljust(MAX_BYTES + 1), "x")


# -- tables and pages -------------------------------------------------------------------------------------------------


def numbered() -> Result:
    """A result whose every figure is another number."""
    data = a_result(scores={t: [2.0 + at, 9.0 - at, 3.5 + at] for at, t in enumerate(TYPES)})
    for at, summary in enumerate((*data["types"].values(), data["avg"])):
        summary |= {"n": 50 + at, "n_scored": 40 + at, "unreadable": 10, "empty": 5 + at, "errors": 2, "clusters": 30}
        summary |= {"standard_error": 0.51 + at / 100, "mean_interval": [1.5, 9.5], "interval": [20.5 + at, 95.5 + at]}
    data["avg"] |= {"n": 260, "n_scored": 210, "unreadable": 50}
    return parse(text(data), "x")


def cells(table: Any) -> dict[str, list[str]]:
    """A rich table's rows by the name in front."""
    columns = [list(column.cells) for column in table.columns]
    return {str(row[0]).strip(): [str(cell) for cell in row[1:]] for row in zip(*columns, strict=True)}


def test_each_line_of_the_table_says_what_stands_in_front_of_it() -> None:
    one = numbered()
    table = cells(tables.table([one]))
    summaries = [one.column(name) for name in EASG.columns]
    assert [cell.replace(tables.MARK, "") for cell in table[one.label]] == [
        f"{s.value:.2f}\n({s.interval[0]:.1f}-{s.interval[1]:.1f})" for s in summaries if s and s.interval
    ]
    assert table["scored"][:-1] == [str(s.n_scored) for s in summaries[:-1] if s]
    assert table["scored"][-1].startswith(str(one.avg.n_scored))
    assert table["unreadable"] == [str(s.unreadable) for s in summaries if s]
    assert table["empty"] == [str(s.empty) for s in summaries if s]
    assert table["mean"] == [f"{s.mean:.2f}" for s in summaries if s], "and not its standard error"


def test_each_column_of_the_csv_holds_its_own_field() -> None:
    one = numbered()
    for line in csv.DictReader(io.StringIO(tables.to_csv([one]))):
        summary = one.column(line["type"])
        assert summary is not None and summary.interval is not None and summary.mean_interval is not None
        for name in ("n", "n_scored", "unreadable", "empty", "errors", "clusters", "mean", "standard_error", "value"):
            assert float(line[name]) == getattr(summary, name), name
        assert (float(line["mean_low"]), float(line["mean_high"])) == summary.mean_interval
        assert (float(line["value_low"]), float(line["value_high"])) == summary.interval
        assert (line["kind"], line["prompt"], line["data"], line["judge"]) == (
            one.kind,
            one.prompt,
            one.data.revision,
            one.scorer,
        )


def test_a_type_that_is_missing_is_a_dash_in_every_table() -> None:
    one = parse(text(a_result(scores={"before": [4.0, 7.0]})), "x")
    table = cells(tables.table([one]))
    at = EASG.columns.index("purpose")
    assert [table[name][at] for name in (one.label, "scored", "mean")] == ["-", "-", "-"]
    assert " & - & " in tables.latex([one])
    assert "| - |" in tables.markdown([one])


def test_the_zeros_of_the_scripts_reading_are_among_the_unreadable(judged: Make) -> None:
    folder = judged()
    view = report.View.of(Run(folder), read(folder / "scores.json"))
    rows = rows_of(view.run)
    some = {
        rows[0]["id"]: Verdict(0.0, "unreadable"),
        rows[1]["id"]: Verdict(None, "judge_error"),
        rows[2]["id"]: Verdict(3.0, "ok"),
    }
    view = dataclasses.replace(view, verdicts=some)
    assert [row["id"] for row in view.unreadable(rows)] == [rows[0]["id"], rows[1]["id"]]
    assert [row["id"] for row in view.lowest(rows, 5)] == [rows[0]["id"], rows[2]["id"]]


def test_probabilities_stand_beside_the_scores_of_the_results_own_scale(judged: Make) -> None:
    folder = judged()
    one = read(folder / "scores.json")
    assert one.judge is not None
    key_points = one.model_copy(update={"judge": one.judge.model_copy(update={"values": (0.0, 0.3, 0.5, 1.0)})})
    view = report.View.of(Run(folder), key_points)
    shares = (0.1, 0.2, 0.3, 0.4)
    verdict = Verdict(0.6, "ok", probabilities=shares)
    assert view.likelihoods(verdict) == list(zip((0.0, 0.3, 0.5, 1.0), shares, strict=True))
    shorter = Verdict(0.6, "ok", probabilities=shares[:2])
    assert view.likelihoods(shorter) == [(1.0, 0.1), (2.0, 0.2)], "another scale: places"
    three = {name: Verdict(score, "ok") for name, score in (("a", 0.29), ("b", 0.9), ("c", 0.41))}
    bars = dataclasses.replace(view, verdicts=three).distribution([])
    assert {bar.name: bar.share for bar in bars} == pytest.approx({"0": 0, "0.3": 1 / 3, "0.5": 1 / 3, "1": 1 / 3})


# -- the check of judges ----------------------------------------------------------------------------------------------

KEY_POINTS = dataclasses.replace(OURS, name="key-points", values=(0, 0.3, 0.5, 1))


@pytest.mark.parametrize(("rubric", "point"), [(OURS, 1.0), (KEY_POINTS, 1 / 3)])
def test_a_point_is_the_step_between_two_scores_of_the_rubric(rubric: Any, point: float) -> None:
    asked = probes(ROWS, ROWS, rubric)
    low, high = rubric.values[0], rubric.values[-1]

    def verdict(kind: str) -> Verdict:
        """A judge that takes `ignore` for a little better, and a paraphrase for a little worse."""
        lifted, lost = low + 1.02 * point, high - 1.02 * point
        return Verdict({"truth": high, "paraphrase": lost, "ignore": lifted}.get(kind, low), "ok")

    class Named:
        key = "judge"

        def __init__(self) -> None:
            self.rubric = rubric

    found = judge_check.report(Named(), asked, [verdict(probe.kind) for probe in asked])  # type: ignore[arg-type]
    assert found.point == pytest.approx(point)
    assert f"loses {1.02 * point:.2f} points, at most {point:g} is allowed" in " ".join(found.reasons)
    assert found.kinds["ignore"].gain == pytest.approx(1.02 * point)
    assert found.kinds["ignore"].success == (1.0 if 1.02 * point >= (high - low) / 2 else 0.0)


# -- runs and verdicts ------------------------------------------------------------------------------------------------


def test_what_a_scorer_sees_of_a_row_is_all_of_it() -> None:
    row: dict[str, Any] = {"id": "1", "clip": "c", "type": "before", "question": "Q?", "answer": "A", "context": "seen"}
    row |= {"choices": ["cup", "jug"], "gold": 1}
    item = rating.item_of(row, "the jug")
    assert (item.question, item.answer, item.prediction, item.context) == ("Q?", "A", "the jug", "seen")
    assert (item.choices, item.gold) == (("cup", "jug"), 1)
    (one,) = rating.scored([row], {"1": Verdict(1.0, "ok", choice=0), "2": Verdict(0.0, "ok")})
    assert (one.id, one.clip, one.type, one.score, one.status, one.choice) == ("1", "c", "before", 1, "ok", "cup")
    (none,) = rating.scored([row], {"1": Verdict(0.0, "unreadable")})
    assert (none.choice, none.status) == ("", "unreadable")


def test_only_a_measure_that_divides_by_the_truth_has_a_calibration() -> None:
    texts = {"type": "before", "question": "Q?", "answer": "A", "context": ""}
    rows: list[Any] = [{"id": str(at), "clip": str(at), **texts} for at in range(3)]
    truths = {str(at): Verdict(6.0 + at, "ok") for at in range(3)}
    scale = rating.calibration(EASG, "judge", rows, truths)
    assert scale is not None
    assert (scale.means, len(scale.rows), scale.key.startswith("judge, data ")) == ({"before": 7.0}, 3, True)
    given = {str(at): Verdict(float(at), "ok") for at in range(3)}
    scores, used = rating.summarize(EASG, "judge", rows, given, truths)
    assert used == scale
    assert scores.avg.value == pytest.approx(100 / 7)
    letters = dataclasses.replace(EASG, measure=ACCURACY)
    assert rating.calibration(letters, "judge", rows, truths) is None
    scores, used = rating.summarize(letters, "judge", rows, given, truths)
    assert (used, scores.avg.value) == (None, 100)


@pytest.mark.parametrize(
    ("field", "value"), [("located", 3), ("prediction", 3), ("error", ["x"]), ("id", 1)], ids=lambda one: str(one)
)
def test_an_answer_line_of_another_kind_is_an_error_with_its_line(judged: Make, field: str, value: Any) -> None:
    folder = judged()
    with (folder / "answers.jsonl").open("a") as file:
        file.write(json.dumps({"id": "x", "prediction": "a", "error": None, field: value}) + "\n")
    with pytest.raises(ValueError, match=rf"answers\.jsonl, line \d+: {field} cannot be"):
        Run(folder).answers()


@pytest.mark.parametrize(
    ("field", "value"), [("config", 3), ("limit", "ten"), ("shard", 1), ("rows", None), ("data", 1)]
)
def test_a_runs_config_of_another_kind_is_refused_with_the_field(judged: Make, field: str, value: Any) -> None:
    folder = judged()
    write_json(folder / "config.json", json.loads((folder / "config.json").read_text()) | {field: value})
    with pytest.raises(ValueError, match=f"{field} cannot be {value!r}"):
        Run(folder)


def test_a_run_of_a_prompt_that_the_track_does_not_have_counts_as_its_first_kind(judged: Make) -> None:
    folder = judged()
    for prompt, kind in (("imported", EASG.kinds[0]), ("frames", "video")):
        write_json(folder / "config.json", json.loads((folder / "config.json").read_text()) | {"prompt": prompt})
        run = Run(folder)
        one = read(folder / "scores.json")
        from videoqa.runs import result

        assert one.judge is not None
        made = result(run, list(easg_bench.load(run.config["data"])), one.judge.model_dump(exclude={"mass"}))
        assert (made["kind"], made["prompt"]) == (kind, prompt)


def test_shards_are_there_once_however_often_they_are_merged_and_only_when_they_are_whole(
    judged: Make, tmp_path: Path
) -> None:
    folder = judged()
    config = json.loads((folder / "config.json").read_text())
    lines = [json.loads(line) for line in (folder / "answers.jsonl").read_text().splitlines()]
    shards = []
    for at in (1, 2):
        shard = Run(tmp_path / f"shard {at}", config | {"shard": f"{at}/2"})
        ids = {row["id"] for row in rows_of(shard)}
        *first, last = (line for line in lines if line["id"] in ids)
        for line in first:
            shard.answers_file.append(line)
        shards.append(shard)
        if at == 2:
            with pytest.raises(ValueError, match=r"shard 2: 1 of its \d+ rows have not been asked yet"):
                merge_runs(shards, tmp_path / "all")
            assert not (tmp_path / "all").exists()
        shard.answers_file.append(last)
    merged = merge_runs(shards, tmp_path / "all")
    assert merged.config["shard"] is None
    assert sorted(line["id"] for line in merge_runs(shards, tmp_path / "all").answers_file.read()) == sorted(
        line["id"] for line in lines
    )
    with pytest.raises(ValueError, match="all shards of one run are needed, each once; these are 1/2"):
        merge_runs(shards[:1], tmp_path / "one")


def test_an_answer_that_changed_is_rated_again_and_an_equal_one_is_not(judged: Make) -> None:
    from tests.scripted import Scripted

    folder = judged()
    run = Run(folder)
    rows = rows_of(run)
    judge = Judge(
        Scripted(lambda *_: "x", chances=lambda text: {"4": 1.0}, can_force=True, name="org/judge"), OURS, "dist"
    )
    said = {name: line["prediction"] for name, line in run.answers().items()}
    assert not list(judge_rows(judge, rows, said, run, None))
    changed = said | {rows[0]["id"]: "something else", rows[1]["id"]: None}
    again = {name for name, _ in judge_rows(judge, rows, changed, run, None)}
    assert again == {rows[0]["id"], rows[1]["id"]}
    assert not list(judge_rows(judge, rows, changed, run, None)), "None and what it was rated as are one"
    assert not list(answer_rows(Scripted(lambda *_: "x", name="org/model"), rows, run))


def test_a_calibration_without_rows_has_no_uncertainty_of_its_own() -> None:
    from videoqa.scores import summarize

    rows = [Scored(str(at), str(at), "before", float(at % 4 + 3)) for at in range(12)]
    scale = Calibration("judge", {"before": 5.0})
    one = summarize(rows, scale, key="judge", types=TYPES).by_type["before"]
    assert one.interval is not None and one.mean_interval is not None
    assert one.interval == pytest.approx([100 * end / 5 for end in one.mean_interval])


# -- more of the same kinds -------------------------------------------------------------------------------------------


def test_lightevals_error_bar_is_half_the_interval_in_its_own_unit() -> None:
    pytest.importorskip("lighteval")
    from videoqa.hosts.lighteval.tasks import figures

    records = [
        {"id": str(at), "clip": str(at), "type": "before", "score": 3.0 + at % 4, "status": "ok"}
        | {"truth_score": 8.0, "truth_status": "ok"}
        for at in range(12)
    ]
    found = figures(records, EASG)
    assert found["easg_low"] < found["easg_relative"] < found["easg_high"]
    assert found["easg_relative_stderr"] == pytest.approx((found["easg_high"] - found["easg_low"]) / 2 / 1.96, rel=1e-4)
    assert found["easg_score"] == pytest.approx(4.5)
    assert found["easg_relative"] == pytest.approx(100 * 4.5 / 8)
    few = figures(records[:3], EASG)
    assert math.isnan(few["easg_low"]) and math.isnan(few["easg_relative_stderr"]), "no interval, no error bar"


def test_in_latex_each_run_stands_below_its_own_kind() -> None:
    kinds = [
        ("org/a", "language-only", "narrations"),
        ("org/b", "video", "frames"),
        ("org/c", "language-only", "blind"),
    ]
    every = [parse(text(a_result(name, kind=kind, prompt=prompt)), "x") for name, kind, prompt in kinds]
    lines = [line for line in tables.latex(every).splitlines() if not line.startswith("%")]
    assert lines[0].startswith(r"\begin{tabular}{lcccccc")
    starts = [line.split(" (")[0] for line in lines if line.startswith(("org", r"\multicolumn"))]
    assert [start.split("textit")[-1] for start in starts] == [
        r"{language-only}} \\",
        "org/a",
        "org/c",
        r"{video}} \\",
        "org/b",
    ]


def a_report(**changed: Any) -> judge_check.Report:
    """A report of a judge that is fit."""
    kinds = {
        kind: judge_check.KindResult(n=10, scored=10, mean=9.0, mean_most_likely=None, auc=1.0, auc_most_likely=None)
        for kind in ("truth", "paraphrase", "long", "empty")
    }
    fit: dict[str, Any] = {"judge": "j", "rows": 10, "calls": 100, "kinds": kinds, "auc": 1.0, "auc_most_likely": None}
    fit |= {"attack_success": None, "unreadable": 0.0, "errors": 0, "mass": None, "seed_agreement": None}
    return judge_check.Report(**fit | {"seed_difference": None, "point": 1.0} | changed)


@pytest.mark.parametrize(
    ("field", "limit", "beyond", "reason"),
    [
        ("auc", judge_check.MIN_AUC, 0.89, "hardly tells right from wrong"),
        ("unreadable", judge_check.MAX_UNREADABLE, 0.021, "cannot be read"),
        ("mass", judge_check.MIN_MASS, 0.89, "have a probability of 0.89"),
        ("seed_difference", judge_check.MAX_SEED_DIFFERENCE, 1.01, "two seeds differ by 1.01"),
    ],
)
def test_a_judge_at_a_limit_is_fit_and_one_beyond_it_is_not(
    field: str, limit: float, beyond: float, reason: str
) -> None:
    assert a_report(**{field: limit}).reasons == []
    (reason_given,) = a_report(**{field: beyond}).reasons
    assert reason in reason_given
    assert a_report(**{field: beyond}).as_dict()["fit"] is False


def test_a_paraphrase_may_lose_a_point_and_no_more() -> None:
    def losing(points: float) -> list[str]:
        kinds = dict(a_report().kinds)
        kinds["paraphrase"] = dataclasses.replace(kinds["paraphrase"], mean=9.0 - points)
        return a_report(kinds=kinds).reasons

    assert losing(1.0) == []
    assert "loses 1.01 points" in losing(1.01)[0]


def test_the_file_of_a_check_says_its_limits_and_the_table_its_figures() -> None:
    made = a_report().as_dict()
    assert made["limits"] == {
        "min_auc": 0.9,
        "max_attack_success": 0.1,
        "max_paraphrase_loss": 1.0,
        "max_unreadable": 0.02,
        "min_mass": 0.9,
        "max_seed_difference": 1.0,
        "max_off": 0.5,
    }
    assert (made["fit"], made["reasons"]) == (True, [])
    kinds = {"long": judge_check.KindResult(10, 8, 2.5, 3.5, 0.75, 0.65, 0.45, 0.4)}
    table = cells(judge_check.table(a_report(kinds=kinds)))
    assert table[judge_check.KINDS["long"]] == ["10", "8", "2.50", "3.50", "0.75", "0.65", "0.45", "40%"]


def test_a_truth_has_no_auc_over_itself_and_every_other_kind_has_one() -> None:
    class Named:
        key, rubric = "judge", OURS

    asked = probes(ROWS, ROWS, OURS)
    verdicts = [Verdict(9.0 if p.kind in ("truth", "paraphrase") else 2.0, "ok", most_likely=2.0) for p in asked]
    kinds = judge_check.report(Named(), asked, verdicts).kinds  # type: ignore[arg-type]
    assert (kinds["truth"].auc, kinds["truth"].auc_most_likely) == (None, None)
    assert (kinds["long"].auc, kinds["long"].auc_most_likely, kinds["paraphrase"].auc) == (1.0, 0.5, 0.5)


def test_a_stored_verdict_of_another_kind_is_an_error_with_its_line(tmp_path: Path) -> None:
    from videoqa.store import VerdictStore

    store = VerdictStore(tmp_path, "judge")
    store.put("p", Verdict(3.0, "ok", most_likely=3.0, mass=0.9, probabilities=(0.5, 0.5)))
    (path,) = tmp_path.iterdir()
    assert VerdictStore(tmp_path, "judge").get("p") == Verdict(3.0, "ok", "", "", 3.0, 0.9, (0.5, 0.5))
    good = path.read_text()
    for field in ("score", "most_likely", "mass", "status", "raw", "explanation", "probabilities", "prompt"):
        path.write_text(good + json.dumps({"prompt": "q", "score": 1.0, "status": "ok", field: {}}) + "\n")
        with pytest.raises(ValueError, match=f"line 3: {field} cannot be"):
            VerdictStore(tmp_path, "judge")
