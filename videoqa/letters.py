"""Multiple choice: options with letters, their rearrangements, and the reader of a reply.

    >>> read_choice("C is tempting, but the answer is (B).", ["C is cooking.", "C is doing laundry.", "C is eating."])
    Choice(index=1, status='ok', how='statement')

What a reply states goes before what it mentions: a statement ("Answer: B", "option B is correct", \\boxed{B}), then a
letter or an option's text that stands for itself, then one option's text within the prose, then one letter ("(B)",
"option B") within the prose. A reply that names several is unreadable, and so is one that names none; nothing is ever
guessed. In EgoSchema "C" is also the camera wearer: a bare C is the letter only where a sentence with the wearer
cannot go on from it. The time is linear in the length of the reply, of which READ characters are looked at.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from videoqa.errors import UserError
from videoqa.reading.thinking import behind_thinking
from videoqa.reply import Verdict
from videoqa.rows import Row
from videoqa.scorer import Item

LETTERS = "ABCDEFGHIJ"
STATUSES = ("ok", "unreadable", "refusal", "empty", "truncated")
READER = 1  # version of the reader; a reply that is read otherwise than before makes it another
LINE = 2_000  # characters of a line, where lines are read for themselves
READ = 20_000  # characters of a reply behind its thinking: half from the start, half from the end

# -- options and their rearrangements ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Options in another order: `order[i]` is the original index of the one at i."""

    choices: tuple[str, ...]
    gold: int | None  # index into these choices; None where it is withheld
    order: tuple[int, ...]


def lettered(choices: Sequence[str]) -> str:
    """One line for each option: A. ..., B. ..., ..."""
    _check(choices)
    return "\n".join(f"{letter}. {choice}" for letter, choice in zip(LETTERS, choices, strict=False))


def shifts(choices: Sequence[str], gold: int | None) -> list[Arrangement]:
    """All circular shifts, the given order first."""
    count = len(choices)
    return [_arranged(choices, gold, [(i + by) % count for i in range(count)]) for by in range(count)]


def shuffled(choices: Sequence[str], gold: int | None, seed: int, id: str) -> Arrangement:
    """The options of row `id` in an order that depends on the seed and the id alone."""

    def key(index: int) -> bytes:
        return hashlib.sha256(json.dumps([seed, id, index]).encode()).digest()

    return _arranged(choices, gold, sorted(range(len(choices)), key=key))


CIRCULAR = "circular"


def rearranged(rows: Sequence[Row], order: str | None) -> list[Row]:
    """The rows with their options in another order: "circular" (each row in all its shifts, of one `group`, with ids
    ID#0, ID#1, ...), or "shuffle:SEED". `order` of a row is the original index of each option. None: as they are."""
    if order is None:
        return list(rows)
    if without := [row["id"] for row in rows if not row.get("choices")]:
        raise UserError(f"question {without[0]} has no options to be put in another order")
    if order == CIRCULAR:
        return [
            {**row, **_options(one), "id": f"{row['id']}#{shift}", "group": row["id"]}
            for row in rows
            for shift, one in enumerate(shifts(row["choices"], row["gold"]))
        ]
    seed = re.fullmatch(r"shuffle:(\d{1,9})", order)
    if seed is None:
        raise UserError(f"options in the order {order!r}: it is {CIRCULAR} or shuffle:SEED")
    shuffles = (shuffled(row["choices"], row["gold"], int(seed[1]), row["id"]) for row in rows)
    return [{**row, **_options(one)} for row, one in zip(rows, shuffles, strict=True)]


def _options(one: Arrangement) -> dict[str, Any]:
    return {"choices": list(one.choices), "gold": one.gold, "order": list(one.order)}


def _arranged(choices: Sequence[str], gold: int | None, order: Sequence[int]) -> Arrangement:
    _check(choices, gold)
    moved = None if gold is None else order.index(gold)
    return Arrangement(tuple(choices[i] for i in order), moved, tuple(order))


def _check(choices: Sequence[str], gold: int | None = None) -> None:
    if isinstance(choices, str) or not 2 <= len(choices) <= len(LETTERS):
        raise ValueError(f"{len(choices)} options: 2 to {len(LETTERS)} can be lettered")
    whole = isinstance(gold, int) and not isinstance(gold, bool)
    if gold is not None and not (whole and 0 <= gold < len(choices)):
        raise ValueError(f"gold {gold!r}: it is an index into {len(choices)} options, 0 to {len(choices) - 1}")


