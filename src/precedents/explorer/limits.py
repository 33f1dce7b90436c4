"""How much a client may send, and how slowly: heads, bodies, connections and time-outs."""

import asyncio
from typing import Any

import h11
from starlette.requests import ClientDisconnect, Request
from uvicorn.protocols.http.h11_impl import H11Protocol

from precedents.explorer.safety import Refusal

JSON = 64 * 1024  # bytes of JSON,
TEXT = 100 * 1024  # of a text,
PICTURE = 10 * 1024 * 1024  # of a picture,
PIXELS = 20_000_000  # and pixels
MOST = 100  # precedents, and rows of a page
CONNECTIONS = 64
SECONDS_HEAD, SECONDS_BODY, SECONDS_SENT = 10.0, 15.0, 30.0
SECONDS_IDLE = 5  # between two requests of a connection
FULL = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class GuardedProtocol(H11Protocol):
    """HTTP/1.1 with so many connections at most, whose heads come and whose answers go in time."""

    _due: asyncio.TimerHandle | None = None  # a head must be there
    _stuck: asyncio.TimerHandle | None = None  # an answer must be read

    def connection_made(self, transport: Any) -> None:
        """Too many are told so at once."""
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            self.connections.discard(self)
            transport.write(FULL)
            transport.close()
        else:
            self._expect()

    def data_received(self, data: bytes) -> None:
        """A head that has begun must end in time."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._expect()
        else:
            self._expected()

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

    def _expect(self) -> None:
        if self._due is None:
            self._due = self.loop.call_later(SECONDS_HEAD, self.transport.abort)

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
