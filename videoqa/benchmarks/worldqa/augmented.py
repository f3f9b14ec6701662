"""A language model with descriptions of events in place of the video, as the paper's augmented models have.

A model that sees `k` frames evenly spread over the video is compared with one that reads what people say happens at the
times of those frames, and nothing in between:

    >>> events = [{"start_s": 0, "end_s": 4, "text": "He runs."}, {"start_s": 4, "end_s": 6, "text": "He waits."}]
    >>> print(text(seen(events, frame_times(8.0, 2))))
    0 s to 4 s: He runs.

The times are those of `Policy(n=k)` in videoqa/frames.py: the first and the last instant included, the middle for one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from videoqa.errors import UserError
from videoqa.rows import Row

Event = Mapping[str, Any]  # start_s, end_s, text


def frame_times(duration_s: float, k: int) -> tuple[float, ...]:
    """When k frames evenly spread over a video are shown, in seconds."""
    if k < 1:
        raise UserError(f"{k} frames: at least 1")
    if k == 1:
        return (duration_s / 2,)
    return tuple(duration_s * (n / (k - 1)) for n in range(k))


def seen(events: Sequence[Event], times: Sequence[float]) -> list[Event]:
    """The events that are going on at one of the times, in order of time. An event goes on from its start up to its
    end, without the end, where the next one begins; the last end of all belongs to its event."""
    last = duration(events)
    return [event for event in in_order(events) if any(_goes_on(event, time, last) for time in times)]


def _goes_on(event: Event, time: float, last: float) -> bool:
    start, end = event["start_s"], event["end_s"]
    return start <= time < end or time == start or time == end == last


def in_order(events: Sequence[Event]) -> list[Event]:
    """The events by their start, then by their end."""
    return sorted(events, key=lambda event: (event["start_s"], event["end_s"]))


def duration(events: Sequence[Event]) -> float:
    """Where the last event ends."""
    return max((event["end_s"] for event in events), default=0.0)


def text(events: Sequence[Event]) -> str:
    """One line for each event, with its seconds."""
    return "\n".join(f"{e['start_s']:g} s to {e['end_s']:g} s: {' '.join(e['text'].split())}" for e in events)


def described(row: Row, k: int | None) -> str:
    """What a model reads in place of the row's video: the events at the times of k frames, all of them for None. Raises
    UserError for a question on a video without events: it would be asked blind. (A row without a question is no
    question: it shows what a prompt has in common.)"""
    events = row.get("events") or []
    if not events and row["question"]:
        raise UserError(
            f"question {row['id']}: there are no descriptions of events in video {row['video']}; build the data with "
            "the file that has them (--notes)"
        )
    if k is None:
        return text(in_order(events))
    length = row.get("duration_s")
    return text(seen(events, frame_times(duration(events) if length is None else length, k)))
