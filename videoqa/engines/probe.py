"""What a server takes and gives, found out by a few small requests before its first row: it is not believed untried.

    GET /models                             what it says of itself
    "Name the days of the week in order."   which fields it refuses, how many log-probabilities come, who answers
    the same behind a longer system text    does the number of prompt tokens grow? Else the system text is lost
    the same, begun "... Wednes"            a server that continues goes on with "day", every other begins anew

Decided once, so that all rows of a run are asked in one way; `Probed.settings` tells it in words, and a result made in
another way has another key.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from videoqa.engines.completion import Completion, positions_of
from videoqa.engines.endpoint import Endpoint, EndpointError, RowError
from videoqa.errors import UserError
from videoqa.files import short_hash

if TYPE_CHECKING:
    import httpx

TRIES = 3  # a server that is not there is told soon
TOPS = (20, 5)  # top_logprobs to ask for, in this order; TGI allows 5
QUESTION = "Name the days of the week in order."
SHORT = "Be brief."
LONG = (
    "Be brief. The words of this text do not matter, only that there are many: a clock, a lamp, a spoon, a door, a "
    "chair, a cup, a window, a shelf, a knife, a plate, a towel, a bottle, a bowl, a table and a basket."
)
GROWS = 20  # tokens that LONG has more than SHORT, at the very least
# A forced start and what goes on from it. Each ends in the middle of a word that has no other end: behind "three, fo" a
# small model writes ", four", because it reads other tokens than those of "four".
BEGUN = (("Monday, Tuesday, Wednes", "day"), ("Monday, Tuesday, Wednesday, Thurs", "day"))
# vLLM applies the model's own generation_config.json (a repetition penalty, top_k) to what does not say otherwise.
NEUTRAL: Mapping[str, Any] = {"repetition_penalty": 1.0, "top_k": -1}
# Fields that a server may refuse, in the order in which they are given up where it names several.
OPTIONAL = (*NEUTRAL, "seed", "top_p", "temperature", "max_completion_tokens")
FIELD_REFUSED = (400, 403, 422)
HUB_ID = re.compile(r"\w[\w.-]*/[\w.-]+")


@dataclass(frozen=True, slots=True)
class Manner:
    """How this server is asked."""

    left_out: frozenset[str] = frozenset()
    limit: str = "max_tokens"  # OpenAI's newer models know max_completion_tokens alone
    top: int | None = TOPS[0]  # top_logprobs; None: it gives no log-probabilities
    forced: bool = False  # it continues a last assistant message
    joined: bool = False  # the system text goes into the first user turn
    provider: str = ""  # of the Hub's router: the one that answered first answers all
    extra: Mapping[str, Any] = field(default_factory=dict)  # for every request; None takes a field out

    def body(self, model: str, messages: Sequence[Mapping[str, Any]], start: str, options: Mapping[str, Any]) -> bytes:
        """A request. `options` use OpenAI's older names."""
        sent = [dict(m) for m in messages]
        if self.joined:
            sent = joined(sent)
        fields = {**NEUTRAL, **options, self.limit: options["max_tokens"]}
        if self.limit != "max_tokens":
            del fields["max_tokens"]
        if start and self.forced:
            sent.append({"role": "assistant", "content": start})
            fields |= {"continue_final_message": True, "add_generation_prompt": False}
        kept = {k: v for k, v in fields.items() if k not in self.left_out}
        named = f"{model.partition(':')[0]}:{self.provider}" if self.provider else model
        whole = {"model": named, "messages": sent, **kept, **self.extra}
        # escaped, so that lone surrogates pass
        return json.dumps({k: v for k, v in whole.items() if v is not None or k not in self.extra}).encode("ascii")


@dataclass(frozen=True, slots=True)
class Probed:
    """A server that was tried."""

    manner: Manner
    model: str  # what its replies name; "": nothing
    fingerprint: str  # "": none, or another one with each reply
    settings: dict[str, Any]
    provider: str = ""  # who answers behind a router

    def other(self, reply: Completion) -> str | None:
        """Who answered, where it is not the one that was tried."""
        if self.model and reply.model and reply.model != self.model:
            return f"model {reply.model!r}, not {self.model!r}"
        if self.provider and reply.provider and reply.provider != self.provider:
            return f"provider {reply.provider!r}, not {self.provider!r}"
        if self.fingerprint and reply.fingerprint and reply.fingerprint != self.fingerprint:
            return f"system_fingerprint {reply.fingerprint!r}, not {self.fingerprint!r}"
        return None


