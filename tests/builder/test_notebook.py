"""Votes and purpose counts out of what the public notebook printed, on notebooks of the same printed form."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from builder.__main__ import app
from builder.easg.annotations import USUAL_NAMES, read_clips
from builder.easg.notebook import read_notebook
from builder.easg.questions import questions
from builder.easg.records import Clip
from builder.errors import BuildError

VOTES = ["Clip kitchen processed in 42.58 seconds", "Output: {'2': 0.0, '1': 0.8888888888888888, '3': 100, '4': 0.5}"]
COUNTS = ["Generating questions for clip kitchen", "Successfully generated purpose questions: 3"]


def stream(*lines: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": [f"{line}\n" for line in lines]}


def notebook(path: Path, *cells: list[dict[str, Any]]) -> Path:
    code = {"cell_type": "code", "execution_count": 1, "metadata": {}, "source": ["print('Output: {}')"]}
    text = [{"cell_type": "markdown", "metadata": {}, "source": ["# Votes"]}, *({**code, "outputs": c} for c in cells)]
    content = {"cells": text, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@pytest.fixture
def clips(raw: dict[str, Any], save: Callable[[dict[str, Any]], Path]) -> list[Clip]:
    """`kitchen` (graphs 1 to 4 at frames 60 to 150) and `garden` (2 and 3 at 90 and 120)."""
    return read_clips(save({"annotations": raw["annotations"]}) / USUAL_NAMES["annotations"])[0]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "generate_QA.ipynb"


def test_scores_and_counts_are_read_as_printed(file: Path, clips: list[Clip]) -> None:
    notebook(file, [stream(*VOTES)], [stream(*COUNTS, "Total questions generated: 3")])
    votes, counts, warnings = read_notebook(file, clips)
    assert votes == {
        "threshold": 0.5,
        "inferred_clips": [],
        "scores": {"kitchen": {"2": 0.0, "1": 0.8888888888888888, "3": 100, "4": 0.5}},
    }
    assert list(votes["scores"]["kitchen"]) == ["2", "1", "3", "4"]
    assert counts == {"kitchen": 3}
    assert warnings == ["clip garden: neither scores nor asked actions were printed; no votes"]


def test_clips_without_printed_scores_are_inferred_from_the_asked_frames_and_marked(
    file: Path, clips: list[Clip]
) -> None:
    asked = "No mapping found for clip garden frame 90"
    votes, _, warnings = read_notebook(notebook(file, [stream(*VOTES)], [stream(*COUNTS)], [stream(asked)]), clips)
    assert votes["inferred_clips"] == ["garden"]
    assert list(votes["scores"]) == ["kitchen", "garden"]
    assert votes["scores"]["garden"] == {"2": 0.0, "3": 1.0}
    assert warnings == []


def test_asked_frames_of_a_clip_with_printed_scores_change_nothing(file: Path, clips: list[Clip]) -> None:
    asked = "No mapping found for clip kitchen frame 90"
    votes, _, _ = read_notebook(notebook(file, [stream(*VOTES, asked)], [stream(*COUNTS)]), clips)
    assert votes["inferred_clips"] == []
    assert votes["scores"]["kitchen"]["4"] == 0.5


def test_an_asked_frame_that_is_no_candidates_is_told(file: Path, clips: list[Clip]) -> None:
    asked = ["No mapping found for clip garden frame 90", "No mapping found for clip garden frame 91"]
    votes, _, (warning,) = read_notebook(notebook(file, [stream(*VOTES, *asked)], [stream(*COUNTS)]), clips)
    assert votes["scores"]["garden"] == {"2": 0.0, "3": 1.0}
    assert "garden" in warning and "frame 91" in warning


def test_a_progress_bar_between_two_lines_and_colours_do_not_matter(file: Path, clips: list[Clip]) -> None:
    bar = stream("100%|████| 16/16 [00:00<00:00]", "Output: {'1': 0.1}", name="stderr")
    cell = [
        stream("\x1b[32mClip kitchen processed in 15.52 seconds\x1b[0m", "Error: Extracted text is not valid JSON."),
        bar,
        stream("Warning: 1 out of 5 outputs could not be parsed."),
        {"output_type": "stream", "name": "stdout", "text": "Output: {'2': 0.4"},
        bar,
        stream(", '3': \x1b[1m0.6\x1b[0m}"),
    ]
    later = [stream(COUNTS[0]), bar, stream(COUNTS[1])]
    votes, counts, _ = read_notebook(notebook(file, cell, later), clips)
    assert votes["scores"]["kitchen"] == {"2": 0.4, "3": 0.6}
    assert counts == {"kitchen": 3}


def test_printed_text_may_be_a_value_of_a_cell(file: Path, clips: list[Clip]) -> None:
    values: list[dict[str, Any]] = [
        {"output_type": "execute_result", "data": {"text/plain": "\n".join(VOTES)}, "metadata": {}},
        {"output_type": "display_data", "data": {"image/png": "iVBO"}, "metadata": {}},
        {"output_type": "error", "ename": "KeyError", "evalue": "1", "traceback": []},
    ]
    votes, _, _ = read_notebook(notebook(file, values, [stream(*COUNTS)]), clips)
    assert len(votes["scores"]["kitchen"]) == 4


@pytest.mark.parametrize(
    "printed",
    [
        "{'2': 0.0, '3'",
        "{'2': 0.0, '3': 0.",
        "{2: 0.5}",
        "{'2': 'unique'}",
        "{'2': -1}",
        "{'2': 1e999}",
        f"{{'2': {'9' * 400}}}",
        "{'2', '3'}",
    ],
)
def test_scores_that_are_cut_or_damaged_are_not_used_by_half(file: Path, clips: list[Clip], printed: str) -> None:
    cell = [stream(*VOTES, "Clip garden processed in 1.0 seconds", f"Output: {printed}")]
    asked = [stream("No mapping found for clip garden frame 120")]
    votes, _, (warning,) = read_notebook(notebook(file, cell, [stream(*COUNTS)], asked), clips)
    assert votes["scores"]["garden"] == {"2": 1.0, "3": 0.0}
    assert votes["inferred_clips"] == ["garden"]
    assert "garden" in warning and "cut" in warning


def test_a_clip_that_failed_does_not_take_the_scores_of_the_next(file: Path, clips: list[Clip]) -> None:
    cell = [stream("Clip garden processed in 3.11 seconds", *VOTES)]
    votes, _, _ = read_notebook(notebook(file, cell, [stream(*COUNTS)]), clips)
    assert list(votes["scores"]) == ["kitchen"]


def test_a_clip_whose_purposes_failed_has_none(file: Path, clips: list[Clip]) -> None:
    cell = [stream("Generating questions for clip garden", *COUNTS)]
    _, counts, _ = read_notebook(notebook(file, [stream(*VOTES)], cell), clips)
    assert counts == {"garden": 0, "kitchen": 3}


def test_unknown_clips_are_left_out_and_told(file: Path, clips: list[Clip]) -> None:
    cell = [stream(*VOTES, "Clip attic processed in 1.0 seconds", "Output: {'1': 0.5}")]
    votes, _, warnings = read_notebook(notebook(file, cell, [stream(*COUNTS)]), clips)
    assert "attic" not in votes["scores"]
    assert "clip attic: printed, but the annotations have no such clip; left out" in warnings


def test_of_scores_that_were_printed_twice_the_later_count(file: Path, clips: list[Clip]) -> None:
    cell = [stream(*VOTES, VOTES[0], "Output: {'2': 0.9}")]
    votes, _, warnings = read_notebook(notebook(file, cell, [stream(*COUNTS)]), clips)
    assert votes["scores"]["kitchen"] == {"2": 0.9}
    assert any("twice" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no valid JSON"),
        ("import json", "no valid JSON"),
        ('{"cells": [', "no valid JSON"),
        ("[" * 100_000, "no valid JSON"),
        ("[]", "an object with cells"),
        ('{"kitchen": {"graphs": []}}', "an object with cells"),
        ('{"cells": ["a"]}', "an object with cells"),
        ('{"cells": [{"outputs": [3]}]}', "an object with cells"),
        ('{"cells": [{"outputs": [{"text": [3]}]}]}', "an object with cells"),
        ('{"cells": []}', "no cell printed votes"),
    ],
)
def test_a_file_that_is_no_notebook_is_named(file: Path, clips: list[Clip], content: str, message: str) -> None:
    file.write_text(content)
    with pytest.raises(BuildError, match=message) as error:
        read_notebook(file, clips)
    assert str(error.value).startswith(f"{file}: ")


def test_a_notebook_without_outputs_says_what_is_missing(file: Path, clips: list[Clip]) -> None:
    with pytest.raises(BuildError, match="no cell printed votes"):
        read_notebook(notebook(file, [stream(*COUNTS)]), clips)
    with pytest.raises(BuildError, match="no cell printed purpose counts"):
        read_notebook(notebook(file, [stream(*VOTES)]), clips)
    with pytest.raises(BuildError, match=r"none\.ipynb: cannot be read"):
        read_notebook(file.with_name("none.ipynb"), clips)


@given(
    scores=st.dictionaries(st.integers(1, 300).map(str), st.floats(0, 1) | st.just(100), max_size=20),
    count=st.integers(0, 9),
    noise=st.lists(
        st.text(alphabet=st.characters(codec="utf-8"), max_size=30).filter(lambda line: "Output" not in line)
    ),
)
def test_whatever_was_printed_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, scores: dict[str, float], count: int, noise: list[str]
) -> None:
    file = tmp_path_factory.mktemp("notebook") / "a.ipynb"
    votes = stream(*noise, "Clip kitchen processed in 0.10 seconds", *noise, f"Output: {scores}", *noise)
    counts = stream(COUNTS[0], f"Successfully generated purpose questions: {count}")
    kitchen = Clip("kitchen", "video", "val", 1, 1, ())
    read, counted, _ = read_notebook(notebook(file, [votes], [counts]), [kitchen])
    assert (read["scores"], counted) == ({"kitchen": scores}, {"kitchen": count})


def test_the_command_writes_what_the_build_reads(raw: dict[str, Any], save: Callable[[dict[str, Any]], Path]) -> None:
    folder = save({"annotations": raw["annotations"], "narrations": raw["narrations"]})
    asked = stream("No mapping found for clip garden frame 90")
    file = notebook(folder / "generate_QA.ipynb", [stream(*VOTES)], [stream(*COUNTS)], [asked])
    done = CliRunner().invoke(app, ["read-notebook", str(file)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "votes of 2 clips, 1 of them inferred; 3 purpose questions in 1 clips" in done.output
    clips, _ = read_clips(**{role: folder / USUAL_NAMES[role] for role in USUAL_NAMES if role != "spans"})
    assert {clip.uid: clip.votes for clip in clips}["garden"] == {2: 0.0, 3: 1.0}


def test_the_command_takes_the_annotations_and_the_folder_that_it_is_given(
    raw: dict[str, Any], save: Callable[[dict[str, Any]], Path], tmp_path: Path
) -> None:
    folder = save({"annotations": raw["annotations"]})
    file = notebook(tmp_path / "a.ipynb", [stream(*VOTES)], [stream(*COUNTS)])
    done = CliRunner().invoke(app, ["read-notebook", str(file)])
    assert (done.exit_code, "no such file" in done.output) == (2, True)
    given = ["--annotations", str(folder / USUAL_NAMES["annotations"]), "--out", str(tmp_path / "new" / "out")]
    done = CliRunner().invoke(app, ["read-notebook", str(file), *given], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "new" / "out" / USUAL_NAMES["votes"]).exists()


@pytest.mark.real
def test_the_real_record_comes_out_of_a_notebook_that_printed_it(upstream: Path, file: Path) -> None:
    """A notebook is written that prints the real record the way the public one does: three clips lack their scores,
    and every asked action has no mapping. Out of it come the real files again, order and all."""
    clips, _ = read_clips(upstream / USUAL_NAMES["annotations"], votes=upstream / USUAL_NAMES["votes"])
    recorded = json.loads((upstream / USUAL_NAMES["votes"]).read_text(encoding="utf-8"))
    counts = json.loads((upstream / USUAL_NAMES["purpose_counts"]).read_text(encoding="utf-8"))
    votes_cell, counts_cell = [], []
    for name, scores in recorded["scores"].items():
        if name not in recorded["inferred_clips"]:
            votes_cell.append(stream(f"Clip {name} processed in 9.99 seconds", f"Output: {scores}"))
    for name, count in counts.items():
        counts_cell += [stream(f"Generating questions for clip {name}"), stream("  0%|", name="stderr")]
        counts_cell.append(stream(f"Successfully generated purpose questions: {count}"))
    asked = {(clip.uid, slots.graph.frames["pnr"]): None for clip in clips for slots in questions(clip)}
    lines = [f"No mapping found for clip {name} frame {frame}" for name, frame in asked]
    votes, counted, warnings = read_notebook(notebook(file, votes_cell, counts_cell, [stream(*lines)]), clips)
    assert votes == recorded
    assert counted == counts
    assert sum(counted.values()) == 668
    assert json.dumps(votes) == json.dumps(recorded)
    assert len(warnings) == 2  # the two clips without votes
