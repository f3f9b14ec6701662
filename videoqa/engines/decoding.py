"""From logits to tokens and probabilities, for the engine that has the logits in this process."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from videoqa.engines.choices import SEEN, Behind, Choices, Path

NOT_A_NUMBER = "the model gave NaN or infinity instead of probabilities"
HEAD_ROWS = 16_384  # of the vocabulary that are in float32 at a time


@dataclass(frozen=True, slots=True)
class Decoding:
    """How replies are decoded; see Engine.generate."""

    max_new_tokens: int
    temperature: float
    top_p: float
    seed: int
    start: str
    stop: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Choosing:
    """Which choices are weighed and how; see Engine.choice_logprobs."""

    choices: tuple[str, ...]
    start: str
    temperature: float
    top_p: float


def rounds(model: Any) -> bool:
    """Whether the model's last layer gives logits of few digits, which `exact_head` betters. (A layer that is packed in
    fewer bits, or that lies elsewhere until it is needed, is left as it is.)"""
    import torch

    head = model.get_output_embeddings()
    return (
        isinstance(head, torch.nn.Linear)
        and head.weight.dtype in (torch.bfloat16, torch.float16)
        and head.weight.device.type != "meta"
    )


@contextlib.contextmanager
def exact_head(model: Any) -> Iterator[None]:
    """Inside, the model's last layer is computed in float32, from the same weights.

    In bfloat16 a logit of 16 to 32 is rounded to 1/8, so that the best two of five letters are exactly alike in one row
    of ten, and which is better is lost. What stands before that layer keeps its dtype.
    """
    import torch

    if not rounds(model):
        yield
        return

    def in_float32(head: Any, inputs: tuple[Any, ...], _: Any) -> Any:
        hidden = inputs[0].float()
        bias = head.bias.float().split(HEAD_ROWS) if head.bias is not None else None
        parts = [
            torch.nn.functional.linear(hidden, rows.float(), None if bias is None else bias[k])
            for k, rows in enumerate(head.weight.split(HEAD_ROWS))
        ]
        return torch.cat(parts, dim=-1)

    hook = model.get_output_embeddings().register_forward_hook(in_float32)
    try:
        yield
    finally:
        hook.remove()


def unusable(logits: Any) -> Any:
    """(rows,): True where nothing can be read: a NaN, a +inf, or no token that is possible. (A single -inf is a token
    that the model rules out.)"""
    return ~logits.amax(-1).isfinite()


def nucleus(logits: Any, temperature: float, top_p: float) -> tuple[Any, Any]:
    """Probabilities at `temperature` in falling order with 0 outside the top_p part, and the tokens in that order. The
    token that reaches top_p is the last one in."""
    import torch

    probabilities, order = torch.softmax(logits / temperature, dim=-1).sort(dim=-1, descending=True)
    inside = probabilities.cumsum(-1) - probabilities < top_p
    return probabilities * inside, order


def log_probabilities(logits: Any, temperature: float, top_p: float) -> Any:
    """(rows, vocabulary): log-probability of each token when drawn from the top_p part."""
    import torch

    if top_p >= 1:
        return torch.log_softmax(logits / temperature, dim=-1)
    kept, order = nucleus(logits, temperature, top_p)
    return torch.zeros_like(kept).scatter(-1, order, kept / kept.sum(-1, keepdim=True)).log()


def pick(logits: Any, temperature: float, top_p: float, random: list[Any]) -> Any:
    """The next token of each row, (rows,) on the CPU: the most likely, or drawn from the top_p part."""
    import torch

    if temperature == 0:
        return logits.argmax(-1).cpu()
    kept, order = nucleus(logits, temperature, top_p)
    sums = kept.cumsum(-1)
    draws = torch.cat([torch.rand(1, generator=g) for g in random]).to(sums.device)[:, None] * sums[:, -1:]
    place = (sums <= draws).sum(-1, keepdim=True)
    last = (kept > 0).sum(-1, keepdim=True) - 1  # a draw may be rounded up to the whole sum
    return order.gather(-1, place.minimum(last))[:, 0].cpu()


def next_chances(logits: Any, choices: Choices, beginning: Path, how: Choosing) -> list[Behind | None]:
    """What comes behind a beginning, for each row of (rows, vocabulary); None for a row whose numbers are not
    usable."""
    import torch

    logprobs = log_probabilities(logits, how.temperature, how.top_p)
    most = logprobs.nan_to_num(-math.inf).topk(min(SEEN, logprobs.shape[-1]), dim=-1).indices
    mine = torch.tensor(choices.steps[beginning], dtype=torch.long, device=most.device).expand(len(logprobs), -1)
    seen = torch.cat([mine, most], dim=1)
    chances = logprobs.gather(-1, seen).double().exp()
    rows: list[Behind | None] = []
    for tokens, values in zip(seen.tolist(), chances.tolist(), strict=True):
        usable = not any(math.isnan(p) or p > 1 + 1e-6 for p in values)
        rows.append(choices.behind(beginning, dict(zip(tokens, values, strict=True))) if usable else None)
    return rows


def settled(known: Mapping[Path, Sequence[Behind | None]], choices: Choices) -> list[dict[str, float] | None]:
    """Log-probability of each choice for each row; None for a row whose numbers are not usable. `known` holds what
    comes behind the beginnings that some row follows."""
    found: list[dict[str, float] | None] = []
    for row in range(len(known[()])):
        mine: dict[Path, Behind] = {}
        usable = True
        for beginning in sorted(known, key=len):
            # each row by itself, so that its numbers do not depend on the others of its batch
            if choices.followed(mine, beginning):
                behind = known[beginning][row]
                if behind is None:
                    usable = False
                    break
                mine[beginning] = behind
        found.append(choices.logprobs(mine) if usable else None)
    return found
