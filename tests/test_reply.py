"""videoqa/reply.py: replies of judges, most of them as real judges write them, in tests/data/judge_replies.jsonl.

The half "dev" was looked at while the reader was made. "blind", "second", "third" and "fourth blind" were written by
others who had not seen the reader, each after it was mended on the one before; what they first gave stands at
BLIND_FIRST_SEEN.
"""

from __future__ import annotations

import json
import string
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import Scripted

from videoqa.benchmarks.easg.rubrics import OURS
from videoqa.judge import Item, Judge
from videoqa.reading.text import READ
from videoqa.reply import begins_with_score, behind_thinking, read_reply, without_thinking
from videoqa.rubric import Rubric

BLIND_FIRST_SEEN = {  # before its failures were looked at
    "blind": "120 clear replies: 102 read right (85%), 1 read wrong; of 80 without a score none but that one read",
    "second blind": "104 clear replies: 104 read right (100%), 0 wrong; of 56 without a score 2 were read as one",
    "third blind": "112 clear replies: 104 read right (93%), 1 read wrong; of 38 without a score 2 were read as one",
    "fourth blind": "140 clear replies: 124 read right (89%), 0 wrong; of 60 without a score 1 was read as one",
}
# measured when all had been seen: 0.97, 0.99, 1, 0.96 and 0.99
RECALL = dict.fromkeys(("dev", "blind", "second blind", "third blind", "fourth blind"), 0.95)
FOUR_VALUES = Rubric(
    name="worldqa",
    system="Compare key points.",
    layout="{context}{question}{answer}{prediction}{rule}",
    rule="Reason, then write the point.",
    values=(0, 0.3, 0.5, 1),
    between=False,
    start="Point: ",
)
REPLIES = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "judge_replies.jsonl").read_text(encoding="utf-8").splitlines()
]


def score_of(reply: dict[str, Any]) -> float | None:
    return read_reply(reply["reply"], FOUR_VALUES if reply.get("rubric") else OURS).score


def test_there_are_replies_enough_in_both_halves() -> None:
    halves = [reply["half"] for reply in REPLIES]
    assert halves.count("dev") >= 150 and halves.count("blind") >= 150
    assert len({reply["reply"] for reply in REPLIES if reply["half"] == "blind"}) >= 150


@pytest.mark.parametrize("half", list(RECALL))
def test_no_reply_is_read_wrong(half: str) -> None:
    scores = {r["id"]: (r["value"], score_of(r), r["reply"]) for r in REPLIES if r["half"] == half}
    wrong = {k: v for k, v in scores.items() if v[1] is not None and v[1] != v[0]}
    assert not wrong


@pytest.mark.parametrize("half", list(RECALL))
def test_nearly_all_clear_replies_are_read(half: str) -> None:
    clear = [reply for reply in REPLIES if reply["half"] == half and reply["value"] is not None]
    unread = [reply["reply"] for reply in clear if score_of(reply) is None]
    assert 1 - len(unread) / len(clear) >= RECALL[half], unread


@pytest.mark.real
def test_the_replies_of_the_shared_cases_are_read_as_they_should(shared: Path) -> None:
    cases = [json.loads(line) for line in (shared / "cases" / "judge_replies.jsonl").read_text().splitlines()]
    assert len(cases) >= 60
    assert {c["id"]: read_reply(c["reply"], OURS).score for c in cases} == {c["id"]: c["right"] for c in cases}


# -- kinds ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ('The student claims "Score: 10" for itself, which I ignore. I rate it 1/10.', 1),
        ("With a score of 10 being perfect, I give it 4/10.", 4),
        ("Score: 7\nThe table is missing.\nRevised score: 6", 6),
        ("Score: 10\n\nWait, let me correct that.\n\nScore: 2", 2),
        ("Score: 9 (relevance) / Score: 3 (accuracy) / Final score: 5", 5),
        ("Points: 3 facts are right. Score: 7", 7),
        ("Score: 7\n\nScore: 4", None),
        ('8\n```json\n{"score": 3}\n```', None),  # two explicit scores, and neither is the last word
        ("Score: 9\n\nOn reflection, a 6 or a 7.", None),  # revised to what cannot be read
        ("The answer covers 9 out of 10 key facts.", None),
        ("Score: 10 %", None),
        ("Score: ½", None),
    ],
)
def test_quoted_supposed_counted_and_revised_scores(text: str, score: float | None) -> None:
    assert read_reply(text, OURS).score == score


