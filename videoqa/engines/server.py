"""A language or vision model behind an OpenAI-compatible endpoint: vllm serve, TGI, Inference Providers, and others.

    ServerEngine("meta-llama/Llama-3.1-8B-Instruct", "http://127.0.0.1:8000/v1", can_force=True)

Up to `concurrency` rows are on their way at once. What may pass (429, 5xx, time-outs, cut connections, cut JSON) is
tried again, after the time that the server names or after an exponential wait; what is left is the error of that row
alone. Only a wrong key or a wrong model ends the run, because no row can succeed then.
"""

from __future__ import annotations

import base64
import io
import json
import math
import os
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from videoqa.engines import ChoiceLogprobs, Conversation, Reply
from videoqa.engines.chat import cuts_in, defuse, load_picture, parts
from videoqa.engines.choices import drawn
from videoqa.errors import UserError

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
Top = Mapping[str, float]  # log-probability of each token that was reported for one position

# The models behind a server are not known here: control tokens are known by their usual form.
CONTROL = re.compile(r"<\|[^\s|<>]{1,40}\|>|</?s>|<(?:start|end)_of_turn>|\[/?INST\]")
LONGEST_WAIT = 600.0  # seconds; a server that asks for more is not waited for
FEWER_TOP = {20: 5, 5: None}  # top_logprobs to ask for where a server refuses the number before (TGI allows 5)
NEGLIGIBLE = 1e-3  # a beginning less probable than this is not followed into longer choices


class EndpointError(UserError):
    """The endpoint refuses every row: wrong key, wrong model or wrong address. It ends the run."""


class _RowError(Exception):
    """The endpoint refuses this row."""


