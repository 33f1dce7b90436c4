"""Attacks from the browser: other sites, other ports and rebound names read nothing and change nothing."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
import torch
from chromium import FLAGS, found
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

import precedents as pr
from explorer.conftest import HOSTILE, filled, picture_world
from precedents.explorer.origin import Provenance
from precedents.explorer.running import Explorer, started
from precedents.explorer.server import Listener
from precedents.explorer.tags import Tag
from precedents.explorer.world import World

EVIL, REBOUND = "evil.example", "rebound.example"  # names that lead to this machine
SITES = [
    EVIL,
    "127.0.0.1",
    "localhost",
]  # another site, another port of our own (whose cookie it has), another name
TAG = '{"set": "case", "place": 3, "tag": "drop", "note": "", "label": null}'

READING = {  # what a page of another site can tell of ours, as a text; nothing if it is empty
    "fetch": "async u => (await fetch(u + 'api/v1/cases', {credentials: 'include'})).text()",
    "fetch without cors": """async u => {
      const a = await fetch(u + 'cases', {credentials: 'include', mode: 'no-cors'});
      return a.type === 'opaque' ? '' : a.text(); }""",
    "request": """u => new Promise(done => {
      const asked = new XMLHttpRequest(); asked.withCredentials = true; asked.open('GET', u + 'api/v1/run');
      asked.onload = () => done(asked.responseText); asked.onerror = () => done(''); asked.send(); })""",
    "image": """u => new Promise(done => {
      const it = new Image(); it.onload = () => done(`${it.naturalWidth} wide`); it.onerror = () => done('');
      it.src = u + 'pictures/train/0.png'; })""",
    "script": """u => new Promise(done => {
      const it = document.createElement('script'); it.onload = () => done('ran'); it.onerror = () => done('');
      it.src = u + 'assets/explorer.js'; document.head.append(it); })""",
    "JSON as a script": """u => new Promise(done => {
      const it = document.createElement('script'); it.onload = () => done('ran'); it.onerror = () => done('');
      it.src = u + 'api/v1/cases'; document.head.append(it); })""",
    "module": "async u => Object.keys(await import(u + 'assets/explorer.js')).join()",
    "style": """u => new Promise(done => {
      const it = document.createElement('link'); it.rel = 'stylesheet'; it.href = u + 'assets/explorer.css';
      it.onload = () => done('styled'); it.onerror = () => done(''); document.head.append(it); })""",
    "frame": """u => new Promise(done => {
      const it = document.createElement('iframe');
      it.onload = () => {
        try { done(it.contentWindow.document.body.innerText); }
        catch { done(it.contentWindow.length ? 'framed' : ''); } };
      it.src = u + 'cases'; document.body.append(it); })""",
    "object": """u => new Promise(done => {
      const it = document.createElement('object');
      it.onload = () => done('loaded'); it.onerror = () => done('');
      it.data = u + 'pictures/train/0.png'; document.body.append(it); })""",
    "events": """u => new Promise(done => {
      const it = new EventSource(u + 'api/v1/jobs/1/events', {withCredentials: true});
      it.onmessage = event => done(event.data); it.onerror = () => { it.close(); done(''); }; })""",
    "socket": """u => new Promise(done => {
      const it = new WebSocket(u.replace('http', 'ws') + 'cases');
      it.onopen = () => done('open'); it.onerror = () => done(''); })""",
}
CHANGING = {  # what a page of another site can send
    "a plain post": f"""u => fetch(u + 'api/v1/tags', {{
      method: 'POST', mode: 'no-cors', credentials: 'include', body: `{TAG}`}})""",
    "our header": f"""u => fetch(u + 'api/v1/tags', {{method: 'POST', credentials: 'include', body: `{TAG}`,
      headers: {{'X-Precedents': '1', 'Content-Type': 'application/json'}}}})""",
    "undo": """u => fetch(u + 'api/v1/tags/latest', {
      method: 'DELETE', credentials: 'include', headers: {'X-Precedents': '1'}})""",
    "a beacon": f"u => navigator.sendBeacon(u + 'api/v1/tags', new Blob([`{TAG}`], {{type: 'text/plain'}}))",
    "a form": """u => { const form = document.createElement('form'), field = document.createElement('input');
      form.method = 'POST'; form.action = u + 'api/v1/tags'; form.enctype = 'text/plain';
      field.name = '{"set": "case", "place": 3, "tag": "drop", "label": null, "note": "'; field.value = '"}';
      form.append(field); document.body.append(form); form.submit(); }""",
}


@pytest.fixture(scope="module")
def own() -> Iterator[Explorer]:
    """As the command starts it: no page may have it in a frame."""
    torch.set_num_threads(1)
    explainer, test = picture_world()
    explorer = filled(started(World.of(explainer, test, [], Provenance()), Listener()))
    explorer.world.tags.add(Tag("train", 1, "look again"))
    yield explorer
    explorer.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    rules = f"--host-resolver-rules=MAP {EVIL} 127.0.0.1, MAP {REBOUND} 127.0.0.1"
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=found(), args=["--headless", rules, *FLAGS])
        yield made
        made.close()


class Blank(BaseHTTPRequestHandler):
    """A page of the attacker, who writes its script in the test."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>evil</title><body>")

    def log_message(self, *_) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Blank)
    Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def person(browser, own) -> Iterator[BrowserContext]:
    """A browser in which the explorer is open."""
    made = browser.new_context()
    page = made.new_page()
    page.goto(own.address)
    assert "of 60 right" in page.locator("h1").inner_text()
    yield made
    made.close()


