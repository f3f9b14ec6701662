"""From a short text to the search that it names."""

from __future__ import annotations

from videoqa.errors import UserError
from videoqa.search.index import Index
from videoqa.search.passages import Search
from videoqa.search.web import WebSearch


def open_search(spec: str) -> Search:
    """The search that a short text names:

        index:world.sqlite                                   a file that `easg-bench index` wrote
        web:https://HOST/PATH?key_variable=MY_KEY            a service; its key in SEARCH_API_KEY, or the variable named

    Raises UserError.
    """
    kind, _, place = spec.partition(":")
    if kind == "index" and place:
        return Index(place)
    if kind == "web" and place:
        return WebSearch.of(place)
    raise UserError(f"the search {spec!r} is neither index:FILE nor web:https://HOST/PATH")
