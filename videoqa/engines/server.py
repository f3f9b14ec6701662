"""A language or vision model behind an OpenAI-compatible endpoint: vllm serve, TGI, Inference Providers, and others.

    ServerEngine("meta-llama/Llama-3.1-8B-Instruct", "http://127.0.0.1:8000/v1")

Up to `concurrency` rows are on their way at once. A server is tried before its first row (probe.py): what it takes,
what it gives and who it is stands in `settings`. What fails is the error of its row (endpoint.py); the run ends where
no row can succeed, where many in a row fail alike, and where another model answers than the one that was tried.
"""

from __future__ import annotations

import base64
import io
import math
import os
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from videoqa.engines import ChoiceLogprobs, Conversation, Reply
from videoqa.engines.chat import chat_template as read_template
from videoqa.engines.chat import cuts_in, defuse, load_picture, parts
from videoqa.engines.choices import drawn, is_whole, longest, share, tenths_of
from videoqa.engines.completion import Completion, Top, positions_of
from videoqa.engines.endpoint import Endpoint, EndpointError, RowError, checked_key, completions_url
from videoqa.engines.probe import Probed, alive, probe
from videoqa.engines.streak import FEW, MANY, Streak
from videoqa.errors import UserError
from videoqa.files import reckonable

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

# The models behind a server are not known here: control tokens are known by their usual forms. <|im_end|>,
# <｜end▁of▁sentence｜> and the half-open <|turn>; words between angles; words between brackets; Llama 2's <<SYS>>.
CONTROL = re.compile(
    r"<[|｜¦│∣][^\s<>]{1,60}>|<[^\s<>]{1,60}[|｜¦│∣]>"
    r"|</?(?:s|bos|eos|sop|eop|eod|eot|eom|pad|unk|mask|cls|sep|bot|user|human|assistant|system|observation|sys|img"
    r"|image|video|audio|(?:start|begin|end)(?:_of)?_\w{1,40}|(?:extra_id|unused|reserved|fim|im)_?\w{1,40}"
    r"|\w{1,20}:\w{1,40})>"
    r"|<</?SYS>>|\[/?(?:INST|[gs]?MASK|BOS|EOS|CLS|SEP|PAD|UNK|IMG|THINK|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS"
    r"|TOOL_RESULTS|TOOL_CONTENT|ARGS|MODEL_SETTINGS)\]",
    re.I,
)
NEGLIGIBLE = 1e-3  # a beginning less probable than this is not followed into longer choices
ROOM = 3  # tokens behind a choice, which show whether it is whole: "/10", ".5"