@pytest.fixture(params=SITES)
def evil(request, person, port) -> Iterator[Page]:
    page = person.new_page()
    page.goto(f"http://{request.param}:{port}/")
    yield page
    page.close()


def base(explorer: Explorer) -> str:
    return f"http://127.0.0.1:{explorer.door.port}/"


@pytest.mark.parametrize("how", READING)
def test_another_site_reads_nothing(evil, own, how) -> None:
    tried = f"async u => {{ try {{ return String(await ({READING[how]})(u)); }} catch {{ return ''; }} }}"
    assert evil.evaluate(tried, base(own)) == ""


def test_our_own_page_reads_what_another_site_does_not(person, own) -> None:
    """The attacks work where they may: of what is not refused they would tell."""
    page = person.new_page()
    page.goto(base(own) + "cases")
    for how in ("fetch", "fetch without cors", "request", "image", "module", "events"):
        assert page.evaluate(READING[how], base(own)) != "", how
    page.close()


@pytest.mark.parametrize("how", CHANGING)
def test_another_site_changes_nothing(evil, own, how) -> None:
    before = list(own.world.tags.every)
    tried = f"async u => {{ try {{ await ({CHANGING[how]})(u); }} catch {{ }} }}"
    with evil.expect_event("request", lambda request: "tags" in request.url):
        evil.evaluate(tried, base(own))
    evil.wait_for_load_state("networkidle")
    assert own.world.tags.every == before


def test_a_page_that_another_site_opens_shows_it_nothing(evil, own) -> None:
    with evil.context.expect_page() as opened:
        evil.evaluate("u => { window.victim = open(u + 'cases'); }", base(own))
    opened.value.wait_for_load_state()
    read = "() => { try { return victim.document.body.innerText; } catch { return ''; } }"
    assert evil.evaluate(read) == ""
    assert evil.evaluate("victim.length") == 0
    opened.value.close()


@pytest.mark.parametrize("path", ["", "cases", "api/v1/cases", "pictures/train/0.png", "?token={token}"])
def test_a_name_that_is_rebound_to_this_machine_is_shown_nothing(person, own, path) -> None:
    page = person.new_page()
    path = path.format(token=own.door.token)
    answer = page.goto(f"http://{REBOUND}:{own.door.port}/{path}")
    assert answer.status == 421
    assert "of 60 right" not in page.content()
    read = page.evaluate("async () => (await fetch('/api/v1/cases', {credentials: 'include'})).status")
    assert read == 421
    page.close()


SHOWN = [
    "cases?list=all",
    "cases/1",
    "cases/1?as=1",
    "train",
    "train/3?own=1",
    "hubs",
    "suspects",
    "try?case=1",
]
SHOWN += ["map?by=input", "tags"]


def hostile() -> tuple[pr.Explainer, tuple]:
    """Texts, class names and ids that mean harm."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    harm = [
        *HOSTILE,
        "<svg onload=alert(1)>",
        "</code></pre><script>alert(1)</script>",
        "javascript:alert(1)//",
    ]
    y = [harm[i % 3] for i in range(60)]
    x = [f"{harm[i % len(harm)]} word{i % 3} {harm[(i + 1) % len(harm)]}" for i in range(60)]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(x, y)
    ids = [f"{i}{harm[i % len(harm)]}" for i in range(60)]
    return pr.Explainer(model, (x, y), ids=ids), (x[:12], [*y[1:12], y[0]])


def test_hostile_texts_labels_and_ids_are_shown_and_not_run(browser) -> None:
    explorer = filled(pr.explore(*hostile()))
    page, said = browser.new_page(), list[str]()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    try:
        explorer.world.tags.add(Tag("train", 3, "wrong label", "<img src=x onerror=alert(1)>", 1))
        page.goto(explorer.address)
        for path in SHOWN:
            page.goto(base(explorer) + path)
            page.wait_for_function("() => !document.querySelector('[data-awaits]')")
            if path.startswith("map"):
                page.wait_for_selector("#map[data-drawn]")
                page.locator("#view").click()
                page.locator("#points").hover()
            assert page.evaluate("[...document.scripts].every(each => each.src.startsWith(location.origin))"), (
                path
            )
            assert page.locator("img[src=x], svg[onload]").count() == 0, path
        assert [text for text in said if "GL Driver" not in text] == []
    finally:
        page.close()
        explorer.stop()
