"""The explorer's goals, measured: sizes, packages, latencies with 50 clients, memory, points, projection.

`python -m benchmarks.explorer` prints a table. Leave the machine alone while it measures; `--short` is a look.
"""

import argparse
import asyncio
import gc
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import requires
from importlib.resources import files
from signal import SIGINT
from statistics import median
from tempfile import TemporaryDirectory
from threading import Thread
from time import monotonic, perf_counter, sleep
from urllib.request import HTTPCookieProcessor, build_opener

import psutil
import torch
from rich.console import Console
from rich.table import Table
from torch import nn

import precedents as pr
from precedents.explorer.answers import AllAnswers
from precedents.explorer.projection import components, projected, trust

CLIENTS = 50
GOALS = {"page": (60, 150), "JSON": (30, 75), "picture": (20, 60)}  # milliseconds: median, 99th percentile
TARGETS = {"page": "/cases?list=all", "JSON": "/api/v1/cases?size=24", "picture": "/pictures/train/3.png"}

MAP_PAGE = """<!doctype html><link rel="stylesheet" href="assets/explorer.css"><body data-base="">
<script type="module" src="assets/map.js"></script><p id="gone" hidden></p><p id="progress"></p>
<div class="map-page" id="map" data-columns="columns" data-count="COUNT" data-classes='["one"]' data-lines="">
<div><select id="colour"><option>label</option></select><button id="lasso"></button><button id="view"></button>
<button id="whole"></button><div class="map-frame"><canvas id="points" tabindex="0"></canvas>
<div class="tip" hidden></div></div><ul class="legend"></ul><p id="drawing"></p></div>
<section><small id="count"></small><p id="hint"></p><ol id="chosen"></ol><form id="tag-all"></form></section>
</div>"""

Line = tuple[str, str, str]  # what, measured, the goal


def sizes() -> list[Line]:
    """Bytes of what a page loads, and of what the room adds to the wheel."""
    folder = files("precedents").joinpath("explorer")
    found = {
        name: len(folder.joinpath("assets", name).read_bytes())
        for name in ("explorer.js", "map.js", "explorer.css")
    }
    room = sum(
        len(path.read_bytes())
        for part in (folder, folder / "assets", folder / "templates")
        for path in part.iterdir()
        if path.is_file()
    )
    return [
        ("script of the first page", f"{found['explorer.js'] / 1000:.1f} kB", "60 kB"),
        ("script of the map", f"{found['map.js'] / 1000:.1f} kB", "25 kB"),
        ("the room, not compressed", f"{room / 1000:.0f} kB", "200 kB in the wheel"),
    ]


def packages() -> list[Line]:
    """What the extra brings, with what that brings, beyond what the library needs already."""
    own, extra = closure("precedents", ""), closure("precedents", "explorer")
    new = sorted(extra - own)
    return [("packages", f"{len(new)}: {', '.join(new)}", "5")]


def closure(name: str, extra: str) -> set[str]:
    """All packages that a package needs here, with one of its extras."""
    from packaging.requirements import Requirement

    found: set[str] = set()
    waiting = [(name, extra)]
    while waiting:
        own, wanted = waiting.pop()
        for line in requires(own) or []:
            needed = Requirement(line)
            if needed.marker is None or any(
                needed.marker.evaluate({"extra": each}) for each in ({wanted, ""} if wanted else {""})
            ):
                key = needed.name.lower().replace("_", "-")
                if key not in found and key != "precedents":
                    found.add(key)
                    waiting.append((key, ""))
    return found


def world(n: int, m: int) -> "tuple[pr.Explainer, tuple[torch.Tensor, torch.Tensor]]":
    """A small model of pictures."""
    torch.manual_seed(0)
    x, y = torch.rand(n + m, 1, 8, 8), torch.arange(n + m) % 10
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 10))
    return pr.Explainer(model, (x[:n], y[:n])), (x[n:], y[n:])


