"""How an open-ended question is put to the model under test: blind, with frames of the video, or with descriptions of
its events in place of the video.

blind           the question alone: what language priors can do
frames          frames of the video, each with its second, then the question
augmented-K     the descriptions of events that are going on at the times of K frames, then the question
augmented       the descriptions of all events
"""

from __future__ import annotations

from collections.abc import Callable

from videoqa.benchmarks.worldqa.augmented import described
from videoqa.rows import Row

INSTRUCTION = (
    "You answer questions about a video. An answer may need knowledge of the world as well as what is to be seen and "
    "heard in the video. Answer in one or two sentences that give the reasons asked for. If you cannot know, give your "
    "best guess.\n\n"
)


def blind(row: Row) -> str:
    """The question alone, to follow INSTRUCTION."""
    return f"Question: {row['question']}\nAnswer:"


def augmented(k: int | None) -> Callable[[Row], str]:
    """The query that shows the descriptions at the times of k frames (None: all), so that the questions of a video
    share their beginning."""
    return lambda row: f"What happens in the video, with seconds:\n{described(row, k) or '(none)'}\n\n{blind(row)}"