@pytest.mark.parametrize("top", [5, 10, 100])
def test_the_scales_top_is_the_rubrics(top: int) -> None:
    rubric = replace(OURS, values=tuple(range(1, top + 1)))
    assert read_reply(f"I rate it 4/{top}.", rubric).score == 4
    assert read_reply(f"The tool is right. 4/{top + 1}.", rubric).score is None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("the cup", "the cup"),
        (
            "a <b> and [THINKER] analysis of assistant final words",
            "a <b> and [THINKER] analysis of assistant final words",
        ),
        ("<think>a</think>the cup", "the cup"),
        ("[THINK]a[/THINK]the cup", "the cup"),
        ("a</think>the cup", "the cup"),
        (
            "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>the cup<|return|>",
            "the cup",
        ),
        ("<|channel|>analysis<|message|>a<|end|>", None),
        ("analysisWe see a cup.assistantfinalthe cup", "the cup"),
        ("analysisWe see a cup", None),
        ("analysis of a cup", "analysis of a cup"),
        ("<think>a", None),
        ("◁think▷a◁/think▷the cup", "the cup"),
    ],
)
def test_thinking_is_taken_away_in_all_its_marks_and_nothing_else(text: str, answer: str | None) -> None:
    assert without_thinking(text) == answer


@given(st.text())
def test_a_text_without_marks_of_thinking_stays_as_it_is(text: str) -> None:
    if not any(sign in text for sign in "<[◁") and "analysis" not in text and "assistantfinal" not in text:
        assert behind_thinking(text) == (text, False)


# -- properties -------------------------------------------------------------------------------------------------------

PIECES = [
    "score",
    "Score: ",
    "7",
    "10",
    "/10",
    " out of ",
    "**",
    "\n",
    "<think>",
    "</think>",
    '{"score": ',
    "}",
    '"',
    "[[",
    "]]",
    "I rate it ",
    "the answer ",
    "deserves ",
    "a ",
    "not ",
    "if ",
    "评分：",
    "分",
    "½",
    "%",
    "-",
    ".",
    ",",
    " ",
    "\\boxed{",
]
PROSE = st.text(alphabet=string.ascii_lowercase + " ", max_size=120)


@settings(deadline=None)
@given(st.text() | st.lists(st.sampled_from(PIECES), max_size=40).map("".join), st.sampled_from([OURS, FOUR_VALUES]))
def test_the_reader_never_raises_and_gives_no_score_outside_the_rubric(text: str, rubric: Rubric) -> None:
    verdict = read_reply(text, rubric)
    assert (verdict.score is not None) == (verdict.status == "ok")
    assert verdict.raw == text
    if verdict.score is not None:
        assert rubric.values[0] <= verdict.score <= rubric.values[-1]
        assert rubric.between or verdict.score in rubric.values


@settings(deadline=None)
@given(
    st.integers(1, 10), st.sampled_from(["Score: {}", "**Score:** {}/10", "Rating: [[{}]]", "<score>{}</score>"]), PROSE
)
def test_a_score_line_before_prose_is_read(number: int, form: str, prose: str) -> None:
    assert read_reply(f"{form.format(number)}\n\n{prose}.", OURS).score == number


@given(st.lists(st.sampled_from(["2", "7", "10", "of", "the", "cups", "are", "in", "box", "on", "and"]), min_size=4))
def test_numbers_between_words_are_no_score(words: list[str]) -> None:
    assert read_reply("In it " + " ".join(words) + " there.", OURS).score is None


# -- time -------------------------------------------------------------------------------------------------------------

REPEATED = [
    "7/10 ",
    "{",
    "Score: 7 ",
    "<think>",
    "[[7]] ",
    '{"a":',
    "«",
    "I give it the ",
    "| 7 ",
    "7\n",
    "score of ",
    '"a',
]


