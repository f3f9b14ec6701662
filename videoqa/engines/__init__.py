"""A language model, batch first. Five ways to run one, one interface:

    transformers.py  a model folder or Hub id in this process, CPU or GPU
    vllm.py          the same offline through vLLM, for GPUs
    server.py        an OpenAI-compatible endpoint (vllm serve, TGI); services.py knows some by name (OpenAI, the Hub's)
    litellm.py       every other provider, through the library litellm
    ray.py           one of the first two, in several copies on a Ray cluster

Sorting, batching, prefix reuse, retries and limits live in the engines and nowhere else. Results come as they are
known, in any order, each with the index of its conversation, so that the caller can put every one on disk at once.
"""

from __future__ import annotations

import inspect
import json
import re
import typing
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from videoqa.engines.services import SERVICES
from videoqa.errors import UserError
from videoqa.extras import advice, said
from videoqa.files import reckonable

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
    refusal: bool = False  # True: the server marks the text as the model's refusal; it stands without a forced start


@dataclass(frozen=True, slots=True)
class ChoiceLogprobs:
    """Log-probability that the reply begins with each choice, and not with a longer one that this one begins ("1",
    "10"), nor, of engines that `can_follow`, with another number ("80", "8.5" and the choice "8"). Natural log; exp of
    them sums to at most 1: the mass."""

    logprobs: dict[str, float] | None  # None: see error; a choice that the model never offered is -inf
    error: str | None = None
    prompt_tokens: int = 0


class Engine(Protocol):
    """`name` identifies the model in results; `settings` holds what changes its numbers (dtype, engine). Of a server,
    all but the name are known once it was tried, which is at their first use."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> dict[str, Any]: ...

    @property
    def can_choose(self) -> bool:
        """choice_logprobs works: there are probabilities."""
        ...

    @property
    def can_follow(self) -> bool:
        """choice_logprobs sees what comes behind every choice that is probable, not only behind the most probable one.
        Choices that begin alike cost it little."""
        ...

    @property
    def can_force(self) -> bool:
        """A reply's start can be forced."""
        ...

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


# Names of options that hold secrets, as words: accessToken, api_key, X-Api-Key. A key, a token and an auth may also be
# something else ("stop_token_ids": [2]): they are secrets where a text stands in them.
SECRET = re.compile(r"api_?key|(?:^|_)(?:authori[sz]ation|bearer|cookies?|credentials?|passw(?:or)?d|secrets?)(?:_|$)")
SECRET_TEXT = re.compile(r"(?:^|_)(?:auth|keys?|tokens?)(?:_|$)")
# Values that are secrets whatever they are called: known beginnings, and long runs of letters and many digits that are
# no commit (40 hexadecimal digits).
SECRET_VALUE = re.compile(
    r"\b(?:sk|pk|rk|hf|gsk|xai|nvapi|glpat|gh[opsu]|github_pat|xox[abprs])[-_]\w{6,}|\bAKIA\w{12,}|\bAIza\w{20,}|\beyJ\w{10,}"
    r"|\b(?:bearer|basic)\s+\S{6,}|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
    r"|(?<![A-Za-z0-9])(?![0-9a-f]{40}(?![A-Za-z0-9]))(?=(?:[A-Za-z]*[0-9]){4})"
    r"(?=[0-9]*[A-Za-z])[A-Za-z0-9]{24,}",
    re.I,
)
# the packages of a kind
NEEDS: Mapping[str, tuple[str, ...]] = {
    "transformers": ("torch", "transformers"),
    "vllm": ("vllm",),
    "litellm": ("litellm",),
    "ray": ("ray",),
    **dict.fromkeys(("server", *SERVICES), ()),
}
OF_RAY = ("address", "gpus", "cpus")  # options of ray:COPIES*MODEL; all others are those of the copies
# Characters that nobody sees in a name, beside those that `isprintable` knows
UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]")


