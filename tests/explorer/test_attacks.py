"""Attacks by raw sockets: all are refused or harmless, and the server lives on; by browsers: test_sites.py."""

import gc
import json
import socket
import struct
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
from waiting import until

import precedents as pr
from explorer.conftest import HOSTILE, Client, filled, parsed, path_of, picture_world, received
from precedents.errors import InputError
from precedents.explorer import limits
from precedents.explorer.cache import ByteCache
from precedents.explorer.safety import HEAD, Door
from precedents.explorer.server import Listener

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
TAG = {"set": "case", "place": 3, "tag": "look again", "note": "", "label": None}


@pytest.fixture(autouse=True)
def alive(client):
    """Whatever a test did, a page of ours is answered afterwards."""
    yield
    assert client.ask("/api/v1/run")[0] == 200


def body(value: object) -> bytes:
    return json.dumps(value).encode()


def test_the_policy_is_exactly_this() -> None:
    assert Door(8123).policy() == POLICY


def test_every_answer_has_the_headers_of_security(client, explorer) -> None:
    for target, headers in (
        ("/cases", {}),
        ("/nothing", {}),
        ("/cases", {"Cookie": None}),
        ("/assets/explorer.js", {}),
    ):
        head = client.ask(target, **headers)[1].lower()
        assert f"content-security-policy: {explorer.door.policy()}" in head
        for line in ("x-content-type-options: nosniff", "referrer-policy: no-referrer"):
            assert line in head
        for name in ("opener-policy", "resource-policy"):
            assert f"cross-origin-{name}: same-origin" in head
        assert "access-control" not in head
        assert "server:" not in head


@pytest.mark.parametrize(
    "target", ["/cases", "/", "/api/v1/run", "/assets/explorer.js", "/pictures/train/0.png"]
)
def test_without_the_cookie_nothing_is_shown(client, target) -> None:
    status, _, text = client.ask(target, Cookie=None)
    assert status == 401
    assert "token" in text


@pytest.mark.parametrize("value", ["", "x", "a" * 43, "%00", "token"])
def test_a_wrong_cookie_is_refused(client, value) -> None:
    assert client.ask("/cases", Cookie=f"{client.door.cookie}={value}")[0] == 401


def test_the_token_is_no_cookie_and_the_cookie_no_token(client) -> None:
    assert client.ask("/cases", Cookie=f"{client.door.cookie}={client.door.token}")[0] == 401
    assert client.ask(f"/?token={client.door.secret}", Cookie=None)[0] == 403


def test_the_token_is_exchanged_for_a_strict_cookie_and_a_redirect_without_it(client) -> None:
    status, head, _ = client.ask(path_of(client.door.address), Cookie=None)
    assert status == 303
    assert "location: cases\r\n" in head
    assert "HttpOnly; SameSite=Strict" in head
    assert client.door.token not in head
    assert client.door.cookie == f"precedents-{client.port}"


@pytest.mark.parametrize("token", ["", "wrong", "a" * 43, "%F0%9F%92%A9"])
def test_a_wrong_token_is_refused(client, token) -> None:
    assert client.ask(f"/?token={token}", Cookie=None)[0] == 403


def test_a_stale_token_is_refused(client) -> None:
    before = Door(client.port)
    assert client.ask(path_of(before.address), Cookie=None)[0] == 403


def test_two_tokens_are_refused(client) -> None:
    assert client.ask(f"/?token={client.door.token}&token=x", Cookie=None)[0] == 403


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:{other}",
        "localhost.evil.example:{port}",
        "127.0.0.1.nip.io:{port}",
        "localhost.:{port}",
        "evil@127.0.0.1:{port}",
        "127.0.0.1:{port}@evil",
        "[::1]:{port}x",
        "0:{port}",
        "2130706433:{port}",
        "127.1:{port}",
        "",
    ],
)
def test_a_foreign_host_is_misdirected_before_anything_else(client, host) -> None:
    sent = host.format(port=client.port, other=client.port + 1)
    assert client.ask("/cases", Host=sent)[0] == 421
    assert client.ask(path_of(client.door.address), Host=sent, Cookie=None)[0] == 421