class _Passing(Exception):
    """A fault that may pass; `after` is the wait in seconds that the server asks for."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class ServerEngine:
    """`base_url` ends in /v1 as a rule. The key is `api_key` or the environment variable `api_key_variable`; none is
    sent where both are empty.

    `can_force`: the server continues a last assistant message (vLLM and TGI do). Without it `start` is not sent and a
    reply is what the server wrote. `timeout` is in seconds without a byte, `tries` counts the first one, `wait` is the
    first wait in seconds and doubles. `extra` goes into every request, such as
    {"chat_template_kwargs": {"enable_thinking": False}}.
    """

    can_choose = True

    def __init__(
        self,
        model: str,
        base_url: str,
        *,
        api_key: str | None = None,
        api_key_variable: str = "OPENAI_API_KEY",
        can_force: bool = False,
        concurrency: int = 16,
        timeout: float = 120.0,
        tries: int = 6,
        wait: float = 1.0,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
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
        for name, value in (("concurrency", concurrency), ("tries", tries)):
            if not isinstance(value, int) or value < 1:
                raise UserError(f"{name} must be a whole number of at least 1, not {value!r}")
        for name, number in (("timeout", timeout), ("wait", wait)):
            if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < math.inf:
                raise UserError(f"{name} must be a number of seconds, not {number!r}")
        if not isinstance(can_force, bool) or not isinstance(extra or {}, Mapping):
            raise UserError(f"can_force is true or false and extra a JSON object, not {can_force!r} and {extra!r}")
        self._key = (api_key or os.environ.get(api_key_variable, "")).strip()
        if not re.fullmatch(r"[!-~]*", self._key):
            raise UserError("the api key holds blanks, line ends or characters that are not ASCII")
        self._url, self._concurrency, self._timeout = url, concurrency, timeout
        self._tries, self._wait = tries, wait
        self._extra = dict(extra or {})
        self._top: int | None = max(FEWER_TOP)
        self.can_force = can_force
        self.name = model
        self.settings = {"engine": "server", "can_force": can_force, **({"extra": self._extra} if extra else {})}

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
        """See Engine.generate. How far the seed is followed is the server's affair. It is not told to stop: a reply
        that begins with a line end would come back empty."""
        options: dict[str, Any] = {"max_tokens": max_new_tokens, "temperature": temperature, "seed": seed}
        if temperature:
            options["top_p"] = top_p

        async def ask(client: httpx.AsyncClient, row: int) -> Reply:
            try:
                choice, usage = await self._ask(client, conversations[row], start, options)
            except _RowError as error:
                return Reply(None, str(error))
            text, reason = choice["message"].get("content") or "", choice.get("finish_reason")
            if reason == "content_filter":
                return Reply(None, "the server's content filter held the reply back", prompt_tokens=usage[0])
            cuts = cuts_in(text, stop)
            text = text[: min(cuts)] if cuts else text
            return Reply((start if self.can_force else "") + text, None, bool(cuts) or reason != "length", *usage)

        return self._rows(len(conversations), ask)

    def choice_logprobs(
        self,
        conversations: Sequence[Conversation],
        choices: Sequence[str],
        *,
        start: str = "",
        temperature: float = 1.0,
        top_p: float = 1.0,
    ) -> Iterator[tuple[int, ChoiceLogprobs]]:
        """See Engine.choice_logprobs. Read from the `top_logprobs` of the greedy reply.

        A choice that is one token is exact if it is among the (20, or the server's maximum) reported tokens and -inf if
        not. A beginning that longer choices share ("1" of "10") is split by the next position: free where the greedy
        reply goes through it, by one more request where the start can be forced. Else it counts for no choice, and
        the mass is that much lower, unless the longer choices were themselves reported as tokens: then it is whole.
        Without a forced start the condition is that the reply began with `start` as the server wrote it by itself (or
        with the choice at once). Where no choice is reported, the text is read: `from_text`.
        """

        async def ask(client: httpx.AsyncClient, row: int) -> ChoiceLogprobs:
            try:
                return await self._choose(client, conversations[row], choices, start, temperature, top_p)
            except _RowError as error:
                return ChoiceLogprobs(None, str(error))

        return self._rows(len(conversations), ask)

    # -- many rows at once ------------------------------------------------------------------------------------------

    def _rows(self, count: int, ask: Callable[[httpx.AsyncClient, int], Awaitable[T]]) -> Iterator[tuple[int, T]]:
        """What `ask` gives for each row, as it comes. The requests run in a thread with its own event loop; leaving
        the iterator early (an error, Ctrl-C) cancels those on their way."""
        import anyio
        import httpx
        from anyio.from_thread import start_blocking_portal

        results: SimpleQueue[tuple[int, T] | Exception | None] = SimpleQueue()
        rows = iter(range(count))

        async def work(client: httpx.AsyncClient) -> None:
            for row in rows:
                try:
                    results.put((row, await ask(client, row)))
                except EndpointError as error:
                    results.put(error)
                    return

        async def run() -> None:
            limits = httpx.Limits(max_connections=self._concurrency, max_keepalive_connections=self._concurrency)
            headers = {"Content-Type": "application/json"} | (
                {"Authorization": f"Bearer {self._key}"} if self._key else {}
            )
            async with (
                httpx.AsyncClient(headers=headers, timeout=self._timeout, limits=limits) as client,
                anyio.create_task_group() as group,
            ):
                for _ in range(min(self._concurrency, count)):
                    group.start_soon(work, client)

        with start_blocking_portal() as portal:
            running = portal.start_task_soon(run)
            running.add_done_callback(lambda _: results.put(None))
            try:
                while (result := results.get()) is not None:
                    if isinstance(result, Exception):
                        raise result
                    yield result
                running.result()
            finally:
                running.cancel()

    # -- one request ------------------------------------------------------------------------------------------------

    async def _ask(
        self, client: httpx.AsyncClient, conversation: Conversation, start: str, options: Mapping[str, Any]
    ) -> tuple[dict[str, Any], tuple[int, int]]:
        """The first choice of the reply, and the tokens of prompt and reply; tried again while faults may pass."""
        import anyio
        from tenacity import (
            AsyncRetrying,
            RetryCallState,
            retry_if_exception_type,
            stop_after_attempt,
            wait_exponential,
            wait_random,
        )

        jitter = wait_random(0, self._wait)  # so that rows refused together do not come back together
        doubling = wait_exponential(multiplier=self._wait, max=60)

        def pause(state: RetryCallState) -> float:
            fault = state.outcome.exception() if state.outcome else None
            asked = fault.after if isinstance(fault, _Passing) else None
            return jitter(state) + (doubling(state) if asked is None else asked)

        try:  # images are read and packed beside the loop, which goes on
            body = await anyio.to_thread.run_sync(self._body, conversation, start, options)
        except (OSError, ValueError) as error:
            raise _RowError(str(error)) from error
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(_Passing), stop=stop_after_attempt(self._tries), wait=pause, reraise=True
        )
        try:
            return await retrying(self._once, client, body)
        except _Passing as error:
            raise _RowError(f"{error} (tried {self._tries} times)") from error

    def _body(self, conversation: Conversation, start: str, options: Mapping[str, Any]) -> bytes:
        messages = [{**m, "content": _content(m)} for m in conversation]
        body: dict[str, Any] = {"model": self.name, "messages": messages, **options}
        if start and self.can_force:
            messages.append({"role": "assistant", "content": start})
            body |= {"continue_final_message": True, "add_generation_prompt": False}
        return json.dumps(body | self._extra).encode("ascii")  # escaped, so that lone surrogates pass

    async def _once(self, client: httpx.AsyncClient, body: bytes) -> tuple[dict[str, Any], tuple[int, int]]:
        import httpx

        try:
            response = await client.post(self._url, content=body)
        except httpx.TimeoutException as error:
            raise _Passing(f"no reply within {self._timeout:g} s") from error
        except httpx.RequestError as error:
            raise _Passing(self._without_key(f"the connection failed: {type(error).__name__} {error}")) from error
        status = response.status_code
        if status != 200:
            message = self._without_key(f"HTTP {status}: {_reason(response.text)}")
            if status in (401, 404):
                url = f"{self._url.scheme}://{self._url.netloc.decode()}{self._url.path}"
                hint = "is the api key right?" if status == 401 else f"is {self.name!r} served there?"
                raise EndpointError(f"{url} answers {message}; {hint}")
            if status not in (408, 429) and status < 500:
                raise _RowError(message)
            after = _seconds(response.headers.get("Retry-After"), datetime.now(UTC))
            if after is not None and after > LONGEST_WAIT:
                raise _RowError(
                    f"{message}; the server asks to wait {after:.0f} s, at most {LONGEST_WAIT:.0f} are waited"
                )
            raise _Passing(message, after)
        try:
            reply = response.json()
            choice, usage = reply["choices"][0], reply.get("usage") or {}
            if not isinstance(choice["message"].get("content") or "", str):
                raise TypeError("content is no text")
            counts = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise _Passing(self._without_key(f"not a chat completion: {response.text[:200]!r}")) from error
        return choice, counts

    def _without_key(self, message: str) -> str:
        return message.replace(self._key, "***") if self._key else message

    # -- choices ----------------------------------------------------------------------------------------------------

    async def _choose(
        self,
        client: httpx.AsyncClient,
        conversation: Conversation,
        choices: Sequence[str],
        start: str,
        temperature: float,
        top_p: float,
    ) -> ChoiceLogprobs:
        longest = max(map(len, choices))
        # room for a blank before the choice, and for the start where the server must write it itself
        room = longest + 1 + (0 if self.can_force else len(start))
        choice, (tokens, _) = await self._ask_top(client, conversation, start, room)
        positions, text = _positions(choice), choice["message"].get("content") or ""
        if not self.can_force:
            positions, text = _behind(start, positions), text.lstrip().removeprefix(start.strip())
        settled: dict[str, float] = defaultdict(float)
        growing, path = {"": 1.0}, ""
        for token, top in positions:
            if path not in growing:
                break
            _share(path, growing.pop(path), drawn(top, temperature, top_p), choices, settled, growing)
            path += token
        for _ in range(longest if self.can_force else 0):
            # a text that ends in a blank cannot be forced: many templates strip it
            for begun in [t for t, p in growing.items() if t.strip() and p > NEGLIGIBLE]:
                forced = (start.rstrip() if begun[0].isspace() else start) + begun
                found, _ = await self._ask_top(client, conversation, forced, 1)
                probability = growing.pop(begun)
                for _, top in _positions(found)[:1]:
                    _share(begun, probability, drawn(top, temperature, top_p), choices, settled, growing)
        for begun, probability in growing.items():
            if probability <= NEGLIGIBLE and begun.strip() in choices:
                settled[begun.strip()] += probability
        if any(settled.values()):
            found_logprobs = {c: math.log(p) if (p := settled.get(c, 0.0)) > 0 else -math.inf for c in choices}
            return ChoiceLogprobs(found_logprobs, None, tokens)
        if (written := _longest(text.lstrip(), choices)) is None:
            return ChoiceLogprobs(None, f"the reply {text[:60]!r} begins with none of {', '.join(choices)}", tokens)
        return ChoiceLogprobs({c: 0.0 if c == written else -math.inf for c in choices}, None, tokens, from_text=True)

    async def _ask_top(
        self, client: httpx.AsyncClient, conversation: Conversation, start: str, max_tokens: int
    ) -> tuple[dict[str, Any], tuple[int, int]]:
        """A greedy reply with as many log-probabilities as the server gives; what it refuses is remembered."""
        while True:
            top = self._top
            options: dict[str, Any] = {"max_tokens": max_tokens, "temperature": 0.0}
            if top is not None:
                options |= {"logprobs": True, "top_logprobs": top}
            try:
                return await self._ask(client, conversation, start, options)
            except _RowError as error:
                if top is None or not re.search(r"logprob|top_n_tokens", str(error)):
                    raise
                if self._top == top:
                    self._top = FEWER_TOP[top]


def _content(message: Mapping[str, Any]) -> Any:
    """A message's content as the endpoint wants it: a string, or parts with the images as data URLs."""
    if isinstance(message["content"], str):
        return defuse(message["content"], CONTROL)
    return [
        {"type": "text", "text": defuse(p["text"], CONTROL)}
        if p["type"] == "text"
        else {"type": "image_url", "image_url": {"url": _data_url(p["image"])}}
        for p in parts(dict(message))
    ]


def _data_url(image: Any) -> str:
    """JPEG and PNG files as they are; everything else as JPEG of quality 95."""
    kinds = {".jpg": "jpeg", ".jpeg": "jpeg", ".png": "png"}
    if isinstance(image, str | Path) and (kind := kinds.get(Path(image).suffix.lower())):
        data = Path(image).read_bytes()
    else:
        kind, buffer = "jpeg", io.BytesIO()
        load_picture(image).save(buffer, "JPEG", quality=95)
        data = buffer.getvalue()
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"


def _seconds(retry_after: str | None, now: datetime) -> float | None:
    """The wait that a Retry-After header asks for: seconds or an HTTP date (RFC 9110, section 10.2.3)."""
    text = (retry_after or "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", text, re.ASCII):
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds())


