"""A language or vision model in this process through Hugging Face transformers, CPU or GPU.

What makes it fast is that rows of one clip share most of their prompt. Token ids are sorted, rows that share a
beginning become a group, and a group's shared prefix goes through the model once (`plan_groups`). A batch then looks
like this, with explicit positions so that padding changes nothing:

    [ pad | prefix of the row's group | pad | rest of the row | new tokens ]

In float32 this differs from one row at a time by about 1e-4 in the logits; in bfloat16 by up to about 1, which can
flip a token: `settings` says which was used.

Conversations that hold pictures go through the model's own processor and `generate`, in plain batches. Video is shown
as pictures with their seconds in the text, to every model alike, also to those that have a video input of their own.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from videoqa.engines import ChoiceLogprobs, Conversation, Reply
from videoqa.engines.chat import control_tokens, cuts_in, parts, pictures, render, revision
from videoqa.engines.choices import TAIL, choice_paths
from videoqa.errors import UserError


@dataclass
class Group:
    """Rows whose ids begin with the same `length` tokens."""

    rows: list[int]
    length: int


def shared_length(a: Sequence[int], b: Sequence[int]) -> int:
    """How many ids the two begin with in common."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def plan_groups(ids: Sequence[list[int]]) -> list[Group]:
    """Group rows so that few tokens go through the model: shared prefixes once, the rests row by row.

    Rows are taken in the order of their ids; one more row joins a group where what it saves (its share of the prefix)
    outweighs what the group loses because its prefix gets shorter. At least one token of every row is left over, since
    the model must see a token to say what comes next. Longest prefix first.
    """
    groups: list[Group] = []
    for row in sorted(range(len(ids)), key=lambda r: ids[r]):
        if groups:
            group = groups[-1]
            shared = min(shared_length(ids[group.rows[-1]], ids[row]), group.length, len(ids[row]) - 1)
            n = len(group.rows)
            if n * shared > (n - 1) * group.length:
                group.rows.append(row)
                group.length = shared
                continue
        groups.append(Group([row], len(ids[row]) - 1))
    return sorted(groups, key=lambda g: -g.length)


@dataclass
class _Batch:
    """Rows in the model's cache, ready to be continued. Row k of every tensor belongs to rows[k]."""

    rows: list[int]
    cache: Any
    mask: Any  # (rows, cached tokens), 1 for real tokens
    lengths: Any  # (rows,), real tokens so far
    logits: Any  # (rows, vocabulary), float32: what comes next
    new: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))


