"""A search service on the web: one GET with the query, a list of results back.

    GET https://HOST/PATH?q=torque+wrench&count=3
    X-Subscription-Token: KEY

    {"web": {"results": [{"title": "Torque", "url": "https://...", "description": "..."}]}}

This is the form of Brave's web search API; the lists of SearXNG ("results", "content"), Serper ("organic", "snippet")
and Google's JSON API ("items", "snippet") are read as well. The key comes from the environment and is sent in a header,
so that it stands in no address, configuration, result or error. What the service sends is bounded in time and size,
and only JSON of that form is taken.
"""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from videoqa.engines import SECRET_VALUE
from videoqa.engines.endpoint import PART, key_parts, visible, without_parts
from videoqa.errors import UserError
from videoqa.search.passages import MOST_CHARACTERS, Passage, SearchError

VARIABLE, HEADER = "SEARCH_API_KEY", "X-Subscription-Token"
TIMEOUT_S, WHOLE_S = 20.0, 60.0  # without a byte; for a whole reply
TRIES, WAIT_S = 4, 1.0  # the wait doubles
MOST_BYTES = 4 << 20  # of a reply
MOST_QUERY = 400  # characters
LISTS = (("web", "results"), ("results",), ("organic",), ("items",))
TEXTS = ("description", "content", "snippet", "text")
_TAG = re.compile(r"</?\w[^<>]{0,200}>")  # services mark the words that they found: <strong>torque</strong>


@dataclass(frozen=True, slots=True)
class WebSearch:
    """`address` is that of the service, without a query. `header` carries the key."""

    address: str
    variable: str = VARIABLE
    header: str = HEADER
    wait_s: float = WAIT_S
    _parts: frozenset[str] = field(default=frozenset(), repr=False)  # of the key, which nothing may show

    @classmethod
    def of(cls, place: str) -> WebSearch:
        """From "https://HOST/PATH?key_variable=NAME&header=NAME". Raises UserError, also where the key is missing."""
        import httpx

        address, _, query = place.partition("?")
        options = dict(parse_qsl(query))
        if unknown := options.keys() - {"key_variable", "header"}:
            raise UserError(f"a web search has no option {min(unknown)!r}; allowed are key_variable, header")
        try:
            url = httpx.URL(address)
        except httpx.InvalidURL as error:
            raise UserError(f"the web search has no address: {error}") from error
        local = url.host in ("127.0.0.1", "localhost", "::1")
        if url.userinfo or SECRET_VALUE.search(place):
            raise UserError("a key is no part of a search's address: put it into the environment (key_variable=NAME)")
        if not url.host or not (url.scheme == "https" or (url.scheme == "http" and local)):
            raise UserError("a web search is given as web:https://HOST/PATH; plain http would show the key on its way")
        variable, header = options.get("key_variable", VARIABLE), options.get("header", HEADER)
        if not re.fullmatch(r"[A-Za-z0-9-]{1,60}", header):
            raise UserError(f"header {header!r}: is no name of a header")
        made = cls(address, variable, header)
        if not (key := made._key()):
            raise UserError(f"the web search needs a key: put it into the environment variable {variable}")
        # keys that are none ("EMPTY", "x") are words
        return cls(address, variable, header, _parts=key_parts(key) if len(key) >= PART else frozenset())

    def _key(self) -> str:
        key = os.environ.get(self.variable, "").strip()
        if not re.fullmatch(r"[!-~]*", key):
            raise UserError(f"{self.variable} holds blanks, line ends or characters that are not ASCII")
        return key

    @property
    def name(self) -> str:
        import httpx

        return f"web search at {httpx.URL(self.address).host}"

    @property
    def settings(self) -> dict[str, Any]:
        return {"address": self.address}

    def passages(self, query: str, most: int) -> list[Passage]:
        """See Search.passages. Raises UserError where no search can succeed: the key is refused."""
        for attempt in range(TRIES):
            passing, data = self._fetched(query[:MOST_QUERY], most)
            if passing is None:
                return self._read(data, most)
            if attempt < TRIES - 1:
                time.sleep(self.wait_s * 2**attempt)
        raise SearchError(f"{self.name}: {passing} (tried {TRIES} times)")

    def _fetched(self, query: str, most: int) -> tuple[str | None, bytes]:
        """What went wrong, if it may pass, and the body of a reply."""
        import httpx

        data = bytearray()
        ends = time.monotonic() + WHOLE_S
        asked = {"q": query.encode("utf-8", "replace").decode(), "count": str(most)}
        headers = {self.header: self._key(), "Accept": "application/json"}
        try:
            with httpx.stream("GET", self.address, params=asked, headers=headers, timeout=TIMEOUT_S) as reply:
                for chunk in reply.iter_bytes():
                    data += chunk
                    if len(data) > MOST_BYTES:
                        raise SearchError(f"{self.name}: the reply is larger than {MOST_BYTES >> 20} MiB")
                    if time.monotonic() > ends:
                        return f"no whole reply within {WHOLE_S:g} s", b""
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            return self._hidden(f"{type(error).__name__}: {error}"), b""
        if reply.status_code in (401, 402, 403):
            said = self._hidden(data.decode("utf-8", "replace"))
            raise UserError(
                f"{self.name} answers HTTP {reply.status_code}: {said}; is the key in {self.variable} right?"
            )
        if reply.status_code in (408, 425, 429) or reply.status_code >= 500:
            return f"HTTP {reply.status_code}", b""
        if reply.status_code != 200:
            raise SearchError(f"{self.name}: HTTP {reply.status_code}: {self._hidden(data.decode('utf-8', 'replace'))}")
        return None, bytes(data)

    def _read(self, data: bytes, most: int) -> list[Passage]:
        try:
            reply = json.loads(data)
        except (ValueError, RecursionError):
            said = self._hidden(data[:400].decode("utf-8", "replace"))
            raise SearchError(f"{self.name}: the reply is no JSON: {said}") from None
        results = next((found for path in LISTS if isinstance(found := _inside(reply, path), list)), None)
        if results is None:
            raise SearchError(f"{self.name}: the reply has no list of results")
        found = [self._passage(one) for one in results if isinstance(one, dict)]
        return [one for one in found if one.text][:most]

    def _passage(self, result: dict[str, Any]) -> Passage:
        text = next((result[name] for name in TEXTS if isinstance(result.get(name), str) and result[name].strip()), "")
        title, source = (value if isinstance(value := result.get(key), str) else "" for key in ("title", "url"))
        source = source or (result["link"] if isinstance(result.get("link"), str) else "")
        kept = (_TAG.sub("", value)[:length] for value, length in ((title, 300), (text, MOST_CHARACTERS)))
        return Passage(*(without_parts(value, self._parts) for value in (*kept, source[:500])))

    def _hidden(self, text: str) -> str:
        """The beginning of a text for people, without the key."""
        return visible(without_parts(text[:2_000], self._parts))[:200]


def _inside(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value