# -- the reader -------------------------------------------------------------------------------------------------------


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
    _check(choices)
    text, cut = behind_thinking(text or "")
    if cut:
        return Choice(None, "truncated")
    if len(text) > READ:
        text = f"{text[: READ // 2]}\n{text[-READ // 2 :]}"
    if not text.strip():
        return Choice(None, "empty")
    options = _Options(choices, numbered)
    if (choice := _read_json(text, options)) is not None:
        return choice
    turn = _NEW_TURN.search(text)
    if turn and (before := _read(text[: turn.start()], options)).status == "ok":
        return before  # the model went on with a question of its own
    return _read(text, options)


def is_right(choice: Choice, gold: int, choices: Sequence[str]) -> bool:
    """Whether the chosen option's text is that of the gold one: equal options are right together."""
    _check(choices, gold)
    return choice.index is not None and _key(choices[choice.index]) == _key(choices[gold])


_NEW_TURN = re.compile(r"(?<=\S)\s?\n\s?(?:question|human|user|q)(?: \d{1,4})?:", re.I)


_INVISIBLE = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]")
_SYNTAX = re.compile(
    r"<\|\w{1,30}\|>|</?(?:s|eos|pad|end_of_turn)>|\\{1,2}(?:text|textbf|mathrm|mathbf|mathit|rm|bf)\b|\\{1,2}[()\[\]]|\$"
)
_MARKUP = re.compile(r"[*_`~|]+|^[>#•+ -]*[>#•+-] ", re.M)
_QUOTES = str.maketrans("‘’‚‛“”„‟«»", "''''" + '""""""')


def _plain(text: str) -> str:
    """The text in ordinary characters, without marks of Markdown and LaTeX; a run of blanks or line ends is one."""
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).translate(_QUOTES)
    text = _MARKUP.sub("", _SYNTAX.sub("", text))
    return "\n".join(line for part in text.splitlines() if (line := " ".join(part.split())))


_WORD = re.compile(r"\w+(?:'\w+)?")


def _key(text: str) -> str:
    """What equal options have in common: the words and marks, without case, blanks, and quotes and stops around it."""
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).translate(_QUOTES).casefold()
    return " ".join(text.split()).strip(" .\"'") or " ".join(text.split())


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


class _Options:
    """The options as the reader needs them."""

    def __init__(self, choices: Sequence[str], numbered: bool) -> None:
        self.labels = "0123456789"[: len(choices)] if numbered else LETTERS[: len(choices)]
        self.forms = _forms(self.labels)
        keys = [_key(choice) for choice in choices]
        self.same = [keys.index(key) for key in keys]  # the first option of the same text
        self.keys = {key: keys.index(key) for key in keys if key}
        # by words, the longest first; options that differ in marks only are not told apart by words
        texts: dict[str, set[int]] = {}
        for index, choice in enumerate(choices):
            texts.setdefault(_words(_plain(choice)), set()).add(self.same[index])
        self.texts = sorted(((text, found) for text, found in texts.items() if text), key=lambda pair: -len(pair[0]))

    def index(self, label: str) -> int:
        return self.same[self.labels.index(label.upper())]


@dataclass(frozen=True, slots=True)
class _Forms:
    """The patterns in which the labels of a prompt occur."""

    label: re.Pattern[str]  # at a place: marks, the label, marks
    more: re.Pattern[str]  # behind a label: "or B", "/B"
    right: re.Pattern[str]  # "B is correct"
    mention: re.Pattern[str]  # "option B", "(B)"
    item: re.Pattern[str]  # "B: ..." within a line


