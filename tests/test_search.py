"""Search in texts: a local index, which takes any query as words, and a service on the web, which may send anything."""

from __future__ import annotations

import bz2
import contextlib
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from videoqa.commands import command_line
from videoqa.errors import UserError
from videoqa.search.index import Index, build, match_of
from videoqa.search.passages import MOST_CHARACTERS, SearchError
from videoqa.search.spec import open_search
from videoqa.search.texts import passages_in, pieces, plain
from videoqa.search.web import WebSearch

KEY = "q7Zk2mW9xLp4Rt8s"
TEXTS = {
    "torque.txt": "A longer lever turns a nut with less force. Torque is force times the length of the lever.",
    "birthday.md": "# Birthday cake\nOne makes a wish before blowing out the candles.\n\nEach candle is a year.",
    "deep/alarm.txt": "A smoke alarm beeps when there is smoke or steam.",
}


def folder_of(place: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    return place


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    place = tmp_path_factory.mktemp("index")
    assert build(folder_of(place / "texts", TEXTS), place / "world.sqlite") == 3
    return Index(place / "world.sqlite")


def test_a_question_is_a_query(index: Index) -> None:
    (first, *_) = index.passages("Why does the man put a pipe over the wrench's lever?", 3)
    assert (first.title, first.source) == ("torque", "torque.txt")
    assert index.passages("candles", 3)[0].title == "Birthday cake"
    assert [p.source for p in index.passages("alarming", 1)] == ["deep/alarm.txt"]  # by its stem
    assert index.passages("zebra", 3) == [] and index.passages("?! ...", 3) == []


@pytest.mark.parametrize(
    "query",
    [
        'lever" OR title:*',
        "lever AND NOT torque",
        "NEAR(lever torque, 2)",
        "{title text} : lever",
        "^lever*",
        "lever; DROP TABLE passages; --",
        "'lever' UNION SELECT key, value, 1 FROM about",
        '"""lever',
        "lever\0wrench",
        "lever \ud800",
        "(((((lever",
    ],
)
def test_the_index_reads_nothing_in_a_query_but_words(index: Index, query: str) -> None:
    assert "torque.txt" in [passage.source for passage in index.passages(query, 5)]
    assert len(index.passages("lever candles alarm", 5)) == 3  # all is still there


@given(st.text(st.characters(codec=None), max_size=80))
def test_any_text_can_be_looked_up(index: Index, query: str) -> None:
    assert len(index.passages(query, 2)) <= 2


@given(
    st.lists(st.sampled_from(["lever", "NOT", "AND", '"', "*", "(", ")", ":", "NEAR", "title", "^", "+", "-", "\n"]))
)
def test_marks_of_the_query_language_change_nothing(index: Index, parts: list[str]) -> None:
    words = " ".join(part for part in parts if part.isalpha())
    assert match_of(" ".join(parts)) == match_of(words)


def test_an_index_is_whole_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    with pytest.raises(UserError, match="no texts in it"):
        build(tmp_path / "none", tmp_path / "world.sqlite")
    folder_of(tmp_path / "bad", {"a.txt": "words"})
    (tmp_path / "bad" / "b.txt").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(UserError, match=r"b\.txt: is not UTF-8"):
        build(tmp_path / "bad", tmp_path / "world.sqlite")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == []


def test_what_is_no_index_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="easg-bench index SOURCE"):
        open_search(f"index:{tmp_path / 'none.sqlite'}")
    (tmp_path / "text.sqlite").write_text("words")
    with pytest.raises(UserError, match="is no index of texts"):
        Index(tmp_path / "text.sqlite")
    with pytest.raises(UserError, match="neither index:FILE nor web"):
        open_search("pigeons:north")


