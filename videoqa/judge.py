"""The judge: a rubric, the prompt that it makes, the reader of the reply, and `rate()`.

What the judge sees for one row is the five fields of the paper (section 4): context [C], question [Q], ground truth
[GT], answer [A], and the rule [R]. Its reply begins with a line that holds the score:

    Score: 7
    The cutter is named, the table is not.

Modes, in falling order of cost: `paper` (the whole reply, sampled), `score` (generation ends after the score line: the
same score without its explanation), `dist` (how probable each score is; the score is their mean). `dist` is over whole
scores where the engine sees what follows a number: "80" is not 8, and "8.5" is 8.5 where the rubric allows it.
A reply that cannot be read is no number: its Verdict has score None and says why.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from videoqa.characters import round_brackets, without_unseen
from videoqa.engines import ChoiceLogprobs, Conversation, Engine, Reply
from videoqa.engines.choices import tenths
from videoqa.errors import UserError
from videoqa.reply import READER_VERSION, Verdict, begins_with_score, read_reply, without_thinking
from videoqa.rubric import FIELDS, Rubric, Sampling
from videoqa.scorer import Item

Mode = Literal["paper", "score", "dist"]
# The allowed scores must hold at least half of the probability, or the distribution is of something else: the row is
# then asked again as text. Judges behind "Score: " give 0.97 and more (SmolLM2-135M 0.97, Qwen2.5-1.5B 0.99), refusals
# and replies that begin otherwise below 0.2; on whole scores alone SmolLM2-135M 0.69, for it goes on to "15" and "85".
MIN_MASS = 0.5
SCORE_LINE_TOKENS = 16  # "**Overall score:** 8.5 out of 10" and some; a reply without a score in them is let finish
MODES: tuple[Mode, ...] = ("paper", "score", "dist")
_FIELD = re.compile(r"\{(" + "|".join(FIELDS) + r")\}")
_SCORE_LINE = re.compile(r"^(\W*(?:score|rating|grade)\s*[:=])\W*\d+(?:\.\d+)?", re.I)
QUOTE = "The student writes: "


def harmless(text: str, one_line: bool) -> str:
    """The text with nothing in it that could open or close a section of the prompt; every word stays readable.

    Square brackets of all kinds become round ones and invisible characters go, so that "[System]" is "(System)"; with
    `one_line`, line ends become blanks and straight double quotes single ones, so that a quoted field stays one.
    """
    text = round_brackets(without_unseen(text))
    return " ".join(text.replace('"', "'").split()) if one_line else text


def quoted(text: str, mark: str = QUOTE) -> str:
    """The answer's lines, each behind the mark, harmless, a forged score line without its number. A small judge
    believes a line that stands for itself ("The answer above is correct"), and hardly one that is said to be the
    student's."""
    lines = [_SCORE_LINE.sub(r"\1 (number)", " ".join(line.split())) for line in harmless(text, False).splitlines()]
    return "\n".join(f"{mark}{line}" for line in lines if line) or f"{mark}(no answer)"


def prompt(rubric: Rubric, item: Item, safe: bool = True) -> Conversation:
    """The judge's conversation. The marks are filled in one pass: braces in the data or the rule mean nothing."""
    fields = {"context": item.context, "question": item.question, "answer": item.answer, "prediction": item.prediction}
    # a lone surrogate is no text that a tokenizer or a server takes
    texts = {k: (v or "").encode("utf-8", "replace").decode() for k, v in fields.items()}
    filled = {k: harmless(v, rubric.one_line) if safe else v for k, v in texts.items()}
    if safe and rubric.one_line:
        filled["prediction"] = quoted(texts["prediction"])
    filled["rule"] = rubric.rule
    user = _FIELD.sub(lambda m: filled[m[1]], rubric.layout)
    return [{"role": "system", "content": rubric.system}, {"role": "user", "content": user}]


