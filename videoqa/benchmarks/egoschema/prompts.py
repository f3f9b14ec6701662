"""How a question with its options is put to the model under test.

blind            question and options alone: what language priors can do
narrations       captions of the clip (`--captions`), then the question
frames           frames of the clip, each with its second, then the question
two-pass         captions; turn 1 weighs what the camera wearer does, turn 2 asks for the letter
two-pass-frames  the same on frames
"""

from __future__ import annotations

from videoqa.choices import LETTERS, lettered
from videoqa.choosing import Wording
from videoqa.rows import Row

INSTRUCTION = (
    'You answer questions about a first-person video of three minutes. "C" is the person who films it. Each question '
    "has several options, of which exactly one is right.\n\n"
)
LETTER = "Reply with the letter of the right option and nothing else."


def question(row: Row) -> str:
    """The question with its options, a letter before each."""
    options = lettered(row["choices"]) if row["choices"] else ""
    return f"Question: {row['question']}\n{options}"


def captioned(row: Row) -> str:
    """As `question`, behind the captions, so that the questions of a clip share their beginning."""
    return f"What happens in the video, with seconds:\n{row['context'].strip() or '(none)'}\n\n{question(row)}"


def blind(row: Row) -> str:
    """The question alone."""
    return f"{question(row)}\n{LETTER}"


def narrations(row: Row) -> str:
    """The question behind the captions."""
    return f"{captioned(row)}\n{LETTER}"


def is_right(row: Row, option: str) -> str:
    """One option by itself, to be answered with yes or no."""
    return f"Question: {row['question']}\nProposed answer: {option}\nIs the proposed answer right? Reply Yes or No."


def captioned_is_right(row: Row, option: str) -> str:
    """As `is_right`, behind the captions."""
    return f"What happens in the video, with seconds:\n{row['context'].strip() or '(none)'}\n\n{is_right(row, option)}"


_WEIGH = (
    "Do not choose yet. Say in a few sentences what the whole video shows that bears on the question, and which of "
    f"the options {LETTERS[0]} to {LETTERS[4]} that speaks for and against."
)


def weigh(row: Row) -> str:
    """The first of two turns on frames."""
    return f"{question(row)}\n{_WEIGH}"


def weigh_captions(row: Row) -> str:
    """The first of two turns on captions."""
    return f"{captioned(row)}\n{_WEIGH}"


_CHOOSE = f"Now choose. {LETTER}"
BLIND = Wording(INSTRUCTION, blind, is_right)
NARRATIONS = Wording(INSTRUCTION, narrations, captioned_is_right)
TWO_PASS = Wording(INSTRUCTION, narrations, is_right, weigh_captions, _CHOOSE)
TWO_PASS_FRAMES = Wording(INSTRUCTION, blind, is_right, weigh, _CHOOSE)
