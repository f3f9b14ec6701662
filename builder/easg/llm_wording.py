"""Questions worded by a language model, checked, and asked again where they do not hold.

    {"verb": "put", "object": "?", "relations": ["into cabinet"]}  ->  What did the camera wearer put into the cabinet?

The answers of action questions stay the annotation's words; the model never sees them. A question that fails the check
is asked again at most twice, with what is wrong with it; then the template's wording is used. For purpose questions
the model writes question and answer from the clip's actions; a pair whose answer is not to be found in them is dropped.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from string import Template
from typing import Any

from lemminflect import getAllLemmas

from builder.easg import wording
from builder.easg.grounding import occurs, plain
from builder.easg.questions import Slots, candidates
from builder.easg.records import Action, Clip
from builder.replies import START, json_in, shorten
from builder.stages import Ask, Said, Stages
from videoqa.engines import Conversation, Message

ATTEMPTS = 3
TEMPERATURE = 0.7  # of the later attempts; the first is greedy
WEARER = wording.WEARER.removeprefix("the ")

# -- action questions: the prompt -------------------------------------------------------------------------------------

PROMPT = Template("""\
Write one question about a first-person video. The person who films it is called the camera wearer.
$task
Use the past tense and the given verb, and name every other given thing. Do not answer the question.

Example
Given: $example_given
Question: $example

