"""WorldQA's open-ended track, from the demo's copy of the public form to a score: by the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from builder.__main__ import app as builder_app
from demo import worldqa as demo
from tests.scripted import Scripted
from videoqa.benchmark import ScorerOptions, track, track_of
from videoqa.benchmarks.worldqa.data import CHOICE, OPEN
from videoqa.benchmarks.worldqa.published import ABLATION, MULTIPLE_CHOICE, OPEN_ENDED, TABLE2
from videoqa.commands import command_line
from videoqa.errors import UserError

RIGHT = {question: options[0] for _, question, options, _, _, _ in demo.QUESTIONS}
WRONG = "A dog barks."


def build(source: Path, out: Path, *arguments: str) -> Any:
    return CliRunner().invoke(builder_app, ["worldqa", "build", "--source", str(source), "--out", str(out), *arguments])


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("worldqa")
    demo.main(folder / "copy")
    done = build(folder / "copy", folder / "data", "--notes", str(folder / "copy" / "notes.json"))
    assert done.exit_code == 0, done.output
    assert "open: 12 questions on 4 videos" in done.output
    assert "multiple-choice: 12 questions (1 with 5 options, 10 with 4 options, 1 with 3 options)" in done.output
    return folder / "data"


def say(text: str) -> str:
    """A model that knows six of the twelve answers, and half of one."""
    (number,) = [n for n, question in enumerate(RIGHT) if f"Question: {question}" in text]
    right = list(RIGHT.values())[number]
    return right if number < 6 else f"Half: {right}" if number == 6 else WRONG


def rate(text: str) -> dict[str, float]:
    """A judge that gives the ground truth 1 with a chance of 0.9, 0.5 with the rest."""
    said = text.split("The student writes: ")[1]
    if said.startswith(WRONG):
        return {"0": 1.0}
    return {"0.5": 1.0} if said.startswith("Half") else {"0.5": 0.1, "1": 0.9}


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> dict[str, Scripted]:
    by_name = {
        "model": Scripted(lambda text, _: say(text), name="org/model"),
        "judge": Scripted(lambda *_: "", chances=rate, name="org/judge"),
    }
    monkeypatch.setattr("videoqa.engines.open_engine", lambda spec, **_: by_name[spec])
    return by_name


def bench(*arguments: object) -> str:
    done = CliRunner().invoke(command_line(), [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_the_built_data_are_of_this_track(data: Path) -> None:
    assert track_of(str(data)).name == "worldqa-open"
    rows = track("worldqa-open").load(str(data), "default")
    assert [row["answer"] for row in rows] == list(RIGHT.values())
    assert rows[0]["knowledge"] == ["societal norm", "self motive"] and rows[0]["steps"] == 3
    assert len(rows[0]["events"]) == 4 and rows[0]["duration_s"] == 24.0


def test_a_run_has_the_mean_of_the_judge_s_scores_and_the_truth_is_not_divided_by(
    data: Path, tmp_path: Path, engines: dict[str, Scripted]
) -> None:
    output = bench("run", "--data", data, "--model", "model", "--judge", "judge", "--out", tmp_path / "run")
    result = json.loads((tmp_path / "run" / "scores.json").read_text())
    assert (result["track"], result["measure"], result["prompt"]) == ("worldqa-open", "percent", "blind")
    assert result["avg"]["value"] == pytest.approx(100 * (6 * 0.95 + 0.5) / 12, abs=1e-4)
    assert result["judge"]["values"] == [0.0, 0.3, 0.5, 1.0]
    assert "Score x 100" in output and "WorldRetriever" in output and "51.67" in output
    verdicts = [json.loads(line) for line in (tmp_path / "run" / "verdicts.jsonl").read_text().splitlines()]
    truths = [line["score"] for line in verdicts if line["of"] == "truth"]
    assert truths == [0.95] * 12
    assert result["calibration"] == {"means": {"open": pytest.approx(0.95)}, "n": 12}
    assert "it gives the ground truth: open 0.95" in output


@pytest.mark.parametrize(("way", "shown"), [("augmented", "He slides a long"), ("augmented-8", "He slides a long")])
def test_an_augmented_model_reads_what_happens(
    data: Path, tmp_path: Path, engines: dict[str, Scripted], way: str, shown: str
) -> None:
    run = ["--data", data, "--model", "model", "--judge", "judge", "--prompt", way, "--out", tmp_path / "run"]
    bench("run", *run)
    assert json.loads((tmp_path / "run" / "scores.json").read_text())["kind"] == "augmented"
    assert sum(shown in text for text in engines["model"].asked) == 3
    assert not any(shown in text for text in engines["judge"].asked)


def test_an_augmented_model_without_descriptions_is_refused(
    data: Path, tmp_path: Path, engines: dict[str, Scripted]
) -> None:
    done = build(data.parent / "copy", tmp_path / "data")
    assert done.exit_code == 0, done.output
    arguments = ["answer", "--data", tmp_path / "data", "--model", "model", "--prompt", "augmented"]
    with pytest.raises(UserError, match="no descriptions of events in video 1"):
        CliRunner().invoke(
            command_line(), [*map(str, arguments), "--out", str(tmp_path / "run")], catch_exceptions=False
        )


def test_a_copy_without_one_rotation_is_not_built(data: Path, tmp_path: Path) -> None:
    demo.main(tmp_path / "copy")
    lines = (tmp_path / "copy" / "MC.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "copy" / "MC.jsonl").write_text("".join(lines[:5] + lines[6:]))
    done = build(tmp_path / "copy", tmp_path / "data")
    assert done.exit_code == 2 and not (tmp_path / "data").exists()
    # the second question's rows are the lines 4 to 7 of the whole file, of which the second is gone
    assert "MC.jsonl row 4, MC.jsonl row 5, MC.jsonl row 6: the rotation that begins with 'He complains" in done.output


def test_the_copy_is_fetched_from_the_hub_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    from tests.hub_server import HubServer

    demo.main(tmp_path / "copy")
    parts = {f"{name}/test.jsonl": (tmp_path / "copy" / f"{name}.jsonl").read_bytes() for name in demo.rows()}
    with HubServer({"org/worldqa": {**parts, "videos.zip": b"large"}}) as hub:
        fetch: Any = huggingface_hub.snapshot_download
        there: dict[str, Any] = {"endpoint": hub.url, "cache_dir": tmp_path / "cache"}
        monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *a, **k: fetch(*a, **k, **there))
        done = build(Path("org/worldqa"), tmp_path / "data")
        assert done.exit_code == 0 and "multiple-choice: 12 questions" in done.output, done.output
        assert not list((tmp_path / "cache").rglob("*.zip")), "only data are fetched"
        done = build(Path("org/other"), tmp_path / "other")
        assert done.exit_code == 2 and "no dataset of this name to be had from the Hub" in done.output


def test_the_fixed_texts_of_every_way_can_be_had_without_a_question() -> None:
    nothing = {"question": "", "context": "", "choices": None}
    assert all("Question:" in way.query(nothing) for way in track("worldqa-open").ways.values())


def test_without_a_judge_nothing_is_rated() -> None:
    with pytest.raises(UserError, match="name one with --judge"):
        track("worldqa-open").scorer(None, ScorerOptions())
    with pytest.raises(UserError, match="--reading script"):
        track("worldqa-open").scorer(Scripted(lambda *_: ""), ScorerOptions(reading="script"))


def test_the_published_rows_are_of_the_track_s_types() -> None:
    assert len(OPEN_ENDED) == len(MULTIPLE_CHOICE) == len(TABLE2) + len(ABLATION) == 22
    assert all(set(row.scores) == {OPEN} and row.avg == row.scores[OPEN] for row in OPEN_ENDED)
    assert all(set(row.scores) == {CHOICE} and row.avg == row.scores[CHOICE] for row in MULTIPLE_CHOICE)
    assert all(0 <= row.avg <= 100 for row in (*OPEN_ENDED, *MULTIPLE_CHOICE))
    assert len({(row.model, row.kind) for row in OPEN_ENDED}) == len(OPEN_ENDED)
