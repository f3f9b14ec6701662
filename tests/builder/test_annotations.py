"""builder/easg/annotations.py: files in, Clip records out; bad files are refused by name, odd ones counted."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.easg.annotations import USUAL_NAMES, action_of, clip_box, read_clips
from builder.easg.records import Action, Box, Clip
from builder.errors import BuildError

Save = Callable[[dict[str, Any]], Path]


def read(folder: Path) -> tuple[list[Clip], Counter[str]]:
    return read_clips(**{role: folder / name for role, name in USUAL_NAMES.items()})


def test_clips_come_in_with_everything_the_files_say(raw: dict[str, Any], save: Save) -> None:
    (kitchen, garden), warnings = read(save(raw))
    assert (kitchen.uid, kitchen.video, kitchen.split, kitchen.width, kitchen.height) == (
        "kitchen",
        "video-1",
        "val",
        100,
        50,
    )
    assert kitchen.graphs[1].action == Action("pour", "water", (("into", "cup"), ("from", "jug")))
    assert kitchen.graphs[2].action == Action("put", "jug", (("on", "table"),)), "a hand is no relation"
    assert kitchen.graphs[2].frames == {"pre": 110, "pnr": 120, "post": 140}
    assert kitchen.graphs[2].boxes["pnr"]["jug"] == Box(0.1, 0.1, 0.3, 0.3)
    assert (kitchen.votes, kitchen.purpose_count, kitchen.start_frame) == ({2: 0.0, 3: 0.2, 4: 0.4}, 2, 30)
    assert kitchen.narrations.startswith("(2.00s)")
    assert garden.graphs[0].action is None
    assert garden.narrations == ""
    assert warnings == {
        "graphs without a verb": 1,
        "graphs without an action": 1,
        "graphs without boxes": 1,
        "clips without narrations": 1,
    }


def test_the_last_object_wins_and_a_graph_without_one_is_no_action() -> None:
    verb = ("CW", "verb", "cut")
    two = (verb, ("cut", "dobj", "rope"), ("cut", "with", "Left_Hand"), ("cut", "dobj", "wire"))
    assert action_of(two) == Action("cut", "wire", ())
    assert action_of((verb, ("cut", "with", "knife"))) is None
    assert action_of((("cut", "dobj", "wire"),)) is None


@pytest.mark.parametrize("missing", [None, "", "absent"])
def test_missing_narrations_are_the_empty_string(missing: str | None, raw: dict[str, Any], save: Save) -> None:
    if missing == "absent":
        del raw["narrations"]["garden"]
    else:
        raw["narrations"]["garden"] = missing
    clips, warnings = read(save(raw))
    assert clips[1].narrations == ""
    assert warnings["clips without narrations"] == 1


def test_votes_that_cannot_count_are_skipped_and_counted(raw: dict[str, Any], save: Save) -> None:
    raw["annotations"]["kitchen"]["graphs"].append(raw["annotations"]["kitchen"]["graphs"][0])  # 1 and 5 are the same
    raw["votes"]["scores"]["kitchen"] = {"1": 0, "2": 100, "3": 1, "9": 0}
    del raw["votes"]["scores"]["garden"]
    (kitchen, garden), warnings = read(save(raw))
    assert kitchen.votes == {3: 1}
    assert garden.votes == {}
    assert warnings["votes for no candidate"] == 2
    assert warnings["votes for a graph that does not exist"] == 1
    assert warnings["votes above 1"] == 1
    assert warnings["clips without votes"] == 1


def test_boxes_that_show_nothing_are_skipped_and_counted(raw: dict[str, Any], save: Save) -> None:
    shown = raw["annotations"]["kitchen"]["graphs"][0]["groundings"]["pnr"]
    shown["cup"]["height"] = 0.0
    shown["left_hand"]["left"] = 100.0
    (kitchen, _), warnings = read(save(raw))
    assert kitchen.graphs[0].boxes["pnr"] == {}
    assert warnings["boxes of no area"] == 1
    assert warnings["boxes wholly outside the frame"] == 1
    assert warnings["graphs without boxes"] == 2


def test_counts_and_spans_may_lack_clips(raw: dict[str, Any], save: Save) -> None:
    raw["purpose_counts"], raw["spans"], raw["narrations"]["attic"] = (
        {"kitchen": 2},
        {"kitchen": {"start_frame": 0}},
        "-",
    )
    (_, garden), warnings = read(save(raw))
    assert (garden.purpose_count, garden.start_frame) == (0, None)
    assert warnings["clips without a purpose count"] == 1
    assert warnings["clips without a span"] == 1
    assert warnings["narrations of clips without annotations"] == 1


def _kitchen(raw: dict[str, Any]) -> Any:
    return raw["annotations"]["kitchen"]


def _graph(raw: dict[str, Any]) -> Any:
    return raw["annotations"]["kitchen"]["graphs"][1]


GRAPH = f"{USUAL_NAMES['annotations']}: clip kitchen: graph 2: "
CLIP = f"{USUAL_NAMES['annotations']}: clip kitchen: "
BAD: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "no width": (lambda raw: _kitchen(raw).pop("W"), CLIP + "W is missing"),
    "zero height": (lambda raw: _kitchen(raw).update(H=0), CLIP + "H, the size of the frame in pixels, is 0"),
    "width as text": (lambda raw: _kitchen(raw).update(W="1440"), CLIP + 'W: a finite number is needed, not "1440"'),
    "no graphs": (lambda raw: _kitchen(raw).update(graphs=[]), CLIP + "graphs must be a list of at least one"),
    "graphs missing": (lambda raw: _kitchen(raw).pop("graphs"), CLIP + "graphs is missing"),
    "a clip that is a list": (lambda raw: raw["annotations"].update(kitchen=[]), CLIP + "an object is needed, not []"),
    "video missing": (lambda raw: _kitchen(raw).pop("video_uid"), CLIP + "video_uid is missing"),
    "two verbs": (lambda raw: _graph(raw)["triplets"].append(["CW", "verb", "tip"]), GRAPH + "a graph has one verb, "),
    "a short triplet": (lambda raw: _graph(raw)["triplets"].append(["CW", "verb"]), GRAPH + "a triplet is [head, "),
    "a number in a triplet": (lambda raw: _graph(raw)["triplets"].append(["a", "on", 3]), GRAPH + "triplet ["),
    "no tail": (lambda raw: _graph(raw)["triplets"].append(["pour", "on", " "]), GRAPH + "a triplet needs a tail"),
    "no frame": (lambda raw: _graph(raw).pop("pnr"), GRAPH + "pnr is missing"),
    "half a frame": (lambda raw: _graph(raw).update(pnr=90.5), GRAPH + "pnr: a whole number"),
    "a huge frame": (lambda raw: _graph(raw).update(post=2**31), GRAPH + "post: a whole number"),
    "frames out of order": (
        lambda raw: _graph(raw).update(pre=95),
        GRAPH + "frames must be in the order pre, pnr, post",
    ),
    "an unknown stage": (lambda raw: _graph(raw)["groundings"].update(mid={}), GRAPH + "groundings must be"),
    "a box without a side": (
        lambda raw: _graph(raw)["groundings"]["pnr"]["water"].pop("top"),
        GRAPH + "pnr box of water: top is missing",
    ),
    "a box with a text side": (
        lambda raw: _graph(raw)["groundings"]["pnr"]["water"].update(left="3"),
        GRAPH + 'pnr box of water: left: a finite number is needed, not "3"',
    ),
    "half a surrogate pair": (lambda raw: _graph(raw).update(graph_uid="\ud83d"), GRAPH + "graph_uid: half of"),
    "a vote for an unknown clip": (
        lambda raw: raw["votes"]["scores"].update(attic={}),
        "recorded_votes.json: clip attic: the annotations have no such clip",
    ),
    "a count for an unknown clip": (
        lambda raw: raw["purpose_counts"].update(attic=1),
        "recorded_purpose_counts.json: clip attic: the annotations have no such clip",
    ),
    "a negative count": (
        lambda raw: raw["purpose_counts"].update(garden=-1),
        "recorded_purpose_counts.json: clip garden: a whole number of at least 0 is needed, not -1",
    ),
    "a negative vote": (
        lambda raw: raw["votes"]["scores"]["garden"].update({"2": -0.5}),
        "recorded_votes.json: clip garden: graph 2: a score is between 0 and 1, not -0.5",
    ),
    "a vote for a word": (
        lambda raw: raw["votes"]["scores"]["garden"].update(two=0),
        'recorded_votes.json: clip garden: a vote is for a graph index, a whole number from 1, not "two"',
    ),
    "votes of another threshold": (
        lambda raw: raw["votes"].update(threshold=0.4),
        "recorded_votes.json: the votes are meant for a threshold of 0.4; the builder's is 0.5",
    ),
    "votes without scores": (lambda raw: raw["votes"].pop("scores"), "recorded_votes.json: scores is missing"),
    "narrations as a list": (
        lambda raw: raw["narrations"].update(garden=["a"]),
        "clip_narrations.json: clip garden: text is needed",
    ),
    "a span that begins behind the clip": (
        lambda raw: raw["spans"].update(garden={"start_frame": 10**9}),
        "clip_spans.json: clip garden: it starts at frame 1000000000, behind its first annotated frame ",
    ),
    "a span without a start": (
        lambda raw: raw["spans"].update(garden={}),
        "clip_spans.json: clip garden: start_frame is missing",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_with_the_file_the_clip_and_the_graph(case: str, raw: dict[str, Any], save: Save) -> None:
    change, message = BAD[case]
    change(raw)
    with pytest.raises(BuildError) as error:
        read(save(raw))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("role", USUAL_NAMES)
def test_a_truncated_json_names_the_file_and_the_place(role: str, raw: dict[str, Any], save: Save) -> None:
    text = json.dumps(raw[role], indent=1)
    raw[role] = text[: len(text) * 2 // 3].rstrip("0123456789") if role == "purpose_counts" else text[:-2]
    with pytest.raises(BuildError, match=rf"{USUAL_NAMES[role]}: no valid JSON at line \d+, column \d+: "):
        read(save(raw))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": {"W": NaN}}', "NaN is no number"),
        ('{"a": {"W": -Infinity}}', "-Infinity is no number"),
        ('{"kitchen": {"W": 1e999}, "garden": {}}', "clip kitchen: W: a finite number is needed"),
        ('{"a": {}, "a": {}}', 'the key "a" comes twice'),
        ("{}", "holds no clips"),
        ("[]", "an object with a key per clip is needed, not []"),
        ("", "the file ends too early"),
        ("[" * 100_000, "no valid JSON"),
        ("1" * 5000, "no valid JSON"),
    ],
)
def test_json_that_cannot_be_meant_is_refused(text: str, message: str, raw: dict[str, Any], save: Save) -> None:
    raw["annotations"] = text
    with pytest.raises(BuildError, match=USUAL_NAMES["annotations"]) as error:
        read(save(raw))
    assert message in str(error.value)


def test_a_missing_file_and_one_that_is_not_utf8_are_named(raw: dict[str, Any], save: Save) -> None:
    folder = save(raw)
    (folder / "clip_narrations.json").write_bytes(b'{"kitchen": "caf\xe9"}')
    with pytest.raises(BuildError, match=r"clip_narrations\.json: no valid JSON: .*utf-8"):
        read(folder)
    (folder / "clip_narrations.json").unlink()
    with pytest.raises(BuildError, match=r"clip_narrations\.json: no such file"):
        read(folder)


def test_other_scripts_and_a_byte_order_mark_come_through(raw: dict[str, Any], save: Save) -> None:
    raw["narrations"]["kitchen"] = "(1.0s) カップを取る 🍵 e\u0301"
    folder = save(raw)
    path = folder / "clip_narrations.json"
    path.write_text("\ufeff" + json.dumps(raw["narrations"], ensure_ascii=False), encoding="utf-8")
    assert read(folder)[0][0].narrations == raw["narrations"]["kitchen"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["W", "pnr", "a"]), inner, max_size=3),
    max_leaves=8,
)


@given(data=st.data())
def test_any_json_in_any_place_is_read_or_refused_in_words(data: st.DataObject, tmp_path_factory: Any) -> None:
    graph: dict[str, Any] = {
        "graph_uid": "g",
        "pre": 1,
        "pnr": 2,
        "post": 3,
        "triplets": [["CW", "verb", "cut"], ["cut", "dobj", "wire"]],
        "groundings": {"pnr": {"wire": {"left": 1, "top": 1, "width": 5, "height": 5}}},
    }
    clip: dict[str, Any] = {"video_uid": "v", "split": "val", "W": 10, "H": 10, "graphs": [graph]}
    files: dict[str, Any] = {"a": {"c": clip}, "n": {"c": "x"}, "v": {"scores": {"c": {"1": 0}}}, "p": {"c": 1}}
    boxes = graph["groundings"]["pnr"]
    places = [files, files["a"], clip, graph, graph["groundings"], boxes, boxes["wire"], files["n"], files["v"]]
    place = data.draw(st.sampled_from([*places, files["v"]["scores"], files["p"]]))
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(JSON)
    folder = tmp_path_factory.getbasetemp()
    paths = [folder / f"any-{name}.json" for name in files]
    for path, content in zip(paths, files.values(), strict=True):
        path.write_text(json.dumps(content), encoding="utf-8")
    try:
        clips, _ = read_clips(*paths)
    except BuildError as error:
        assert "any-" in str(error)
    else:
        assert all(isinstance(clip.narrations, str) for clip in clips)


@given(text=st.text(max_size=40) | st.binary(max_size=40))
def test_any_bytes_are_read_or_refused_in_words(text: str | bytes, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "any-bytes.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    with pytest.raises(BuildError, match=r"any-bytes\.json"):
        read_clips(path, path, path, path)


side = st.floats(-3000, 3000) | st.floats(allow_nan=False, allow_infinity=False)


@given(left=side, top=side, width=side, height=side, frame=st.tuples(st.integers(1, 5000), st.integers(1, 5000)))
def test_a_box_is_inside_its_frame_or_there_is_none(
    left: float, top: float, width: float, height: float, frame: tuple[int, int]
) -> None:
    box = clip_box(left, top, width, height, *frame)
    if isinstance(box, Box):
        assert 0 <= box.left < box.right <= 1
        assert 0 <= box.top < box.bottom <= 1
    else:
        assert box in ("boxes of no area", "boxes wholly outside the frame")


@given(left=st.floats(0, 90), top=st.floats(0, 40), width=st.floats(1, 10), height=st.floats(1, 10))
def test_a_box_inside_its_frame_stays_where_it_is(left: float, top: float, width: float, height: float) -> None:
    box = clip_box(left, top, width, height, 100, 50)
    assert isinstance(box, Box)
    back = (box.left * 100, box.top * 50, (box.right - box.left) * 100, (box.bottom - box.top) * 50)
    assert all(math.isclose(a, b, abs_tol=1e-9) for a, b in zip(back, (left, top, width, height), strict=True))


def test_a_box_over_all_four_edges_is_the_frame() -> None:
    assert clip_box(-5, -5, 200, 200, 100, 50) == Box(0, 0, 1, 1)


@pytest.mark.real
def test_the_real_annotations_come_in_with_the_known_oddities(upstream: Path) -> None:
    clips, warnings = read(upstream)
    assert len(clips) == 221
    assert sum(len(clip.graphs) for clip in clips) == 6250
    assert sum(graph.action is not None for clip in clips for graph in clip.graphs) == 6218
    assert sum(clip.purpose_count for clip in clips) == 668
    assert warnings == {
        "graphs without a verb": 18,
        "graphs without an action": 32,
        "graphs without boxes": 14,
        "boxes of no area": 1,
        "boxes wholly outside the frame": 1,
        "clips without votes": 2,
        "votes for no candidate": 21,
        "votes for a graph that does not exist": 5,
        "votes above 1": 5,
        "clips without narrations": 1,
    }
