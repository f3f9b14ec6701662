"""An engine that replies by script, in this process: for tests of what is done with a language model's words."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from videoqa.engines import ChoiceLogprobs, Conversation, Reply


class Scripted:
    """`script` makes the reply from the last message's text and the seed; None is an error. Replies come in an order
    of their own, as from a real engine; `calls` keeps how generate was called."""

    name = "scripted"
    can_choose = False
    can_force = False

    def __init__(self, script: Callable[[str, int], str | None]) -> None:
        self.script = script
        self.settings: dict[str, Any] = {"engine": "scripted"}
        self.calls: list[dict[str, Any]] = []

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
        self.calls.append({"n": len(conversations), "temperature": temperature, "seed": seed})
        for index in random.Random(seed).sample(range(len(conversations)), len(conversations)):
            text = self.script(conversations[index][-1]["content"], seed)
            yield index, Reply(text) if text is not None else Reply(None, "the prompt does not fit")

    def choice_logprobs(self, *args: Any, **kwargs: Any) -> Iterator[tuple[int, ChoiceLogprobs]]:
        raise NotImplementedError
