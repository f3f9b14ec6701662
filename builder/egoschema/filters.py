"""Rules that a made question has to pass before a model or a person looks at it.

    faults("How often does C wash the pan?", "Twice.", ["Once.", "Never.", "Three times.", "Four times."])
    -> ["asks for a frequency"]

Each rule says in a few words what is wrong. Length is looked at twice: a right answer that sticks out of its own
options, and a whole set in which the longest or the shortest option is right too often (`length_bias`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

WRONG = 4  # wrong answers of a question
STICKS_OUT = 1.5  # times the longest wrong answer, or the shortest wrong answer as many times the right one
Item = tuple[str, Sequence[str]]  # right answer, wrong answers

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
    """What is wrong with a question, in the order of the rules; [] for a question that passes."""
    question = _SPACE.sub(" ", question).strip()
    options = [_SPACE.sub(" ", option).strip() for option in (answer, *wrong)]
    folded = [option.casefold().rstrip(".") for option in options]
    found = []
    if not question or not all(options):
        found.append("has an empty text")
    if len(wrong) != count:
        found.append(f"has {len(wrong)} wrong answers, not {count}")
    if folded[0] in folded[1:]:
        found.append("has its right answer among the wrong ones")
    if len(set(folded[1:])) < len(wrong):
        found.append("has the same wrong answer twice")
    words = _PROMPT_WORDS.search(" \n ".join([question, *options]))
    if words:
        found.append(f"has a word of the prompt: {words[0].lower()}")
    if _FREQUENCY.search(question):
        found.append("asks for a frequency")
    if _WHEN.search(question):
        found.append("asks when")
    out = sticks_out(answer, wrong)
    if out:
        found.append(f"has a right answer that is the {out} by far")
    return found


def sticks_out(answer: str, wrong: Sequence[str], factor: float = STICKS_OUT) -> str:
    """ "longest" or "shortest" where the right answer is that by the factor, in characters; otherwise ""."""
    if not wrong:
        return ""
    lengths = [_length(option) for option in wrong]
    if _length(answer) > factor * max(lengths):
        return "longest"
    return "shortest" if factor * _length(answer) < min(lengths) else ""


# -- the length of the right answers over a set -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LengthBias:
    """How often one is right who takes the longest option, or the shortest, and how often by chance; shares of n.
    Of k options of that length each counts 1/k."""

    n: int
    longest: float
    shortest: float
    chance: float
    margin: float  # two standard errors of a fair set of this size

    @property
    def ruled_out(self) -> bool:
        """Whether the longest or the shortest option is right so seldom that it can be left out when guessing."""
        return min(self.longest, self.shortest) < self.chance - self.margin - 1e-12

    @property
    def given_away(self) -> bool:
        """Whether the longest or the shortest option is right more often than a fair set would have it."""
        return max(self.longest, self.shortest) > self.chance + self.margin + 1e-12


def length_bias(items: Sequence[Item]) -> LengthBias:
    """The bias of a set. ValueError for an empty one."""
    if not items:
        raise ValueError("no questions, so no bias")
    hits = [_hits(answer, wrong) for answer, wrong in items]
    chances = [1 / (1 + len(wrong)) for _, wrong in items]
    return LengthBias(
        n=len(items),
        longest=float(sum(longest for longest, _ in hits) / len(items)),
        shortest=float(sum(shortest for _, shortest in hits) / len(items)),
        chance=math.fsum(chances) / len(items),
        margin=2 * math.sqrt(math.fsum(p * (1 - p) for p in chances)) / len(items),
    )


def give_away(items: Sequence[Item]) -> list[int]:
    """Indices of the questions to leave out so that length gives nothing away in the rest: those whose right answer
    sticks out the most go first, and no more than have to."""
    kept = list(range(len(items)))
    gone: list[int] = []
    while kept and (bias := length_bias([items[i] for i in kept])).given_away:
        longest = bias.longest >= bias.shortest
        worst = max(kept, key=lambda i: (_excess(*items[i], longest=longest), -i))
        kept.remove(worst)
        gone.append(worst)
    return sorted(gone)


def _hits(answer: str, wrong: Sequence[str]) -> tuple[Fraction, Fraction]:
    lengths = [_length(option) for option in (answer, *wrong)]
    return tuple(  # type: ignore[return-value]
        Fraction(lengths[0] == extreme, lengths.count(extreme)) for extreme in (max(lengths), min(lengths))
    )


def _excess(answer: str, wrong: Sequence[str], *, longest: bool) -> float:
    """How many times longer than the longest wrong answer the right one is, or shorter than the shortest."""
    lengths = [_length(option) or 1 for option in wrong] or [1]
    return (_length(answer) or 1) / max(lengths) if longest else min(lengths) / (_length(answer) or 1)


def _length(text: str) -> int:
    return len(_SPACE.sub(" ", text).strip())
