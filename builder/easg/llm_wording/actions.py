"""Action questions by a language model: the prompt, the reader of its reply, the check."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from string import Template

from builder.easg import wording
from builder.easg.llm_wording.attempts import ASKING, ATTEMPTS, WEARER, ask, ask_again, clean, form_problem
from builder.easg.questions import Slots
from builder.easg.vocabulary import (
    heads_of,
    is_named,
    same_thing,
    same_verb,
    stems_of,
    verb_stems,
    verbs_like,
)
from builder.replies import json_in, shorten
from builder.stages import Request, Stages
from videoqa.engines import Conversation

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


def read_question(text: str) -> tuple[str, str]:
    """(question, "") or ("", what is wrong): the one question of a reply, without what models put around it."""
    text = unicodedata.normalize("NFKC", text)
    for _, _, data in json_in(text):
        if isinstance(data, dict) and isinstance(value := data.get("question"), str):
            text = value
            break
    candidates = [clean(match) for line in text.splitlines() for match in re.findall(r"[^?]*\?", line)]
    candidates = [question for question in dict.fromkeys(candidates) if re.search(r"\w", question)]
    lines = [clean(line) for line in text.splitlines() if line.strip()]
    if not candidates and len(lines) == 1 and lines[0].split()[:1] and lines[0].split()[0].lower() in ASKING:
        candidates = [lines[0].rstrip(".! ") + "?"]
    if not candidates:
        return "", "there is no question in it"
    if len(candidates) > 1:
        return "", f"there are {len(candidates)} questions in it, not one"
    return candidates[0], ""


def problem(slots: Slots, question: str) -> str:
    """What is wrong with a question as the wording of these slots; "" if nothing is."""
    action = slots.action
    if wrong := form_problem(question):
        return wrong
    lower = question.lower().replace(WEARER, "")  # a camera may be the answer
    stems = stems_of(lower)
    if not stems & verbs_like(action):
        return f'it does not say "{wording.spoken_verb(action)}"'
    if slots.neighbour is not None and not stems & (
        {"before", "prior"} if slots.type == "before" else {"after", "following"}
    ):
        return f'it does not say "{slots.type}"'

    nouns = [action.object, *(tail for _, tail in action.relations)]
    hidden = {"direct": 0, "indirect": 1 + (slots.which or 0)}.get(slots.type)
    nouns_given = [noun for i, noun in enumerate(nouns) if i != hidden]
    answer = "" if hidden is None else nouns[hidden]
    for noun in nouns_given:
        if not (heads_of(noun) & (stems | {*lower.split()})) and not (answer and same_thing(noun, answer)):
            return f"it does not name the {wording.names(noun)[0]}"
    heads = {head for noun in nouns_given for head in heads_of(noun)}
    if answer and (is_named(answer, lower) or (heads_of(answer) - heads) & stems):
        return "it holds its own answer"
    if slots.neighbour is not None and (neighbour := slots.neighbour.action):
        given_already = same_verb(neighbour, action) and any(same_thing(neighbour.object, noun) for noun in nouns_given)
        if not given_already and is_named(neighbour.object, lower) and verb_stems(neighbour) & stems:
            return "it holds its own answer"
    return ""


def word(slots: Sequence[Slots], stages: Stages, funnel: Counter[str]) -> dict[str, str]:
    """{id: question} for the slots that the model worded well; for the others the template's wording stands."""
    texts: dict[str, str] = {}
    attempts: list[list[dict[str, str]]] = [[] for _ in slots]
    prompts = [[*prompt(one)] for one in slots]
    todo = [*range(len(slots))]
    for attempt in range(ATTEMPTS):
        requests = [Request(f"{slots[i].id} attempt {attempt + 1}", prompts[i], 96) for i in todo]
        again = []
        for i, reply in zip(todo, ask(stages, "wording", requests, attempt), strict=True):
            question, wrong = read_question(reply.text or "")
            wrong = wrong or problem(slots[i], question)
            attempts[i].append({"reply": reply.key, "question": question, "problem": wrong})
            if wrong:
                again.append(i)
                prompts[i] += ask_again(reply, wrong, "the question")
            else:
                texts[slots[i].id] = question
        todo = again
    for one, tried in zip(slots, attempts, strict=True):
        worded = one.id in texts
        failed = f"{ATTEMPTS} attempts fail; the last: {tried[-1]['problem']}"
        funnel["action questions worded by the model"] += worded
        funnel["wording fallbacks to the template"] += not worded
        stages.decide(
            "wording",
            id=one.id,
            question=texts.get(one.id),
            decision="model" if worded else "template",
            reason=f"attempt {len(tried)} holds" if worded else failed,
            attempts=tried,
        )
    return texts