def open_engine(
    spec: str,
    *,
    dtype: str = "auto",
    device: str = "auto",
    batch_size: int = 8,
    options: Mapping[str, Any] | None = None,
) -> Engine:
    """The engine that a short text names:

        HuggingFaceTB/SmolLM2-135M-Instruct          a Hub id or a folder, through transformers
        vllm:Qwen/Qwen3-8B?tensor_parallel_size=2    offline through vLLM
        server:NAME@http://127.0.0.1:8000/v1         an OpenAI-compatible server; key in OPENAI_API_KEY
        openai:gpt-5-mini                            OpenAI; key in OPENAI_API_KEY
        hf:Qwen/Qwen3-8B:together                    the Hub's Inference Providers, one of them or any; HF_TOKEN
        litellm:anthropic/claude-sonnet-4-5          any provider of litellm; key where litellm looks for it
        ray:4*vllm:Qwen/Qwen3-8B?cpus=8              four copies of such an engine on a Ray cluster

    Behind a question mark stand further options of the engine's constructor, joined by &; with Ray, those of both.
    `dtype`, `device` and `batch_size` are for engines that run in a process of ours. `options` are more of those
    behind the question mark.
    """
    kind, places, given = _parsed(spec, options)
    local: dict[str, Any] = {}
    if kind == "transformers":
        local = {"dtype": dtype, "device": device, "batch_size": batch_size}
    elif kind == "vllm":
        local = {"dtype": dtype}
    elif kind == "ray":
        local = {"local": {"dtype": dtype, "device": device, "batch_size": batch_size}}
    try:
        engine: Engine = _made(kind)(*places, **{**local, **given})
    except ImportError as error:
        if (line := advice(error)) is None:
            raise
        raise UserError(line) from error
    return engine


def check_engine(spec: str, options: Mapping[str, Any] | None = None) -> None:
    """Raise what `open_engine` would of a spec that cannot be right, without opening anything: an option that there is
    not, a folder that there is not, a package that is missing."""
    kind, places, given = _parsed(spec, options)
    needs = NEEDS.get(kind, ())
    if kind == "ray":  # the packages of the copies are told by them
        kind, places, given = _parsed(places[0], places[2])
    if isinstance(template := given.get("chat_template"), str):
        from videoqa.engines.chat import chat_template

        chat_template(template)
    if kind == "transformers":
        model_place(places[0])
    elif kind != "vllm":
        _made(kind)(*places, **given)  # is not tried before its first use
    for package in needs:
        if find_spec(package) is None:
            raise UserError(said(package))


def model_place(model: str) -> str:
    """The folder of a model, or its Hub id. Raises FileNotFoundError for a folder that there is not."""
    if Path(model).expanduser().exists():
        return str(Path(model).expanduser())
    if model.startswith((".", "/", "~")) or model.count("/") > 1:
        raise FileNotFoundError(f"no model folder at {model}")
    return model


def _made(kind: str) -> type[Any]:
    """The class of engines of this kind."""
    made: type[Any]
    if kind == "server" or kind in SERVICES:
        from videoqa.engines.server import ServerEngine as made
    elif kind == "litellm":
        from videoqa.engines.litellm import LitellmEngine as made
    elif kind == "vllm":
        from videoqa.engines.vllm import VllmEngine as made
    elif kind == "ray":
        from videoqa.engines.ray import RayEngine as made
    else:
        from videoqa.engines.transformers import TransformersEngine as made
    return made


