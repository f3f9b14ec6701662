"""builder/easg/stats.py: what is counted, and a picture whose bytes depend on nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

from builder.__main__ import app
from builder.easg.stats import Stats, count, draw, text
from easg_bench import load

Row = dict[str, Any]
BOX = {"graph": "g", "frame": 1, "seconds": 0.0, "object": "jug", "box": [0, 0, 1, 1], "attribute": None}


def row(type: str = "direct", answer: str | None = "jug", clip: str = "a", boxes: int = 1) -> Row:
    return {"type": type, "clip": clip, "question": "Where is it?", "answer": answer, "evidence": [BOX] * boxes}


def graph(clip: str, start: float, verb: str | None, thing: str = "jug", *relations: str) -> Row:
    pairs = [{"relation": relation, "tail": "table"} for relation in relations]
    return {"clip": clip, "start_s": start, "end_s": start + 2, "verb": verb, "object": thing, "relations": pairs}


ROWS = [row(), row("before", "pick cup"), row("before", "drop the jug", "b"), row("purpose", "Pouring.", "b", boxes=0)]
GRAPHS = [graph("a", 10, "put", "jug", "on", "with"), graph("a", 4, None), graph("b", 0, "put", "cup", "on")]


def test_everything_is_counted() -> None:
    stats = count(ROWS, GRAPHS)
    assert stats == Stats(
        questions={"direct": 1, "before": 2, "purpose": 1},  # type: ignore[arg-type]
        grounded={"direct": 1, "before": 2, "purpose": 0},  # type: ignore[arg-type]
        answer_grounded={"direct": 1, "before": 1, "purpose": 0},  # type: ignore[arg-type]
        question_words={3: 4},  # type: ignore[arg-type]
        answer_words={1: 2, 2: 1, 3: 1},  # type: ignore[arg-type]
        per_clip={"a": 2, "b": 2},  # type: ignore[arg-type]
        verbs={"put": 2},  # type: ignore[arg-type]
        objects={"jug": 1, "cup": 1},  # type: ignore[arg-type]
        relations={"on": 2, "with": 1},  # type: ignore[arg-type]
        clip_seconds={"a": 8, "b": 2},
    )


def test_batches_of_clips_add_up_to_the_whole() -> None:
    stats = Stats()
    for clip in "ab":
        count([r for r in ROWS if r["clip"] == clip], [g for g in GRAPHS if g["clip"] == clip], stats)
    assert stats == count(ROWS, GRAPHS)


def test_the_text_names_types_lengths_and_the_most_frequent_words() -> None:
    assert text(count(ROWS, GRAPHS)).splitlines() == [
        "type        questions        grounded  answer grounded",
        "purpose             1   25%         0                0",
        "direct              1   25%         1                1",
        "before              2   50%         2                1",
        "all                 4               3                2",
        "",
        "question words: 3 to 3, median 3",
        "answer words: 1 to 3, median 1.5",
        "questions a clip, 2 clips: 2 to 2, median 2",
        "annotated seconds a clip, 2 clips: 2 to 8, median 5",
        "verbs (1): put 2",
        "objects (2): cup 1, jug 1",
        "relations (2): on 2, with 1",
    ]
    assert "verbs" not in text(count(ROWS, []))


def test_the_same_statistics_give_the_same_bytes_and_others_other_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import matplotlib

    def picture(name: str, stats: Stats) -> bytes:
        draw(stats, tmp_path / name)
        return (tmp_path / name).read_bytes()

    first = picture("a.png", count(ROWS, GRAPHS))
    monkeypatch.setitem(matplotlib.rcParams, "font.size", 30.0)
    assert picture("b.png", count(ROWS, GRAPHS)) == first, "a user's own matplotlib settings change nothing"
    assert picture("c.png", count(ROWS[1:], GRAPHS)) != first
    with Image.open(tmp_path / "a.png") as image:
        assert image.size == (1500, 1260) and not image.info.get("Software")


@pytest.mark.filterwarnings("error")
def test_nothing_known_and_odd_labels_are_drawn_without_a_word(tmp_path: Path) -> None:
    draw(count([row()], []), tmp_path / "a.png")
    odd = [graph("a", 1, label, label, label) for label in ("$x_1$ and $", "كوب", "🙂", "a" * 300, "\n", "<b>&")]
    draw(count([row("why?"), row("direct", None)], odd), tmp_path / "b.png")
    assert (tmp_path / "b.png").read_bytes() != (tmp_path / "a.png").read_bytes()


def test_the_command_line_prints_and_draws_what_the_card_shows(
    raw: dict[str, Any], save: Callable[[dict[str, Any]], Path], tmp_path: Path
) -> None:
    out = tmp_path / "easg-bench"
    assert CliRunner().invoke(app, ["build", "--source", str(save(raw)), "--out", str(out)]).exit_code == 0
    shown = CliRunner().invoke(app, ["stats", str(out), "--out", str(tmp_path / "new")])
    assert shown.exit_code == 0, shown.output
    assert "all                17 " in shown.stdout
    assert (tmp_path / "new" / "statistics.png").read_bytes() == (out / "statistics.png").read_bytes()
    missing = CliRunner().invoke(app, ["stats", str(tmp_path / "nowhere")])
    assert missing.exit_code == 2 and "is no dataset repo" in missing.stderr


@pytest.mark.real
def test_the_real_figures(real_build: Path) -> None:
    stats = count(load(real_build), load(real_build, "graphs"))
    assert stats.questions == {"purpose": 668, "direct": 284, "indirect": 315, "before": 272, "after": 268}
    assert stats.grounded.total() == 668 + 1139
    assert (stats.verbs["pick"], len(stats.verbs)) == (872, 226)
    assert stats.relations["onto"] == 1 and len(stats.relations) == 15
    assert 150 < sum(stats.clip_seconds.values()) / 221 < 200, "the paper says 3.1 minutes"
