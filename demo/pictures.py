"""Pictures of reports for the README, taken with Chromium.

python -m demo.pictures build/pictures/egoschema.png=runs/egoschema.html#distribution,samples ...

A picture begins at the element of the first id and ends before that of the second one (without it: a page below).
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

WIDTH, HEIGHT = 1000, 900  # px


def main(asked: list[str]) -> None:
    """Take the pictures that are asked for, each as PICTURE.png=REPORT.html#ID or #ID,ID."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("no chromium on this machine (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for one in asked:
            picture, _, address = one.partition("=")
            report, _, elements = address.partition("#")
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
            page.goto(Path(report).resolve().as_uri())
            page.locator("#row-list .box").first.wait_for()
            tops = [
                page.locator(f"#{element}").evaluate("e => e.getBoundingClientRect().top + scrollY") - 8
                for element in elements.split(",")
            ]
            height = tops[1] - tops[0] - 16 if len(tops) > 1 else HEIGHT
            Path(picture).parent.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=picture, full_page=True, clip={"x": 0, "y": tops[0], "width": WIDTH, "height": height})
            print(picture)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