async def client(explorer, target: str, stop: float) -> list[float]:
    """Asks again and again; the seconds of each answer."""
    door, taken = explorer.door, []
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    cookie = f"{door.cookie}={door.secret}"
    head = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{door.port}\r\nCookie: {cookie}\r\n\r\n".encode()
    while monotonic() < stop:
        began = perf_counter()
        writer.write(head)
        top = await reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in top.split(b"\r\n")[0]
        length = next(line for line in top.lower().split(b"\r\n") if line.startswith(b"content-length"))
        await reader.readexactly(int(length.split(b":")[1]))
        taken.append(perf_counter() - began)
    writer.close()
    return taken


async def clients(explorer, target: str, seconds: float, count: int) -> list[float]:
    """Many of them at once."""
    found = await asyncio.gather(*(client(explorer, target, monotonic() + seconds) for _ in range(count)))
    return sorted(each for taken in found for each in taken)


def asked(args: argparse.Namespace) -> None:
    """A process of its own that asks, so that it does not share the server's interpreter."""

    class Door:
        port, cookie, secret = args.port, f"precedents-{args.port}", args.secret

    class Told:
        door = Door

    found = asyncio.run(clients(Told, args.target, args.seconds, CLIENTS))
    sys.stdout.write(f"{len(found)} {median(found)} {found[int(0.99 * (len(found) - 1))]}\n")


def latencies(explorer, seconds: float, state: str) -> list[Line]:
    """With 50 clients that never pause."""
    lines = []
    for what, target in TARGETS.items():
        command = [sys.executable, "-m", "benchmarks.explorer", "--ask", "--port", str(explorer.door.port)]
        command += ["--secret", explorer.door.secret, "--target", target, "--seconds", str(seconds)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  this module
        count, middle, high = map(float, done.stdout.split())
        goal = f"p50 {GOALS[what][0]}, p99 {GOALS[what][1]} ms" if state == "idle" else "p99 250 ms"
        told = f"p50 {1000 * middle:.0f}, p99 {1000 * high:.0f} ms, {count / seconds:.0f} a second"
        lines.append((f"{what}, 50 clients, {state}", told, goal))
    return lines


def served(seconds: float) -> list[Line]:
    """Latencies while nothing and while a job computes, and one click at a time."""
    explorer = pr.explore(*world(2_000, 1_000), metrics=["cos_last"])
    while any(job.state in ("waiting", "running") for job in explorer.world.jobs.every.values()):
        sleep(0.1)
    lines = latencies(explorer, seconds, "idle")
    clicks = []
    for case in range(200):
        began = perf_counter()
        asyncio.run(clients(explorer, f"/cases/{case}", 0.0001, 1))
        clicks.append(perf_counter() - began)
    lines.append(("click to known precedents, p95", f"{1000 * sorted(clicks)[189]:.0f} ms", "150 ms"))
    explorer.world.jobs.ask("busy", "busy", _busy)
    sleep(0.5)
    lines += latencies(explorer, seconds, "while a job computes")
    explorer.stop()
    return lines


def _busy(job) -> None:
    x = torch.rand(1500, 1500)
    while True:
        job.step(0, 1)
        (x @ x).relu().sum().item()


def memory(n: int, m: int, metrics: int) -> list[Line]:
    """What answers of so many cases by so many metrics hold, with their reverse."""
    gc.collect()
    before = psutil.Process().memory_info().rss
    held = []
    for _ in range(metrics):
        answers = AllAnswers.empty(m, n, 10)
        answers.indices[:] = torch.randint(n, answers.indices.shape, dtype=torch.int32)
        answers.scores[:] = torch.rand(answers.scores.shape)
        answers.below[:] = 1
        answers.done[:] = True
        answers.answered_by(3)
        held.append(answers)
    grown = psutil.Process().memory_info().rss - before
    return [(f"answers of {n:,} x {m:,} by {metrics} metrics", f"{grown / 2**20:.0f} MB", "300 MB")]


def projection(n: int) -> list[Line]:
    """The map of n points in 50 dimensions."""
    drawn = torch.Generator().manual_seed(0)
    centres = 4 * torch.randn(10, 50, generator=drawn)
    points = components(centres[torch.arange(n) % 10] + torch.randn(n, 50, generator=drawn), 50)
    began = perf_counter()
    places = projected(points, 0)
    return [
        (
            f"projection of {n:,}",
            f"{perf_counter() - began:.0f} s, trust {trust(points, places):.2f}",
            "60 s for 60,000",
        )
    ]


def starts() -> list[Line]:
    """From the command to its address, and to a page with precedents, where answers are kept already."""
    with TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "precedents"]
        run = f"{folder}/run"
        train = [
            *words,
            "train",
            "--dataset",
            "digits",
            "--model",
            "logistic_regression",
            "--epochs",
            "5",
            "--quiet",
        ]
        subprocess.run([*train, "--out", run], check=True, capture_output=True)  # noqa: S603  this package
        for _ in range(2):  # the first one answers, the second one reads
            began = perf_counter()
            command = [*words, "explore", run, "--no-browser", "--quiet"]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603  this package
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            told = perf_counter() - began
            page = useful(address)
            useful_after = perf_counter() - began
            process.send_signal(SIGINT)
            process.wait()
    assert "its precedents are being computed" not in page
    return [
        ("start with kept answers, digits: address", f"{told:.1f} s", "3 s"),
        ("start with kept answers, digits: useful page", f"{useful_after:.1f} s", "5 s"),
    ]


