"""videoqa/engines/cache.py: grown in place, chosen and joined, a layer holds what transformers' own would."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from videoqa.engines import cache

torch = pytest.importorskip("torch")
HEADS, SIZE = 2, 3
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(1, 40)),
        st.tuples(st.just("keep"), st.sets(st.integers(0, 5), min_size=1)),
        st.tuples(st.just("choose"), st.lists(st.integers(0, 5), min_size=1, max_size=6)),
        st.tuples(st.just("copy"), st.none()),
    ),
    max_size=12,
)


def states(rows: int, tokens: int, first: float) -> Any:
    values = torch.arange(rows * HEADS * tokens * SIZE, dtype=torch.float32)
    return (values + first).reshape(rows, HEADS, tokens, SIZE)


def held(one: Any) -> list[Any]:
    return [(layer.keys, layer.values) for layer in one.layers]


def assert_equal(mine: Any, own: Any) -> None:
    for one, other in zip(held(mine), held(own), strict=True):
        assert all(torch.equal(x, y) for x, y in zip(one, other, strict=True))
    assert mine.get_seq_length() == own.get_seq_length()


@given(STEPS)
@settings(max_examples=150, deadline=None)
def test_a_layer_holds_what_transformers_own_would(steps: list[tuple[str, Any]]) -> None:
    from transformers import DynamicCache

    mine, own, aside = cache.empty_cache(), DynamicCache(), []
    read = rows = 0
    for what, how in [("read", 4), *steps]:
        if what == "read":
            rows, read = rows or 6, read + 1000
            for one in (mine, own):
                new = states(rows, how, read)
                one.update(new, -new, 0)
        elif what == "keep":
            places = torch.tensor(cache.filling(sorted(k for k in how if k < rows) or [0]))
            for one in (mine, own):
                cache.keep_rows(one, places)
            rows = len(places)
        elif what == "choose":
            places = torch.tensor([k % rows for k in how])
            aside.append((mine, copy.deepcopy(own)))  # what was chosen from stays as it is
            mine = cache.chosen(mine, places)
            own = copy.deepcopy(own)
            own.batch_select_indices(places)
            rows = len(places)
        else:
            aside.append((mine, own))
            mine, own = copy.deepcopy(mine), copy.deepcopy(own)
        assert_equal(mine, own)
    for one, other in aside:
        assert_equal(one, other)


@given(st.integers(1, 9).flatmap(lambda n: st.sets(st.integers(0, n - 1), min_size=1)))
def test_places_that_stay_do_not_move(places: set[int]) -> None:
    alive = sorted(places)
    order = cache.filling(alive)
    assert sorted(order) == alive
    assert all(order[k] == k for k in alive if k < len(alive))


def test_joined_rows_are_padded_on_the_left() -> None:
    one, other = cache.empty_cache(), cache.empty_cache()
    one.update(states(1, 5, 1), states(1, 5, 100), 0)
    other.update(states(2, 2, 500), states(2, 2, 600), 0)
    both = cache.joined([one, other], 4)
    keys, values = held(both)[0]
    assert keys.shape == values.shape == (3, HEADS, 4, SIZE)
    assert torch.equal(keys[:1], states(1, 5, 1)[..., 1:, :]) and torch.equal(values[1:, :, 2:], states(2, 2, 600))
    assert not keys[1:, :, :2].any() and not values[1:, :, :2].any()


def test_only_caches_made_here_are_joined() -> None:
    from transformers import DynamicCache

    assert cache.joinable(cache.empty_cache(), cache.empty_cache())
    assert not cache.joinable(cache.empty_cache(), DynamicCache()) and not cache.joinable(None)