Given: $given
Question:""")
HIDDEN = "Below is an action of the camera wearer with one part hidden behind a question mark. Ask for that part."
NEXT_TO = "Below is an action of the camera wearer. Ask what the camera wearer did right $type this action."
EXAMPLES = {
    "direct": (
        {"verb": "hang up", "object": "?", "relations": ["on hook"]},
        "What did the camera wearer hang up on the hook?",
    ),
    "indirect": (
        {"verb": "hang up", "object": "towel", "relations": ["on ?"]},
        "What did the camera wearer hang the towel up on?",
    ),
    "before": (
        {"verb": "hang up", "object": "towel", "relations": ["on hook"]},
        "What did the camera wearer do right before hanging the towel up on the hook?",
    ),
    "after": (
        {"verb": "hang up", "object": "towel", "relations": ["on hook"]},
        "What did the camera wearer do right after hanging the towel up on the hook?",
    ),
}  # fmt: skip
AGAIN = Template("That cannot be used: $problem. Write $what again, and nothing else.")


def prompt(slots: Slots) -> Conversation:
    """The request for one question. What is asked for is not shown."""
    action = slots.action
    relations = [
        f"{relation} ?" if which == slots.which else wording.answer_relation(action, which)
        for which, (relation, _) in enumerate(action.relations)
    ]
    thing = "?" if slots.type == "direct" else wording.answer_object(action)
    given = {"verb": wording.spoken_verb(action), "object": shorten(thing), "relations": [*map(shorten, relations)]}
    example, question = EXAMPLES[slots.type]
    text = PROMPT.substitute(
        task=HIDDEN if slots.neighbour is None else Template(NEXT_TO).substitute(type=slots.type),
        example_given=json.dumps(example),
        example=question,
        given=json.dumps({k: v for k, v in given.items() if v}, ensure_ascii=False),
    )
    return [{"role": "user", "content": text}]


# -- the reader of its reply, and the check ---------------------------------------------------------------------------

_LEAD = re.compile(
    r"^[\W_]*(?:(?:question|q|answer|output|here is (?:the|your|one) question)\s*\d*\s*[:.)-]+[\W_]*)?", re.I
)


def _those(words: str) -> frozenset[str]:
    return frozenset(words.split())


ASKING = _those("what where which how who whom whose when why")
OTHERS = _those("i me my we us our you your he him his she her they someone somebody")
SYNONYMS = [
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


def read_question(text: str) -> tuple[str, str]:
    """(question, "") or ("", what is wrong): the one question of a reply, without what models put around it."""
    text = unicodedata.normalize("NFKC", text)
    for _, _, data in json_in(text):
        if isinstance(data, dict) and isinstance(asked := data.get("question"), str):
            text = asked
            break
    found = [_clean(match) for line in text.splitlines() for match in re.findall(r"[^?]*\?", line)]
    found = [question for question in dict.fromkeys(found) if re.search(r"\w", question)]
    lines = [_clean(line) for line in text.splitlines() if line.strip()]
    if not found and len(lines) == 1 and lines[0].split()[:1] and lines[0].split()[0].lower() in ASKING:
        found = [lines[0].rstrip(".! ") + "?"]
    if len(found) != 1:
        return "", f"there are {len(found)} questions in it, not one" if found else "there is no question in it"
    return found[0], ""


def _clean(text: str) -> str:
    text = _LEAD.sub("", text.strip(), count=1)
    *before, last = re.split(r"(?<=[.!:])\s+(?=[A-Z])", text) or [""]  # "Sure! Here it is: What ...?"
    text = last if before and last else text
    return " ".join(re.sub(r"[*_`\"“”<>]+", "", text).split()).strip("' ")


def problem(slots: Slots, question: str) -> str:
    """What is wrong with a question as the wording of these slots; "" if nothing is."""
    action = slots.action
    if wrong := _form_problem(question):
        return wrong
    lower = question.lower().replace(WEARER, "")  # a camera may be the answer
    stems = _stems(lower)
    if not stems & _verbs(action):
        return f'it does not say "{wording.spoken_verb(action)}"'
    if slots.neighbour is not None and not stems & (
        {"before", "prior"} if slots.type == "before" else {"after", "following"}
    ):
        return f'it does not say "{slots.type}"'

    nouns = [action.object, *(tail for _, tail in action.relations)]
    hidden = {"direct": 0, "indirect": 1 + (slots.which or 0)}.get(slots.type)
    given = [noun for i, noun in enumerate(nouns) if i != hidden]
    answer = "" if hidden is None else nouns[hidden]
    for noun in given:
        if not (_heads(noun) & (stems | {*lower.split()})) and not (answer and _same(noun, answer)):
            return f"it does not name the {wording.names(noun)[0]}"
    heads = {head for noun in given for head in _heads(noun)}
    if answer and (_named(answer, lower) or (_heads(answer) - heads) & stems):
        return "it holds its own answer"
    if slots.neighbour is not None and (near := slots.neighbour.action):
        told = _same_verb(near, action) and any(_same(near.object, noun) for noun in given)
        if not told and _named(near.object, lower) and _verb_stems(near) & stems:
            return "it holds its own answer"
    return ""


def _form_problem(question: str) -> str:
    """What is wrong with it whatever it is about."""
    words = _tokens(question)
    if question.count("?") != 1 or not question.endswith("?"):
        return "it is not one question"
    if len(words) > 40:
        return "it is too long"
    if WEARER not in question.lower():
        return f'it does not say "{wording.WEARER}"'
    if others := [word for word in words if word in OTHERS]:
        return f'it says "{others[0]}" where only the camera wearer acts'
    if not ASKING & {*words} or words[0] in ("did", "was", "is", "does", "has", "were", "are"):
        return "it can be answered with yes or no"
    return ""


def _tokens(text: str) -> list[str]:
    return re.findall(r"\w+(?:['’-]\w+)*", text.lower())


@lru_cache(1 << 14)
def _kinds(word: str) -> dict[str, tuple[str, ...]]:
    """{"NOUN": dictionary forms, ...}; {} for a word that is in no dictionary."""
    return getAllLemmas(word) if word.isascii() and word.isalpha() else {}


def _lemmas(word: str) -> frozenset[str]:
    return frozenset({word, *(lemma for lemmas in _kinds(word).values() for lemma in lemmas)})


def _stems(text: str) -> set[str]:
    return {lemma for word in _tokens(text) for lemma in _lemmas(word)}


def _verb_stems(action: Action) -> set[str]:
    """First words of the verb, as annotated and as corrected, with their dictionary forms."""
    heads = [text.split()[0] for text in (plain(action.verb), wording.spoken_verb(action)) if text.split()]
    return {lemma for head in heads for lemma in _lemmas(head)}


def _verbs(action: Action) -> set[str]:
    own = _verb_stems(action)
    return own.union(*(group for group in SYNONYMS if own & group))


def _same_verb(one: Action, two: Action) -> bool:
    return bool(_verb_stems(one) & _verb_stems(two))


def _same(one: str, two: str) -> bool:
    return bool({*wording.names(one)} & {*wording.names(two)})


def _named(noun: str, lower: str) -> bool:
    return any(occurs(name, lower) for name in wording.names(noun))


def _heads(noun: str) -> set[str]:
    """Last words of the noun's names: wire_cutter -> cutter, cutters."""
    return {name.split()[-1] for name in wording.names(noun)}


