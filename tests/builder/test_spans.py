"""Clip starts from the two frame numberings, on files of the bytes that the public ones have."""

from __future__ import annotations

import json
import pickle  # only to write files of the public form; nothing is ever unpickled
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from builder.__main__ import app
from builder.easg.annotations import USUAL_NAMES, read_clips
from builder.easg.records import Clip, Graph
from builder.easg.spans import clip_spans
from builder.errors import BuildError

TEA = "0a1b2c3d-0000-4000-8000-00000000000a"
SOUP = "0a1b2c3d-0000-4000-8000-00000000000b"


def uid(number: int) -> str:
    return f"{number:064x}"


def clip(name: str, *frames: int) -> Clip:
    """A clip with a graph at each pnr frame of the full video; the uid of a graph is its frame."""
    graphs = (
        Graph(i, uid(f), {"pre": f - 9, "pnr": f, "post": f + 9}, (), {}, None) for i, f in enumerate(frames, start=1)
    )
    return Clip(name, "video", "train", 100, 100, tuple(graphs))


def release(graphs: dict[tuple[str, int], list[str]], protocol: int = 3) -> bytes:
    """The bytes of easg_train.pkl: {(clip, frame within it): uids of its annotations}."""
    boxes = {"pnr": np.array([(0.1, 0.2, 0.3, 0.4)], dtype=np.float32)}
    tree = {
        f"{name}_{frame:06d}": {
            "annotations": {uid: [{"obj": "pot", "bbox": boxes, "verb": "stir", "rel": "dobj"}] for uid in uids},
            "clip_frame_number": {"pre": frame - 9, "pnr": frame, "post": frame + 9},
        }
        for (name, frame), uids in graphs.items()
    }
    return pickle.dumps(tree, protocol=protocol)


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("protocol", range(1, pickle.HIGHEST_PROTOCOL + 1))
def test_the_start_is_the_difference_of_the_two_numberings(tmp_path: Path, protocol: int) -> None:
    file = write(tmp_path / "a.pkl", release({(TEA, 30): [uid(930)], (TEA, 75): [uid(975)]}, protocol))
    spans, warnings = clip_spans([clip(TEA, 930, 975)], [file])
    assert spans == {TEA: {"start_frame": 900, "first_frame": 921, "last_frame": 966}}
    assert warnings == []


def test_two_actions_of_one_frame_share_a_name(tmp_path: Path) -> None:
    file = write(tmp_path / "a.pkl", release({(TEA, 30): [uid(5), uid(930)]}))
    assert clip_spans([clip(TEA, 930)], [file])[0][TEA]["start_frame"] == 900


def test_clips_come_from_all_files_in_the_order_of_the_annotations(tmp_path: Path) -> None:
    train = write(tmp_path / "train.pkl", release({(SOUP, 30): [uid(930)]}))
    val = write(tmp_path / "val.pkl", release({(TEA, 30): [uid(60)]}))
    spans, _ = clip_spans([clip(TEA, 60), clip(SOUP, 930)], [train, val])
    assert {name: span["start_frame"] for name, span in spans.items()} == {TEA: 30, SOUP: 900}
    assert list(spans) == [TEA, SOUP]


def test_most_graphs_decide_and_the_others_are_told(tmp_path: Path) -> None:
    file = write(tmp_path / "a.pkl", release({(TEA, 30): [uid(930)], (TEA, 75): [uid(975)], (TEA, 99): [uid(1000)]}))
    spans, warnings = clip_spans([clip(TEA, 930, 975, 1000)], [file])
    assert spans[TEA]["start_frame"] == 900
    assert warnings == [f"clip {TEA}: starts at frame 900 by 2 of 3 graphs"]


def test_a_clip_that_no_file_numbers_is_left_out_with_a_warning(tmp_path: Path) -> None:
    file = write(tmp_path / "a.pkl", release({(TEA, 30): [uid(930)]}))
    spans, (warning,) = clip_spans([clip(TEA, 930), clip(SOUP, 7)], [file])
    assert list(spans) == [TEA]
    assert SOUP in warning and "a.pkl" in warning


def test_a_start_before_the_video_is_left_out_with_a_warning(tmp_path: Path) -> None:
    file = write(tmp_path / "a.pkl", release({(TEA, 30): [uid(930)], (SOUP, 50): [uid(7)]}))
    spans, (warning,) = clip_spans([clip(TEA, 930), clip(SOUP, 7)], [file])
    assert list(spans) == [TEA]
    assert "-43" in warning


