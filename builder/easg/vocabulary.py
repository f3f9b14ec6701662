"""Words of questions and answers by their dictionary forms, so that inflection makes no difference to a check."""

from __future__ import annotations

import re
from functools import lru_cache

from lemminflect import getAllLemmas

from builder.easg import wording
from builder.easg.grounding import occurs, plain
from builder.easg.records import Action


def words_of(words: str) -> frozenset[str]:
    """The items of "a b c"."""
    return frozenset(words.split())


SYNONYMS = [  # of verbs: any of a group may stand for another
    frozenset(group.split())
    for group in (
        "pick take grab get lift collect raise fetch",
        "put place set lay position keep leave rest store",
        "remove take detach pull get",
        "drop put release let place",
        "move shift transfer carry bring slide",
        "clean wipe wash rinse scrub dust",
        "cut slice chop split trim",
        "fix attach fasten fit mount install secure",
        "tighten fasten screw secure",
        "loosen unscrew undo",
        "turn rotate twist flip switch",
        "close shut",
        "hold grip grasp",
        "pour tip empty",
        "pass hand give",
        "push press",
        "spread smear apply",
        "throw toss discard dispose",
        "touch feel tap",
        "adjust arrange straighten",
        "scoop take fetch",
        "stir mix",
    )
]


def tokens(text: str) -> list[str]:
    """The words of a text in lower case, "don't" and "well-kept" as one."""
    return re.findall(r"\w+(?:['’-]\w+)*", text.lower())


@lru_cache(1 << 14)
def kinds_of(word: str) -> dict[str, tuple[str, ...]]:
    """{"NOUN": dictionary forms, ...}; {} for a word that is in no dictionary."""
    return getAllLemmas(word) if word.isascii() and word.isalpha() else {}


def lemmas_of(word: str) -> frozenset[str]:
    """The word and its dictionary forms: cutting -> cutting, cut."""
    return frozenset({word, *(lemma for lemmas in kinds_of(word).values() for lemma in lemmas)})


def stems_of(text: str) -> set[str]:
    """The words of a text and their dictionary forms."""
    return {lemma for word in tokens(text) for lemma in lemmas_of(word)}


def verb_stems(action: Action) -> set[str]:
    """First words of the verb, as annotated and as corrected, with their dictionary forms."""
    heads = [text.split()[0] for text in (plain(action.verb), wording.spoken_verb(action)) if text.split()]
    return {lemma for head in heads for lemma in lemmas_of(head)}


def verbs_like(action: Action) -> set[str]:
    """The action's verb and its synonyms."""
    own = verb_stems(action)
    return own.union(*(group for group in SYNONYMS if own & group))


def same_verb(one: Action, two: Action) -> bool:
    """Whether two actions have a verb in common."""
    return bool(verb_stems(one) & verb_stems(two))


def same_thing(one: str, two: str) -> bool:
    """Whether two nouns of an annotation have a name in common: `trey`, `tray`."""
    return bool({*wording.names(one)} & {*wording.names(two)})


def is_named(noun: str, lower: str) -> bool:
    """Whether a text in lower case has a name of the annotation's noun."""
    return any(occurs(name, lower) for name in wording.names(noun))


def heads_of(noun: str) -> set[str]:
    """Last words of the noun's names: wire_cutter -> cutter, cutters."""
    return {name.split()[-1] for name in wording.names(noun)}
