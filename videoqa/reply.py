"""The reader of a judge's reply: text -> Verdict.

A wrong number is worse than none. The folder `reading` takes the model's thinking away, makes plain lines of the rest
and finds the scores that they name, each in an explicit form; what is here decides: one score, or the last word of
several. Two that differ and no last word are unreadable.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from videoqa.errors import UserError
from videoqa.reading.lines import MOST, claims
from videoqa.reading.number import Claim
from videoqa.reading.text import lines_of
from videoqa.reading.thinking import behind_thinking, without_thinking
from videoqa.rubric import Rubric

STATUSES = ("ok", "empty_prediction", "unreadable", "out_of_range", "truncated", "judge_error", "skipped")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the judge said of one row. In mode `dist`, `score` is the expected score, and `most_likely`, `mass` (the
    probability of all allowed scores together) and `probabilities` (renormalized to 1, in the order of the rubric's
    values) say how sure that is."""

    score: float | None  # None: not readable, never 0
    status: str  # one of STATUSES
    explanation: str = ""
    raw: str = ""  # the reply, or the error
    most_likely: float | None = None
    mass: float | None = None
    probabilities: tuple[float, ...] | None = None
    choice: int | None = None  # multiple choice: the option that was read, by its index before any rearrangement
    matched: str | None = None  # multiple choice: what an engine says that a reply means which names no option

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise UserError(f"status {self.status!r}: allowed are {', '.join(STATUSES)}")


__all__ = [
    "READER_VERSION",
    "STATUSES",
    "Verdict",
    "begins_with_score",
    "behind_thinking",
    "read_reply",
    "without_thinking",
]

READER_VERSION = "5"  # goes up with every change that reads a reply otherwise
_NEAR = 400  # characters before a score in which a revision of the one before is announced
# "Wait, the table is missing.", "On reflection", "Let me correct that": the score behind it replaces the one before
_REVISION = re.compile(
    r"(?:^|[.!?…,—–(]\s?)(?:wait|actually|correction|hmm+|hold on|no,|sorry|scratch|edit|update|oops|my bad"
    r"|strike that|i meant?|should be|rather|upon review|lowered|raised|make (?:that|it)|minus|or rather"
    r"|however,? on|moment|warte)(?!\w)"
    r"|(?<!\w)(?:on (?:further |second |closer )?(?:reflection|thought|reading|look|inspection|consideration)"
    r"|second thoughts?|reconsider\w*|re-?evaluat\w*|re-?assess\w*|let me (?:correct|revise|change|adjust|fix)"
    r"|i (?:must|need to|should|will|have to|would)?\s?(?:revise|correct|change|lower|raise|adjust|reduce)"
    r"|i (?:made|was) (?:a mistake|wrong|mistaken|too)|(?:revis|correct|adjust|updat|lower|chang)ing (?:my|the"
    r"|it|this)"
    r"|take (?:that|it|this) back|changed my mind|(?:was|is|seems) (?:a bit )?too (?:generous|harsh|high|low"
    r"|strict|lenient|kind)"
    r"|but it is really|first draft|disregard (?:that|my|the above))(?!\w)",
    re.I | re.M,
)
# whoever reads it is to choose
_OPEN = re.compile(
    r"(?<!\w)(?:up to (?:you|the (?:reader|user|teacher|reviewer|examiner)|interpretation)|whichever (?:you|of)"
    r"|take your pick"
    r"|depending on (?:how|whether|which|the (?:reading|interpretation|standard)))(?!\w)",
    re.I,
)
_SCORE_LIKE = re.compile(r"\d|(?<!\w)(?:one|two|three|four|five|six|seven|eight|nine|ten)(?!\w)", re.I)


def begins_with_score(text: str, rubric: Rubric) -> bool:
    """Whether the reply's first line is a score line: one that is read whatever is cut off behind it."""
    lines, _ = lines_of(behind_thinking(text)[0])
    named = [c for c in claims(lines, float(rubric.values[-1])) if c.value is not None]
    return bool(named) and named[0].whole_line and not any(lines[: named[0].line])


