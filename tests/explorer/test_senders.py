"""Who sends slowly, or never ends: nobody without the cookie keeps a person out, and nothing is said of it."""

import asyncio
import socket
import time

import pytest
from waiting import until

from explorer.conftest import parsed, received
from precedents.explorer import limits
from precedents.explorer.server import Listener

LONG = "Content-Length: 9999999"
PIECES = "Transfer-Encoding: chunked"


def head(client, line: str, *more: str, host: str = "") -> bytes:
    return "\r\n".join([line, f"Host: {host or client.host}", *more, "", ""]).encode()


def opened(client, content: bytes) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", client.port), timeout=60)
    made.sendall(content)
    made.setblocking(False)
    return made


def ended(made: socket.socket) -> bool:
    """Whether a connection is closed, though a byte is sent to it now."""
    try:
        made.send(b"a")
        while made.recv(65536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return False  # the other side says nothing more, and has not closed


@pytest.fixture
def connections(explorer):
    found = explorer.serving.server.server_state.connections
    until(lambda: not found)
    return found


@pytest.mark.parametrize(
    ("line", "more", "host", "status"),
    [
        ("POST /api/v1/try HTTP/1.1", [LONG], "", 401),
        ("GET /cases HTTP/1.1", [LONG], "evil.example", 421),
        ("PATCH /cases HTTP/1.1", [LONG], "", 405),
        ("GET /cases HTTP/1.1", [LONG, "Cookie: {cookie}"], "", 200),
        ("GET /cases HTTP/1.1", [PIECES, "Cookie: {cookie}"], "", 200),
        ("POST /api/v1/tags HTTP/1.1", [LONG, "Cookie: {cookie}"], "", 403),
    ],
)
def test_a_body_that_drips_on_after_its_answer_does_not_hold_the_connection(
    client, connections, monkeypatch, line, more, host, status
) -> None:
    monkeypatch.setattr(limits, "SECONDS_LEFT", 0.3)
    more = [each.format(cookie=client.cookie) for each in more]
    with socket.create_connection(("127.0.0.1", client.port), timeout=60) as made:
        made.sendall(head(client, line, *more, host=host))
        assert parsed(made.recv(65536))[0] == status
        made.setblocking(False)
        until(lambda: ended(made) or not connections, seconds=9)


def test_an_answer_arrives_though_the_body_that_was_not_read_still_comes(client) -> None:
    """Closed at once, the connection would be reset, and the answer be lost with it."""
    lines = head(client, "POST /api/v1/try HTTP/1.1", "Content-Length: 4000000", "Content-Type: image/png")
    with socket.create_connection(("127.0.0.1", client.port), timeout=60) as made:
        made.sendall(lines)
        made.sendall(b"a" * 4_000_000)
        assert parsed(received(made))[0] == 401


@pytest.mark.parametrize("drip", ["body", "head", "nothing"])
def test_strangers_on_all_connections_do_not_keep_a_person_out(client, drip) -> None:
    start = {
        "body": head(client, "POST /api/v1/try HTTP/1.1", LONG),
        "head": head(client, "GET /cases HTTP/1.1")[:-2] + b"X-A: ",
        "nothing": b"",
    }[drip]
    held = [opened(client, start) for _ in range(limits.CONNECTIONS + 20)]
    try:
        for _ in range(20):
            for each in held:
                if drip != "nothing":
                    ended(each)
            assert client.ask("/api/v1/run")[0] == 200
    finally:
        for each in held:
            each.close()


def test_connections_are_bounded_and_come_back(client, connections) -> None:
    """Who has the cookie is not ended for another one, who is told so."""
    lines = head(client, "GET /api/v1/run HTTP/1.1", f"Cookie: {client.cookie}")
    held = [opened(client, lines) for _ in range(limits.CONNECTIONS)]
    try:
        until(lambda: len(connections) == limits.CONNECTIONS and all(each.scope for each in connections))
        with socket.create_connection(("127.0.0.1", client.port), timeout=60) as more:
            assert parsed(received(more))[0] == 503
    finally:
        for each in held:
            each.close()
    until(lambda: client.ask("/api/v1/run")[0] == 200)


@pytest.mark.parametrize("host", ["", "evil.example"])
@pytest.mark.parametrize("wait", [0.0, 0.1])
def test_a_malformed_body_ends_the_connection_and_leaves_no_trace(
    client, connections, wait, host, capfd, caplog
):
    lines = head(client, "POST /api/v1/tags HTTP/1.1", PIECES, f"Cookie: {client.cookie}", host=host)
    with socket.create_connection(("127.0.0.1", client.port), timeout=60) as made:
        made.sendall(lines + b"1\r\n")
        time.sleep(wait)  # before its answer, or after it
        made.sendall(b"aXX\r\nnonsense")
        assert parsed(received(made))[0] in (0, 400, 403, 421)
    until(lambda: not connections)
    assert capfd.readouterr().err == ""
    assert caplog.text == ""


def test_answers_do_not_wait_for_the_other_side_to_confirm_their_beginning() -> None:
    async def undelayed() -> int:
        made, found = Listener().bound(), asyncio.Queue[int]()

        async def met(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            other = writer.get_extra_info("socket")
            await found.put(other.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        async with await asyncio.start_server(met, sock=made):
            _, writer = await asyncio.open_connection(*made.getsockname())
            writer.close()
            return await found.get()

    assert asyncio.run(undelayed())
