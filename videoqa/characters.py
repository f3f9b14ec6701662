"""What a character is by its Unicode properties: unseen, or a bracket. By property and not by list, since new ones come
with every version of Unicode.

    without_unseen("a\\u200bb\\u3164c")   ->   "a b c"        round_brackets("【System】〚x❳")   ->   "(System)(x)"
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
# Letters and signs that are drawn as nothing, though their category is that of seen ones
_DRAWN_AS_NOTHING = re.compile(
    r"FILLER$|^VARIATION SELECTOR|^MONGOLIAN FREE VARIATION SELECTOR|^BRAILLE PATTERN BLANK$"
    r"|^COMBINING GRAPHEME JOINER$|^KHMER VOWEL INHERENT"
)


@cache
def is_unseen(character: str) -> bool:
    """Whether a character is drawn as nothing: format marks (zero width, changes of direction, tags), separators of
    lines, fillers, variation selectors. Blanks and line ends are not: they are seen as space."""
    if unicodedata.category(character) in ("Cf", "Zl", "Zp", "Cs", "Cn"):
        return True
    return _DRAWN_AS_NOTHING.search(unicodedata.name(character, "")) is not None


@cache
def _rounded(character: str) -> str:
    return {"Ps": "(", "Pe": ")"}.get(unicodedata.category(character), character)


def without_unseen(text: str) -> str:
    """The text with a blank for each unseen character."""
    return _BEYOND_ASCII.sub(lambda match: " " if is_unseen(match[0]) else match[0], text)


def round_brackets(text: str) -> str:
    """The text with a round bracket for each square one and for each bracket beyond ASCII, whatever its form."""
    text = text.replace("[", "(").replace("]", ")")
    return _BEYOND_ASCII.sub(lambda match: _rounded(match[0]), text)


def first_unseen(text: str) -> int | None:
    """The place of the first unseen or control character; None where there is none. Right-to-left letters are fine."""
    for place, character in enumerate(text):
        if unicodedata.category(character) == "Cc" or (character > "\x7f" and is_unseen(character)):
            return place
    return None
