"""Slots -> sentences: the template wording of questions, in the past tense, with "the camera wearer" as the actor.

One real action and what becomes of it:

    Action(verb="take out", object="tissue", relations=(("from", "pocket"),))
    direct    What did the camera wearer take out of the pocket?              -> tissue
    indirect  Where did the camera wearer take the tissue out of?             -> from pocket
    before    What did the camera wearer do right before taking the tissue out of the pocket?

Questions are written in correct English (slips of the annotation corrected, particles and prepositions put where they
belong); answers keep the annotation's own words, only its marks cleaned, because the paper's answers are these slots
(section 3). Inflection is lemminflect's. The counts in the tables below are of the public EASG file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from lemminflect import getInflection, getLemma

from builder.records import Action

WEARER = "the camera wearer"


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split(", "))


# Slips and regional forms of whole verbs (uses in the file); corrected before inflection, which inflects slips happily.
VERB_SLIPS = {
    "pick": "pick up",  # 872: means "pick up", and "picked the cup" alone reads as "chose"
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
    "dip in": "dip",  # 4: "dip in brush (to can)"
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

PARTICLES = _names("up, down, out, off, on, in, over, away, back, apart, together, around, aside, open")
SWITCHED = _names("tap, switch, light, lamp, computer, laptop, machine, oven, cooker, stove, mixer, fan, faucet, torch")

# Verbs by what they do with a place or a companion.
TAKING = _names("pick up, pick off, pick out, take, take out, remove, scoop, scoop out, grab, bring out, pour off")
STATIC = TAKING | _names("open, touch, pull, turn, hold, tighten, loosen, unscrew")  # done to a thing where it is
CARRYING = _names(
    "pick up, take, take out, bring out, put, put down, place, drop, leave, carry, move, lift, hold, remove, "
    "shake, arrange"
)  # "with" names what comes along, not a tool
TOUCHING = _names("dip, soak, hit, wipe")  # "What did ... dip the brush in?", not "Where"

PLACES = _names("at, against, between, beside, behind, below, in, inside, near, on, onto, over, under, underneath")
WHERE_NOUNS = _names(
    "table, floor, ground, rack, shelf, board, countertop, counter, worktop, worktable, workbench, bench, "
    "desk, drawer, cupboard, cabinet, wardrobe, fridge, refrigerator, wall, ceiling, window, door, bed, cot, "
    "sink, basin, chair, stool, slab, surface, platform, lift, scaffold, room, bookshelf, oven, face, waist, "
    "pocket"
)
FLAT = _names("table, floor, ground, shelf, scale, countertop, counter, desk")  # "in table", "into floor": on, onto
VESSELS = _names(
    "bottle, bowl, cup, mug, bucket, bag, nylon, hand, pot, pan, jar, glass, container, can, tin, box, jug"
)
SUBSTANCES = _names(
    "water, oil, flour, soil, sand, paint, soap, sauce, salt, sugar, milk, glue, grease, chips, cement, dust, "
    "dishwashing liquid"
)
BODY = _names("hand, hands, finger, fingers, fist, face, waist, mouth, leg")
BARE = _names("himself, herself, itself, themselves, pieces, top, dough strips, another person")  # no article
PARTS = _names("center, centre, middle, corner, edge")  # "on table, in center": in the center of the table
PAIRS = _names("scissors, pliers, clothes, tweezers, tongs")  # plurals that are their own lemma

LIKE_IT, LIKE_THEM = "another of its kind", "others of its kind"


# --- words


def _words(text: str) -> str:
    """The annotation's words without its marks: `weighing_scale`, `TABLE`, ` table`, `bowl:1` (mark dropped)."""
    text = re.sub(r"\s*:\s*\d+", " ", text.replace("_", " ")).replace("?", " ")
    return " ".join(w if w.isupper() and len(w) <= 3 else w.lower() for w in text.split())  # TV, USB stay


def _marked(text: str) -> bool:
    return re.search(r":\s*\d", text) is not None


def _slot(text: str) -> str:
    return f"another {_words(text)}" if _marked(text) else _words(text)


def _noun(text: str) -> str:
    """The noun as a question writes it: marks cleaned, an article of the annotation's dropped, slips corrected."""
    words = re.sub(r"^(?:the|an?)\s+(?=\S)", "", _words(text), flags=re.IGNORECASE)
    return NOUN_SLIPS.get(words, words) or "object"


