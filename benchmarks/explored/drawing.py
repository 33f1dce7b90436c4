"""A map of many points in a real browser without a graphics card: its first picture, and further ones."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from statistics import median
from threading import Thread
from time import perf_counter

import torch

PAGE = """<!doctype html><link rel="stylesheet" href="assets/explorer.css"><body data-base="">
<script type="module" src="assets/map.js"></script><p id="gone" hidden></p><p id="progress"></p>
<div class="map-page" id="map" data-columns="columns" data-count="COUNT" data-classes='["one"]' data-lines="">
<div><select id="colour"><option>label</option></select><button id="lasso"></button><button id="view"></button>
<button id="whole"></button><div class="map-frame"><canvas id="points" tabindex="0"></canvas>
<div class="tip" hidden></div></div><ul class="legend"></ul><p id="drawing"></p></div>
<section><small id="count"></small><p id="hint"></p><ol id="chosen"></ol><form id="tag-all"></form></section>
</div>"""
DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
TIMES = 10  # further pictures


def drawn(n: int) -> tuple[float, float]:
    """Seconds to the first picture of n points, and of a further one."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
    import chromium
    from playwright.sync_api import sync_playwright

    with serving(bodies(n)) as address, sync_playwright() as playwright:
        flags = ["--headless", *chromium.FLAGS]
        browser = playwright.chromium.launch(executable_path=chromium.found(), args=flags)
        opened = browser.new_page(viewport={"width": 1440, "height": 900})
        opened.set_default_timeout(120_000)
        began = perf_counter()
        opened.goto(f"{address}/map")
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


def bodies(n: int) -> dict[str, tuple[bytes, str]]:
    """By address what the page, its assets and its points are."""
    made = torch.Generator().manual_seed(0)
    zeros = torch.zeros(n, dtype=torch.int16).numpy().tobytes()
    places = torch.randn(n, 2, generator=made).numpy().tobytes()
    content = places + zeros + zeros + torch.rand(n, generator=made).numpy().tobytes() * 2
    page = PAGE.replace("COUNT", str(n)).encode()
    found = {"/map": (page, "text/html"), "/columns": (content, "application/octet-stream")}
    assets = files("precedents").joinpath("explorer", "assets")
    for name in ("map.js", "explorer.js", "explorer.css"):
        kind = "text/css" if name.endswith("css") else "text/javascript"
        found[f"/assets/{name}"] = (assets.joinpath(name).read_bytes(), kind)
    return found


@contextmanager
def serving(found: Mapping[str, tuple[bytes, str]]) -> Iterator[str]:
    """A server of these files alone."""

    class Files(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content, kind = found.get(self.path, (b"", "text/plain"))
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Files)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
