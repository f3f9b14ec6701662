"""A model of any provider that the library litellm knows, asked as a server is asked.

    LitellmEngine("anthropic/claude-sonnet-4-5")    the key stands where litellm looks for it: ANTHROPIC_API_KEY

The library takes the place of the HTTP connection and of nothing else: what it gives, or raises, is read by endpoint.py
as a server's reply is, so that retries, limits, errors, what must not leak and the tries before the first row are the
same. An OpenAI-compatible endpoint is better asked as server:NAME@URL: litellm says "stop" where a reply gives no
reason for its end.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any

from videoqa.engines import is_secret
from videoqa.engines.completion import ENDED, Completion
from videoqa.engines.endpoint import MOST_BYTES, PART, WHOLE, Endpoint, Passing, RowError, checked_key, completions_url
from videoqa.engines.server import ServerEngine

# How its errors begin: "litellm.BadRequestError: AnthropicException - ", perhaps twice
NAMED = re.compile(r"^(?:\s*(?:litellm\.)?\w*(?:Error|Exception|Timeout)\s*(?::|-)\s*)+")


class LitellmEngine(ServerEngine):
    """`model` is a name of litellm's, PROVIDER/ID. `api_key_variable` names the environment variable of the key where
    it is not the provider's usual one; `base_url` is the provider's address where it is another one. The rest is as
    ServerEngine has it; `extra` are further arguments of litellm's completion."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key_variable: str | None = None,
        can_force: bool | None = None,
        concurrency: int = 16,
        timeout: float = 120.0,
        tries: int = 6,
        wait: float = 1.0,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        key = checked_key(os.environ.get(api_key_variable, "")) if api_key_variable else ""
        endpoint = LitellmEndpoint(model, base_url, key, timeout, tries, wait)
        self._begin(endpoint, model, can_force, concurrency, extra)


class LitellmEndpoint(Endpoint):
    """The library in the place of an address."""

    kind = "litellm"

    def __init__(self, model: str, base_url: str | None, key: str, timeout: float, tries: int, wait: float) -> None:
        url = completions_url(base_url or "http://litellm")  # checked; without an address of its own it names nothing
        super().__init__(url, model, key, timeout, tries, wait)
        self._base_url = base_url

    @property
    def address(self) -> str:
        """The provider, or its address where one was given."""
        return f"{super().address if self._base_url else self._model.partition('/')[0]} through litellm"

    @contextlib.asynccontextmanager
    async def client(self, connections: int) -> AsyncIterator[Any]:  # type: ignore[override]
        """The library, which keeps its own connections."""
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it fetches a list of prices
        import litellm

        litellm.suppress_debug_info = True
        logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)  # what it has to say is in its errors
        # whichever variable it takes its key from
        secrets = [value for name, value in os.environ.items() if len(value) >= PART and is_secret(name, value)]
        self._hide(self._key, *secrets)
        yield litellm

    async def models(self, client: Any) -> list[dict[str, Any]]:
        """Nothing: the library has no such question."""
        return []

    async def _once(self, client: Any, body: bytes) -> Completion:
        import anyio

        asked = json.loads(_whole_characters(body))
        own = {"timeout": self.timeout, "num_retries": 0, "max_retries": 0}
        places = {"api_base": self._base_url, "api_key": self._key or None}
        given = {name: place for name, place in places.items() if place}
        now = datetime.now(UTC)
        try:
            with anyio.fail_after(WHOLE * self.timeout):
                reply = await client.acompletion(**{**asked, **given, **own})
        except TimeoutError as error:
            raise Passing(f"no whole reply within {WHOLE * self.timeout:g} s") from error
        except Exception as error:  # the library's own, and those of the many clients below it
            if type(error).__name__ == "Timeout":
                raise Passing(f"no reply within {self.timeout:g} s") from error
            status, after, data = refusal(error)
            return self.read(status, after, data, now)
        data = json.dumps(with_own_endings(reply.model_dump(warnings=False)), default=str).encode()
        if len(data) > MOST_BYTES:
            raise RowError(f"the reply is larger than {MOST_BYTES >> 20} MiB")
        return self.read(200, None, data, now)


def with_own_endings(reply: dict[str, Any]) -> dict[str, Any]:
    """The reply with the provider's own reason for its end where litellm made "stop" of one that is none: "error"."""
    for choice in reply.get("choices") or ():
        own = (choice.get("provider_specific_fields") or {}).get("native_finish_reason")
        if isinstance(own, str) and choice.get("finish_reason") == "stop" and own.lower() not in ENDED | {"complete"}:
            choice["finish_reason"] = own
    return reply


def refusal(error: Exception) -> tuple[int, str | None, bytes]:
    """Status, Retry-After and body of the HTTP reply that an error of litellm's stands for; 500 where it has none."""
    status = getattr(error, "status_code", None)
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    inner = getattr(error, "body", None)
    message = str(getattr(error, "message", "") or error).partition("Traceback (most recent")[0]
    told = {"message": NAMED.sub("", message).strip() or type(error).__name__}
    for name in ("code", "type", "param"):
        value = inner.get(name) if isinstance(inner, dict) else getattr(error, name, None)
        if isinstance(value, str):
            told[name] = value
    code = status if isinstance(status, int) and 400 <= status < 600 else 500
    return code, headers.get("retry-after"), json.dumps({"error": told}).encode()


def _whole_characters(body: bytes) -> str:
    """The JSON text with half characters replaced: no client below the library could send them."""
    escaped = json.dumps(json.loads(body), ensure_ascii=False)
    return escaped.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
