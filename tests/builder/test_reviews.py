"""builder/easg/reviews.py: agreement of readers, and the configs compared."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from builder.__main__ import app
from builder.easg import readings
from builder.easg.readings import Label, Review
from builder.easg.reviews import Agreement, agreement, by_type, card_text, text


def review(id: str, *labels: str) -> Review:
    return Review(id, "?", "a", tuple(Label(f"reader {n}", label, None, "") for n, label in enumerate(labels, 1)))


def test_kappa_is_agreement_beyond_chance() -> None:
    """Worked by hand: 3 of 4 alike; chance = (3 x 2 + 1 x 2) / 16 = 1/2, so kappa = (3/4 - 1/2) / (1/2)."""
    found = agreement([("clear", "clear"), ("clear", "clear"), ("clear", "repeats"), ("repeats", "repeats")])
    assert found == Agreement(4, 3, 0.5) and found.raw == 0.75


def test_kappa_of_readers_who_always_say_the_same_word_is_unknown() -> None:
    assert agreement([("clear", "clear")] * 3) == Agreement(3, 3, None)
    assert agreement([]) is None


@pytest.mark.parametrize("two", [[("clear", "repeats"), ("repeats", "clear")]])
def test_kappa_below_chance_is_negative(two: list[tuple[str, str]]) -> None:
    assert agreement(two) == Agreement(2, 0, -1.0)


def test_questions_with_one_reader_are_in_no_agreement() -> None:
    assert by_type([review("a:1:direct", "clear")]) == {} and card_text([review("a:1:direct", "clear")]) == ""


def test_what_each_config_misses_is_counted() -> None:
    reviews = [
        review("a:1:direct", "clear", "clear"),
        review("a:2:direct", "clear", "second_answer"),
        review("a:3:indirect:1", "clear", "clear"),
        review("a:4:before", "repeats", "repeats"),
    ]
    rows = [
        {"id": "a:purpose:cup", "type": "purpose", "review": "supported"},
        *({"id": one.id, "type": one.type, "review": one.review} for one in reviews),
    ]
    said = text(rows, {"a:1:direct", "a:2:direct"}, reviews)
    assert "action questions: 4; unambiguous by exact strings 2, reviewed 2, both 1" in said
    assert "unambiguous, but not reviewed: 1 (clear/second_answer 1)" in said
    assert "reviewed, but not unambiguous: 1 (indirect 1)" in said
    assert "reviewed                          3         1         1         1         0" in said
    assert text([{"id": "a", "type": "direct", "review": None}], set(), reviews) == ""


def test_the_agreement_of_the_projects_readers() -> None:
    found = by_type(readings.read().reviews.values())
    assert {kind: (one.n, one.same, round(one.kappa or 0, 2)) for kind, one in found.items()} == {
        "direct": (284, 268, 0.85),
        "indirect": (315, 290, 0.77),
        "before": (272, 251, 0.87),
        "after": (268, 241, 0.84),
        "all": (1139, 1050, 0.85),
    }
    assert "| all | 1,139 | 92.2% | 0.85 |" in card_text([*readings.read().reviews.values()])


@pytest.mark.real
def test_the_command_line_prints_them(real_build: Path) -> None:
    said = CliRunner().invoke(app, ["stats", str(real_build)]).stdout
    assert "action questions: 1,139; unambiguous by exact strings 853, reviewed 711, both 612" in said
    assert "all             1,139       92.2%   0.85" in said
    assert "Two readers labelled the action questions" in (real_build / "README.md").read_text()
