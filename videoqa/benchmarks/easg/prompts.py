"""How a question is put to the model under test: blind, with the clip's narrations, or with frames of its video.

blind        the question alone: what language priors can do
narrations   the timestamped narrations that the judge also sees, then the question (the paper's language-only rows)
frames       frames of the clip, each with its second, then the question
two-stage    frames; turn 1 asks when the step happens that the question names, turn 2 what came before or after it
             (the paper's Table 3, in our words; for `before` and `after`): two_stage.py
"""

from __future__ import annotations

from videoqa.rows import Row

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


def blind(row: Row) -> str:
    """Who sees no frames is told a language-neutral question's boxes in words."""
    return ask_blind(row.get("question_coordinates") or row["question"])


def narrations(row: Row) -> str:
    """As `blind`, behind the clip's narrations."""
    return ask_narrations(row.get("question_coordinates") or row["question"], row["context"])


def question_alone(row: Row) -> str:
    """The question as it is written, for prompts that show the frames with its boxes."""
    return ask_blind(row["question"])