# What may follow a bare label that is no word of a sentence.
_END = (
    r"""\s?$|\ ?\n|\s?[)\]}>](?!\w)|["'](?!\w|\s(?:is|was|has|does|\w{1,15}ing)\b)|\.(?![\w])|[,;:!](?!\d)"""
    r"""|\ ?[-–—]{1,2}(?:\s|$)|\ \(|</|\s(?:and\snot|rather\sthan|over|instead\sof)\b"""
    r"""|\s(?:or|and)\s(?:the\sanswer|it's|it\sis)\b"""
)
_WHY = r"\s(?:because|since|due|given|based)\b"
_BARE_END = re.compile(rf"(?:{_END}|{_WHY})", re.X | re.I)
# Of a reply that begins with a label: "C, while cooking, ..." is the camera wearer, "I, for one" the writer.
_LEAD_END = re.compile(rf"""(?:\s?$|\ ?\n|["']?[.!):\]}}>](?!\w)|["'](?!\w)|\ ?[-–—]{{1,2}}\s|,?{_WHY})""", re.X | re.I)
# Behind a bare C: what says that it is the wearer.
_WEARER = re.compile(
    r""",\s(?!because|since|as\b|due\b|given|based|which|not\b|it\b|this\b|so\b|option|rather)"""
    r"""|[\s(–—-]{1,3}(?:who\b|whose\b|the\s(?:camera|wearer|(?:person|man|woman|one)\s(?:who|wearing|with|behind)))""",
    re.I,
)
# Behind "option C": what goes on about an option, for "the best option C has is to ..." is about the wearer.
_OF_OPTION = re.compile(
    r"\s(?:which|that|best|most|is\s\w{0,9}\s?(?:correct|right|plausible|likely|supported)|shows|fits|matches|mentions|states|says"
    r"|describes|captures|reflects|summari[sz]es|seems|appears)\b",
    re.I,
)
_PERSON = re.compile(
    r"\b(?:camera|wearer|person|man|woman|individual|character|operator|actor|user|he|she|lady)\s?$", re.I
)
_LIST = (
    r"""["')\]}]{0,3}\s?(?:(?P<comma>[,;]\s?)(?!or\b|and\b)|[/&+]\s?|(?=\s?[(\[])|,?\s?\b(?:or|and)\s)"""
    r"""(?:(?:maybe|possibly|perhaps|even|option|choice|it's|it\sis|the\sanswer\sis)\s){0,2}"""
)
_RIGHT = (
    r"(?:is|would\sbe|must\sbe|has\sto\sbe)\s(?:(?:clearly|definitely|likely|therefore|indeed)\s)?"
    r"(?:correct|(?:the\s)?(?:(?:most|best|only)\s)?(?:(?:correct|right|best|accurate|likely|appropriate|plausible|suitable)\s)?"
    r"(?:answer|option|choice)|the\s(?:correct|right)\sone|the\smost\s(?:accurate|likely|appropriate|plausible|suitable))"
)


@lru_cache(maxsize=32)
def _forms(labels: str) -> _Forms:
    upper = f"[{labels}]"
    either = f"[{labels}{labels.lower()}]"
    alone = r"(?<!\w')(?<![\w#.,-])" if labels[0] == "0" else r"(?<!\w')(?<![\w#-])"
    past = r"(?![\w%])(?!\.\d|,\d)"
    return _Forms(
        label=re.compile(
            rf"""\s?(?P<named>(?i:options?|choices?|letters?|answers?|numbers?|no\.)\s?)?(?P<open>["'(\[{{<]{{0,4}})\s?"""
            rf"""{alone}(?P<l>{either}){past}\.?\s?(?P<close>[)\]}}]?)""",
        ),
        more=re.compile(rf"(?i:{_LIST})\s?[\"'(\[{{]{{0,3}}(?P<l>{either}){past}"),
        right=re.compile(
            rf"""(?i:(?P<named>\b(?:option|choice|answer|letter)\s))?["'(\[{{]{{0,2}}{alone}(?P<l>{either}){past}["')\]}}]{{0,2}}"""
            rf"""\s(?:(?:{_RIGHT})|(?:best|most\saccurately|correctly|accurately)\s"""
            r"(?P<best>describes|summari[sz]es|captures|represents|reflects|explains|matches|fits|answers))",
        ),
        item=re.compile(rf"(?<=[.;,\w] )(?P<l>{upper})[.:)]\s"),
        mention=re.compile(
            rf"""(?i:\b(?:options?|choices?|answers?|letters?)\s)["'(\[]{{0,2}}{alone}(?P<l>{upper}){past}"""
            rf"""|(?<!\w)[(\[]\s?(?P<in>{either})\s?[)\]]""",
        ),
    )