def useful(address: str) -> str:
    """The first page, once it has precedents."""
    opener = build_opener(HTTPCookieProcessor())
    base = address.partition("?")[0]
    page = opener.open(address).read().decode()
    while "its first precedent is" not in page:
        sleep(0.05)
        page = opener.open(f"{base}cases").read().decode()
    return page


def points(n: int) -> list[Line]:
    """A map of n points in a browser without a graphics card: its first picture, and one more."""
    sys.path.insert(0, "tests")
    import chromium
    from playwright.sync_api import sync_playwright

    assets = {
        name: files("precedents").joinpath("explorer", "assets", name).read_text()
        for name in ("map.js", "explorer.js", "explorer.css")
    }
    drawn = torch.Generator().manual_seed(0)
    zeros = torch.zeros(n, dtype=torch.int16).numpy().tobytes()
    places = torch.randn(n, 2, generator=drawn).numpy().tobytes()
    content = places + zeros + zeros + torch.rand(n, generator=drawn).numpy().tobytes() * 2
    page = MAP_PAGE.replace("COUNT", str(n))
    bodies = {"/map": (page.encode(), "text/html"), "/columns": (content, "application/octet-stream")}
    bodies |= {
        f"/assets/{name}": (text.encode(), "text/css" if name.endswith("css") else "text/javascript")
        for name, text in assets.items()
    }
    with serving(bodies) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium.found(), args=["--headless", *chromium.FLAGS]
        )
        opened = browser.new_page(viewport={"width": 1440, "height": 900})
        opened.set_default_timeout(120_000)
        began = perf_counter()
        opened.goto(f"{address}/map")
        opened.wait_for_selector("#map[data-drawn]")
        first = perf_counter() - began
        opened.locator("#points").focus()
        again = []
        for _ in range(10):
            middle = perf_counter()
            opened.keyboard.press("ArrowLeft")
            opened.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            again.append(perf_counter() - middle)
        browser.close()
    return [
        (
            f"{n:,} points drawn, no graphics card",
            f"first after {first:.1f} s, then {1000 * median(again):.0f} ms",
            "drawn",
        )
    ]


@contextmanager
def serving(bodies: Mapping[str, tuple[bytes, str]]) -> Iterator[str]:
    """A server of these files alone."""

    class Files(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content, kind = bodies.get(self.path, (b"", "text/plain"))
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


def main() -> None:
    """Measures, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="a tenth of everything")
    parser.add_argument("--ask", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    for name in ("--secret", "--target"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement of latencies")
    args = parser.parse_args()
    if args.ask:
        asked(args)
        return
    short = 10 if args.short else 1
    lines = [*sizes(), *packages(), *memory(60_000 // short, 10_000 // short, 5)]
    lines += [
        *starts(),
        *served(args.seconds / short),
        *points(1_000_000 // short),
        *projection(60_000 // short),
    ]
    table = Table("what", "measured", "goal")
    for line in lines:
        table.add_row(*line)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