@given(
    st.dictionaries(st.integers(0, 9_000), st.just(None), min_size=1, max_size=20), st.integers(0, 2**20), st.binary()
)
def test_any_start_is_found_again(
    tmp_path_factory: pytest.TempPathFactory, frames: dict[int, None], start: int, junk: bytes
) -> None:
    data = release({(TEA, frame): [uid(start + frame)] for frame in frames})
    file = write(tmp_path_factory.mktemp("pkl") / "a.pkl", junk + data)
    spans, warnings = clip_spans([clip(TEA, *(start + frame for frame in frames))], [file])
    assert (spans[TEA]["start_frame"], warnings) == (start, [])


class Bomb:
    def __reduce__(self) -> Any:
        return print, ("unpickled",)


def test_a_pickle_is_never_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "a.pkl", pickle.dumps(Bomb()) + release({(TEA, 30): [uid(930)]}))
    assert clip_spans([clip(TEA, 930)], [file])[0]
    assert capsys.readouterr().out == ""


def test_a_file_that_is_something_else_is_named(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"a\.pkl: no graph names"):
        clip_spans([clip(TEA, 930)], [write(tmp_path / "a.pkl", b"<html>404</html>")])
    with pytest.raises(BuildError, match=r"none\.pkl: cannot be read"):
        clip_spans([clip(TEA, 930)], [tmp_path / "none.pkl"])


def test_files_of_other_clips_are_an_error(tmp_path: Path) -> None:
    file = write(tmp_path / "a.pkl", release({(SOUP, 30): [uid(930)]}))
    with pytest.raises(BuildError, match=r"a\.pkl: no clip of the annotations"):
        clip_spans([clip(TEA, 930)], [file])


def test_the_command_writes_what_the_build_reads(raw: dict[str, Any], save: Callable[[dict[str, Any]], Path]) -> None:
    del raw["spans"]
    annotations = raw["annotations"]
    for name, new in (("kitchen", TEA), ("garden", SOUP)):
        annotations[new] = annotations.pop(name)
        for graph in annotations[new]["graphs"]:
            graph["graph_uid"] = uid(graph["pnr"])
    folder = save({"annotations": annotations})
    write(folder / "easg_train.pkl", release({(TEA, 30): [uid(60)]}))
    write(folder / "easg_val.pkl", release({(SOUP, 90): [uid(90)]}))
    done = CliRunner().invoke(app, ["spans", "--source", str(folder)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "starts of 2 of 2 clips" in done.output
    clips, _ = read_clips(folder / USUAL_NAMES["annotations"], spans=folder / USUAL_NAMES["spans"])
    assert {c.uid: c.start_frame for c in clips} == {TEA: 30, SOUP: 0}


def test_the_command_names_what_is_missing(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["spans", "--source", str(tmp_path)])
    assert done.exit_code == 2
    assert "EASG_unict_master_final.json: no such file" in done.output


@pytest.mark.real
def test_the_real_starts_come_out_of_files_of_the_public_form(upstream: Path, tmp_path: Path) -> None:
    """All 221 starts. In three clips `last_frame` is that of the last graph in the file, up to 15 frames earlier."""
    clips, _ = read_clips(upstream / USUAL_NAMES["annotations"])
    expected = json.loads((upstream / USUAL_NAMES["spans"]).read_text(encoding="utf-8"))
    graphs: dict[tuple[str, int], list[str]] = {}
    for c in clips:
        for graph in c.graphs:
            graphs.setdefault((c.uid, graph.frames["pnr"] - expected[c.uid]["start_frame"]), []).append(graph.uid)
    spans, warnings = clip_spans(clips, [write(tmp_path / "easg.pkl", release(graphs))])
    assert warnings == []
    assert list(spans) == list(expected)
    assert all(spans[name].keys() == expected[name].keys() for name in spans)
    assert all(spans[name]["start_frame"] == expected[name]["start_frame"] for name in spans)
    assert all(spans[name]["first_frame"] == expected[name]["first_frame"] for name in spans)
    later = [spans[name]["last_frame"] - expected[name]["last_frame"] for name in spans]
    assert sum(map(bool, later)) == 3 and min(later) == 0 and max(later) == 15