# What a label or a text follows that is stated to be the answer.
_STATED = re.compile(
    r"""(?:
    \b(?P<noun>answer|ans|choice|option|selection|prediction|response|verdict|conclusion|solution)\b["'\]]?
      (?:\s(?:to|for|that|which|here|in|based|given|from|choice|option|letter)\b[^.,;:!?\n]{0,80}?)?
      \s?(?::|=|[-=]>|→|[-–—](?=\s)|\b(?:is|was|(?:would|should|must|will|has\sto|seems\sto|appears\sto)\sbe)\b)(?:\s?:)?
    |\b(?:correct|guess|final)\s?:
    |\\?boxed
    |<answer>
    |\[(?=\[)
    |\b(?:choose|chose|select|selected|pick|picked|go\swith|going\swith|opt\sfor|vote\sfor|settle\son)\b:?
    |\b(?:i|we|i'd|i\swould)\s(?:think|believe|guess|say|would\ssay|conclude)\b(?:\sthat)?(?:\s(?:it\sis|it's)\b)?
    |(?:^|[.;!\n]\s?|\bbut\s|\bso\s|\btherefore,?\s|\bthus,?\s|\bhence,?\s)(?:it\sis|it's|that\sis|that's|it\smust\sbe)\b
    )(?:\s(?:clearly|definitely|probably|likely|most\slikely|therefore|thus|indeed|obviously|still|actually)\b)?(?:\sto\sbe\b)?""",
    re.X | re.I,
)
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[;\n]")
# In the clause before a label or text: what says that it is not the answer.
_CLAUSE_END = re.compile(r"[.!?](?=\s)|[;\n,:]|\bbut\b", re.I)
_DENIED_BEFORE = re.compile(
    r"(?:n't|\b(?:not|cannot|never|neither|nor|no|if|unless|whether|wrong|incorrect|false|unlike|unlikely|less|instead\sof"
    r"|rather\sthan|while|although|though|despite|except|eliminate|reject|exclude|discard|rule\sout|ruling\sout))\b"
    r"(?!\sdoubt\b)",
    re.I,
)
_DENIED_BEHIND = re.compile(
    r"""["')\]]{0,3}(?::\s(?:no|nope|not|wrong|incorrect)\b|\s?(?:(?:is|are|was|seems|looks|would\sbe|can|could|does)\s?)?"""
    r"(?:n't\b|not\b|never\b|cannot\b|can't\b|incorrect|wrong|inaccurate|false\b|unlikely|ruled\sout|eliminated|tempting|implausible))",
    re.I,
)
_DENIED_FAR = re.compile(
    r"[^.;\n]{0,60}?(?:n't|\b(?:not|never|cannot|incorrect|wrong|inaccurate|false|unlikely|eliminated|ruled|implausible|irrelevant))\b",
    re.I,
)
_REFUSAL = re.compile(
    r"\b(?:can(?:not|'t|\snot)|could(?:n't|\snot)|unable\sto|not\sable\sto|(?:im|not\s)possible\sto|difficult\sto|hard\sto)"
    r"\s[\w\s]{0,30}?\b(?:determined?|decide|tell|answer(?:ed)?|say|know|identify|choose|assist|help|provide|view|see|watch"
    r"|access|analy[sz]e|process|infer)\b"
    r"|\b(?:do(?:n't|\snot)\sknow|not\ssure|unsure|uncertain|no\sidea|none\sof\s(?:the|these|those|them)|undetermined"
    r"|no\s(?:correct\s|right\s)?(?:answer|option|choice)|(?:not\senough|insufficient)\s\w+|(?:i'm|i\sam)\ssorry|as\san\sai)\b"
    r"|^\W{0,3}(?:n/a|none|unknown|sorry)\b",
    re.I,
)
# One word that a sentence has anyway is an option's text only where it stands for itself.
_COMMON = frozenset("all and both false her his none not one that the there this true two yes".split())  # noqa: SIM905


def _read(raw: str, options: _Options) -> Choice:
    """The reply without thinking and JSON."""
    text = _plain(raw)
    reply = _Reply(text, options)
    if (index := options.keys.get(_key(raw))) is not None:
        one_word = len(reply.token_starts) == 1  # an option's text may be a letter
        label = _label(reply, 0, _LEAD_END) if one_word else None
        return Choice(index, "ok", "text") if label is None or label[0] == {index} else SEVERAL
    for read, how in ((_statement, "statement"), (_leads, "letter"), (_text_within, "text")):
        if found := read(reply):
            return Choice(next(iter(found)), "ok", how) if len(found) == 1 else SEVERAL
    if _REFUSAL.search(text):
        return REFUSAL
    found = _mentions(reply)
    return SEVERAL if len(found) > 1 else Choice(found.pop(), "ok", "mention") if found else NOTHING


