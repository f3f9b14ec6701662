"""Rows through a causal model together, what they share only once, and then on token by token.

Rows of one clip share most of their prompt. Token ids are sorted, rows that share a beginning become a group, and a
group's shared prefix goes through the model once (`plan_groups`). A batch then looks like this, with explicit positions
so that padding changes nothing:

    [ pad | prefix of the row's group | pad | rest of the row | new tokens ]
"""

from __future__ import annotations

import contextlib
import inspect
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from videoqa.engines.cache import chosen as chosen_rows
from videoqa.engines.cache import empty_cache, filling, joinable, joined, keep_rows, to_width
from videoqa.engines.decoding import exact_head

# How rows may be put together in a model, from the fastest to the plainest. Which one is right for a model is found by
# videoqa/engines/selfcheck.py.
Packing = Literal["shared prefixes", "batches", "single rows"]
PACKINGS: tuple[Packing, ...] = ("shared prefixes", "batches", "single rows")

ATTENTION = {"full_attention", "sliding_attention"}  # layers whose cache can be cut and shared
JOINED = 16_384  # tokens in the cache of batches that are joined: more than a batch where its rows are short


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
class Batch:
    """Rows in the model's cache, ready to be continued. Row k of every tensor belongs to rows[k]."""

    rows: list[int]
    cache: Any
    mask: Any  # (rows, cached tokens), 1 for real tokens
    lengths: Any  # (rows,), real tokens so far
    logits: Any  # (rows, vocabulary), float32: what comes next
    new: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    exact: bool = False  # the logits are of a last layer in float32

    def keep(self, alive: Sequence[int]) -> list[int]:
        """Go on with these places of the batch only; the order in which they now stand."""
        import torch

        if len(alive) == len(self.rows):
            return list(alive)
        order = filling(alive)
        places = torch.tensor(order, device=self.mask.device)
        with torch.inference_mode():  # in which the cache was made
            keep_rows(self.cache, places)
        self.mask, self.lengths, self.logits = self.mask[places], self.lengths[places], self.logits[places]
        self.rows = [self.rows[k] for k in order]
        return order

    def join(self, others: Sequence[Batch]) -> None:
        """Take in the rows of other batches. Shorter rows are padded on their left."""
        import torch

        every = (self, *others)
        width = max(one.mask.shape[1] - int(one.mask.any(0).int().argmax()) for one in every)
        self.cache = joined([one.cache for one in every], width)
        self.mask = torch.cat([to_width(one.mask, width, 1) for one in every])
        self.lengths = torch.cat([one.lengths for one in every])
        self.logits = torch.cat([one.logits for one in every])
        self.rows = [row for one in every for row in one.rows]


@dataclass
class Twigs:
    """Beginnings of replies, side by side in the cache of their batch: no one sees another's tokens."""

    batch: Batch
    rows: Sequence[int]  # whose beginning each is: places in the batch
    slots: Sequence[tuple[int, ...]]  # where in the cache its own tokens stand
    logits: Any  # (beginnings, vocabulary), float32: what comes next


