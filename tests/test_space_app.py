"""space/app.py in a browser: every tab, light and dark, wide and narrow; sorting, filters, links, uploads.

Needs Chromium (Debian: apt-get install chromium). With EASG_BENCH_PICTURES=docs/pictures the pictures of the README are
made anew.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.test_leaderboard import judged_by, put
from tests.test_results import result as a_result

ROOT = Path(__file__).resolve().parents[1]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TABS = {
    "Leaderboard": "#board",
    "Types": "#by-type",
    "Browse": "#answers",
    "Submit": "#upload",
    "About": "text=What it is not",
}
EVIL = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))${alert(1)}{{x}}",
    "نموذج",
    "a" * 200,
)
SLOW = 60_000  # ms; the machine may be busy

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        "EASG_BENCH_BROWSER" not in os.environ, reason="set EASG_BENCH_BROWSER=1 to run the browser tests (minutes)"
    ),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium with a profile of its own."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra `dev`)")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("no chromium on this machine (Debian: apt-get install chromium)")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=FLAGS)  # headless, a new profile
        yield opened
        opened.close()


def serve(results: Path | None, data: Path, videos: Path | None, log: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Start the Space and wait for it."""
    pytest.importorskip("gradio", reason="the extra `space` is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {
        **os.environ,
        "GRADIO_SERVER_NAME": "127.0.0.1",
        "GRADIO_SERVER_PORT": str(port),
        "EASG_BENCH_DATA": str(data),
        "EASG_BENCH_VIDEOS": str(videos or ""),
        "EASG_BENCH_RESULTS": str(results or ""),
        "HF_HUB_OFFLINE": "1",
    }
    with log.open("wb") as file:
        server = subprocess.Popen([sys.executable, str(ROOT / "space" / "app.py")], env=env, stdout=file, stderr=file)
    url = f"http://127.0.0.1:{port}"
    end = time.monotonic() + 120
    while True:
        assert server.poll() is None and time.monotonic() < end, log.read_text()
        try:
            httpx.get(url, timeout=5).raise_for_status()
            return server, url
        except httpx.HTTPError:
            time.sleep(0.2)


