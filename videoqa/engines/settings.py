"""How a model under test is asked, where that is not the engine's default: greedy, no system text.

    engine = set_to(open_engine("Qwen/Qwen3-8B"), Settings(temperature=0.7, top_p=0.8, system="Answer in one line."))

What is set stands in the engine's `settings`, so that a run of other settings is another run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from videoqa.engines import ChoiceLogprobs, Conversation, Engine, Reply
from videoqa.errors import UserError

SEED = 42  # of Engine.generate


@dataclass(frozen=True, slots=True)
class Settings:
    """None, "" and (): as the engine does by itself."""

    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    system: str = ""  # a system text before every conversation
    stop: tuple[str, ...] = ()  # strings at which an answer ends

    def __post_init__(self) -> None:
        if self.temperature is not None and not 0 <= self.temperature <= 10:
            raise UserError(f"temperature {self.temperature:g}: it is 0 (greedy) to 10")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise UserError(f"top_p {self.top_p:g}: it is above 0 and at most 1")
        if self.top_p is not None and not self.temperature:
            raise UserError("top_p means something only where answers are sampled: give a temperature")
        if "" in self.stop:
            raise UserError("an empty stop string would end every answer at once")

    @property
    def told(self) -> dict[str, Any]:
        """What is set, for the run's config and its results."""
        sampled = {"temperature": self.temperature, "top_p": self.top_p, "seed": self.seed}
        texts = {"system": self.system or None, "stop": list(self.stop) or None}
        return {name: value for name, value in {**sampled, **texts}.items() if value is not None}


@dataclass(frozen=True, slots=True)
class SetEngine:
    """An engine whose conversations begin with a system text and whose replies are decoded in another way than what
    asks it says. Choices are weighed behind the same system text, by the model's own probabilities."""

    engine: Engine
    set: Settings

    @property
    def name(self) -> str:
        return self.engine.name

    @property
    def settings(self) -> dict[str, Any]:
        return {**self.engine.settings, **self.set.told}

    @property
    def can_choose(self) -> bool:
        return self.engine.can_choose

    @property
    def can_follow(self) -> bool:
        return self.engine.can_follow

    @property
    def can_force(self) -> bool:
        return self.engine.can_force

    def generate(
        self,
        conversations: Sequence[Conversation],
        *,
        max_new_tokens: int,
        temperature: float = 0.0,
        top_p: float = 1.0,
        seed: int = SEED,
        start: str = "",
        stop: Sequence[str] = (),
    ) -> Iterator[tuple[int, Reply]]:
        """See Engine.generate."""
        return self.engine.generate(
            self._begun(conversations),
            max_new_tokens=max_new_tokens,
            temperature=temperature if self.set.temperature is None else self.set.temperature,
            top_p=top_p if self.set.top_p is None else self.set.top_p,
            seed=seed if self.set.seed is None else self.set.seed,
            start=start,
            stop=(*stop, *self.set.stop),
        )

    def choice_logprobs(
        self,
        conversations: Sequence[Conversation],
        choices: Sequence[str],
        *,
        start: str = "",
        temperature: float = 1.0,
        top_p: float = 1.0,
    ) -> Iterator[tuple[int, ChoiceLogprobs]]:
        """See Engine.choice_logprobs."""
        begun = self._begun(conversations)
        return self.engine.choice_logprobs(begun, choices, start=start, temperature=temperature, top_p=top_p)

    def _begun(self, conversations: Sequence[Conversation]) -> list[Conversation]:
        if not self.set.system:
            return list(conversations)
        return [[{"role": "system", "content": self.set.system}, *one] for one in conversations]


def set_to(engine: Engine, settings: Settings) -> Engine:
    """The engine with these settings; itself where nothing is set."""
    return SetEngine(engine, settings) if settings.told else engine


def seeded(engine: Engine, repeat: int) -> Engine:
    """The engine as it answers for the n-th time, from 0: each time with the next seed."""
    if not repeat or not isinstance(engine, SetEngine):
        return engine
    seed = SEED if engine.set.seed is None else engine.set.seed
    return SetEngine(engine.engine, replace(engine.set, seed=seed + repeat))
