"""One reply of a chat endpoint: from what was sent to what it says, or why it says nothing.

    {"model": "judge", "choices": [{"message": {"content": "7"}, "finish_reason": "stop"}], "usage": {...}}
        ->   Completion(text="7", finish="stop", model="judge", ...)

Nothing in it is believed: a form that is not known, or a number that cannot be, is an error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Top = Mapping[str, float]  # log-probability of each token that was reported for one position

ENDED = frozenset({"stop", "eos", "eos_token", "stop_sequence", "end_turn"})  # the model's own end; TGI's names too
CUT = frozenset({"length", "max_tokens"})
THINKING = ("thinking", "reasoning")  # types of content parts that are no part of the reply


@dataclass(frozen=True, slots=True)
class Completion:
    """The first choice of a reply."""

    text: str | None  # None: the server sent none
    finish: str  # as sent; "" where nothing was
    thinking: bool = False  # tokens went into thinking
    refusal: str = ""  # the model's words where it refuses
    logprobs: Any = None  # as sent: see positions
    prompt_tokens: int = 0  # 0: not told
    new_tokens: int = 0
    model: str = ""  # what the server says of itself
    fingerprint: str = ""
    provider: str = ""  # who of several behind one address has answered, where that is told

    @property
    def cut(self) -> bool:
        """The token limit ended the reply."""
        return self.finish.lower() in CUT

    @property
    def ending_fault(self) -> str | None:
        """Why the end of this reply makes it none, in words."""
        if self.finish == "content_filter":
            return "the server's content filter held the reply back"
        if self.finish.lower() not in ENDED | CUT:
            return f"the server ended the reply with finish_reason {self.finish or None!r}, not with stop or length"
        return None

    @property
    def fault(self) -> str | None:
        """Why there is no text to be read, in words; None where there is one (a model's own empty reply is one)."""
        if fault := self.ending_fault:
            return fault
        if self.refusal or self.text or (self.text == "" and not self.thinking and not self.cut):
            return None
        if self.thinking:
            return (
                f"all {self.new_tokens or ''} tokens of the reply went into thinking (finish_reason {self.finish}): "
                "allow more tokens, or switch thinking off, as with "
                '?extra={"chat_template_kwargs":{"enable_thinking":false}}'
            ).replace("all  tokens", "all tokens")
        return f"the server sent no text (finish_reason {self.finish}, {self.new_tokens} tokens)"


def completion_of(reply: Any) -> Completion:
    """The completion in a parsed reply. Raises LookupError, TypeError, ValueError or AttributeError for anything that
    is no chat completion."""
    choice, usage = reply["choices"][0], reply.get("usage") or {}
    message = choice["message"]
    text, thinking, refusal = _content(message.get("content"))
    details = usage.get("completion_tokens_details") or {}
    thinking = thinking or bool(message.get("reasoning_content") or message.get("reasoning"))
    return Completion(
        text=text,
        finish=_words(choice.get("finish_reason")),
        thinking=thinking or _count(details.get("reasoning_tokens")) > 0,
        refusal=refusal or _words(message.get("refusal")),
        logprobs=choice.get("logprobs"),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        new_tokens=_count(usage.get("completion_tokens")),
        model=_words(reply.get("model")),
        fingerprint=_words(reply.get("system_fingerprint")),
    )


def positions_of(completion: Completion) -> list[tuple[str, Top]] | None:
    """The token that was written at each position, and the log-probability of each one reported there; a text that
    several tokens have counts once, with their sum. None where the server reports nothing, or in another form.
    ValueError for numbers that are no log-probabilities."""
    try:
        listed = [
            (p["token"], [(t["token"], t["logprob"]) for t in p["top_logprobs"] or []], p["logprob"])
            for p in completion.logprobs["content"]
        ]
    except (LookupError, TypeError):
        return None
    positions: list[tuple[str, Top]] = []
    for token, top, own in listed:
        if not all(isinstance(t, str) for t in (token, *(t for t, _ in top))):
            return None
        pairs = top if any(t == token for t, _ in top) else [*top, (token, own)]
        chances: dict[str, float] = {}
        for t, value in pairs:
            chances[t] = chances.get(t, 0.0) + math.exp(min(_logprob(value), 1.0))
        if not sum(chances.values()) < 1.01:
            raise ValueError(f"the log-probabilities behind {token!r} add up to {sum(chances.values()):.3g}, above 1")
        # -745: below it exp is 0
        positions.append((token, {t: math.log(p) if p > 0 else -745.0 for t, p in chances.items()}))
    return positions or None


def _logprob(value: Any) -> float:
    """A finite number; ValueError for all else that JSON can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"a log-probability is {str(value)[:40]!r}")
    try:
        number = float(value)
    except OverflowError:  # an integer of hundreds of digits
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"a log-probability is {number}")
    return number


def _content(content: Any) -> tuple[str | None, bool, str]:
    """Text, whether there is thinking, and refusal of a message's content: a text, nothing, or a list of parts."""
    if content is None or isinstance(content, str):
        return content, False, ""
    texts, refusals, thinking = [], [], False
    for part in content:
        kind = part["type"]
        if kind in THINKING:
            thinking = True
        elif kind in ("text", "output_text"):
            texts.append(part["text"])
        elif kind == "refusal":
            refusals.append(part["refusal"])
        else:
            raise ValueError(f"a reply's part is of type {kind!r}")
    return "".join(texts) if texts else None, thinking, "".join(refusals)


def _words(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9 else 0
