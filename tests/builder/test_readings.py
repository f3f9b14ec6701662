"""builder/easg/readings.py and the data files: what readers wrote, and how it becomes rows, a column and a config."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import easg_bench
from builder.__main__ import app
from builder.easg import readings
from builder.easg.annotations import USUAL_NAMES, read_clips
from builder.easg.check import given_away, of_readings
from builder.easg.grounding import plain
from builder.easg.questions import questions
from builder.easg.readings import DATA, NAMES, Purpose, Readings, Review
from builder.errors import BuildError
from easg_bench import JUDGMENTS, LABELS, REVIEWED, REVIEWS

Save = Callable[[dict[str, Any]], Path]
CUP = {
    "clip": "kitchen",
    "object": "cup",
    "question": "Why did the camera wearer pick up the cup?",
    "answer": "to pour water into it",
    "graphs": [1, 2],
    "basis": "shown",
    "judgments": [
        {"reader": "reader 1", "judgment": "supported", "reason": ""},
        {"reader": "reader 2", "judgment": "plausible", "reason": "graph 2"},
    ],
}


def build(source: Path, out: Path, *options: str) -> dict[str, dict[str, Any]]:
    done = CliRunner().invoke(app, ["build", "--source", str(source), "--out", str(out), *options])
    assert done.exit_code == 0, done.output
    return {row["id"]: row for row in easg_bench.load(out)}


@pytest.fixture
def written(raw: dict[str, Any], save: Save) -> Path:
    """A source whose kitchen has a written purpose and a better wording; garden has neither."""
    raw["purposes"] = [CUP]
    raw["purpose_counts"]["kitchen"] = 1
    raw["wording"] = [
        {
            "id": "kitchen:4:before",
            "template": "What did the camera wearer do right before wiping the table with the cloth?",
            "question": "What did the camera wearer do right before the table was wiped with the cloth?",
        },
        {"id": "kitchen:4:indirect:1", "template": "Another text?", "question": "Never asked?"},
    ]
    return save(raw)


# -- in a build


def test_written_purposes_stand_where_there_are_any_and_templates_elsewhere(written: Path, tmp_path: Path) -> None:
    rows = build(written, tmp_path / "a")
    cup = rows["kitchen:purpose:cup"]
    assert (cup["question"], cup["answer"], cup["review"]) == (CUP["question"], CUP["answer"], "plausible")
    assert [item["object"] for item in cup["evidence"]] == ["cup"] and cup["evidence"][0]["frame"] == 60
    garden = next(row for id, row in rows.items() if id.startswith("garden:purpose:"))
    assert garden["review"] is None and garden["answer"].endswith(".")


def test_templates_can_be_asked_for_and_action_questions_do_not_change(written: Path, tmp_path: Path) -> None:
    rows, templates = build(written, tmp_path / "a"), build(written, tmp_path / "b", "--purposes", "template")
    assert {row["review"] for row in templates.values() if row["type"] == "purpose"} == {None}
    assert len(rows) == len(templates)
    actions = {id: row for id, row in rows.items() if row["type"] != "purpose"}
    assert actions == {id: row for id, row in templates.items() if row["type"] != "purpose"}
    cards = [(tmp_path / name / "README.md").read_text() for name in "ab"]
    assert "written by a language-model reader from text alone" in cards[0] and "no video was seen" in cards[0]
    assert "written by a language-model reader" not in cards[1] and "by template is not the paper's" in cards[1]


def test_a_clip_gets_no_more_written_purposes_than_its_count(raw: dict[str, Any], save: Save, tmp_path: Path) -> None:
    raw["purposes"] = [CUP, {**CUP, "object": "water", "question": "What was the water for?", "answer": "for tea"}]
    raw["purpose_counts"]["kitchen"] = 1
    rows = build(save(raw), tmp_path / "a")
    assert [id for id in rows if id.startswith("kitchen:purpose")] == ["kitchen:purpose:cup"]


def test_a_better_wording_takes_the_place_of_the_text_that_it_was_made_for(written: Path, tmp_path: Path) -> None:
    rows = build(written, tmp_path / "a")
    assert rows["kitchen:4:before"]["question"].endswith("the table was wiped with the cloth?")
    assert rows["kitchen:4:indirect:1"]["question"] != "Never asked?"


def test_the_config_reviewed_has_what_every_reader_calls_clear(written: Path, tmp_path: Path) -> None:
    rows = build(written, tmp_path / "a")
    kept = easg_bench.load(tmp_path / "a", "reviewed")["id"][:]
    assert kept == ["kitchen:purpose:cup", "kitchen:2:direct", "kitchen:3:direct"]
    assert rows["kitchen:4:direct"]["review"] == "clear/repeats"
    assert rows["kitchen:2:after"]["review"] is None, "nobody read it"


def test_labels_hold_for_the_text_that_was_read_and_for_no_other(
    raw: dict[str, Any], save: Save, tmp_path: Path
) -> None:
    raw["reviews"][0]["question"] = "What did the camera wearer pour?"
    raw["reviews"][1]["answer"] = "cup"
    rows = build(save(raw), tmp_path / "a")
    assert rows["kitchen:2:direct"]["review"] is None and rows["kitchen:3:direct"]["review"] is None


def test_a_data_set_without_a_column_is_told_so(raw: dict[str, Any], save: Save, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    build(save(raw), tmp_path / "a")
    (path,) = (tmp_path / "a").glob("data/direct-*")
    pq.write_table(pq.read_table(path).drop_columns(["frame"]).replace_schema_metadata(), path)
    with pytest.raises(ValueError, match=r"config direct: these are not the columns .*: frame is missing"):
        easg_bench.load(tmp_path / "a", "direct")


def test_explain_tells_who_wrote_and_what_the_readers_said(written: Path, tmp_path: Path, monkeypatch: Any) -> None:
    build(written, tmp_path / "a")
    monkeypatch.setattr(readings, "DATA", written)
    for id, said in (
        ("kitchen:purpose:cup", "written, shown (graph 1, 2): Why did the camera wearer pick up the cup?"),
        ("kitchen:purpose:cup", "reader 2: plausible: graph 2"),
        ("kitchen:4:direct", "reader 2: repeats"),
    ):
        assert said in CliRunner().invoke(app, ["explain", id, "--data", str(tmp_path / "a")]).stdout


# -- the files


@pytest.mark.parametrize(
    ("role", "line", "message"),
    [
        (
            "purposes",
            {**CUP, "basis": "seen"},
            'jsonl, line 1: basis: allowed are shown, inferred, not "seen"',
        ),
        ("purposes", {**CUP, "graphs": []}, "line 1: graphs: a list of at least one is needed"),
        ("purposes", {**CUP, "graphs": [1.5]}, "line 1: graphs: a whole number"),
        (
            "purposes",
            {**CUP, "judgments": [{"reader": "a", "judgment": "wrong", "reason": ""}]},
            "judgment: allowed are supported, plausible",
        ),
        ("purposes", {k: v for k, v in CUP.items() if k != "answer"}, "line 1: answer is missing"),
        ("reviews", {"id": "a:1:direct", "question": "?", "answer": "x", "labels": "clear"}, "labels: a list"),
        ("wording", {"id": "a", "template": 3, "question": "?"}, "line 1: template: text is needed, not 3"),
        ("wording", [1], "an object is needed"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(role: str, line: Any, message: str, tmp_path: Path) -> None:
    (tmp_path / NAMES[role]).write_text(json.dumps(line) + "\n")
    with pytest.raises(BuildError, match=re.escape(message)):
        readings.read(tmp_path)


def test_a_line_that_is_no_json_and_an_id_that_comes_twice_are_named(raw: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "wording.jsonl").write_text('{"id": \n')
    with pytest.raises(BuildError, match=r"wording.jsonl, line 1: no valid JSON"):
        readings.read(tmp_path)
    (tmp_path / "wording.jsonl").unlink()
    line = json.dumps(raw["reviews"][0]) + "\n"
    (tmp_path / "reviews.jsonl").write_text(line * 2)
    with pytest.raises(BuildError, match=r"reviews.jsonl, line 2: the id kitchen:2:direct comes twice"):
        readings.read(tmp_path)


def test_every_pair_of_labels_is_in_the_closed_list() -> None:
    assert {easg_bench.review_of([one, two]) for one in LABELS for two in LABELS} == {*REVIEWS} - {*JUDGMENTS}
    assert len(REVIEWS) == len({*REVIEWS}) == 17 and {*REVIEWED} <= {*REVIEWS}


# -- problems that `check` tells


def purpose(**changes: Any) -> Purpose:
    made = {**CUP, "graphs": tuple(CUP["graphs"]), "judgments": (), **changes}
    return Purpose(**made)


def problems(one: Purpose, *more: dict[str, Any]) -> list[str]:
    row = {"id": "kitchen:purpose:cup", "clip": "kitchen", "type": "purpose", "review": "supported"}
    row |= {"question": one.question, "answer": one.answer}
    graphs = [
        {"clip": "kitchen", "index": 1, "verb": "pick", "object": "cup", "relations": []},
        {"clip": "kitchen", "index": 2, "verb": None, "object": None, "relations": []},
    ]
    return [problem.kind for problem in of_readings([row, *more], graphs, Readings({"kitchen": [one]}))]


def test_a_sound_purpose_has_no_problem() -> None:
    assert problems(purpose()) == []


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"graphs": (1, 3)}, "purpose without its graphs"),
        ({"graphs": (2,)}, "purpose without its graphs"),
        ({"object": "jug"}, "purpose without its graphs"),
        ({"answer": " ".join(["to"] * 26)}, "purpose too long"),
        ({"answer": "so that it was picked"}, "purpose says its own answer"),
    ],
)
def test_a_purpose_that_does_not_hold_is_a_problem(changes: dict[str, Any], kind: str) -> None:
    assert problems(purpose(**changes)) == [kind]


def test_one_answer_twice_a_row_that_is_missing_and_an_unknown_review_are_problems() -> None:
    one = purpose()
    again = {"id": "b", "clip": "kitchen", "type": "purpose", "review": "supported", "question": "Why?"}
    assert problems(one, {**again, "answer": one.answer.upper()}) == ["same purpose twice"] * 2
    assert problems(one, {**again, "answer": "x", "review": "good"}) == ["unknown review"]
    other = Readings({"kitchen": [one, purpose(question="What was the cup for?", answer="to drink")]})
    row = {**again, "question": one.question, "answer": one.answer}
    assert [p.kind for p in of_readings([row], [], other)] == ["written purpose left out"]


def test_a_question_that_nobody_read_as_it_stands_is_told_in_clips_that_were_read() -> None:
    row = {"id": "kitchen:1:direct", "clip": "kitchen", "type": "direct", "question": "?", "answer": "a"}
    read = Readings({}, {"kitchen:2:direct": Review("kitchen:2:direct", "?", "b", ())})
    assert [p.kind for p in of_readings([{**row, "review": None}], [], read)] == ["question not reviewed"]
    assert not [*of_readings([{**row, "review": "clear"}], [], read)]
    assert not [*of_readings([{**row, "review": None}], [], Readings())]


def test_an_answer_may_name_the_object_and_no_other_word_of_the_question() -> None:
    assert given_away(purpose(question="What was the cup used for?", answer="to fill the cups")) == []
    assert given_away(purpose(question="Why did the camera wearer carry the cup?", answer="by carrying it")) == [
        "carrying"
    ]


# -- the project's own files


def test_the_projects_purposes_hold_by_themselves() -> None:
    pairs = [one for of_clip in readings.read().purposes.values() for one in of_clip]
    assert len(pairs) == 668
    assert not [one for one in pairs if given_away(one) or len(one.answer.split()) > 25]
    assert not [one for one in pairs if not re.match(r"(to|so that|for|by) ", one.answer) or one.answer.endswith(".")]
    assert not [one for one in pairs if not one.question.endswith("?")]
    answers = Counter((one.clip, one.answer.lower()) for one in pairs)
    asked = Counter((one.clip, one.question.lower()) for one in pairs)
    assert max(answers.values()) == max(asked.values()) == 1
    lines = [json.loads(line) for line in (DATA / NAMES["purposes"]).read_text().splitlines()]
    refused = [former for line in lines for former in line.get("former", []) if former["judgments"][-1]]
    assert len(refused) == 39 and all(len(line["judgments"]) == 2 or "former" in line for line in lines)


def test_the_projects_reviews_have_two_readers_each_and_reasons() -> None:
    reviews = readings.read().reviews
    assert len(reviews) == 1139
    for one in reviews.values():
        assert [label.reader for label in one.labels] == ["reader 1", "reader 2"], one.id
        assert one.review in REVIEWS
        assert all(label.reason for label in one.labels if label.label != "clear"), one.id
        assert "of its kind" not in one.question and not re.match("What, with", one.question)


@pytest.mark.real
def test_purposes_reviews_and_wording_are_those_of_the_public_clips(upstream: Path) -> None:
    read = readings.read()
    clips, _ = read_clips(**{role: upstream / USUAL_NAMES[role] for role in ("annotations", "votes", "purpose_counts")})
    assert {uid: len(pairs) for uid, pairs in read.purposes.items()} == {
        clip.uid: clip.purpose_count for clip in clips if clip.purpose_count
    }
    by_uid = {clip.uid: clip for clip in clips}
    for pairs in read.purposes.values():
        for one in pairs:
            graphs = [by_uid[one.clip].graphs[index - 1] for index in one.graphs]
            boxes = [plain(name) for graph in graphs for of_stage in graph.boxes.values() for name in of_stage]
            assert plain(one.object) in boxes, one
    assert list(read.reviews) == [
        id
        for clip in clips
        for kind in ("direct", "indirect", "before", "after")
        for id in [slots.id for slots in questions(clip) if slots.type == kind]
    ]
    assert {id for id, _ in read.wording} <= {*read.reviews}


@pytest.mark.real
def test_the_real_rows_are_all_reviewed(real_build: Path) -> None:
    rows = list(easg_bench.load(real_build))
    assert all(row["review"] in REVIEWS and row["evidence"] is not None for row in rows)
    assert Counter(row["type"] for row in easg_bench.load(real_build, "reviewed")) == {
        "purpose": 668,
        "direct": 209,
        "indirect": 237,
        "before": 145,
        "after": 120,
    }
    asked = {row["question"] for row in rows}
    assert all(question in asked for question in readings.read().wording.values())
    assert all((row["frame"] is None) == (row["type"] == "purpose") for row in rows)
