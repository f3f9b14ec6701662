"""Which option a reply chooses.

    >>> read_choice("C is tempting, but the answer is (B).", ["C is cooking.", "C is doing laundry.", "C is eating."])
    Choice(index=1, status='ok', how='statement')

What a reply states goes before what it mentions: a statement ("Answer: B", "option B is correct", \\boxed{B}), then a
letter or an option's text that stands for itself, then one option's text within the prose, then one letter ("(B)",
"option B") within the prose. A reply that names several is unreadable, and so is one that names none; nothing is ever
guessed. In EgoSchema "C" is also the camera wearer: a bare C is the letter only where a sentence with the wearer
cannot go on from it. The time is linear in the length of the reply, of which READ characters are looked at.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from videoqa.choices import check
from videoqa.reading.choice_forms import (
    ALTERNATIVE,
    BARE_END,
    COMMON,
    DENIED_BEHIND,
    DENIED_FAR,
    LEAD_END,
    NAMED,
    OF_OPTION,
    ON,
    OTHERS_SAY,
    OWN_WORDS,
    PERSON,
    REASON,
    REFUSES,
    SENTENCE,
    SENTENCE_END,
    SEPARATOR,
    STATED,
    STOP,
    TAKEN_BACK,
    VERB,
    WAIT,
    WEARER,
)
from videoqa.reading.choice_text import WORD, Options, Reply, plain_text, text_key
from videoqa.reading.thinking import behind_thinking

STATUSES = ("ok", "unreadable", "refusal", "empty", "truncated")
READER = 2  # version of the reader; a reply that is read otherwise than before makes it another
LINE = 2_000  # characters of a line, where lines are read for themselves
READ = 20_000  # characters of a reply behind its thinking: half from the start, half from the end


@dataclass(frozen=True, slots=True)
class Choice:
    """What a reply chose."""

    index: int | None  # into the options as they were given; None: nothing can be taken from the reply
    status: str  # one of STATUSES
    how: str = ""  # ok: "json", "statement", "letter", "text" or "mention"; unreadable: "several" or "nothing"

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"status {self.status!r}: allowed are {', '.join(STATUSES)}")
        if (self.index is None) == (self.status == "ok"):
            raise ValueError(f"index {self.index} with status {self.status!r}: an index comes with ok, and only so")


SEVERAL = Choice(None, "unreadable", "several")
NOTHING = Choice(None, "unreadable", "nothing")
REFUSAL = Choice(None, "refusal")


def read_choice(text: str | None, choices: Sequence[str], *, numbered: bool = False) -> Choice:
    """The option that a reply chooses.

    With `numbered` the prompt labelled the options 0, 1, 2, ... and digits are their labels; otherwise letters are,
    and a digit is none. Of equal options the first one's index is given: see is_right. ValueError where there are not
    2 to 10 options; no reply raises.
    """
    check(choices)
    text, cut = behind_thinking(text or "")
    if cut:
        return Choice(None, "truncated")
    if len(text) > READ:
        text = f"{text[: READ // 2]}\n{text[-READ // 2 :]}"
    if not text.strip():
        return Choice(None, "empty")
    options = Options(choices, numbered)
    if (choice := _read_json(text, options)) is not None:
        return choice
    turn = _NEW_TURN.search(text)
    if turn and (before := _read(text[: turn.start()], options)).status == "ok":
        return before  # the model went on with a question of its own
    return _read(text, options)


def is_right(choice: Choice, gold: int, choices: Sequence[str]) -> bool:
    """Whether the chosen option's text is that of the gold one: equal options are right together."""
    check(choices, gold)
    return choice.index is not None and text_key(choices[choice.index]) == text_key(choices[gold])


_NEW_TURN = re.compile(r"(?<=\S)\s?\n\s?(?:question|human|user|q)(?: \d{1,4})?:", re.I)