def read_reply(text: str, rubric: Rubric) -> Verdict:
    """Read a judge's reply. A number that merely occurs in the prose is no score, and neither is one of several that
    contradict each other."""
    answer, cut = behind_thinking(text)
    lines, reason = lines_of(answer)
    top = float(rubric.values[-1])
    named = claims(lines, top)
    if cut:  # only a score line before the thinking stands for itself
        named = [c for c in named if c.whole_line and not any(lines[: c.line])][:1]
    chosen = _last_word(named, lines) if len(named) < MOST else None
    if chosen is not None and (_left_open(chosen, lines) or _differs(reason, chosen, top)):
        chosen = None
    if chosen is None or chosen.value is None:
        return Verdict(None, "truncated" if cut else "unreadable", raw=text)
    explanation = reason or _explanation(chosen, lines)
    low, allowed = float(rubric.values[0]), {float(v) for v in rubric.values}
    fits = low <= chosen.value <= top if rubric.between else chosen.value in allowed
    if not fits or chosen.of not in (None, top):
        return Verdict(None, "out_of_range", explanation, text)
    return Verdict(chosen.value, "ok", explanation, text)


def _differs(reason: str, chosen: Claim, top: float) -> bool:
    """Whether the explanation in a JSON object gives another score than its member: {"score": 6, "explanation": "It
    deserves a score of 9."}"""
    if not reason:
        return False
    lines, _ = lines_of(reason)
    other = _last_word(claims(lines, top), lines)
    return other is not None and other.value is not None and other.value != chosen.value


def _left_open(chosen: Claim, lines: list[str]) -> bool:
    """Whether the sentence's score is one of two that the reader may choose from: "I would give a 4, but with a lenient
    reading it would be an 8. It is up to the reader." """
    line = lines[chosen.line]
    return not chosen.whole_line and bool(_OPEN.search(line)) and len(set(_SCORE_LIKE.findall(line))) > 1


def _last_word(named: list[Claim], lines: list[str]) -> Claim | None:
    """The score that holds: the only one, the overall one behind those of parts, or the one that revises the others."""
    strong = [c for c in named if c.rank in ("score", "final")]
    if not strong:
        weak = [c for c in named if c.rank == "weak"]
        return weak[0] if weak and len({c.value for c in named}) == 1 else None
    holds = None
    contradicted = False
    for claim in named:
        if claim.value is None and not claim.whole_line and holds is not None and holds.whole_line:
            continue  # "a score of 9 or 10 is not justified"
        if holds is None:
            holds = claim if claim.rank in ("score", "final") else None
            continue
        if claim.rank == "stray":
            contradicted = contradicted or claim.value != holds.value
            continue
        revised = claim.revised or _REVISION.search(_between(holds, claim, lines)[-_NEAR:]) is not None
        if claim.value == holds.value and claim.value is not None:
            if claim.rank == "final" or revised:
                holds, contradicted = claim, False
        elif revised or (claim.rank == "final" and holds.rank != "final"):
            holds, contradicted = claim, False
        elif claim.rank != "weak":
            contradicted = True
    if holds is None or contradicted:
        return None
    behind = "\n".join([lines[holds.line][holds.ends :], *lines[holds.line + 1 :]])
    announced = _REVISION.search(behind)
    if announced and _SCORE_LIKE.search(behind, announced.end(), announced.end() + 200):
        later = [c for c in named if (c.line, c.begins) > (holds.line, holds.begins) and c.value == holds.value]
        return holds if later else None  # a revision to a score that could not be read
    return holds


def _between(one: Claim, other: Claim, lines: list[str]) -> str:
    """The text between two scores."""
    if one.line == other.line:
        return lines[one.line][one.ends : other.begins]
    whole = lines[one.line + 1 : other.line]
    return "\n".join([lines[one.line][one.ends :], *whole, lines[other.line][: other.begins]])


def _explanation(claim: Claim, lines: list[str]) -> str:
    """The reply without its score line's head."""
    if not claim.whole_line:
        return "\n".join(lines).strip()
    rest = lines[claim.line][claim.ends :].lstrip(" .,:;!–—-")
    return "\n".join([*lines[: claim.line], rest, *lines[claim.line + 1 :]]).strip()
