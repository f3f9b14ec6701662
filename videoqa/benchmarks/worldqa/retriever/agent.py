"""From a question to its answer, step by step, each kept (videoqa/steps.py):

    image-text, speech-text, audio-text   what experts report on the video (experts.py), once for all its questions
    draft                                 a first answer of the reports alone
    query, search, summary                what to look up, what is found, what of it helps; again, at most MOST_SEARCHES
                                          times, until the model says that it is enough
    reason, answer                        reports, knowledge and first answer put together: thought over, then answered

An expert that is left out has no place in any prompt; without world knowledge draft, query, search and summary fall
away. Questions go through a step together, so that an engine has large batches.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from videoqa.asking import Agent, Answer, Asker, Way, answer_of
from videoqa.benchmarks.worldqa.retriever import prompts
from videoqa.benchmarks.worldqa.retriever.experts import EXPERTS, check_expert, model_of, reports
from videoqa.engines import Conversation, Engine, Reply
from videoqa.errors import UserError
from videoqa.reading.thinking import without_thinking
from videoqa.rows import Row
from videoqa.search.passages import Search, SearchError
from videoqa.search.spec import open_search
from videoqa.steps import Step, Steps, key_of
from videoqa.videos import Videos

KNOWLEDGE = "world-knowledge"
MODELS: Mapping[str, str] = {
    "image-text": "a vision engine",
    "speech-text": "a Whisper folder or id, or faster-whisper:FOLDER",
    "audio-text": "a sound classifier's folder or id, or yamnet:FOLDER",
    KNOWLEDGE: "index:FILE or web:ADDRESS",
}
MOST_SEARCHES = 3  # for one question
PASSAGES = 3  # of a search
TOGETHER = 64  # questions


@dataclass(frozen=True, slots=True)
class Asking:
    """The texts of a way: the question as it is answered, the question as it is looked up (without options, so that
    all rotations of a question share what was found), and what asks for the answer in the last turn."""

    question: Callable[[Row], str]
    plain: Callable[[Row], str]
    last: str


@dataclass(slots=True)
class _State:
    """A question on its way."""

    row: Row
    evidence: str  # the section of the experts' reports
    question: str
    plain: str  # the question without options
    draft: str = ""
    notes: list[tuple[str, str]] = field(default_factory=list)  # queries, and what of the passages helps


def agent_way(kind: str, instruction: str, wording: Asking) -> Way:
    """A way of asking that lets experts report before the model answers."""

    def alone(engine: Engine, rows: Sequence[Row], most: int, videos: Videos | None) -> Iterator[tuple[int, Answer]]:
        raise UserError("this prompt works with experts: run it with `easg-bench run` or `answer` and --expert")

    opened = partial(_opened, instruction, wording)
    texts = (prompts.REASON, wording.last, prompts.DESCRIBE)
    return Way(
        kind, alone, instruction, wording.question, frames=True, texts=texts, agent=Agent(MODELS, opened, _named)
    )


def _named(name: str, spec: str) -> str:
    """An expert's model as results name it. Raises UserError for a spec that cannot be, or that holds a key."""
    if name == KNOWLEDGE:
        search = open_search(spec)
        return f"{search.name} ({', '.join(f'{key} {value}' for key, value in search.settings.items())})"
    check_expert(name, spec)
    return model_of(spec)


