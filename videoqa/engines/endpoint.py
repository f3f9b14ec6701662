"""The way to an OpenAI-compatible endpoint and back: requests, retries, limits, errors, and what must not leak.

What may pass (429, 5xx, time-outs, cut connections, cut JSON) is tried again, after the time that the server names or
after an exponential wait. What is left is the error of one row, RowError, whatever the server sent; only what no row
can succeed with (a wrong key, a wrong model, no credit) is an EndpointError, which ends the run.
"""

from __future__ import annotations

import html
import json
import math
import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime, parsedate_tz
from typing import TYPE_CHECKING, Any

from videoqa.engines.completion import Completion, completion_of
from videoqa.errors import UserError

if TYPE_CHECKING:
    import httpx

LONGEST_WAIT = 600.0  # seconds; a server that asks for more is not waited for
WHOLE = 5.0  # a whole reply may take so many times the time allowed without a byte
MOST_BYTES = 16 << 20  # of a reply; 20 log-probabilities of 4,096 tokens are 8 MB
PART = 12  # characters of the key that must not show
EXCERPT = 300  # characters of a server's text in an error
PROVIDER = "x-inference-provider"  # the header by which the Hub's router says who of its providers has answered
# What an account has run into; no row can succeed until a person mends it.
NO_ROW = frozenset(
    ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "account_deactivated", "invalid_api_key")
)
OWN_FAULT = re.compile(r"context|too (?:long|large|many tokens)|max\w*[ _-](?:\w+[ _-])?(?:len|token)|exceed", re.I)
FILTERED = re.compile(r"content[ _-]?(?:filter|policy|management)|moderation|flagged", re.I)


class EndpointError(UserError):
    """The endpoint refuses every row: wrong key, wrong model or wrong address. It ends the run."""