@given(st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_a_damaged_index_is_refused_or_an_error_of_the_search(index: Index, random: Random) -> None:
    whole = index._path.read_bytes()
    damaged = bytearray(whole[: random.randrange(len(whole))] if random.random() < 0.2 else whole)
    for _ in range(random.choice((1, 20, 200)) if damaged else 0):
        damaged[random.randrange(len(damaged))] = random.randrange(256)
    path = index._path.with_name("damaged.sqlite")
    path.write_bytes(damaged)
    with contextlib.suppress(UserError, SearchError):
        assert all(isinstance(one.text, str) for one in Index(path).passages("lever candles alarm", 3))


def test_what_sqlite_says_of_a_damaged_index_may_be_no_text(index: Index, tmp_path: Path) -> None:
    path = tmp_path / "world.sqlite"
    path.write_bytes(index._path.read_bytes().replace(b"UNINDEXED", b"UNINDEX\x82D"))
    with pytest.raises(SearchError, match=r"world\.sqlite: .*codec can't decode"):
        Index(path).passages("lever", 3)
    path.write_bytes(index._path.read_bytes().replace(b"CREATE TABLE about", b"CREATE T\xceBLE about"))
    with pytest.raises(UserError, match="is no index of texts"):
        Index(path)


def test_a_cell_that_is_no_text_is_an_error_of_the_search(index: Index, tmp_path: Path) -> None:
    path = tmp_path / "world.sqlite"
    path.write_bytes(index._path.read_bytes())
    with contextlib.closing(sqlite3.connect(path)) as base:
        base.execute("UPDATE passages SET source = 7")
        base.commit()
    with pytest.raises(SearchError, match="holds what is no text"):
        Index(path).passages("lever", 3)


def test_the_same_texts_have_the_same_revision(tmp_path: Path) -> None:
    texts = folder_of(tmp_path / "texts", TEXTS)
    found = []
    for name in ("a", "b"):
        build(texts, tmp_path / name)
        found.append(Index(tmp_path / name).settings)
    assert found[0] == found[1] and found[0]["passages"] == "3"
    (texts / "torque.txt").write_text("Other words.")
    build(texts, tmp_path / "c")
    assert Index(tmp_path / "c").settings != found[0]


@given(st.text(st.sampled_from("ab. \n"), max_size=300), st.integers(4, 40))
def test_pieces_hold_every_letter_and_none_is_too_long(text: str, most: int) -> None:
    found = list(pieces(text, most))
    assert all(0 < len(piece) <= most for piece in found)
    assert "".join("".join(found).split()) == "".join(text.split())


# -- a Wikipedia dump -------------------------------------------------------------------------------------------------

DUMP = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/">
<siteinfo><sitename>Wikipedia</sitename></siteinfo>
<page><title>Torque</title><ns>0</ns><revision><text>{{Infobox|a={{b}}}}'''Torque''' is the [[moment (physics)|moment]]
of [[force]].&lt;ref name="x"&gt;A [[book]]&lt;/ref&gt; [[File:Lever.png|thumb|A [[lever]]]]

== Use ==
{| class="wikitable"
| a || b
|}
A [https://example.org longer wrench] helps.</text></revision></page>
<page><title>Moment</title><ns>0</ns><redirect title="Torque" />
<revision><text>#REDIRECT [[Torque]]</text></revision></page>
<page><title>Talk:Torque</title><ns>1</ns><revision><text>talk</text></revision></page>
</mediawiki>"""


@pytest.mark.parametrize("packed", [True, False])
def test_a_dump_is_read_as_a_stream(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / ("pages-articles.xml.bz2" if packed else "pages-articles.xml")
    path.write_bytes(bz2.compress(DUMP.encode()) if packed else DUMP.encode())
    (one,) = passages_in(path)
    assert one.title == one.source == "Torque"
    assert one.text == "Torque is the moment of force. Use. A longer wrench helps."


def test_a_dump_that_is_cut_off_makes_no_index(tmp_path: Path) -> None:
    path = tmp_path / "cut.xml.bz2"
    whole = bz2.compress((DUMP * 50).encode())
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match="perhaps cut off"):
        build(path, tmp_path / "world.sqlite")
    assert not (tmp_path / "world.sqlite").exists()


@given(st.text(st.sampled_from("{}|[]='<>a \n"), max_size=200))
def test_any_markup_ends(text: str) -> None:
    assert len(plain(text)) <= 2 * len(text) + 2


def test_the_command_makes_an_index(tmp_path: Path) -> None:
    texts = folder_of(tmp_path / "texts", TEXTS)
    done = CliRunner().invoke(command_line(), ["index", str(texts), "--out", str(tmp_path / "w.sqlite")])
    assert done.exit_code == 0 and "3 passages" in done.output


# -- the web ----------------------------------------------------------------------------------------------------------

Send = Callable[[BaseHTTPRequestHandler], None]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Send], tuple[WebSearch, list[Any]]]]:
    """Starts a search service on loopback that answers by a function; gives the search and the requests."""
    monkeypatch.setenv("SEARCH_API_KEY", KEY)
    servers = []

    def start(send: Send) -> tuple[WebSearch, list[Any]]:
        requests: list[Any] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                requests.append((self.path, dict(self.headers)))
                send(self)

            def log_message(self, *_: Any) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        search = open_search(f"web:http://127.0.0.1:{server.server_port}/search")
        assert isinstance(search, WebSearch)
        object.__setattr__(search, "wait_s", 0.0)
        return search, requests

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def reply(body: Any, status: int = 200) -> Send:
    def send(handler: BaseHTTPRequestHandler) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return send


RESULT = {"title": "Torque", "url": "https://example.org/t", "description": "A <strong>longer</strong> lever helps."}


@pytest.mark.parametrize(
    "body",
    [
        {"web": {"results": [RESULT]}},
        {"results": [{**RESULT, "content": RESULT["description"], "description": None}]},
        {"organic": [{"title": "Torque", "link": RESULT["url"], "snippet": RESULT["description"]}]},
        {
            "items": [
                7,
                None,
                {"title": 3, "snippet": ""},
                {"title": "Torque", "link": RESULT["url"], "snippet": "A longer lever helps."},
            ]
        },
    ],
)
def test_the_usual_lists_of_results_are_read(service: Any, body: Any) -> None:
    search, requests = service(reply(body))
    (found,) = search.passages('why "levers" & more', 3)
    assert (found.title, found.text, found.source) == ("Torque", "A longer lever helps.", RESULT["url"])
    ((path, headers),) = requests
    assert path == "/search?q=why+%22levers%22+%26+more&count=3" and headers["X-Subscription-Token"] == KEY


@pytest.mark.parametrize("body", [b"<html>", b"[" * 100_000, b"{}", b'{"web": {"results": 3}}', b'"results"', b"\xff"])
def test_what_is_no_list_of_results_is_an_error_of_this_search(service: Any, body: bytes) -> None:
    search, requests = service(reply(body))
    with pytest.raises(SearchError, match=r"no JSON|no list"):
        search.passages("levers", 3)
    assert len(requests) == 1


def test_a_huge_reply_is_not_read_to_its_end(service: Any) -> None:
    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            for _ in range(64):
                handler.wfile.write(b" " * (1 << 20))
        except OSError:
            pass

    search, _ = service(endless)
    with pytest.raises(SearchError, match="larger than 4 MiB"):
        search.passages("levers", 3)


def test_a_huge_page_is_cut(service: Any) -> None:
    page = {"title": "t" * 10_000, "url": "u" * 10_000, "description": "d" * 1_000_000}
    search, _ = service(reply({"results": [page]}))
    (found,) = search.passages("levers", 3)
    assert len(found.text) == MOST_CHARACTERS and len(found.title) == 300 and len(found.source) == 500


def test_a_service_that_is_down_is_asked_again_and_then_given_up(service: Any) -> None:
    search, requests = service(reply(b"busy", 503))
    with pytest.raises(SearchError, match=r"HTTP 503 \(tried 4 times\)"):
        search.passages("levers", 3)
    assert len(requests) == 4


def test_a_key_that_is_refused_ends_the_run_and_is_not_shown(service: Any) -> None:
    search, _ = service(reply(f"bad key {KEY}".encode(), 401))
    with pytest.raises(UserError, match=r"HTTP 401: bad key \*\*\*; is the key in SEARCH_API_KEY right") as error:
        search.passages("levers", 3)
    assert KEY not in str(error.value)


def test_the_key_is_nowhere_though_the_service_sends_it_back(service: Any) -> None:
    search, _ = service(reply({"results": [{"title": KEY, "url": f"https://x/?k={KEY}", "text": f"key {KEY}!"}]}))
    (found,) = search.passages("levers", 3)
    assert KEY not in repr((found, search, search.name, search.settings)) and found.text == "key ***!"


def test_a_redirect_is_not_followed_with_the_key(service: Any) -> None:
    other, requests = service(reply({"results": [RESULT]}))

    def elsewhere(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", other.address)
        handler.end_headers()

    search, _ = service(elsewhere)
    with pytest.raises(SearchError, match="HTTP 302"):
        search.passages("levers", 3)
    assert requests == []


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("http://search.example.org/s", "plain http"),
        ("https://me:secret@search.example.org/s", "no part of a search's address"),
        ("https://search.example.org/s?key_variable=SEARCH_API_KEY&api_key=x", "no option 'api_key'"),
        ("https://search.example.org/sk-abcdef123456", "no part of a search's address"),
        ("https://search.example.org/s?key_variable=NO_SUCH_VARIABLE", "environment variable NO_SUCH_VARIABLE"),
        ("https://search.example.org/s?header=X:%20y", "no name of a header"),
        ("ftp://search.example.org", "https://HOST/PATH"),
    ],
)
def test_a_search_that_cannot_be_is_refused(monkeypatch: pytest.MonkeyPatch, place: str, why: str) -> None:
    monkeypatch.setenv("SEARCH_API_KEY", KEY)
    with pytest.raises(UserError, match=why):
        open_search(f"web:{place}")
