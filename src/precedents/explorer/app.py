"""The application: which address is answered by which look, as a page and as JSON under /api/v1."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from functools import partial
from typing import Any

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route, Router

from precedents.explorer import close_looks, looks
from precedents.explorer.attempts import attempts
from precedents.explorer.changes import CHANGES, job_of
from precedents.explorer.findings import audit, suspects
from precedents.explorer.guard import AsgiScope, Gate, Receive, Send
from precedents.explorer.jobs import OVER, QueuedJob
from precedents.explorer.looks import Look
from precedents.explorer.maps import columns, map_look
from precedents.explorer.query import Query
from precedents.explorer.rendering import PICTURES, TRIED, as_json, asset, page, picture
from precedents.explorer.safety import Door, Refusal
from precedents.explorer.trains import trains
from precedents.explorer.world import World
from precedents.runtime.sealed import encoded

PAGES: Mapping[str, tuple[str, Callable[[World, Query], Look]]] = {  # by path: template and look
    "/cases": ("cases", looks.cases),
    "/cases/{place}": ("case", close_looks.case),
    "/train": ("trains", trains),
    "/train/{place}": ("train", close_looks.train),
    "/hubs": ("hubs", looks.hubs),
    "/map": ("map", map_look),
    "/suspects": ("suspects", suspects),
    "/audit": ("audit", audit),
    "/try": ("try", attempts),
    "/tags": ("tags", looks.tags),
}
DATA: Mapping[str, Callable[[World, Query], Look]] = {
    "/run": looks.run,
    "/cases/{place}/precedents": close_looks.case_precedents,
    "/train/{place}/answers": close_looks.train_answers,
}
API = "/api/v1"
THREADS = 4  # that make pages
TICK, BEAT, LONGEST = 0.2, 50, 3000  # seconds of a look at a job; ticks between signs of life; ticks at most
HTML, JSON = "text/html; charset=utf-8", "application/json"
NO_STORE = {"cache-control": "no-store"}
KEPT = "private, max-age=3600"  # by a browser: pictures of a start
PICTURE = re.compile(r"/pictures/([a-z]+)/([0-9]{1,12})\.png")


class Pages:
    """All routes over one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._threads: CapacityLimiter | None = None
        self._making: dict[Hashable, asyncio.Future[bytes]] = {}
        self.router = Router([*self._reading(), *self._changing()], redirect_slashes=False, default=_nothing)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """What is kept is given at once, all else by its route."""
        kept = self._ready(scope) if scope["method"] == "GET" else None
        if kept is None:
            await self.router(scope, receive, send)
            return
        content, kind, caching = kept
        length = str(len(content)).encode()
        headers = [(b"content-type", kind), (b"cache-control", caching), (b"content-length", length)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    def _ready(self, scope: AsgiScope) -> tuple[bytes, bytes, bytes] | None:
        """A kept page, JSON or picture, its type, and how long a browser keeps it."""
        path: str = scope["path"]
        if path.startswith("/pictures/"):
            found = PICTURE.fullmatch(path)
            content = None if found is None else self.world.pictures.get((found[1], int(found[2])))
            return None if content is None else (content, b"image/png", KEPT.encode())
        content = self.world.pages.get((self.world.version, path, scope["query_string"]))
        kind = JSON if path.startswith("/api/") else HTML
        return None if content is None else (content, kind.encode(), b"no-store")

    def _reading(self) -> list[Route]:
        routes = [Route("/", _first, methods=["GET"])]
        for path, (template, look) in PAGES.items():
            routes.append(Route(path, partial(self._page, template, look), methods=["GET"]))
            routes.append(Route(API + path, partial(self._data, look), methods=["GET"]))
        routes += [Route(API + path, partial(self._data, look), methods=["GET"]) for path, look in DATA.items()]
        return [
            *routes,
            Route("/assets/{name}", self._asset, methods=["GET"]),
            Route("/favicon.ico", _icon, methods=["GET"]),  # what browsers ask for where a page names none
            *(
                Route(f"{path}/pictures/{{which}}/{{name}}", self._picture, methods=["GET"])
                for path in ("", API)
            ),
            Route(f"{API}/jobs/{{number}}", self._job, methods=["GET"]),
            Route(f"{API}/jobs/{{number}}/events", self._events, methods=["GET"]),
            Route(f"{API}/map/{{name}}", self._map, methods=["GET"]),
            Route(f"{API}/report.html", self._report, methods=["GET"]),
            Route(f"{API}/tags.csv", self._csv, methods=["GET"]),
            Route(f"{API}/tags.json", self._tags, methods=["GET"]),
        ]

    def _changing(self) -> list[Route]:
        return [
            Route(API + path, partial(self._changed, change), methods=[method])
            for (method, path), change in CHANGES.items()
        ]

    async def _threaded(self, work: Callable[[], Any]) -> Any:
        if self._threads is None:
            self._threads = CapacityLimiter(THREADS)
        return await to_thread.run_sync(work, limiter=self._threads)

    async def _page(self, template: str, look: Callable[[World, Query], Look], request: Request) -> Response:
        depth = request.scope["path"].count("/") - 1

        def make() -> bytes:
            found = look(self.world, Query(request.query_params.multi_items(), request.path_params))
            return page(self.world, template, found, depth)

        return Response(await self._kept(request, make), 200, NO_STORE, HTML)

    async def _data(self, look: Callable[[World, Query], Look], request: Request) -> Response:
        def make() -> bytes:
            return as_json(look(self.world, Query(request.query_params.multi_items(), request.path_params)))

        return Response(await self._kept(request, make), 200, NO_STORE, JSON)

    async def _kept(self, request: Request, make: Callable[[], bytes]) -> bytes:
        """The same question in the same state has the same answer, made once for all who ask meanwhile."""
        key = self.world.version, request.scope["path"], request.scope["query_string"]
        found = self.world.pages.get(key)
        if found is None:
            found = await self._once(key, make)
            self.world.pages.put(key, found)
        return found

    async def _once(self, key: Hashable, make: Callable[[], bytes]) -> bytes:
        """What is made already is waited for."""
        if key not in self._making:
            self._making[key] = asyncio.ensure_future(self._threaded(make))
            self._making[key].add_done_callback(lambda _: self._making.pop(key, None))
        return await asyncio.shield(self._making[key])

    async def _asset(self, request: Request) -> Response:
        content, kind = asset(request.path_params["name"])
        return Response(content, 200, {"cache-control": "private, max-age=60"}, kind)

    async def _picture(self, request: Request) -> Response:
        which, name = request.path_params["which"], request.path_params["name"]
        if which not in PICTURES or not name.endswith(".png"):
            raise Refusal(404, "There are no such pictures.")
        query = Query(request.query_params.multi_items(), {"name": name.removesuffix(".png")})
        place = query.place("name", 10**9 if which == TRIED else len(self.world.set_of(which)), "picture")
        content = self.world.pictures.get((which, place))
        if content is None:
            content = await self._once((which, place), partial(picture, self.world, which, place))
        return Response(content, 200, {"cache-control": KEPT}, "image/png")

    async def _map(self, request: Request) -> Response:
        content = await self._threaded(partial(columns, self.world, request.path_params["name"]))
        return Response(content, 200, NO_STORE, "application/octet-stream")

    async def _report(self, _: Request) -> Response:
        audited = self.world.audit
        if audited is None:
            raise Refusal(404, "There is no audit of this model.")
        content = await self._threaded(audited.to_html)
        return Response(content, 200, NO_STORE | _file("report.html"), HTML)

    async def _job(self, request: Request) -> Response:
        job = job_of(self.world, request)
        job.asked()
        return Response(as_json(job.told()), 200, NO_STORE, JSON)

    async def _events(self, request: Request) -> Response:
        stream = self._told(job_of(self.world, request))
        return StreamingResponse(stream, 200, NO_STORE, "text/event-stream")

    async def _told(self, job: QueuedJob) -> AsyncIterator[bytes]:
        """What changes of a job, and a sign of life in between; who leaves does not wait for it any more."""
        job.listeners += 1
        try:
            before = None
            for tick in range(LONGEST):
                now = job.told()
                if now != before or tick % BEAT == 0:
                    yield f"data: {json.dumps(now)}\n\n".encode()
                if now["state"] in OVER:
                    return
                before = now
                await asyncio.sleep(TICK)
        finally:
            self.world.jobs.left(job)

    async def _csv(self, _: Request) -> Response:
        tags = self.world.tags
        text = "" if tags is None else tags.to_csv()
        return Response(encoded(text), 200, NO_STORE | _file("tags.csv"), "text/csv; charset=utf-8")

    async def _tags(self, _: Request) -> Response:
        tags = self.world.tags
        content = as_json({} if tags is None else tags.to_dict())
        return Response(content, 200, NO_STORE | _file("tags.json"), JSON)

    async def _changed(self, change: Callable[[World, Request], Any], request: Request) -> Response:
        return Response(as_json(await change(self.world, request)), 200, NO_STORE, JSON)


def _file(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}


async def _icon(_: Request) -> Response:
    content, kind = asset("icon.svg")
    return Response(content, 200, {"cache-control": KEPT}, kind)


async def _first(_: Request) -> Response:
    return RedirectResponse("cases", 303, NO_STORE)


async def _nothing(scope: AsgiScope, receive: Receive, send: Send) -> None:  # noqa: ARG001
    raise Refusal(404, "There is no such page.")


def application(world: World, door: Door) -> Gate:
    """All pages behind the guard."""
    return Gate(Pages(world), door)