@dataclass(frozen=True, slots=True)
class Judge:
    """An engine that rates answers by a rubric. What is set here is what makes two scores comparable: `key` names it.

    `sampling`: "greedy" or "paper". In mode `dist`, "paper" applies the paper's temperature and top_p to the
    distribution: the exact mean of its sampled score, given a reply that begins "Score: n". `safe=False` leaves section
    marks in the texts as they are and exists to show what the marks do (`judge-check`).
    """

    engine: Engine
    rubric: Rubric
    mode: Mode | None = None  # None: dist where the engine gives probabilities, else score
    sampling: Literal["greedy", "paper"] = "greedy"
    reading: str = "ours"  # name of `reader`
    seed: int | None = None  # None: the rubric's
    safe: bool = True
    reader: Callable[[str], Verdict] | None = None  # another way of reading a reply; None: read_reply

    def __post_init__(self) -> None:
        if self.mode is None:
            object.__setattr__(self, "mode", "dist" if self.engine.can_choose else "score")
        for name, allowed in (
            ("mode", MODES),
            ("sampling", ("greedy", "paper")),
        ):
            if getattr(self, name) not in allowed:
                raise UserError(f"{name} {getattr(self, name)!r}: allowed are {', '.join(allowed)}")
        if self.mode == "dist" and not self.engine.can_choose:
            raise UserError(f"{self.engine.name} gives no probabilities: mode dist needs them, use mode score")
        if self.mode == "paper":
            object.__setattr__(self, "sampling", "paper")
        if (self.reading == "ours") != (self.reader is None):
            raise UserError(f"reading {self.reading!r} and reader {self.reader!r} do not belong together")
        if self.reader is not None and self.mode != "paper":
            raise UserError(f"the reading {self.reading!r} needs the whole reply: use it with mode paper")

    @property
    def key(self) -> str:
        """Names everything that moves a score: "smollm2 (dtype float32, engine transformers,
        revision 5f4d9320d1d6), dist greedy whole mass 0.5, easg-bench-1a2b3c4d"."""
        how: list[str] = [str(self.mode), self.sampling]
        if self.sampling == "paper" and self.mode != "dist":
            how.append(f"seed {self._sampling.seed}")
        if self.reader is not None:
            how.append(f"{self.reading} reading")
        if not self.safe:
            how.append("marks kept")
        # what decides how replies become numbers
        mass = f"{'whole ' if self.engine.can_follow else ''}mass {MIN_MASS:g}"
        how.append(mass if self.mode == "dist" else f"reader {READER_VERSION}")
        settings = ", ".join(f"{name} {value}" for name, value in sorted(self.engine.settings.items()))
        return f"{self.engine.name} ({settings}), {' '.join(how)}, {self.rubric.name}-{self.rubric.fingerprint}"

    @property
    def needs_truth(self) -> bool:
        """A judge rates the ground truth too: its score is shown or divided by."""
        return True

    def describe(self) -> dict[str, Any]:
        """What a result says of the judge, but for what the verdicts tell."""
        return {
            "key": self.key,
            "model": self.engine.name,
            "settings": self.engine.settings,
            "mode": self.mode,
            "sampling": self.sampling,
            "reading": self.reading,
            "rubric": f"{self.rubric.name}-{self.rubric.fingerprint}",
            "values": list(self.rubric.values),
        }

    @property
    def _sampling(self) -> Sampling:
        sampling = self.rubric.sampling
        return sampling if self.seed is None else replace(sampling, seed=self.seed)

    @property
    def _start(self) -> str:
        """What the reply is made to begin with. Of an engine that cannot do that, `dist` reads what comes behind it."""
        if self.mode == "dist":
            return self.rubric.start
        return self.rubric.start if self.engine.can_force and not self.rubric.start_in_dist_only else ""

    def read(self, text: str) -> Verdict:
        """The verdict in a reply, by this judge's way of reading."""
        return read_reply(text, self.rubric) if self.reader is None else self.reader(text)

    @property
    def empty(self) -> Verdict:
        """What an empty answer gets without asking: the lowest score, counted apart."""
        return Verdict(float(self.rubric.values[0]), "empty_prediction")

    def prompt(self, item: Item) -> Conversation | None:
        """The prompt for an item; None where the answer is empty, also behind a thinking block."""
        answer = (without_thinking(item.prediction or "") or "").strip()
        seen = without_unseen(answer).strip()
        return prompt(self.rubric, replace(item, prediction=answer), self.safe) if seen else None

    def rate(self, items: Sequence[Item]) -> Iterator[tuple[int, Verdict]]:
        """Rate each item; verdicts come as they are known, with the item's index."""
        prompts = [self.prompt(item) for item in items]
        yield from ((index, self.empty) for index, p in enumerate(prompts) if p is None)
        ask = [index for index, p in enumerate(prompts) if p is not None]
        yield from ((ask[k], v) for k, v in self.rate_prompts([p for p in prompts if p is not None]))

    def rate_prompts(self, conversations: Sequence[Conversation]) -> Iterator[tuple[int, Verdict]]:
        """As `rate`, for prompts that `prompt` made."""
        if self.mode == "dist":
            yield from self._distributions(conversations)
            return
        sampling = self._sampling
        how: dict[str, Any] = {"start": self._start, "seed": sampling.seed}
        if self.sampling == "paper":
            how |= {"temperature": sampling.temperature, "top_p": sampling.top_p}
        short = self.mode == "score"
        limits: dict[str, Any] = {"max_new_tokens": SCORE_LINE_TOKENS, "stop": ("\n",)} if short else {}
        unsaid = []  # rows whose first line holds no score: it may follow thinking, a heading, a preamble
        for index, reply in self.engine.generate(
            conversations, **{"max_new_tokens": sampling.max_new_tokens, **limits, **how}
        ):
            verdict = self._read(reply)
            if short and self._goes_on(reply, verdict):
                unsaid.append(index)
            else:
                yield index, verdict
        again = self.engine.generate([conversations[i] for i in unsaid], max_new_tokens=sampling.max_new_tokens, **how)
        yield from ((unsaid[k], self._read(reply)) for k, reply in again)

    def _goes_on(self, reply: Reply, verdict: Verdict) -> bool:
        """Whether a reply that ended with its first line, or within it, has to be let finish for its score."""
        if reply.text is None or (reply.finished and not reply.text.strip()):
            return False
        if reply.finished or verdict.status == "truncated":
            return verdict.status in ("unreadable", "truncated")
        return not begins_with_score(reply.text, self.rubric)  # "At first a 7, but" is not over

    def _read(self, reply: Reply) -> Verdict:
        if reply.text is None:
            return Verdict(None, "judge_error", raw=reply.error or "no reply")
        verdict = self.read(reply.text)
        if reply.finished or self.reader is not None:
            return verdict
        if verdict.status == "unreadable" or reply.text[-1:].isdigit():  # "1" may have been about to become "10"
            return Verdict(None, "truncated", raw=reply.text)
        return verdict

    def _distributions(self, conversations: Sequence[Conversation]) -> Iterator[tuple[int, Verdict]]:
        names = {f"{value:g}": float(value) for value in self.rubric.values}
        if self.rubric.between and self.engine.can_follow:
            names = tenths(self.rubric.values)
        how: dict[str, Any] = {"start": self._start}
        if self.sampling == "paper":
            how |= {"temperature": self._sampling.temperature, "top_p": self._sampling.top_p}
        doubtful: dict[int, float] = {}  # rows whose allowed scores hold too little of the probability, and how much
        for index, answer in self.engine.choice_logprobs(conversations, list(names), **how):
            verdict = _expected(answer, names, self.rubric.values)
            if verdict.mass is not None and verdict.mass < MIN_MASS:
                doubtful[index] = verdict.mass
            else:
                yield index, verdict
        again = list(doubtful)
        for k, verdict in replace(self, mode="score").rate_prompts([conversations[index] for index in again]):
            yield again[k], replace(verdict, mass=doubtful[again[k]])

    def explain(self, items: Sequence[Item], verdicts: Sequence[Verdict]) -> Iterator[tuple[int, str]]:
        """The judge's reasons for scores that it gave already, greedy: it goes on behind its own score line. A row
        whose call fails is left out. Needs an engine that can force a reply's start."""
        if not self.engine.can_force:
            raise UserError(f"{self.engine.name} cannot go on behind a score line: explanations need mode paper")
        by_start: dict[str, list[int]] = {}
        for index, verdict in enumerate(verdicts):
            if verdict.status == "ok" and verdict.score is not None:
                score = verdict.score if verdict.most_likely is None else verdict.most_likely
                by_start.setdefault(f"{self.rubric.start}{score:g}\n", []).append(index)
        for start, rows in by_start.items():
            asked = [(i, p) for i in rows if (p := self.prompt(items[i])) is not None]
            for k, reply in self.engine.generate([p for _, p in asked], max_new_tokens=256, start=start):
                if reply.text is not None:
                    yield asked[k][0], reply.text.removeprefix(start).strip()


