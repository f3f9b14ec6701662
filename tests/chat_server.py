"""A chat completion endpoint on loopback that answers, and fails, by script. Tests start it and point an engine at it.

    with ChatServer(lambda ask: Answer("7")) as server:
        engine = ServerEngine("judge", server.url)

The script is a function from an `Ask` (the request, and how often this conversation came before) to an `Answer`.
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
    of the body), "truncated" (half of the JSON), "" (none)."""

    text: str | None = "7"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    positions: Positions | None = None
    finish: str = "stop"
    fault: str = ""


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
    """`url` is the base URL, `asks` every request in order of arrival, `most_at_once` the greatest concurrency seen."""

    def __init__(self, script: Script) -> None:
        self.asks: list[Ask] = []
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

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path != "/v1/chat/completions":
                    chat._send(self, body, Answer("no such page", 404))
                    return
                with chat._lock:
                    chat._at_once += 1
                    chat.most_at_once = max(chat.most_at_once, chat._at_once)
                    text = _last_text(body)
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
        data = json.dumps(_reply(body, answer)).encode()
        if answer.fault == "truncated":
            data = data[: len(data) // 2]
        handler.send_response(answer.status)
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
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


def _reply(body: Mapping[str, Any], answer: Answer) -> dict[str, Any]:
    if answer.status != 200:
        return {"error": {"message": answer.text, "code": answer.status}}
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": answer.text},
        "finish_reason": answer.finish,
        "logprobs": None,
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
                for token, top in answer.positions[: body["max_tokens"]]
            ]
        }
    usage = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}
    return {"object": "chat.completion", "model": body["model"], "choices": [choice], "usage": usage}
