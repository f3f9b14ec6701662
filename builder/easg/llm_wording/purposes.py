"""Purpose questions by a language model: the prompt, the reader of its reply, the check of each pair."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from string import Template
from typing import Any

from builder.easg import wording
from builder.easg.grounding import occurs, plain
from builder.easg.llm_wording.attempts import ATTEMPTS, OTHERS, ask, ask_again, clean, form_problem
from builder.easg.questions import candidates
from builder.easg.records import Action, Clip
from builder.easg.vocabulary import is_named, kinds_of, lemmas_of, stems_of, tokens, words_of
from builder.replies import START, json_in, shorten
from builder.stages import Request, StageReply, Stages
from videoqa.engines import Conversation, Message

PROMPT = Template("""\
Below is what the person with the camera, called the camera wearer, does in a first-person video.

$actions

Choose $count of these objects: $objects. For each write a question about what it served for, and the answer.
The answer must follow from the actions above, in one short sentence; do not mention anything that is not in the list.
The question names the object and says "the camera wearer". Reply with nothing but one JSON object, its keys the chosen
objects: {"$first": {"question": "...", "answer": "..."}, ...}""")
EXAMPLE = (  # actions, and what a good reply is; in a turn of its own, or small models give it back as theirs
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


def prompt(actions: Sequence[Action], count: str) -> Conversation:
    """The request for a clip's pairs, behind an example. Of more actions than fit, every n-th is shown."""
    example, reply = EXAMPLE
    return [
        _turn(example, str(len(reply))),
        {"role": "assistant", "content": json.dumps(reply)},
        _turn(actions, count),
    ]


def _turn(actions: Sequence[Action], count: str) -> Message:
    lines = [
        shorten(" ".join([wording.answer_action(a), *(wording.answer_relation(a, i) for i in range(len(a.relations)))]))
        for a in actions
    ]
    step = 1 + sum(len(line) + 3 for line in lines) // PROMPT_CHARS
    nouns = (noun for a in actions[::step] for noun in (a.object, *(tail for _, tail in a.relations)))
    objects = list(dict.fromkeys(shorten(wording.names(noun)[0]) for noun in nouns))
    text = PROMPT.substitute(
        actions="\n".join(f"- {line}" for line in lines[::step]),
        count=count,
        objects=", ".join(objects),
        first=objects[0],
    )
    return {"role": "user", "content": text}


# --- the reader of its reply, and the check ---

