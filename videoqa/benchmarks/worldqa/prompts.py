"""How an open-ended question is put to the model under test: blind, with frames of the video, or with descriptions of
its events in place of the video.

blind           the question alone: what language priors can do
frames          frames of the video, each with its second, then the question
augmented-K     the descriptions of events that are going on at the times of K frames, then the question
augmented       the descriptions of all events
retriever       what experts report on the video and what is looked up, then the question (retriever/)

Multiple choice is put in the same ways: the options stand below the question, and a letter is the answer.
"""

from __future__ import annotations

from collections.abc import Callable

from videoqa.benchmarks.worldqa.augmented import described
from videoqa.choices import lettered
from videoqa.choosing import Wording
from videoqa.rows import Row

INSTRUCTION = (
    "You answer questions about a video. An answer may need knowledge of the world as well as what is to be seen and "
    "heard in the video. Answer in one or two sentences that give the reasons asked for. If you cannot know, give your "
    "best guess.\n\n"
)


def asked(row: Row) -> str:
    """The question, for an agent, which is asked several things about it."""
    return f"Question: {row['question']}"


def blind(row: Row) -> str:
    """The question alone, to follow INSTRUCTION."""
    return f"{asked(row)}\nAnswer:"


def augmented(k: int | None) -> Callable[[Row], str]:
    """The query that shows the descriptions at the times of k frames (None: all), so that the questions of a video
    share their beginning."""
    return lambda row: _behind_events(row, k, blind(row))


def _behind_events(row: Row, k: int | None, text: str) -> str:
    return f"What happens in the video, with seconds:\n{described(row, k) or '(none)'}\n\n{text}"


# -- multiple choice --------------------------------------------------------------------------------------------------

CHOICE_INSTRUCTION = (
    "You answer questions about a video. An answer may need knowledge of the world as well as what is to be seen and "
    "heard in the video. Each question has several options, of which exactly one is right. If you cannot know, choose "
    "the most likely one.\n\n"
)


def choice(row: Row) -> str:
    """The question with its options, a letter before each."""
    options = f"{lettered(row['choices'])}\n" if row["choices"] else ""
    return f"Question: {row['question']}\n{options}Reply with the letter of the right option and nothing else."


def is_right(row: Row, option: str) -> str:
    """One option by itself, to be answered with yes or no."""
    return f"Question: {row['question']}\nProposed answer: {option}\nIs the proposed answer right? Reply Yes or No."


def lettered_question(row: Row) -> str:
    """The question with its options, for an agent."""
    return f"{asked(row)}\n{lettered(row['choices'])}" if row["choices"] else asked(row)


NOW_CHOOSE = "Now choose. Reply with the letter of the right option and nothing else."
CHOICE = Wording(CHOICE_INSTRUCTION, choice, is_right)


def augmented_choice(k: int | None) -> Wording:
    """The same behind the descriptions at the times of k frames (None: all)."""
    return Wording(
        CHOICE_INSTRUCTION,
        lambda row: _behind_events(row, k, choice(row)),
        lambda row, option: _behind_events(row, k, is_right(row, option)),
    )
