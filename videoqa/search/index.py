"""A local index: passages in one SQLite file, searched by their words (FTS5, BM25).

    count = build(Path("texts"), Path("world.sqlite"))
    Index("world.sqlite").passages("why does a longer wrench help", 3)

A query is only ever words to look for: nothing in it is read as SQL or as FTS5's own language, in which a quotation
mark, a star, a bracket or the word NOT would mean something. An index is opened to be read only.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sqlite3
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from videoqa.errors import UserError
from videoqa.files import abandoned
from videoqa.search.passages import Passage, SearchError
from videoqa.search.texts import passages_in

FORMAT = 1
MOST_WORDS = 32  # of a query
TITLE_WEIGHT = 3.0  # a word in the title counts for so many in the text
_WORD = re.compile(r"\w+")
# What reading a damaged file raises; the second where SQLite's own message quotes bytes of it
_DAMAGED = (sqlite3.Error, UnicodeDecodeError)
# Words that stand in most English texts; a query of nothing else is searched for as it is
_STOP = """
a about an and any are as at be been but by can could did do does for from had has have he her him his how i
if in into is it its me my no not of on or our she should so some than that the their them then there these
they this those to was we were what when where which while who whom whose why will with would you your
"""
STOP = frozenset(_STOP.split())


def build(source: Path, out: Path) -> int:
    """Write the index of a folder of texts or of a dump to `out`, whole or not at all; how many passages it has. Raises
    UserError where there is nothing to be indexed."""
    out.parent.mkdir(parents=True, exist_ok=True)
    for part in abandoned(out, "part"):
        part.unlink(missing_ok=True)
    fresh = out.with_name(f".{out.name}.part-{os.getpid()}")
    fresh.unlink(missing_ok=True)
    digest, count = hashlib.sha256(), 0
    try:
        with contextlib.closing(sqlite3.connect(fresh)) as base:
            base.executescript(
                "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
                "CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT);"
                "CREATE VIRTUAL TABLE passages USING fts5"
                "(title, text, source UNINDEXED, tokenize = 'porter unicode61 remove_diacritics 2');"
            )
            for count, one in enumerate(passages_in(source), 1):  # noqa: B007
                row = tuple(_encodable(value) for value in (one.title, one.text, one.source))
                base.execute("INSERT INTO passages VALUES (?, ?, ?)", row)
                digest.update("\n".join(row).encode())
            if not count:
                raise UserError(f"{source}: there is no text in it")
            base.execute("INSERT INTO passages (passages) VALUES ('optimize')")
            about = {"format": FORMAT, "revision": digest.hexdigest()[:12], "passages": count, "source": source.name}
            base.executemany("INSERT INTO about VALUES (?, ?)", [(k, str(v)) for k, v in about.items()])
            base.commit()
        fresh.replace(out)
    finally:
        fresh.unlink(missing_ok=True)
    return count


def _encodable(text: str) -> str:
    """Without zero bytes, at which SQLite's tokenizer ends, and half surrogate pairs, which it refuses."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


class Index:
    """An index file. `name` is what its card says it was made of, `settings` its revision."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        if not self._path.is_file():
            raise UserError(f"{path}: no such index; `easg-bench index SOURCE --out {path}` makes one")
        try:
            with self._opened() as base:
                about = dict(base.execute("SELECT key, value FROM about").fetchall())
        except _DAMAGED as error:
            raise UserError(f"{path}: is no index of texts: {error}") from error
        if about.get("format") != str(FORMAT):
            raise UserError(f"{path}: is an index of format {about.get('format')}; this version reads {FORMAT}")
        self._about = about

    @property
    def name(self) -> str:
        return f"index of {self._about.get('source', 'texts')}"

    @property
    def settings(self) -> dict[str, Any]:
        return {"revision": self._about.get("revision"), "passages": self._about.get("passages")}

    def passages(self, query: str, most: int) -> list[Passage]:
        """See Search.passages. Passages with more of the query's words, and rarer ones, come first."""
        if (wanted := match_of(query)) is None:
            return []
        try:
            with self._opened() as base:
                rows = base.execute(
                    "SELECT title, text, source FROM passages WHERE passages MATCH ? "
                    f"ORDER BY bm25(passages, {TITLE_WEIGHT}, 1.0), rowid LIMIT ?",
                    (wanted, most),
                ).fetchall()
        except _DAMAGED as error:
            raise SearchError(f"{self._path.name}: {error}") from error
        if not all(isinstance(value, str) for row in rows for value in row):
            raise SearchError(f"{self._path.name}: holds what is no text")
        return [Passage(*row) for row in rows]

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        address = f"{self._path.resolve().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(address, uri=True)) as base:
            yield base


def match_of(query: str) -> str | None:
    """The query in FTS5's language: any of its words, each as a string, which FTS5 reads as nothing but a word to look
    for. None where it has no word.

    >>> match_of('Why NOT "title:*"?')
    '"title"'
    """
    words = _WORD.findall(unicodedata.normalize("NFKC", query.casefold()).replace("_", " "))
    kept = [word for word in dict.fromkeys(words) if word not in STOP] or list(dict.fromkeys(words))
    return " OR ".join(f'"{_encodable(word)}"' for word in kept[:MOST_WORDS]) or None