def _expected(answer: ChoiceLogprobs, names: dict[str, float], values: Sequence[float]) -> Verdict:
    """The verdict of a distribution: its mean over the allowed scores, rounded to 1e-6 so that a float's last bits,
    which depend on the batch, do not show. What cannot be a distribution is an error of the judge. `names` are the
    scores as the judge may write them; one between two `values` counts for both of them, more for the nearer one."""
    if answer.logprobs is None:
        return Verdict(None, "judge_error", raw=answer.error or "no probabilities")
    logprobs = {name: answer.logprobs[name] for name in names}
    if not all(value <= 1e-6 for value in logprobs.values()):  # NaN is not, either
        return Verdict(None, "judge_error", raw=f"these are no log-probabilities: {logprobs}"[:200])
    chances = {name: math.exp(value) for name, value in logprobs.items()}
    mass = sum(chances.values())
    if mass > 1.01:
        return Verdict(None, "judge_error", raw=f"the probabilities of the scores add up to {mass:.2f}")
    if mass <= 0:
        return Verdict(None, "unreadable", raw="no allowed score has a probability above 0", mass=0.0)
    written: dict[float, float] = {}  # "8" and "8.0" are one score
    for name, chance in chances.items():
        written[names[name]] = written.get(names[name], 0.0) + chance / mass
    shares = [0.0] * len(values)
    for score, chance in written.items():
        above = next(at for at, value in enumerate(values) if value >= score)
        nearness = 1.0 if values[above] == score else (score - values[above - 1]) / (values[above] - values[above - 1])
        shares[above] += nearness * chance
        if nearness < 1:
            shares[above - 1] += (1 - nearness) * chance
    return Verdict(
        score=round(sum(score * chance for score, chance in written.items()), 6),
        status="ok",
        most_likely=max(written, key=lambda score: written[score]),
        mass=round(mass, 6),
        probabilities=tuple(round(share, 6) for share in shares),
    )
