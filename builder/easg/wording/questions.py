"""Action -> the questions about it, and their answers."""

from __future__ import annotations

from builder.easg.records import Action
from builder.easg.wording.clauses import (
    LIKE_IT,
    LIKE_THEM,
    PARTS,
    SUBSTANCES,
    TAKING,
    Phrase,
    clause,
    container_word,
    contents_of,
    enumerated,
    is_content,
    is_tool,
    join,
    phrases_of,
    phrases_text,
    preposition_of,
    whole_clause,
)
from builder.easg.wording.words import (
    FLAT,
    cleaned,
    is_marked,
    is_plural,
    listed,
    noun_of,
    relations_of,
    slot_text,
    the,
    verb_of,
)

WEARER = "the camera wearer"
DID = f"did {WEARER}"
STATIC = TAKING | listed("open, touch, pull, turn, hold, tighten, loosen, unscrew")  # done to a thing where it is
MISREAD = listed("turn on")  # "What did ... turn on the machine?": What on the machine did ... turn?
SPRAYING = listed("spray")  # with water, but "What did ... use to spray the car?" of a hose
TOUCHING = listed("dip, soak, hit, wipe")  # "What did ... dip the brush in?", not "Where"
PLACES = listed("at, against, between, beside, behind, below, in, inside, near, on, onto, over, under, underneath")
WHERE_NOUNS = listed(
    "table, floor, ground, rack, shelf, board, countertop, counter, worktop, worktable, workbench, bench, "
    "desk, drawer, cupboard, cabinet, wardrobe, fridge, refrigerator, wall, ceiling, window, door, bed, cot, "
    "sink, basin, chair, stool, slab, surface, platform, lift, scaffold, room, bookshelf, oven, face, waist, "
    "pocket"
)
DIRECTIONS = listed("himself, herself, themselves, left, right, front, back")


def direct(action: Action) -> str:
    """Question whose answer is the object."""
    verb = verb_of(action)
    contents = contents_of(verb, action)
    phrases = phrases_of(verb, action, hide=noun_of(action.object))
    if contents and phrases:  # "... take from the table that had oil in it" would be a table with oil
        return as_question("Which thing", contents, DID, clause(action, "VB", "", phrases))
    if contents:
        return as_question("What", DID, clause(action, "VB", "", []), "that had", contents.removeprefix("with "))
    places = [phrase for phrase in phrases if f"{verb.name} {phrase.preposition}" in MISREAD]
    rest = [phrase for phrase in phrases if phrase not in places]
    return as_question("What", phrases_text(places), DID, clause(action, "VB", "", rest))


def indirect(action: Action, which: int) -> str:
    """Question whose answer is `action.relations[which]`."""
    verb, relations, asks = verb_of(action), relations_of(action), _asks(action, which)
    relation, tail = relations[which]
    answer, obj, contents = noun_of(tail), the(action.object), contents_of(verb, action)
    if asks == "contents":
        # the other relations in their own words: "the bottle that the camera wearer took on the table"
        spot = phrases_text([Phrase(i, r, the(t)) for i, (r, t) in enumerate(relations) if i != which])
        word, noun = container_word(noun_of(action.object)), noun_of(action.object)
        return as_question("What was", word, f"the {noun} that", WEARER, verb.form("VBD"), verb.particle, spot)

    # the same noun unmarked would give the answer away; a relation of the same kind would be an answer too
    same = {i for i, (_, other) in enumerate(relations) if i != which and cleaned(other) == cleaned(tail)}
    same = {i for i in same if is_marked(relations[i][1]) == is_marked(tail)}
    rivals = {i for i in range(len(relations)) if _asks(action, i) == asks} - same - {which}
    rest = phrases_of(verb, action, {which} | same | rivals, hide=answer)
    rival = phrases_of(verb, action, set(range(len(relations))) - rivals, hide=answer)
    parts = {i for i in rivals | {which} if relations[i][0] == "in" and noun_of(relations[i][1]) in PARTS}

    if which in parts and rivals:  # "on table, in center"
        return as_question("Where", phrases_text(rival), DID, clause(action, "VB", obj, rest, contents))
    if parts and rivals:
        of = f"in {the(relations[min(parts)][1])} of"
        return as_question("What", DID, clause(action, "VB", obj, rest, contents, of))
    if asks in ("How", "In which direction"):
        return as_question(asks, DID, clause(action, "VB", obj, rest, contents))
    if asks == "Where":
        where = f"Where, other than {phrases_text(rival)}," if rivals else "Where"
        if verb.name in STATIC and not any(r == "from" for r, _ in relations):
            was = "were" if is_plural(noun_of(action.object)) else "was"
            return as_question(where, was, obj, contents, "that", WEARER, clause(action, "VBD", "", rest))
        return as_question(where, DID, clause(action, "VB", obj, rest, contents))

    what = f"What, other than {enumerated([phrase.noun for phrase in rival])}," if rivals else "What"
    if asks == "with":
        tool = is_tool(verb, relation, tail)
        if tool and (rest or (verb.name in SPRAYING and answer not in SUBSTANCES)):
            return as_question(what, DID, "use to", clause(action, "VB", obj, rest, contents))
        return as_question(what, DID, clause(action, "VB", obj, rest, contents, "with"))
    preposition = "from" if relation == "from" and verb.name == "loosen" else preposition_of(verb, action, which)
    if asks in ("from", "to") and preposition == asks and answer.split()[-1] in WHERE_NOUNS and not rivals:
        what = "Where"
    hinted = [phrase for phrase in rest if phrase.noun in (LIKE_IT, LIKE_THEM)]
    tools = [phrase for phrase in rest if relations[phrase.which][0] == "with"]
    near = [phrase for phrase in rest if phrase not in (*hinted, *tools)]
    asked_action = clause(action, "VB", obj, near, end=preposition)
    hints = [hint for hint in (phrases_text(hinted), contents) if hint]  # "to, from another of its kind"
    return as_question(what, DID, asked_action, phrases_text(tools), *(f", {hint}" for hint in hints))


def _asks(action: Action, which: int) -> str:
    """How a relation is asked: by a question word, or by itself ("What ... from?")."""
    verb, relations = verb_of(action), relations_of(action)
    relation, tail = relations[which]
    noun = noun_of(tail)
    if is_content(verb, relation, tail):
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
    return as_question(f"What did {WEARER} do right before", whole_clause(action, "VBG"))


def after(action: Action) -> str:
    """Question for what came right after the action."""
    return as_question(f"What did {WEARER} do right after", whole_clause(action, "VBG"))


def answer_object(action: Action) -> str:
    """Answer of a direct question: "jug"; `bowl:1` -> "another bowl"."""
    return slot_text(action.object)


def answer_relation(action: Action, which: int) -> str:
    """Answer of an indirect question: "from table"."""
    relation, tail = action.relations[which]
    return f"{cleaned(relation)} {slot_text(tail)}".strip()


def answer_action(neighbour: Action) -> str:
    """Answer of a before or after question: "pick jug"."""
    return f"{cleaned(neighbour.verb)} {slot_text(neighbour.object)}".strip()


def as_question(*parts: str) -> str:
    """The parts as one sentence with a question mark."""
    return join(*parts).replace(" ,", ",") + "?"