def _read(raw: str, options: Options) -> Choice:
    """The reply without thinking and JSON."""
    text = plain_text(_without_words_of_others(raw, options))
    reply = Reply(text, options)
    if (index := options.keys.get(text_key(raw))) is not None:
        one_word = len(reply.token_starts) == 1  # an option's text may be a letter
        label = _label(reply, 0, LEAD_END) if one_word else None
        return Choice(index, "ok", "text") if label is None or label[0] == {index} else SEVERAL
    for read, how in ((_statement, "statement"), (_leads, "letter"), (_text_within, "text")):
        if chosen := read(reply):
            return Choice(next(iter(chosen)), "ok", how) if len(chosen) == 1 else SEVERAL
    if REFUSES.search(text):
        return REFUSAL
    chosen = _mentions(reply)
    return SEVERAL if len(chosen) > 1 else Choice(chosen.pop(), "ok", "mention") if chosen else NOTHING


def _without_words_of_others(text: str, options: Options) -> str:
    """The text without the quotations in which somebody of the video, or a caption, names an option: 'A voice says "the
    answer is C", but ...'. A quoted option's text stays."""

    def left(quoted: re.Match[str]) -> str:
        inside = quoted["double"] or quoted["curly"] or quoted["single"]
        forms = options.forms
        names = STATED.search(inside) or forms.right.search(inside) or forms.mention.search(inside)
        own = OWN_WORDS.search(text, max(0, quoted.start() - 40), quoted.start("verb"))
        return quoted["verb"] + quoted["between"] + "…" if names and not own else quoted[0]

    return OTHERS_SAY.sub(left, text)


def _label(reply: Reply, at: int, end: re.Pattern[str]) -> tuple[set[int], int] | None:
    """The label at this place and where it ends; several where it is one of a list. None where it is a word."""
    text, options = reply.text, reply.options
    match = options.forms.label.match(text, at)
    if match is None:
        return None
    chosen, stop = {options.index(match["l"])}, match.end("l")
    for _ in options.labels:
        more = options.forms.more.match(text, stop)
        if more is None:
            break
        named = match["named"] and more["comma"] is None and not more["l"].islower()
        if not (named or BARE_END.match(text, more.end()) or options.forms.more.match(text, more.end())):
            break
        chosen.add(options.index(more["l"]))
        stop = more.end()
    if len(chosen) > 1:
        return chosen, stop
    if match["close"] and set("([{") & set(match["open"]):
        return chosen, match.end()
    named = match["named"] and end is BARE_END and not match["l"].islower()
    if match["l"] in "AI":  # "option A screwdriver"
        named = named and (OF_OPTION.match(text, stop) or VERB.match(text, stop))
    if match["l"] in "Cc":
        named = named and OF_OPTION.match(text, stop)
        if WEARER.match(text, stop):
            return None
    aside = end is LEAD_END and match["l"] not in "CcIi" and text.startswith(" (", stop)
    # "Answer: D Option A is ...": a sentence begins behind it; A, C and I may be words of a title
    ahead = end is BARE_END and match["l"] not in "ACIaci" and SENTENCE.match(text, stop)
    if not (named or aside or ahead or end.match(text, stop)):
        return None
    if match["l"] in "ai" and text.startswith((" (", " -", " –", " —"), stop):
        return None
    return chosen, match.end() if match["close"] else stop


def _lone(line: str, options: Options) -> set[int] | None:
    """What a line chooses that holds nothing but a label, an option's text, or both; None for any other line."""
    reply = Reply(line, options)
    label = _label(reply, 0, LEAD_END)
    chosen, end = label or (set(), 0)
    behind = reply.text_at(end)
    if label and behind is None:  # "A: C" is no choice of either
        behind = _label(reply, SEPARATOR.match(line, end).end(), LEAD_END)  # type: ignore[union-attr]
    if behind is not None:
        chosen, end = chosen | behind[0], behind[1]
    return chosen if chosen and not WORD.search(line, end) else None


