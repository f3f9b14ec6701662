"""Questions in the manner of EgoSchema, made by a language model from a clip's narrations.

    questions   N questions about the whole clip                                    (calls of the scheme, see SCHEMES)
    options     the right answer and M wrong ones for each
    rules       filters.py, one question at a time, then the length of the right answers over the set
    blind       a model that sees question and options but no narrations must not find the right one
    baseline    the same without the question: how far options alone give the answer away (a figure, nothing is dropped)

What the model said is in the folder of the stages, so a run that was killed goes on; a reply that cannot be read is
asked again, sampled, at most ATTEMPTS times.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from builder.egoschema.filters import WRONG, faults
from builder.egoschema.narrated import Clip
from builder.options import chosen, give_away
from builder.replies import json_in
from builder.stages import Request, Stages
from videoqa.benchmarks.egoschema.data import TYPE
from videoqa.benchmarks.egoschema.prompts import INSTRUCTION, LETTER
from videoqa.choices import lettered, shuffled
from videoqa.engines import Conversation
from videoqa.reading.choices import Choice, is_right

QUESTIONS = 3  # of a clip
ATTEMPTS = 3
TEMPERATURE = 0.7  # of the later attempts; the first is greedy
SCHEMES = ("q-aw", "q-a-w", "one")  # questions, then answers with wrong ones | three calls | all in one call
DECISIONS = ("made", "rules", "length", "blind")
TOKENS = 1_200  # longest reply of a call that writes
START = '[{"'
SEED = 0  # of the order of the options

_TASK = (
    'These are notes on three minutes of a first-person video. "C" is the person who films it; each note has its '
    "second.\n\n{notes}\n\n"
)
_ABOUT_QUESTIONS = (
    "Write {n} questions about these three minutes for somebody who watches them. Each has to need most of the video, "
    "not one moment: what all of it is for, how its parts hang together, what changes, what matters most. Do not ask "
    "how often or when something happens, and do not mention notes or seconds."
)
_ABOUT_WRONG = (
    "A wrong answer has to sound as likely as the right one to somebody who has not watched, be clearly wrong to "
    "somebody who has, and be about as long as the right one."
)
_ABOUT_OPTIONS = f"the right answer, and {{m}} wrong answers. {_ABOUT_WRONG}"


@dataclass(frozen=True, slots=True)
class Made:
    """A question with its right answer and wrong ones, before it is sorted out."""

    clip: Clip
    number: int  # within the clip, from 0
    question: str
    answer: str
    wrong: tuple[str, ...]

    @property
    def id(self) -> str:
        return f"{self.clip.id}:{self.number}"

    @property
    def row(self) -> dict[str, Any]:
        """The question as a row of the dataset, its options shuffled."""
        arranged = shuffled([self.answer, *self.wrong], 0, SEED, self.id)
        return {
            **{"id": self.id, "clip": self.clip.id, "video": self.clip.video, "type": TYPE},
            **{"question": self.question, "answer": None, "choices": list(arranged.choices), "gold": arranged.gold},
            **{"context": self.clip.text, "frame": None, "start_s": self.clip.start_s, "end_s": self.clip.end_s},
            **{"clip_start_s": self.clip.start_s, "evidence": []},
        }


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is left of the questions, how many each stage left, and the accuracy of the baseline without questions."""

    made: list[Made]
    funnel: Counter[str]
    baseline: float | None  # 0 to 1


def make(
    clips: Sequence[Clip],
    writing: Stages,
    answering: Stages,
    *,
    scheme: str = "q-aw",
    questions: int = QUESTIONS,
    wrong: int = WRONG,
) -> Outcome:
    """Make, filter, count. `writing` writes the questions, `answering` tries to answer them blind; they may be one."""
    funnel: Counter[str] = Counter({"clips": len(clips), "questions asked for": questions * len(clips)})
    written = _written(clips, writing, scheme, questions, wrong)
    funnel["questions that could be read"] = len(written)
    kept = []
    for one in written:
        found = faults(one.question, one.answer, one.wrong, wrong)
        writing.decide("rules", id=one.id, question=one.question, decision="dropped" if found else "kept", reason=found)
        if not found:
            kept.append(one)
    funnel["passed the rules"] = len(kept)
    gone = set(give_away([(one.answer, one.wrong) for one in kept])) if kept else set()
    for index in sorted(gone):
        writing.decide("length", id=kept[index].id, decision="dropped", reason="its length gives the answer away")
    kept = [one for index, one in enumerate(kept) if index not in gone]
    funnel["passed the length of the set"] = len(kept)
    blind = _chosen(kept, answering, "blind", lambda row: f"Question: {row['question']}\n")
    seen = [one for one, choice in zip(kept, blind, strict=True) if not _right(one, choice)]
    for one, choice in zip(kept, blind, strict=True):
        writing.decide("blind", id=one.id, decision="dropped" if _right(one, choice) else "kept", choice=choice.index)
    funnel["passed the blind filter"] = len(seen)
    alone = _chosen(kept, answering, "baseline", lambda row: "")
    hits = [_right(one, choice) for one, choice in zip(kept, alone, strict=True)]
    return Outcome(seen, funnel, sum(hits) / len(hits) if hits else None)


def _right(one: Made, choice: Choice) -> bool:
    row = one.row
    return is_right(choice, row["gold"], row["choices"])


def _chosen(made: Sequence[Made], stages: Stages, stage: str, head: Callable[[Mapping[str, Any]], str]) -> list[Choice]:
    """What the model chooses where it sees options and perhaps the question, but nothing of the clip."""
    rows = [one.row for one in made]
    return chosen(rows, stages, stage, lambda row: f"{INSTRUCTION}{head(row)}{lettered(row['choices'])}\n{LETTER}")


