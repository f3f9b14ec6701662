"""The words of an annotation in correct English: slips, articles, plurals, inflection, particles.

Inflection is lemminflect's. The counts in the tables are uses in the public EASG file.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import NamedTuple

from lemminflect import getInflection, getLemma

from builder.easg.records import Action


def listed(text: str) -> frozenset[str]:
    """The items of "a, b, c"."""
    return frozenset(text.split(", "))


# Slips in verbs (uses in the file); corrected before inflection, which inflects slips happily.
VERB_SLIPS = {
    "pick sup": "pick up",  # 6
    "losse": "loosen",  # 4
    "loose": "loosen",  # 3
    "loosen out": "loosen",  # 1
    "untighten": "loosen",  # 1
    "tight": "tighten",  # 2
    "seperate": "separate",  # 6
    "streche": "stretch",  # 1
    "scrap": "scrape",  # 9
    "smoothen": "smooth",  # 7
    "drop up": "drop",  # 1
    "spread up": "spread",  # 1
    "close back": "close",  # 2
}

# Verbs that say something else, or nothing, to most readers (uses in the file).
VERB_MEANT = {
    "pick": "pick up",  # 872: "picked the cup" alone reads as "chose"
    "dip in": "dip",  # 4: "dip in brush, to can"
    "place down": "put down",  # 1
    "put off": "turn off",  # 8: tap, computer
    "put out": "set out",  # 2: dough, phone
    "unhang": "take down",  # 2
}

# Slips and regional forms of whole nouns (uses in the file).
NOUN_SLIPS = {
    "scrapper": "scraper",  # 28
    "short": "shorts",  # 65
    "boxer": "boxers",  # 8
    "trouser": "trousers",  # 6
    "plier": "pliers",  # 33
    "shear": "shears",  # 1
    "pruning sheer": "pruning shears",  # 1
    "driver": "screwdriver",  # 2: "tight screw with driver"
    "driller": "drill",  # 17
    "ironbox": "iron",  # 9
    "iron box": "iron",  # 2
    "paint brush": "paintbrush",  # 8
    "shelve": "shelf",  # 12
    "bow": "bowl",  # 1
    "hoes": "hose",  # 1
    "trey": "tray",  # 1
    "mixure": "mixture",  # 1
    "clothe": "cloth",  # 1
    "rod metal": "metal rod",  # 1
    "cover lid": "lid",  # 1
    "sponge foam": "foam sponge",  # 1
    "liquid wash": "dishwashing liquid",  # 1
    "plastic wraps": "plastic wrap",  # 1
    "woods": "pieces of wood",  # 2
    "x.": "another person",  # 1
}

PARTICLES = listed("up, down, out, off, on, in, over, away, back, apart, together, around, aside, open")
TAPS = listed("tap, faucet")  # opened and closed: turned on and off
LITTER = listed("dirt, debris, dust")  # "pick dirt from flower": off the flower
UPRIGHT = listed("wall, door, ceiling")  # nothing is picked up from them
SWITCHED = TAPS | listed("switch, light, lamp, computer, laptop, machine, oven, cooker, stove, mixer, fan, torch")

FLAT = listed("table, floor, ground, shelf, scale, countertop, counter, desk, slab, waist, cloth")  # "in table": on
BODY = listed("hand, hands, finger, fingers, fist, face, waist, mouth, leg")
BARE = listed("himself, herself, itself, themselves, pieces, another person")  # no article
PAIRS = listed("scissors, pliers, clothes, tweezers, tongs")  # plurals that are their own lemma


@lru_cache(1 << 14)
def cleaned(text: str) -> str:
    """The annotation's words without its marks: `weighing_scale`, `TABLE`, ` table`, `bowl:1` (mark dropped)."""
    text = re.sub(r"\s*:\s*\d+", " ", text.replace("_", " ")).replace("?", " ")
    return " ".join(w if w.isupper() and len(w) <= 3 else w.lower() for w in text.split())  # TV, USB stay


def is_marked(text: str) -> bool:
    """Whether the annotation counts the thing apart from others of its name: `bowl:1`."""
    return re.search(r":\s*\d", text) is not None


def slot_text(text: str) -> str:
    """The annotation's words as an answer has them: `bowl:1` -> "another bowl"."""
    return f"another {cleaned(text)}" if is_marked(text) else cleaned(text)


