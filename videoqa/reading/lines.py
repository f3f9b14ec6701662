"""All scores that a reply's lines name: lines that are a score, and what labels and sentences say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice

from videoqa.reading.labels import LOOSE, STRONG, labelled, modifiers
from videoqa.reading.number import CRITERION, Claim, Rank, number_at
from videoqa.reading.sentences import in_sentences

MOST = 100  # a reply that names more scores names none

# "7 - The student ...", "7: The student", "7, because", "6 (the side is wrong)"; "7. The student" is a list's number
_VERDICT_FIRST = re.compile(
    r"(?=\d)[^\n]{0,12}?(?: ?[-–—:(;|]|, ?(?:because|since|as|the|it|but|this)(?!\w)|/\s?\d)", re.I
)
_NUMBERED = re.compile(r"\d+ ?(?:(?:to|-|–) ?\d+)? ?[-–—:.)=]\s")  # a list, or the scale's lines
# a line that announces the score below it: "Score:", "## Final verdict", "Here is my rating:"
_ABOVE = re.compile(
    rf"(?<![\w-])(?:{STRONG}|{LOOSE}|(?:final )?answer|评分|評分|得分|分数|评价|評価|点数|スコア|점수"
    rf"|평가) ?(?:\([^()]{{0,60}}\))? ?[:：]?$",
    re.I,
)
# a heading of a part, "**Accuracy**" above "8/10", and one of the whole, "### Overall" above "Score: 6/10"
_CRITERION_LINE = re.compile(rf"(?<!\w){CRITERION}(?!\w)", re.I)
_FINAL_LINE = re.compile(
    r"(?<!\w)(?:overall|final|total|verdict|conclusion|summary|gesamt\w*|fazit|итог\w*|global)(?!\w)|总|最终|総合", re.I
)


_BEFORE_NUMBER = re.compile(r"(?:=>|->|→|[★☆⭐✩✪●○■□▓░]{1,24})? ?\(?")  # "=> 7", "(7/10) The place is missing."


def _whole_lines(lines: Sequence[str]) -> Iterator[Claim]:
    """A number that is a line of its own or begins the reply."""
    full = [n for n, line in enumerate(lines) if line]
    for place, n in enumerate(full):
        line = lines[n]
        above = lines[full[place - 1]] if place else ""
        start = _BEFORE_NUMBER.match(line)
        figure = number_at(line, start.end() if start else 0)
        if figure is None:
            continue
        value, of, end = figure
        if of is None and not line[start.end() if start else 0 :].lstrip("⟦+-–")[:1].isdigit():
            continue  # "sei", "one" and "ten" are words of the prose as well
        lone = not re.search(r"[^\W_]", re.sub(r"^(?:です|入り|입니다|이다)", "", line[end:]))
        announced = bool(_ABOVE.search(above[-120:]))
        rank: Rank = "final" if announced and _FINAL_LINE.search(above[-120:]) else "score"
        if announced and not lone and of is None and re.match(r"[.)]", line[end:]):
            continue  # "Evaluation:", below it "1. The tool is right."
        if announced and not _CRITERION_LINE.search(above[-120:]) and modifiers(_ABOVE.sub("", above[-120:]))[0]:
            yield Claim(value, of, rank, n, 0, end, True)
        elif value is None and not lone:
            continue  # "10 - 3 = 7"
        elif place == 0 and (lone or (_VERDICT_FIRST.match(line) and (of or _only_numbered(lines, n)))):
            if lone or line[end : end + 1] != "." or of is not None:
                yield Claim(value, of, "score", n, 0, end, True)
        elif (
            lone
            and not above.endswith(":")
            and not (len(above) <= 40 and above[-1:] not in tuple(".!") and _CRITERION_LINE.search(above))
            and (of or place == len(full) - 1)
        ):
            yield Claim(value, of, "score", n, 0, end, True)


def _only_numbered(lines: Sequence[str], n: int) -> bool:
    return not any(_NUMBERED.match(line) for k, line in enumerate(lines) if k != n)


# "Student: the jug. Score: 10"
_TOLD_LINE = re.compile(
    r"\W{0,6}(?:the\s)?(?:student|assistant|model|candidate|reference|question"
    r"|ground\struth)(?:['’]s)?(?:\s\w{1,20}){0,2}:",
    re.I,
)


def claims(lines: Sequence[str], top: float) -> list[Claim]:
    """The scores that the lines name, in their order, at most MOST. `top` is the scale's highest score."""
    named = list(islice(_whole_lines(lines), MOST))
    for n, line in enumerate(lines):
        quoted = _TOLD_LINE.match(line)
        of_line = chain(labelled(line, n, "\n".join(lines[max(0, n - 8) : n])), in_sentences(line, n, top))
        named += [c for c in islice(of_line, MOST) if c.whole_line or not quoted]
        if len(named) >= MOST:
            break
    named.sort(key=lambda c: (c.line, c.begins))
    return [_under_heading(c, lines) for c in named if not _of_a_part(c, lines)][:MOST]


def _heading(c: Claim, lines: Sequence[str]) -> str:
    """The line above a score line, where it is short enough for a heading."""
    above = next((lines[k] for k in range(c.line - 1, max(-1, c.line - 4), -1) if lines[k]), "")
    return above if c.whole_line and len(above) <= 40 and not above.endswith((".", "!")) else ""


def _of_a_part(c: Claim, lines: Sequence[str]) -> bool:
    heading = _heading(c, lines)
    return bool(
        re.fullmatch(rf"(?:\d+[.)]\s?)?(?:\w+\s){{0,2}}{CRITERION}\s?:?", heading, re.I)
    ) and not _FINAL_LINE.search(heading)


def _under_heading(c: Claim, lines: Sequence[str]) -> Claim:
    heading = _heading(c, lines)
    return (
        replace(c, rank="final")
        if re.fullmatch(r"(?:\d+[.)]\s?)?(?:overall|final|total|summary)(?:\s\w+){0,2}\s?:?", heading, re.I)
        else c
    )
