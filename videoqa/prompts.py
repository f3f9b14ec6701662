"""How a question is put to the model under test: blind, with the clip's narrations, or with frames of its video.

    blind        the question alone: what language priors can do
    narrations   the timestamped narrations that the judge also sees, then the question (the paper's language-only rows)
    frames       frames of the clip, each with its second, then the question
    two-stage    frames; turn 1 asks when the step happens that the question names, turn 2 what came before or after it
                 (the paper's Table 3, in our words; for `before` and `after`)

Everything stands in the user's turns, also what the model is told of its task: so the prompt is the same through every
host and every chat template.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from videoqa.engines import Conversation, Message

MAX_NEW_TOKENS = 64  # an answer is a phrase or a sentence
TWO_STAGE_TYPES = ("before", "after")

INSTRUCTION = (
    "You answer questions about a first-person video. The person who films it is called the camera wearer. "
    "Answer with a short phrase or one short sentence, without an explanation. If you cannot know, give your best "
    "guess.\n\n"
)


def ask_blind(question: str) -> str:
    """The question alone, to follow INSTRUCTION."""
    return f"Question: {question}\nAnswer:"


def ask_narrations(question: str, context: str) -> str:
    """The clip's narrations, then the question, so that the questions of a clip share their beginning. In the
    narrations "#C C" is the camera wearer and the seconds are those of the full video."""
    notes = context.strip() or "(none)"
    return f'What the camera wearer ("C") does, with seconds:\n{notes}\n\n{ask_blind(question)}'


def blind(question: str, context: str = "") -> Conversation:
    """The question alone; `context` is not shown."""
    return [{"role": "user", "content": INSTRUCTION + ask_blind(question)}]


def narrations(question: str, context: str) -> Conversation:
    """The narrations and the question."""
    return [{"role": "user", "content": INSTRUCTION + ask_narrations(question, context)}]


PROMPTS: dict[str, Callable[[str, str], Conversation]] = {"blind": blind, "narrations": narrations}
VIDEO_PROMPTS = ("frames", "two-stage")

# -- with frames ------------------------------------------------------------------------------------------------------


def _shown(images: Sequence[Any], seconds: Sequence[float], marks: Sequence[str]) -> list[dict[str, Any]]:
    """The frames as parts of a message, each behind its second of the clip and what is marked on it."""
    parts: list[dict[str, Any]] = []
    for image, second, mark in zip(images, seconds, marks or [""] * len(images), strict=True):
        told = f"\n{second:.1f} s{f', with {mark} marked' if mark else ''}: "
        parts += [{"type": "text", "text": told}, {"type": "image", "image": image}]
    return parts


def frames(question: str, images: Sequence[Any], seconds: Sequence[float], marks: Sequence[str] = ()) -> Conversation:
    """The frames (PIL images or paths) in order of time, each with its second, then the question. `marks` says of each
    frame which regions of the question are drawn on it, "" for none."""
    told = [{"type": "text", "text": INSTRUCTION + "Frames of the video, each with its second:"}]
    asked = [{"type": "text", "text": "\n\n" + ask_blind(question)}]
    return [{"role": "user", "content": [*told, *_shown(images, seconds, marks), *asked]}]


_CLAUSE = re.compile(r"\b(before|after)\b\s+(.+)", re.I | re.S)


def step_of(question: str) -> tuple[str, str] | None:
    """Which way a question looks from which step; None where it names none.

    >>> step_of("What did the camera wearer do right before putting the jug into the cabinet?")
    ('before', 'putting the jug into the cabinet')
    """
    match = _CLAUSE.search(question)
    if match is None:
        return None
    clause = match[2]
    if match.start() < 12:  # "Right after putting the jug away, what ...": the clause comes first and ends at a comma
        clause = re.split(r",\s+(?=what\b|which\b|how\b|where\b)", clause, flags=re.I)[0]
    clause = clause.strip().rstrip("?.! ")
    return (match[1].lower(), clause) if clause else None


def locate(question: str, images: Sequence[Any], seconds: Sequence[float], marks: Sequence[str] = ()) -> Conversation:
    """Turn 1: the frames, and when the step happens that the question names (its clause behind "before" or "after";
    without one, the moment that the question is about)."""
    step = step_of(question)
    what = f"this step of the camera wearer: {step[1]}" if step else f'what this question is about: "{question}"'
    told = [{"type": "text", "text": "Frames of a first-person video, each with its second:"}]
    text = (
        f"\n\nFind in the video {what}\n"
        "When does it begin and end? Answer with two times in seconds and nothing else, like this: S s to E s"
    )
    return [{"role": "user", "content": [*told, *_shown(images, seconds, marks), {"type": "text", "text": text}]}]


def look_beside(question: str) -> str:
    """Turn 2: what came right before or after the step that turn 1 located."""
    step = step_of(question)
    beside = f"Now look at what happens right {step[0]} that step" if step else "Now look at that moment"
    return f"{beside}.\n{INSTRUCTION}{ask_blind(question)}"


def second_turn(first: Conversation, reply: str, question: str) -> Conversation:
    """The conversation of turn 1, its reply, and turn 2: the frames stay in it."""
    said: list[Message] = [{"role": "assistant", "content": reply}, {"role": "user", "content": look_beside(question)}]
    return [*first, *said]