# -- writing ----------------------------------------------------------------------------------------------------------

Item = dict[str, Any]


def _written(clips: Sequence[Clip], stages: Stages, scheme: str, n: int, m: int) -> list[Made]:
    """The questions of all clips that could be read whole."""
    parts: list[tuple[str, str, tuple[str, ...]]]
    if scheme == "one":
        form = json.dumps([{"question": "...", "answer": "...", "wrong": ["..."] * m}])
        text = f"{_ABOUT_QUESTIONS.format(n=n)}\nGive for each {_ABOUT_OPTIONS.format(m=m)}"
        parts = [("questions", f"{text}\nReply as JSON, in this form: {form}", ("question", "answer", "wrong"))]
    else:
        form = json.dumps([{"question": "..."}])
        first = f"{_ABOUT_QUESTIONS.format(n=n)}\nReply as JSON, in this form: {form}"
        parts = [("questions", first, ("question",))]
        if scheme == "q-aw":
            form = json.dumps([{"number": 1, "answer": "...", "wrong": ["..."] * m}])
            text = f"Give for each of these questions {_ABOUT_OPTIONS.format(m=m)}\n{{known}}"
            parts.append(("options", f"{text}\nReply as JSON, in this form: {form}", ("answer", "wrong")))
        else:
            form = json.dumps([{"number": 1, "answer": "..."}])
            text = "Answer each of these questions from the notes, in one or two sentences.\n{known}"
            parts.append(("answers", f"{text}\nReply as JSON, in this form: {form}", ("answer",)))
            form = json.dumps([{"number": 1, "wrong": ["..."] * m}])
            text = f"Give {m} wrong answers for each of these questions, whose right one is told. {_ABOUT_WRONG}"
            parts.append(("wrong", f"{text}\n{{known}}\nReply as JSON, in this form: {form}", ("wrong",)))
    found: dict[str, list[Item]] = {clip.id: [{} for _ in range(n)] for clip in clips}
    for stage, text, keys in parts:
        todo = [clip for clip in clips if stage == "questions" or any(found[clip.id])]
        found |= _read(todo, stages, stage, text, keys, found, m)
    made = []
    for clip in clips:
        for number, item in enumerate(found[clip.id]):
            whole = item.keys() >= {"question", "answer", "wrong"}
            stages.decide("made", clip=clip.id, number=number, decision="read" if whole else "unreadable", **item)
            if whole:
                made.append(Made(clip, number, item["question"], item["answer"], tuple(item["wrong"])))
    return made


def _read(
    clips: Sequence[Clip],
    stages: Stages,
    stage: str,
    text: str,
    keys: Sequence[str],
    found: dict[str, list[Item]],
    m: int,
) -> dict[str, list[Item]]:
    """Ask one call of each clip, and again where its reply lacks something, and put what it says to what is known."""
    items = {clip.id: [dict(item) for item in found[clip.id]] for clip in clips}
    todo = list(clips)
    for attempt in range(ATTEMPTS):
        requests = []
        for clip in todo:
            known = "\n".join(
                f"{number}. {item['question']}" + (f" Right answer: {item['answer']}" if "answer" in item else "")
                for number, item in enumerate(found[clip.id], 1)
                if item
            )
            prompt = _TASK.format(notes=clip.text) + text.replace("{known}", known)
            requests.append(Request(f"{clip.id} {stage}", _user(prompt), TOKENS, START))
        if not requests:
            break
        temperature = TEMPERATURE if attempt else 0.0
        replies = stages.ask(stage, requests, seed=attempt, temperature=temperature)
        for clip, reply in zip(todo, replies, strict=True):
            of_first = stage == "questions"
            for number, item in _items(reply.text or "", keys, len(items[clip.id]), m).items():
                if of_first or items[clip.id][number]:
                    items[clip.id][number] = item | items[clip.id][number]
        todo = [
            clip for clip in todo if not all(item.keys() >= set(keys) for item in items[clip.id] if item or of_first)
        ]
    return items


def _items(text: str, keys: Sequence[str], n: int, m: int) -> dict[int, Item]:
    """The items of a reply by number from 0: those that have all of `keys`, each a text (`wrong`: m texts)."""
    listed: list[Any] = []
    for _, _, data in json_in(text):
        listed += data if isinstance(data, list) else [data]
    found: dict[int, Item] = {}
    for place, one in enumerate(one for one in listed if isinstance(one, dict)):
        named = {str(key).strip().casefold(): value for key, value in one.items()}
        number = named.get("number", place + 1)
        number = int(number) if str(number).strip().isdecimal() else place + 1
        if "question" in keys:
            number = place + 1  # the model numbers its own questions as it likes
        item = {key: _value(named.get(key), key, m) for key in keys}
        if 1 <= number <= n and all(item.values()) and number - 1 not in found:
            found[number - 1] = item
    return found


def _value(value: Any, key: str, m: int) -> Any:
    if key != "wrong":
        return " ".join(value.split()) if isinstance(value, str) and value.strip(" .") else None
    texts = (
        [" ".join(one.split()) for one in value if isinstance(one, str) and one.strip(" .")]
        if isinstance(value, list)
        else []
    )
    return texts[:m] if len(texts) >= m else None


def _user(text: str) -> Conversation:
    return [{"role": "user", "content": text}]


def funnel_text(outcome: Outcome) -> str:
    """What each stage left, for a terminal."""
    lines = [f"{count:7,}  {what}" for what, count in outcome.funnel.items()]
    if outcome.baseline is not None:
        lines.append(f"{100 * outcome.baseline:6.1f}%  right without the question (chance is 20%)")
    return "\n".join(lines)
