"""Two-stage prompting: turn 1 locates the step that the question names, turn 2 asks what came before or after it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from videoqa.asking import Answer, answer_of, frame_parts
from videoqa.benchmarks.easg.prompts import INSTRUCTION, ask_blind
from videoqa.engines import Conversation, Engine, Message
from videoqa.rows import Row
from videoqa.videos import Shown

LOCATE_TOKENS = 48  # longest answer to "when does it begin and end?"
TWO_STAGE_TYPES = ("before", "after")
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


def locate(question: str, shown: Shown) -> Conversation:
    """Turn 1: the frames, and when the step happens that the question names (its clause behind "before" or "after";
    without one, the moment that the question is about)."""
    step = step_of(question)
    what = f"this step of the camera wearer: {step[1]}" if step else f'what this question is about: "{question}"'
    head = [{"type": "text", "text": "Frames of a first-person video, each with its second:"}]
    text = (
        f"\n\nFind in the video {what}\n"
        "When does it begin and end? Answer with two times in seconds and nothing else, like this: S s to E s"
    )
    return [{"role": "user", "content": [*head, *frame_parts(shown), {"type": "text", "text": text}]}]


def look_beside(question: str) -> str:
    """Turn 2: what came right before or after the step that turn 1 located."""
    step = step_of(question)
    beside = f"Now look at what happens right {step[0]} that step" if step else "Now look at that moment"
    return f"{beside}.\n{INSTRUCTION}{ask_blind(question)}"


def second_turn(first: Conversation, reply: str, question: str) -> Conversation:
    """The conversation of turn 1, its reply, and turn 2: the frames stay in it."""
    turns: list[Message] = [{"role": "assistant", "content": reply}, {"role": "user", "content": look_beside(question)}]
    return [*first, *turns]


def two_turns(
    engine: Engine, rows: Sequence[Row], shown: Mapping[int, Shown], max_new_tokens: int
) -> Iterator[tuple[int, Answer]]:
    """Locate first, then ask (videoqa.asking.Turns); a row whose first turn fails has that error."""
    asked = list(shown)
    firsts = [locate(rows[i]["question"], shown[i]) for i in asked]
    located: dict[int, str] = {}
    spent: dict[int, tuple[int, int]] = {}
    for k, reply in engine.generate(firsts, max_new_tokens=LOCATE_TOKENS):
        if reply.text is None:
            yield asked[k], answer_of(reply, firsts[k], shown[asked[k]])
        else:
            located[k] = reply.text.strip()
            spent[k] = (reply.prompt_tokens, reply.new_tokens)
    again = sorted(located)
    seconds = [second_turn(firsts[k], located[k], rows[asked[k]]["question"]) for k in again]
    for n, reply in engine.generate(seconds, max_new_tokens=max_new_tokens):
        index = asked[again[n]]
        answer = answer_of(reply, seconds[n], shown[index], located[again[n]])
        yield index, answer.after(*spent[again[n]])
