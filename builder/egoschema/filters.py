"""Rules that a made question has to pass before a model or a person looks at it.

    faults("How often does C wash the pan?", "Twice.", ["Once.", "Never.", "Three times.", "Four times."])
    -> ["asks for a frequency"]

Each rule says in a few words what is wrong; those on the options are builder/options.py's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from builder.options import EMPTY, option_faults

WRONG = 4  # wrong answers of a question

# Words of the prompt that a question about the video has no use for.
_PROMPT_WORDS = re.compile(
    r"\b(?:long[-\s]term|narrat(?:ions?|ors?|ed)|time[-\s]?stamps?|time[-\s]?stamped|captions?|transcripts?"
    r"|the\s(?:prompt|text|description|log|list)\sabove|(?:language|ai)\smodel|multiple[-\s]choice|wrong\sanswers?)\b",
    re.I,
)
_FREQUENCY = re.compile(
    r"\b(?:how\s(?:many|often|frequently|regularly)|frequency|(?:most|least)\s(?:often|frequently|frequent)"
    r"|(?:number|count|amount)\sof\stimes|how\smuch\stime)\b",
    re.I,
)
_WHEN = re.compile(
    r"^\W*when\s(?:and\swhere\s)?(?:exactly\s)?(?:do|does|did|is|was|are|were|has|have|had|will|would|can|could)\b"
    r"|\b(?:at|around|by)\s(?:what|which)\s(?:exact\s)?(?:time|point|moment|second|minute|stage)\b"
    r"|\b(?:what|which)\s(?:second|minute|timestamp)\b|\bwhat\stime\b",
    re.I,
)
_SPACE = re.compile(r"\s+")


def faults(question: str, answer: str, wrong: Sequence[str], count: int = WRONG) -> list[str]:
    """What is wrong with a question, those on the options first; [] for a question that passes."""
    question = _SPACE.sub(" ", question).strip()
    options = [_SPACE.sub(" ", option).strip() for option in (answer, *wrong)]
    found = option_faults(answer, wrong, count)
    if not question and EMPTY not in found:
        found.insert(0, EMPTY)
    words = _PROMPT_WORDS.search(" \n ".join([question, *options]))
    if words:
        found.append(f"has a word of the prompt: {words[0].lower()}")
    if _FREQUENCY.search(question):
        found.append("asks for a frequency")
    if _WHEN.search(question):
        found.append("asks when")
    return found
