"""Making questions in the manner of EgoSchema: narration files, the calls, the filters, the sheets."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from builder.__main__ import app
from builder.egoschema import curation, make, narrated
from builder.errors import BuildError
from builder.stages import Stages
from builder.stages import read as read_stage
from tests.scripted import Scripted

# -- narrations -------------------------------------------------------------------------------------------------------


def told(count: int, start: float = 0.0) -> str:
    return " ".join(f"({start + n:.2f}s) #C C does thing {n}." for n in range(count))


def test_clips_are_parts_of_three_minutes_with_enough_narrations() -> None:
    data = {"v": narrated.timed(told(40) + " " + told(29, 180) + " " + told(30, 360.0)), "w": narrated.timed(told(3))}
    found = narrated.clips(data)
    assert [(clip.id, clip.start_s, clip.end_s, len(clip.narrations)) for clip in found] == [
        ("v:0", 0.0, 180.0, 40),
        ("v:360", 360.0, 540.0, 30),
    ]
    assert found[1].text.startswith("(0.0s) #C C does thing 0.\n(1.0s) ")


def test_the_forms_of_a_narration_file_give_the_same(tmp_path: Path) -> None:
    path = tmp_path / "narration.json"
    passes = {
        "narration_pass_1": {
            "narrations": [
                {"timestamp_sec": 2.5, "narration_text": "#C C b"},
                {"timestamp_sec": 1, "narration_text": "#C C a"},
            ]
        },
        "narration_pass_2": {"narrations": [{"timestamp_sec": 9, "narration_text": "#C C other"}]},
        "status": "complete",
    }
    for data in ({"v": passes}, {"date": "2021", "videos": {"v": passes}}, {"v": "(1.0s) #C C a\n(2.50s) #C C  b"}):
        path.write_text(json.dumps(data))
        assert narrated.read(path) == {"v": [(1.0, "#C C a"), (2.5, "#C C b")]}
    path.write_text(
        json.dumps({"v": {"narration_pass_1": {"narrations": []}, "narration_pass_2": passes["narration_pass_2"]}})
    )
    assert narrated.read(path) == {"v": [(9.0, "#C C other")]}


@pytest.mark.parametrize("bad", [{"timestamp_sec": "1", "narration_text": "x"}, {"timestamp_sec": 1}, "x"])
def test_a_narration_that_is_none_is_named(bad: Any, tmp_path: Path) -> None:
    path = tmp_path / "narration.json"
    path.write_text(json.dumps({"v": {"narration_pass_1": {"narrations": [bad]}}}))
    with pytest.raises(BuildError, match="video v"):
        narrated.read(path)


# -- making -----------------------------------------------------------------------------------------------------------

CLIPS = narrated.clips({"v": narrated.timed(told(30)), "w": narrated.timed(told(30, 60.0))})
LONG = "does the laundry in every room of the whole house"


def good(number: int) -> dict[str, Any]:
    return {
        "question": f"What is all of it for, part {number}?",
        "answer": f"C {LONG} {number}.",
        "wrong": [f"C {word} {LONG} {number}." for word in ("up", "so", "at", "by")],
    }


def writer(spoil: Callable[[int, dict[str, Any]], None] = lambda n, item: None) -> Callable[[str, int], str]:
    """Writes three questions of each clip; `spoil` changes them. Blind it always says A."""

    def script(text: str, seed: int) -> str:
        if "Reply with the letter" in text:
            return "A"
        items = [good(n) for n in (1, 2, 3)]
        for n, item in enumerate(items):
            spoil(n, item)
        keys = [key for key in ("question", "answer", "wrong") if f'"{key}": ' in text]
        numbered = [{"number": n} | {key: item[key] for key in keys if key in item} for n, item in enumerate(items, 1)]
        return f"Sure!\n```json\n{json.dumps(numbered)}\n```"

    return script


def made(tmp_path: Path, script: Any, scheme: str = "q-aw", **more: Any) -> tuple[make.Outcome, Scripted]:
    engine = Scripted(script, **more)
    with Stages(tmp_path / "stages", engine, make.DECISIONS) as stages:
        return make.make(CLIPS, stages, stages, scheme=scheme), engine


@pytest.mark.parametrize(("scheme", "calls"), [("q-aw", 2), ("q-a-w", 3), ("one", 1)])
def test_each_scheme_gives_whole_questions_in_its_calls(scheme: str, calls: int, tmp_path: Path) -> None:
    outcome, engine = made(tmp_path, writer(), scheme)
    asked = [text for text in engine.asked if "Reply as JSON" in text]
    assert len(asked) == calls * len(CLIPS)
    assert outcome.funnel["questions that could be read"] == 6
    assert outcome.funnel["passed the blind filter"] == len(outcome.made) < 6  # A is right here and there
    for one in outcome.made:
        assert one.row["choices"][one.row["gold"]] == one.answer and one.row["gold"] != 0
    assert outcome.baseline == pytest.approx(1 - len(outcome.made) / outcome.funnel["passed the length of the set"])


def test_the_second_call_is_told_the_questions_and_the_notes(tmp_path: Path) -> None:
    _, engine = made(tmp_path, writer())
    second = next(text for text in engine.asked if "What is all of it for, part 2?" in text and "JSON" in text)
    assert "2. What is all of it for, part 2?" in second and "#C C does thing 29." in second


def test_a_reply_that_cannot_be_read_is_asked_again_and_the_rest_is_kept(tmp_path: Path) -> None:
    tries: list[int] = []

    def script(text: str, seed: int) -> str:
        if '"question": ' in text:
            tries.append(seed)
            if seed == 0:
                return "I will not."
        return writer(lambda n, item: item.pop("wrong") if n == 1 else None)(text, seed)

    outcome, _ = made(tmp_path, script)
    assert sorted(tries) == [0, 0, 1, 1]
    assert outcome.funnel["questions that could be read"] == 4  # the second question of each clip never is whole
    lines = read_stage(tmp_path / "stages", "made")
    assert [line["decision"] for line in lines[:3]] == ["read", "unreadable", "read"]


def test_rules_drop_questions_and_say_why(tmp_path: Path) -> None:
    def spoil(n: int, item: dict[str, Any]) -> None:
        if n == 0:
            item["question"] = "How often does C wash?"

    outcome, _ = made(tmp_path, writer(spoil))
    assert outcome.funnel["passed the rules"] == 4
    rules = read_stage(tmp_path / "stages", "rules")
    assert rules[0]["reason"] == ["asks for a frequency"]


def test_a_run_that_goes_on_asks_nothing_twice(tmp_path: Path) -> None:
    first, _ = made(tmp_path, writer())
    again, engine = made(tmp_path, writer())
    assert engine.asked == [] and again.made == first.made


def test_a_model_that_replies_nothing_usable_makes_nothing(tmp_path: Path) -> None:
    outcome, _ = made(tmp_path, lambda text, seed: "[[[[ {{{{")
    assert outcome.made == [] and outcome.baseline is None
    assert "0  questions that could be read" in make.funnel_text(outcome)


def test_make_writes_a_dataset_that_can_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from videoqa import engines
    from videoqa.benchmark import track_of

    monkeypatch.setattr(engines, "open_engine", lambda *_, **__: Scripted(writer()))
    file, out = tmp_path / "narration.json", tmp_path / "made"
    file.write_text(json.dumps({"v": told(30), "w": told(30, 60.0)}))
    done = CliRunner().invoke(app, ["egoschema", "make", str(file), "--engine", "m", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "6  questions asked for" in done.output and "right without the question" in done.output
    assert track_of(str(out)).name == "egoschema"
    assert "**not** questions of EgoSchema" in (out / "README.md").read_text()
    assert done.output.count("prompts of this run") == 1


# -- curation ---------------------------------------------------------------------------------------------------------


def rows(count: int = 3) -> list[dict[str, Any]]:
    return [make.Made(CLIPS[0], n, f"Why, {n}?", "=right", ("a", "b", "c", "d")).row for n in range(count)]


def filled(path: Path, text: str, who: str, said: dict[str, str]) -> Path:
    """The sheet with yes everywhere but for `said`: {id: value of wrong_is_wrong}."""
    lines = list(csv.DictReader(text.splitlines()))
    for line in lines:
        line |= dict.fromkeys(curation.CONDITIONS, "Yes ") | {"annotator": who}
        line["wrong_is_wrong"] = said.get(line["id"], "yes")
    with path.open("w", newline="") as file:
        writing = csv.DictWriter(file, list(lines[0]))
        writing.writeheader()
        writing.writerows(lines)
    return path


def test_what_everybody_says_yes_to_is_kept(tmp_path: Path) -> None:
    text = curation.sheet(rows())
    assert "'=right" in text  # no formula
    ids = [row["id"] for row in rows()]
    a = filled(tmp_path / "a.csv", text, "ann", {ids[1]: "maybe"})
    b = filled(tmp_path / "b.csv", text, "bob", {ids[2]: "no"})
    found = curation.read([a, b], ids)
    assert found.decisions == {ids[0]: "kept", ids[1]: "maybe", ids[2]: "dropped"}
    assert (found.same, found.pairs, found.kept) == (1, 3, [ids[0]])
    assert "MAYBE is more than 3%" in found.text() and "annotators agree: 1 of 3 (33%)" in found.text()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text.replace("Yes ", "y", 1), r"line 2: answerable is 'y'; allowed are yes, no, maybe"),
        (lambda text: text.replace(",annotator", ",who"), r"line 2: annotator is missing"),
        (lambda text: re.sub("^v:0:0", "v:0:9", text, flags=re.M), r"v:0:9 is no question of this round"),
        (lambda text: re.sub("^v:0:1", "v:0:0", text, flags=re.M), r"line 3: ann has decided on v:0:0 twice"),
        (lambda text: "\n".join(text.splitlines()[:2]), r"2 questions are not decided, the first is v:0:1"),
    ],
)
def test_a_sheet_with_a_fault_is_named(spoil: Callable[[str], str], message: str, tmp_path: Path) -> None:
    path = filled(tmp_path / "a.csv", curation.sheet(rows()), "ann", {})
    path.write_text(spoil(path.read_text()))
    with pytest.raises(BuildError, match=message):
        curation.read([path], [row["id"] for row in rows()])


def test_two_rounds_by_command(tmp_path: Path) -> None:
    from builder.egoschema import card, dataset

    data, second = tmp_path / "made", tmp_path / "kept"
    dataset.write(data, {"made": rows()}, [], card.MADE)
    run = CliRunner().invoke
    assert run(app, ["egoschema", "sheet", str(data), "--out", str(tmp_path / "one.csv")]).exit_code == 0
    sheet = filled(tmp_path / "one.csv", (tmp_path / "one.csv").read_text(), "ann", {"v:0:1": "no"})
    done = run(app, ["egoschema", "curate", str(data), str(sheet), "--out", str(second)])
    assert "3 questions: kept 2 (67%), dropped 1 (33%), maybe 0 (0%)" in done.output, done.output
    run(app, ["egoschema", "sheet", str(second), "--out", str(tmp_path / "two.csv")])
    assert (tmp_path / "two.csv").read_text().count("v:0:") == 2
