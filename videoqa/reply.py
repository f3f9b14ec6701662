"""The reader of a judge's reply: text -> Verdict. A number that merely occurs in the prose is no score."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace

from videoqa.errors import UserError
from videoqa.rubric import Rubric

READER_VERSION = "1"  # goes up with every change that reads a reply otherwise
STATUSES = ("ok", "empty_prediction", "unreadable", "out_of_range", "truncated", "judge_error")


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
    choice: int | None = None  # multiple choice: the option that was read, as an index of the question's own order

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise UserError(f"status {self.status!r}: allowed are {', '.join(STATUSES)}")


_ZERO_WIDTH = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
_THINK = r"(?:think|thinking|thought|reasoning|reflection)"
_NUMBER = r"(?P<n>[-+−–]?\d+(?:\.\d+)?)(?![\d.,]*\d|%)"
_OUT_OF = r"(?:\s*(?:/|(?:out\s+)?of)\s*(?P<of>\d+)(?![\d.]*\d))?"
_LABEL = r"(?<![\w-])(?:overall\s+|final\s+|total\s+|my\s+)?(?:score|rating|grade|points?)"
_BETWEEN = r"[^\S\n]*(?:\([^)\n]*\)[^\S\n]*)?(?::|=|\bis\b|\bof\b(?=[^\S\n]*\d))[^\S\n]*(?:a[^\S\n]+)?"
_LONE = rf"{_NUMBER}{_OUT_OF}[^\S\n]*(?:points?|stars?)?[^\S\n]*[.!]?"
_LINE = re.compile(rf"(?:{_LABEL}(?:{_BETWEEN}|\s+))?{_LONE}", re.I)
_LABELLED = re.compile(rf"{_LABEL}{_BETWEEN}{_NUMBER}{_OUT_OF}(?!\s*(?:-|–|to\b|or\b|/)\s*\d)", re.I)
_BELOW = re.compile(rf"^[^\S\n]*{_LABEL}[^\S\n]*[:=]?[^\S\n]*\n\s*{_LONE}[^\S\n]*$", re.I | re.M)
_COUNTED = r"(?!\s+(?:of\s|(?!(?:as|is|this|thus|points|stars)\b)[a-z]+s\b))"  # "3 out of 10 objects"
_RATIO = re.compile(rf"(?<![\w./–−-]){_NUMBER}\s*(?:/|out\s+of)\s*(?P<of>\d+)(?![\d.]*\d){_COUNTED}", re.I)
_BRACKETED = re.compile(rf"\[\[\s*{_NUMBER}\s*\]\]")
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[;\n]")
# What says that a number is not this answer's: "it would be a 9/10 if", "the maximum score is 10", "deserves no score
# of 8", "7 to 8 out of 10" before it; "a score of 10 means" behind it.
_NOT_MEANT_BEFORE = re.compile(
    r"(?<!\bi )\b(?:would|could|should|might)\b|\bif\b|(?:\b(?:not?|cannot|never)|n['’]t)\b[^,:]*$"
    r"|\b(?:maximum|max|minimum|min|highest|lowest|top|best|worst|perfect|full|possible)\s*$|\d\s*(?:to|or|and)\s*$",
    re.I,
)
_NOT_MEANT_BEHIND = re.compile(
    r",?\s*(?:if|unless|means?|would|indicates?|represents?|is\s+(?:for|given|reserved))\b", re.I
)
_FENCE = re.compile(r"```\w*\n?(.*?)(?:```|$)", re.S)


def without_thinking(text: str) -> str | None:
    """The text behind the model's thinking block; None where the block was never closed (the reply was cut)."""
    text, cut = behind_thinking(text)
    return None if cut else text


def behind_thinking(text: str) -> tuple[str, bool]:
    """The text without thinking blocks, up to one that was never closed, and whether there is such a one."""
    text = re.sub(rf"<{_THINK}>.*?</{_THINK}>", "", text, flags=re.S | re.I)
    # the opening tag may have stood in the prompt
    text = re.split(rf"</{_THINK}>", text, flags=re.I)[-1]
    text, *cut = re.split(rf"<{_THINK}>", text, maxsplit=1, flags=re.I)
    return text, bool(cut)


