"""builder/easg/blind.py: what the model sees, what counts as guessed, and that a killed check goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from scripted import Scripted
from typer.testing import CliRunner

import easg_bench
from builder.__main__ import app
from builder.easg.blind import MARGIN, Guess, missing_of, questions, text
from builder.errors import BuildError
from videoqa.reply import Verdict

DEMO = Path(__file__).resolve().parents[2] / "demo" / "data"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("blind") / "demo"
    assert CliRunner().invoke(app, ["build", "--source", str(DEMO), "--out", str(out)]).exit_code == 0
    return out


def rate(prompt: str) -> Mapping[str, float] | None:
    """10 for the true answer about the glue and for every answer "to hang it up", else 2."""
    good = "to hang it up" in prompt or prompt.count("to stick a patch over the hole in the tube") == 2
    return {"10": 1.0} if good else {"2": 1.0}


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> dict[str, Scripted]:
    """The engines by the name that the command line gives."""
    made = {
        "model": Scripted(lambda text, _: "to hang it up" if "hanger" in text else "to use it"),
        "judge": Scripted(lambda *_: "", chances=rate, can_force=True, name="judge"),
    }
    monkeypatch.setattr("videoqa.engines.open_engine", lambda spec: made[spec])
    return made


def run(data: Path, stages: Path, *options: str) -> tuple[int, str]:
    command = ["blind-check", "--data", str(data), "--engine", "model", "--judge", "judge", "--stages", str(stages)]
    done = CliRunner().invoke(app, [*command, *options])
    return done.exit_code, done.stdout


def test_the_model_sees_the_question_and_nothing_of_the_clip(
    data: Path, models: dict[str, Scripted], tmp_path: Path
) -> None:
    code, out = run(data, tmp_path / "s")
    assert code == 0, out
    asked = models["model"].asked
    assert all(row["question"] in "\n".join(asked) for row in easg_bench.load(data, "purpose"))
    assert not any("#C C" in text for text in asked) and len(asked) == len({*asked}), "a text once"
    assert all("(The camera wearer" in text or "#C C" in text for text in models["judge"].asked)


def test_an_answer_is_guessed_where_it_is_rated_as_well_as_the_truth(
    data: Path, models: dict[str, Scripted], tmp_path: Path
) -> None:
    _, out = run(data, tmp_path / "s")
    lines = [json.loads(line) for line in (tmp_path / "s" / "blind.jsonl").read_text().splitlines()]
    by_id = {line["id"]: line for line in lines}
    assert by_id["demo-tyre:purpose:glue"]["guessed"] is False
    assert by_id["demo-shirt:purpose:hanger"]["guessed"] is True
    assert len(lines) == 20 and sum(":template:" in line["id"] for line in lines) == 10
    table = [line.split() for line in out.splitlines()]
    assert ["of", "the", "data", "10", "90.0%"] in [line[:5] for line in table]
    assert ["by", "template", "10"] in [line[:3] for line in table]


def test_what_was_said_once_is_not_asked_again(data: Path, models: dict[str, Scripted], tmp_path: Path) -> None:
    first = run(data, tmp_path / "s")
    for model in models.values():
        model.asked.clear()
    again = run(data, tmp_path / "s")
    assert first[1].splitlines()[1:] == again[1].splitlines()[1:]
    assert not models["model"].asked and not models["judge"].asked


def test_a_failed_row_is_counted_and_in_no_share(data: Path, models: dict[str, Scripted], tmp_path: Path) -> None:
    models["model"].script = lambda text, _: None if "hanger" in text else "to use it"
    code, out = run(data, tmp_path / "s")
    assert code == 3 and "without an answer or a score, in no share: 1" in out
    models["model"].script = lambda *_: "to hang it up"
    code, out = run(data, tmp_path / "s")
    assert code == 0 and "1 prompts sent" in out


def test_a_limit_takes_as_many_of_each_kind(data: Path) -> None:
    rows, graphs = list(easg_bench.load(data)), list(easg_bench.load(data, "graphs"))
    kinds = [kind for kind, _ in questions(rows, graphs, 3)]
    assert kinds == ["data"] * 3 + ["template"] * 3
    with pytest.raises(BuildError, match="needs purpose questions"):
        questions([row for row in rows if row["type"] != "purpose"], graphs)


@pytest.mark.parametrize(("gap", "guessed"), [(0.0, True), (MARGIN, True), (MARGIN + 0.01, False), (-3.0, True)])
def test_the_margin_is_half_a_point(gap: float, guessed: bool) -> None:
    one = Guess({}, "data", "x", Verdict(7.0 - gap, "ok"), Verdict(7.0, "ok"))
    assert one.guessed is guessed


def test_without_a_score_nothing_is_guessed_or_not() -> None:
    row = {"id": "a", "clip": "c"}
    silent = Guess(row, "data", None, None, Verdict(7.0, "ok"))
    unread = Guess({**row, "id": "b"}, "data", "x", Verdict(None, "unreadable"), Verdict(7.0, "ok"))
    assert silent.guessed is None and unread.guessed is None and missing_of([silent, unread]) == 2
    assert "0.0%" not in text([silent, unread])
