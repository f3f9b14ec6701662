"""Purpose questions by template: what was done with an object, as the actions of its clip say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from builder.easg.records import Action
from builder.easg.wording.clauses import (
    MANNERS,
    PARTS,
    Phrase,
    contents_of,
    enumerated,
    is_tool,
    join,
    phrases_of,
    phrases_text,
)
from builder.easg.wording.questions import DID, as_question
from builder.easg.wording.words import BARE, BODY, listed, noun_of, pronoun_of, relations_of, the, verb_of


class _Use(NamedTuple):
    """One thing that was done with an object, in parts, so that uses with one verb can be put together."""

    form: str  # picked, tightening
    particle: str
    object: str  # the noun, or the pronoun for the object in question
    where: str  # "from the table"
    verb: str


MOST_USES, MOST_PLACES = 3, 2  # of an object, and of a use, that an answer has
DULL = listed("touch, hold, adjust, move, use, check, test, feel, turn, operate")  # alone, these are no purpose
CHANGING = listed(
    "adjust, beat, brush, clean, cleanse, close, coat, cut, detach, drill, dry, dust, fix, glue, hammer, hit, iron, "
    "knead, loosen, mark, measure, open, paint, peel, plaster, press, rinse, rub, sand, scrape, scratch, scrub, shave, "
    "smooth, spray, stretch, sweep, tighten, touch, trim, unscrew, wash, wet, wipe"
)  # done to a thing, not with it


def purpose(actions: Sequence[tuple[int, Action]], count: int) -> list[tuple[str, str, str]]:
    """(object, question, answer): `count` of them, or as many as the step-1 `actions` of a clip name objects.

    Tools come first ("What did the camera wearer use the wrench for?"), then direct objects, then the other tails;
    within each, those whose answer says most. The object is the annotation's own word; question and answer
    are corrected. A template purpose is not the paper's, whose language model reads intentions into actions.
    """
    done = [action for _, action in actions]
    named: dict[str, str] = {}  # the corrected name -> the annotation's
    for action in done:
        for text in (action.object, *(tail for _, tail in action.relations)):
            named.setdefault(the(text), text)
    ranked: list[tuple[tuple[bool, int, int, int], tuple[str, str, str]]] = []
    for order, (name, raw) in enumerate(named.items()):
        poor = noun_of(raw).split()[-1] in BODY | BARE | PARTS | MANNERS.keys()  # no things that serve a purpose
        for tier, uses_of in enumerate((_as_tool, _as_object, _as_place)):
            if uses := uses_of(name, done):
                chosen, left_out = _worth_telling(uses)
                worth = sum(2 if use.where else use.verb not in DULL for use in chosen) - min(left_out, 2)
                ranked.append(
                    ((poor, tier, -worth, order), (raw, _question_for(name, chosen, tier), _answer_of(chosen)))
                )
                break
    return [row for _, row in sorted(ranked)[: max(count, 0)]]


def _question_for(name: str, uses: Sequence[_Use], tier: int) -> str:
    name = name.replace("another ", "the other ", 1) if name.startswith("another ") else name
    if tier == 0:
        return as_question("What", DID, "use", name, "for")
    return as_question("What", DID, "do", "to" if tier == 1 and all(u.verb in CHANGING for u in uses) else "with", name)


def _use(action: Action, tag: str, obj: str, phrases: Sequence[Phrase]) -> _Use:
    verb = verb_of(action)
    return _Use(verb.form(tag), verb.particle, obj, join(phrases_text(phrases), contents_of(verb, action)), verb.name)


def _as_tool(name: str, actions: Sequence[Action]) -> list[_Use]:
    return [
        _use(
            action,
            "VBG",
            the(action.object),
            [p for p in phrases if the(action.relations[p.which][1]) != name],
        )
        for action in actions
        if name != the(action.object)
        and any(the(tail) == name and is_tool(verb_of(action), r, tail) for r, tail in relations_of(action))
        for phrases in [phrases_of(verb_of(action), action)]
    ]


def _as_object(name: str, actions: Sequence[Action]) -> list[_Use]:
    return [
        _use(action, "VBD", pronoun_of(action.object), phrases_of(verb_of(action), action))
        for action in actions
        if the(action.object) == name
    ]


def _as_place(name: str, actions: Sequence[Action]) -> list[_Use]:
    uses = []
    for action in actions:
        phrases = phrases_of(verb_of(action), action)
        here = {p.which: p.preposition for p in phrases if the(action.relations[p.which][1]) == name}
        renamed = [
            p._replace(noun="them" if p.preposition == "between" else pronoun_of(name)) if p.which in here else p
            for p in phrases
            if p.which in here or p.preposition not in here.values()  # no "from the cracker and it"
        ]
        if here:
            uses.append(_use(action, "VBD", the(action.object), renamed))
    return uses


def _worth_telling(uses: Sequence[_Use]) -> tuple[list[_Use], int]:
    """The uses that the answer has, one for a verb and object with its places, in their order; and how many are not."""
    places: dict[_Use, dict[str, str]] = {}
    for use in uses:
        spots = places.setdefault(use._replace(where=""), {})
        if use.where:
            spots.setdefault(re.sub(r"\b(?:into|inside|onto|on)\b", "in", use.where), use.where)
    merged, left_out = [], 0
    for use, spots in places.items():
        wheres = [where for key, where in spots.items() if not any(key != other and key in other for other in spots)]
        merged.append(use._replace(where=enumerated(wheres[:MOST_PLACES])))
        left_out += len(wheres[MOST_PLACES:])
    merged = [  # "put it down" says nothing beside "put it on the shelf"
        use
        for use in merged
        if use.where or not any(o.where and o[0] == use[0] and o[2] == use[2] and "" in (o[1], use[1]) for o in merged)
    ]
    best = sorted(merged, key=lambda use: (not use.where, use.verb in DULL))[:MOST_USES]
    return [use for use in merged if use in best], left_out + len(merged) - len(best)


def _answer_of(uses: Sequence[_Use]) -> str:
    """The answer: "Picked it up from the table and put it on the shelf."."""
    parts = []
    for use in _merged(uses):
        split = use.where or use.object in ("it", "them")
        parts.append(join(use.form, *([use.object, use.particle] if split else [use.particle, use.object]), use.where))
    text = enumerated(parts)
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