def _parsed(spec: str, more: Mapping[str, Any] | None = None) -> tuple[str, list[Any], dict[str, Any]]:
    """The kind of engine that a spec names, the first arguments of its constructor, and its options, checked."""
    kind, _, rest = spec.partition(":")
    if kind == "transformers" or kind not in NEEDS:
        kind, rest = "transformers", spec
    name, _, query = rest.partition("?")
    if not name.isprintable() or UNSEEN.search(name):
        raise UserError(f"the model's name {name!a} holds characters that cannot be seen")
    options = {**_options(query), **(more or {})}
    if numberless := [name for name, value in options.items() if not reckonable(value)]:
        raise UserError(
            f"the option {numberless[0]} holds a number that is none (NaN, Infinity or one of hundreds of digits)"
        )
    service = SERVICES.get(kind)
    model, _, url = name.partition("@") if kind == "server" else (name, "", service.address() if service else "")
    # what is run is written into its results, and these are published
    if _holds_secret(options) or SECRET_VALUE.search(url):
        variable = service.key if service else "OPENAI_API_KEY"
        raise UserError(
            f"an API key is no option of the engine's name: put it into {variable}, or name another "
            "environment variable with ?api_key_variable=..."
        )
    if kind == "server" and not (model and url):
        raise UserError(f"the server {name!r} must be given as server:NAME@http://HOST/v1")
    if not model and kind != "transformers":
        raise UserError(f"{kind}: names no model, as {kind}:ID does")
    places: list[Any] = [model, url] if url else [model]
    if kind == "ray":
        places = [*_copies(name), {n: value for n, value in options.items() if n not in OF_RAY}]
        _parsed(places[0], places[2])  # what is wrong with the copies is told before one starts
        options = {n: value for n, value in options.items() if n in OF_RAY}
    _check_options(kind, _made(kind), places, options)
    if service and "api_key_variable" not in options:
        options["api_key"] = service.found_key()
    return kind, places, options


def _copies(name: str) -> tuple[str, int]:
    """The engine that COPIES*ENGINE names, and how many copies of it."""
    count, star, model = name.partition("*")
    if not star or not model or not (count.isascii() and count.isdecimal() and 1 <= int(count[:6]) <= 10_000):
        raise UserError(f"'ray:{name}': engines on Ray are given as ray:COPIES*MODEL or ray:COPIES*vllm:ID")
    if (kind := model.partition(":")[0]) in NEEDS and kind not in ("transformers", "vllm"):
        raise UserError(f"ray:{count}*{kind}: copies on Ray are of a folder, a Hub id or vllm:ID")
    return model, int(count)


def _options(query: str) -> dict[str, Any]:
    """The options behind the question mark; values are JSON where they can be."""
    try:
        pairs = urllib.parse.parse_qsl(query, strict_parsing=bool(query))
    except ValueError as error:
        raise UserError("the options behind the question mark must be written as NAME=VALUE&NAME=VALUE") from error
    options: dict[str, Any] = {}
    for key, text in pairs:
        try:
            options[key] = json.loads(text)
        except (ValueError, RecursionError):
            options[key] = text
    return options


def _holds_secret(value: Any) -> bool:
    """Whether a name or a value at any level of the options looks like a secret."""
    if isinstance(value, Mapping):
        return any(is_secret(str(n), v) or _holds_secret(v) for n, v in value.items())
    if isinstance(value, list):
        return any(map(_holds_secret, value))
    return isinstance(value, str) and bool(SECRET_VALUE.search(value))


def is_secret(name: str, value: Any) -> bool:
    """Whether an option or environment variable of this name holds a secret, by its name."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|\W", "_", name).lower()
    if words == "api_key_variable":
        return False
    return bool(SECRET.search(words)) or (bool(SECRET_TEXT.search(words)) and _has_text(value))


def _has_text(value: Any) -> bool:
    if isinstance(value, Mapping | list):
        return any(map(_has_text, value.values() if isinstance(value, Mapping) else value))
    return isinstance(value, str) and value != ""


def _check_options(kind: str, made: type[Any], places: Sequence[str], options: Mapping[str, Any]) -> None:
    """Raises UserError for an option that the engine's constructor does not have, or whose value is of another type."""
    from pydantic import ConfigDict, TypeAdapter, ValidationError

    known = list(inspect.signature(made).parameters)[len(places) :]
    allowed = [name for name in known if name != "api_key"]
    hints = typing.get_type_hints(made.__init__)
    for name, value in options.items():
        if name not in allowed:
            raise UserError(f"the {kind} engine has no option {name!r}; allowed are {', '.join(allowed)}")
        try:
            TypeAdapter(hints[name], config=ConfigDict(strict=True)).validate_python(value)
        except ValidationError as error:
            wanted = getattr(hints[name], "__name__", str(hints[name]))
            raise UserError(f"the option {name} of the {kind} engine must be {wanted}, not {value!r}") from error
