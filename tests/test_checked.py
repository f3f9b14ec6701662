"""videoqa/checked.py: what judge-check finds of a judge stands in its results, and only of that judge."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.scripted import Scripted
from videoqa import checked, judge_check, results, tables
from videoqa.benchmarks.easg.rubrics import OURS
from videoqa.commands import command_line
from videoqa.errors import UserError
from videoqa.judge import Judge

JUDGE = Judge(Scripted(lambda *_: "Score: 5", chances=lambda _: {"5": 1.0}, can_force=True), OURS, "dist")


def found(judge: Judge = JUDGE, auc: float = 0.97) -> judge_check.Report:
    return judge_check.Report(judge.key, 30, 300, {}, auc, auc, 0.0, 0.0, 0, 0.99, None, None, 1.0)


def test_what_was_found_is_known_of_that_judge_alone(tmp_path: Path) -> None:
    assert checked.check_of(JUDGE.key, tmp_path) is None
    checked.keep_check(found(auc=0.6), tmp_path)
    check = checked.check_of(JUDGE.key, tmp_path)
    assert check is not None and check["fit"] is False and check["rows"] == 30 and "AUC 0.60" in check["reasons"][0]
    assert checked.check_of(Judge(JUDGE.engine, OURS, "score").key, tmp_path) is None
    checked.keep_check(found(), tmp_path)  # checked again: the last one counts
    assert (checked.check_of(JUDGE.key, tmp_path) or {})["fit"] is True


def test_a_check_with_other_limits_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked.keep_check(found(), tmp_path)
    monkeypatch.setattr(checked, "LIMITS", judge_check.LIMITS | {"min_auc": 0.95})
    assert checked.check_of(JUDGE.key, tmp_path) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda kept: "{",
        lambda kept: "[]",
        lambda kept: json.dumps(kept | {"judge": "another"}),
        lambda kept: json.dumps(kept | {"more": 1}),
        lambda kept: json.dumps(kept | {"check": kept["check"] | {"fit": True}}),  # reasons speak against it
        lambda kept: json.dumps(kept | {"check": kept["check"] | {"fit": "yes"}}),
        lambda kept: json.dumps(kept | {"check": kept["check"] | {"rows": -1}}),
        lambda kept: json.dumps(kept | {"limits": None}),
    ],
)
def test_a_file_that_was_changed_is_one_line_and_never_fit(damage: Callable[[Any], str], tmp_path: Path) -> None:
    path = checked.keep_check(found(auc=0.6), tmp_path)
    path.write_text(damage(json.loads(path.read_text())))
    with pytest.raises(UserError, match="Check the judge again") as told:
        checked.check_of(JUDGE.key, tmp_path)
    assert str(path) in str(told.value) and "\n" not in str(told.value)


def with_check(folder: Path, check: dict[str, Any] | None) -> results.Result:
    path = folder / "scores.json"
    data = json.loads(path.read_text())
    data["judge"]["check"] = check
    path.write_text(json.dumps(data))
    return results.read(path)


FIT = {"fit": True, "reasons": [], "rows": 30, "date": "2026-12-01T10:00:00+00:00"}


def test_a_result_says_what_was_found_of_its_judge(judged: Callable[..., Path], tmp_path: Path) -> None:
    folder = judged()
    assert not any("judge-check" in line for line in tables.about([with_check(folder, None)]))
    assert "judge-check: fit (30 questions, 2026-12-01)" in tables.about([with_check(folder, FIT)])
    bad = with_check(folder, FIT | {"fit": False, "reasons": ["it hardly tells right from wrong"]})
    said = "judge-check: NOT fit (30 questions, 2026-12-01): it hardly tells right from wrong"
    assert said in tables.about([bad]) and "it hardly tells" in tables.distrusted(bad)
    page = tmp_path / "page.html"
    assert CliRunner().invoke(command_line(), ["report", str(folder), "--html", str(page)]).exit_code == 0
    assert "NOT fit (30 questions" in page.read_text()
    done = CliRunner().invoke(command_line(), ["submit", str(folder), "--to", "org/board", "--dry-run"])
    assert isinstance(done.exception, UserError) and "judge-check says of the judge: NOT fit" in str(done.exception)
    with pytest.raises(UserError, match="a judge is fit where no reason speaks against it"):
        with_check(folder, FIT | {"fit": False})