def least_time(work: Callable[[], object]) -> float:
    """Of several tries, the one that was disturbed least. CPU time, in seconds."""
    times = []
    for _ in range(5):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.parametrize("piece", REPEATED)
def test_a_reply_twice_as_long_takes_no_four_times_as_long(piece: str) -> None:
    short, long = (piece * (length // len(piece)) for length in (READ // 4, 2 * READ))
    ratio = least_time(lambda: read_reply(long, OURS)) / max(least_time(lambda: read_reply(short, OURS)), 0.002)
    assert ratio < 8 * 4  # eight times the text; quadratic would be 64


@pytest.mark.parametrize(
    "piece", ["<think>", "</think>", "<think></think>", "<", "[THINK]", "<|channel|>analysis", "a"]
)
def test_thinking_is_taken_away_in_linear_time(piece: str) -> None:
    short, long = (piece * (length // len(piece)) for length in (50_000, 400_000))
    ratio = least_time(lambda: behind_thinking(long)) / max(least_time(lambda: behind_thinking(short)), 0.002)
    assert ratio < 8 * 4


def test_of_a_reply_without_end_the_head_and_the_tail_are_read() -> None:
    words = "the cup is lifted and put down again. " * 3 * (READ // 38)
    assert read_reply("Score: 7\n" + words, OURS).score == 7
    assert read_reply(words + "\nScore: 7", OURS).score == 7
    assert read_reply("x" * (READ - 9) + " Score: 10" + "x" * 3 * READ, OURS).score is None  # no number cut in two


# -- mode score -------------------------------------------------------------------------------------------------------


class Cutting(Scripted):
    """An engine that cuts a reply at max_new_tokens, counting words and line ends as tokens."""

    def generate(self, *args: Any, **how: Any) -> Any:
        for n, reply in super().generate(*args, **how):
            words = (reply.text or "").split(" ")
            cut = len(words) > how["max_new_tokens"]
            yield n, replace(reply, text=" ".join(words[: how["max_new_tokens"]]), finished=not cut)


@pytest.mark.parametrize(
    ("text", "score", "calls"),
    [
        ("Score: 8\nThe tool is right.", 8, [16]),
        ("8", 8, [16]),
        ("Score: 8 " + "The tool is right and so on. " * 9, 8, [16]),  # a score line that was cut behind its score
        ("Score: 85\nGood.", None, [16]),
        ("", None, [16]),
        ("<think></think>\n\n7", 7, [16, 2048]),
        ("<think>\nStart from 10.\n</think>\n7", 7, [16, 2048]),
        ("## Score\n\n8/10", 8, [16, 2048]),
        ('```json\n{"score": 6, "reason": "half"}\n```', 6, [16, 2048]),
        ("Here is my evaluation:\n\nThe tool is right.\n\nScore: 5", 5, [16, 2048]),
        ("Accuracy: 9\nCompleteness: 3\nOverall: 5", 5, [16, 2048]),
        (
            "At first sight I would give it a 9 since the tool is right and so is the place, but I rate it 4.",
            4,
            [16, 2048],
        ),
        (
            "I would rate this answer a 9 for it has much of what was asked for and more, but then I settle on 4.",
            4,
            [16, 2048],
        ),
        ("I cannot rate this.", None, [16, 2048]),
    ],
)
def test_mode_score_asks_on_until_there_is_a_score(text: str, score: float | None, calls: list[int]) -> None:
    engine = Cutting(lambda asked, seed: text)
    ((_, verdict),) = Judge(engine, OURS, "score").rate([Item("What?", "a cup", "a jug")])
    assert verdict.score == score
    assert [call["max_new_tokens"] for call in engine.calls if call["n"]] == calls


def test_a_score_line_is_known_by_its_first_line() -> None:
    assert begins_with_score("**Score:** 7 The tool", OURS)
    assert not begins_with_score("I would rate it a 7", OURS)
    assert not begins_with_score("The tool.\nScore: 7", OURS)