def joined(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages with the system text before the first user's text, for models without a system role."""
    if len(messages) < 2 or messages[0]["role"] != "system":
        return [dict(m) for m in messages]
    system, user, *rest = messages
    texts, contents = system["content"], user["content"]
    if isinstance(texts, str) and isinstance(contents, str):
        both: Any = f"{texts}\n\n{contents}"
    else:
        both = [p for c in (texts, contents) for p in ([{"type": "text", "text": c}] if isinstance(c, str) else c)]
    return [{**user, "content": both}, *map(dict, rest)]


async def probe(
    endpoint: Endpoint, client: httpx.AsyncClient, model: str, can_force: bool | None, extra: Mapping[str, Any]
) -> Probed:
    """Try the server. `can_force`: whether a forced start must be continued (True), is not asked for (False), or is
    used where it is (None). EndpointError where the server refuses even these requests."""
    try:
        return await _tried(endpoint, client, model, can_force, extra)
    except RowError as error:
        raise EndpointError(f"{endpoint.address} refuses a small request: {error}") from error


async def _tried(
    endpoint: Endpoint, client: httpx.AsyncClient, model: str, can_force: bool | None, extra: Mapping[str, Any]
) -> Probed:
    listed = await endpoint.models(client)
    manner, first = await _fields(endpoint, client, model, Manner(extra=extra))
    if first.provider:
        named = replace(manner, provider=first.provider)
        with contextlib.suppress(RowError, EndpointError):  # it says who answers, but cannot be told who is to
            first, manner = await _small(endpoint, client, model, named, SHORT), named
    replies = [first]
    system = "unknown" if not first.prompt_tokens else "seen"
    if manner.joined:
        system = "joined"
    elif first.prompt_tokens:
        second = await _small(endpoint, client, model, manner, LONG)
        replies.append(second)
        if not second.prompt_tokens:
            system = "unknown"
        elif second.prompt_tokens - first.prompt_tokens < GROWS:
            system, manner = "joined", replace(manner, joined=True)
    if can_force is not False:
        wrote = []
        for start, rest in BEGUN:
            reply = await _forced(endpoint, client, model, replace(manner, forced=True), start)
            if isinstance(reply, Completion):
                replies.append(reply)
                if (reply.text or "").startswith(rest):
                    manner = replace(manner, forced=True)
                    break
            wrote.append(f"{start!r} got {(reply.text or '')[:40] if isinstance(reply, Completion) else reply!r}")
        if can_force and not manner.forced:
            raise UserError(
                f"{model!r} at {endpoint.address} does not continue a forced start ({endpoint.excerpt(wrote[0])}): "
                "leave can_force=true out"
            )
    manner = replace(manner, top=_top(first, manner.top))
    names, providers, prints = (
        {getattr(r, k) for r in replies if getattr(r, k)} for k in ("model", "provider", "fingerprint")
    )
    for several, what in ((names, "models"), (providers, "providers")):
        if len(several) > 1:
            told = endpoint.excerpt(", ".join(sorted(several)))
            raise EndpointError(f"{endpoint.address} answers as several {what}: {told}; results would mix them")
    name = next(iter(names), "")
    mark = prints.pop() if len(prints) == 1 else ""
    where = f"{endpoint.address} by {first.provider}" if first.provider else endpoint.address
    served = endpoint.excerpt(identity(model, where, listed, name, mark), 2000)
    settings: dict[str, Any] = {
        "engine": endpoint.kind,
        "served": served,
        "start": "forced" if manner.forced else "free",
        "probabilities": f"of the {manner.top} likeliest tokens" if manner.top else "none",
    }
    if system != "seen":
        settings["system"] = {
            "joined": "system text in the user's turn",
            "unknown": "system text perhaps unseen",
        }[system]
    if left_out := sorted({*manner.left_out, *(["max_tokens"] if manner.limit != "max_tokens" else [])}):
        settings["left_out"] = f"without {', '.join(left_out)}"
    if extra:
        settings["extra"] = dict(extra)
    return Probed(manner, name, mark, settings, first.provider)


def identity(model: str, address: str, listed: Sequence[Mapping[str, Any]], name: str, fingerprint: str) -> str:
    """Who answers, as far as the server says it: "org/judge, 8192 tokens". A name that the server was given, or a path
    on its own disk, tells it from no other: then the address is part of it."""
    mine = [entry for entry in listed if entry.get("id") in (model, name)] or list(listed)
    entry = mine[0] if len(mine) == 1 else {}
    root, length, meta = (entry.get(key) for key in ("root", "max_model_len", "meta"))
    told = [name or model]
    if isinstance(root, str) and root and root != told[0]:
        told.append(f"root {root.rstrip('/').rpartition('/')[2] if root[0] in './~' else root}")
    if isinstance(length, int):
        told.append(f"{length} tokens")
    if isinstance(meta, dict):  # llama.cpp: number of parameters, size of the file, ...
        told.append(f"meta {short_hash(json.dumps(meta, sort_keys=True))}")
    if fingerprint:
        told.append(fingerprint)
    if not (isinstance(root, str) and HUB_ID.fullmatch(root)):
        told.append(f"at {address}")
    return ", ".join(told)


async def _small(
    endpoint: Endpoint, client: httpx.AsyncClient, model: str, manner: Manner, system: str, start: str = ""
) -> Completion:
    """The reply to the small known request."""
    messages = [{"role": "system", "content": system}, {"role": "user", "content": QUESTION}]
    options: dict[str, Any] = {"max_tokens": 16, "temperature": 0.0, "top_p": 0.9, "seed": 42}
    if manner.top is not None:
        options |= {"logprobs": True, "top_logprobs": manner.top}
    try:
        reply = await endpoint.ask(client, manner.body(model, messages, start, options), TRIES)
    except RowError as error:
        if error.status == 400 and re.search(r"output limit was reached|higher max_tokens", str(error)):
            return Completion("", "length", thinking=True)  # OpenAI's word for 16 tokens of thinking
        if error.status in FIELD_REFUSED or error.status >= 500:
            raise
        raise EndpointError(f"{endpoint.address} cannot be used: {error}") from error
    if fault := reply.ending_fault:
        raise EndpointError(f"{endpoint.address} cannot be used: {endpoint.excerpt(fault)}")
    return reply


async def alive(endpoint: Endpoint, client: httpx.AsyncClient, model: str, probed: Probed) -> bool:
    """Whether the small known request is still answered, and by the same model."""
    body = probed.manner.body(model, [{"role": "user", "content": QUESTION}], "", {"max_tokens": 16})
    try:
        return probed.other(await endpoint.ask(client, body, 1)) is None
    except (RowError, EndpointError):
        return False


async def _fields(
    endpoint: Endpoint, client: httpx.AsyncClient, model: str, manner: Manner
) -> tuple[Manner, Completion]:
    """The manner without what the server refuses, and its first reply."""
    while True:
        try:
            return manner, await _small(endpoint, client, model, manner, SHORT)
        except RowError as error:
            if (less := _without(manner, error)) is None:
                raise
            manner = less


def _without(manner: Manner, error: RowError) -> Manner | None:
    """The manner after a refusal: without the field that it names, else without what few servers know, else without a
    system turn. None where there is nothing left to give up."""
    words = re.findall(r"\w+", " ".join(error.fields) if error.fields else str(error))
    sent = [name for name in OPTIONAL if name not in manner.left_out and name not in manner.extra]
    if error.status in FIELD_REFUSED:
        if manner.top is not None and any(re.search("logprob|top_n_tokens", word) for word in words):
            return replace(manner, top=next((n for n in TOPS if n < manner.top), None))
        if manner.limit == "max_tokens" and "max_tokens" in words and "max_tokens" not in manner.extra:
            return replace(manner, limit="max_completion_tokens")
        if manner.limit == "max_tokens":
            sent.remove("max_completion_tokens")
        if named := next((name for name in sent if name in words), None):
            return replace(manner, left_out=manner.left_out | {named})
    if not manner.left_out >= set(NEUTRAL):
        return replace(manner, left_out=manner.left_out | set(NEUTRAL))
    if not manner.joined and error.status in FIELD_REFUSED:
        return replace(manner, joined=True)
    return None


async def _forced(
    endpoint: Endpoint, client: httpx.AsyncClient, model: str, manner: Manner, start: str
) -> Completion | str:
    """The reply behind a forced start, or why there is none."""
    try:
        return await _small(endpoint, client, model, manner, SHORT, start)
    except RowError as error:
        if error.status >= 500 and error.status != 501:
            raise EndpointError(f"{endpoint.address} cannot be used: {error}") from error
        return str(error)


def _top(reply: Completion, wanted: int | None) -> int | None:
    """How many log-probabilities really come with a position; None where they are none that can be a distribution."""
    try:
        positions = positions_of(reply) if wanted else None
    except ValueError:
        return None
    if wanted is None or not positions:
        return None
    given = max(len(top) for _, top in positions)
    mass = max(math.fsum(map(math.exp, top.values())) for _, top in positions)
    return min(wanted, given) if given >= min(TOPS) and mass > 0.1 else None
