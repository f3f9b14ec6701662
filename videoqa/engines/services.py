"""Services that speak OpenAI's protocol and are known by name: server.py with an address and the place of a key.

openai:gpt-5-mini            server:gpt-5-mini@https://api.openai.com/v1
hf:Qwen/Qwen3-8B             server:Qwen/Qwen3-8B@https://router.huggingface.co/v1: whoever of the Hub's Inference
                             Providers answers first answers the whole run
hf:Qwen/Qwen3-8B:together    this one of them
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from videoqa.errors import UserError


@dataclass(frozen=True, slots=True)
class Service:
    """Where a service is and how a user is known to it."""

    address: Callable[[], str]  # the base URL
    key: str  # the environment variable of the key
    stored: Callable[[], str | None]  # the key, from there or where a login has put it
    advice: str  # how one comes to a key

    def found_key(self) -> str:
        """The key. Raises UserError where there is none: no row can succeed then."""
        if not (key := (self.stored() or "").strip()):
            raise UserError(
                f"no key for {self.address()}: {self.advice}, or name another environment variable with "
                "?api_key_variable=..."
            )
        return key


def _openai() -> str:
    return os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"  # the variable of OpenAI's own client


def _router() -> str:
    from huggingface_hub import constants

    return constants.INFERENCE_PROXY_TEMPLATE.format(provider="v1")


def _openai_key() -> str | None:
    return os.environ.get("OPENAI_API_KEY")


def _hub_token() -> str | None:
    from huggingface_hub import get_token

    return get_token()


SERVICES = {
    "openai": Service(_openai, "OPENAI_API_KEY", _openai_key, "put it into OPENAI_API_KEY"),
    "hf": Service(_router, "HF_TOKEN", _hub_token, "log in with `hf auth login`, put a token into HF_TOKEN"),
}
