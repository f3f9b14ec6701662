"""What answers cost: tokens, seconds, and money where prices are given.

    RUN/answers.jsonl: {"id": ..., "prompt_tokens": 412, "new_tokens": 9, "seconds": 0.31, ...}

Tokens are those of all turns of a row, as the engine or its server counts them. `seconds` is the time since the answer
before it, or since the asking began, so that the rows add up to the time of the whole; rows of one batch come together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from videoqa.errors import UserError


def usage_of(lines: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The sums over answer lines; None where none of them has any (a run from before they were kept, or imported)."""
    told = [line for line in lines if "seconds" in line or "new_tokens" in line]
    if not told:
        return None
    return {
        "rows": len(told),
        "prompt_tokens": sum(line.get("prompt_tokens", 0) for line in told),
        "new_tokens": sum(line.get("new_tokens", 0) for line in told),
        "seconds": round(math.fsum(line.get("seconds", 0.0) for line in told), 3),
    }


def prices_of(text: str) -> tuple[float, float]:
    """The prices in "0.15,0.6", of a million tokens read and written. Raises UserError."""
    try:
        read, written = (float(part) for part in text.split(","))
    except ValueError:
        raise UserError(f"--price {text}: two numbers are needed, as in 0.15,0.6") from None
    if not (0 <= read < math.inf and 0 <= written < math.inf):
        raise UserError(f"--price {text}: prices are at least 0")
    return read, written


def cost(usage: Mapping[str, Any], prices: tuple[float, float]) -> float | None:
    """What the tokens cost; None where they are not known."""
    if not usage["prompt_tokens"]:
        return None
    return (usage["prompt_tokens"] * prices[0] + usage["new_tokens"] * prices[1]) / 1e6


def said(usage: Mapping[str, Any], prices: tuple[float, float] | None = None) -> str:
    """In words, for people; `prices` are those of a million tokens read and written."""
    rows, read, written = usage["rows"], usage["prompt_tokens"], usage["new_tokens"]
    tokens = f"{read:,} tokens read and {written:,} written" if read or written else "tokens not told"
    text = f"{rows:,} answers: {tokens}, {usage['seconds']:,.1f} s ({usage['seconds'] / rows:.2f} s each)"
    if prices is None:
        return text
    money = cost(usage, prices)
    if money is None:
        return f"{text}; no tokens, no price"
    return f"{text}; {money:,.4f} at {prices[0]:g} and {prices[1]:g} a million"