def word(slots: Sequence[Slots], stages: Stages, funnel: Counter[str]) -> dict[str, str]:
    """{id: question} for the slots that the model worded well; for the others the template's wording stands."""
    texts: dict[str, str] = {}
    attempts: list[list[dict[str, str]]] = [[] for _ in slots]
    prompts = [[*prompt(one)] for one in slots]
    todo = [*range(len(slots))]
    for attempt in range(ATTEMPTS):
        asks = [Ask(f"{slots[i].id} attempt {attempt + 1}", prompts[i], 96) for i in todo]
        again = []
        for i, said in zip(todo, _ask(stages, "wording", asks, attempt), strict=True):
            question, wrong = read_question(said.text or "")
            wrong = wrong or problem(slots[i], question)
            attempts[i].append({"reply": said.key, "question": question, "problem": wrong})
            if wrong:
                again.append(i)
                prompts[i] += _again(said, wrong, "the question")
            else:
                texts[slots[i].id] = question
        todo = again
    for one, tried in zip(slots, attempts, strict=True):
        worded = one.id in texts
        funnel["action questions worded by the model"] += worded
        funnel["wording fallbacks to the template"] += not worded
        stages.decide(
            "wording",
            id=one.id,
            question=texts.get(one.id),
            decision="model" if worded else "template",
            reason=f"attempt {len(tried)} holds"
            if worded
            else f"{ATTEMPTS} attempts fail; the last: {tried[-1]['problem']}",
            attempts=tried,
        )
    return texts


def _ask(stages: Stages, stage: str, asks: Sequence[Ask], attempt: int) -> list[Said]:
    return stages.ask(stage, asks, seed=attempt, temperature=TEMPERATURE if attempt else 0.0)


def _again(said: Said, wrong: str, what: str) -> list[Message]:
    """The turns that ask once more."""
    return [
        {"role": "assistant", "content": (said.text or "").strip()[:500] or "-"},
        {"role": "user", "content": AGAIN.substitute(problem=wrong, what=what)},
    ]


# -- purpose questions: the prompt ------------------------------------------------------------------------------------

PURPOSE_PROMPT = Template("""\
Below is what the person with the camera, called the camera wearer, does in a first-person video.

$actions

Choose $count of these objects: $objects. For each write a question about what it served for, and the answer.
The answer must follow from the actions above, in one short sentence; do not mention anything that is not in the list.
The question names the object and says "the camera wearer". Reply with nothing but one JSON object, its keys the chosen
objects: {"$first": {"question": "...", "answer": "..."}, ...}""")
PURPOSE_EXAMPLE = (  # actions, and what a good reply is; in a turn of its own, or small models give it back as theirs
    (
        Action("unfold", "tarp", ()),
        Action("hang up", "towel", (("on", "hook"),)),
        Action("strike", "match", ()),
        Action("light", "stove", (("with", "match"),)),
    ),
    {
        "match": {"question": "What did the camera wearer need the match for?", "answer": "Lighting the stove."},
        "hook": {"question": "What did the camera wearer use the hook for?", "answer": "Hanging up the towel."},
    },
)
FEWEST, MOST = 2, 6  # pairs of a clip (formats.md section 2, step 3)
PROMPT_CHARS = 4500  # of the list of actions; the list of their objects is no longer
ROOM = 640  # new tokens, for six pairs in JSON


def purpose_prompt(actions: Sequence[Action], count: str) -> Conversation:
    """The request for a clip's pairs, behind an example. Of more actions than fit, every n-th is shown."""
    example, reply = PURPOSE_EXAMPLE
    return [
        _purpose_turn(example, str(len(reply))),
        {"role": "assistant", "content": json.dumps(reply)},
        _purpose_turn(actions, count),
    ]


def _purpose_turn(actions: Sequence[Action], count: str) -> Message:
    lines = [
        shorten(" ".join([wording.answer_action(a), *(wording.answer_relation(a, i) for i in range(len(a.relations)))]))
        for a in actions
    ]
    step = 1 + sum(len(line) + 3 for line in lines) // PROMPT_CHARS
    nouns = (noun for a in actions[::step] for noun in (a.object, *(tail for _, tail in a.relations)))
    objects = list(dict.fromkeys(shorten(wording.names(noun)[0]) for noun in nouns))
    text = PURPOSE_PROMPT.substitute(
        actions="\n".join(f"- {line}" for line in lines[::step]),
        count=count,
        objects=", ".join(objects),
        first=objects[0],
    )
    return {"role": "user", "content": text}