@dataclass
class Network:
    """A causal model and how rows are put together in it."""

    model: Any
    batch_size: int
    packing: Packing = "shared prefixes"
    grows: bool = False  # whether the model takes a mask of its own for every token, which `grow` needs

    def __post_init__(self) -> None:
        config = self.model.config.get_text_config()
        kinds = set(getattr(config, "layer_types", None) or ATTENTION)
        # Recurrent and linear-attention layers keep a state that cannot be cut where prefixes part.
        self.recurrent = bool(getattr(self.model, "_is_stateful", False)) or not kinds <= ATTENTION
        if self.recurrent and self.packing == "shared prefixes":
            self.packing = "batches"
        self.window = _window(config, kinds)
        # what this architecture takes: the hooks of accelerate stand in for the instance's forward, not the class's
        self._takes = set(inspect.signature(type(self.model).forward).parameters)
        self._cache = next((n for n in ("cache", "past_key_values", "cache_params") if n in self._takes), "cache")

    def batches(
        self, ids: Sequence[list[int]], rows: Sequence[int], more: int, *, exact: bool = False
    ) -> Iterator[Batch]:
        """Run the prompts `rows` through the model, shared prefixes once; up to `more` tokens are to follow. With
        `exact` the last layer is computed in float32 (decoding.exact_head)."""
        import torch

        chosen = [ids[r] for r in rows]
        size = 1 if self.packing == "single rows" else self.batch_size
        groups = self._groups(chosen, more)
        while groups:
            # as many groups as fill a batch; a group larger than a batch keeps its prefix for several batches
            taken = [groups.pop(0)]
            while groups and sum(len(g.rows) for g in taken) + len(groups[0].rows) <= size:
                taken.append(groups.pop(0))
            prefixes = [chosen[g.rows[0]][: g.length] for g in taken]
            with torch.inference_mode():
                cache, prefix_mask = self._prefill(prefixes)
            members = [(k, r) for k, g in enumerate(taken) for r in g.rows]
            members.sort(key=lambda m: taken[m[0]].length - len(chosen[m[1]]))
            for at in range(0, len(members), size):
                part = members[at : at + size]
                which = torch.tensor([k for k, _ in part], device=self.model.device)
                rest = [chosen[r][taken[k].length :] for k, r in part]
                with torch.inference_mode():  # not around the yield: the caller may be training a model
                    batch = self._continue(chosen_rows(cache, which), prefix_mask[which], rest, exact)
                batch.rows = [rows[r] for _, r in part]
                yield batch

    def refill(self, batch: Batch, coming: Iterator[Batch], more: int) -> None:
        """Have batches join this one while there is room, with up to `more` tokens to follow."""
        import torch

        # a sliding window counts the padding as well
        if self.packing != "shared prefixes" or self.window < math.inf or not joinable(batch.cache):
            return
        others: list[Batch] = []
        rows = len(batch.rows) + self.batch_size
        while rows * (batch.mask.shape[1] + more) <= JOINED and (other := next(coming, None)):
            others.append(other)
            rows += len(other.rows)
        if others:
            with torch.inference_mode():
                batch.join(others)

    def step(self, batch: Batch, tokens: Any) -> None:
        """Give every row its next token: `tokens` is (rows,)."""
        import torch

        batch.mask = torch.cat([batch.mask, torch.ones_like(batch.mask[:, :1])], dim=1)
        out = self._forward(tokens[:, None], batch.mask, batch.lengths[:, None], batch.cache, batch.exact, first=False)
        batch.cache, batch.lengths = out[self._cache], batch.lengths + 1
        batch.logits = out.logits[:, -1].float()

    def grow(self, twigs: Twigs, places: Sequence[int], tokens: Sequence[int]) -> Twigs:
        """Longer beginnings: each of these places (repeats allowed) with a next token. All in one pass, without a copy
        of the cache; the batch cannot go on afterwards."""
        import torch

        batch, device = twigs.batch, self.model.device
        held, rows = batch.cache.get_seq_length(), [twigs.rows[n] for n in places]
        taken: Counter[int] = Counter()
        columns = [(taken.update([row]), taken[row] - 1)[1] for row in rows]
        width = max(taken.values())
        ids = torch.zeros((len(batch.rows), width), dtype=torch.long)
        seen = torch.zeros((len(batch.rows), width, held + width), dtype=torch.bool)
        seen[:, :, : batch.mask.shape[1]] = batch.mask.bool().cpu()[:, None]
        slots = [(*twigs.slots[n], held + column) for n, column in zip(places, columns, strict=True)]
        for row, column, token, own in zip(rows, columns, tokens, slots, strict=True):
            ids[row, column] = token
            seen[row, column, list(own)] = True
        dtype = self.model.dtype
        mask = torch.zeros(seen.shape, dtype=dtype).masked_fill(~seen, torch.finfo(dtype).min)[:, None]
        positions = (batch.lengths + len(slots[0]) - 1)[:, None].expand(-1, width)
        out = self._forward(ids.to(device), mask.to(device), positions, batch.cache, batch.exact, first=False)
        return Twigs(batch, rows, slots, out.logits[rows, columns].float())

    def _groups(self, chosen: list[list[int]], more: int) -> list[Group]:
        """The plan; every row alone where prefixes cannot be shared. A sliding window counts the padding between a
        prefix and the rest as well, so it must be wide enough that this makes no difference."""
        if self.packing == "shared prefixes":
            groups = plan_groups(chosen)
            longest = max((g.length for g in groups), default=0)
            rest = max((len(chosen[r]) - g.length for g in groups for r in g.rows), default=0)
            if longest + rest + more <= self.window:
                return groups
        return [Group([r], 0) for r in sorted(range(len(chosen)), key=lambda r: len(chosen[r]))]

    def _prefill(self, prefixes: list[list[int]]) -> tuple[Any, Any]:
        ids, mask = self._pad(prefixes)
        # Plain layers, also for sliding-window models: a full cache can be shared. Without a prefix: the model's own.
        cache = empty_cache() if ids.shape[1] else None
        if ids.shape[1]:
            self._forward(ids, mask, (mask.cumsum(1) - 1).clamp(min=0), cache)
        return cache, mask

    def _continue(self, cache: Any, prefix_mask: Any, rest: list[list[int]], exact: bool) -> Batch:
        import torch

        ids, rest_mask = self._pad(rest)
        mask = torch.cat([prefix_mask, rest_mask], dim=1)
        positions = (mask.cumsum(1) - 1).clamp(min=0)[:, prefix_mask.shape[1] :]
        out = self._forward(ids, mask, positions, cache, exact)
        return Batch([], out[self._cache], mask, mask.sum(1), out.logits[:, -1].float(), exact=exact)

    def _pad(self, rows: list[list[int]]) -> tuple[Any, Any]:
        """Left-padded ids and their mask, both (rows, longest rounded up): on a CPU every new shape in bfloat16 keeps
        memory of its own, so there are few."""
        import torch

        width = max(map(len, rows))
        if self.packing != "single rows":
            width = math.ceil(width / 16) * 16
        ids = torch.tensor([[0] * (width - len(r)) + list(r) for r in rows], dtype=torch.long)
        mask = torch.tensor([[0] * (width - len(r)) + [1] * len(r) for r in rows], dtype=torch.long)
        return ids.to(self.model.device), mask.to(self.model.device)

    def _forward(
        self, ids: Any, mask: Any, positions: Any, cache: Any, exact: bool = False, *, first: bool = True
    ) -> Any:
        """One pass over `ids` behind what is in the cache; the logits of the last place at least."""
        inputs: dict[str, Any] = {"attention_mask": mask, "position_ids": positions, self._cache: cache}
        if self.packing == "single rows":
            del inputs["attention_mask"]  # nothing is padded
        if self.recurrent and not first:
            # Each recurrent architecture wants another mask beside its state, or none: the model's own way is asked.
            inputs = self.model.prepare_inputs_for_generation(
                ids, next_sequence_length=1, is_first_iteration=False, use_cache=True, **inputs
            )
            ids = inputs.pop("input_ids")
        inputs |= {"use_cache": True, "logits_to_keep": 1} if first else {"use_cache": True}
        inputs = {name: value for name, value in inputs.items() if name in self._takes}
        with exact_head(self.model) if exact else contextlib.nullcontext():
            return self.model(input_ids=ids, **inputs)


def _window(config: Any, kinds: set[str]) -> float:
    """How many slots back the model's narrowest layer sees: padding takes slots too."""
    windows = [getattr(config, "sliding_window", None)] if "sliding_attention" in kinds else []
    windows += [getattr(config, name, None) for name in ("window_size", "attention_window_size")]  # GPT-Neo
    return min((float(w) for w in windows if isinstance(w, int) and w > 0), default=math.inf)
