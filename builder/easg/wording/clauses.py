"""Action -> clause: "put the jug into the cabinet", with the right prepositions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from builder.easg.records import Action
from builder.easg.wording.words import (
    FLAT,
    Verb,
    inflected,
    is_marked,
    is_plural,
    listed,
    noun_of,
    pronoun_of,
    relations_of,
    the,
    verb_of,
)

# Verbs by what they do with a place or a companion.
TAKING = listed("pick up, pick off, pick out, take, remove, scoop, grab, pour off")
CARRYING = listed(
    "pick up, take, take out, bring, bring out, put, put down, place, drop, leave, carry, move, lift, hold, remove, "
    "shake, arrange"
)  # "with" names what comes along, not a tool
DIVIDING = listed("cut, divide, slice, chop, split, tear, break")

SUBSTANCES = listed(
    "water, oil, flour, soil, sand, paint, soap, sauce, salt, sugar, milk, glue, grease, chips, cement, dust, "
    "dishwashing liquid"
)
VESSELS = listed(
    "bottle, bowl, cup, mug, bucket, bag, nylon, hand, pot, pan, jar, glass, container, can, tin, box, jug"
)
USUAL = {  # (verb, relation of the annotation): the preposition of English
    ("add", "into"): "to",
    ("attach", "on"): "to",
    ("insert", "in"): "into",
    ("loosen", "from"): "on",
    ("pour", "in"): "into",
    ("pour", "to"): "into",
    ("tighten", "to"): "onto",
    ("turn", "to"): "towards",
}
PARTS = listed("center, centre, middle, corner, edge")  # "on table, in center": in the center of the table
MANNERS = {"side": "on its side", "top": "on top"}  # no places of their own
LIKE_IT, LIKE_THEM = "another one like it", "others like it"


class Phrase(NamedTuple):
    """One relation as the clause words it."""

    which: int  # index in action.relations
    preposition: str  # "" behind a particle that does its work: "off the rack"
    noun: str  # with its article


def is_content(verb: Verb, relation: str, tail: str) -> bool:
    """Whether "with" says what the object holds ("bottle with oil", "plate with flour"): no tool."""
    return relation == "with" and verb.name in CARRYING and noun_of(tail) in SUBSTANCES


def is_tool(verb: Verb, relation: str, tail: str) -> bool:
    """Whether "with" names what the action is done with, not what comes along."""
    carried = verb.name in CARRYING and (verb.name not in ("move", "lift") or noun_of(tail) in SUBSTANCES)
    return relation == "with" and not carried and verb.name != "touch"


def container_word(noun: str) -> str:
    """Where contents of the thing are: "in" a bottle, "on" a plate."""
    return "in" if noun.split()[-1] in VESSELS else "on"


def preposition_of(verb: Verb, action: Action, which: int) -> str:
    """The preposition of English between this verb and this noun."""
    relations = relations_of(action)
    relation, tail = relations[which]
    if relation in ("on", "in") and any(other == "from" for other, _ in relations):
        relation += "to"  # from the plate onto the pot
    elif verb.particle != "off":
        relation = USUAL.get((verb.head, relation), relation)
    if relation in ("in", "into") and noun_of(tail).split()[-1] in FLAT:
        relation = {"in": "on", "into": "onto"}[relation]
    if relation in ("on", "in", "inside") and verb.name in TAKING:
        relation = "from"  # "pick plate on table cloth"
    if relation == "from":
        return {"out": "of", "off": ""}.get(verb.particle, "from")
    if relation == verb.particle:  # "turn on tap on board"
        return "at" if verb.head == "turn" else ""
    return relation


def phrases_of(verb: Verb, action: Action, leave_out: Iterable[int] = (), hide: str = "") -> list[Phrase]:
    """The relations of an action as phrases, source first, tool last; without those in `leave_out` and contents.

    `hide` is the answer's noun, which the phrases must not give away.
    """
    left_out = set(leave_out)
    kept = [(i, *pair) for i, pair in enumerate(relations_of(action)) if i not in left_out]
    kept = [row for row in kept if not is_content(verb, *row[1:])]
    kept.sort(key=lambda row: {"from": 0, "with": 2}.get(row[1], 1))
    part = next((i for i, relation, tail in kept if relation == "in" and noun_of(tail) in PARTS), None)
    seen: set[str] = set()
    phrases = []
    for i, relation, tail in kept:
        name, noun, preposition = noun_of(tail), the(tail), preposition_of(verb, action, i)
        namesakes = [(r, t) for _, r, t in kept if noun_of(t) == name]
        if len(namesakes) > 1:
            two = any(is_marked(t) or (r == "from" and name.split()[-1] in VESSELS) for r, t in namesakes)
            if name in seen and not two:
                continue  # "wipe finger on tissue, with tissue"
            if two:
                noun = "another" if name in seen else f"one {name}"
            seen.add(name)
        if hide and _hidden(noun, hide) != noun:
            noun = _hidden(noun, hide)
        elif (relation == "with" and name in SUBSTANCES) or (
            relation == "into" and verb.head in DIVIDING and is_plural(name)
        ):
            noun = name  # with water, into dough strips
        elif preposition == "between" and not is_plural(name):
            noun = f"the {inflected(name, 'NNS')}"
        elif relation == "on" and name in MANNERS:
            preposition, noun = MANNERS[name], ""
        elif relation == "on" and part is not None:
            continue  # comes with its part
        elif i == part:
            noun = " of ".join([noun, *(the(t) for _, r, t in kept if r == "on")])
        phrases.append(Phrase(i, preposition, noun))
    return phrases


def _hidden(noun: str, answer: str) -> str:
    """The phrase's noun without the words that give the answer away: wire cutter -> cutter."""
    words = noun.split()
    stems = {answer, f"{answer}s", f"{answer}ing"}
    if not stems & {*words, noun.partition(" ")[2]}:
        return noun
    if words[-1] not in stems and noun.partition(" ")[2] not in stems:
        return " ".join(word for word in words if word not in stems)
    return LIKE_THEM if is_plural(noun) else LIKE_IT