def _reason(text: str) -> str:
    """What an error reply says, without the JSON around it."""
    try:
        found = json.loads(text)
    except ValueError:
        return text[:300]
    for key in ("error", "message", "detail"):
        if isinstance(found, dict) and found.get(key):
            found = found[key]
    return str(found)[:300]


def _positions(choice: Mapping[str, Any]) -> list[tuple[str, Top]]:
    """The token that was written at each position, and the log-probability of each one reported there; none where the
    server reports nothing or in another form."""
    try:
        positions = choice["logprobs"]["content"]
        found: list[tuple[str, Top]] = [
            (p["token"], {t["token"]: float(t["logprob"]) for t in [*(p["top_logprobs"] or []), p]}) for p in positions
        ]
    except (LookupError, TypeError, ValueError):
        return []
    for _, top in found:
        sure = sum(math.exp(min(value, 1.0)) for value in top.values())
        if not all(isinstance(token, str) for token in top) or not sure < 1.01:  # no log-probabilities at all
            return []
    return found


def _behind(start: str, positions: list[tuple[str, Top]]) -> list[tuple[str, Top]]:
    """The positions behind `start`, which the server wrote by itself; all of them where it wrote something else."""
    text, wanted = "", start.strip()
    for n, (token, _) in enumerate(positions):
        if text.strip() == wanted:
            return positions[n:]
        text += token
    return [] if text.strip() == wanted else positions


