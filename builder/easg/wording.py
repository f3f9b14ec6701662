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
from functools import cache, lru_cache
from itertools import groupby
from typing import NamedTuple

from lemminflect import getInflection, getLemma

from builder.easg.records import Action

WEARER = "the camera wearer"
DID = f"did {WEARER}"


def _names(text: str) -> frozenset[str]:
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

PARTICLES = _names("up, down, out, off, on, in, over, away, back, apart, together, around, aside, open")
TAPS = _names("tap, faucet")  # opened and closed: turned on and off
LITTER = _names("dirt, debris, dust")  # "pick dirt from flower": off the flower
UPRIGHT = _names("wall, door, ceiling")  # nothing is picked up from them
SWITCHED = TAPS | _names("switch, light, lamp, computer, laptop, machine, oven, cooker, stove, mixer, fan, torch")

# Verbs by what they do with a place or a companion.
TAKING = _names("pick up, pick off, pick out, take, remove, scoop, grab, pour off")
STATIC = TAKING | _names("open, touch, pull, turn, hold, tighten, loosen, unscrew")  # done to a thing where it is
CARRYING = _names(
    "pick up, take, take out, bring, bring out, put, put down, place, drop, leave, carry, move, lift, hold, remove, "
    "shake, arrange"
)  # "with" names what comes along, not a tool
DIVIDING = _names("cut, divide, slice, chop, split, tear, break")
TOUCHING = _names("dip, soak, hit, wipe")  # "What did ... dip the brush in?", not "Where"

PLACES = _names("at, against, between, beside, behind, below, in, inside, near, on, onto, over, under, underneath")
WHERE_NOUNS = _names(
    "table, floor, ground, rack, shelf, board, countertop, counter, worktop, worktable, workbench, bench, "
    "desk, drawer, cupboard, cabinet, wardrobe, fridge, refrigerator, wall, ceiling, window, door, bed, cot, "
    "sink, basin, chair, stool, slab, surface, platform, lift, scaffold, room, bookshelf, oven, face, waist, "
    "pocket"
)
FLAT = _names("table, floor, ground, shelf, scale, countertop, counter, desk, slab, waist, cloth")  # "in table": on
VESSELS = _names(
    "bottle, bowl, cup, mug, bucket, bag, nylon, hand, pot, pan, jar, glass, container, can, tin, box, jug"
)
SUBSTANCES = _names(
    "water, oil, flour, soil, sand, paint, soap, sauce, salt, sugar, milk, glue, grease, chips, cement, dust, "
    "dishwashing liquid"
)
BODY = _names("hand, hands, finger, fingers, fist, face, waist, mouth, leg")
BARE = _names("himself, herself, itself, themselves, pieces, another person")  # no article
PARTS = _names("center, centre, middle, corner, edge")  # "on table, in center": in the center of the table
PAIRS = _names("scissors, pliers, clothes, tweezers, tongs")  # plurals that are their own lemma

DIRECTIONS = _names("himself, herself, themselves, left, right, front, back")
MANNERS = {"side": "on its side", "top": "on top"}  # no places of their own
USUAL = {  # (verb, relation of the annotation): the preposition of English
    ("add", "into"): "to",
    ("attach", "on"): "to",
    ("insert", "in"): "into",
    ("loosen", "from"): "on",
    ("pour", "in"): "into",
    ("pour", "to"): "into",
    ("tighten", "to"): "onto",
}

LIKE_IT, LIKE_THEM = "another of its kind", "others of its kind"


# --- words


@lru_cache(1 << 14)
def _words(text: str) -> str:
    """The annotation's words without its marks: `weighing_scale`, `TABLE`, ` table`, `bowl:1` (mark dropped)."""
    text = re.sub(r"\s*:\s*\d+", " ", text.replace("_", " ")).replace("?", " ")
    return " ".join(w if w.isupper() and len(w) <= 3 else w.lower() for w in text.split())  # TV, USB stay


def _marked(text: str) -> bool:
    return re.search(r":\s*\d", text) is not None


def _slot(text: str) -> str:
    return f"another {_words(text)}" if _marked(text) else _words(text)