def _opened(
    instruction: str, wording: Asking, experts: Mapping[str, str], folder: Path, others: Sequence[Path], device: str
) -> Asker:
    """The asker with these experts (name -> model), which keeps its steps in a run folder. What the runs `others` have
    done is not done again."""
    search = open_search(experts[KNOWLEDGE]) if KNOWLEDGE in experts else None
    steps = Steps(folder, others)

    def ask(
        engine: Engine, rows: Sequence[Row], max_new_tokens: int, videos: Videos | None
    ) -> Iterator[tuple[int, Answer]]:
        assert videos is not None  # frames=True
        specs = {name: experts[name] for name in EXPERTS if name in experts}
        heard = reports(rows, videos, specs, steps, device) if rows else None
        states: dict[int, _State] = {}
        for index, row in enumerate(rows):
            assert heard is not None
            if (fault := heard.failed.get(row["clip"])) is not None:
                yield index, Answer(None, fault)
            else:
                evidence = prompts.reports(heard.of_clips[row["clip"]])
                states[index] = _State(row, evidence, wording.question(row), wording.plain(row))
        run = _Run(engine, steps, instruction, wording.last, search)
        at = list(states)
        for begin in range(0, len(at), TOGETHER):
            yield from run.answers({i: states[i] for i in at[begin : begin + TOGETHER]}, max_new_tokens)

    return ask