class _Reply:
    """A plain text with its words; every reading of it gives the set of the options that it found."""

    def __init__(self, text: str, options: _Options) -> None:
        self.text, self.options = text, options
        tokens = list(_WORD.finditer(text))
        self.token_starts = [token.start() for token in tokens]
        self.token_ends = [token.end() for token in tokens]
        folded = [token[0].casefold() for token in tokens]
        self.words = f" {' '.join(folded)} "
        self.word_starts, at = [], 1
        for word in folded:
            self.word_starts.append(at)
            at += len(word) + 1

    def text_at(self, at: int, reach: int = 4) -> tuple[set[int], int] | None:
        """The longest option whose text begins behind at most `reach` marks, and where it ends."""
        token = bisect_left(self.token_starts, at)
        if token == len(self.token_starts) or self.token_starts[token] - at > reach:
            return None
        start = self.word_starts[token]
        for text, indices in self.options.texts:
            if self.words.startswith(f"{text} ", start):
                return indices, self.token_ends[token + text.count(" ")]
        return None

    def denied(self, start: int) -> bool:
        """Whether the clause up to here says that what follows is not the answer."""
        before = _CLAUSE_END.split(self.text[max(0, start - 120) : start])[-1]
        return _DENIED_BEFORE.search(before) is not None


_SENTENCE = re.compile(r"\s[A-Z](?:\w|'|\s[a-z])")


def _label(reply: _Reply, at: int, end: re.Pattern[str]) -> tuple[set[int], int] | None:
    """The label at this place and where it ends; several where it is one of a list. None where it is a word."""
    text, options = reply.text, reply.options
    match = options.forms.label.match(text, at)
    if match is None:
        return None
    found, stop = {options.index(match["l"])}, match.end("l")
    for _ in options.labels:
        more = options.forms.more.match(text, stop)
        if more is None:
            break
        named = match["named"] and more["comma"] is None and not more["l"].islower()
        if not (named or _BARE_END.match(text, more.end()) or options.forms.more.match(text, more.end())):
            break
        found.add(options.index(more["l"]))
        stop = more.end()
    if len(found) > 1:
        return found, stop
    if match["close"] and set("([{") & set(match["open"]):
        return found, match.end()
    named = match["named"] and end is _BARE_END and not match["l"].islower()
    if match["l"] in "AI":  # "option A screwdriver"
        named = named and (_OF_OPTION.match(text, stop) or _VERB.match(text, stop))
    if match["l"] in "Cc":
        named = named and _OF_OPTION.match(text, stop)
        if _WEARER.match(text, stop):
            return None
    aside = end is _LEAD_END and match["l"] not in "CcIi" and text.startswith(" (", stop)
    # "Answer: D Option A is ...": a sentence begins behind it; A, C and I may be words of a title
    ahead = end is _BARE_END and match["l"] not in "ACIaci" and _SENTENCE.match(text, stop)
    if not (named or aside or ahead or end.match(text, stop)):
        return None
    if match["l"] in "ai" and text.startswith((" (", " -", " –", " —"), stop):
        return None
    return found, match.end() if match["close"] else stop


_SEPARATOR = re.compile(r"[.:)\s]{0,3}")


def _lone(line: str, options: _Options) -> set[int] | None:
    """What a line chooses that holds nothing but a label, an option's text, or both; None for any other line."""
    reply = _Reply(line, options)
    label = _label(reply, 0, _LEAD_END)
    found, end = label or (set(), 0)
    behind = reply.text_at(end)
    if label and behind is None:  # "A: C" is no choice of either
        behind = _label(reply, _SEPARATOR.match(line, end).end(), _LEAD_END)  # type: ignore[union-attr]
    if behind is not None:
        found, end = found | behind[0], behind[1]
    return found if found and not _WORD.search(line, end) else None


_NAMED = re.compile(r"\s?(?:option|choice|answer)\b:?", re.I)


def _stated_at(reply: _Reply, at: int) -> tuple[set[int], int] | None:
    """The option behind words such as "the answer is", and where it ends."""
    label, text = _label(reply, at, _BARE_END), reply.text_at(at)
    if text is None and (named := _NAMED.match(reply.text, at)):
        text = reply.text_at(named.end())  # "option C is cooking"
    if text is not None:
        alone = label is not None and label[1] >= text[1]  # an option whose text is a letter
        return (text[0] | label[0], text[1]) if alone and label else text
    if label is None:
        return None
    behind = reply.text_at(label[1])
    if behind is None or _DENIED_BEHIND.match(reply.text, behind[1]):
        return label
    return label[0] | behind[0], behind[1]


