"""A function of yours as an engine: it takes conversations and returns their replies.

    def answer(conversations):          # [[{"role": "user", "content": "..."}], ...]
        return [ask(one[-1]["content"]) for one in conversations]

It gives no probabilities, and how it decodes is its own affair: settings of this project do not reach it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from videoqa.engines import ChoiceLogprobs, Conversation, Reply
from videoqa.engines.chat import cuts_in
from videoqa.errors import UserError

Function = Callable[[list[Conversation]], Sequence[str | None]]


class FunctionEngine:
    """`function` gets at most `batch_size` conversations at a time; a reply of None is the row's error."""

    can_choose = False
    can_follow = False
    can_force = False

    def __init__(self, function: Function, name: str = "", batch_size: int = 8) -> None:
        self._function, self._batch_size = function, batch_size
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self.settings: dict[str, Any] = {"engine": "function"}

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
        """See Engine.generate; of its arguments only `stop` has an effect here."""
        for first in range(0, len(conversations), self._batch_size):
            asked = list(conversations[first : first + self._batch_size])
            texts = self._function(asked)
            if isinstance(texts, str) or not isinstance(texts, Sequence) or len(texts) != len(asked):
                what = f"{len(texts)} of them" if isinstance(texts, list | tuple) else type(texts).__name__
                raise UserError(f"{self.name} must return a list of {len(asked)} replies, not {what}")
            for index, text in enumerate(texts, first):
                if text is not None and not isinstance(text, str):
                    raise UserError(f"{self.name} must return texts, not {type(text).__name__}")
                if text is None:
                    yield index, Reply(None, f"{self.name} gave no reply")
                    continue
                cuts = cuts_in(text, stop)
                yield index, Reply(text[: min(cuts)] if cuts else text)

    def choice_logprobs(
        self,
        conversations: Sequence[Conversation],
        choices: Sequence[str],
        *,
        start: str = "",
        temperature: float = 1.0,
        top_p: float = 1.0,
    ) -> Iterator[tuple[int, ChoiceLogprobs]]:
        """There are none."""
        raise UserError(f"{self.name} is a function and gives no probabilities: read its text instead")
