"""The explorer's own map in a real browser without a graphics card: its first picture, and further ones."""

import sys
from pathlib import Path
from statistics import median
from time import perf_counter

from precedents.explorer.running import Explorer

DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
TIMES = 10  # further pictures


def drawn(explorer: Explorer, path: str) -> tuple[float, float]:
    """Seconds to the first picture of a map, and of a further one."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
    import chromium
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        flags = ["--headless", *chromium.FLAGS]
        browser = playwright.chromium.launch(executable_path=chromium.found(), args=flags)
        opened = browser.new_page(viewport={"width": 1440, "height": 900})
        opened.set_default_timeout(120_000)
        opened.goto(explorer.address)
        began = perf_counter()
        opened.goto(f"http://127.0.0.1:{explorer.door.port}/{path}")
        opened.wait_for_selector("#map[data-drawn]")
        first = perf_counter() - began
        opened.locator("#points").focus()
        again = []
        for _ in range(TIMES):
            middle = perf_counter()
            opened.keyboard.press("ArrowLeft")
            opened.evaluate(DRAWN)
            again.append(perf_counter() - middle)
        browser.close()
    return first, median(again)