DETERMINERS = words_of("the a an it them its their this that these those another some")
LOOSE = words_of(  # nouns of any answer
    "camera wearer purpose order way hand place use something thing object item piece part top side inside end"
)  # fmt: skip
SMALL = words_of(  # words that the dictionary of lemmas lacks, and words that name no thing
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
    triples: list[tuple[str, str, str]] = []
    for _, _, data in json_in(text):
        triples += _pairs_in(data, "", 0)
    triples = triples or [("", m["q"], m["a"]) for m in _PAIR.finditer(text)]
    return [(name, clean(question), " ".join(answer.split()).strip('*_`" ')) for name, question, answer in triples]


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
    """What the pairs of a clip may speak of.

    `names` is {name: the annotation's word} of its candidates' nouns; `words` are all words of its graphs, with their
    dictionary forms.
    """

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
    return Objects(names, frozenset(lemma for text in texts for lemma in stems_of(text.replace("_", " "))))


def problem(objects: Objects, name: str, question: str, answer: str) -> tuple[str, str]:
    """(the annotation's word for the object, "") or ("", what is wrong with the pair)."""
    lower = question.lower()
    in_question = [known for known in objects.names if occurs(known, lower)]
    noun = objects.names.get(plain(re.sub(r"^(?:the|an?) ", "", name.strip(), flags=re.I)))
    if noun is None and in_question:
        noun = objects.names[max(in_question, key=len)]
    if noun is None:
        return "", "it is about no object of the actions"
    if wrong := form_problem(question):
        return "", wrong
    if not is_named(noun, lower):
        return "", f"the question does not name the {wording.names(noun)[0]}"
    words = tokens(answer)
    if not words or len(words) > 40 or "?" in answer:
        return "", "the answer is no short sentence"
    if others := [word for word in words if word in OTHERS]:
        return "", f'the answer says "{others[0]}" where only the camera wearer acts'
    if occurs(" ".join(words), " ".join(tokens(question))):
        return "", "it holds its own answer"
    if unknown := [word for word in _object_words(words) if not lemmas_of(word) & objects.words]:
        return "", f'the answer speaks of "{unknown[0]}", which is not in the actions'
    return noun, ""


def _object_words(words: Sequence[str]) -> list[str]:
    """The words of an answer that may name things: nouns, and words that the dictionary does not have.

    A word that can also be a verb or an adjective is left out where it is used as one ("to clean the floor").
    """
    things = []
    for before, word, after in zip(["to", *words[:-1]], words, [*words[1:], ""], strict=True):
        kinds = kinds_of(word)
        verb = "VERB" in kinds and (before in ("to", "and", "wearer", "then", "by") or after in DETERMINERS)
        adjective = "ADJ" in kinds and "NOUN" in kinds_of(after)
        noun = "NOUN" in kinds and not verb and not adjective and not lemmas_of(word) & LOOSE
        if (noun or not kinds) and word not in SMALL and not word.isdecimal():
            things.append(word)
    return things


def purposes(
    clips: Sequence[Clip], stages: Stages, funnel: Counter[str], *, counted: bool
) -> dict[str, list[tuple[str, str, str]]]:
    """{clip: [(object, question, answer)]}, the object in the annotation's word, each object once.

    A clip gets at most its `purpose_count` where that is known (`counted`), else at most MOST. The model is asked again
    while the clip has fewer than FEWEST, or than its objects or its count allow. Pairs that fail the check are dropped.
    """
    wanted = {clip.uid: clip.purpose_count if counted else MOST for clip in clips}
    clips = [clip for clip in clips if wanted[clip.uid] and candidates(clip)]
    objects = {clip.uid: objects_of(clip) for clip in clips}
    fewest = {u: min(FEWEST, wanted[u], len({plain(noun) for noun in o.names.values()})) for u, o in objects.items()}
    pairs: dict[str, dict[str, tuple[str, str, str]]] = {clip.uid: {} for clip in clips}
    prompts: dict[str, list[Message]] = {}
    for clip in clips:
        count = str(wanted[clip.uid]) if counted else f"{fewest[clip.uid]} to {MOST}"
        prompts[clip.uid] = [*prompt([action for _, action in candidates(clip)], count)]
    todo = [clip.uid for clip in clips]
    for attempt in range(ATTEMPTS):
        requests = [Request(f"{uid} attempt {attempt + 1}", prompts[uid], ROOM, START) for uid in todo]
        again = []
        for uid, reply in zip(todo, ask(stages, "purpose", requests, attempt), strict=True):
            wrong = _take(uid, reply, objects[uid], pairs[uid], wanted[uid], attempt, stages, funnel)
            if len(pairs[uid]) < fewest[uid]:
                again.append(uid)
                prompts[uid] += ask_again(reply, wrong, "the JSON object")
        todo = again
    return {uid: list(of_clip.values()) for uid, of_clip in pairs.items()}


def _take(
    uid: str,
    reply: StageReply,
    objects: Objects,
    pairs: dict[str, tuple[str, str, str]],
    wanted: int,
    attempt: int,
    stages: Stages,
    funnel: Counter[str],
) -> str:
    """Put the good pairs of a reply into `pairs`; returns what is wrong with it, for the next attempt."""
    problems = []
    read = read_purposes(reply.text or "")
    for name, question, answer in read:
        noun, wrong = problem(objects, name, question, answer)
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
            replies=[reply.key],
        )
    funnel["purpose replies that cannot be read"] += not read
    if problems:
        return problems[0]
    return "there are too few pairs in it" if read else "there is no question and answer in it"