def phrases_text(phrases: Sequence[Phrase]) -> str:
    """The phrases in words, neighbours with one preposition together: "from the box and the bag with a knife"."""
    groups = [(word, [phrase.noun for phrase in group]) for word, group in groupby(phrases, lambda p: p.preposition)]
    return join(*(f"{preposition} {enumerated(nouns)}" for preposition, nouns in groups))


def contents_of(verb: Verb, action: Action) -> str:
    """What the object holds: "with oil in it"."""
    nouns = [noun_of(tail) for relation, tail in relations_of(action) if is_content(verb, relation, tail)]
    if not nouns:
        return ""
    return f"with {enumerated(nouns)} {container_word(noun_of(action.object))} {pronoun_of(action.object)}"


def clause(
    action: Action, tag: str, obj: str, phrases: Sequence[Phrase], contents: str = "", end: str | None = None
) -> str:
    """Verb, object, particle, phrases; `end` is the preposition that the question word leaves behind."""
    verb = verb_of(action)
    tail = join(phrases_text(phrases), end or "")
    split = (tail or end is not None) and not contents  # "pick the cup up from", but "pick up the cup"
    return join(verb.form(tag), *([obj, verb.particle] if split else [verb.particle, obj]), contents, tail)


def whole_clause(action: Action, tag: str) -> str:
    """The action with all its relations."""
    verb = verb_of(action)
    return clause(action, tag, the(action.object), phrases_of(verb, action), contents_of(verb, action))


def join(*parts: str) -> str:
    """One blank between words, and no word twice in a row ("put in" + "in the pot")."""
    words: list[str] = []
    for word in " ".join(parts).split():
        if not words or word.lower() != words[-1].lower():
            words.append(word)
    return " ".join(words)


def enumerated(parts: Sequence[str]) -> str:
    """The parts with commas, and "and" before the last."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))