class ServerEngine:
    """`base_url` ends in /v1 as a rule. The key is `api_key` or the environment variable `api_key_variable`; none is
    sent where both are empty.

    `can_force`: the server continues a last assistant message (vLLM and TGI do). None: used where it does, which is
    tried; True: a server that does not is refused. Without it `start` is not sent and a reply is what the server wrote.
    `timeout` is in seconds without a byte, `tries` counts the first one, `wait` is the first wait in seconds and
    doubles. `extra` goes into every request, such as {"chat_template_kwargs": {"enable_thinking": False}}; a field
    that is None there is left out. `chat_template` (a file) and `thinking` are two such fields, as vLLM takes them.
    """

    def __init__(
        self,
        model: str,
        base_url: str,
        *,
        api_key: str | None = None,
        api_key_variable: str = "OPENAI_API_KEY",
        can_force: bool | None = None,
        concurrency: int = 16,
        timeout: float = 120.0,
        tries: int = 6,
        wait: float = 1.0,
        extra: Mapping[str, Any] | None = None,
        chat_template: str | None = None,
        thinking: bool | None = None,
    ) -> None:
        key = checked_key(api_key or os.environ.get(api_key_variable, ""))
        endpoint = Endpoint(completions_url(base_url), model, key, timeout, tries, wait)
        self._begin(endpoint, model, can_force, concurrency, extra)
        if chat_template is not None:
            self._extra["chat_template"] = read_template(chat_template)
        if thinking is not None:
            arguments = {**self._extra.get("chat_template_kwargs", {}), "enable_thinking": thinking}
            self._extra["chat_template_kwargs"] = arguments
        self._thinking = bool(thinking)

    def _begin(
        self,
        endpoint: Endpoint,
        model: str,
        can_force: bool | None,
        concurrency: int,
        extra: Mapping[str, Any] | None,
    ) -> None:
        """What engines have in common that reach their model through an endpoint of some kind."""
        if not isinstance(concurrency, int) or concurrency < 1:
            raise UserError(f"concurrency must be a whole number of at least 1, not {concurrency!r}")
        if not isinstance(can_force, bool | None) or not isinstance(extra or {}, Mapping):
            raise UserError(f"can_force is true or false and extra a JSON object, not {can_force!r} and {extra!r}")
        if not reckonable(extra or {}):
            raise UserError("extra holds a number that is none (NaN, Infinity or one of hundreds of digits)")
        self._endpoint = endpoint
        self._concurrency, self._wants_force, self._extra = concurrency, can_force, dict(extra or {})
        self._thinking = False
        self._streak = Streak()
        self.name = model

    # -- what the server is, tried at the first use -------------------------------------------------------------------

    @cached_property
    def _probed(self) -> Probed:
        from anyio.from_thread import start_blocking_portal

        async def tried() -> Probed:
            async with self._endpoint.client(1) as client:
                return await probe(self._endpoint, client, self.name, self._wants_force, self._extra)

        with start_blocking_portal() as portal:
            return portal.call(tried)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What moves this server's numbers: who it is, what it takes, how its probabilities are read."""
        return self._probed.settings

    @cached_property
    def can_choose(self) -> bool:
        """It gives log-probabilities."""
        return not self._thinking and self._probed.manner.top is not None

    @cached_property
    def can_force(self) -> bool:
        """It continues a forced start."""
        return not self._thinking and self._probed.manner.forced

    @property
    def can_follow(self) -> bool:
        """What comes behind each number is asked for, by a request that forces the number. Else what comes behind the
        greedy reply's number alone is known, and "85" of another reply counts as 8."""
        return self.can_force

    # -- rows ---------------------------------------------------------------------------------------------------------

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
            reply = await self._ask(client, conversations[row], start, options)
            if fault := reply.fault:
                raise RowError(fault, own=reply.finish == "content_filter")
            text = self._endpoint.kept(reply.text or reply.refusal)
            refused = bool(reply.refusal) and not reply.text
            cuts = cuts_in(text, stop)
            text = text[: min(cuts)] if cuts else text
            return Reply(
                text=(start if self.can_force and not refused else "") + text,
                finished=bool(cuts) or not reply.cut,
                prompt_tokens=reply.prompt_tokens,
                new_tokens=reply.new_tokens,
                refusal=refused,
            )

        return self._rows(len(conversations), ask, lambda error: Reply(None, error))

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
        not. A number, or a beginning that longer choices share ("1" of "10"), is split by the next position: free where
        the greedy reply goes through it, by one more request where the start can be forced. Else a number counts as
        whole, and a beginning for no choice: the mass is that much lower, unless the longer choices were themselves
        reported as tokens.
        Without a forced start the condition is that the reply began with `start` as the server wrote it by itself (or
        with the choice at once); one that makes something else of its choice ("8.5", "1. The reference") offers none.
        """
        if not self.can_choose:
            raise UserError(f"{self.name} at {self._endpoint.address} gives no probabilities: read its text instead")

        async def ask(client: httpx.AsyncClient, row: int) -> ChoiceLogprobs:
            return await self._choose(client, conversations[row], choices, start, temperature, top_p)

        return self._rows(len(conversations), ask, lambda error: ChoiceLogprobs(None, error))

    # -- many rows at once ------------------------------------------------------------------------------------------

    def _rows(
        self,
        count: int,
        ask: Callable[[httpx.AsyncClient, int], Awaitable[T]],
        failed: Callable[[str], T],
    ) -> Iterator[tuple[int, T]]:
        """What `ask` gives for each row, as it comes, or what `failed` makes of its error. The requests run in a thread
        with its own event loop; leaving the iterator early (an error, Ctrl-C) cancels those on their way."""
        import anyio
        from anyio.from_thread import start_blocking_portal

        if not count:
            return
        probed = self._probed  # before the first row
        results: SimpleQueue[tuple[int, T | RowError] | Exception | None] = SimpleQueue()
        rows = iter(range(count))

        async def work(client: httpx.AsyncClient) -> None:
            for row in rows:
                try:
                    results.put((row, await ask(client, row)))
                except RowError as error:
                    results.put((row, error))
                except Exception as error:  # by itself, and not in an ExceptionGroup
                    results.put(error)
                    return

        async def run() -> None:
            async with self._endpoint.client(self._concurrency) as client, anyio.create_task_group() as group:
                for _ in range(min(self._concurrency, count)):
                    group.start_soon(work, client)

        async def answers() -> bool:
            async with self._endpoint.client(1) as client:
                return await alive(self._endpoint, client, self.name, probed)

        with start_blocking_portal() as portal:
            running = portal.start_task_soon(run)
            running.add_done_callback(lambda _: results.put(None))
            try:
                while (result := results.get()) is not None:
                    if isinstance(result, Exception):
                        raise result
                    row, found = result
                    if not isinstance(found, RowError):
                        self._streak.count(None)
                        yield row, found
                        continue
                    error = self._endpoint.excerpt(str(found), 600)
                    yield row, failed(error)
                    if found.own:
                        continue
                    alike = self._streak.count(error)
                    if alike >= MANY or (alike % FEW == 0 and not portal.call(answers)):
                        raise EndpointError(f"{self._endpoint.address}: {self._streak.told}")
                running.result()
            finally:
                running.cancel()

    async def _ask(
        self, client: httpx.AsyncClient, conversation: Conversation, start: str, options: Mapping[str, Any]
    ) -> Completion:
        """The reply to one row, from the model that was tried."""
        import anyio

        try:  # images are read and packed beside the loop, which goes on
            body = await anyio.to_thread.run_sync(self._body, conversation, start, options)
        except (OSError, ValueError) as error:
            raise RowError(str(error)) from error
        other: str | None = ""
        for _ in range(self._endpoint.tries):
            reply = await self._endpoint.ask(client, body)
            if (other := self._probed.other(reply)) is None:
                return reply
            if self._probed.model != (reply.model or self._probed.model):
                raise EndpointError(
                    f"{self._endpoint.address} now answers as {self._endpoint.excerpt(other)}: a result of two models "
                    "is none. What came before is kept"
                )
        raise RowError(f"another configuration answers: {other}")  # some services have several, and take turns

    def _body(self, conversation: Conversation, start: str, options: Mapping[str, Any]) -> bytes:
        messages = [{**m, "content": _content(m)} for m in conversation]
        return self._probed.manner.body(self.name, messages, start, options)

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
        most = max(map(len, choices))
        # room for a blank before the choice, for a start that is not forced and what shows that the choice is whole
        room = most + 1 + (0 if self.can_force else len(start) + ROOM)
        reply, positions = await self._ask_top(client, conversation, start, room)
        if not self.can_force:
            positions = _behind(start, positions)
            if not _said_whole(start, reply.text or "", choices):
                return ChoiceLogprobs(dict.fromkeys(choices, -math.inf), None, reply.prompt_tokens)
        settled: dict[str, float] = defaultdict(float)
        growing, path = {"": 1.0}, ""
        # a number may always grow: "8.5" is not 8, also where it is no choice
        longer = [*choices, *tenths_of(choices)] if self.can_force else choices
        for token, top in positions:
            if path not in growing:
                break
            share(path, growing.pop(path), drawn(top, temperature, top_p), longer, settled, growing)
            path += token
        for _ in range(most if self.can_force else 0):
            # a text that ends in a blank cannot be forced: many templates strip it
            for begun in [t for t, p in growing.items() if t.strip() and p > NEGLIGIBLE]:
                forced = (start.rstrip() if begun[0].isspace() else start) + begun
                _, next_ones = await self._ask_top(client, conversation, forced, 1)
                probability = growing.pop(begun)
                share(begun, probability, drawn(next_ones[0][1], temperature, top_p), longer, settled, growing)
        for begun, probability in growing.items():
            if probability <= NEGLIGIBLE and begun.strip() in choices:
                settled[begun.strip()] += probability
        logprobs = {c: math.log(p) if (p := settled.get(c, 0.0)) > 0 else -math.inf for c in choices}
        return ChoiceLogprobs(logprobs, None, reply.prompt_tokens)

    async def _ask_top(
        self, client: httpx.AsyncClient, conversation: Conversation, start: str, max_tokens: int
    ) -> tuple[Completion, list[tuple[str, Top]]]:
        """A greedy reply and its positions: at least one."""
        options = {"max_tokens": max_tokens, "temperature": 0.0, "logprobs": True}
        reply = await self._ask(client, conversation, start, options | {"top_logprobs": self._probed.manner.top})
        if fault := reply.ending_fault or (reply.fault if reply.thinking else None):
            raise RowError(fault, own=reply.finish == "content_filter")
        if reply.refusal:
            raise RowError(f"the model refused: {self._endpoint.excerpt(reply.refusal)}", own=True)
        try:
            positions = positions_of(reply)
        except ValueError as error:
            raise RowError(str(error)) from error
        if positions is None:
            raise RowError("no log-probabilities came with this reply")
        return reply, positions


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


def _said_whole(start: str, text: str, choices: Sequence[str]) -> bool:
    """Whether the choice that a text of the server's own begins with, behind `start`, is what it says."""
    label = start.strip()
    labelled = bool(label) and text.lstrip().startswith(label)
    said = text.lstrip().removeprefix(label).lstrip()
    choice = longest(said, choices)
    return choice is None or is_whole(choice, said[len(choice) :], choices, labelled)


def _behind(start: str, positions: list[tuple[str, Top]]) -> list[tuple[str, Top]]:
    """The positions behind `start`, which the server wrote by itself; all of them where it wrote something else."""
    text, wanted = "", start.strip()
    for n, (token, _) in enumerate(positions):
        if text.strip() == wanted:
            return positions[n:]
        text += token
    return [] if text.strip() == wanted else positions