@lru_cache(1 << 14)
def _noun(text: str) -> str:
    """The noun as a question writes it: marks cleaned, an article of the annotation's dropped, slips corrected."""
    words = re.sub(r"^(?:the|an?)\s+(?=\S)", "", _words(text), flags=re.IGNORECASE)
    words = re.sub(r"\b(\w+)(?:\s+\1\b)+", r"\1", words, flags=re.IGNORECASE)
    return NOUN_SLIPS.get(words.lower(), words) or "object"


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
        first, *rest = self.head.split()  # "look at": looked at
        return " ".join([first if tag == "VB" else _inflect(first, tag), *rest])


def _relations(action: Action) -> list[tuple[str, str]]:
    return [(_words(relation).lower() or "with", tail) for relation, tail in action.relations]


def _verb(action: Action) -> _Verb:
    """The verb as a question writes it: slips corrected, and the particle that English wants before this object."""
    words = _words(action.verb).lower() or "handle"
    words = VERB_SLIPS.get(words) or VERB_MEANT.get(words, words)
    noun = _noun(action.object)
    thing = noun.split()[-1]
    relations = _relations(action)
    sources = {_noun(tail).split()[-1] for relation, tail in relations if relation == "from"}
    places = {_noun(tail).split()[-1] for relation, tail in relations if relation != "with"}
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
    return _Verb(" ".join(head), " ".join(particle))


# --- clauses


class _Phrase(NamedTuple):
    """One relation as the clause words it."""

    which: int  # index in action.relations
    preposition: str  # "" behind a particle that does its work: "off the rack"
    noun: str  # with its article


def _is_content(verb: _Verb, relation: str, tail: str) -> bool:
    """Whether "with" says what the object holds ("bottle with oil", "plate with flour"): no tool."""
    return relation == "with" and verb.name in CARRYING and _noun(tail) in SUBSTANCES


def _is_tool(verb: _Verb, relation: str, tail: str) -> bool:
    carried = verb.name in CARRYING and (verb.name not in ("move", "lift") or _noun(tail) in SUBSTANCES)
    return relation == "with" and not carried and verb.name != "touch"


def _container_word(noun: str) -> str:
    return "in" if noun.split()[-1] in VESSELS else "on"


def _preposition(verb: _Verb, action: Action, which: int) -> str:
    """The preposition that English wants between this verb and this noun."""
    relations = _relations(action)
    relation, tail = relations[which]
    if relation in ("on", "in") and any(other == "from" for other, _ in relations):
        relation += "to"  # from the plate onto the pot
    elif verb.particle != "off":
        relation = USUAL.get((verb.head, relation), relation)
    if relation in ("in", "into") and _noun(tail).split()[-1] in FLAT:
        relation = {"in": "on", "into": "onto"}[relation]
    if relation in ("on", "in", "inside") and verb.name in TAKING:
        relation = "from"  # "pick plate on table cloth"
    if relation == "from":
        return {"out": "of", "off": ""}.get(verb.particle, "from")
    if relation == verb.particle:  # "turn on tap on board"
        return "at" if verb.head == "turn" else ""
    return relation


def _phrases(verb: _Verb, action: Action, leave_out: Iterable[int] = (), hide: str = "") -> list[_Phrase]:
    """The relations of an action but for `leave_out` and contents, source first, tool last.

    `hide` is the answer's noun, which must not be read off them.
    """
    left_out = set(leave_out)
    kept = [(i, *pair) for i, pair in enumerate(_relations(action)) if i not in left_out]
    kept = [row for row in kept if not _is_content(verb, *row[1:])]
    kept.sort(key=lambda row: {"from": 0, "with": 2}.get(row[1], 1))
    part = next((i for i, relation, tail in kept if relation == "in" and _noun(tail) in PARTS), None)
    seen: set[str] = set()
    phrases = []
    for i, relation, tail in kept:
        name, noun, preposition = _noun(tail), _the(tail), _preposition(verb, action, i)
        namesakes = [(r, t) for _, r, t in kept if _noun(t) == name]
        if len(namesakes) > 1:
            two = any(_marked(t) or (r == "from" and name.split()[-1] in VESSELS) for r, t in namesakes)
            if name in seen and not two:
                continue  # "wipe finger on tissue, with tissue"
            if two:
                noun = "another" if name in seen else f"one {name}"
            seen.add(name)
        if hide and _hidden(noun, hide) != noun:
            noun = _hidden(noun, hide)
        elif (relation == "with" and name in SUBSTANCES) or (
            relation == "into" and verb.head in DIVIDING and _is_plural(name)
        ):
            noun = name  # with water, into dough strips
        elif preposition == "between" and not _is_plural(name):
            noun = f"the {_inflect(name, 'NNS')}"
        elif relation == "on" and name in MANNERS:
            preposition, noun = MANNERS[name], ""
        elif relation == "on" and part is not None:
            continue  # told with its part
        elif i == part:
            noun = " of ".join([noun, *(_the(t) for _, r, t in kept if r == "on")])
        phrases.append(_Phrase(i, preposition, noun))
    return phrases


