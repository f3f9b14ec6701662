"""Knowledge types and reasoning steps of WorldQA's questions by an engine, in several votes.

The engine sees a question with its answer, and what the source tells of the video, lists the steps of thought from the
video to the answer and names the kinds of knowledge that they need. It is asked `samples` times:

    steps       how many different steps the list has; 2 to 10 (the paper's range). The decision is the median of the
                votes, of two in the middle the lower one
    knowledge   the types that more than half of the votes name

A reply that lists nothing usable, or names what is no type, is no vote. Where half of the votes or fewer could be read,
there is no decision: nothing is guessed. What is decided goes into the form of notes.py, every vote into the stages.
"""

from __future__ import annotations

import itertools
import re
import statistics
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from builder.replies import json_in
from builder.stages import Request, Stages
from builder.worldqa.notes import STEPS
from videoqa.benchmarks.worldqa.data import KNOWLEDGE
from videoqa.rows import Row

SAMPLES = 3
TEMPERATURE = 0.7  # of several samples; a single one is greedy
TOKENS = 400  # longest reply
START = '{"steps": ["'
DECISIONS = ("annotations",)

# What the paper's five types mean, in our words
MEANING: Mapping[str, str] = {
    "societal norm": "customs, manners, rules or laws that people of a society share",
    "tool use": "what an object is made for, how it is used, or why using it works",
    "self motive": "why one person does something: the person's own aims, needs or feelings",
    "social interaction": "how people relate to each other: what one wants to tell another, or how they stand together",
    "multimodal association": "which sound, spoken word or written text belongs to what is seen, and what it means",
}
_TASK = (
    "Here is a question about a video with its correct answer.\n\n{about}Question: {question}\nAnswer: {answer}\n"
    "{rationale}\n"
    "1. List the steps of thought that lead from what is seen and heard to the answer: one observation or one "
    "conclusion a step, {low} to {high} steps, no step twice, none that is not needed.\n"
    "2. Say which kinds of knowledge these steps need, one or more of these, each by its name as it is written here "
    "before the colon:\n{kinds}\n\n"
    'Reply as JSON, in this form: {{"steps": ["...", "..."], "knowledge": ["..."]}}'
)
# Behind "tool use:": a reason may stand there, but not one against it
_DENIES = re.compile(r"n't\b|\b(?:no|not|none|never|without|false|n/a|nothing)\b|^\W*\d+\W*$")


@dataclass(frozen=True, slots=True)
class Vote:
    """What one reply says; None: it does not say it so that it can be read."""

    steps: int | None
    knowledge: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class Annotation:
    """What the votes on one question decide."""

    id: str
    votes: tuple[Vote, ...]
    failed: int  # calls without a reply

    @property
    def steps(self) -> int | None:
        """None: half of the votes or fewer could be read."""
        read = [vote.steps for vote in self.votes if vote.steps is not None]
        return statistics.median_low(read) if self._enough(len(read)) else None

    @property
    def knowledge(self) -> list[str] | None:
        """The types in the order of KNOWLEDGE; None: too few votes, or no type has more than half of them."""
        read = [vote.knowledge for vote in self.votes if vote.knowledge is not None]
        named = [kind for kind in KNOWLEDGE if 2 * sum(kind in one for one in read) > len(read)]
        return named if named and self._enough(len(read)) else None

    def _enough(self, read: int) -> bool:
        return 2 * read > len(self.votes)


def prompt(row: Row) -> str:
    """What the engine is asked about a question."""
    told = [text.strip() for text in (row.get("object_description"), row.get("context")) if text and text.strip()]
    about = "What is told of the video:\n" + "\n".join(dict.fromkeys(told)) + "\n\n" if told else ""
    rationale = f"Why: {row['rationale']}\n" if row.get("rationale") else ""
    kinds = "\n".join(f"- {kind}: {meaning}" for kind, meaning in MEANING.items())
    return _TASK.format(
        about=about,
        question=row["question"],
        answer=row["answer"],
        rationale=rationale,
        kinds=kinds,
        low=STEPS[0],
        high=STEPS[-1],
    )


def read_vote(text: str) -> Vote:
    """What a reply says. Of several JSON objects with one key, the key counts only if all say the same."""
    steps: set[int | None] = set()
    knowledge: set[frozenset[str] | None] = set()
    for _, _, data in json_in(text):
        for one in data if isinstance(data, list) else [data]:
            named = {str(key).strip().casefold(): value for key, value in one.items()} if isinstance(one, dict) else {}
            if "steps" in named:
                steps.add(_count(named["steps"]))
            if "knowledge" in named:
                knowledge.add(_kinds(named["knowledge"]))
    return Vote(steps.pop() if len(steps) == 1 else None, knowledge.pop() if len(knowledge) == 1 else None)