def _is_plural(noun: str) -> bool:
    head = noun.split(" of ")[0].split()[-1]
    return head in PAIRS or (head.isascii() and head.isalpha() and any(x != head for x in getLemma(head, "NOUN")))


def _the(text: str) -> str:
    noun = _noun(text)
    if noun in BARE:
        return noun
    if noun.split()[-1] in BODY:
        return f"their {noun}"
    return f"another {noun}" if _marked(text) else f"the {noun}"


def _pronoun(text: str) -> str:
    return "them" if _is_plural(_noun(text)) else "it"


@cache
def _inflect(word: str, tag: str) -> str:
    """First form of lemminflect (hang: hung; wet: wetted); what is no plain word stays as it is."""
    if not (word.isascii() and word.isalpha() and len(word) > 1):
        return word
    forms = getInflection(word, tag)
    return forms[0] if forms else word


class _Verb(NamedTuple):
    head: str
    particle: str

    @property
    def name(self) -> str:
        return f"{self.head} {self.particle}".strip()

    def form(self, tag: str) -> str:
        """`tag`: VB, VBD (past) or VBG (-ing)."""
        *front, last = self.head.split()
        return " ".join([*front, last if tag == "VB" else _inflect(last, tag)])


def _verb(action: Action) -> _Verb:
    words = _words(action.verb).lower() or "handle"
    noun = _noun(action.object)
    pairs = {(relation, _noun(tail)) for relation, tail in action.relations}
    if words == "put on" and noun.split()[-1] in SWITCHED:
        words = "turn on"
    elif words in ("pick", "pick up") and noun in ("dirt", "debris", "dust") and any(r == "from" for r, _ in pairs):
        words = "pick off"
    elif words == "put" and ("on", "side") in pairs:
        words = "put down"
    elif words == "keep":
        words = "put" if pairs else "put away"
    head = VERB_SLIPS.get(words, words).split()
    particle: list[str] = []
    while len(head) > 1 and head[-1] in PARTICLES:
        particle.insert(0, head.pop())
    return _Verb(" ".join(head), " ".join(particle))


# --- clauses


class _Phrase(NamedTuple):
    """One relation as the clause words it."""

    which: int  # index in action.relations
    preposition: str  # "" behind a particle that does its work: "off the rack"
    noun: str  # with its article


def _is_content(verb: _Verb, relation: str, tail: str) -> bool:
    """ "bottle with oil", "plate with flour": what a thing carries, no tool."""
    return relation == "with" and verb.name in CARRYING and _noun(tail) in SUBSTANCES


def _is_tool(verb: _Verb, relation: str) -> bool:
    return relation == "with" and (verb.name not in CARRYING or verb.name in ("move", "lift")) and verb.name != "touch"


def _container_word(noun: str) -> str:
    return "in" if noun.split()[-1] in VESSELS else "on"


def _preposition(verb: _Verb, action: Action, which: int) -> str:
    relation, tail = action.relations[which]
    relation = _words(relation) or "with"
    head = _noun(tail).split()[-1]
    others = {r for i, (r, _) in enumerate(action.relations) if i != which}
    if relation in ("in", "into") and head in FLAT:
        relation = {"in": "on", "into": "onto"}[relation]
    if relation in ("in", "to") and verb.head == "pour" and verb.particle != "off":
        relation = "into"
    if relation in ("on", "in") and "from" in others:
        relation += "to"  # from the plate onto the pot
    elif relation in ("on", "in", "inside") and verb.name in TAKING:
        relation = "from"  # "pick plate on table cloth"
    if relation == "from":
        if verb.name == "loosen":
            return "on"
        return {"out": "of", "off": ""}.get(verb.particle, "from")
    return relation


def _order(action: Action, which: int) -> int:
    return {"from": 0, "with": 2}.get(action.relations[which][0], 1)