# Between two statements: what says that the second stands in the place of the first.
_TAKEN_BACK = re.compile(
    r"\b(?:wait|no,|but|however|actually|instead|correction|corrected|sorry|oops|mistake\w*|revis\w{1,4}|change|changed"
    r"|re-?(?:consider|evaluat|examin|think|check|read)\w{0,4}|on\ssecond\sthought|final|finally|therefore|thus|hence"
    r"|in\sconclusion|overall|so)\b",
    re.I,
)
_WAIT = re.compile(
    r"(?:\bbut\s|\bno,?\s|[.!?\n–—-]\s?)wait\b[,.!\s]|\bon\ssecond\sthought|\blet\sme\s(?:re-?|double-?\s?)[ectv]", re.I
)
_ALTERNATIVE = re.compile(r"\b(?:or|and)\b|/")
_ON = re.compile(r"\s(?:to|for|here|in|as)\b")


def _statement(reply: _Reply) -> set[int]:
    """What the last statement says. One that came before and says something else has to be taken back in between;
    "B is correct" may be said of several anyway, and so may two in one sentence."""
    text = reply.text
    stated: list[tuple[int, int, set[int], bool]] = []
    for match in _STATED.finditer(text):
        start = match.start() + (match[0][0] in ".;!\n")
        one = _stated_at(reply, match.end())
        if one and not reply.denied(start) and not _DENIED_BEHIND.match(text, one[1]):
            stated.append((start, one[1], one[0], False))
    for match in reply.options.forms.right.finditer(text):
        if _is_verdict(match) and not reply.denied(match.start()):
            stated.append((match.start(), match.end(), {reply.options.index(match["l"])}, True))
    if not stated:
        return set()
    stated.sort(key=lambda one: one[:2])
    last_start, last_end, last, last_right = stated[-1]
    if _WAIT.search(text, last_end):
        return set(reply.options.same)  # taken back, and nothing put in its place: it may be any
    found = set(last)
    first, _, below = text.partition("\n")
    if (lone := _lone(first[:LINE], reply.options)) and not _lone(below.partition("\n")[0][:LINE], reply.options):
        stated.insert(0, (0, min(len(first), last_start), lone, False))
    other = max((end for _, end, before, _ in stated if not before <= last and end <= last_start), default=None)
    if other is not None and not _TAKEN_BACK.search(text, other, last_end):
        return found.union(*(before for _, _, before, _ in stated))
    for _, end, before, right in stated[:-1]:
        between = text[end:last_start] if last_start - end < 80 else "\n"
        same = end > last_start or (_ALTERNATIVE.search(between) and not _SENTENCE_END.search(between))
        if same or (right and last_right):
            found |= before
    above, _, closing = text.rpartition("\n")
    if len(above) >= last_end and (lone := _lone(closing[:LINE], reply.options)):
        found |= lone
    return found


def _is_verdict(match: re.Match[str]) -> bool:
    """Whether "B is correct" ends there, so that it is not "C is correct in ..."; "option B best describes" goes on."""
    if match["best"]:
        return bool(match["named"])
    noun = match[0].endswith(("answer", "option", "choice"))
    ends = _BARE_END.match(match.string, match.end()) or (noun and _ON.match(match.string, match.end()))
    return bool(ends) and bool(match["named"] or noun or not match["l"].islower())


# "(A) shows a pan", "B because ..." behind the label that a reply begins with
_VERB = re.compile(
    r"\s(?:is|was|are|seems|looks|shows|describes|mentions|says|can|could|may|might|would|does|has|and|or)\b", re.I
)
_REASON = re.compile(rf"\s?\(|,?{_WHY}", re.I)
_STOP = re.compile(r"[.,;:!]\s")