def _count(value: Any) -> int | None:
    """How many steps a list has, or a number says."""
    if isinstance(value, list):
        texts = [" ".join(one.split()) for one in value if isinstance(one, str)]
        plain = {text.casefold().strip(" .") for text in texts}
        if len(texts) < len(value) or len(plain) < len(value) or "" in plain:
            return None  # a step that is none, a step twice, or "..." of the form
        value = len(value)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and value in STEPS else None


def _kinds(value: Any) -> frozenset[str] | None:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        return None
    plain = []
    for name, _, reason in (text.casefold().partition(":") for text in names):
        if _DENIES.search(reason):  # "tool use: not needed"
            return None
        plain.append(" ".join(name.replace("_", " ").replace("-", " ").split()).strip(" ."))
    return frozenset(plain) if set(plain) <= set(KNOWLEDGE) else None


def annotate(rows: Sequence[Row], stages: Stages, samples: int = SAMPLES) -> list[Annotation]:
    """The votes on each question, in its order."""
    votes: list[list[Vote]] = [[] for _ in rows]
    failed = [0] * len(rows)
    requests = [Request(row["id"], [{"role": "user", "content": prompt(row)}], TOKENS, START) for row in rows]
    for seed in range(samples):
        replies = stages.ask("annotate", requests, seed=seed, temperature=TEMPERATURE if samples > 1 else 0.0)
        for at, reply in enumerate(replies):
            failed[at] += reply.text is None
            votes[at].append(read_vote(reply.text or ""))
    made = [Annotation(row["id"], tuple(of), lost) for row, of, lost in zip(rows, votes, failed, strict=True)]
    for one in made:
        said = [
            {"steps": v.steps, "knowledge": None if v.knowledge is None else sorted(v.knowledge)} for v in one.votes
        ]
        decision = "decided" if one.steps is not None and one.knowledge is not None else "not whole"
        stages.decide("annotations", id=one.id, steps=one.steps, knowledge=one.knowledge, decision=decision, votes=said)
    return made


def notes_with(notes: Mapping[str, Any], made: Sequence[Annotation]) -> dict[str, Any]:
    """The notes with what was decided in the place of what they said of these questions."""
    questions = dict(notes.get("questions", {}))
    for one in made:
        decided: dict[str, Any] = {}
        if one.knowledge is not None:
            decided["knowledge"] = one.knowledge
        if one.steps is not None:
            decided["steps"] = one.steps
        if decided:
            questions[one.id] = decided
        else:
            questions.pop(one.id, None)
    return {"questions": questions, "videos": dict(notes.get("videos", {}))}


# -- agreement --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far votes on the same question say the same."""

    questions: int  # with two or more votes that could be read
    same: float  # share of pairs of votes, each question weighing the same
    kappa: float | None  # Fleiss': 1 all the same, 0 as by chance; None: one label only, chance explains all


def agreement(votes: Sequence[Sequence[Hashable]]) -> Agreement | None:
    """The agreement of the votes on several questions; None where no question has two votes."""
    several = [list(of) for of in votes if len(of) > 1]
    if not several:
        return None
    shares = [statistics.fmean(a == b for a, b in itertools.combinations(of, 2)) for of in several]
    same = statistics.fmean(shares)
    counts = Counter(label for of in several for label in of)
    chance = sum((count / counts.total()) ** 2 for count in counts.values())
    return Agreement(len(several), same, None if len(counts) == 1 else (same - chance) / (1 - chance))


def summary(made: Sequence[Annotation]) -> str:
    """The annotations in figures, for a terminal."""
    steps = Counter(one.steps for one in made if one.steps is not None)
    kinds = Counter(kind for one in made for kind in one.knowledge or ())
    lines = [
        f"{len(made)} questions, {sum(steps.values())} with steps, {sum(bool(o.knowledge) for o in made)} with types"
    ]
    lines.append("steps: " + (", ".join(f"{n} in {steps[n]}" for n in STEPS if steps[n]) or "none"))
    lines.append("types: " + ", ".join(f"{kind} {kinds[kind]}" for kind in KNOWLEDGE))
    labels: dict[str, list[list[Hashable]]] = {
        "steps": [[v.steps for v in one.votes if v.steps is not None] for one in made],
        **{
            kind: [[kind in v.knowledge for v in one.votes if v.knowledge is not None] for one in made]
            for kind in KNOWLEDGE
        },
    }
    lines.append(f"{'agreement of votes':<24}{'questions':>9}{'same':>8}{'kappa':>8}")
    for name, votes in labels.items():
        if (one := agreement(votes)) is not None:
            kappa = "-" if one.kappa is None else f"{one.kappa:.2f}"
            lines.append(f"  {name:<22}{one.questions:>9}{one.same:>8.1%}{kappa:>8}")
    lost = [one.id for one in made if one.steps is None or one.knowledge is None]
    if lost:
        lines.append(f"not decided in all: {len(lost)} ({', '.join(lost[:10])}{', ...' if len(lost) > 10 else ''})")
    return "\n".join(lines)
