"""Step 6, attributes: adjectives of grounded objects, from the narrations near the frame.

    "(136.93s) #C C lifts the wooden table"  ->  evidence of `table` gets attribute "wooden"

The model reads the sentences within WINDOW seconds of the frame. An adjective counts only if it is in them, and does
not say where the object is or whose. Where no sentence names an object the model is not asked.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from string import Template

from lemminflect import getAllLemmas

from builder.easg import wording
from builder.easg.grounding import occurs
from builder.replies import json_in
from builder.stages import Request, Stages
from easg_bench import QA, Evidence
from videoqa.engines import Conversation

WINDOW = 15.0  # seconds on either side; narrations of the real clips come every 30 s or more

PROMPT = Template("""\
These sentences describe a moment of a first-person video:
$sentences

Objects: $objects

Which of the objects does the text itself describe with an adjective (colour, material, size, state)? Copy the adjective
from the text. Do not say where an object is, whose it is, or what is done with it; leave out objects without one.
Reply with nothing but one JSON object, from object to adjective, such as {"hook": "brass"}, or {} if there is none.""")

ARTICLES = ("the", "a", "an", "his", "her", "their", "its", "some", "one", "two", "another", "other", "same")
NO_ADJECTIVE = {*ARTICLES, "left", "right", "first", "second"}  # these tell things apart, they do not describe them


def prompt(sentences: Sequence[str], objects: Sequence[str]) -> Conversation:
    """The request for the adjectives of these objects."""
    text = PROMPT.substitute(sentences="\n".join(f"- {s}" for s in sentences), objects=json.dumps(list(objects)))
    return [{"role": "user", "content": text}]


def read_attributes(text: str, objects: Sequence[str], sentences: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """({object: adjective}, the refused ones as "object: adjective") from a reply about these objects."""
    known = {name: one for one in objects for name in (one.lower(), *wording.names(one))}
    context = " ".join(sentences).lower()
    adjectives: dict[str, str] = {}
    refused = []
    for _, _, data in json_in(text):
        mappings = [one for one in (data if isinstance(data, list) else [data]) if isinstance(one, dict)]
        for key, value in (pair for one in mappings for pair in one.items()):
            name = known.get(str(key).strip().lower())
            word = " ".join(str(value).lower().split()) if isinstance(value, str) else ""
            if name is None or not word:
                continue
            if _describes(word, name, context):
                adjectives[name] = word
            else:
                refused.append(f"{name}: {word[:40]}")
    return adjectives, refused


def _describes(text: str, name: str, context: str) -> bool:
    """Whether the sentences say this adjective of the object: "wooden table", "small wooden table"."""
    words = text.split()
    if len(words) > 2 or NO_ADJECTIVE & {*words} or any(occurs(text, noun) for noun in wording.names(name)):
        return False
    for word in words:  # of nouns ("metal rod") only the singular: "cleans table" is no description
        kinds = getAllLemmas(word) if word.isascii() and word.isalpha() else {}
        if "ADJ" not in kinds and word not in kinds.get("NOUN", ()):
            return False
    between = rf"(?:[ ,]+(?!(?:{'|'.join(ARTICLES)})\b)\w+)?[ ]+"
    nouns = wording.names(name)
    return any(re.search(rf"(?<!\w){re.escape(text)}{between}{re.escape(noun)}(?!\w)", context) for noun in nouns)


def add(rows: Sequence[QA], stages: Stages, *, worded: bool, funnel: Counter[str]) -> list[QA]:
    """The rows with attributes in their evidence; with `worded` also in the question ("the wooden table")."""
    moments: dict[tuple[str, int], list[Evidence]] = {}
    context: dict[str, str] = {}
    for row in rows:
        context[row["clip"]] = row["context"]
        for item in row["evidence"]:
            moments.setdefault((row["clip"], item["frame"]), []).append(item)
    named_near: list[tuple[tuple[str, int], list[str], list[str]]] = []
    for (clip, frame), items in moments.items():
        near = near_sentences(context[clip], items[0]["seconds"])
        names = sorted(
            {
                item["object"]
                for item in items
                if any(occurs(n, " ".join(near).lower()) for n in wording.names(item["object"]))
            }
        )
        if names:
            named_near.append(((clip, frame), names, near))
    requests = [
        Request(f"{clip} frame {frame}", prompt(near, names), 96, "{") for (clip, frame), names, near in named_near
    ]
    attributes: dict[tuple[str, int], dict[str, str]] = {}
    for (moment, names, near), reply in zip(
        named_near, stages.ask("attributes", requests, seed=0, temperature=0.0), strict=True
    ):
        attributes[moment], refused = read_attributes(reply.text or "", names, near)
        funnel["moments asked for attributes"] += 1
        funnel["objects with an attribute"] += len(attributes[moment])
        stages.decide(
            "attributes",
            clip=moment[0],
            frame=moment[1],
            attributes=attributes[moment],
            decision="found" if attributes[moment] else "none",
            reason=f"not said of the object: {'; '.join(refused)}" if refused else "as the text says",
            replies=[reply.key],
        )
    return [_described(row, attributes, worded) for row in rows]


def near_sentences(narrations: str, seconds: float) -> list[str]:
    """The sentences of "(891.97s) #C C ... (893.1s) ..." within WINDOW of a moment."""
    parts = re.split(r"\((\d+(?:\.\d+)?)s\)", narrations)
    timed = zip(map(float, parts[1::2]), parts[2::2], strict=True)
    return [re.sub(r"#\w+\s+", "", text).strip() for at, text in timed if abs(at - seconds) <= WINDOW and text.strip()]


def _described(row: QA, attributes: dict[tuple[str, int], dict[str, str]], worded: bool) -> QA:
    evidence: list[Evidence] = []
    question = row["question"]
    for item in row["evidence"]:
        word = attributes.get((row["clip"], item["frame"]), {}).get(item["object"])
        evidence.append({**item, "attribute": word})
        if word and worded:
            question = attributed(question, item["object"], word, row["answer"] or "")
    return {**row, "question": question, "evidence": evidence}


def attributed(question: str, name: str, adjective: str, answer: str) -> str:
    """The question with "the wooden table" for "the table"; unchanged where it, or the answer, has the adjective."""
    if occurs(adjective, answer.lower()) or occurs(adjective, question.lower()):
        return question
    for noun in sorted(wording.names(name), key=len, reverse=True):
        match = re.search(rf"\bthe (?={re.escape(noun)}(?!\w))", question, re.I)
        if match:
            return f"{question[: match.end()]}{adjective} {question[match.end() :]}"
    return question