def _leads(reply: _Reply) -> set[int]:
    """The label that the reply begins with and the lines that are nothing but a choice; all have to agree."""
    options = reply.options
    found: set[int] = set()
    listed: set[int] = set()
    for number, whole in enumerate(reply.text.split("\n")):
        line = whole[:LINE]
        if (lone := _lone(line, options)) is not None:
            found |= lone
            continue
        of_line = _Reply(line, options)
        lead = _label(of_line, 0, _LEAD_END)
        if lead is None or _DENIED_BEHIND.match(line, lead[1]) or _VERB.match(line, lead[1]):
            begins = of_line.text_at(0)
            if number == 0 and begins and " " not in line[: begins[1]] and _STOP.match(line, begins[1]):
                found |= begins[0]  # "Yes, ..."
            continue
        behind = of_line.text_at(lead[1])
        indices = lead[0] | (behind[0] if behind else set())
        if number == 0:
            found |= indices
            if not _REASON.match(line, lead[1]):  # "A: pans, B: onions, ..." goes through the options
                found |= _mentions(of_line) | {options.index(one["l"]) for one in options.forms.item.finditer(line)}
        elif not _DENIED_FAR.match(line, lead[1]):
            listed |= indices
    return found | listed if found else set()


def _text_within(reply: _Reply) -> set[int]:
    """The options whose text occurs, outside the text of a longer one, and is not denied. Letters that are mentioned
    beside count against it."""
    options, words = reply.options, reply.words
    found: set[int] = set()
    for text, indices in options.texts:
        if text in _COMMON or (len(text) <= 2 and " " not in text) or text.isdigit():
            continue
        inside, at = False, words.find(f" {text} ")
        while at >= 0:
            first = bisect_left(reply.word_starts, at + 1)
            start, end = reply.token_starts[first], reply.token_ends[first + text.count(" ")]
            inside = inside or not (reply.denied(start) or _DENIED_BEHIND.match(reply.text, end))
            at = words.find(f" {text} ", at + len(text) + 1)
        if inside:
            found |= indices
        words = words.replace(f" {text} ", f" {'=' * len(text)} ")  # of the same length
    if len(found) == 1 and (letters := _mentions(reply)) and not letters & found:
        return found | letters
    return found


def _mentions(reply: _Reply) -> set[int]:
    """The labels in the forms "option B" and "(B)" that no sentence denies. Where an answer is stated in words that are
    no option's, only those in its sentence: "The answer is the dog (D)."."""
    text = reply.text
    found: set[int] = set()
    stated = [one for one in _STATED.finditer(text) if one["noun"] and not reply.denied(one.start())]
    start, stop = 0, len(text)
    if stated:
        start = stated[-1].end()
        word = reply.options.forms.label.match(text, start)
        if word and word["l"] not in "AIai":  # "Answer: C washes": a label, maybe, that could not be read
            return found
        end = _SENTENCE_END.search(text, start + 1)
        stop = end.start() if end else stop
    for match in reply.options.forms.mention.finditer(text, start, stop):
        if reply.denied(match.start()) or _DENIED_FAR.match(text, match.end()) or text.startswith("?", match.end()):
            continue
        if match["l"] is not None:
            found |= (_label(reply, match.start(), _BARE_END) or (set(), 0))[0]
        elif not _PERSON.search(text[max(0, match.start() - 20) : match.start()]):
            found.add(reply.options.index(match["in"]))
    return found


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


def _read_json(text: str, options: _Options) -> Choice | None:
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


def _read_value(value: Any, options: _Options) -> Choice:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value) if 0 <= value < 10 else ""
    return _read(value, options) if isinstance(value, str) and value.strip() else NOTHING


# -- the scorer -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Letters:
    """Compares the option that a reply chooses with the right one: 1 or 0. A reply that cannot be read is a 0 of status
    "unreadable", with the reason as its explanation; where the right answer is withheld there is no score."""

    needs_truth: bool = False

    @property
    def key(self) -> str:
        """Names the reader: verdicts of two readers are never mixed."""
        return f"letters {READER}"

    def describe(self) -> dict[str, Any]:
        """What a result says of it."""
        return {"key": self.key}

    def rate(self, items: Sequence[Item]) -> Iterator[tuple[int, Verdict]]:
        """The verdict on each item with its index."""
        for index, item in enumerate(items):
            yield index, _compared(item)


def _compared(item: Item) -> Verdict:
    choice = read_choice(item.prediction, item.choices)
    if choice.index is None:
        why = choice.how or choice.status
        return Verdict(None if item.gold is None else 0.0, "unreadable", why, item.prediction or "")
    original = item.order[choice.index] if item.order else choice.index
    score = None if item.gold is None else float(is_right(choice, item.gold, item.choices))
    return Verdict(score, "ok", choice.how, item.prediction or "", choice=original)