def read_reply(text: str, rubric: Rubric) -> Verdict:
    """Read a judge's reply: the score line first, then labelled and other explicit forms. A number that merely occurs
    in the prose is no score, and neither is one of several that contradict each other."""
    raw = text
    text, cut = behind_thinking(text)
    text = _ZERO_WIDTH.sub("", unicodedata.normalize("NFC", text)).strip()
    lines = text.splitlines()
    if lines and (match := _LINE.fullmatch(_plain(lines[0]))):
        return _judged(match, "\n".join(lines[1:]), rubric, raw)
    if cut:
        return Verdict(None, "truncated", raw=raw)
    if (verdict := _read_json(text, rubric)) is not None:
        return replace(verdict, raw=raw)
    if match := _agreed(list(_BRACKETED.finditer(text))):
        return _judged(match, text[match.end() :], rubric, raw)
    plain = "\n".join(map(_plain, lines))
    found = [m for m in (*_LABELLED.finditer(plain), *_BELOW.finditer(plain)) if _meant(m, plain)]
    found.sort(key=lambda m: m.start())
    at_line_start = [m for m in found if m.start() == 0 or plain[m.start() - 1] == "\n"]
    if at_line_start:
        # the reply's first line is the score line; otherwise the last one is the verdict, what stands before led to it
        match = at_line_start[0] if at_line_start[0].start() == 0 else at_line_start[-1]
    else:
        out_of_high = [m for m in _RATIO.finditer(plain) if float(m["of"]) == rubric.values[-1] and _meant(m, plain)]
        match = _agreed(found) if found else _agreed(out_of_high)
    if match:
        rest = plain[: match.start()] + plain[match.end() :] if match in at_line_start else plain
        return _judged(match, rest, rubric, raw)
    if not found and len(lines) > 1 and (match := _LINE.fullmatch(_plain(lines[-1]))):
        return _judged(match, "\n".join(lines[:-1]), rubric, raw)
    return Verdict(None, "unreadable", raw=raw)


def _meant(match: re.Match[str], text: str) -> bool:
    """Whether the sentence that a number stands in says it of this answer."""
    before = _SENTENCE_END.split(text[: match.start()])[-1]
    return not (_NOT_MEANT_BEFORE.search(before) or _NOT_MEANT_BEHIND.match(text, match.end()))


def _agreed(matches: list[re.Match[str]]) -> re.Match[str] | None:
    """The first of matches that all say the same number."""
    return matches[0] if len({float(_ascii_minus(m["n"])) for m in matches}) == 1 else None


def _ascii_minus(number: str) -> str:
    return number.replace("−", "-").replace("–", "-")


def _plain(line: str) -> str:
    """The line without Markdown's marks and with ordinary digits."""
    line = unicodedata.normalize("NFKC", line)
    return re.sub(r"[*_`#>\"“”|~]+", "", line).replace("[", "").replace("]", "").strip()


def _read_json(text: str, rubric: Rubric) -> Verdict | None:
    """A JSON object with a score, fenced or bare; None if there is none."""
    fence = _FENCE.search(text)
    body = (fence[1] if fence else text).strip()
    if not body.startswith("{"):
        return None
    import json_repair

    try:
        data = json_repair.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    lower = {str(k).strip().lower(): v for k, v in data.items()}
    key = next((k for k in ("score", "rating", "grade", "overall_score", "points", "point") if k in lower), None)
    value = str(lower.get(key)).strip() if key and not isinstance(lower[key], bool) else ""
    match = _LINE.fullmatch(_plain(value))
    if match is None:
        return None
    said = next((str(lower[k]) for k in ("reason", "explanation", "rationale", "justification") if lower.get(k)), "")
    return _judged(match, said, rubric, text)


def _judged(match: re.Match[str], rest: str, rubric: Rubric, raw: str) -> Verdict:
    number = float(_ascii_minus(match["n"]))
    low, high = rubric.values[0], rubric.values[-1]
    of = match.groupdict().get("of")
    allowed = low <= number <= high if rubric.between else number in rubric.values
    if not allowed or (of is not None and float(of) != high):
        return Verdict(None, "out_of_range", rest.strip(), raw)
    return Verdict(number, "ok", rest.strip(), raw)