@pytest.fixture(scope="module")
def demo(demo_data: Path, demo_videos: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The Space as `make space` starts it."""
    server, url = serve(None, demo_data, demo_videos, tmp_path_factory.mktemp("demo-space") / "log")
    yield url
    server.terminate()
    server.wait(30)


@pytest.fixture(scope="module")
def crowded(demo_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The Space with many models, some with hostile names, and with a file that is no result."""
    folder = tmp_path_factory.mktemp("board")
    for at, name in enumerate((*EVIL, *(f"org/model-{i}" for i in range(12)))):
        put(folder, judged_by("judge", name, 2.0 + at / 4) | {"kind": ("video", "language-only")[at % 2]})
    put(folder, judged_by("another judge", "org/elsewhere", 9.0))
    put(folder, judged_by("judge", "org/thirty-best", 9.5) | {"unanswered": 12})
    bad = folder / "results/bad/bad/scores.json"
    bad.parent.mkdir(parents=True)
    bad.write_text('{"format": 1, "model": "<script>alert(2)</script>", "kind": "<img src=x onerror=alert(3)>"}')
    server, url = serve(folder, demo_data, None, tmp_path_factory.mktemp("crowded-space") / "log")
    yield url
    server.terminate()
    server.wait(30)


@pytest.fixture
def view(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens a page; afterwards there must have been no error, no dialog and no request to elsewhere."""
    faults: list[str] = []
    contexts = []
    expected: list[str] = []

    def note(message: Any) -> None:
        if message.type == "error" and not any(text in message.text for text in expected):
            faults.append(f"console: {message.text}")

    def refuse(dialog: Any) -> None:
        faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def stay(url: str) -> None:
        if not url.startswith(("http://127.0.0.1:", "data:", "blob:")):
            faults.append(f"request to {url}")

    def show(url: str, width: int = 1280, scheme: str = "light", errors: tuple[str, ...] = ()) -> Any:
        expected.extend(errors)
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        context.set_default_timeout(SLOW)
        page = context.new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: faults.append(f"error: {error}"))
        page.on("dialog", refuse)
        page.on("request", lambda ask: stay(ask.url))
        page.goto(url)
        page.locator("#board tbody tr").first.wait_for(state="attached")  # a link may open another tab
        return page

    yield show
    for context in contexts:
        context.close()
    assert not faults


def names(page: Any) -> list[str]:
    """The models in the leaderboard, from the top."""
    return page.locator("#board tbody tr").evaluate_all(
        "rows => rows.map(row => row.querySelector('td.sticks span')?.innerText ?? '')"
    )


def until(page: Any, true: Callable[[], bool]) -> None:
    for _ in range(SLOW // 100):
        if true():
            return
        page.wait_for_timeout(100)
    raise AssertionError("nothing happened")


def shows_only(page: Any, name: str) -> bool:
    return names(page) == [name]


def says(page: Any, element: str, text: str) -> bool:
    return text in value(page, element)


def value(page: Any, element: str) -> str:
    return page.locator(f"{element} textarea, {element} input").first.input_value()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_tab_opens_and_nothing_sticks_out(
    view: Callable[..., Any], demo: str, width: int, scheme: str, tmp_path: Path
) -> None:
    page = view(demo, width, scheme)
    pictures = os.environ.get("EASG_BENCH_PICTURES")
    for tab, element in TABS.items():
        page.get_by_role("tab", name=tab).click()
        page.locator(element).first.wait_for()
        if tab in ("Types", "Browse"):
            page.locator(f"{'#by-type' if tab == 'Types' else '#timeline'} .main-svg").first.wait_for()
            page.wait_for_timeout(500)  # plotly fits its charts to the page
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{tab} is wider than the page"
        page.screenshot(path=tmp_path / f"{tab}-{width}-{scheme}.png", full_page=True)
    ink = page.evaluate("getComputedStyle(document.querySelector('h1')).color")
    assert (sum(int(part) for part in ink.strip("rgba()").split(",")[:3]) < 380) == (scheme == "light"), ink
    if pictures and (width, scheme) == (1280, "light"):
        page.get_by_role("tab", name="Leaderboard").click()
        page.screenshot(path=Path(pictures) / "leaderboard.png", full_page=True)


def test_the_first_view_has_the_demos_results_and_the_papers_rows_apart(view: Callable[..., Any], demo: str) -> None:
    page = view(demo)
    assert names(page) == ["smollm2", "smollm2"]
    assert "Qwen2.5-VL-7B" in page.locator("#paper").inner_text()
    assert "proves the path" in page.locator("#warning").inner_text()
    assert not page.locator("#track").is_visible(), "one benchmark needs no chooser"


def test_a_column_sorts_by_its_number(view: Callable[..., Any], crowded: str) -> None:
    page = view(crowded)
    best_first = names(page)
    assert best_first[0] == "org/model-11"
    head = page.locator("#board th", has_text="n of N")
    head.click()
    assert head.get_attribute("aria-sort") == "descending"
    head = page.locator("#board th", has_text="Avg.")
    head.click()
    assert names(page)[:2] == ["org/thirty-best", "org/model-11"] and head.get_attribute("aria-sort") == "descending"
    head.click()
    assert names(page)[0] == EVIL[0] and head.get_attribute("aria-sort") == "ascending"


def test_a_partial_run_stands_below_with_its_count_and_is_no_best(view: Callable[..., Any], crowded: str) -> None:
    page = view(crowded)
    assert names(page)[-1] == "org/thirty-best"
    line = page.locator("#board tbody tr").last.inner_text()
    assert "partial" in line and "of 15" in line and "not ranked" in line and "without an answer" in line


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_average_and_its_count_are_seen_on_a_phone(view: Callable[..., Any], crowded: str, scheme: str) -> None:
    page = view(crowded, 390, scheme)
    for name in ("Model", "Avg.", "n of N"):
        box = page.locator("#board th", has_text=name).bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390, f"{name} is not in sight"


def test_filters_and_groups(view: Callable[..., Any], crowded: str) -> None:
    page = view(crowded)
    assert "org/elsewhere" not in names(page)
    page.locator("#search textarea, #search input").fill("model-1")
    until(page, lambda: names(page) == ["org/model-11", "org/model-10", "org/model-1"])
    page.get_by_label("language-only").check()
    until(page, lambda: names(page) == ["org/model-10"])
    page.get_by_label("language-only").uncheck()
    page.locator("#search textarea, #search input").fill("")
    until(page, lambda: len(names(page)) > 5)
    page.locator("#group input").click()
    page.get_by_role("option", name="another judge").click()
    until(page, lambda: names(page) == ["org/elsewhere"])


def test_hostile_names_are_names(view: Callable[..., Any], crowded: str) -> None:
    page = view(crowded)
    for name in EVIL[:4]:
        page.locator("#search textarea, #search input").fill(name)
        until(page, partial(shows_only, page, name))
    page.locator("#search textarea, #search input").fill("aaa")
    until(page, lambda: len(names(page)) == 1 and names(page)[0].endswith("…"))
    assert "results/bad/bad/scores.json" in value(page, "#note")
    page.get_by_role("tab", name="Types").click()
    page.locator("#by-type .main-svg").first.wait_for()
    assert (
        page.evaluate("document.querySelectorAll('#board img, #board script, [onerror], a[href^=javascript]').length")
        == 0
    )


def test_a_question_opens_by_its_link(view: Callable[..., Any], demo: str) -> None:
    page = view(f"{demo}/?question=demo-parcel%3A9%3Abefore")
    page.locator("#question-text h2").wait_for()
    assert page.get_by_role("tab", name="Browse").get_attribute("aria-selected") == "true"
    shown = page.locator("#question-text").inner_text()
    assert "before, clip demo-parcel" in shown
    page.locator("#answers tbody tr").nth(1).wait_for()
    answers = page.locator("#answers").inner_text()
    assert "smollm2 (blind)" in answers and "smollm2 (narrations)" in answers
    assert page.locator("#question-text a").get_attribute("href") == "?question=demo-parcel%3A9%3Abefore"
    if pictures := os.environ.get("EASG_BENCH_PICTURES"):
        page.locator("#picture svg image").first.wait_for()
        page.wait_for_timeout(1000)
        page.screenshot(path=Path(pictures) / "question.png", full_page=True)


def test_a_link_to_no_question_says_so(view: Callable[..., Any], demo: str) -> None:
    page = view(f"{demo}/?question=<script>alert(1)</script>")
    page.get_by_text("There is no such question").wait_for()


def test_questions_are_found_by_words(view: Callable[..., Any], demo: str) -> None:
    page = view(demo)
    page.get_by_role("tab", name="Browse").click()
    page.locator("#question-text h2").wait_for()
    page.locator("#words textarea, #words input").fill("tyre")
    until(page, lambda: "tyre" in page.locator("#question-text").inner_text())


def test_a_good_upload_is_shown_and_a_bad_one_refused(
    view: Callable[..., Any], crowded: str, judged: Callable[..., Path], tmp_path: Path
) -> None:
    page = view(crowded)
    page.get_by_role("tab", name="Submit").click()
    folder = judged("org/uploaded")
    files = [folder / name for name in ("scores.json", "answers.jsonl", "verdicts.jsonl")]
    page.locator("#upload input[type=file]").set_input_files(files)
    until(page, lambda: "Its answers give the same numbers" in value(page, "#verdict"))
    page.locator("#preview tbody tr").first.wait_for()
    assert "org/uploaded" in page.locator("#preview").inner_text()

    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps(a_result(model="<script>alert(1)</script>")).replace('"n": 15', '"n": -15'))
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("scores.json", b"0" * 50_000_000)
    for path, reason in ((bad, "greater than or equal to 0, not -15"), (tmp_path / "bomb.zip", "not packed")):
        page.locator("#upload").get_by_label("Clear").click()
        page.locator("#upload input[type=file]").set_input_files(path)
        until(page, partial(says, page, "#verdict", reason))
    assert page.locator("#send").is_disabled()
    assert "the upload was refused" in page.locator("#send").inner_text(), "the button says why"


def test_a_huge_upload_is_refused_and_the_page_lives_on(view: Callable[..., Any], crowded: str, tmp_path: Path) -> None:
    page = view(crowded, errors=("Failed to load resource", "Response"))  # gradio's own, of the refused upload
    page.get_by_role("tab", name="Submit").click()
    huge = tmp_path / "huge.json"
    with huge.open("wb") as file:
        file.truncate(200_000_000)
    page.locator("#upload input[type=file]").set_input_files(huge)
    page.get_by_text("exceed the maximum allowed size").first.wait_for()
    page.get_by_role("tab", name="Leaderboard").click()
    page.locator("#search textarea, #search input").fill("model-11")
    until(page, lambda: names(page) == ["org/model-11"])


def test_files_of_the_machine_are_not_served(crowded: str) -> None:
    for path in ("/file=/etc/passwd", "/gradio_api/file=/etc/passwd", "/gradio_api/file=../../../etc/passwd"):
        assert httpx.get(crowded + path).status_code in (403, 404)
