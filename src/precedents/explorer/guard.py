"""The guard in front of all pages: who may not ask is refused, and what fails says so without a trace."""

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from precedents.errors import InputError, NotApplicable, PrecedentsError, StoreError
from precedents.explorer.safety import ADMITTED, Door, Headers, Knock, Refusal
from precedents.seen import told

AsgiScope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[AsgiScope, Receive, Send], Awaitable[None]]

FAILED = "This failed; the terminal in which the explorer runs says why."
ENTERED = (
    b'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=cases"><title>-</title>'
)
FOLDERS = re.compile(r"[^\s'\"(]*[/\\](?=[^\s/\\])")  # what stands before the name of a file
LEFT = (ConnectionError, asyncio.CancelledError)


class Gate:
    """An ASGI application around another one."""

    def __init__(self, pages: Application, door: Door) -> None:
        self.pages, self.door, self.security = pages, door, door.security()

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answers a request; what is no request of HTTP has no answer."""
        if scope["type"] == "lifespan":
            await _lived(receive, send)
        elif scope["type"] == "http":
            await self._answered(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _answered(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        begun = False

        async def secured(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                message["headers"] = [*message.get("headers", []), *self.security]
            await send(message)

        try:
            asked = Knock.of(scope)
            entering = self.door.checked(asked)
            scope[ADMITTED] = True
            if entering:
                await self._entered(asked, secured)
            else:
                await self.pages(scope, receive, secured)
        except LEFT:
            raise
        except Exception as error:
            refusal = refused(error)
            if begun:
                raise
            await plain(secured, refusal.status, refusal.text)

    async def _entered(self, asked: Knock, send: Send) -> None:
        """The token is exchanged: a redirect to the first page without it.

        After a link of another site browsers send no strict cookie along a redirect; a page of ours goes there.
        """
        if asked.one("sec-fetch-site") in (None, "none", "same-origin"):
            location = (b"location", b"cases")
            await plain(send, 303, "", [location, self.door.given()])
        else:
            kind = (b"content-type", b"text/html; charset=utf-8")
            await answer(send, 200, ENTERED, [kind, self.door.given()])


def refused(error: Exception) -> Refusal:
    """What is said of an error: ours in words, files without their folders; nothing of all else."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, (InputError, NotApplicable)):
        return Refusal(400, str(error))
    ours = isinstance(error, PrecedentsError)
    sys.stderr.write(told(f"precedents explore: {'' if ours else f'{type(error).__name__}: '}{error}") + "\n")
    if not ours:
        return Refusal(500, FAILED)
    return Refusal(500, FOLDERS.sub("", str(error)) if isinstance(error, StoreError) else str(error))


async def plain(send: Send, status: int, text: str, headers: Headers | None = None) -> None:
    """A sentence."""
    kind = (b"content-type", b"text/plain; charset=utf-8")
    await answer(send, status, text.encode(), [kind, *(headers or [])])


async def answer(send: Send, status: int, content: bytes, headers: Headers) -> None:
    """A whole answer, which nobody keeps."""
    more = [(b"content-length", str(len(content)).encode()), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *more]})
    await send({"type": "http.response.body", "body": content})


async def _lived(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
