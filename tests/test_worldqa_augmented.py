"""videoqa/benchmarks/worldqa/augmented.py: which descriptions of events stand in for the frames of a video."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from videoqa.benchmarks.worldqa import prompts
from videoqa.benchmarks.worldqa.augmented import described, frame_times, seen, text
from videoqa.errors import UserError


def event(start: float, end: float, words: str = "It rains.") -> dict[str, Any]:
    return {"start_s": start, "end_s": end, "text": words}


def row(*events: dict[str, Any], duration_s: float | None = None) -> dict[str, Any]:
    return {"id": "0", "video": "v", "question": "Why?", "events": list(events), "duration_s": duration_s}


def test_frames_are_evenly_spread_with_the_first_and_the_last_instant() -> None:
    assert frame_times(9.0, 4) == (0.0, 3.0, 6.0, 9.0)
    assert frame_times(9.0, 1) == (4.5,)


@given(st.floats(0.001, 1e5), st.integers(2, 200))
def test_the_last_frame_is_at_the_end_to_the_last_bit(duration: float, k: int) -> None:
    times = frame_times(duration, k)
    assert (len(times), times[0], times[-1]) == (k, 0.0, duration)


def test_an_event_is_seen_where_a_frame_falls_into_it() -> None:
    first, between, last = event(0, 4), event(4.5, 5.5), event(6, 9)
    assert seen([last, between, first], (0.0, 4.2, 9.0)) == [first, last]


def test_an_event_ends_where_the_next_one_begins() -> None:
    assert seen([event(0, 4), event(4, 8)], (4.0,)) == [event(4, 8)]


def test_an_instant_is_an_event_too() -> None:
    assert seen([event(3, 3), event(0, 9)], (3.0,)) == [event(0, 9), event(3, 3)]


def test_a_frame_behind_the_last_event_sees_nothing() -> None:
    assert described(row(event(0, 4, "He runs."), event(4, 6, "He waits."), duration_s=10.0), 2) == (
        "0 s to 4 s: He runs."
    )


def test_a_video_of_unknown_length_ends_with_its_last_event() -> None:
    of_row = row(event(0, 4, "He runs."), event(4, 5, "He falls."), event(6, 9, "He waits."))
    assert described(of_row, 2) == "0 s to 4 s: He runs.\n6 s to 9 s: He waits."


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), min_size=1, max_size=8), st.integers(1, 40))
def test_twice_as_many_intervals_see_at_least_the_same_events(spans: list[tuple[int, int]], k: int) -> None:
    """The times of k + 1 frames are among those of 2 k + 1."""
    events = [event(start, start + length, str(n)) for n, (start, length) in enumerate(spans)]
    end = max(one["end_s"] for one in events)
    fewer, more = (seen(events, frame_times(end, n + 1)) for n in (k, 2 * k))
    assert all(one in more for one in fewer)


def test_all_events_are_described_where_no_number_of_frames_is_given() -> None:
    assert described(row(event(4, 8, "b"), event(0, 4, "a")), None) == text([event(0, 4, "a"), event(4, 8, "b")])


def test_a_question_without_descriptions_is_refused_and_not_asked_blind() -> None:
    with pytest.raises(UserError, match="question 0: there are no descriptions of events in video v"):
        prompts.augmented(8)(row())


def test_the_query_shows_the_descriptions_before_the_question() -> None:
    query = prompts.augmented(1)(row(event(0, 4, "He  runs\nfast."), duration_s=4.0))
    assert query.endswith("0 s to 4 s: He runs fast.\n\nQuestion: Why?\nAnswer:")
    assert "(none)" in prompts.augmented(1)(row(event(0, 4), duration_s=100.0))