# -- the reader of its reply, and the check ---------------------------------------------------------------------------

DETERMINERS = _those("the a an it them its their this that these those another some")
LOOSE = _those(  # nouns of any answer
    "camera wearer purpose order way hand place use something thing object item piece part top side inside end"
)  # fmt: skip
SMALL = _those(  # words without an entry in the dictionary of lemmas, and such as say nothing of a thing
    "the a an and or but nor so if as of to in on at by for from with without into onto out off up down over under "
    "near inside outside between around through along across against towards toward behind beside below above before "
    "after while when then that which who what where it its them they their this these those there another other "
    "be is was were been being are "
    "has have had do did does not no can could would will shall should may might must both each all any every some one "
    "two three during until because"
)  # fmt: skip
_PAIR = re.compile(
    r"\bQ(?:uestion)?\s*\d*\W{0,3}[:.)]\s*(?P<q>[^\n?]*\?)[\W_]*A(?:nswer)?\s*\d*\W{0,3}[:.)]\s*(?P<a>[^\n]+)", re.I
)


def read_purposes(text: str) -> list[tuple[str, str, str]]:
    """(object, question, answer) of a reply, the object "" where none is given; [] where it cannot be read."""
    text = unicodedata.normalize("NFKC", text)
    found: list[tuple[str, str, str]] = []
    for _, _, data in json_in(text):
        found += _pairs_in(data, "", 0)
    found = found or [("", m["q"], m["a"]) for m in _PAIR.finditer(text)]
    return [(name, _clean(question), " ".join(answer.split()).strip('*_`" ')) for name, question, answer in found]


def _pairs_in(data: Any, name: str, depth: int) -> Iterator[tuple[str, str, str]]:
    if depth > 5:
        return
    if isinstance(data, list):
        for item in data:
            yield from _pairs_in(item, "", depth + 1)
    if isinstance(data, dict):
        named = {str(key).strip().casefold(): value for key, value in data.items()}
        question, answer = named.get("question", named.get("q")), named.get("answer", named.get("a"))
        if isinstance(question, str) and isinstance(answer, str):
            thing = named.get("object", name)
            yield thing if isinstance(thing, str) else name, question, answer
            return
        for key, value in data.items():
            yield from _pairs_in(value, str(key), depth + 1)


@dataclass(frozen=True)
class Objects:
    """What a clip's pairs may speak of: `names` {a noun's name: the annotation's word} of its candidates, and every
    word of its graphs with its dictionary forms."""

    names: dict[str, str] = field(default_factory=dict)
    words: frozenset[str] = frozenset()


def objects_of(clip: Clip) -> Objects:
    """The objects and words of a clip."""
    names: dict[str, str] = {}
    for _, action in candidates(clip):
        for noun in (action.object, *(tail for _, tail in action.relations)):
            for name in wording.names(noun):
                names.setdefault(name, noun)
    texts = {part for graph in clip.graphs for triplet in graph.triplets for part in triplet}
    texts |= {name for text in texts for name in wording.names(text)}
    texts |= {wording.spoken_verb(graph.action) for graph in clip.graphs if graph.action}
    return Objects(names, frozenset(lemma for text in texts for lemma in _stems(text.replace("_", " "))))


def purpose_problem(objects: Objects, name: str, question: str, answer: str) -> tuple[str, str]:
    """(the annotation's word for the object, "") or ("", what is wrong with the pair)."""
    lower = question.lower()
    in_question = [known for known in objects.names if occurs(known, lower)]
    noun = objects.names.get(plain(re.sub(r"^(?:the|an?) ", "", name.strip(), flags=re.I)))
    if noun is None and in_question:
        noun = objects.names[max(in_question, key=len)]
    if noun is None:
        return "", "it is about no object of the actions"
    if wrong := _form_problem(question):
        return "", wrong
    if not _named(noun, lower):
        return "", f"the question does not name the {wording.names(noun)[0]}"
    words = _tokens(answer)
    if not words or len(words) > 40 or "?" in answer:
        return "", "the answer is no short sentence"
    if others := [word for word in words if word in OTHERS]:
        return "", f'the answer says "{others[0]}" where only the camera wearer acts'
    if occurs(" ".join(words), " ".join(_tokens(question))):
        return "", "it holds its own answer"
    if unknown := [word for word in _object_words(words) if not _lemmas(word) & objects.words]:
        return "", f'the answer speaks of "{unknown[0]}", which is not in the actions'
    return noun, ""


