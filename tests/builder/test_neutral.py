"""builder/easg/neutral.py: no name of a replaced object is left, and what cannot be told apart is left out."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.easg import wording
from builder.easg.grounding import occurs, plain
from builder.easg.neutral import neutral_row, with_boxes
from easg_bench import QA, Evidence, load


def item(
    name: str, box: tuple[float, ...] = (0.1, 0.2, 0.4, 0.5), frame: int = 90, attribute: str | None = None
) -> Evidence:
    return {
        "graph": "g",
        "frame": frame,
        "seconds": frame / 30,
        "object": name,
        "box": list(box),
        "attribute": attribute,
    }


def row(question: str, *evidence: Evidence | str) -> QA:
    return {
        "id": "kitchen:4:before",
        "clip": "kitchen",
        "video": "v",
        "type": "before",
        "question": question,
        "answer": "pick jug",
        "choices": None,
        "gold": None,
        "context": "",
        "frame": 90,
        "start_s": 1.0,
        "end_s": 4.0,
        "clip_start_s": 0.0,
        "evidence": [item(one) if isinstance(one, str) else one for one in evidence],
        "review": None,
    }


def neutral(question: str, *evidence: Evidence | str) -> str | None:
    made = neutral_row(row(question, *evidence), Counter())
    return made["question"] if made else None


def test_each_object_becomes_the_number_of_its_evidence() -> None:
    asked = row(
        "What did the camera wearer do right before putting the jug into the cabinet?",
        item("cabinet", (0.5, 0.5, 1.0, 1.0)),
        item("left_hand"),
        item("jug"),
    )
    made = neutral_row(asked, Counter())
    assert made is not None
    assert made["question"] == "What did the camera wearer do right before putting <region 1> into <region 2>?"
    assert [one["object"] for one in made["evidence"]] == ["jug", "cabinet"]
    assert made["question_coordinates"] == (
        "What did the camera wearer do right before putting <region 1> into <region 2>?\n"
        "(<region 1> is [0.100, 0.200, 0.400, 0.500] at 3.00 s; <region 2> is [0.500, 0.500, 1.000, 1.000] at 3.00 s; "
        "left, top, right, bottom in fractions of the frame)"
    )
    assert (made["id"], made["answer"], made["frame"]) == (asked["id"], asked["answer"], 90)
    assert asked["question"].endswith("cabinet?") and len(asked["evidence"]) == 3, "the row itself is left as it was"


@pytest.mark.parametrize(
    ("question", "evidence", "made"),
    [
        ("Where is the tray?", ["trey"], "Where is <region 1>?"),  # as the wording corrects it
        ("Where are the pipes?", ["pipe"], "Where are <region 1>?"),
        ("Where is the wire cutter for the wire?", ["wire", "wire_cutter"], "Where is <region 1> for <region 2>?"),
        ("Did their hand touch The Jug?", ["hand", "jug"], "Did <region 1> touch <region 2>?"),
        ("What is put into another cardboard?", ["cardboard:1"], "What is put into <region 1>?"),
        ("What is done with the other bowl?", ["bowl:1"], "What is done with <region 1>?"),
        (
            "What is put from the bowl into another bowl?",
            ["bowl:1", "bowl"],
            "What is put from <region 1> into <region 2>?",
        ),
        ("Where is the <jug> now?", ["jug"], "Where is <region 1> now?"),
        ("What is rinsed with water?", ["water"], "What is rinsed with <region 1>?"),
        ("Is the pan in the panel?", ["pan"], "Is <region 1> in the panel?"),
        ("Why was the pan put on a pan?", ["pan"], "Why was <region 1> put on <region 1>?"),
        ("What did the camera wearer put on the camera?", ["camera"], "What did the camera wearer put on <region 1>?"),
        ("What is a (b) [c]?", ["(b)"], "What is <region 1> [c]?"),
        ("Where is the 🙂?", ["🙂"], "Where is <region 1>?"),
    ],
)
def test_the_ways_in_which_a_text_names_an_object(question: str, evidence: list[str], made: str) -> None:
    assert neutral(question, *evidence) == made


def test_an_attribute_goes_with_its_object() -> None:
    assert neutral("What is on the wooden table?", item("table", attribute="wooden")) == "What is on <region 1>?"


@pytest.mark.parametrize(
    ("question", "evidence", "why"),
    [
        ("Where is the jug?", [], "questions without a grounded object"),
        ("Where is the jug?", ["cup"], "questions without a grounded object"),
        ("What is moved out of one container with another?", ["container"], "questions without a grounded object"),
        ("What is moved into another cup?", ["cup"], "questions without a grounded object"),
        ("Is the cardboard put into another cardboard?", ["cardboard"], "questions that name two things alike"),
        ("What did the camera wearer iron with the iron?", ["iron"], "questions that name two things alike"),
        ("Is the wood one of the pieces of wood?", ["wood"], "questions that name two things alike"),
    ],
)
def test_what_cannot_be_replaced_throughout_is_left_out_and_counted(
    question: str, evidence: list[str], why: str
) -> None:
    counts: Counter[str] = Counter()
    assert neutral_row(row(question, *evidence), counts) is None
    assert counts == {f"{why}: not language-neutral": 1}


def test_of_several_boxes_the_largest_is_the_region() -> None:
    small, large, again = item("jug"), item("jug", (0, 0, 1, 0.5), 120), item("jug", (0, 0.5, 1, 1), 150)
    made = neutral_row(row("What was done with the jug?", small, large, again), Counter())
    assert made and made["evidence"] == [large]


def test_a_question_without_regions_has_no_boxes_in_words() -> None:
    assert with_boxes("Why?", [item("x")]).startswith("Why?\n(<region 1> is [0.100")


WORDS = st.text(st.characters(categories=("L", "N", "P", "S", "Zs")), min_size=1, max_size=12)


@given(st.lists(WORDS, min_size=1, max_size=3), st.text(max_size=30))
def test_whatever_objects_are_called_none_that_was_replaced_is_left(names: list[str], rest: str) -> None:
    asked = row(f"What did the camera wearer do with {' and '.join(f'the {name}' for name in names)} {rest}?", *names)
    made = neutral_row(asked, Counter())
    if made is None:
        return
    assert made["evidence"] and _names_left(made) == []


def _names_left(made: dict[str, Any]) -> list[str]:
    left = re.sub(r"<region \d+>", "", made["question"]).replace(wording.WEARER, "").lower()
    return [
        e["object"]
        for e in made["evidence"]
        if any(occurs(n, left) for n in {plain(e["object"]), *wording.names(e["object"])})
    ]


@pytest.mark.real
def test_of_the_real_questions_1675_are_neutral_and_name_no_replaced_object(real_build: Path) -> None:
    rows, default = list(load(real_build, "language_neutral")), {row["id"]: row for row in load(real_build)}
    assert Counter(row["type"] for row in rows) == {
        "purpose": 663,
        "direct": 172,
        "indirect": 308,
        "before": 268,
        "after": 264,
    }
    assert [made["id"] for made in rows if _names_left(made)] == []
    for made in rows:
        numbers = [int(n) for n in re.findall(r"<region (\d+)>", made["question"])]
        assert sorted(set(numbers)) == list(range(1, len(made["evidence"]) + 1))
        of_row = default[made["id"]]
        assert all(one in of_row["evidence"] for one in made["evidence"])
        assert made["answer"] == of_row["answer"] and made["question"].count("<region") == len(numbers)
    log = (real_build.with_name("build.log")).read_text()
    assert "    126  questions without a grounded object: not language-neutral\n" in log
    assert "      6  questions that name two things alike: not language-neutral\n" in log
