"""An engine that replies by script, in this process: for tests of what is done with a language model's words."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from videoqa.engines import ChoiceLogprobs, Conversation, Reply


class Scripted:
    """`script` makes the reply from the last message's text and the seed; None is an error. Replies come in an order
    of their own, as from a real engine; `calls` keeps how generate was called, `asked` every prompt's last message.

    With `chances` (the probability of each choice, by the last message's text; None is an error) it also gives
    distributions. With `can_force` a reply begins with the forced start, and `script` says what comes behind it.
    """

    def __init__(
        self,
        script: Callable[[str, int], str | None],
        *,
        chances: Callable[[str], Mapping[str, float] | None] | None = None,
        can_force: bool = False,
        name: str = "scripted",
    ) -> None:
        self.script = script
        self.chances = chances
        self.can_choose = chances is not None
        self.can_follow = False
        self.can_force = can_force
        self.name = name
        self.settings: dict[str, Any] = {"engine": "scripted"}
        self.calls: list[dict[str, Any]] = []
        self.asked: list[str] = []

    def generate(
        self,
        conversations: Sequence[Conversation],
        *,
        max_new_tokens: int,
        temperature: float = 0.0,
        top_p: float = 1.0,
        seed: int = 42,
        start: str = "",
        stop: Sequence[str] = (),
    ) -> Iterator[tuple[int, Reply]]:
        how = {"temperature": temperature, "top_p": top_p, "seed": seed, "start": start, "stop": tuple(stop)}
        self.calls.append({"n": len(conversations), "max_new_tokens": max_new_tokens, **how})
        for index in random.Random(seed).sample(range(len(conversations)), len(conversations)):
            asked = conversations[index][-1]["content"]
            self.asked.append(asked)
            text = self.script(asked, seed)
            if text is None:
                yield index, Reply(None, "the prompt does not fit")
                continue
            blanks = len(text) - len(text.lstrip())
            cuts = [at for s in stop if (at := text.find(s, blanks)) >= 0]
            yield index, Reply(start + text[: min(cuts, default=len(text))])

    def choice_logprobs(
        self,
        conversations: Sequence[Conversation],
        choices: Sequence[str],
        *,
        start: str = "",
        temperature: float = 1.0,
        top_p: float = 1.0,
    ) -> Iterator[tuple[int, ChoiceLogprobs]]:
        assert self.chances is not None, "this engine gives no probabilities"
        how = {"temperature": temperature, "top_p": top_p, "start": start}
        self.calls.append({"n": len(conversations), "choices": list(choices), **how})
        for index in reversed(range(len(conversations))):
            asked = conversations[index][-1]["content"]
            self.asked.append(asked)
            chances = self.chances(asked)
            if chances is None:
                yield index, ChoiceLogprobs(None, "the prompt does not fit")
            else:
                logprobs = {c: math.log(chances[c]) if chances.get(c) else -math.inf for c in choices}
                yield index, ChoiceLogprobs(logprobs)
