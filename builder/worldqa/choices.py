"""Multiple choice from open questions: wrong options by an engine, changed until blind models fail.

A round has five steps; a question that does not get through goes into the next one, and after the last it is listed and
left out:

    write     wrong options about as long as the right one, as many as are still wanted
    rules     builder/options.py: none twice, none empty, none equal to the right one, no length that gives it away
    grade     a judge rates each wrong option by the rubric of the open questions, as if it were an answer: one above
              0.3 has key points of the right answer and contradicts none, so it may be right in other words; it is
              refused, as is one whose grade cannot be read, and asked for anew with the reason
    blind     each blind model sees question and options in all their rotations, and nothing of the video
    change    where one finds the right option, the wrong ones are written anew, but for those that took a model in:
              that it chose in two or more rotations

A model finds the right option if it chooses it in more than half of the rotations: neither a letter that it always says
nor one lucky guess is that. One whose replies can be read in half of the rotations or fewer says nothing either way, so
the question does not pass.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from builder.options import LengthBias, chosen, length_bias, option_faults
from builder.replies import json_in
from builder.stages import Request, Stages
from videoqa.choices import LETTERS, lettered, shifts, shuffled
from videoqa.judge import Judge
from videoqa.reading.choices import is_right
from videoqa.rows import Row
from videoqa.scorer import Item
from videoqa.store import VerdictStore, rate_once

OPTIONS = 4  # of a question, the right one among them
ROUNDS = 5
TEMPERATURE = 0.7  # of the later rounds; the first is greedy
TOKENS = 500  # longest reply that writes
SEED = 0  # of the order of the options
MOST = 0.3  # highest grade of a wrong option: it may share a key point if it contradicts another
DECISIONS = ("rounds",)
PASSED, NEVER = "blind models fail", "never failed"

_TASK = (
    "Here is a question about a video with its correct answer.\n\n{about}Question: {question}\n"
    "Correct answer: {answer}\n{known}\n"
    "Write {n} wrong answers to this question. Each has to sound as likely as the correct one to somebody who has not "
    "watched the video, has to be clearly wrong to somebody who has, and has to be about as long as the correct answer "
    "({words} words). They differ from each other in what they say.{hint}\n"
    "Reply as JSON, in this form: {form}"
)
_BLIND = (
    "Here is a question about a video that you cannot watch. Choose the answer that is most likely right.\n\n"
    "Question: {question}\n{options}\nReply with the letter of one answer alone."
)


@dataclass(slots=True)
class Draft:
    """One question on its way through the rounds."""

    row: Row
    wrong: list[str] = field(default_factory=list)
    keep: list[str] = field(default_factory=list)  # wrong options that took a blind model in
    rounds: int = 0
    state: str = ""  # PASSED, or what was wrong in the last round
    hint: str = ""
    failed: bool = False  # a call of its last round failed
    refused: list[dict[str, Any]] = field(default_factory=list)  # by the judge: round, option, grade (None: unread)

    @property
    def id(self) -> str:
        """That of its question."""
        return str(self.row["id"])

    @property
    def passed(self) -> bool:
        """Whether it is done."""
        return self.state == PASSED

    @property
    def arranged(self) -> dict[str, Any]:
        """The question as a row with its options in their order."""
        one = shuffled([self.row["answer"], *self.wrong], 0, SEED, self.id)
        return {"id": self.id, "question": self.row["question"], "choices": list(one.choices), "gold": one.gold}


def make(
    rows: Sequence[Row],
    writing: Stages,
    answering: Sequence[Stages],
    judge: Judge,
    graded: VerdictStore,
    *,
    options: int = OPTIONS,
    rounds: int = ROUNDS,
) -> list[Draft]:
    """Options for each question, in its order. `answering` are the blind models; `graded` keeps what the judge said."""
    drafts = [Draft(row) for row in rows]
    for number in range(1, rounds + 1):
        open_ = [draft for draft in drafts if not draft.passed]
        _write(open_, writing, options - 1, number)
        _grade([draft for draft in open_ if not draft.state], judge, graded, number)
        _blind([draft for draft in open_ if not draft.state], answering)
        for draft in open_:
            draft.rounds = number
            writing.decide("rounds", id=draft.id, round=number, wrong=draft.wrong, decision=draft.state)
    return drafts


def _write(drafts: Sequence[Draft], stages: Stages, count: int, number: int) -> None:
    """Fill up the wrong options of the drafts; `state` is then "", or what is wrong with them."""
    requests = []
    for draft in drafts:
        n = count - len(draft.keep)
        known = [f"Wrong answers that are there already: {json.dumps(draft.keep)}"] if draft.keep else []
        told = [text.strip() for text in (draft.row.get("object_description"), draft.row.get("context")) if text]
        text = _TASK.format(
            about="What is told of the video:\n" + "\n".join(dict.fromkeys(told)) + "\n\n" if told else "",
            question=draft.row["question"],
            answer=draft.row["answer"],
            known="\n".join(known),
            n=n,
            words=len(draft.row["answer"].split()),
            hint=draft.hint,
            form=json.dumps({"wrong": ["..."] * n}),
        )
        requests.append(
            Request(f"{draft.id} round {number}", [{"role": "user", "content": text}], TOKENS, '{"wrong": ["')
        )
    if not requests:
        return
    replies = stages.ask("write", requests, seed=number, temperature=TEMPERATURE if number > 1 else 0.0)
    for draft, reply in zip(drafts, replies, strict=True):
        fresh = read_wrong(reply.text or "", [draft.row["answer"], *draft.keep])
        draft.failed = reply.text is None
        draft.wrong = [*draft.keep, *fresh][:count]
        faults = option_faults(draft.row["answer"], draft.wrong, count)
        draft.state = "the call failed" if draft.failed else "; ".join(faults)
        if draft.state:
            draft.keep = []
            draft.hint = _hint(draft)


def _hint(draft: Draft) -> str:
    longest = max(map(len, draft.wrong), default=0)
    if "longest" in draft.state:
        return " The last ones were too short: say more in each."
    if "shortest" in draft.state:
        return f" The last ones were too long ({longest} characters): be brief."
    return ""


def read_wrong(text: str, known: Sequence[str]) -> list[str]:
    """The wrong options of a reply, without those that are known: the texts of "wrong", or of a list alone."""
    found: dict[str, str] = {}
    gone = {one.casefold().strip(" .") for one in known} | {""}
    for _, _, data in json_in(text):
        listed = (
            next((v for k, v in data.items() if str(k).strip().casefold() == "wrong"), None)
            if isinstance(data, dict)
            else data
        )
        for one in listed if isinstance(listed, list) else []:
            if isinstance(one, str) and (plain := " ".join(one.split()).casefold().strip(" .")) not in gone:
                found.setdefault(plain, " ".join(one.split()))
    return list(found.values())


def _grade(drafts: Sequence[Draft], judge: Judge, store: VerdictStore, number: int) -> None:
    """Have the judge rate the wrong options; the `state` of a draft with one that it refuses says so, and the others of
    that draft are kept."""
    asked = [(draft, option) for draft in drafts for option in draft.wrong]
    verdicts = dict(
        rate_once(judge, [Item(draft.row["question"], draft.row["answer"], option) for draft, option in asked], store)
    )
    for draft in drafts:
        mine = {option: verdicts[n] for n, (of, option) in enumerate(asked) if of is draft}
        grades = {option: verdict.score if verdict.status == "ok" else None for option, verdict in mine.items()}
        draft.failed |= any(verdict.status == "judge_error" for verdict in mine.values())
        if bad := {option: grade for option, grade in grades.items() if grade is None or grade > MOST}:
            draft.refused += [{"round": number, "option": option, "grade": grade} for option, grade in bad.items()]
            draft.keep = [option for option in draft.wrong if option not in bad]
            unread = sum(grade is None for grade in bad.values())
            without = f" ({unread} without a grade)" if unread else ""
            draft.state = f"{judge.engine.name} refuses {len(bad)} of {len(grades)} wrong answers{without}"
            draft.hint = f" These were refused, for they may be right too: {json.dumps(list(bad))}."


def _blind(drafts: Sequence[Draft], answering: Sequence[Stages]) -> None:
    """Ask the blind models; a draft passes where each of them is read and none finds the right option."""
    taken: dict[str, Counter[str]] = {draft.id: Counter() for draft in drafts}
    reasons: dict[str, list[str]] = {draft.id: [] for draft in drafts}
    for stages in answering:
        rows = [
            {
                "id": f"{draft.id} by {by}",
                "question": draft.row["question"],
                "choices": list(one.choices),
                "gold": one.gold,
            }
            for draft in drafts
            for by, one in enumerate(shifts(draft.arranged["choices"], draft.arranged["gold"]))
        ]
        replies = iter(zip(rows, chosen(rows, stages, "blind", _query), strict=True))
        for draft in drafts:
            mine = [next(replies) for _ in range(len(draft.wrong) + 1)]
            read = [(row, choice) for row, choice in mine if choice.index is not None]
            right = sum(is_right(choice, row["gold"], row["choices"]) for row, choice in mine)
            times = Counter(row["choices"][choice.index] for row, choice in read)
            taken[draft.id].update({option: count for option, count in times.items() if count > 1})
            if 2 * right > len(mine):
                reasons[draft.id].append(f"{stages.engine.name} finds it in {right} of {len(mine)} rotations")
            elif 2 * len(read) <= len(mine):
                reasons[draft.id].append(f"{stages.engine.name} is read in {len(read)} of {len(mine)} rotations only")
    for draft in drafts:
        draft.state = "; ".join(reasons[draft.id]) or PASSED
        if not draft.passed:
            good = sorted((one for one in draft.wrong if taken[draft.id][one]), key=lambda one: -taken[draft.id][one])
            draft.keep = good[: len(draft.wrong) - 1]  # one at least is written anew
            draft.hint = " Those so far were too easy to tell from the correct answer."


def _query(row: Mapping[str, Any]) -> str:
    return _BLIND.format(question=row["question"], options=lettered(row["choices"]))


# -- the public form --------------------------------------------------------------------------------------------------


def rotations(draft: Draft) -> Iterator[dict[str, Any]]:
    """The rows of a question in the form of the public copy's MC: one for each rotation, options with their letters."""
    row = draft.row
    for one in shifts(draft.arranged["choices"], draft.arranged["gold"]):
        options = [f"{letter}. {text}" for letter, text in zip(LETTERS, one.choices, strict=False)]
        assert one.gold is not None
        yield {
            **{"question_idx": row["id"], "question": row["question"], "answer": options[one.gold]},
            **{"video_idx": row["video"], "object_description": row["object_description"], "option": options},
        }