class RowError(Exception):
    """The endpoint gives this row nothing. `status` is the HTTP status, 0 where there was none; `own`: the row itself
    is the reason (too long, filtered); `fields`: the fields of the request that the server names as its reason."""

    def __init__(self, message: str, status: int = 0, own: bool = False, fields: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.status, self.own, self.fields = status, own, fields


class Passing(Exception):
    """A fault that may pass; `after` is the wait in seconds that the server asks for."""

    def __init__(self, message: str, after: float | None = None, status: int = 0) -> None:
        super().__init__(message)
        self.after, self.status = after, status


class Endpoint:
    """`url` ends in /chat/completions; `key` may be empty; `timeout` and `wait` in seconds."""

    kind = "server"  # as results name it

    def __init__(self, url: httpx.URL, model: str, key: str, timeout: float, tries: int, wait: float) -> None:
        if not isinstance(tries, int) or tries < 1:
            raise UserError(f"tries must be a whole number of at least 1, not {tries!r}")
        for name, number in (("timeout", timeout), ("wait", wait)):
            if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < math.inf:
                raise UserError(f"{name} must be a number of seconds, not {number!r}")
        self.url, self._model, self._key = url, model, key
        self.timeout, self.tries, self._wait = timeout, tries, wait
        self._hide(key)

    def _hide(self, *secrets: str) -> None:
        """Keep these texts out of errors, and those that are long enough to be keys out of replies too: "EMPTY" and "x"
        are words."""
        self._forms = frozenset[str]().union(*map(key_parts, secrets))
        self._key_forms = frozenset[str]().union(*(key_parts(secret) for secret in secrets if len(secret) >= PART))

    @property
    def address(self) -> str:
        """The base URL as people know it."""
        return f"{self.url.scheme}://{self.url.netloc.decode()}{self.url.path.removesuffix('/chat/completions')}"

    def client(self, connections: int) -> httpx.AsyncClient:
        import httpx

        limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self._key}"} if self._key else {})
        return httpx.AsyncClient(headers=headers, timeout=self.timeout, limits=limits)

    def kept(self, text: str) -> str:
        """A model's words as they may be kept: without the key, should a server echo it."""
        return without_parts(text, self._key_forms)

    def excerpt(self, text: str, length: int = EXCERPT) -> str:
        """The beginning of what a server sent, for people: first without the key, then cut."""
        return visible(without_parts(text[: 1 << 16], self._forms)[: 2 * length])[:length]

    async def ask(self, client: httpx.AsyncClient, body: bytes, tries: int | None = None) -> Completion:
        """The reply to a request; tried again while faults may pass. Raises RowError and EndpointError only."""
        from tenacity import (
            AsyncRetrying,
            RetryCallState,
            retry_if_exception_type,
            stop_after_attempt,
            wait_exponential,
            wait_random,
        )

        tries = min(self.tries, tries or self.tries)
        jitter = wait_random(0, self._wait)  # so that rows refused together do not come back together
        doubling = wait_exponential(multiplier=self._wait, max=60)

        def pause(state: RetryCallState) -> float:
            fault = state.outcome.exception() if state.outcome else None
            asked = fault.after if isinstance(fault, Passing) else None
            return jitter(state) + (doubling(state) if asked is None else asked)

        retrying = AsyncRetrying(
            retry=retry_if_exception_type(Passing), stop=stop_after_attempt(tries), wait=pause, reraise=True
        )
        try:
            return await retrying(self._once, client, body)
        except Passing as error:
            raise RowError(f"{error} (tried {tries} times)", error.status) from error

    async def _once(self, client: httpx.AsyncClient, body: bytes) -> Completion:
        status, headers, data = await self._fetched(client, "POST", self.url, body, self.timeout)
        found = self.read(status, headers.get("Retry-After"), data, datetime.now(UTC))
        provider = headers.get(PROVIDER, "")
        return replace(found, provider=provider) if re.fullmatch(r"[\w.-]{1,60}", provider) else found

    async def models(self, client: httpx.AsyncClient) -> list[dict[str, Any]]:
        """What the server lists at /models; nothing where it has no such page. One that is only busy is asked again:
        what it says is part of its identity."""
        import anyio

        url = self.url.copy_with(path=self.url.path.removesuffix("/chat/completions") + "/models")
        for attempt in range(3):
            await anyio.sleep(attempt * self._wait)
            try:
                status, _, data = await self._fetched(client, "GET", url, None, min(self.timeout, 10.0))
                if status == 200:
                    listed = json.loads(data)["data"]
                    return [e for e in listed if isinstance(e, dict)] if isinstance(listed, list) else []
            except (RowError, ValueError, LookupError, TypeError, RecursionError):
                return []
            except Passing:
                continue
            if status not in (408, 425, 429) and status < 500:
                return []
        return []

    async def _fetched(
        self, client: httpx.AsyncClient, method: str, url: httpx.URL, body: bytes | None, timeout: float
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body, within the limits of time (seconds without a byte, and WHOLE times that for all)
        and size."""
        import anyio
        import httpx

        data = bytearray()
        try:
            with anyio.fail_after(WHOLE * timeout):
                async with client.stream(method, url, content=body, timeout=timeout) as response:
                    async for chunk in response.aiter_bytes():
                        data += chunk
                        if len(data) > MOST_BYTES:
                            raise RowError(f"the reply is larger than {MOST_BYTES >> 20} MiB")
        except httpx.TimeoutException as error:
            raise Passing(f"no reply within {timeout:g} s") from error
        except TimeoutError as error:
            raise Passing(f"no whole reply within {WHOLE * timeout:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, ValueError) as error:
            words = self.excerpt(f"{type(error).__name__} {error}")
            raise Passing(f"the connection failed: {words}") from error
        return response.status_code, response.headers, bytes(data)

    def read(self, status: int, retry_after: str | None, data: bytes, now: datetime) -> Completion:
        """The completion in an HTTP reply; Passing, RowError or EndpointError for every other."""
        text = data.decode("utf-8", "replace")
        try:
            reply = json.loads(data)
        except (ValueError, RecursionError):
            reply = None
        error = _error_in(reply)
        if status == 200 and error is not None:  # an error sent as a success (routers do)
            code = error.get("code")
            status = code if isinstance(code, int) and 400 <= code < 600 else 500
        if status != 200:
            raise self._refusal(status, retry_after, text, reply, now)
        try:
            found = completion_of(reply)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise Passing(f"not a chat completion: {self.excerpt(text, 200)!r}") from error
        return found

    def _refusal(self, status: int, retry_after: str | None, text: str, reply: Any, now: datetime) -> Exception:
        message = f"HTTP {status}: {self.excerpt(_reason(reply, text))}"
        error = _error_in(reply) or {}
        if codes := NO_ROW & {error.get(k) for k in ("code", "type") if isinstance(error.get(k), str)}:
            return EndpointError(
                f"{self.address} answers {message} ({min(codes)}); no row can succeed before that is mended"
            )
        hints = {
            401: "is the api key right?",
            402: "has the account credit?",
            404: f"is {self._model!r} served there?",
        }
        if status in hints:
            return EndpointError(f"{self.address} answers {message}; {hints[status]}")
        if status not in (408, 425, 429) and status < 500:
            own = bool(FILTERED.search(message)) or (status in (400, 413, 422) and bool(OWN_FAULT.search(message)))
            return RowError(message, status, own, _fields(reply))
        after = seconds(retry_after, now)
        if after is not None and after > LONGEST_WAIT:
            asked = f"{after:.0f} s" if after < 1e9 else "for ever"
            return RowError(
                f"{message}; the server asks to wait {asked}, at most {LONGEST_WAIT:.0f} are waited", status
            )
        return Passing(message, after, status)


def completions_url(base_url: str) -> httpx.URL:
    """The address of chat completions behind a base URL. Raises UserError for what is none, or holds a secret."""
    import httpx

    try:
        url = httpx.URL(base_url.rstrip("/") + "/chat/completions")
    except httpx.InvalidURL as error:
        raise UserError(f"base_url is no address: {error}") from error
    if url.userinfo:  # it would stand in every result
        raise UserError("base_url must not hold a user or a password: put a key into the environment variable")
    if url.port is not None and not 0 < url.port < 65536:
        raise UserError(f"base_url names port {url.port}; ports are 1 to 65535")
    if url.scheme not in ("http", "https") or not url.host:
        raise UserError(
            "base_url must begin with http:// or https:// and name a host, such as http://127.0.0.1:8000/v1"
        )
    return url


def checked_key(key: str) -> str:
    """The key without blanks around it. Raises UserError where it cannot be sent."""
    if not re.fullmatch(r"[!-~]*", key.strip()):
        raise UserError("the api key holds blanks, line ends or characters that are not ASCII")
    return key.strip()


# -- what must not leak -----------------------------------------------------------------------------------------------


def key_parts(key: str) -> frozenset[str]:
    """All runs of PART characters of the key, in the forms in which servers and programs write texts."""
    forms = {key, repr(key)[1:-1], html.escape(key), urllib.parse.quote(key, safe="")}
    for _ in range(2):  # JSON in JSON
        forms |= {json.dumps(form)[1:-1] for form in forms}
    return frozenset(form[i : i + PART] for form in forms if form for i in range(max(1, len(form) - PART + 1)))


def without_parts(text: str, parts: frozenset[str]) -> str:
    """The text with every stretch that the parts cover replaced by ***."""
    spans = []
    for part in parts:
        start = text.find(part)
        while start >= 0:
            spans.append((start, start + len(part)))
            start = text.find(part, start + 1)
    kept: list[str] = []
    at = 0
    for start, end in sorted(spans):
        if start > at or not kept:
            kept += [text[at:start], "***"]
        at = max(at, end)
    return "".join([*kept, text[at:]])


def visible(text: str) -> str:
    """The text in one line, with control characters, line ends and unseen characters written out (\\x1b)."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


# -- what an error says -----------------------------------------------------------------------------------------------


def seconds(retry_after: str | None, now: datetime) -> float | None:
    """The wait that a Retry-After header asks for: seconds or an HTTP date (RFC 9110, section 10.2.3); infinite for a
    date that no calendar has, None for what is neither."""
    text = (retry_after or "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", text, re.ASCII):
        return float(text)
    try:
        if parsedate_tz(text) is None:
            return None
    except (ValueError, OverflowError, IndexError, TypeError):
        return None
    try:
        date = parsedate_to_datetime(text)
        return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds())
    except (ValueError, OverflowError):
        return math.inf


def _error_in(reply: Any) -> dict[str, Any] | None:
    """The error object of a reply that holds one and no choices."""
    if not isinstance(reply, dict) or reply.get("choices") or not reply.get("error"):
        return None
    return reply["error"] if isinstance(reply["error"], dict) else {"message": reply["error"]}


def _reason(reply: Any, text: str) -> str:
    """What an error reply says, without the JSON around it."""
    for key in ("error", "message", "detail"):
        if isinstance(reply, dict) and reply.get(key):
            reply = reply[key]
    try:
        return str(reply) if reply is not None else text
    except (RecursionError, ValueError):
        return text


def _fields(reply: Any) -> tuple[str, ...]:
    """The fields of the request that an error names: OpenAI's `param`, pydantic's `loc`."""
    named = [(_error_in(reply) or {}).get("param")]
    detail = reply.get("detail") if isinstance(reply, dict) else None
    for entry in detail if isinstance(detail, list) else []:
        loc = entry.get("loc") if isinstance(entry, dict) else None
        named += [part for part in loc if part != "body"][:1] if isinstance(loc, list) else []
    return tuple(name for name in named if isinstance(name, str))
