"""videoqa/regions.py: a question told, and its boxes on the right frame."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from typer.testing import CliRunner

import easg_bench
from builder.__main__ import app as builder_app
from demo import scenes
from videoqa.commands import command_line
from videoqa.frames import Policy, VideoError, read_frames
from videoqa.regions import _place, describe, draw_boxes, marked_frames
from videoqa.videos import Source, clip_ends, find_video, video_files

Row = dict[str, Any]


@pytest.fixture(scope="module")
def demo_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("demo") / "easg-bench"
    built = CliRunner().invoke(builder_app, ["build", "--source", str(scenes.DATA), "--out", str(out)])
    assert built.exit_code == 0, built.output
    return out


def rows(folder: Path, config: str = "default") -> dict[str, Row]:
    return {row["id"]: row for row in easg_bench.load(folder, config)}


def source(row: Row, videos: Path, folder: Path) -> Source:
    ends = clip_ends(rows(folder).values())
    return find_video(video_files(videos), row["clip"], row["video"], row["clip_start_s"], ends.get(row["clip"]))


def test_a_question_is_told_with_answer_moment_and_boxes(demo_data: Path) -> None:
    assert describe(rows(demo_data)["demo-tea:15:indirect:1"]).splitlines() == [
        "demo-tea:15:indirect:1",
        "type      indirect",
        "clip      demo-tea of the video demo-kitchen",
        "question  What did the camera wearer remove the teabag from with the spoon?",
        "answer    from cup",
        "moment    184.30 to 186.80 s of the full video, 64.30 to 66.80 s of the clip; frame 5553",
        "box       teabag: 0.444 0.590 0.494 0.649, frame 5553, 185.10 s",
        "box       cup: 0.328 0.559 0.408 0.679, frame 5553, 185.10 s",
        "box       spoon: 0.399 0.600 0.538 0.640, frame 5553, 185.10 s",
    ]


def test_a_neutral_question_is_told_with_its_regions(demo_data: Path) -> None:
    told = describe(rows(demo_data, "language_neutral")["demo-tea:15:indirect:1"])
    assert (
        "question  What did the camera wearer remove <region 1> from with <region 2>?\n          (<region 1> is" in told
    )
    assert "box       <region 2> spoon: 0.399" in told and "cup:" not in told


def test_what_a_row_lacks_is_not_told() -> None:
    bare: Row = dict.fromkeys(easg_bench.FEATURES)
    chosen = {**bare, "id": "q", "type": "mc", "clip": "c", "video": "", "question": "Which?"}
    chosen |= {"choices": ["a", "b"], "gold": 1, "evidence": []}
    assert describe(chosen).splitlines() == [
        "q",
        "type      mc",
        "clip      c of the video (not known)",
        "question  Which?",
        "choices   a | b",
        "answer    b",
        "box       none",
    ]


def test_the_boxes_are_on_the_frame_of_their_second(demo_data: Path, demo_videos: Path) -> None:
    row = rows(demo_data)["demo-tea:15:indirect:1"]
    of = source(row, demo_videos, demo_data)
    (marked,) = marked_frames(row, of)
    assert (marked.number, marked.labels) == (5553, ("teabag", "cup", "spoon"))
    assert marked.second == pytest.approx(row["evidence"][0]["seconds"] - row["clip_start_s"])
    plain = read_frames(of.path, Policy(seconds=(marked.second,))).images[0]
    boxes = [(item["object"], item["box"]) for item in row["evidence"]]
    assert marked.image.tobytes() == draw_boxes(plain, boxes).tobytes() != plain.tobytes()


def test_a_purpose_with_boxes_in_several_frames_gives_them_in_order_of_time(demo_data: Path, demo_videos: Path) -> None:
    row = next(r for r in rows(demo_data).values() if len({item["frame"] for item in r["evidence"]}) > 2)
    marked = marked_frames(row | {"evidence": row["evidence"][::-1]}, source(row, demo_videos, demo_data))
    assert [frame.number for frame in marked] == sorted({item["frame"] for item in row["evidence"]})


def test_a_file_that_does_not_reach_the_boxes_is_told(demo_data: Path, demo_videos: Path) -> None:
    row = rows(demo_data)["demo-tea:15:indirect:1"]
    path = demo_videos / "demo-tea.mp4"
    with pytest.raises(VideoError, match="not known at which second"):
        marked_frames(row, Source(path, 0.0, None, None))
    with pytest.raises(VideoError, match="begins behind frame 5553"):
        marked_frames(row, Source(path, 0.0, None, 1000.0))
    with pytest.raises(VideoError, match=r"demo-tea\.mp4"):
        marked_frames(row, Source(path, 0.0, None, -1000.0))
    assert marked_frames(row | {"evidence": []}, Source(path, 0.0, None, None)) == []


def test_the_outline_is_at_the_edges_and_the_picture_itself_is_left_alone() -> None:
    white = Image.new("RGB", (200, 100), "white")
    drawn = draw_boxes(white, [("a", (0.25, 0.5, 0.75, 1.0))])
    assert white.getcolors() == [(20_000, (255, 255, 255))]
    red = (0xE6, 0x19, 0x4B)
    assert [drawn.getpixel((x, 80)) for x in (48, 50, 100, 148, 151)] == [
        (255, 255, 255),
        red,
        (255, 255, 255),
        red,
        (255, 255, 255),
    ]
    assert draw_boxes(Image.new("L", (20, 10)), []).mode == "RGB"


SIDE = st.integers(0, 300)


@given(st.lists(st.tuples(SIDE, SIDE, SIDE, SIDE), max_size=4), st.integers(1, 120), st.integers(1, 40))
def test_labels_stay_inside_the_picture(boxes: Sequence[tuple[int, ...]], width: int, height: int) -> None:
    taken: list[tuple[int, int, int, int]] = []
    for box in boxes:
        taken.append(_place(box, width, height, (300, 200), taken))
    assert all(0 <= l < r <= 300 and 0 <= t < b <= 200 for l, t, r, b in taken)  # noqa: E741


def test_labels_of_two_boxes_in_one_place_stand_beside_each_other() -> None:
    first = _place((100, 100, 120, 120), 40, 10, (300, 200), [])
    second = _place((100, 100, 120, 120), 40, 10, (300, 200), [first])
    assert first == (100, 90, 140, 100) and second == (100, 120, 140, 130)


@given(st.text(max_size=12), st.lists(st.floats(0, 1), min_size=4, max_size=4), st.integers(1, 60))
def test_any_label_and_box_can_be_drawn(label: str, box: list[float], size: int) -> None:
    left, top, right, bottom = min(box[0], box[2]), min(box[1], box[3]), max(box[0], box[2]), max(box[1], box[3])
    drawn = draw_boxes(Image.new("RGB", (size, size)), [(label, (left, top, right, bottom))])
    assert drawn.size == (size, size)


def test_the_command_line_shows_a_question_and_writes_its_frames(
    demo_data: Path, demo_videos: Path, tmp_path: Path
) -> None:
    def run(*arguments: str | Path) -> Any:
        return CliRunner().invoke(command_line(), ["show", *map(str, arguments), "--data", str(demo_data)])

    shown = run(
        "demo-plant:6:after", "--videos", demo_videos, "--out", tmp_path / "new", "--config", "language_neutral"
    )
    assert shown.exit_code == 0, shown.output
    path = tmp_path / "new" / "demo-plant-6-after-744.png"
    assert shown.stdout.endswith(f"wrote     {path}\n")
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert Image.open(path).size == (426, 240)
    assert str(run("demo-plant:6:aftr").exception).endswith(
        "no question 'demo-plant:6:aftr'; the nearest is demo-plant:6:after"
    )
    assert isinstance(run("demo-plant:6:after", "--videos", tmp_path).exception, VideoError)
