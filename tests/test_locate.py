"""Reading the located time, and its score against the action's own seconds."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from videoqa.benchmarks.easg.locate import locate_rows, read_time, score_time

TENTHS = st.integers(0, 36_000).map(lambda n: n / 10)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("S 12.5 s to E 15 s", (12.5, 15)),
        ("12.5 s to 15.0 s", (12.5, 15)),
        ("S 12.5 to E 15", (12.5, 15)),
        ("between 0:12 and 0:15", (12, 15)),
        ("from 12 to 15 seconds", (12, 15)),
        ("12-15s", (12, 15)),
        ("12.5s–15s", (12.5, 15)),
        ("12.5 seconds → 15 seconds", (12.5, 15)),
        ("00:01:02 - 00:01:05", (62, 65)),
        ("1 minute and 5 seconds to 1 minute and 9 seconds", (65, 69)),
        ("1 min 5 s", (65, 65)),
        ("start: 12.5, end: 15.0", (12.5, 15)),
        ('{"start": 12.5, "end": 15.0}', (12.5, 15)),
        ("start time: 12.5 s; end time: 15 s", (12.5, 15)),
        ("[12.5, 15.0]", (12.5, 15)),
        ("5 s, 9 s", (5, 9)),
        ("15 s to 12 s", (12, 15)),
        ("**12.5 s** to **15 s**", (12.5, 15)),
        ("It begins at 12.5 seconds and ends at 15.0 seconds", (12.5, 15)),
        ("about 13 seconds in", (13, 13)),
        ("13", (13, 13)),
        ("The frame at 13.0s.", (13, 13)),
        ("2 hands, at 4.0 s", (4, 4)),
        ("<think>perhaps 3 s</think>7 s", (7, 7)),
        ("Frame 3 shows it", None),
        ("He uses 2 to 3 pans", None),
        ("I cannot tell.", None),
        ("", None),
        ("<think>at 3 s it", None),
    ],
)
def test_times_are_read_in_the_forms_that_models_write(text: str, seconds: tuple[float, float] | None) -> None:
    assert read_time(text) == seconds


@given(TENTHS, TENTHS, st.sampled_from(["{} s to {} s", "{}-{} seconds", "From {} to {}.", "S {} s to E {} s"]))
def test_what_is_written_is_what_is_read(a: float, b: float, form: str) -> None:
    assert read_time(form.format(a, b)) == (min(a, b), max(a, b))


@given(st.integers(0, 5999), st.integers(0, 5999))
def test_clock_times_are_seconds(a: int, b: int) -> None:
    assert read_time(f"{a // 60:02}:{a % 60:02} to {b // 60:02}:{b % 60:02}") == (min(a, b), max(a, b))


@given(st.text())
def test_any_text_gives_a_time_in_order_or_none(text: str) -> None:
    found = read_time(text)
    assert found is None or 0 <= found[0] <= found[1]


@given(TENTHS, TENTHS, TENTHS, TENTHS)
def test_the_overlap_is_between_0_and_1_and_the_same_both_ways(a: float, b: float, c: float, d: float) -> None:
    time, truth = (min(a, b), max(a, b)), (min(c, d), max(c, d))
    _, iou = score_time(time, truth)
    assert 0 <= iou <= 1
    assert math.isclose(iou, score_time(truth, time)[1])
    assert (iou == 1) == (time == truth)


def test_a_hit_has_its_middle_in_the_action_so_that_naming_the_whole_video_is_none() -> None:
    assert score_time((4.0, 6.0), (4.5, 5.5)) == (True, 0.5)
    assert score_time((5.0, 5.0), (4.5, 5.5)) == (True, 0.0)
    assert score_time((0.0, 180.0), (4.5, 5.5))[0] is False
    assert score_time(None, (4.5, 5.5)) == (False, 0.0)


def test_the_truth_is_on_the_clips_own_axis_and_rows_without_one_are_left_out() -> None:
    row = {"id": "a:2:before", "type": "before", "start_s": 122.0, "end_s": 124.0, "clip_start_s": 120.0}
    purpose = row | {"id": "a:jug:purpose", "type": "purpose", "start_s": None, "end_s": None}
    unread = row | {"id": "a:3:after", "type": "after"}
    replies = {"a:2:before": "2 s to 4 s", "a:jug:purpose": "2 s", "a:3:after": "no idea"}
    located = locate_rows([row, purpose, unread, row | {"id": "not asked"}], replies)
    assert [(one.id, one.truth, one.hit, one.iou) for one in located] == [
        ("a:2:before", (2.0, 4.0), True, 1.0),
        ("a:3:after", (2.0, 4.0), False, 0.0),
    ]
