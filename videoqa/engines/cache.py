"""What a causal model keeps of the rows that it has read, keys and values of each layer: grown, chosen, joined.

transformers' own layer copies all that it holds for every token that comes, a quarter of the time of a step. The layers
made here have room behind their last token, and a step writes its own tokens only.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

ROOM = 32  # tokens that a layer has room for behind what it holds


def empty_cache() -> Any:
    """A cache of plain layers, which share, choose and join rows, whatever layers the model itself would take."""
    from transformers import DynamicCache

    made = DynamicCache()
    made.layer_class_to_replicate = _layer()
    return made


@cache
def _layer() -> type:
    import torch
    from transformers.cache_utils import DynamicLayer

    class Roomy(DynamicLayer):
        """`keys` and `values`, (rows, heads, tokens, size of a head), are the filled part of two buffers."""

        _buffers: tuple[Any, Any]
        _filled: Any = None  # the keys as `update` left them; others are there once somebody has chosen rows

        def update(self, key_states: Any, value_states: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
            if not self.is_initialized:
                self.lazy_initialization(key_states, value_states)
            held = self.get_seq_length()
            full = held + key_states.shape[-2]
            if self._filled is not self.keys or full > self._buffers[0].shape[-2]:
                pairs = ((self.keys, key_states), (self.values, value_states))
                self._buffers = tuple(_roomy(old, new, held, full) for old, new in pairs)  # type: ignore[assignment]
            for buffer, states in zip(self._buffers, (key_states, value_states), strict=True):
                buffer[..., held:full, :] = states
            self.keys, self.values = (buffer[..., :full, :] for buffer in self._buffers)
            self._filled = self.keys
            return self.keys, self.values

        def batch_select_indices(self, indices: Any) -> None:
            """In place: only rows that change their place are copied. `indices` are as `filling` orders them."""
            keys: Any = self.keys
            values: Any = self.values
            kept = len(indices)
            moved = (indices != torch.arange(kept, device=indices.device)).nonzero()[:, 0]
            if self._filled is not keys or kept > len(keys) or bool((indices[moved] < kept).any()):
                super().batch_select_indices(indices)
                return
            for states in (keys, values):
                states[moved] = states[indices[moved]]
            self._buffers = tuple(buffer[:kept] for buffer in self._buffers)  # type: ignore[assignment]
            self.keys, self.values = keys[:kept], values[:kept]
            self._filled = self.keys

    return Roomy


def _roomy(old: Any, new: Any, held: int, full: int) -> Any:
    """A buffer of the new states' form that begins with the old ones."""
    buffer = new.new_empty((*new.shape[:-2], full + ROOM, new.shape[-1]))
    if held:
        buffer[..., :held, :] = old
    return buffer


def chosen(cache: Any, rows: Any) -> Any:
    """A new cache with these rows of the old one (repeats allowed)."""
    if cache is None:
        return None
    made = empty_cache()
    for index, layer in enumerate(cache.layers):
        if layer.is_initialized:
            made.update(layer.keys[rows], layer.values[rows], index)
    return made


def filling(alive: Sequence[int]) -> list[int]:
    """The same places in an order in which the first ones stay and the last ones fill the holes between them."""
    kept, stay = len(alive), set(alive)
    last = iter(place for place in alive if place >= kept)
    return [place if place in stay else next(last) for place in range(kept)]


def keep_rows(cache: Any, rows: Any) -> None:
    """Drop all rows of the cache but these. Layers with a recurrent state select it only when beams are reordered."""
    from transformers import DynamicCache

    own = type(cache).batch_select_indices is not DynamicCache.batch_select_indices
    if not own and any(hasattr(layer, "recurrent_states") for layer in cache.layers):
        cache.reorder_cache(rows)
    else:
        cache.batch_select_indices(rows)


def joinable(*caches: Any) -> bool:
    """Whether rows of these caches can become one: they are of `empty_cache`."""
    return all(getattr(one, "layer_class_to_replicate", None) is _layer() for one in caches)


def joined(caches: Sequence[Any], width: int) -> Any:
    """One cache with the rows of all, each cut or padded on its left to `width` tokens."""
    import torch

    made = empty_cache()
    for index, layers in enumerate(zip(*(one.layers for one in caches), strict=True)):
        if layers[0].is_initialized:
            keys, values = (torch.cat([to_width(x, width, -2) for x in part]) for part in _parts(layers))
            made.update(keys, values, index)
    return made


def _parts(layers: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    return [layer.keys for layer in layers], [layer.values for layer in layers]


def to_width(tensor: Any, width: int, dim: int) -> Any:
    """The last `width` places of a dimension, with zeros before them where there are fewer."""
    import torch

    held = tensor.shape[dim]
    if held >= width:
        return tensor.narrow(dim, held - width, width)
    shape = list(tensor.shape)
    shape[dim] = width - held
    return torch.cat([tensor.new_zeros(shape), tensor], dim=dim)
