"""A language model, batch first. Three ways to run one, one interface:

    transformers.py  a model folder or Hub id in this process, CPU or GPU
    vllm.py          the same offline through vLLM, for GPUs
    server.py        an OpenAI-compatible endpoint (vllm serve, TGI, Inference Providers)

Sorting, batching, prefix reuse, retries and limits live in the engines and nowhere else. Results come as they are
known, in any order, each with the index of its conversation, so that the caller can put every one on disk at once.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from videoqa.errors import UserError

Message = dict[str, Any]  # {"role": "system" | "user" | "assistant", "content": str or a list of parts}
Conversation = Sequence[Message]


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back for one conversation: a text, or the reason that there is none."""

    text: str | None  # with the forced start, where one was asked for; None: see error
    error: str | None = None  # e.g. "prompt of 9012 tokens does not fit into 8192"
    finished: bool = True  # False: cut by max_new_tokens
    prompt_tokens: int = 0
    new_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ChoiceLogprobs:
    """Log-probability that the reply begins with each choice, and not with a longer one that this one begins ("1",
    "10"). Natural log; exp of them sums to at most 1: the mass."""

    logprobs: dict[str, float] | None  # None: see error; a choice that the model never offered is -inf
    error: str | None = None
    prompt_tokens: int = 0
    from_text: bool = False  # True: no probabilities came; the choice that the text begins with has 0.0, others -inf


class Engine(Protocol):
    """`name` identifies the model in results; `settings` holds what changes its numbers (dtype, engine)."""

    name: str
    settings: dict[str, Any]
    can_choose: bool  # choice_logprobs works
    can_force: bool  # a reply's start can be forced

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
        """Reply to each conversation. Greedy at temperature 0; otherwise every row samples with its own generator
        seeded with `seed`, so that its text depends on nothing but the row. `start` is what the reply is made to
        begin with (part of Reply.text). Generation of a row ends at the first of the `stop` strings behind `start` and
        leading blanks; the stop string is cut off."""
        ...

    def choice_logprobs(
        self,
        conversations: Sequence[Conversation],
        choices: Sequence[str],
        *,
        start: str = "",
        temperature: float = 1.0,
        top_p: float = 1.0,
    ) -> Iterator[tuple[int, ChoiceLogprobs]]:
        """How probable each choice is as what comes next after `start`, when tokens are drawn at this temperature from
        the top_p part of the distribution (1 and 1: the model's own distribution)."""
        ...


SECRET = re.compile(r"api[_-]?key|(?:^|[_-])(?:key|token|secret|password|authorization)(?:$|[_-])", re.I)


def open_engine(spec: str, *, dtype: str = "auto", device: str = "auto", batch_size: int = 8) -> Engine:
    """The engine that a short text names:

        HuggingFaceTB/SmolLM2-135M-Instruct          a Hub id or a folder, through transformers
        vllm:Qwen/Qwen3-8B?tensor_parallel_size=2    offline through vLLM
        server:NAME@http://127.0.0.1:8000/v1         an OpenAI-compatible server; key in OPENAI_API_KEY

    Behind a question mark stand further options of the engine's constructor, joined by &. `dtype`, `device` and
    `batch_size` are for engines that run in this process.
    """
    kind, _, rest = spec.partition(":")
    if kind not in ("vllm", "server"):
        kind, rest = "transformers", spec
    name, _, query = rest.partition("?")
    options: dict[str, Any] = {}
    for key, text in urllib.parse.parse_qsl(query, strict_parsing=bool(query)):
        try:
            options[key] = json.loads(text)
        except ValueError:
            options[key] = text
    given = [*options, *(options["extra"] if isinstance(options.get("extra"), dict) else [])]
    if any(SECRET.search(name) and name != "api_key_variable" for name in given):
        raise UserError(  # what is run is written into its results, and these are published
            "an API key is no option of the engine's name: put it into OPENAI_API_KEY, or name another "
            "environment variable with ?api_key_variable=..."
        )
    try:
        if kind == "server":
            from videoqa.engines.server import ServerEngine

            model, _, url = name.partition("@")
            if not model or not url:
                raise UserError(f"the server {spec!r} must be given as server:NAME@http://HOST/v1")
            return ServerEngine(model, url, **options)
        if kind == "vllm":
            from videoqa.engines.vllm import VllmEngine

            return VllmEngine(name, **{"dtype": dtype, **options})
        from videoqa.engines.transformers import TransformersEngine

        return TransformersEngine(name, **{"dtype": dtype, "device": device, "batch_size": batch_size, **options})
    except (TypeError, AttributeError) as error:
        raise UserError(f"{spec.partition('?')[0]!r} with the options {', '.join(options)}: {error}") from error
