"""Ask for one of several options, by one of three protocols.

generation   the model replies, and reading/choices.py reads the reply
likelihood   nothing is generated: how probable each letter is as what comes next; the most probable one is the answer
yes          each option by itself is put as a question, and the one with the most probable yes is the answer

    way = choice_way("language-only", Wording(instruction, query, query_yes))
    way.protocols["likelihood"](engine, rows, 64, None)  ->  (0, Answer(text="C", probabilities=(...), mass=0.97)), ...

Where the letters (or yes and no) have together less than LEAST_MASS, the model would have said something else, so the
row is asked again by generation. A tie of two options that differ is no answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from videoqa.asking import Answer, Asker, Turns, Way, answer_of, frames_way, text_way, with_frames
from videoqa.choices import LETTERS
from videoqa.engines import Conversation, Engine
from videoqa.rows import Row
from videoqa.videos import Shown, Videos

LEAST_MASS = 0.5
GENERATION, LIKELIHOOD, YES = PROTOCOLS = ("generation", "likelihood", "yes")
REASON_TOKENS = 256  # longest first turn of two


@dataclass(frozen=True, slots=True)
class Wording:
    """The texts of a way of asking. `reason` is what the first of two turns asks; then `query` is the second."""

    instruction: str
    query: Callable[[Row], str]  # question, lettered options, what to answer with
    query_yes: Callable[[Row, str], str]  # question, one option, yes or no
    reason: Callable[[Row], str] | None = None
    letter: str = ""  # what the second of two turns says


@dataclass(frozen=True, slots=True)
class _Pending:
    """A row on its way to an answer: `begun` is the conversation before the turn that is answered with a letter."""

    row: Row
    shown: Shown | None
    begun: Conversation = ()
    reasoning: str | None = None
    spent: tuple[int, int] = (0, 0)  # tokens read and written before the turn that is answered with a letter

    def turn(self, instruction: str, text: str) -> Conversation:
        """The conversation that ends with this text; the frames stand in its first turn."""
        if self.begun:
            return [*self.begun, {"role": "user", "content": text}]
        if self.shown is not None:
            return with_frames(instruction, text, self.shown)
        return [{"role": "user", "content": instruction + text}]


def choice_way(kind: str, wording: Wording, *, frames: bool = False, captions: bool = False) -> Way:
    """A way that asks for one of a row's options."""
    askers = {protocol: _asker(kind, wording, protocol, frames) for protocol in PROTOCOLS}
    plain = (
        frames_way(kind, wording.instruction, wording.query)
        if frames
        else text_way(kind, wording.instruction, wording.query)
    )
    nothing: dict[str, Any] = {"question": "", "context": "", "choices": None}
    texts = (wording.query_yes(nothing, ""), wording.letter)
    return replace(plain, ask=askers[GENERATION], protocols=askers, captions=captions, texts=texts)


def _asker(kind: str, wording: Wording, protocol: str, frames: bool) -> Asker:
    turns = _turns(wording, protocol)
    if frames:
        return frames_way(kind, wording.instruction, wording.query, turns=turns).ask

    def ask(
        engine: Engine, rows: Sequence[Row], max_new_tokens: int, videos: Videos | None = None
    ) -> Iterator[tuple[int, Answer]]:
        return turns(engine, rows, dict.fromkeys(range(len(rows))), max_new_tokens)  # type: ignore[arg-type]

    return ask


def _turns(wording: Wording, protocol: str) -> Turns:
    def turns(
        engine: Engine, rows: Sequence[Row], shown: Mapping[int, Shown], max_new_tokens: int
    ) -> Iterator[tuple[int, Answer]]:
        pending = {index: _Pending(rows[index], one) for index, one in shown.items()}
        if wording.reason is not None:
            pending, failed = _reasoned(engine, pending, wording)
            yield from failed.items()
        if protocol == GENERATION:
            yield from _by_generation(engine, pending, wording, max_new_tokens)
            return
        by_probability = _by_likelihood if protocol == LIKELIHOOD else _by_yes
        again: dict[int, Answer] = {}
        for index, answer in by_probability(engine, pending, wording):
            if answer.mass is not None and answer.mass < LEAST_MASS:
                again[index] = answer
            else:
                yield index, answer
        spent = {i: (answer.prompt_tokens, answer.new_tokens) for i, answer in again.items()}
        asked = {i: replace(pending[i], spent=spent[i]) for i in again}
        for index, answer in _by_generation(engine, asked, wording, max_new_tokens):
            yield index, replace(answer, probabilities=again[index].probabilities, mass=again[index].mass)

    return turns