def _phrases(verb: _Verb, action: Action, leave_out: Iterable[int] = (), hide: str = "") -> list[_Phrase]:
    """The relations of an action but for `leave_out` and contents, source first, tool last.

    `hide` is the answer's noun, which must not be read off them.
    """
    left_out = set(leave_out)
    relations = [(i, *pair) for i, pair in enumerate(action.relations) if i not in left_out]
    relations.sort(key=lambda row: _order(action, row[0]))
    nouns = [_noun(tail) for _, _, tail in relations]
    parts = [i for i, relation, tail in relations if relation == "in" and _noun(tail) in PARTS]
    phrases: list[_Phrase] = []
    for place, (i, relation, tail) in enumerate(relations):
        if _is_content(verb, relation, tail):
            continue
        noun, preposition = _the(tail), _preposition(verb, action, i)
        if nouns.count(nouns[place]) > 1:  # bowl and bowl:1; a container twice; a tissue twice
            first = place == nouns.index(nouns[place])
            if any(_noun(t) == nouns[place] and (r == "from" or _marked(t)) for _, r, t in relations):
                noun = f"one {nouns[place]}" if first else "another"
            elif not first:
                continue
        if hide:
            noun = _hidden(noun, hide)
        if relation == "on" and noun == "the side":
            noun = "its side"
        if preposition == "between" and not _is_plural(_noun(tail)):
            noun = f"the {_inflect(_noun(tail), 'NNS')}"
        if relation == "on" and parts:
            continue
        if i in parts:
            whole = [t for _, r, t in relations if r == "on"]
            noun = " of ".join([noun, *map(_the, whole)])
        phrases.append(_Phrase(i, preposition, noun))
    return phrases


def _hidden(noun: str, answer: str) -> str:
    """The phrase's noun without the words that give the answer away: wire cutter -> cutter."""
    words = noun.split()
    stems = {answer, f"{answer}s", f"{answer}ing"}
    if not any(w in stems for w in words) and answer not in noun.split(" ", 1)[-1:]:
        return noun
    if words[-1] not in stems:
        return " ".join(w for w in words if w not in stems)
    return LIKE_THEM if _is_plural(" ".join(words)) else LIKE_IT


def _tail_text(phrases: Sequence[_Phrase]) -> str:
    text, last = "", None
    for phrase in phrases:
        text += f" and {phrase.noun}" if phrase.preposition == last else f" {phrase.preposition} {phrase.noun}"
        last = phrase.preposition
    return " ".join(text.split())


def _contents(verb: _Verb, action: Action, leave_out: Iterable[int] = ()) -> str:
    """The contents of the object: "with oil in it"."""
    nouns = [
        _noun(tail)
        for i, (relation, tail) in enumerate(action.relations)
        if i not in leave_out and _is_content(verb, relation, tail)
    ]
    if not nouns:
        return ""
    return f"with {' and '.join(nouns)} {_container_word(_noun(action.object))} {_pronoun(action.object)}"


def _clause(action: Action, tag: str, obj: str, phrases: Sequence[_Phrase], contents: str = "", end: str = "") -> str:
    """Verb, object, particle, phrases; `end` is a preposition left behind by the question word."""
    verb = _verb(action)
    tail = _tail_text(phrases)
    behind = obj in ("it", "them") or ((tail or end) and not contents)
    return _join(verb.form(tag), *([obj, verb.particle] if behind else [verb.particle, obj]), contents, tail, end)


def _whole(action: Action, tag: str) -> str:
    verb = _verb(action)
    return _clause(action, tag, _the(action.object), _phrases(verb, action), _contents(verb, action))


def _join(*parts: str) -> str:
    """One blank between words, and no word twice in a row ("put in" + "in the pot")."""
    words: list[str] = []
    for word in " ".join(parts).split():
        if not words or word.lower() != words[-1].lower():
            words.append(word)
    return " ".join(words)


def _question(*parts: str) -> str:
    return _join(*parts).replace(" ,", ",") + "?"


# --- questions and answers of one action


def direct(action: Action) -> str:
    """Question whose answer is the object."""
    verb = _verb(action)
    hide = _noun(action.object)
    contents = _contents(verb, action)
    what = f"What, {contents}," if contents else "What"
    return _question(what, "did", WEARER, _clause(action, "VB", "", _phrases(verb, action, hide=hide)))


