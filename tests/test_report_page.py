"""The report in a browser: its script finds, filters and sorts all rows, and no text of others runs.

Needs Chromium, as tests/test_space_app.py does.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import easg_bench
from tests.test_space_app import EVIL, FLAGS
from videoqa import report
from videoqa.results import read
from videoqa.runs import Run

HOSTILE = (*EVIL[:3], "</script><script>alert(1)</script>", "<!--<script>", "\\u003cimg src=x onerror=alert(1)>")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("EASG_BENCH_BROWSER" not in os.environ, reason="set EASG_BENCH_BROWSER=1 to run browser tests"),
]


@pytest.fixture
def opened(judged: Callable[..., Path], tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens the report of a run with hostile answers; afterwards nothing has run, failed or been asked for."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra `dev`)")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("no chromium on this machine (Debian: apt-get install chromium)")
    folder = judged("org/evil", say=lambda text: "" if "tyre" in text else HOSTILE[len(text) % len(HOSTILE)])
    rows = list(easg_bench.load(Run(folder).config["data"]))
    page_file = tmp_path / "report.html"
    page_file.write_text(report.html([report.View.of(Run(folder), read(folder / "scores.json"))], rows))
    faults: list[str] = []
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)

        def refuse(dialog: Any) -> None:
            faults.append(dialog.message)
            dialog.dismiss()

        def show(width: int, scheme: str) -> Any:
            page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme).new_page()
            page.on("console", lambda message: faults.append(message.text))
            page.on("pageerror", lambda error: faults.append(str(error)))
            page.on("dialog", refuse)
            page.on("request", lambda ask: None if ask.url == page_file.as_uri() else faults.append(ask.url))
            page.goto(page_file.as_uri())
            page.locator("#row-list .box").first.wait_for()
            return page

        yield show
        browser.close()
    assert not faults


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_hostile_answers_are_text_and_nothing_sticks_out(opened: Callable[..., Any], width: int, scheme: str) -> None:
    page = opened(width, scheme)
    while page.locator("#row-more").is_visible():
        page.locator("#row-more").click()
    assert page.locator("#row-list .box").count() == 60
    assert page.evaluate("document.querySelectorAll('img, [onerror], a[href^=javascript]').length") == 0
    assert page.evaluate("document.scripts.length") == 2
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    texts = page.locator("#row-list q").all_inner_texts()
    assert {text.strip() for text in texts} <= set(HOSTILE) and len(texts) > 40
    page.locator("#row-list details").first.locator("summary").click()
    assert "#C C" in page.locator("#row-list details pre").first.inner_text()


def test_rows_are_found_by_type_state_score_and_words(opened: Callable[..., Any]) -> None:
    page = opened(1280, "light")
    count = page.locator("#row-count")
    assert count.inner_text() == "60 of 60 rows; 25 shown"
    data = json.loads(page.locator("#row-data").text_content())
    page.locator("#by-state").select_option("empty")
    empty = sum(row["runs"][0]["state"] == "empty" for row in data["rows"])
    assert empty and count.inner_text().startswith(f"{empty} of 60 rows")
    page.locator("#by-state").select_option("")
    page.locator("#by-type").select_option(label="before")
    assert count.inner_text().startswith("11 of 60 rows")
    page.locator("#by-type").select_option("")
    page.locator("#by-low").fill("4.5")
    assert count.inner_text().startswith(f"{60 - empty} of 60 rows"), "an empty answer has the lowest score"
    page.locator("#by-low").fill("")
    page.locator("#by-words").fill("TYRE what")
    found = sum("tyre" in json.dumps([r["question"], r["answer"], r["id"]]).lower() for r in data["rows"])
    assert 0 < int(count.inner_text().split()[0]) <= found + 10
    page.locator("#by-words").fill("")
    page.locator("#by-order").select_option("lowest")
    assert "empty answer" in page.locator("#row-list .box").first.inner_text()