def _reasoned(
    engine: Engine, pending: Mapping[int, _Pending], wording: Wording
) -> tuple[dict[int, _Pending], dict[int, Answer]]:
    """The rows behind their first turn, in which the model thinks, and the answers of those in which that failed."""
    assert wording.reason is not None
    at = list(pending)
    conversations = [pending[i].turn(wording.instruction, wording.reason(pending[i].row)) for i in at]
    begun: dict[int, _Pending] = {}
    failed: dict[int, Answer] = {}
    for k, reply in engine.generate(conversations, max_new_tokens=REASON_TOKENS):
        one = pending[at[k]]
        if reply.text is None:
            failed[at[k]] = answer_of(reply, conversations[k], one.shown)
            continue
        thoughts = reply.text.strip()
        so_far: Conversation = [*conversations[k], {"role": "assistant", "content": thoughts or "-"}]
        spent = (reply.prompt_tokens, reply.new_tokens)
        begun[at[k]] = replace(one, begun=so_far, reasoning=thoughts, spent=spent)
    return {i: begun[i] for i in at if i in begun}, failed


def _last(wording: Wording, one: _Pending) -> Conversation:
    return one.turn(wording.instruction, wording.letter if one.begun else wording.query(one.row))


def _by_generation(
    engine: Engine, pending: Mapping[int, _Pending], wording: Wording, max_new_tokens: int
) -> Iterator[tuple[int, Answer]]:
    at = list(pending)
    conversations = [_last(wording, pending[i]) for i in at]
    for k, reply in engine.generate(conversations, max_new_tokens=max_new_tokens) if at else ():
        one = pending[at[k]]
        yield at[k], replace(answer_of(reply, conversations[k], one.shown), reasoning=one.reasoning).after(*one.spent)


def _by_likelihood(engine: Engine, pending: Mapping[int, _Pending], wording: Wording) -> Iterator[tuple[int, Answer]]:
    by_count: dict[int, list[int]] = {}
    for index, one in pending.items():
        by_count.setdefault(len(one.row["choices"]), []).append(index)
    for count, at in by_count.items():
        conversations = [_last(wording, pending[i]) for i in at]
        for k, outcome in engine.choice_logprobs(conversations, LETTERS[:count]):
            one = pending[at[k]]
            base = _base(one, conversations[k]).after(outcome.prompt_tokens, 0)
            if outcome.logprobs is None:
                yield at[k], replace(base, error=outcome.error)
                continue
            chances = [math.exp(outcome.logprobs[letter]) for letter in LETTERS[:count]]
            mass = math.fsum(chances)
            shares = tuple(chance / mass for chance in chances) if mass else (1 / count,) * count
            text = _most(shares, one.row["choices"])
            yield at[k], replace(base, text=text, probabilities=shares, mass=min(mass, 1.0))


def _by_yes(engine: Engine, pending: Mapping[int, _Pending], wording: Wording) -> Iterator[tuple[int, Answer]]:
    """`probabilities` are those of yes against no, option by option; `mass` is the least of their sums."""
    each = [(index, option) for index, one in pending.items() for option in range(len(one.row["choices"]))]
    conversations = [
        pending[i].turn(wording.instruction, wording.query_yes(pending[i].row, pending[i].row["choices"][option]))
        for i, option in each
    ]
    answers: dict[int, dict[int, tuple[float, float]]] = {index: {} for index in pending}
    failed: dict[int, str] = {}
    read: dict[int, int] = dict.fromkeys(pending, 0)  # tokens of the prompts of all options
    for k, outcome in engine.choice_logprobs(conversations, ("Yes", "No")) if each else ():
        index, option = each[k]
        read[index] += outcome.prompt_tokens
        if outcome.logprobs is None:
            failed[index] = outcome.error or "no probabilities"
            continue
        yes, no = (math.exp(outcome.logprobs[word]) for word in ("Yes", "No"))
        answers[index][option] = (yes / (yes + no) if yes + no else 0.5, yes + no)
    first = {index: k for k, (index, option) in enumerate(each) if option == 0}
    for index, by_option in answers.items():
        base = _base(pending[index], conversations[first[index]]).after(read[index], 0)
        if index in failed:
            yield index, replace(base, error=failed[index])
            continue
        shares = tuple(by_option[option][0] for option in sorted(by_option))
        mass = min(1.0, *(sum_ for _, sum_ in by_option.values()))
        text = _most(shares, pending[index].row["choices"])
        yield index, replace(base, text=text, probabilities=shares, mass=mass)


def _base(one: _Pending, conversation: Conversation) -> Answer:
    """The answer but for what the model says."""
    from videoqa.engines import Reply

    return replace(answer_of(Reply(None), conversation, one.shown), reasoning=one.reasoning).after(*one.spent)


def _most(shares: Sequence[float], choices: Sequence[str]) -> str:
    """The letter of the most probable option; "" where two that differ are equally so."""
    best = [index for index, share in enumerate(shares) if share == max(shares)]
    return LETTERS[best[0]] if len({choices[index] for index in best}) == 1 else ""
