"""builder/easg/generic.py: which pairs are left out as generic."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from scripted import Scripted

from builder import stages
from builder.easg.generic import PAIRS, filter_rows, prompt
from builder.stages import Stages


def rows(count: int, clip: str = "c") -> list[Any]:
    return [
        {"id": f"{clip}:{i}:direct", "clip": clip, "question": f"What {{did}} \"{i}\" 🍵?", "answer": f"thing {i}"}
        for i in range(1, count + 1)
    ]  # fmt: skip


def numbers(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"^(\d+): \{", text, re.M)]


def test_the_prompt_shows_each_pair_as_json() -> None:
    text = prompt(rows(2), 1)[0]["content"]
    assert json.loads(re.findall(r"^2: (.*)$", text, re.M)[0]) == {
        "question": 'What {did} "2" 🍵?',
        "answer": "thing 2",
    }


def test_a_pair_is_left_out_if_more_than_half_of_its_labels_say_generic(tmp_path: Path) -> None:
    of_run = {  # pair -> label in runs 1, 2, 3
        1: ["generic", "generic", "specific"],
        2: ["generic", "specific", None],  # a tie stays
        3: ["specific", "specific", "specific"],
        4: [None, None, "generic"],
        5: [None, None, None],
        6: ["maybe", "maybe", "generic"],  # no labels; the one that is counts
    }
    engine = Scripted(lambda text, seed: json.dumps({n: x[seed - 1] for n, x in of_run.items() if x[seed - 1]}))  # type: ignore[index]
    funnel = Counter[str]()
    with Stages(tmp_path, engine, ("generic",)) as opened:
        kept = filter_rows(rows(6), opened, runs=3, funnel=funnel)
    assert [row["id"] for row in kept] == ["c:2:direct", "c:3:direct", "c:5:direct"]
    assert funnel["questions left out as generic"] == 3
    assert funnel["questions without a specific/generic vote (kept)"] == 1
    lines = {line["id"]: line for line in stages.read(tmp_path, "generic")}
    assert lines["c:1:direct"]["decision"] == "left out" and lines["c:1:direct"]["reason"].startswith(
        "2 of 3 say generic"
    )
    assert [len(line["replies"]) for line in lines.values()] == [3] * 6


def test_pairs_of_a_clip_share_prompts_that_are_not_too_long(tmp_path: Path) -> None:
    engine = Scripted(lambda text, seed: json.dumps(dict.fromkeys(numbers(text), "specific")))
    given = [*rows(45), *rows(3, "d")]
    with Stages(tmp_path, engine, ("generic",)) as opened:
        assert filter_rows(given, opened, runs=1, funnel=Counter()) == given
    assert sorted(len(numbers(text)) for text in engine.asked) == [3, 5, PAIRS, PAIRS]


@pytest.mark.parametrize(
    "reply", ["", "Lo siento.", "generic " * 8000, '{"pairs": {}}', prompt(rows(3), 1)[0]["content"]]
)
def test_replies_of_no_use_leave_nothing_out(reply: str, tmp_path: Path) -> None:
    funnel = Counter[str]()
    with Stages(tmp_path, Scripted(lambda text, seed: reply), ("generic",)) as opened:
        assert filter_rows(rows(3), opened, runs=2, funnel=funnel) == rows(3)
    assert funnel["generic replies that cannot be read"] == 2


def test_no_rows_ask_nothing(tmp_path: Path) -> None:
    engine = Scripted(lambda text, seed: "")
    with Stages(tmp_path, engine, ("generic",)) as opened:
        assert filter_rows([], opened, runs=2, funnel=Counter()) == [] and engine.asked == []