@pytest.mark.parametrize("host", ["localhost:{port}", "127.0.0.1:{port}", "[::1]:{port}", "LOCALHOST:{port}"])
def test_our_own_hosts_are_answered(client, host) -> None:
    assert client.ask("/cases", Host=host.format(port=client.port))[0] == 200


def test_two_hosts_are_refused(client) -> None:
    head = (
        f"GET /cases HTTP/1.1\r\nHost: {client.host}\r\nHost: evil.example\r\nCookie: {client.cookie}\r\n\r\n"
    )
    assert parsed(client.raw(head.encode()))[0] in (400, 421)


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1", "http://localhost.evil", "file://"]
)
def test_a_foreign_origin_is_refused(client, origin) -> None:
    assert client.ask("/cases", Origin=origin)[0] == 403
    assert client.ask("/api/v1/tags", "POST", body(TAG), Origin=origin)[0] == 403


def test_a_cross_site_fetch_is_refused_even_with_the_cookie(client) -> None:
    assert client.ask("/pictures/train/0.png", Sec_Fetch_Site="cross-site")[0] == 403
    assert client.ask("/cases", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0] == 403
    assert client.ask("/cases", Sec_Fetch_Site="same-site", Sec_Fetch_Mode="no-cors")[0] == 403
    assert client.ask("/cases", Sec_Fetch_Site="same-origin")[0] == 200


def test_a_link_with_the_token_works_from_a_page_of_another_site(client) -> None:
    site = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    status, head, text = client.ask(path_of(client.door.address), Cookie=None, **site)
    assert (status, "url=cases" in text, "SameSite=Strict" in head) == (200, True, True)
    assert (
        client.ask(path_of(client.door.address), Cookie=None, **(site | {"Sec_Fetch_Mode": "no-cors"}))[0]
        == 403
    )


@pytest.mark.parametrize(
    "headers",
    [
        {"X_Precedents": None},
        {"X_Precedents": "0"},
        {"Origin": None},
        {"Content_Type": "application/x-www-form-urlencoded", "X_Precedents": None},
        {"Content_Type": "text/plain", "X_Precedents": None, "Origin": None},
    ],
)
def test_a_forged_form_changes_nothing(client, explorer, headers) -> None:
    assert client.ask("/api/v1/tags", "POST", body(TAG), **headers)[0] == 403
    assert explorer.world.tags.every == []


@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data; boundary=x", "application/x-pickle", ""])
def test_only_json_is_read(client, kind) -> None:
    assert client.ask("/api/v1/tags", "POST", body(TAG), Content_Type=kind)[0] == 415


@pytest.mark.parametrize("method", ["TRACE", "OPTIONS", "PATCH", "CONNECT", "FOO"])
def test_other_methods_are_refused(client, method) -> None:
    assert client.ask("/cases", method)[0] in (400, 403, 404, 405)


def test_reading_cannot_change(client) -> None:
    assert client.ask("/api/v1/tags/latest")[0] in (404, 405)
    assert client.ask("/cases", "POST", b"{}")[0] in (404, 405)


@pytest.mark.parametrize(
    "target",
    [
        "/../../etc/passwd",
        "/assets/../safety.py",
        "/assets/..%2fsafety.py",
        "/assets/%2e%2e/safety.py",
        "/assets//etc/passwd",
        "/assets/..\\safety.py",
        "/assets/safety.py",
        "/assets/explorer.js%00",
        "/pictures/../run.png",
        "/pictures/case/../../x.png",
        "/pictures/etc/0.png",
        "/pictures/train/0.png/..",
        "//evil.example/",
        "http://evil.example/cases",
        "*",
        "/cases/%31%32",
        "/static/x",
        "/cases/" + "9" * 3000,
    ],
)
def test_path_tricks_find_nothing(client, target) -> None:
    status, _, text = client.ask(target)
    assert status in (400, 404, 414, 421)
    assert "precedents/" not in text
    assert "root:" not in text


@pytest.mark.parametrize("place", ["-1", "160", "1e3", "0x1", "1.0", "٣", "NaN", "1" * 30, "' OR 1=1"])
def test_places_out_of_range_or_no_numbers_are_refused(client, place) -> None:
    quoted = "".join(c if c.isascii() and c not in " '" else "~" for c in place)
    for target in (f"/train/{quoted}", f"/api/v1/train/{quoted}", f"/pictures/train/{quoted}.png"):
        assert client.ask(target)[0] in (400, 404)