def bias(drafts: Sequence[Draft]) -> LengthBias | None:
    """How often the longest and the shortest option is right in the questions that passed."""
    items = [(draft.row["answer"], draft.wrong) for draft in drafts if draft.passed]
    return length_bias(items) if items else None


def report(drafts: Sequence[Draft], blind: Sequence[str], judge: str) -> dict[str, Any]:
    """What choices.json holds: the rounds of each question, what the judge refused, and what is left out."""
    return {
        "blind_models": list(blind),
        "judge": judge,
        "refused": {draft.id: draft.refused for draft in drafts if draft.refused},
        "passed": {draft.id: draft.rounds for draft in drafts if draft.passed},
        "left_out": {draft.id: {"rounds": draft.rounds, "why": draft.state} for draft in drafts if not draft.passed},
    }


def summary(drafts: Sequence[Draft]) -> str:
    """The questions in figures, for a terminal."""
    rounds = Counter(draft.rounds for draft in drafts if draft.passed)
    lines = [f"{sum(rounds.values())} of {len(drafts)} questions passed"]
    lines[0] += f" ({', '.join(f'{count} in round {n}' for n, count in sorted(rounds.items()))})" if rounds else ""
    if (one := bias(drafts)) is not None:
        fair = "more often than a fair set" if one.given_away else "no more often than a fair set"
        lines.append(
            f"the longest option is right in {one.longest:.0%}, the shortest in {one.shortest:.0%}, {fair} "
            f"(chance {one.chance:.0%})"
        )
    refused = [one["grade"] for draft in drafts for one in draft.refused]
    if refused:
        unread = sum(grade is None for grade in refused)
        lines.append(f"{len(refused)} wrong answers refused by the judge, {unread} of them without a grade")
    lines += [f"left out: {draft.id}, {draft.state}" for draft in drafts if not draft.passed]
    return "\n".join(lines)
