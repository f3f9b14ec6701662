"""A reply and the options as the reader of choices.py compares them: plain characters, and words."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence

from videoqa.choices import LETTERS
from videoqa.reading.choice_forms import CLAUSE_END, DENIED_BEFORE, forms

_INVISIBLE = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]")
_SYNTAX = re.compile(
    r"<\|\w{1,30}\|>|</?(?:s|eos|pad|end_of_turn)>|\\{1,2}(?:text|textbf|mathrm|mathbf|mathit|rm|bf)\b|\\{1,2}[()\[\]]|\$"
)
_MARKUP = re.compile(r"[*_`~|]+|^[>#•+ -]*[>#•+-] ", re.M)
_QUOTES = str.maketrans("‘’‚‛“”„‟«»", "''''" + '""""""')


def plain_text(text: str) -> str:
    """The text in ordinary characters, without marks of Markdown and LaTeX; a run of blanks or line ends is one."""
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).translate(_QUOTES)
    text = _MARKUP.sub("", _SYNTAX.sub("", text))
    return "\n".join(line for part in text.splitlines() if (line := " ".join(part.split())))


WORD = re.compile(r"\w+(?:'\w+)?")


def text_key(text: str) -> str:
    """What equal options have in common: the words and marks, without case, blanks, and quotes and stops around it."""
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).translate(_QUOTES).casefold()
    return " ".join(text.split()).strip(" .\"'") or " ".join(text.split())


def _words(text: str) -> str:
    return " ".join(WORD.findall(text.casefold()))


class Options:
    """The options as the reader needs them."""

    def __init__(self, choices: Sequence[str], numbered: bool) -> None:
        self.labels = "0123456789"[: len(choices)] if numbered else LETTERS[: len(choices)]
        self.forms = forms(self.labels)
        keys = [text_key(choice) for choice in choices]
        self.same = [keys.index(key) for key in keys]  # the first option of the same text
        self.keys = {key: keys.index(key) for key in keys if key}
        # by words, the longest first; options that differ in marks only are not told apart by words
        texts: dict[str, set[int]] = {}
        for index, choice in enumerate(choices):
            texts.setdefault(_words(plain_text(choice)), set()).add(self.same[index])
        self.texts = sorted(((text, places) for text, places in texts.items() if text), key=lambda pair: -len(pair[0]))

    def index(self, label: str) -> int:
        return self.same[self.labels.index(label.upper())]


class Reply:
    """A plain text with its words; every reading of it gives the set of the options that it found."""

    def __init__(self, text: str, options: Options) -> None:
        self.text, self.options = text, options
        tokens = list(WORD.finditer(text))
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
        before = CLAUSE_END.split(self.text[max(0, start - 120) : start])[-1]
        return DENIED_BEFORE.search(before) is not None
