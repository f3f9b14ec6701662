"""The prompt of a row, made again: what a run asks is not kept beside every answer, since it follows from the run.

Two-turn prompts need what the model said in turn 1, which stands in the row's answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from videoqa.engines import ChoiceLogprobs, Conversation, Reply
from videoqa.errors import UserError
from videoqa.runs import Run, rows_of
from videoqa.videos import Videos


class _Replaying:
    """An engine that says again what was said: first the replies of the turns before the answer, then anything."""

    name = "replayed"
    can_choose = can_follow = can_force = True

    def __init__(self, said: list[str]) -> None:
        self._said = said
        self.settings: dict[str, Any] = {}

    def generate(self, conversations: Sequence[Conversation], **_: Any) -> Iterator[tuple[int, Reply]]:
        text = self._said.pop(0) if self._said else ""
        yield from ((index, Reply(text)) for index in range(len(conversations)))

    def choice_logprobs(
        self, conversations: Sequence[Conversation], choices: Sequence[str], **_: Any
    ) -> Iterator[tuple[int, ChoiceLogprobs]]:
        alike = dict.fromkeys(choices, -math.log(len(choices)))
        yield from ((index, ChoiceLogprobs(alike)) for index in range(len(conversations)))


def prompt_of(run: Run, identifier: str, videos: Videos | None = None) -> Conversation:
    """The conversation that the row of this id was asked with, frames as file and second. Raises UserError for a row
    that the run does not ask."""
    row = next((row for row in rows_of(run) if row["id"] == identifier), None)
    if row is None:
        raise UserError(f"{run.folder} asks no question {identifier!r}")
    if "imported" in run.config or run.config["prompt"] not in run.track.ways:
        raise UserError(f"{run.folder}: its answers are imported, nobody here asked for them")
    way = run.track.asked(run.config["prompt"])
    line = run.answers().get(identifier, {})
    said = [line[key] for key in ("located", "reasoning") if line.get(key)]
    ask = way.protocols.get(run.config.get("protocol") or "", way.ask)
    _, answer = next(iter(ask(_Replaying(said), [row], run.config["max_new_tokens"], videos)))
    if answer.error is not None:
        raise UserError(f"{identifier}: {answer.error}")
    system = run.config.get("model_settings", {}).get("system")
    return [*([{"role": "system", "content": system}] if system else []), *answer.conversation]