@pytest.mark.parametrize(
    "query",
    [
        "list=__class__",
        "sort=losses;drop",
        "page=0",
        "page=-1",
        "page=1e9",
        "size=101",
        "size=0",
        "label=99",
        "label=-1",
        "predicted=x",
        "metric=os.system",
        "unknown=1",
        "page=1&page=2",
        "q=" + "a" * 101,
        "failed=x:y",
    ],
)
def test_queries_are_of_closed_sets(client, query) -> None:
    for target in ("/cases", "/api/v1/cases"):
        assert client.ask(f"{target}?{query}")[0] == 400


@pytest.mark.parametrize("query", ["k=101", "k=0", "metric=nope", "as=4", "as=-1", "k=1;k=2", "x=1"])
def test_questions_about_a_case_are_of_closed_sets(client, query) -> None:
    assert client.ask(f"/cases/1?{query}")[0] == 400


@pytest.mark.parametrize(
    "value",
    [
        [],
        {},
        {**TAG, "place": 60},
        {**TAG, "place": -1},
        {**TAG, "place": True},
        {**TAG, "place": "3"},
        {**TAG, "set": "../train"},
        {**TAG, "tag": "<script>"},
        {**TAG, "note": "a" * 501},
        {**TAG, "label": 4},
        {**TAG, "more": 1},
        {**TAG, "place": 1e300},
    ],
)
def test_changes_of_wrong_types_and_ranges_are_refused(client, explorer, value) -> None:
    assert client.ask("/api/v1/tags", "POST", body(value))[0] == 400
    assert explorer.world.tags.every == []


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"[" * 30_000, b'{"set": NaN}', b"null"])
def test_what_is_no_json_is_refused(client, content) -> None:
    assert client.ask("/api/v1/tags", "POST", content)[0] == 400


def test_large_bodies_are_refused_before_they_are_read(client) -> None:
    assert client.ask("/api/v1/tags", "POST", b"{}", Content_Length=str(10**9))[0] == 413
    assert client.ask("/api/v1/tags", "POST", b" " * (limits.JSON + 1))[0] == 413
    assert (
        client.ask("/api/v1/try", "POST", b"x", Content_Type="image/png", Content_Length=str(10**8))[0] == 413
    )


