"""What wording actions and wording purposes share: the attempts, and what every question must look like."""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import Template

from builder.easg import wording
from builder.easg.vocabulary import tokens, words_of
from builder.stages import Request, StageReply, Stages
from videoqa.engines import Message

ATTEMPTS = 3
TEMPERATURE = 0.7  # of the later attempts; the first is greedy
WEARER = wording.WEARER.removeprefix("the ")
ASKING = words_of("what where which how who whom whose when why")
OTHERS = words_of("i me my we us our you your he him his she her they someone somebody")
AGAIN = Template("That cannot be used: $problem. Write $what again, and nothing else.")
_LEAD = re.compile(
    r"^[\W_]*(?:(?:question|q|answer|output|here is (?:the|your|one) question)\s*\d*\s*[:.)-]+[\W_]*)?", re.I
)


def ask(stages: Stages, stage: str, requests: Sequence[Request], attempt: int) -> list[StageReply]:
    """The replies of one attempt (from 0), which is also their seed; the first is greedy."""
    return stages.ask(stage, requests, seed=attempt, temperature=TEMPERATURE if attempt else 0.0)


def ask_again(reply: StageReply, problem: str, what: str) -> list[Message]:
    """The turns that say what is wrong with a reply and ask for another."""
    return [
        {"role": "assistant", "content": (reply.text or "").strip()[:500] or "-"},
        {"role": "user", "content": AGAIN.substitute(problem=problem, what=what)},
    ]


def clean(text: str) -> str:
    """A question without what models put around it: "**Question:** What ...?" -> "What ...?"."""
    text = _LEAD.sub("", text.strip(), count=1)
    *before, last = re.split(r"(?<=[.!:])\s+(?=[A-Z])", text) or [""]  # "Sure! Here it is: What ...?"
    text = last if before and last else text
    return " ".join(re.sub(r"[*_`\"“”<>]+", "", text).split()).strip("' ")


def form_problem(question: str) -> str:
    """What is wrong with the form of a question, whatever it is about; "" if nothing is."""
    words = tokens(question)
    if question.count("?") != 1 or not question.endswith("?"):
        return "it is not one question"
    if len(words) > 40:
        return "it is too long"
    if WEARER not in question.lower():
        return f'it does not say "{wording.WEARER}"'
    if others := [word for word in words if word in OTHERS]:
        return f'it says "{others[0]}" where only the camera wearer acts'
    if not ASKING & {*words} or words[0] in ("did", "was", "is", "does", "has", "were", "are"):
        return "it can be answered with yes or no"
    return ""
