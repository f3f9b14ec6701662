"""Rows with pictures through a vision model's own processor and `generate`, in plain batches.

Video is shown as pictures with their seconds in the text, to every model alike, also to those that have a video input
of their own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from videoqa.engines import ChoiceLogprobs, Conversation, Reply
from videoqa.engines.chat import cuts_in, pictures, render
from videoqa.engines.choices import TAIL, Behind, Choices
from videoqa.engines.choices import Path as Ids
from videoqa.engines.decoding import (
    NOT_A_NUMBER,
    Choosing,
    Decoding,
    exact_head,
    next_chances,
    pick,
    settled,
    unusable,
)


@dataclass(frozen=True, slots=True)
class Vision:
    """A vision model and what belongs to it; see TransformersEngine."""

    model: Any
    processor: Any  # pads on the left
    encode: Callable[[list[str]], list[list[int]]]
    too_long: Callable[[int, int], str | None]
    control: re.Pattern[str]
    ends: set[int]  # tokens that end a reply
    batch_size: int
    thinking: bool = False

    def generate(self, conversations: Sequence[Conversation], how: Decoding) -> Iterator[tuple[int, Reply]]:
        """See Engine.generate."""
        import torch

        for rows, inputs, errors in self._inputs(conversations, how.start, how.max_new_tokens, self.batch_size):
            yield from ((row, Reply(None, error)) for row, error in errors.items())
            if not rows:
                continue
            random = [torch.Generator().manual_seed(how.seed) for _ in rows]
            width = inputs["input_ids"].shape[1]
            broken = torch.zeros(len(rows), dtype=torch.bool, device=inputs["input_ids"].device)

            def draw(ids: Any, scores: Any, random: list[Any] = random, broken: Any = broken) -> Any:
                """All but the token that `pick` takes become impossible. Rows without numbers are noted."""
                broken |= unusable(scores)
                scores = torch.where(broken[:, None], torch.zeros_like(scores), scores)
                if not how.temperature:
                    return scores
                tokens = pick(scores.float(), how.temperature, how.top_p, random).to(scores.device)
                return torch.full_like(scores, -math.inf).scatter(1, tokens[:, None], 0.0)

            def stopped(ids: Any, scores: Any, width: int = width, broken: Any = broken) -> Any:
                texts = self.processor.tokenizer.batch_decode(ids[:, width:], skip_special_tokens=True)
                cut = torch.tensor([bool(cuts_in(text, how.stop)) for text in texts], device=ids.device)
                return cut | broken

            with torch.inference_mode():
                out = self.model.generate(
                    **inputs,
                    max_new_tokens=how.max_new_tokens,
                    do_sample=False,
                    logits_processor=[draw],
                    stopping_criteria=[stopped],
                )
            for row, mask, tokens, bad in zip(
                rows, inputs["attention_mask"], out[:, width:].tolist(), broken.tolist(), strict=True
            ):
                if bad:
                    yield row, Reply(None, NOT_A_NUMBER, prompt_tokens=int(mask.sum()))
                    continue
                end = next((at for at, token in enumerate(tokens) if token in self.ends), None)
                new = tokens[:end]
                text = self.processor.tokenizer.decode(new, skip_special_tokens=True)
                cuts = cuts_in(text, how.stop)
                text = text[: min(cuts)] if cuts else text
                yield row, Reply(how.start + text, None, bool(cuts) or end is not None, int(mask.sum()), len(new))

    def choose(self, conversations: Sequence[Conversation], how: Choosing) -> Iterator[tuple[int, ChoiceLogprobs]]:
        """See Engine.choice_logprobs. Row by row; one forward pass, and one more behind every number, and its point,
        that is probable enough, and behind what longer choices share."""
        import torch

        split: dict[str, Choices] = {}  # by the prompt's end: the same for all rows of one template
        for rows, inputs, errors in self._inputs(conversations, how.start, max(map(len, how.choices)) + 2, 1):
            yield from ((row, ChoiceLogprobs(None, error)) for row, error in errors.items())
            for row in rows:
                tail = render(self.processor, conversations[row], how.start, self.control, self.thinking)[-TAIL:]
                if tail not in split:
                    decode = self.processor.tokenizer.decode
                    split[tail] = Choices(lambda t: self.encode([t])[0], decode, tail, how.choices)
                choices = split[tail]
                known: dict[Ids, list[Behind | None]] = {}
                for beginning in sorted(choices.steps, key=len):
                    if not choices.followed({b: one[0] for b, one in known.items() if one[0]}, beginning):
                        continue
                    with torch.inference_mode(), exact_head(self.model):
                        longer = _extended(inputs, choices.dropped, beginning)
                        logits = self.model(**longer, logits_to_keep=1).logits[:, -1]
                    known[beginning] = next_chances(logits.float(), choices, beginning, how)
                (logprobs,) = settled(known, choices)
                yield row, ChoiceLogprobs(logprobs, None if logprobs else NOT_A_NUMBER, inputs["input_ids"].shape[1])

    def _inputs(
        self, conversations: Sequence[Conversation], start: str, more: int, size: int
    ) -> Iterator[tuple[list[int], Any, dict[int, str]]]:
        """Rows, the model's inputs for them, left-padded, and the errors of rows that cannot be asked; batch by batch,
        so that only one batch of pictures is in the model's form at a time."""
        import jinja2

        for at in range(0, len(conversations), size):
            errors: dict[int, str] = {}
            asked: dict[int, tuple[str, list[Any]]] = {}
            for row in range(at, min(at + size, len(conversations))):
                try:
                    text = render(self.processor, conversations[row], start, self.control, self.thinking)
                    asked[row] = text, pictures(conversations[row])
                except (OSError, ValueError, jinja2.TemplateError) as error:
                    errors[row] = str(error)
            inputs = self._processed(list(asked.values()))
            sizes = dict(zip(asked, inputs["attention_mask"].sum(1).tolist(), strict=True)) if asked else {}
            long = {row: why for row, tokens in sizes.items() if (why := self.too_long(tokens, more))}
            if long:
                asked = {row: prompt for row, prompt in asked.items() if row not in long}
                inputs = self._processed(list(asked.values()))
            yield list(asked), inputs, errors | long

    def _processed(self, prompts: list[tuple[str, list[Any]]]) -> Any:
        """The processor's tensors for (text, pictures), on the model's device and in its dtype; None for no prompts."""
        if not prompts:
            return None
        texts, images = zip(*prompts, strict=True)
        inputs = self.processor(
            text=list(texts), images=list(images), padding=True, add_special_tokens=False, return_tensors="pt"
        )
        return inputs.to(device=self.model.device, dtype=self.model.dtype)


def _extended(inputs: Mapping[str, Any], dropped: int, tokens: Sequence[int]) -> dict[str, Any]:
    """The model's inputs for one row with `tokens` in place of the last `dropped` ones. What a processor gives for
    every token beside its id and the mask says which tokens are pictures; these are not."""
    import torch

    ids = inputs["input_ids"]
    new = {}
    for name, tensor in inputs.items():
        if tensor.shape != ids.shape:
            new[name] = tensor
            continue
        what = {"input_ids": list(tokens), "attention_mask": [1] * len(tokens)}.get(name, [0] * len(tokens))
        more = torch.tensor([what], dtype=tensor.dtype, device=tensor.device)
        new[name] = torch.cat([tensor[:, : tensor.shape[1] - dropped], more], dim=1)
    return new