def _object_words(words: Sequence[str]) -> list[str]:
    """The words of an answer that stand for things: nouns, and what the dictionary does not know. A word that may be a
    verb or an adjective as well is one where it stands as one ("to clean the floor")."""
    things = []
    for before, word, after in zip(["to", *words[:-1]], words, [*words[1:], ""], strict=True):
        kinds = _kinds(word)
        verb = "VERB" in kinds and (before in ("to", "and", "wearer", "then", "by") or after in DETERMINERS)
        adjective = "ADJ" in kinds and "NOUN" in _kinds(after)
        noun = "NOUN" in kinds and not verb and not adjective and not _lemmas(word) & LOOSE
        if (noun or not kinds) and word not in SMALL and not word.isdecimal():
            things.append(word)
    return things


def purposes(
    clips: Sequence[Clip], stages: Stages, funnel: Counter[str], *, counted: bool
) -> dict[str, list[tuple[str, str, str]]]:
    """{clip: [(object, question, answer)]}, the object in the annotation's word, each object once.

    A clip gets at most its `purpose_count` where that is known (`counted`), else up to MOST. It is asked again while
    it has fewer than FEWEST, or than its objects or its count allow; what then fails is dropped.
    """
    wanted = {clip.uid: clip.purpose_count if counted else MOST for clip in clips}
    clips = [clip for clip in clips if wanted[clip.uid] and candidates(clip)]
    objects = {clip.uid: objects_of(clip) for clip in clips}
    fewest = {u: min(FEWEST, wanted[u], len({plain(noun) for noun in o.names.values()})) for u, o in objects.items()}
    pairs: dict[str, dict[str, tuple[str, str, str]]] = {clip.uid: {} for clip in clips}
    prompts: dict[str, list[Message]] = {}
    for clip in clips:
        count = str(wanted[clip.uid]) if counted else f"{fewest[clip.uid]} to {MOST}"
        prompts[clip.uid] = [*purpose_prompt([action for _, action in candidates(clip)], count)]
    todo = [clip.uid for clip in clips]
    for attempt in range(ATTEMPTS):
        asks = [Ask(f"{uid} attempt {attempt + 1}", prompts[uid], ROOM, START) for uid in todo]
        again = []
        for uid, said in zip(todo, _ask(stages, "purpose", asks, attempt), strict=True):
            wrong = _take(uid, said, objects[uid], pairs[uid], wanted[uid], attempt, stages, funnel)
            if len(pairs[uid]) < fewest[uid]:
                again.append(uid)
                prompts[uid] += _again(said, wrong, "the JSON object")
        todo = again
    return {uid: list(of_clip.values()) for uid, of_clip in pairs.items()}


def _take(
    uid: str,
    said: Said,
    objects: Objects,
    pairs: dict[str, tuple[str, str, str]],
    wanted: int,
    attempt: int,
    stages: Stages,
    funnel: Counter[str],
) -> str:
    """Put the good pairs of a reply into `pairs`; returns what is wrong with it, for the next attempt."""
    problems = []
    read = read_purposes(said.text or "")
    for name, question, answer in read:
        noun, wrong = purpose_problem(objects, name, question, answer)
        if not wrong and noun in pairs:
            wrong = f"the {plain(noun)} has a question already"
        if not wrong and len(pairs) == wanted:
            wrong = f"the clip has its {wanted} questions already"
        if not wrong:
            answer = f"{answer[:1].upper()}{answer[1:].rstrip('. ')}."
            pairs[noun] = (noun, question, answer)
        else:
            problems.append(wrong)
        funnel["purpose pairs of the model"] += 1
        funnel["purpose pairs dropped"] += bool(wrong)
        stages.decide(
            "purpose",
            clip=uid,
            object=noun or name,
            question=question,
            answer=answer,
            decision="dropped" if wrong else "kept",
            reason=wrong or f"attempt {attempt + 1} holds",
            replies=[said.key],
        )
    funnel["purpose replies that cannot be read"] += not read
    return (
        problems[0]
        if problems
        else "there are too few pairs in it"
        if read
        else "there is no question and answer in it"
    )