def _stated_at(reply: Reply, at: int) -> tuple[set[int], int] | None:
    """The option behind words such as "the answer is", and where it ends."""
    label, text = _label(reply, at, BARE_END), reply.text_at(at)
    if text is None and (named := NAMED.match(reply.text, at)):
        text = reply.text_at(named.end())  # "option C is cooking"
    if text is not None:
        alone = label is not None and label[1] >= text[1]  # an option whose text is a letter
        return (text[0] | label[0], text[1]) if alone and label else text
    if label is None:
        return None
    behind = reply.text_at(label[1])
    if behind is None or DENIED_BEHIND.match(reply.text, behind[1]):
        return label
    return label[0] | behind[0], behind[1]


def _statement(reply: Reply) -> set[int]:
    """What the last statement says. One that came before and says something else has to be taken back in between;
    "B is correct" may be said of several anyway, and so may two in one sentence."""
    text = reply.text
    stated: list[tuple[int, int, set[int], bool]] = []
    for match in STATED.finditer(text):
        start = match.start() + (match[0][0] in ".;!\n")
        one = _stated_at(reply, match.end())
        if one and not reply.denied(start) and not DENIED_BEHIND.match(text, one[1]):
            stated.append((start, one[1], one[0], False))
    for match in reply.options.forms.right.finditer(text):
        if _is_verdict(match) and not reply.denied(match.start()):
            stated.append((match.start(), match.end(), {reply.options.index(match["l"])}, True))
    if not stated:
        return set()
    stated.sort(key=lambda one: one[:2])
    last_start, last_end, last, last_right = stated[-1]
    if WAIT.search(text, last_end):
        return set(reply.options.same)  # taken back, and nothing put in its place: it may be any
    chosen = set(last)
    first, _, below = text.partition("\n")
    if (lone := _lone(first[:LINE], reply.options)) and not _lone(below.partition("\n")[0][:LINE], reply.options):
        stated.insert(0, (0, min(len(first), last_start), lone, False))
    other = max((end for _, end, before, _ in stated if not before <= last and end <= last_start), default=None)
    if other is not None and not TAKEN_BACK.search(text, other, last_end):
        return chosen.union(*(before for _, _, before, _ in stated))
    for _, end, before, right in stated[:-1]:
        between = text[end:last_start] if last_start - end < 80 else "\n"
        same = end > last_start or (ALTERNATIVE.search(between) and not SENTENCE_END.search(between))
        if same or (right and last_right):
            chosen |= before
    above, _, closing = text.rpartition("\n")
    if len(above) >= last_end and (lone := _lone(closing[:LINE], reply.options)):
        chosen |= lone
    return chosen


def _is_verdict(match: re.Match[str]) -> bool:
    """Whether "B is correct" ends there, so that it is not "C is correct in ..."; "option B best describes" goes on."""
    if match["best"]:
        return bool(match["named"])
    noun = match[0].endswith(("answer", "option", "choice"))
    ends = BARE_END.match(match.string, match.end()) or (noun and ON.match(match.string, match.end()))
    return bool(ends) and bool(match["named"] or noun or not match["l"].islower())


def _leads(reply: Reply) -> set[int]:
    """The label that the reply begins with and the lines that are nothing but a choice; all have to agree."""
    options = reply.options
    chosen: set[int] = set()
    listed: set[int] = set()
    for number, whole in enumerate(reply.text.split("\n")):
        line = whole[:LINE]
        if (lone := _lone(line, options)) is not None:
            chosen |= lone
            continue
        of_line = Reply(line, options)
        lead = _label(of_line, 0, LEAD_END)
        if lead is None or DENIED_BEHIND.match(line, lead[1]) or VERB.match(line, lead[1]):
            begins = of_line.text_at(0)
            if number == 0 and begins and " " not in line[: begins[1]] and STOP.match(line, begins[1]):
                chosen |= begins[0]  # "Yes, ..."
            continue
        behind = of_line.text_at(lead[1])
        indices = lead[0] | (behind[0] if behind else set())
        if number == 0:
            chosen |= indices
            if not REASON.match(line, lead[1]):  # "A: pans, B: onions, ..." goes through the options
                chosen |= _mentions(of_line) | {options.index(one["l"]) for one in options.forms.item.finditer(line)}
        elif not DENIED_FAR.match(line, lead[1]):
            listed |= indices
    return chosen | listed if chosen else set()


