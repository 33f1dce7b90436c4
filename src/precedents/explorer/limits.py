"""How much a client may send, and how slowly: heads, bodies, connections and time-outs.

No time-out begins anew with a byte. Who has not shown the cookie makes room for who comes when all is taken.
"""

import asyncio
from itertools import count
from typing import Any

import h11
from starlette.requests import ClientDisconnect, Request
from uvicorn.protocols.http.h11_impl import H11Protocol

from precedents.explorer.safety import ADMITTED, Refusal

JSON = 64 * 1024  # bytes of JSON,
TEXT = 100 * 1024  # of a text,
PICTURE = 10 * 1024 * 1024  # of a picture,
PIXELS = 20_000_000  # and pixels
MOST = 100  # precedents, and rows of a page
CONNECTIONS = 64
SECONDS_HEAD, SECONDS_BODY, SECONDS_SENT = 10.0, 15.0, 30.0
SECONDS_LEFT = 5.0  # for what is sent of a body that nobody reads, after its answer
SECONDS_IDLE = 5  # between two requests of a connection
FULL = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


_ARRIVALS = count()


class GuardedProtocol(H11Protocol):
    """HTTP/1.1 with so many connections at most, whose heads come and whose answers go in time."""

    _due: asyncio.TimerHandle | None = None  # a head must be there, or all is over
    _stuck: asyncio.TimerHandle | None = None  # an answer must be read
    _leaving = False  # what still comes is not read

    def connection_made(self, transport: Any) -> None:
        """If there are too many, the oldest makes room that is not admitted; if all are, this one is told."""
        super().connection_made(transport)
        self.arrival = next(_ARRIVALS)
        if len(self.connections) > CONNECTIONS and not self._room():
            self.connections.discard(self)
            transport.write(FULL)
            transport.close()
        else:
            self._expect(SECONDS_HEAD)

    def data_received(self, data: bytes) -> None:
        """A head that has begun must end in time."""
        if self._leaving:
            return
        super().data_received(data)
        if self._leaving:
            return
        if self.conn.their_state is h11.IDLE:
            self._expect(SECONDS_HEAD)
        else:
            self._expected()

    def on_response_complete(self) -> None:
        """Who was answered before the body was there need not send the rest, and has not long to end."""
        if self.conn.their_state is h11.SEND_BODY and not self.transport.is_closing():
            self._leave()
        else:
            super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is told so, unless an answer has begun; the request that it belongs to is over."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.abort()

    def pause_writing(self) -> None:
        """Whoever does not read an answer is given up."""
        super().pause_writing()
        self._stuck = self.loop.call_later(SECONDS_SENT, self.transport.abort)

    def resume_writing(self) -> None:
        """It is read."""
        if self._stuck is not None:
            self._stuck.cancel()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is expected any more."""
        self._expected()
        if self._stuck is not None:
            self._stuck.cancel()
        super().connection_lost(exc)

    def _room(self) -> bool:
        """Whether a connection could be ended that is not admitted: the oldest."""
        every = [each for each in self.connections if isinstance(each, GuardedProtocol) and each is not self]
        strangers = [each for each in every if not (each.scope and each.scope.get(ADMITTED))]
        if not strangers:
            return False
        oldest = min(strangers, key=lambda each: each.arrival)
        self.connections.discard(oldest)
        oldest.transport.abort()
        return True

    def _leave(self) -> None:
        """Says that nothing more comes from here; closed at once, the answer might be lost on its way."""
        self._leaving = True
        self._expected()
        self._expect(SECONDS_LEFT)
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()

    def _expect(self, seconds: float) -> None:
        if self._due is None:
            self._due = self.loop.call_later(seconds, self.transport.abort)

    def _expected(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None


async def body(request: Request, most: int) -> bytes:
    """The body of a request, of at most so many bytes and in time."""
    told = request.headers.get("content-length", "0")
    if not told.isdecimal() or int(told[:20]) > most:
        raise Refusal(413, f"At most {most // 1024} kB can be sent here.")
    try:
        return await asyncio.wait_for(_read(request, most), SECONDS_BODY)
    except asyncio.TimeoutError:
        raise Refusal(408, "The request came too slowly.") from None
    except ClientDisconnect:
        raise Refusal(400, "The request was cut off.") from None


async def _read(request: Request, most: int) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise Refusal(413, f"At most {most // 1024} kB can be sent here.")
        parts.append(part)
    return b"".join(parts)