def indirect(action: Action, which: int) -> str:
    """Question whose answer is `action.relations[which]`."""
    verb = _verb(action)
    relation, tail = action.relations[which]
    relation, asked, obj = _words(relation) or "with", _noun(tail), _the(action.object)
    did = f"did {WEARER}"

    if _is_content(verb, relation, tail):
        spot = _tail_text(
            [_Phrase(i, _words(r), _the(t)) for i, (r, t) in enumerate(action.relations) if i != which]
        )  # in their own words: "the bottle that the camera wearer took on the table"
        word = _container_word(_noun(action.object))
        return _question("What was", word, obj, f"that {WEARER}", verb.form("VBD"), verb.particle, spot)

    same = [  # unmarked namesakes would give the answer away, and are left out
        i for i, (_, t) in enumerate(action.relations) if i != which and _noun(t) == asked and t == tail
    ]
    asks = _asks(verb, action, which)
    rivals = [i for i in range(len(action.relations)) if i not in (which, *same) and _asks(verb, action, i) == asks]
    rest = _phrases(verb, action, (which, *same, *rivals), hide=asked)
    contents = _contents(verb, action)
    other = ""
    if rivals:
        phrases = _phrases(verb, action, set(range(len(action.relations))) - set(rivals), hide=asked)
        other = f", other than {_tail_text(phrases) if asks == 'where' else ' and '.join(p.noun for p in phrases)},"

    if asks == "how":
        return _question("How", did, _clause(action, "VB", obj, rest, contents))
    if asks == "direction":
        return _question("In which direction", did, _clause(action, "VB", obj, rest, contents))
    if asks == "where":
        part = [i for i, (r, t) in enumerate(action.relations) if r == "in" and _noun(t) in PARTS]
        if rivals and which in part:
            return _question(
                "Where", other.removeprefix(", other than ").strip(","), did, _clause(action, "VB", obj, rest)
            )
        if rivals and part:
            spot = f"in the {_noun(action.relations[part[0]][1])} of"
            return _question("What", did, _clause(action, "VB", obj, rest, contents, spot))
        if verb.name in STATIC and not any(r == "from" for r, _ in action.relations):
            was = "were" if _is_plural(_noun(action.object)) else "was"
            return _question(f"Where{other}", was, obj, contents, f"that {WEARER}", _clause(action, "VBD", "", rest))
        return _question(f"Where{other}", did, _clause(action, "VB", obj, rest, contents))
    if asks == "with":
        if rest and _is_tool(verb, relation):
            return _question(f"What{other} did {WEARER} use to", _clause(action, "VB", obj, rest, contents))
        return _question(f"What{other}", did, _clause(action, "VB", obj, rest, contents, "with"))

    preposition = "from" if asks == "from" and verb.name == "loosen" else _preposition(verb, action, which)
    place = asked.split()[-1] in WHERE_NOUNS and asks in ("from", "to") and not rivals and preposition == asks
    word = "Where" if place else "What"
    hidden = [p for p in rest if LIKE_IT in p.noun or LIKE_THEM in p.noun]
    tools = [p for p in rest if action.relations[p.which][0] == "with"]
    before = [p for p in rest if p not in tools and p not in hidden]
    clause = _clause(action, "VB", obj, before, contents, preposition or " ")
    behind = _tail_text(tools) + (f", {_tail_text(hidden)}" if hidden else "")
    return _question(f"{word}{other}", did, clause, behind)


def _asks(verb: _Verb, action: Action, which: int) -> str:
    """The kind of question for a relation: where, how, direction, with, or the relation itself (What ... from?)."""
    relation, tail = action.relations[which]
    relation, noun = _words(relation) or "with", _noun(tail)
    if relation == "on" and noun == "side":
        return "how"
    if relation == "towards" and noun in ("himself", "herself", "themselves", "left", "right", "front", "back"):
        return "direction"
    if relation in PLACES:
        moved = relation in ("on", "in") and any(r == "from" for r, _ in action.relations)
        return relation if moved or (verb.head in TOUCHING and relation in ("on", "in")) else "where"
    if relation == "into" and noun.split()[-1] in FLAT:
        return "where"
    return relation


def before(action: Action) -> str:
    """Question for what came right before the action."""
    return _question(f"What did {WEARER} do right before", _whole(action, "VBG"))


def after(action: Action) -> str:
    """Question for what came right after the action."""
    return _question(f"What did {WEARER} do right after", _whole(action, "VBG"))


def answer_object(action: Action) -> str:
    """Answer of a direct question: "jug"; `bowl:1` -> "another bowl"."""
    return _slot(action.object)


def answer_relation(action: Action, which: int) -> str:
    """Answer of an indirect question: "from table"."""
    relation, tail = action.relations[which]
    return f"{_words(relation)} {_slot(tail)}".strip()


def answer_action(neighbour: Action) -> str:
    """Answer of a before or after question: "pick jug"."""
    return f"{_words(neighbour.verb)} {_slot(neighbour.object)}".strip()


# --- purpose: what was done with an object


class _Use(NamedTuple):
    """One thing that was done with an object, in parts, so that uses of one verb can be told together."""

    form: str  # picked, tightening
    particle: str
    object: str  # the noun, or the pronoun for the object in question
    where: str  # "from the table"
    verb: str


