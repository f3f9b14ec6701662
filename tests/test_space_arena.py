"""The tab Arena of space/ in a real browser, as tests/test_space_app.py does it.

With EASG_BENCH_ARENA_PICTURES=FOLDER its pictures are kept there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.test_space_app import browser, pytestmark, serve, until, view  # noqa: F401

BUTTONS = ("#vote-a", "#vote-b", "#vote-tie", "#vote-both-bad")
EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def duel(demo_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The Space with an arena of two players on four questions."""
    from tests.test_ballots import an_arena

    folder = an_arena(tmp_path_factory.mktemp("space-arena") / "arena", 4, ("org/model-x", f"org/{EVIL}")).folder
    os.environ["EASG_BENCH_ARENA"] = str(folder)
    try:
        server, url = serve(None, demo_data, None, tmp_path_factory.mktemp("arena-space") / "log")
    finally:
        del os.environ["EASG_BENCH_ARENA"]
    yield url, folder
    server.terminate()
    server.wait(30)


def opened(page: Any) -> Any:
    page.get_by_role("tab", name="Arena").click()
    page.locator("#answer-a .duel").wait_for()
    return page


@pytest.mark.parametrize("width", [1280, 390])
def test_names_come_after_the_vote_and_the_vote_is_on_disk(
    view: Callable[..., Any],  # noqa: F811
    duel: tuple[str, Path],
    width: int,
    tmp_path: Path,
) -> None:
    url, folder = duel
    pictures = Path(os.environ.get("EASG_BENCH_ARENA_PICTURES") or tmp_path)
    before = (folder / "votes.jsonl").read_text().count("\n") if (folder / "votes.jsonl").exists() else 0
    page = opened(view(url, width))
    answers = [page.locator(f"{name} p").inner_text() for name in ("#answer-a", "#answer-b")]
    assert all(" says " in answer for answer in answers) and "He runs." in page.locator("#duel-question").inner_text()
    assert page.locator("#revealed").inner_text().strip() == ""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "wider than the page"
    page.screenshot(path=pictures / f"arena-{width}-before.png", full_page=True)
    page.wait_for_timeout(2500)
    page.locator("#vote-a").click()
    until(page, lambda: "Counted" in page.locator("#revealed").inner_text())
    named = page.locator("#revealed").inner_text()
    assert "Counted: A is better" in named
    assert f"A was {answers[0].partition(' says')[0]}" in named, "what stood as A is what is named A"
    assert all(page.locator(button).is_disabled() for button in BUTTONS)
    page.locator("#show-ratings").click()
    page.locator("#people-ratings table").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "wider than the page"
    page.screenshot(path=pictures / f"arena-{width}-after.png", full_page=True)
    lines = [json.loads(line) for line in (folder / "votes.jsonl").read_text().splitlines()]
    assert len(lines) == before + 1
    winner = lines[-1]["a"] if lines[-1]["outcome"] == "a" else lines[-1]["b"]
    assert answers[0].startswith(winner)
    page.locator("#next-pair").click()
    until(page, lambda: page.locator("#answer-a p").inner_text() != answers[0])
    assert page.locator("#revealed").inner_text().strip() == ""
    assert page.evaluate("document.querySelectorAll('[onerror], #answer-a img').length") == 0
