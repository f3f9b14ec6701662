"""builder/easg/attributes.py: adjectives of grounded objects, only such as the narrations say."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from scripted import Scripted

from builder import stages
from builder.easg.attributes import add, attributed, near_sentences, prompt, read_attributes
from builder.stages import Stages

SENTENCES = ["C puts the jug on the small, wooden table", "C cleans table with a red wiping cloth"]
OBJECTS = ["table", "cloth", "jug"]


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ('{"table": "wooden", "cloth": "wiping"}', {"table": "wooden"}),  # what it is for
        ('Sure: {"Table": "Wooden", "the jug": "big"}', {"table": "wooden"}),
        ("{'table': 'small', 'cloth': 'red'}", {"table": "small", "cloth": "red"}),  # a word may stand between
        ('[{"table": "wooden"}]', {"table": "wooden"}),
        ('{"table": "wooden", "cloth": "re', {"table": "wooden"}),
        ('{"table": "green"}', {}),  # not in the text
        ('{"jug": "red"}', {}),  # of another thing
        ('{"jug": "on the small table"}', {}),
        ('{"table": "cleans"}', {}),
        ('{"jug": "the"}', {}),
        ('{"table": "table"}', {}),
        ('{"table": null, "cloth": 3, "jug": ["red"]}', {}),
        ('{"sofa": "red"}', {}),
        ("{}", {}),
        ("", {}),
        ("La mesa es de madera.", {}),
        ("wooden " * 8000, {}),
        (prompt(SENTENCES, OBJECTS)[0]["content"], {}),
    ],
)
def test_an_adjective_must_be_in_the_text_and_before_its_object(reply: str, found: dict[str, str]) -> None:
    assert read_attributes(reply, OBJECTS, SENTENCES)[0] == found


def test_the_sentences_near_a_moment() -> None:
    text = "(1.51s) #C C holds a napkin. (14.00s) #C  C cleans (all of) the jug. (43s) #O man waves. (44.0s) "
    assert near_sentences(text, 16.0) == ["C holds a napkin.", "C cleans (all of) the jug."]
    assert near_sentences(text, 40.0) == ["man waves."] and near_sentences("", 1.0) == []


def row(question: str, answer: str, *objects: str, frame: int = 60) -> Any:
    box = {"graph": "g", "frame": frame, "seconds": frame / 30, "box": [0.0, 0.0, 1.0, 1.0], "attribute": None}
    context = "(2.0s) #C C puts the glass jug on the wooden table."
    evidence = [{**box, "object": name} for name in objects]
    texts = {"question": question, "answer": answer, "context": context}
    return {"id": "c:1:direct", "clip": "c", **texts, "evidence": evidence}


def test_attributes_stand_in_the_evidence_and_on_demand_in_the_question(tmp_path: Path) -> None:
    rows = [row("What did the camera wearer put on the table?", "jug", "jug", "table", "left_hand")]
    engine, funnel = Scripted(lambda text, seed: json.dumps({"table": "wooden", "jug": "glass"})), Counter[str]()
    with Stages(tmp_path, engine, ("attributes",)) as opened:
        (told,) = add(rows, opened, worded=False, funnel=funnel)
        (worded,) = add(rows, opened, worded=True, funnel=funnel)
    assert [item["attribute"] for item in told["evidence"]] == ["glass", "wooden", None]
    assert told["question"] == rows[0]["question"]
    assert worded["question"] == "What did the camera wearer put on the wooden table?"
    assert rows[0]["evidence"][0]["attribute"] is None, "what came in stays as it was"
    assert len(engine.asked) == 1 and '["jug", "table"]' in engine.asked[0], "the hand is in no sentence"
    assert stages.read(tmp_path, "attributes")[0]["attributes"] == {"table": "wooden", "jug": "glass"}


def test_where_no_sentence_names_an_object_nothing_is_asked(tmp_path: Path) -> None:
    engine = Scripted(lambda text, seed: "{}")
    rows = [row("?", "a", "spoon"), row("?", "b", "jug", frame=3000), row("?", "c")]
    with Stages(tmp_path, engine, ("attributes",)) as opened:
        assert add(rows, opened, worded=True, funnel=Counter()) == rows and engine.asked == []


@pytest.mark.parametrize(
    ("question", "name", "adjective", "answer", "worded"),
    [
        ("Where did she put the trey?", "trey", "red", "on shelf", "Where did she put the red trey?"),
        ("Where did she put the tray?", "trey", "red", "on shelf", "Where did she put the red tray?"),
        ("Where did she put the tablecloth?", "table", "red", "on shelf", "Where did she put the tablecloth?"),
        ("What did she put on the table?", "table", "red", "red cup", "What did she put on the table?"),
        ("What did she put on the red table?", "table", "red", "cup", "What did she put on the red table?"),
        ("What did she put on another table?", "table", "red", "cup", "What did she put on another table?"),
        ("What is on the a\\1 b?", "a\\1 b", "red", "cup", "What is on the red a\\1 b?"),
    ],
)
def test_the_adjective_goes_before_the_noun_once(
    question: str, name: str, adjective: str, answer: str, worded: str
) -> None:
    assert attributed(question, name, adjective, answer) == worded