MOST_USES = 4  # told of an object in one answer
MOST_PLACES = 3  # told of a use
DULL = _names("touch, hold, adjust, move, use, check, test, feel, turn, operate")  # alone, these tell no purpose
CHANGING = _names(
    "adjust, beat, brush, clean, cleanse, close, coat, cut, detach, drill, dry, dust, fix, glue, hammer, hit, "
    "iron, knead, loosen, mark, measure, open, paint, peel, plaster, press, rinse, rub, sand, scrape, scratch, "
    "scrub, shave, smooth, spray, stretch, sweep, tighten, touch, trim, unscrew, wash, wet, wipe"
)


def purpose(actions: Sequence[tuple[int, Action]], count: int) -> list[tuple[str, str, str]]:
    """(object, question, answer): `count` of them, or as many as the step-1 `actions` of a clip name objects.

    Tools come first ("What did the camera wearer use the wrench for?"), then direct objects, then the other tails;
    within each, the objects of whose uses most can be told. The object is the annotation's own word; question and
    answer are corrected. A template purpose is not the paper's, whose language model reads intentions into actions.
    """
    done = [action for _, action in actions]
    named: dict[str, str] = {}  # the corrected name -> the annotation's
    for action in done:
        for text in (action.object, *(tail for _, tail in action.relations)):
            named.setdefault(_the(text), text)
    ranked: list[tuple[tuple[bool, int, int, int], tuple[str, str, str]]] = []
    for order, (name, raw) in enumerate(named.items()):
        noun = _noun(raw)
        side_issue = noun.split()[-1] in BODY or noun in BARE or noun in PARTS or noun in ("side", "front")
        for tier, uses_of in enumerate((_as_tool, _as_object, _as_place)):
            uses = uses_of(name, done)
            if not uses:
                continue
            told = _tell(uses)
            worth = sum(2 if use.where else use.verb not in DULL for use in told)
            if tier == 0:
                question = _question("What did", WEARER, "use", name, "for")
            else:
                to = "to" if all(use.verb in CHANGING for use in told) and tier == 1 else "with"
                question = _question("What did", WEARER, "do", to, name)
            ranked.append(((side_issue, tier, -worth, order), (raw, question, _listed(told))))
            break
    return [row for _, row in sorted(ranked)[: max(count, 0)]]


def _use(action: Action, tag: str, obj: str, phrases: Sequence[_Phrase]) -> _Use:
    verb = _verb(action)
    where = _join(_contents(verb, action), _tail_text(phrases))
    return _Use(verb.form(tag), verb.particle, obj, where, verb.name)


def _as_tool(name: str, actions: Sequence[Action]) -> list[_Use]:
    return [
        _use(action, "VBG", _the(action.object), _phrases(_verb(action), action, [which]))
        for action in actions
        for which, (relation, tail) in enumerate(action.relations)
        if _the(tail) == name != _the(action.object) and _is_tool(_verb(action), relation)
    ]


def _as_object(name: str, actions: Sequence[Action]) -> list[_Use]:
    return [
        _use(action, "VBD", _pronoun(action.object), _phrases(_verb(action), action))
        for action in actions
        if _the(action.object) == name
    ]


def _as_place(name: str, actions: Sequence[Action]) -> list[_Use]:
    uses = []
    for action in actions:
        phrases = _phrases(_verb(action), action)
        renamed = [
            p._replace(noun="them" if p.preposition == "between" else _pronoun(action.relations[p.which][1]))
            if _the(action.relations[p.which][1]) == name
            else p
            for p in phrases
        ]
        if renamed != phrases:
            uses.append(_use(action, "VBD", _the(action.object), renamed))
    return uses


def _tell(uses: Sequence[_Use]) -> list[_Use]:
    """The uses worth telling, in their order: one for a verb and object, with its places."""
    places: dict[_Use, list[str]] = {}
    for use in uses:
        found = places.setdefault(use._replace(where=""), [])
        if use.where and use.where not in found:
            found.append(use.where)
    told = [use._replace(where=_and(found[:MOST_PLACES])) for use, found in places.items()]
    best = sorted(told, key=lambda use: (use.where == "", use.verb in DULL))[:MOST_USES]
    return [use for use in told if use in best]


def _listed(uses: Sequence[_Use]) -> str:
    parts = []
    for use in uses:
        behind = use.where or use.object in ("it", "them")
        middle = [use.object, use.particle] if behind else [use.particle, use.object]
        parts.append(_join(use.form, *middle, use.where))
    text = _and(parts)
    return text[:1].upper() + text[1:] + "."


def _and(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))