def _hidden(noun: str, answer: str) -> str:
    """The phrase's noun without the words that give the answer away: wire cutter -> cutter."""
    words = noun.split()
    stems = {answer, f"{answer}s", f"{answer}ing"}
    if not stems & {*words, noun.partition(" ")[2]}:
        return noun
    if words[-1] not in stems and noun.partition(" ")[2] not in stems:
        return " ".join(word for word in words if word not in stems)
    return LIKE_THEM if _is_plural(noun) else LIKE_IT


def _tail_text(phrases: Sequence[_Phrase]) -> str:
    groups = [(word, [phrase.noun for phrase in group]) for word, group in groupby(phrases, lambda p: p.preposition)]
    return _join(*(f"{preposition} {_and(nouns)}" for preposition, nouns in groups))


def _contents(verb: _Verb, action: Action) -> str:
    """What the object holds: "with oil in it"."""
    nouns = [_noun(tail) for relation, tail in _relations(action) if _is_content(verb, relation, tail)]
    if not nouns:
        return ""
    return f"with {_and(nouns)} {_container_word(_noun(action.object))} {_pronoun(action.object)}"


def _clause(
    action: Action, tag: str, obj: str, phrases: Sequence[_Phrase], contents: str = "", end: str | None = None
) -> str:
    """Verb, object, particle, phrases; `end` is the preposition that the question word leaves behind."""
    verb = _verb(action)
    tail = _join(_tail_text(phrases), end or "")
    split = (tail or end is not None) and not contents  # "pick the cup up from", but "pick up the cup"
    return _join(verb.form(tag), *([obj, verb.particle] if split else [verb.particle, obj]), contents, tail)


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