def _text_within(reply: Reply) -> set[int]:
    """The options whose text occurs, outside the text of a longer one, and is not denied. Letters that are mentioned
    beside count against it."""
    options, words = reply.options, reply.words
    chosen: set[int] = set()
    for text, indices in options.texts:
        if text in COMMON or (len(text) <= 2 and " " not in text) or text.isdigit():
            continue
        inside, at = False, words.find(f" {text} ")
        while at >= 0:
            first = bisect_left(reply.word_starts, at + 1)
            start, end = reply.token_starts[first], reply.token_ends[first + text.count(" ")]
            inside = inside or not (reply.denied(start) or DENIED_BEHIND.match(reply.text, end))
            at = words.find(f" {text} ", at + len(text) + 1)
        if inside:
            chosen |= indices
        words = words.replace(f" {text} ", f" {'=' * len(text)} ")  # of the same length
    if len(chosen) == 1 and (letters := _mentions(reply)) and not letters & chosen:
        return chosen | letters
    return chosen


def _mentions(reply: Reply) -> set[int]:
    """The labels in the forms "option B" and "(B)" that no sentence denies. Where an answer is stated in words that are
    no option's, only those in its sentence: "The answer is the dog (D)."."""
    text = reply.text
    chosen: set[int] = set()
    stated = [one for one in STATED.finditer(text) if one["noun"] and not reply.denied(one.start())]
    start, stop = 0, len(text)
    if stated:
        start = stated[-1].end()
        word = reply.options.forms.label.match(text, start)
        if word and word["l"] not in "AIai":  # "Answer: C washes": a label, maybe, that could not be read
            return chosen
        end = SENTENCE_END.search(text, start + 1)
        stop = end.start() if end else stop
    for match in reply.options.forms.mention.finditer(text, start, stop):
        if reply.denied(match.start()) or DENIED_FAR.match(text, match.end()) or text.startswith("?", match.end()):
            continue
        if match["l"] is not None:
            chosen |= (_label(reply, match.start(), BARE_END) or (set(), 0))[0]
        elif not PERSON.search(text[max(0, match.start() - 20) : match.start()]):
            chosen.add(reply.options.index(match["in"]))
    return chosen


_FENCE = re.compile(r"```(?:json)?\s*\n?([^`]*)```", re.I)
_ANSWER_KEYS = (
    "answer",
    "finalanswer",
    "correctanswer",
    "choice",
    "option",
    "letter",
    "prediction",
    "selected",
    "response",
)


def _read_json(text: str, options: Options) -> Choice | None:
    """What a reply in JSON chooses; None where it is not in JSON, or nothing in it is called an answer."""
    fence = _FENCE.search(text)
    body = (fence[1] if fence else text).strip()
    if not body.startswith(("{", "[")):
        return None
    try:
        data: Any = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if isinstance(data, list):
        values = data
    elif len(data) == 1:
        values = list(data.values())
    else:
        plain = {re.sub(r"[\s_-]", "", str(key)).casefold(): value for key, value in data.items()}
        values = [plain[key] for key in _ANSWER_KEYS if key in plain]
    if not values:
        return None
    read = [_read_value(value, options) for value in values]
    chosen = {choice.index for choice in read if choice.status == "ok"}
    if len(chosen) > 1 or SEVERAL in read:
        return SEVERAL
    return Choice(chosen.pop(), "ok", "json") if chosen else read[0]


def _read_value(value: Any, options: Options) -> Choice:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value) if 0 <= value < 10 else ""
    return _read(value, options) if isinstance(value, str) and value.strip() else NOTHING