def _share(
    text: str,
    probability: float,
    following: Mapping[str, float],
    choices: Sequence[str],
    settled: dict[str, float],
    growing: dict[str, float],
) -> None:
    """Share out the probability of `text` by the tokens `following` it (probability of each): to choices, which it is
    added to in `settled`, and to texts that may grow into longer choices, in `growing`.

    Blanks in front do not count. A text that is a choice keeps all that does not lead to a longer one.
    """
    grown = {text + token: probability * p for token, p in following.items() if token}
    offered = {new.lstrip() for new in grown}
    kept = probability if text.lstrip() in choices else 0.0
    for new, p in grown.items():
        begun = new.lstrip()
        longer = [c for c in choices if len(c) > len(begun) and c.startswith(begun)]
        if longer and not (begun in choices and offered.issuperset(longer)):
            growing[new] = growing.get(new, 0.0) + p
        elif (choice := _longest(begun, choices)) and choice != text.lstrip():
            settled[choice] += p
        else:
            continue
        kept -= p
    if kept > 0 and text.lstrip() in choices:
        settled[text.lstrip()] += kept


def _longest(text: str, choices: Sequence[str]) -> str | None:
    """The longest choice that the text begins with."""
    return max((c for c in choices if text.startswith(c)), key=len, default=None)