def _and(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def _question(*parts: str) -> str:
    return _join(*parts).replace(" ,", ",") + "?"


# --- questions and answers of one action


def direct(action: Action) -> str:
    """Question whose answer is the object."""
    verb = _verb(action)
    contents = _contents(verb, action)
    what = f"What, {contents}," if contents else "What"
    phrases = _phrases(verb, action, hide=_noun(action.object))
    return _question(what, DID, _clause(action, "VB", "", phrases))


def indirect(action: Action, which: int) -> str:
    """Question whose answer is `action.relations[which]`."""
    verb, relations, asks = _verb(action), _relations(action), _asks(action, which)
    relation, tail = relations[which]
    answer, obj, contents = _noun(tail), _the(action.object), _contents(verb, action)
    if asks == "contents":
        # the other relations in their own words: "the bottle that the camera wearer took on the table"
        spot = _tail_text([_Phrase(i, r, _the(t)) for i, (r, t) in enumerate(relations) if i != which])
        word, noun = _container_word(_noun(action.object)), _noun(action.object)
        return _question("What was", word, f"the {noun} that", WEARER, verb.form("VBD"), verb.particle, spot)

    # the same noun unmarked would give the answer away; a relation of the same kind would be an answer too
    same = {i for i, (_, other) in enumerate(relations) if i != which and _words(other) == _words(tail)}
    same = {i for i in same if _marked(relations[i][1]) == _marked(tail)}
    rivals = {i for i in range(len(relations)) if _asks(action, i) == asks} - same - {which}
    rest = _phrases(verb, action, {which} | same | rivals, hide=answer)
    rival = _phrases(verb, action, set(range(len(relations))) - rivals, hide=answer)
    parts = {i for i in rivals | {which} if relations[i][0] == "in" and _noun(relations[i][1]) in PARTS}

    if which in parts and rivals:  # "on table, in center"
        return _question("Where", _tail_text(rival), DID, _clause(action, "VB", obj, rest, contents))
    if parts and rivals:
        of = f"in {_the(relations[min(parts)][1])} of"
        return _question("What", DID, _clause(action, "VB", obj, rest, contents, of))
    if asks in ("How", "In which direction"):
        return _question(asks, DID, _clause(action, "VB", obj, rest, contents))
    if asks == "Where":
        where = f"Where, other than {_tail_text(rival)}," if rivals else "Where"
        if verb.name in STATIC and not any(r == "from" for r, _ in relations):
            was = "were" if _is_plural(_noun(action.object)) else "was"
            return _question(where, was, obj, contents, "that", WEARER, _clause(action, "VBD", "", rest))
        return _question(where, DID, _clause(action, "VB", obj, rest, contents))

    what = f"What, other than {_and([phrase.noun for phrase in rival])}," if rivals else "What"
    if asks == "with":
        if rest and _is_tool(verb, relation, tail):
            return _question(what, DID, "use to", _clause(action, "VB", obj, rest, contents))
        return _question(what, DID, _clause(action, "VB", obj, rest, contents, "with"))
    preposition = "from" if relation == "from" and verb.name == "loosen" else _preposition(verb, action, which)
    if asks in ("from", "to") and preposition == asks and answer.split()[-1] in WHERE_NOUNS and not rivals:
        what = "Where"
    hinted = [phrase for phrase in rest if phrase.noun in (LIKE_IT, LIKE_THEM)]
    tools = [phrase for phrase in rest if relations[phrase.which][0] == "with"]
    near = [phrase for phrase in rest if phrase not in (*hinted, *tools)]
    clause = _clause(action, "VB", obj, near, end=preposition)
    hints = [hint for hint in (_tail_text(hinted), contents) if hint]  # "to, from another of its kind"
    return _question(what, DID, clause, _tail_text(tools), *(f", {hint}" for hint in hints))


def _asks(action: Action, which: int) -> str:
    """How a relation is asked: by a question word, or by itself ("What ... from?")."""
    verb, relations = _verb(action), _relations(action)
    relation, tail = relations[which]
    noun = _noun(tail)
    if _is_content(verb, relation, tail):
        return "contents"
    if relation == "on" and noun == "side":
        return "How"
    if relation == "towards" and noun in DIRECTIONS:
        return "In which direction"
    if relation in ("on", "in") and (verb.head in TOUCHING or any(other == "from" for other, _ in relations)):
        return relation
    if relation in PLACES or (relation == "into" and noun.split()[-1] in FLAT):
        return "Where"
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


def spoken_verb(action: Action) -> str:
    """The verb as a question writes it, its particle behind it: "loosen" for `losse`, "pick up" for `pick`."""
    return _verb(action).name


def names(text: str) -> tuple[str, ...]:
    """The nouns, in lower case, that a text may have for the annotation's, ours first: `trey` -> tray, trey, trays."""
    noun = _noun(text)
    *first, last = noun.split()
    plural = " ".join([*first, _inflect(last, "NNS")])
    return tuple(dict.fromkeys(word.lower() for word in (noun, _words(text), plural) if word))


# --- purpose: what was done with an object


class _Use(NamedTuple):
    """One thing that was done with an object, in parts, so that uses of one verb can be told together."""

    form: str  # picked, tightening
    particle: str
    object: str  # the noun, or the pronoun for the object in question
    where: str  # "from the table"
    verb: str


MOST_USES, MOST_PLACES = 3, 2  # told of an object, and of a use
DULL = _names("touch, hold, adjust, move, use, check, test, feel, turn, operate")  # alone, these tell no purpose
CHANGING = _names(
    "adjust, beat, brush, clean, cleanse, close, coat, cut, detach, drill, dry, dust, fix, glue, hammer, hit, iron, "
    "knead, loosen, mark, measure, open, paint, peel, plaster, press, rinse, rub, sand, scrape, scratch, scrub, shave, "
    "smooth, spray, stretch, sweep, tighten, touch, trim, unscrew, wash, wet, wipe"
)  # done to a thing, not with it


def purpose(actions: Sequence[tuple[int, Action]], count: int) -> list[tuple[str, str, str]]:
    """(object, question, answer): `count` of them, or as many as the step-1 `actions` of a clip name objects.

    Tools come first ("What did the camera wearer use the wrench for?"), then direct objects, then the other tails;
    within each, those of which most can be told in full. The object is the annotation's own word; question and answer
    are corrected. A template purpose is not the paper's, whose language model reads intentions into actions.
    """
    done = [action for _, action in actions]
    named: dict[str, str] = {}  # the corrected name -> the annotation's
    for action in done:
        for text in (action.object, *(tail for _, tail in action.relations)):
            named.setdefault(_the(text), text)
    ranked: list[tuple[tuple[bool, int, int, int], tuple[str, str, str]]] = []
    for order, (name, raw) in enumerate(named.items()):
        poor = _noun(raw).split()[-1] in BODY | BARE | PARTS | MANNERS.keys()  # no things that serve a purpose
        for tier, uses_of in enumerate((_as_tool, _as_object, _as_place)):
            if uses := uses_of(name, done):
                told, left_out = _tell(uses)
                worth = sum(2 if use.where else use.verb not in DULL for use in told) - min(left_out, 2)
                ranked.append(((poor, tier, -worth, order), (raw, _asked(name, told, tier), _told(told))))
                break
    return [row for _, row in sorted(ranked)[: max(count, 0)]]


def _asked(name: str, told: Sequence[_Use], tier: int) -> str:
    name = name.replace("another ", "the other ", 1) if name.startswith("another ") else name
    if tier == 0:
        return _question("What", DID, "use", name, "for")
    return _question("What", DID, "do", "to" if tier == 1 and all(u.verb in CHANGING for u in told) else "with", name)


def _use(action: Action, tag: str, obj: str, phrases: Sequence[_Phrase]) -> _Use:
    verb = _verb(action)
    return _Use(verb.form(tag), verb.particle, obj, _join(_tail_text(phrases), _contents(verb, action)), verb.name)


def _as_tool(name: str, actions: Sequence[Action]) -> list[_Use]:
    return [
        _use(action, "VBG", _the(action.object), [p for p in phrases if _the(action.relations[p.which][1]) != name])
        for action in actions
        if name != _the(action.object)
        and any(_the(tail) == name and _is_tool(_verb(action), r, tail) for r, tail in _relations(action))
        for phrases in [_phrases(_verb(action), action)]
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
        here = {p.which: p.preposition for p in phrases if _the(action.relations[p.which][1]) == name}
        renamed = [
            p._replace(noun="them" if p.preposition == "between" else _pronoun(name)) if p.which in here else p
            for p in phrases
            if p.which in here or p.preposition not in here.values()  # no "from the cracker and it"
        ]
        if here:
            uses.append(_use(action, "VBD", _the(action.object), renamed))
    return uses


def _tell(uses: Sequence[_Use]) -> tuple[list[_Use], int]:
    """The uses worth telling, one for a verb and object with its places, in their order; and how much is left out."""
    places: dict[_Use, dict[str, str]] = {}
    for use in uses:
        found = places.setdefault(use._replace(where=""), {})
        if use.where:
            found.setdefault(re.sub(r"\b(?:into|inside|onto|on)\b", "in", use.where), use.where)
    told, left_out = [], 0
    for use, found in places.items():
        wheres = [where for key, where in found.items() if not any(key != other and key in other for other in found)]
        told.append(use._replace(where=_and(wheres[:MOST_PLACES])))
        left_out += len(wheres[MOST_PLACES:])
    told = [  # "put it down" says nothing beside "put it on the shelf"
        use
        for use in told
        if use.where or not any(o.where and o[0] == use[0] and o[2] == use[2] and "" in (o[1], use[1]) for o in told)
    ]
    best = sorted(told, key=lambda use: (not use.where, use.verb in DULL))[:MOST_USES]
    return [use for use in told if use in best], left_out + len(told) - len(best)


def _told(uses: Sequence[_Use]) -> str:
    """The answer: "Picked it up from the table and put it on the shelf."."""
    parts = []
    for use in _merged(uses):
        split = use.where or use.object in ("it", "them")
        parts.append(_join(use.form, *([use.object, use.particle] if split else [use.particle, use.object]), use.where))
    text = _and(parts)
    return text[:1].upper() + text[1:] + "."


def _merged(uses: Sequence[_Use]) -> list[_Use]:
    """Neighbours in one: "cutting the wire and the cable", "rinsing and washing the plate"."""
    merged: list[_Use] = []
    for use in uses:
        last = merged[-1] if merged else None
        if last and last[:2] == use[:2] and last.where == use.where:
            merged[-1] = last._replace(object=f"{last.object} and {use.object}")
        elif last and last[1:4] == use[1:4] and not use.particle and (len(uses) == 2 or use.form.endswith("ing")):
            merged[-1] = last._replace(form=f"{last.form} and {use.form}")
        else:
            merged.append(use)
    return merged
