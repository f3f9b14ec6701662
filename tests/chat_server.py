"""A chat completion endpoint on loopback that answers, and fails, by script. Tests start it and point an engine at it.

    with ChatServer(lambda ask: Answer("7")) as server:
        engine = ServerEngine("judge", server.url)

The script is a function from an `Ask` (the request, and how often this conversation came before) to an `Answer`. The
small requests by which an engine tries a server are answered beside it, as the `Manners` say.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from videoqa.engines.probe import BEGUN, QUESTION

Positions = Sequence[tuple[str, Mapping[str, float]]]  # token written, log-probability of each token reported


@dataclass(frozen=True)
class Ask:
    """One request. `text` is the last user message's text, `attempt` counts earlier requests with that text."""

    body: dict[str, Any]
    headers: dict[str, str]
    text: str
    attempt: int
    time: float  # seconds, time.monotonic()


@dataclass(frozen=True)
class Answer:
    """What the server does. `fault`: "hang" (no reply while the server runs), "cut" (the connection ends in the middle
    of the body), "truncated" (half of the JSON), "drip" (a byte now and then, for ever), "" (none). `message`, `reply`
    and `choice` change what is sent there; `body` is sent as it stands."""

    text: str | None = "7"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    positions: Positions | None = None
    finish: str | None = "stop"
    fault: str = ""
    message: Mapping[str, Any] = field(default_factory=dict)
    reply: Mapping[str, Any] = field(default_factory=dict)
    choice: Mapping[str, Any] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(frozen=True)
class Manners:
    """What a server is. `refuses` holds the message (status 400) for each field that it does not take; a message of
    None: unknown fields are not named."""

    continues: bool = True  # a forced start
    top: int = 20  # log-probabilities that come at most; 0: none
    sees_system: bool = True
    refuses: Mapping[str, str | None] = field(default_factory=dict)
    models: Sequence[Mapping[str, Any]] | None = None  # None: there is no such page
    reply: Mapping[str, Any] = field(default_factory=dict)  # what every reply holds besides: model, system_fingerprint


Script = Callable[[Ask], Answer]

FAULTS = (
    Answer("slow down", 429, {"Retry-After": "0"}),
    Answer("oops", 500),
    Answer(fault="hang"),
    Answer(fault="cut"),
    Answer(fault="truncated"),
    Answer("bad gateway", 502),
    Answer("overloaded", 503),
    Answer("gateway timed out", 504),
)


def with_faults(script: Script, every: int = 5) -> Script:
    """One in `every` conversations fails once, each in another way, and is then answered. Texts end in a number."""

    def answer(ask: Ask) -> Answer:
        row = int(ask.text.split()[-1])
        if row % every == 0 and ask.attempt == 0:
            return FAULTS[row // every % len(FAULTS)]
        return script(ask)

    return answer


class ChatServer:
    """`url` is the base URL, `asks` every request in order of arrival but for the `probes`, by which an engine tries
    the server; `most_at_once` is the greatest concurrency seen. With `probed` a script answers those as well."""

    def __init__(self, script: Script, manners: Manners = Manners(), probed: Script | None = None) -> None:
        self.asks: list[Ask] = []
        self.probes: list[Ask] = []
        self._manners, self._probed = manners, probed
        self.most_at_once = 0
        self._script, self._at_once = script, 0
        self._seen: Counter[str] = Counter()
        self._lock, self._closing = threading.Lock(), threading.Event()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> ChatServer:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        chat = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                models = chat._manners.models
                found = self.path == "/v1/models" and models is not None
                listed = json.dumps({"object": "list", "data": list(models or ())}).encode()
                chat._send(self, {}, Answer(body=listed) if found else Answer("no such page", 404))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path != "/v1/chat/completions":
                    chat._send(self, body, Answer("no such page", 404))
                    return
                text = _last_text(body)
                if text.endswith(QUESTION):
                    ask = Ask(body, dict(self.headers), text, len(chat.probes), time.monotonic())
                    chat.probes.append(ask)
                    chat._send(self, body, chat._probed(ask) if chat._probed else probe_answer(ask, chat._manners))
                    return
                with chat._lock:
                    chat._at_once += 1
                    chat.most_at_once = max(chat.most_at_once, chat._at_once)
                    ask = Ask(body, dict(self.headers), text, chat._seen[text], time.monotonic())
                    chat._seen[text] += 1
                    chat.asks.append(ask)
                try:
                    answer = chat._script(ask)
                finally:
                    with chat._lock:
                        chat._at_once -= 1
                chat._send(self, body, answer)

            def log_message(self, format: str, *args: Any) -> None:
                """Silent: what came is in `asks`."""

        return Handler

    def _send(self, handler: BaseHTTPRequestHandler, body: dict[str, Any], answer: Answer) -> None:
        if answer.fault == "hang":
            self._closing.wait()
            return
        data = json.dumps(_reply(body, answer, self._manners)).encode() if answer.body is None else answer.body
        if answer.fault == "truncated":
            data = data[: len(data) // 2]
        handler.send_response(answer.status)
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        if answer.fault == "drip":
            while not self._closing.wait(0.02):
                handler.wfile.write(b" ")
                handler.wfile.flush()
            return
        handler.wfile.write(data[: len(data) // 2] if answer.fault == "cut" else data)
        handler.close_connection = handler.close_connection or answer.fault == "cut"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Silent: a client that gave up is part of the tests."""


def _last_text(body: Mapping[str, Any]) -> str:
    content = next(m["content"] for m in reversed(body["messages"]) if m["role"] == "user")
    return content if isinstance(content, str) else "\n".join(p["text"] for p in content if p["type"] == "text")


def probe_answer(ask: Ask, manners: Manners) -> Answer:
    """What a server of these manners answers to the requests that try it."""
    body = ask.body
    for name, refusal in manners.refuses.items():
        if name in body:
            return Answer(refusal or "unknown field", 400)
    if body.get("top_logprobs", 0) > manners.top:
        return Answer(f"`top_n_tokens` must be >= 0 and <= {manners.top}", 422)
    system = body["messages"][0]["content"] if manners.sees_system or body["messages"][0]["role"] == "user" else ""
    usage = {"usage": {"prompt_tokens": 11 + len(system.split()), "completion_tokens": 3}}
    begun = body["messages"][-1]["content"]
    if body["messages"][-1]["role"] == "assistant" and manners.continues:
        return Answer(dict(BEGUN)[begun] + ", Friday", reply=usage)
    top = {"Mon": -0.1, **{f"t{n}": -6.0 - n for n in range(19)}}
    return Answer("Monday, Tuesday", positions=[("Mon", top)], reply=usage)


def _reply(body: Mapping[str, Any], answer: Answer, manners: Manners) -> dict[str, Any]:
    if answer.status != 200:
        return {"error": {"message": answer.text, "code": answer.status}}
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": answer.text, **answer.message},
        "finish_reason": answer.finish,
        "logprobs": None,
        **answer.choice,
    }
    if answer.positions is not None and body.get("logprobs"):
        most = body.get("top_logprobs", 0)
        choice["logprobs"] = {
            "content": [
                {
                    "token": token,
                    "logprob": top.get(token, -30.0),
                    "top_logprobs": [
                        {"token": t, "logprob": p} for t, p in sorted(top.items(), key=lambda e: -e[1])[:most]
                    ],
                }
                for token, top in answer.positions[: body.get("max_tokens")]
            ]
        }
    usage = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}
    reply = {"object": "chat.completion", "model": body["model"], "choices": [choice], "usage": usage}
    return reply | dict(manners.reply) | dict(answer.reply)
