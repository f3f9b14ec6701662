"""How a question is put to the model under test: blind, or with the clip's narrations.

`blind` is the question alone: what language priors can do. `narrations` adds the timestamped narrations that the judge
also sees as its context: what a language model can do that is told what happens (the paper's language-only rows).
"""

from __future__ import annotations

from collections.abc import Callable

from videoqa.engines import Conversation

MAX_NEW_TOKENS = 64  # an answer is a phrase or a sentence

SYSTEM = (
    "You answer questions about a first-person video. The person who films it is called the camera wearer. "
    "Answer with a short phrase or one short sentence, without an explanation. If you cannot know, give your best guess."
)


def blind(question: str, context: str = "") -> Conversation:
    """The question alone; `context` is not shown."""
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": f"Question: {question}\nAnswer:"}]


def narrations(question: str, context: str) -> Conversation:
    """The clip's narrations, then the question, so that the questions of a clip share their beginning. In the
    narrations "#C C" is the camera wearer and the seconds are those of the full video."""
    notes = context.strip() or "(none)"
    text = f'What the camera wearer ("C") does, with seconds:\n{notes}\n\nQuestion: {question}\nAnswer:'
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]


PROMPTS: dict[str, Callable[[str, str], Conversation]] = {"blind": blind, "narrations": narrations}