@dataclass(frozen=True, slots=True)
class _Run:
    engine: Engine
    steps: Steps
    instruction: str
    last: str
    search: Search | None

    def answers(self, states: Mapping[int, _State], max_new_tokens: int) -> Iterator[tuple[int, Answer]]:
        """The answers to some questions."""
        if self.search is not None:
            failed = yield from self._looked_up(states)
            states = {i: state for i, state in states.items() if i not in failed}
        reasoned = {
            i: self._turn(
                f"{state.evidence}{prompts.knowledge(state.notes)}{prompts.first(state.draft)}{state.question}\n\n"
                f"{prompts.REASON}"
            )
            for i, state in states.items()
        }
        reasons: dict[int, str] = {}
        for i, reply in self._replies("reason", 0, states, reasoned, prompts.REASON_TOKENS):
            if reply.text is None:
                yield i, answer_of(reply, reasoned[i])
            else:
                reasons[i] = reply.text
        asked: dict[int, Conversation] = {
            i: [
                *reasoned[i],
                {"role": "assistant", "content": reason or "-"},
                {"role": "user", "content": self.last},
            ]
            for i, reason in reasons.items()
        }
        for i, reply in self._replies("answer", 0, states, asked, max_new_tokens):
            yield i, replace(answer_of(reply, asked[i]), reasoning=reasons[i])

    def _looked_up(self, states: Mapping[int, _State]) -> Generator[tuple[int, Answer], None, set[int]]:
        """Fill in drafts and notes; gives the answers of questions that failed and returns which these are."""
        assert self.search is not None
        failed: set[int] = set()
        drafts = {i: self._turn(prompts.draft(s.evidence, s.plain)) for i, s in states.items()}
        for i, reply in self._replies("draft", 0, states, drafts, prompts.DRAFT_TOKENS):
            if reply.text is None:
                failed.add(i)
                yield i, answer_of(reply, drafts[i])
            else:
                states[i].draft = reply.text
        searching = [i for i in states if i not in failed]
        for n in range(MOST_SEARCHES):
            queries, faults = self._queries({i: states[i] for i in searching}, n)
            found: dict[int, str] = {}
            for i, query in queries.items():
                try:
                    found[i] = self._searched(states[i], n, query)
                except SearchError as error:
                    faults[i] = Answer(None, f"{KNOWLEDGE}: {error}")
            faults |= self._summed_up({i: states[i] for i in found}, n, queries, found)
            failed |= faults.keys()
            yield from faults.items()
            searching = [i for i in queries if i not in faults]
        return failed

    def _queries(self, states: Mapping[int, _State], n: int) -> tuple[dict[int, str], dict[int, Answer]]:
        """What the questions that go on look up next, and those that failed."""
        queries: dict[int, str] = {}
        faults: dict[int, Answer] = {}
        asked = {i: self._turn(prompts.next_query(s.evidence, s.plain, s.draft, s.notes)) for i, s in states.items()}
        for i, reply in self._replies("query", n, states, asked, prompts.QUERY_TOKENS):
            state = states[i]
            if reply.text is None:
                faults[i] = answer_of(reply, asked[i])
                continue
            query = prompts.query_in(reply.text)
            if query is None and n == 0:  # the reply says neither: the question itself is looked up, once
                query = " ".join(state.row["question"].split())[: prompts.MOST_QUERY]
            before = {" ".join(one.casefold().split()) for one, _ in state.notes}
            if query and " ".join(query.casefold().split()) not in before:
                queries[i] = query
        return {i: queries[i] for i in states if i in queries}, faults

    def _searched(self, state: _State, n: int, query: str) -> str:
        """The passages that a search gives, as one text. Raises SearchError."""
        assert self.search is not None
        of = state.row["clip"], state.row["id"], "search", n
        given = {"query": query, "most": PASSAGES, **self.search.settings}
        if (known := self.steps.done(*of, self.search.name, given)) is not None:
            return str(known["output"])
        began = time.monotonic()
        fault, found = None, None
        try:
            found = prompts.shown(self.search.passages(query, PASSAGES))
        except SearchError as error:
            fault = str(error)
            raise
        finally:
            if fault is not None or found is not None:
                seconds = round(time.monotonic() - began, 3)
                self.steps.keep(Step(*of, self.search.name, given, found, seconds, fault))
        return found

    def _summed_up(
        self, states: Mapping[int, _State], n: int, queries: Mapping[int, str], found: Mapping[int, str]
    ) -> dict[int, Answer]:
        """Add a note of what each search gave; the questions that failed."""
        faults: dict[int, Answer] = {}
        asked = {i: self._turn(prompts.summary(s.plain, queries[i], found[i])) for i, s in states.items() if found[i]}
        for i in states:
            if not found[i]:
                states[i].notes.append((queries[i], "nothing was found"))
        for i, reply in self._replies("summary", n, states, asked, prompts.SUMMARY_TOKENS):
            if reply.text is None:
                faults[i] = answer_of(reply, asked[i])
            else:
                note = "nothing that helps" if prompts.is_nothing(reply.text) else reply.text
                states[i].notes.append((queries[i], note))
        return faults

    def _turn(self, text: str) -> Conversation:
        return [{"role": "user", "content": self.instruction + text}]

    def _replies(
        self, step: str, n: int, states: Mapping[int, _State], asked: Mapping[int, Conversation], most: int
    ) -> Iterator[tuple[int, Reply]]:
        """The replies to these conversations without the model's thinking, each kept before it comes out here; what was
        asked before is not asked again. A reply that is cut inside its thinking says nothing."""
        model, settings = self.engine.name, self.engine.settings
        inputs = {i: {"messages": list(c), "max_new_tokens": most, "settings": settings} for i, c in asked.items()}
        waiting: dict[str, list[int]] = {}  # questions that ask the same, as rotations do, by what they ask
        for i in asked:
            if (known := self._done(states[i].row, step, n, inputs[i])) is not None:
                yield i, known
            else:
                waiting.setdefault(key_of(step, model, inputs[i]), []).append(i)
        todo = list(waiting.values())
        began = time.monotonic()
        for k, reply in self.engine.generate([asked[i[0]] for i in todo], max_new_tokens=most) if todo else ():
            first, *others = todo[k]
            now = time.monotonic()
            seconds, began = round(now - began, 3), now
            text = None if reply.text is None else (without_thinking(reply.text) or "").strip()
            of = states[first].row["clip"], states[first].row["id"], step, n, model, inputs[first]
            self.steps.keep(Step(*of, text, seconds, reply.error, reply.finished, reply.refusal))
            yield first, replace(reply, text=text)
            for i in others:
                yield i, self._done(states[i].row, step, n, inputs[i]) or replace(reply, text=text)

    def _done(self, row: Row, step: str, n: int, given: Mapping[str, Any]) -> Reply | None:
        """The reply that was kept for this step."""
        line = self.steps.done(row["clip"], row["id"], step, n, self.engine.name, given)
        return None if line is None else Reply(line["output"], finished=line["finished"], refusal=line["refusal"])
