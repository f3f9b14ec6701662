"""Purpose questions that can be answered without the clip: a model sees the question alone, a judge rates its answer.

                       asked  guessed  95% interval  mean blind  mean truth
    of the data          668    31.4%     27.5-35.2        5.12        7.30
    by template          668    ...

A question is guessed if the judge gives the blind answer at least what it gives the true one, less MARGIN. Beside the
data's purposes stand as many by template for each clip, out of the config `graphs`. All that was said is in the stages
folder: replies.jsonl, verdicts/ and blind.jsonl, one question a line; a check that was killed goes on there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from builder.easg import wording
from builder.easg.questions import candidates
from builder.easg.rows import clip_of
from builder.errors import BuildError
from builder.stages import Request, Stages
from videoqa.benchmarks.easg.prompts import INSTRUCTION, ask_blind
from videoqa.judge import Judge
from videoqa.rating import rate
from videoqa.reply import Verdict
from videoqa.rows import sample
from videoqa.scores import Scored, summarize
from videoqa.store import VerdictStore

Row = Mapping[str, Any]
MARGIN = 0.5  # of the judge's 1 to 10: batches in bfloat16 move the expected score of a small judge by up to 0.3
KINDS = {"data": "of the data", "template": "by template"}
ROOM = 64  # tokens of an answer


@dataclass(frozen=True, slots=True)
class Guess:
    """One question, answered blind."""

    row: Row
    kind: str  # one of KINDS
    answer: str | None  # None: the model gave none
    blind: Verdict | None  # None: there is no answer to rate
    truth: Verdict

    @property
    def guessed(self) -> bool | None:
        """Whether the blind answer is as good as the true one; None where it or its score is missing."""
        if self.blind is None or self.blind.score is None or self.truth.score is None:
            return None
        return self.blind.score >= self.truth.score - MARGIN


def questions(rows: Sequence[Row], graphs: Sequence[Row], limit: int | None = None) -> list[tuple[str, Row]]:
    """(kind, row): the purposes among `rows`, and for each of their clips as many by template; at most `limit` of a
    kind, spread evenly. `graphs` are the rows of that config. Raises BuildError without a purpose or without graphs."""
    purposes = [row for row in rows if row["type"] == "purpose"]
    if not purposes or not graphs:
        raise BuildError("a blind check needs purpose questions and the config graphs")
    of_clip: defaultdict[str, list[Row]] = defaultdict(list)
    for graph in graphs:
        of_clip[graph["clip"]].append(graph)
    count = Counter(row["clip"] for row in purposes)
    context = {row["clip"]: row["context"] for row in purposes}
    templates = [
        {
            "id": f"{clip}:template:{number}",
            "clip": clip,
            "type": "purpose",
            "question": question,
            "answer": answer,
            "context": context[clip],
        }
        for clip, n in count.items()
        if clip in of_clip
        for number, (_, question, answer) in enumerate(wording.purpose(candidates(clip_of(of_clip[clip])), n), 1)
    ]
    return [
        *(("data", row) for row in sample(purposes, limit)),
        *(("template", row) for row in sample(templates, limit)),
    ]


def check(asked: Sequence[tuple[str, Row]], stages: Stages, judge: Judge) -> list[Guess]:
    """Answer each (kind, row) blind and have the answer and the truth judged."""
    requests = [
        Request(row["id"], [{"role": "user", "content": INSTRUCTION + ask_blind(row["question"])}], ROOM)
        for _, row in asked
    ]
    replies = stages.ask("blind", requests, seed=1, temperature=0.0)
    store = VerdictStore(stages.folder / "verdicts", judge.key)
    items: list[tuple[Any, Row, str | None]] = [("truth", row, row["answer"]) for _, row in asked]
    answered = [index for index, reply in enumerate(replies) if reply.text is not None]
    items += [("answer", asked[index][1], replies[index].text) for index in answered]
    verdicts = dict(rate(judge, items, store))
    blind = {index: verdicts[len(asked) + at] for at, index in enumerate(answered)}
    guesses = [
        Guess(row, kind, replies[index].text, blind.get(index), verdicts[index])
        for index, (kind, row) in enumerate(asked)
    ]
    for guess, reply in zip(guesses, replies, strict=True):
        stages.decide(
            "blind",
            id=guess.row["id"],
            question=guess.row["question"],
            answer=guess.row["answer"],
            blind=guess.answer,
            score=guess.blind and guess.blind.score,
            truth=guess.truth.score,
            guessed=guess.guessed,
            replies=[reply.key],
        )
    return guesses


def text(guesses: Sequence[Guess]) -> str:
    """The table for a terminal. What could not be rated is counted and in no share."""
    marks = [
        Scored(one.row["id"], one.row["clip"], one.kind, None if one.guessed is None else float(one.guessed))
        for one in guesses
    ]
    shares = summarize(marks, None, key="blind", types=tuple(KINDS))
    lines = [f"{'purposes':<14}{'asked':>7}{'guessed':>9}{'95% interval':>14}{'mean blind':>12}{'mean truth':>12}"]
    for kind, name in KINDS.items():
        rated = [guess for guess in guesses if guess.kind == kind and guess.guessed is not None]
        asked = sum(guess.kind == kind for guess in guesses)
        if not rated:
            lines.append(f"{name:<14}{asked:>7,}")
            continue
        one = shares.by_type[kind]
        low, high = one.mean_interval or (None, None)
        interval = "-" if low is None or high is None else f"{100 * low:.1f}-{100 * high:.1f}"
        means = [
            sum(score for guess in rated if (score := getattr(guess, which).score) is not None) / len(rated)
            for which in ("blind", "truth")
        ]
        lines.append(f"{name:<14}{asked:>7,}{one.mean or 0:>9.1%}{interval:>14}{means[0]:>12.2f}{means[1]:>12.2f}")
    if missing := missing_of(guesses):
        lines.append(f"without an answer or a score, in no share: {missing:,}; the same command asks them again")
    lines.append(f"guessed: the blind answer's score is at least the true one's, less {MARGIN} of 10")
    return "\n".join(lines)


def missing_of(guesses: Sequence[Guess]) -> int:
    """How many have no answer or no score."""
    return sum(guess.guessed is None for guess in guesses)
