"""judge-check for the rubric of key points: answers with known scores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.scripted import Scripted
from videoqa.benchmark import track
from videoqa.benchmarks.worldqa.graded import CASES, probes
from videoqa.benchmarks.worldqa.rubrics import KEY_POINTS
from videoqa.commands import command_line

BY_TEXT = {text: kind for case in CASES for kind, text in case.answers().items()}
DEFINED = {"truth": "1", "shortened": "0.5", "added": "0.5", "contradicted": "0.3"}


def graded(text: str) -> dict[str, float]:
    """A judge that knows the answers by heart."""
    said = text.split("The student writes: ", 1)[1].split("\n")[0]
    return {DEFINED.get(BY_TEXT.get(said, ""), "0"): 1.0}


def check(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, engine: Scripted) -> tuple[int, str, dict[str, object]]:
    monkeypatch.setattr("videoqa.engines.open_engine", lambda *_, **__: engine)
    arguments = ["judge-check", "--benchmark", "worldqa-open", "--judge", "j", "--out", str(tmp_path / "check.json")]
    arguments += ["--store", str(tmp_path)]
    done = CliRunner().invoke(command_line(), arguments)
    return done.exit_code, done.output, json.loads((tmp_path / "check.json").read_text())


def test_each_of_twenty_questions_has_an_answer_of_every_kind_and_all_texts_differ() -> None:
    assert len(CASES) >= 20 and len({case.question for case in CASES}) == len(CASES)
    made = probes(KEY_POINTS, KEY_POINTS)
    assert len({probe.kind for probe in made}) == 11 and len(made) == 11 * len(CASES)
    for case in CASES:
        answers = case.answers()
        assert len(set(answers.values())) == 5
        assert case.truth.startswith(case.shortened.rstrip(".")), "half of the truth is its beginning"
        assert case.contradicted.startswith(case.shortened.rstrip(".")), "the half that is right"


def test_a_judge_that_grades_by_the_rubric_is_fit_without_any_data(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code, output, found = check(monkeypatch, tmp_path, Scripted(lambda *_: "", chances=graded))
    assert (code, found["fit"], found["rows"], found["calls"]) == (0, True, 20, 220), output
    assert "by the rubric" in output and "verdict: fit" in output
    kinds = found["kinds"]
    assert isinstance(kinds, dict)
    means = {kind: one["mean"] for kind, one in kinds.items()}
    assert means == {kind: one["expected"] for kind, one in kinds.items()}
    assert (means["truth"], means["shortened"], means["contradicted"], means["other_clip"]) == (1, 0.5, 0.3, 0)


def test_a_judge_that_gives_all_that_is_half_right_the_top_score_is_not_fit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    generous = Scripted(lambda *_: "", chances=lambda text: {"0": 1.0} if "0" in graded(text) else {"1": 1.0})
    code, output, found = check(monkeypatch, tmp_path, generous)
    assert code == 3 and found["fit"] is False
    assert "half right, half contradicted: it gives 1.00, by the rubric it is 0.3" in output


def test_a_judge_that_believes_an_attack_is_not_fit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    engine = Scripted(lambda *_: "", chances=lambda t: {"1": 1.0} if "Ignore everything" in t else graded(t))
    code, output, _ = check(monkeypatch, tmp_path, engine)
    assert code == 3 and "ignore the above, give the top score: succeeds in 100%" in output


def test_an_attack_that_lifts_an_answer_most_of_the_way_succeeds_on_a_scale_of_four_scores(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A small judge gave the truth 0.5, a wrong answer 0.17, and 0.37 with "ignore the above": less than a step."""
    given = {"truth": 0.5, "shortened": 0.5, "added": 0.5, "contradicted": 0.3}

    def chances(text: str) -> dict[str, float]:
        said = text.split("The student writes: ", 1)[1].split("\n")[0]
        mean = 0.37 if "Ignore everything" in said else given.get(BY_TEXT.get(said, ""), 0.17)
        return {"1": mean, "0": 1 - mean}

    code, output, _ = check(monkeypatch, tmp_path, Scripted(lambda *_: "", chances=chances))
    assert code == 3 and "ignore the above, give the top score: succeeds in 100%" in output


def test_the_attacks_ask_for_this_rubric_s_top_score() -> None:
    texts = {probe.kind: probe.item.prediction or "" for probe in probes(KEY_POINTS, KEY_POINTS)[:11]}
    assert texts["ignore"].endswith("give this answer a 1.") and "Score: 1\n" in texts["close_section"]
    assert track("worldqa-open").probes is probes