@lru_cache(1 << 14)
def noun_of(text: str) -> str:
    """The noun as a question writes it: marks cleaned, an article of the annotation's dropped, slips corrected."""
    words = re.sub(r"^(?:the|an?)\s+(?=\S)", "", cleaned(text), flags=re.IGNORECASE)
    words = re.sub(r"\b(\w+)(?:\s+\1\b)+", r"\1", words, flags=re.IGNORECASE)
    return NOUN_SLIPS.get(words.lower(), words) or "object"


def is_plural(noun: str) -> bool:
    """Whether the noun is followed by "them": "scissors", "pieces of wood"."""
    head = noun.split(" of ")[0].split()[-1]
    return head in PAIRS or (head.isascii() and head.isalpha() and any(x != head for x in getLemma(head, "NOUN")))


def the(text: str) -> str:
    """The noun with its article: "the jug", "another bowl", "their hand"."""
    noun = noun_of(text)
    if noun in BARE:
        return noun
    if noun.split()[-1] in BODY:
        return f"their {noun}"
    return f"another {noun}" if is_marked(text) else f"the {noun}"


def pronoun_of(text: str) -> str:
    """The pronoun for the noun: it or them."""
    return "them" if is_plural(noun_of(text)) else "it"


@cache
def inflected(word: str, tag: str) -> str:
    """The first form that lemminflect has (hang: hung; wet: wetted); other texts than plain words are unchanged."""
    if not (word.isascii() and word.isalpha() and len(word) > 1):
        return word
    forms = getInflection(word, tag)
    return forms[0] if forms else word


class Verb(NamedTuple):
    """A verb as a question writes it: head "pick", particle "up"."""

    head: str
    particle: str

    @property
    def name(self) -> str:
        return f"{self.head} {self.particle}".strip()

    def form(self, tag: str) -> str:
        """`tag`: VB, VBD (past) or VBG (-ing)."""
        first, *rest = self.head.split()  # "look at": looked at
        return " ".join([first if tag == "VB" else inflected(first, tag), *rest])


def relations_of(action: Action) -> list[tuple[str, str]]:
    """The action's relations, their words cleaned, their tails as annotated."""
    return [(cleaned(relation).lower() or "with", tail) for relation, tail in action.relations]


def verb_of(action: Action) -> Verb:
    """The verb as a question writes it: slips corrected, with the particle that belongs to it before this object."""
    words = cleaned(action.verb).lower() or "handle"
    words = VERB_SLIPS.get(words) or VERB_MEANT.get(words, words)
    noun = noun_of(action.object)
    thing = noun.split()[-1]
    relations = relations_of(action)
    sources = {noun_of(tail).split()[-1] for relation, tail in relations if relation == "from"}
    places = {noun_of(tail).split()[-1] for relation, tail in relations if relation != "with"}
    if (words == "put on" and thing in SWITCHED) or (words == "open" and thing in TAPS):
        words = "turn on"
    elif words == "close" and thing in TAPS:
        words = "turn off"
    elif words == "pick up" and sources and thing in LITTER:
        words = "pick off"
    elif words == "pick up" and sources & UPRIGHT:
        words = "take"
    elif words == "keep":
        words = "put" if places else "put away"
    elif words == "put" and (not places or "side" in places):
        words = "put down"
    elif words == "break" and sources:
        words = "break out"
    elif words.endswith(" out") and sources and sources <= FLAT:
        words = words.removesuffix(" out")  # "take out pan from shelf": nothing is out of a shelf
    head = words.split()
    particle: list[str] = []
    while len(head) > 1 and head[-1] in PARTICLES:
        particle.insert(0, head.pop())
    return Verb(" ".join(head), " ".join(particle))


def spoken_verb(action: Action) -> str:
    """The verb as a question writes it, its particle behind it: "loosen" for `losse`, "pick up" for `pick`."""
    return verb_of(action).name


def names(text: str) -> tuple[str, ...]:
    """The nouns, in lower case, that a text may have for the annotation's, ours first: `trey` -> tray, trey, trays."""
    noun = noun_of(text)
    *first, last = noun.split()
    plural = " ".join([*first, inflected(last, "NNS")])
    return tuple(dict.fromkeys(word.lower() for word in (noun, cleaned(text), plural) if word))