class TransformersEngine:
    """`model` is a folder or a Hub id. `dtype`: "auto" (float32 on CPU, bfloat16 on GPU), "float32", "bfloat16" or
    "float16". `device`: "auto", "cpu", "cuda", ... `prefix_reuse=False` is for measuring what reuse brings.
    """

    _model: Any
    can_choose = True
    can_force = True

    def __init__(
        self,
        model: str,
        *,
        dtype: str = "auto",
        device: str = "auto",
        batch_size: int = 8,
        prefix_reuse: bool = True,
    ) -> None:
        import torch
        from safetensors import SafetensorError
        from transformers import (
            AutoConfig,
            AutoModelForCausalLM,
            AutoModelForImageTextToText,
            AutoTokenizer,
            GenerationConfig,
        )
        from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING

        if Path(model).expanduser().exists():
            model = str(Path(model).expanduser())
        elif model.startswith((".", "/", "~")) or model.count("/") > 1:
            raise FileNotFoundError(f"no model folder at {model}")
        gpu = torch.cuda.is_available() if device == "auto" else device != "cpu"
        if dtype == "auto":
            dtype = "bfloat16" if gpu else "float32"
        if batch_size < 1:
            raise UserError(f"batch_size {batch_size}: at least 1")
        if dtype not in ("float32", "bfloat16", "float16"):
            raise UserError(f"dtype {dtype!r}: allowed are auto, float32, bfloat16, float16")
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(model)
            config = AutoConfig.from_pretrained(model)
        except (OSError, ValueError) as error:
            raise FileNotFoundError(f"the model {model!r} cannot be loaded: {error}") from error
        if not self._tokenizer.chat_template:
            raise UserError(f"the model {model!r} has no chat template: an instruction-tuned model is needed")
        try:
            self._sees = type(config) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
            kind = AutoModelForImageTextToText if self._sees else AutoModelForCausalLM
            self._model = kind.from_pretrained(
                model,
                dtype=getattr(torch, dtype),
                device_map="auto" if gpu and device == "auto" else None,
            )
        except (OSError, ValueError, RuntimeError, SafetensorError) as error:
            raise FileNotFoundError(f"the model {model!r} cannot be loaded: {error}") from error
        if device != "auto":
            try:
                self._model = self._model.to(torch.device(device))
            except (RuntimeError, AssertionError) as error:
                raise UserError(f"device {device!r}: {error}") from error
        self._model.eval()
        text_config = config.get_text_config()
        self._limit = getattr(text_config, "max_position_embeddings", None) or math.inf
        # Recurrent and linear-attention layers keep a state that cannot be cut where prefixes part.
        kinds = set(getattr(text_config, "layer_types", None) or ["full_attention", "sliding_attention"])
        self._reuse = prefix_reuse and kinds <= {"full_attention", "sliding_attention"}
        sliding = "sliding_attention" in kinds and getattr(text_config, "sliding_window", None)
        self._window = sliding or math.inf
        self._batch_size = batch_size
        ends = self._model.generation_config.eos_token_id
        self._ends = {*(ends if isinstance(ends, list) else [ends]), self._tokenizer.eos_token_id} - {None}
        pad = self._tokenizer.pad_token_id if self._tokenizer.pad_token_id is not None else min(self._ends, default=0)
        # nothing of the model's own settings (top_k, a repetition penalty) gets into what is drawn here
        self._model.generation_config = GenerationConfig(eos_token_id=sorted(self._ends) or None, pad_token_id=pad)
        self._processor: Any = None
        self._control = control_tokens(self._tokenizer)
        self.name = model
        self.settings = {"engine": "transformers", "dtype": dtype, "revision": revision(model)}

    # -- text to ids ------------------------------------------------------------------------------------------------

    def _text(self, conversation: Conversation, start: str) -> str:
        return render(self._tokenizer, conversation, start, self._control)

    def _encode(self, texts: list[str]) -> list[list[int]]:
        return self._tokenizer(texts, add_special_tokens=False)["input_ids"]

    def _too_long(self, tokens: int, more: int) -> str | None:
        if tokens + more <= self._limit:
            return None
        return f"the prompt of {tokens} tokens and {more} new ones do not fit into the model's {self._limit}"

    # -- ids through the model --------------------------------------------------------------------------------------

    def _batches(self, ids: list[list[int]], rows: list[int], more: int) -> Iterator[_Batch]:
        """Run the prompts `rows` through the model, shared prefixes once; up to `more` tokens are to follow."""
        import torch

        chosen = [ids[r] for r in rows]
        groups = self._groups(chosen, more)
        while groups:
            # as many groups as fill a batch; a group larger than a batch keeps its prefix for several batches
            taken = [groups.pop(0)]
            while groups and sum(len(g.rows) for g in taken) + len(groups[0].rows) <= self._batch_size:
                taken.append(groups.pop(0))
            prefixes = [chosen[g.rows[0]][: g.length] for g in taken]
            with torch.inference_mode():
                cache, prefix_mask = self._prefill(prefixes)
            members = [(k, r) for k, g in enumerate(taken) for r in g.rows]
            members.sort(key=lambda m: taken[m[0]].length - len(chosen[m[1]]))
            for at in range(0, len(members), self._batch_size):
                part = members[at : at + self._batch_size]
                which = torch.tensor([k for k, _ in part], device=self._model.device)
                rest = [chosen[r][taken[k].length :] for k, r in part]
                with torch.inference_mode():  # not around the yield: the caller may be training a model
                    batch = self._continue(_select(cache, which), prefix_mask[which], rest)
                batch.rows = [rows[r] for _, r in part]
                yield batch

    def _groups(self, chosen: list[list[int]], more: int) -> list[Group]:
        """The plan; every row alone where prefixes cannot be shared. A sliding window counts the padding between a
        prefix and the rest as well, so it must be wide enough that this makes no difference."""
        if self._reuse:
            groups = plan_groups(chosen)
            longest = max((g.length for g in groups), default=0)
            rest = max((len(chosen[r]) - g.length for g in groups for r in g.rows), default=0)
            if longest + rest + more <= self._window:
                return groups
        return [Group([r], 0) for r in sorted(range(len(chosen)), key=lambda r: len(chosen[r]))]

    def _prefill(self, prefixes: list[list[int]]) -> tuple[Any, Any]:
        import torch
        from transformers import DynamicCache

        ids, mask = self._pad(prefixes)
        # Plain layers, also for sliding-window models: a full cache can be shared. Without a prefix: the model's own.
        cache = DynamicCache() if ids.shape[1] else None
        if ids.shape[1]:
            self._model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=(mask.cumsum(1) - 1).clamp(min=0),
                cache=cache,
                use_cache=True,
                logits_to_keep=1,
            )
        return cache, mask.to(torch.long)

    def _continue(self, cache: Any, prefix_mask: Any, rest: list[list[int]]) -> _Batch:
        import torch

        ids, rest_mask = self._pad(rest)
        mask = torch.cat([prefix_mask, rest_mask], dim=1)
        positions = (mask.cumsum(1) - 1).clamp(min=0)[:, prefix_mask.shape[1] :]
        out = self._model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            cache=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return _Batch([], out.cache, mask, mask.sum(1), out.logits[:, -1].float())

    def _pad(self, rows: list[list[int]]) -> tuple[Any, Any]:
        """Left-padded ids and their mask, both (rows, longest rounded up): on a CPU every new shape in bfloat16 keeps
        memory of its own, so there are few."""
        import torch

        width = math.ceil(max(map(len, rows)) / 16) * 16
        ids = torch.tensor([[0] * (width - len(r)) + list(r) for r in rows], dtype=torch.long)
        mask = torch.tensor([[0] * (width - len(r)) + [1] * len(r) for r in rows], dtype=torch.long)
        return ids.to(self._model.device), mask.to(self._model.device)

    def _step(self, batch: _Batch, tokens: Any) -> None:
        """Give every row its next token: `tokens` is (rows,)."""
        import torch

        batch.mask = torch.cat([batch.mask, torch.ones_like(batch.mask[:, :1])], dim=1)
        out = self._model(
            input_ids=tokens[:, None],
            attention_mask=batch.mask,
            position_ids=batch.lengths[:, None],
            cache=batch.cache,
            use_cache=True,
        )
        batch.cache, batch.lengths = out.cache, batch.lengths + 1
        batch.logits = out.logits[:, -1].float()

    # -- the two ways to ask ----------------------------------------------------------------------------------------

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
        """See Engine.generate. Sampling draws one number per token from the row's own generator."""
        import torch

        if not conversations:
            return
        if shown := self._shown(conversations):
            how: dict[str, Any] = {
                "max_new_tokens": max_new_tokens,
                "temperature": temperature,
                "top_p": top_p,
                "seed": seed,
            }
            how |= {"start": start, "stop": stop}
            yield from _apart(
                conversations, shown, partial(self._generate_seeing, **how), partial(self.generate, **how)
            )
            return
        ids = self._encode([self._text(c, start) for c in conversations])
        fitting = []
        for row, tokens in enumerate(ids):
            if error := self._too_long(len(tokens), max_new_tokens):
                yield row, Reply(None, error, prompt_tokens=len(tokens))
            else:
                fitting.append(row)
        for batch in self._batches(ids, fitting, max_new_tokens):
            random = {row: torch.Generator().manual_seed(seed) for row in batch.rows}
            while batch.rows:
                with torch.inference_mode():
                    tokens = _pick(batch.logits, temperature, top_p, [random[row] for row in batch.rows])
                alive = []
                for k, (row, token) in enumerate(zip(batch.rows, tokens.tolist(), strict=True)):
                    new = batch.new[row]
                    if token not in self._ends:
                        new.append(token)
                    text = ""
                    ended = token in self._ends
                    if stop or ended or len(new) >= max_new_tokens:
                        text = self._tokenizer.decode(new, skip_special_tokens=True)
                    cuts = cuts_in(text, stop)
                    if ended or cuts or len(new) >= max_new_tokens:
                        text = text[: min(cuts)] if cuts else text
                        finished = ended or bool(cuts)
                        yield row, Reply(start + text, None, finished, len(ids[row]), len(new))
                    else:
                        alive.append(k)
                if not alive:
                    break
                keep = torch.tensor(alive, device=self._model.device)
                with torch.inference_mode():
                    if len(alive) < len(batch.rows):
                        batch.cache.batch_select_indices(keep)
                        batch.mask, batch.lengths = batch.mask[keep], batch.lengths[keep]
                        batch.rows = [batch.rows[k] for k in alive]
                    self._step(batch, tokens.to(keep.device)[keep])

    def choice_logprobs(
        self,
        conversations: Sequence[Conversation],
        choices: Sequence[str],
        *,
        start: str = "",
        temperature: float = 1.0,
        top_p: float = 1.0,
    ) -> Iterator[tuple[int, ChoiceLogprobs]]:
        """See Engine.choice_logprobs. One forward pass a row, and one step of a single token for every beginning that
        longer choices share ("1" of "10" in tokenizers that split it)."""
        import torch

        if not conversations:
            return
        if shown := self._shown(conversations):
            how: dict[str, Any] = {"choices": choices, "start": start, "temperature": temperature, "top_p": top_p}
            yield from _apart(
                conversations, shown, partial(self._choose_seeing, **how), partial(self.choice_logprobs, **how)
            )
            return
        texts = [self._text(c, start) for c in conversations]
        ids = self._encode(texts)
        # Rows whose choices are split alike go together; with one template and one start that is all of them.
        alike: dict[tuple[int, tuple], list[int]] = defaultdict(list)
        known: dict[str, tuple[int, dict[str, tuple[int, ...]]]] = {}
        for row, text in enumerate(texts):
            tail = text[-TAIL:]  # the same for all rows of one template, so the choices are tokenized once
            if tail not in known:
                known[tail] = choice_paths(lambda t: self._encode([t])[0], tail, choices)
            dropped, paths = known[tail]
            if error := self._too_long(len(ids[row]), max(map(len, paths.values()))):
                yield row, ChoiceLogprobs(None, error, len(ids[row]))
            else:
                ids[row] = ids[row][: len(ids[row]) - dropped]
                alike[dropped, tuple(paths.items())].append(row)
        for (_, items), rows in alike.items():
            paths = dict(items)
            for batch in self._batches(ids, rows, max(map(len, paths.values()))):
                with torch.inference_mode():
                    found = self._walk(batch, paths, temperature, top_p)
                for row, logprobs in zip(batch.rows, found, strict=True):
                    yield row, ChoiceLogprobs(logprobs, None, len(ids[row]))

    def _walk(
        self, batch: _Batch, paths: dict[str, tuple[int, ...]], temperature: float, top_p: float
    ) -> list[dict[str, float]]:
        """Log-probability of each choice for each row of the batch, longer choices taken out of shorter ones."""
        import copy

        import torch

        known: dict[tuple[int, ...], Any] = {(): _log_probabilities(batch.logits, temperature, top_p)}
        for inner in sorted({p[:n] for p in paths.values() for n in range(1, len(p))}, key=len):
            branch = copy.copy(batch)
            branch.cache = copy.deepcopy(batch.cache)  # of whatever layers: recurrent ones have states of their own
            for token in inner:
                self._step(branch, torch.full_like(branch.lengths, token))
            known[inner] = _log_probabilities(branch.logits, temperature, top_p)
        return _settled(known, paths)

    # -- rows with pictures -----------------------------------------------------------------------------------------

    def _shown(self, conversations: Sequence[Conversation]) -> list[int]:
        """The conversations that hold pictures."""
        shown = [
            row
            for row, conversation in enumerate(conversations)
            if any(p["type"] == "image" for message in conversation for p in parts(message))
        ]
        if shown and not self._sees:
            raise UserError(f"the model {self.name!r} reads text only: a conversation with frames needs a vision model")
        if shown and self._processor is None:
            from transformers import AutoProcessor

            self._processor = AutoProcessor.from_pretrained(self.name)
            self._processor.tokenizer.padding_side = "left"
        return shown

    def _look(
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
                    text = render(self._processor, conversations[row], start, self._control)
                    asked[row] = text, pictures(conversations[row])
                except (OSError, ValueError, jinja2.TemplateError) as error:
                    errors[row] = str(error)
            inputs = self._processed(list(asked.values()))
            sizes = dict(zip(asked, inputs["attention_mask"].sum(1).tolist(), strict=True)) if asked else {}
            long = {row: why for row, tokens in sizes.items() if (why := self._too_long(tokens, more))}
            if long:
                asked = {row: prompt for row, prompt in asked.items() if row not in long}
                inputs = self._processed(list(asked.values()))
            yield list(asked), inputs, errors | long

    def _processed(self, prompts: list[tuple[str, list[Any]]]) -> Any:
        """The processor's tensors for (text, pictures), on the model's device and in its dtype; None for no prompts."""
        if not prompts:
            return None
        texts, images = zip(*prompts, strict=True)
        inputs = self._processor(
            text=list(texts), images=list(images), padding=True, add_special_tokens=False, return_tensors="pt"
        )
        return inputs.to(device=self._model.device, dtype=self._model.dtype)

    def _generate_seeing(
        self,
        conversations: Sequence[Conversation],
        *,
        max_new_tokens: int,
        temperature: float,
        top_p: float,
        seed: int,
        start: str,
        stop: Sequence[str],
    ) -> Iterator[tuple[int, Reply]]:
        import torch

        for rows, inputs, errors in self._look(conversations, start, max_new_tokens, self._batch_size):
            yield from ((row, Reply(None, error)) for row, error in errors.items())
            if not rows:
                continue
            random = [torch.Generator().manual_seed(seed) for _ in rows]
            width = inputs["input_ids"].shape[1]

            def draw(ids: Any, scores: Any, random: list[Any] = random) -> Any:
                """All but the token that `_pick` takes become impossible."""
                tokens = _pick(scores.float(), temperature, top_p, random).to(scores.device)
                return torch.full_like(scores, -math.inf).scatter(1, tokens[:, None], 0.0)

            def stopped(ids: Any, scores: Any, width: int = width) -> Any:
                texts = self._tokenizer.batch_decode(ids[:, width:], skip_special_tokens=True)
                return torch.tensor([bool(cuts_in(text, stop)) for text in texts], device=ids.device)

            with torch.inference_mode():
                out = self._model.generate(
                    **inputs,
                    max_new_tokens=max_new_tokens,
                    do_sample=False,
                    logits_processor=[draw] if temperature else [],
                    stopping_criteria=[stopped] if stop else [],
                )
            for row, mask, tokens in zip(rows, inputs["attention_mask"], out[:, width:].tolist(), strict=True):
                end = next((at for at, token in enumerate(tokens) if token in self._ends), None)
                new = tokens[:end]
                text = self._tokenizer.decode(new, skip_special_tokens=True)
                cuts = cuts_in(text, stop)
                text = text[: min(cuts)] if cuts else text
                yield row, Reply(start + text, None, bool(cuts) or end is not None, int(mask.sum()), len(new))

    def _choose_seeing(
        self,
        conversations: Sequence[Conversation],
        *,
        choices: Sequence[str],
        start: str,
        temperature: float,
        top_p: float,
    ) -> Iterator[tuple[int, ChoiceLogprobs]]:
        """Row by row; one forward pass, and one more for every beginning that longer choices share."""
        import torch

        for rows, inputs, errors in self._look(conversations, start, max(map(len, choices)), 1):
            yield from ((row, ChoiceLogprobs(None, error)) for row, error in errors.items())
            for row in rows:
                tail = render(self._processor, conversations[row], start, self._control)[-TAIL:]
                dropped, paths = choice_paths(lambda t: self._encode([t])[0], tail, choices)
                known = {}
                for inner in [(), *sorted({p[:n] for p in paths.values() for n in range(1, len(p))}, key=len)]:
                    with torch.inference_mode():
                        logits = self._model(**_extended(inputs, dropped, inner), logits_to_keep=1).logits[:, -1]
                    known[inner] = _log_probabilities(logits.float(), temperature, top_p)
                yield row, ChoiceLogprobs(_settled(known, paths)[0], None, inputs["input_ids"].shape[1])


def _apart(conversations: Sequence[Conversation], shown: list[int], see: Any, read: Any) -> Iterator[tuple[int, Any]]:
    """The results of `see` for the rows `shown` and of `read` for the others."""
    told = sorted(set(range(len(conversations))) - set(shown))
    for ask, rows in ((see, shown), (read, told)):
        yield from ((rows[k], result) for k, result in ask([conversations[row] for row in rows]))


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


def _settled(known: Mapping[tuple[int, ...], Any], paths: Mapping[str, tuple[int, ...]]) -> list[dict[str, float]]:
    """Log-probability of each choice for each row, longer choices taken out of shorter ones. `known` holds what comes
    next (rows, vocabulary) after every beginning that paths share."""
    import torch

    total = {}
    for path in set(paths.values()):
        steps = [known[path[:n]][:, path[n]] for n in range(len(path))]
        total[path] = torch.stack(steps).sum(0).double()
    columns = {}
    for choice, path in paths.items():
        longer = [total[p] for p in total if len(p) > len(path) and p[: len(path)] == path]
        probability = total[path].exp() - sum(p.exp() for p in longer)
        columns[choice] = probability.clamp(min=0).log().tolist()
    return [{choice: columns[choice][k] for choice in paths} for k in range(len(known[()]))]


def _select(cache: Any, rows: Any) -> Any:
    """A new cache with these rows of the old one (repeats allowed)."""
    from transformers import DynamicCache

    new = DynamicCache()
    if cache is None:
        return None
    for index, layer in enumerate(cache.layers):
        if layer.is_initialized:
            new.update(layer.keys[rows], layer.values[rows], index)
    return new


def _nucleus(logits: Any, temperature: float, top_p: float) -> tuple[Any, Any]:
    """Probabilities at `temperature` in falling order with 0 outside the top_p part, and the tokens in that order. The
    token that reaches top_p is the last one in."""
    import torch

    probabilities, order = torch.softmax(logits / temperature, dim=-1).sort(dim=-1, descending=True)
    inside = probabilities.cumsum(-1) - probabilities < top_p
    return probabilities * inside, order


def _log_probabilities(logits: Any, temperature: float, top_p: float) -> Any:
    """(rows, vocabulary): log-probability of each token when drawn from the top_p part."""
    import torch

    if top_p >= 1:
        return torch.log_softmax(logits / temperature, dim=-1)
    kept, order = _nucleus(logits, temperature, top_p)
    return torch.zeros_like(kept).scatter(-1, order, kept / kept.sum(-1, keepdim=True)).log()


def _pick(logits: Any, temperature: float, top_p: float, random: list[Any]) -> Any:
    """The next token of each row, (rows,) on the CPU: the most likely, or drawn from the top_p part."""
    import torch

    if temperature == 0:
        return logits.argmax(-1).cpu()
    kept, order = _nucleus(logits, temperature, top_p)
    sums = kept.cumsum(-1)
    draws = torch.cat([torch.rand(1, generator=g) for g in random]).to(sums.device)[:, None] * sums[:, -1:]
    place = (sums <= draws).sum(-1, keepdim=True)
    last = (kept > 0).sum(-1, keepdim=True) - 1  # a draw may be rounded up to the whole sum
    return order.gather(-1, place.minimum(last))[:, 0].cpu()