def test_a_body_in_pieces_without_a_length_is_cut_off(client) -> None:
    head = (
        f"POST /api/v1/tags HTTP/1.1\r\nHost: {client.host}\r\nCookie: {client.cookie}\r\nX-Precedents: 1\r\n"
        f"Origin: http://{client.host}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    piece = b"8000\r\n" + b" " * 0x8000 + b"\r\n"
    assert parsed(client.raw(head.encode() + 4 * piece, until=b"\r\n\r\n"))[0] == 413


def test_large_heads_are_refused(client) -> None:
    assert client.ask("/cases", X_Large="a" * (2 * HEAD))[0] in (400, 431)
    assert client.ask("/cases?" + "a=1&" * 600)[0] == 414


@pytest.mark.parametrize(
    "content",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x00" * 64,
        b"GET /cases HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /api/v1/tags HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n",
        b"GET /cases HTTP/1.1\r\nHost: a\r\nX: b\nSet-Cookie: c\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused(client, content) -> None:
    assert parsed(client.raw(content, timeout=0.3))[0] in (0, 400, 401, 421)


def test_a_slow_head_is_given_up(client, monkeypatch) -> None:
    monkeypatch.setattr(limits, "SECONDS_HEAD", 0.3)
    with socket.create_connection(("127.0.0.1", client.port), timeout=60) as made:
        began = time.monotonic()
        made.sendall(b"GET /cases HTTP/1.1\r\nHost:")
        assert received(made) == b""
        assert time.monotonic() - began < 9  # it would be ten seconds


def test_a_slow_body_is_given_up(client, monkeypatch) -> None:
    monkeypatch.setattr(limits, "SECONDS_BODY", 0.3)
    status, _, _ = client.ask("/api/v1/tags", "POST", b'{"set"', Content_Length="60")
    assert status == 408


def test_who_does_not_read_is_given_up(client, explorer, monkeypatch) -> None:
    monkeypatch.setattr(limits, "SECONDS_SENT", 0.3)
    connections = explorer.serving.server.server_state.connections
    until(lambda: not connections)
    with socket.socket() as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        made.connect(("127.0.0.1", client.port))
        head = f"GET /cases?list=all&size=60 HTTP/1.1\r\nHost: {client.host}\r\nCookie: {client.cookie}\r\n\r\n"
        made.sendall(head.encode() * 60)
        until(lambda: connections)
        until(lambda: not connections)
        made.settimeout(2)
        assert len(received(made)) < 60 * 30_000


def bomb(side: int) -> bytes:
    """A small PNG of many pixels."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    data = zlib.compress(b"\x00" * (side + 1) * 64, 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (bomb(30_000), "image/png"),
        (b"GIF89a" + b"\x00" * 100, "image/png"),
        (b"%PDF-1.4", "image/jpeg"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", "image/png"),
        (b"\x89PNG\r\n\x1a\n" + b"\x00" * 50, "image/webp"),
        (b"", "image/png"),
    ],
)
def test_bombs_and_other_files_are_no_pictures(client, content, kind) -> None:
    before = psutil.Process().memory_info().rss
    status, _, text = client.ask("/api/v1/try", "POST", content, Content_Type=kind)
    assert status == 400
    assert "picture" in text
    assert psutil.Process().memory_info().rss - before < 200 * 2**20


def test_hostile_names_are_shown_and_not_obeyed(client) -> None:
    for target in ("/cases?list=all", "/cases/1", "/train/1", "/hubs", "/train"):
        status, _, text = client.ask(target)
        assert status == 200
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert "{{ 7*7 }}" in text
        assert text != "49"
        assert "\u202e" not in text
        assert "\x00" not in text
    found = json.loads(client.ask("/api/v1/run")[2])
    assert len(found["classes"]) == len(HOSTILE)


def test_hostile_notes_come_back_as_they_are_and_are_no_formulas(client, explorer) -> None:
    note = '=HYPERLINK("http://evil")<script>alert(1)</script>'
    assert client.ask("/api/v1/tags", "POST", body({**TAG, "note": note}))[0] == 200
    try:
        assert "<script>alert" not in client.ask("/tags")[2]
        assert json.loads(client.ask("/api/v1/tags.json")[2])["tags"][0]["note"] == note
        assert ",'=HYPERLINK" in client.ask("/api/v1/tags.csv")[2].replace('"', "")
    finally:
        client.ask("/api/v1/tags/latest", "DELETE")
    assert explorer.world.tags.every == []


def test_a_search_is_no_pattern_and_no_markup(client) -> None:
    for words in (
        "%3Cscript%3Ealert(1)%3C/script%3E",
        "(a%2B)%2B$",
        "%27%20OR%201=1--",
        "{{7*7}}".replace("{", "%7B"),
    ):
        status, _, text = client.ask(f"/cases?list=all&q={words}")
        assert status == 200
        assert "<script>alert" not in text


def test_ten_thousand_requests_on_forty_connections_leave_it_alive_and_its_memory_bounded(client) -> None:
    head = (
        f"GET /api/v1/cases?size=2 HTTP/1.1\r\nHost: {client.host}\r\nCookie: {client.cookie}\r\n\r\n".encode()
    )

    def many(rounds: int) -> int:
        answered = 0
        with socket.create_connection(("127.0.0.1", client.port), timeout=120) as made:
            for _ in range(rounds):
                made.sendall(head * 25)
                got = b""
                while got.count(b"HTTP/1.1 200") < 25 and (part := made.recv(1 << 16)):
                    got += part
                answered += got.count(b"HTTP/1.1 200")
        return answered

    with ThreadPoolExecutor(40) as pool:
        assert sum(pool.map(many, [1] * 40)) == 1_000
        gc.collect()
        before = psutil.Process().memory_info().rss
        assert sum(pool.map(many, [9] * 40)) == 9_000
    assert psutil.Process().memory_info().rss - before < 40 * 2**20


def test_the_queue_is_bounded(client, explorer) -> None:
    jobs = explorer.world.jobs
    hold = jobs.ask("hold", "held", lambda job: _until_ended(job))
    try:
        until(lambda: hold.state == "running")
        answers = [client.ask(f"/cases/{i}?as=1")[0] for i in range(12)]
        assert answers.count(429) >= 2
        assert 200 in answers
        assert len({job.number for job in jobs.every.values() if job.state == "waiting"}) <= 8
    finally:
        for job in list(jobs.every.values()):
            if not job.lasting:
                jobs.cancel(job)


def _until_ended(job) -> None:
    while True:
        job.step(0, 1)
        time.sleep(0.01)


def test_no_error_shows_a_path_or_a_trace(client, explorer, monkeypatch, capfd) -> None:
    def failing(*_) -> None:
        raise RuntimeError("secret at /home/someone/secret.py")

    monkeypatch.setattr("precedents.explorer.rows.first", failing)
    monkeypatch.setattr("precedents.explorer.looks.first", failing)
    explorer.world.changed()
    status, _, text = client.ask("/cases?list=all")
    assert status == 500
    assert "secret" not in text
    assert "Traceback" not in text
    assert "secret" in capfd.readouterr().err
    explorer.world.changed()


def test_the_token_is_in_no_page_and_no_file(client, explorer) -> None:
    for target in ("/cases", "/cases/1", "/api/v1/run", "/tags"):
        text = client.ask(target)[2]
        assert client.door.token not in text
        assert client.door.secret not in text
    for path in explorer.world.folder.rglob("*"):
        assert client.door.token.encode() not in (path.read_bytes() if path.is_file() else b"")
    assert client.door.token not in repr(client.door)


@pytest.mark.parametrize(
    "options", [{"host": "0.0.0.0"}, {"host": "192.0.2.1"}, {"host": "192.0.2.1", "remote": True}]
)
def test_other_machines_are_let_in_only_on_purpose_and_with_tls(options) -> None:
    with pytest.raises(InputError, match="--certificate"):
        Listener(**options)


def test_it_listens_on_this_machine_alone(explorer) -> None:
    assert explorer.serving.listening.getsockname()[0] == "127.0.0.1"


def test_websockets_are_not_spoken(client) -> None:
    asked = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13"
    head = client.head("/cases").replace(b"Connection: close", asked)
    assert parsed(client.raw(head, until=b"\r\n\r\n"))[0] in (200, 400, 404)


def test_two_starts_do_not_share_tokens_or_cookies() -> None:
    explainer, test = picture_world()
    one = pr.explore(explainer, test)
    two = pr.explore(explainer, test)
    try:
        client = Client(filled(two))
        assert client.ask("/cases", Cookie=f"{client.door.cookie}={one.door.secret}")[0] == 401
        assert client.ask(path_of(one.door.address), Cookie=None)[0] == 403
        assert one.door.cookie != two.door.cookie
    finally:
        one.stop()
        two.stop()


def test_what_is_kept_is_given_as_it_was_made(client, explorer) -> None:
    """Byte by byte and header by header, by the short way and by the long one."""
    explorer.world.changed()
    explorer.world.pictures = ByteCache(2**20)
    for target in (
        "/cases?list=all",
        "/api/v1/cases?list=all",
        "/pictures/train/7.png",
        "/pictures/case/7.png?v=1",
    ):
        made, kept = (client.raw(client.head(target)).partition(b"\r\n\r\n") for _ in range(2))
        assert made[2] == kept[2]
        assert _named(made[0]) == _named(kept[0])


def _named(head: bytes) -> set[bytes]:
    return {line for line in head.lower().split(b"\r\n") if not line.startswith(b"date")}


def test_what_is_kept_is_given_to_nobody_without_the_cookie(client) -> None:
    for target in ("/cases?list=all", "/pictures/train/3.png"):
        assert client.ask(target)[0] == client.ask(target)[0] == 200
        assert client.ask(target, Cookie=None)[0] == 401
        assert client.ask(target, Host="evil.example")[0] == 421


@pytest.mark.parametrize(
    "target",
    ["/pictures/train/3", "/pictures/train/-3.png", "/pictures/train/3.png/4", "/pictures/train/3.png.png",
     "/pictures/none/3.png", "/pictures//3.png", "/pictures/train/" + "3" * 13 + ".png"],
)  # fmt: skip
def test_a_picture_that_is_none_is_refused_while_others_are_kept(client, target) -> None:
    assert client.ask("/pictures/train/3.png")[0] == 200
    assert client.ask(target)[0] in (400, 404)
