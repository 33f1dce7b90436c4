"""Changes: what a request may change, each with a body of a known form: tags, cases of one's own, jobs."""

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request

from precedents.explorer import limits
from precedents.explorer.findings import audited
from precedents.explorer.jobs import BUSY, FILL, WAITING, QueuedJob
from precedents.explorer.questions import tried
from precedents.explorer.readers import picture_case, row_case, text_case
from precedents.explorer.safety import Refusal
from precedents.explorer.tags import NOTE, TAGS, Tag
from precedents.explorer.world import SETS, World
from precedents.runtime.strict_json import loads

MANY = 1000  # instances that are tagged at once
PICTURES = ("image/png", "image/jpeg", "image/webp")

Changing: TypeAlias = Callable[[World, Request], Awaitable[Any]]


async def given(request: Request, most: int = limits.JSON) -> dict[str, Any]:
    """The JSON object of a request."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal(415, "Send JSON, with the content type application/json.")
    content = await limits.body(request, most)
    try:
        found = loads(content)
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Refusal(400, "There is half of a letter in it, which nothing can be written with.") from None
    except (ValueError, RecursionError):
        raise Refusal(400, "This is no JSON.") from None
    if not isinstance(found, dict):
        raise Refusal(400, "Send a JSON object.")
    return found


def checked(found: Mapping[str, Any], known: Mapping[str, tuple[type, ...]]) -> dict[str, Any]:
    """The values of an object that has these keys and no others, each of one of these types."""
    if set(found) != set(known):
        raise Refusal(400, f"Send an object with the keys {', '.join(known)}.")
    for name, types in known.items():
        if type(found[name]) not in types:
            raise Refusal(400, f"{name} has a value of another type than it should have.")
    return dict(found)


def _place(world: World, found: Mapping[str, Any]) -> tuple[str, int]:
    """An instance that there is."""
    if found["set"] not in SETS:
        raise Refusal(400, f"set is one of {', '.join(SETS)}.")
    if not 0 <= found["place"] < len(world.set_of(found["set"])):
        raise Refusal(400, "place is out of range.")
    return found["set"], found["place"]


async def tag(world: World, request: Request) -> Any:
    """Notes a tag."""
    known = {"set": (str,), "place": (int,), "tag": (str,), "note": (str,), "label": (int, type(None))}
    found = checked(await given(request), known)
    which, place = _place(world, found)
    if found["tag"] not in TAGS:
        raise Refusal(400, f"tag is one of {', '.join(TAGS)}.")
    if len(found["note"]) > NOTE:
        raise Refusal(400, f"A note has at most {NOTE} letters.")
    label = found["label"]
    if label is not None and not 0 <= label < world.subject.classifier.classes:
        raise Refusal(400, "label is out of range.")
    tags = _tags(world)
    noted = Tag(which, place, found["tag"], found["note"], label)
    await to_thread.run_sync(tags.add, noted)
    world.changed()
    return {"tags": len(tags.every)}


async def untag(world: World, request: Request) -> Any:
    """Takes a tag away."""
    found = checked(await given(request), {"set": (str,), "place": (int,), "tag": (str,)})
    which, place = _place(world, found)
    tags = _tags(world)
    await to_thread.run_sync(tags.remove, which, place, found["tag"])
    world.changed()
    return {"tags": len(tags.every)}


async def undo(world: World, request: Request) -> Any:  # noqa: ARG001
    """Takes the latest tag away."""
    tags = _tags(world)
    await to_thread.run_sync(tags.undo)
    world.changed()
    return {"tags": len(tags.every)}


def _tags(world: World) -> Any:
    if world.tags is None:
        raise Refusal(503, "Both sets are still being looked at. Try again in a moment.")
    return world.tags


async def attempt(world: World, request: Request) -> Any:
    """Asks about a case of one's own: a text, the values of a row, or a picture."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in PICTURES:
        job = await _drawn(world, request)
    else:
        job = await _typed(world, await given(request, limits.TEXT))
    return job.told() | {"try": job.key[1]}


async def _drawn(world: World, request: Request) -> Any:
    """A picture, as few as there are places to wait: one after the other is read, and unpacked."""
    turn: CapacityLimiter = world.found.setdefault("turn of a picture", CapacityLimiter(1))
    if world.jobs.full or turn.statistics().tasks_waiting >= WAITING:
        raise Refusal(429, BUSY)
    async with turn:
        content = await limits.body(request, limits.PICTURE)
        case = await to_thread.run_sync(partial(picture_case, world, content))
    return tried(world, case, None)


async def _typed(world: World, found: Mapping[str, Any]) -> Any:
    if set(found) == {"text"} and isinstance(found["text"], str):
        return tried(world, await to_thread.run_sync(partial(text_case, world, found["text"])), found["text"])
    if set(found) == {"row"} and isinstance(found["row"], dict):
        row = {name: value for name, value in found["row"].items() if isinstance(value, (str, int, float))}
        return tried(world, await to_thread.run_sync(partial(row_case, world, row)), row)
    raise Refusal(400, "Send a text or a row.")


async def tag_many(world: World, request: Request) -> Any:
    """Notes one tag of several instances."""
    found = checked(await given(request), {"set": (str,), "places": (list,), "tag": (str,)})
    if found["tag"] not in TAGS or not 0 < len(found["places"]) <= MANY:
        raise Refusal(400, f"Send one of the tags {', '.join(TAGS)} and up to {MANY} places.")
    if any(type(place) is not int for place in found["places"]):
        raise Refusal(400, "places are whole numbers.")
    noted = [Tag(*_place(world, found | {"place": place}), found["tag"]) for place in found["places"]]
    tags = _tags(world)
    await to_thread.run_sync(tags.add, *noted)
    world.changed()
    return {"tags": len(tags.every)}


async def audit(world: World, request: Request) -> Any:  # noqa: ARG001
    """Begins the audit of the model."""
    if world.auditing is None:
        raise Refusal(404, "This model cannot be audited from here.")
    return world.jobs.ask("audit", "audit", partial(audited, world), lasting=True).told()


async def answers(world: World, request: Request) -> Any:
    """Explains all cases by a metric that would take long."""
    name = checked(await given(request), {"metric": (str,)})["metric"]
    if name not in world.slow:
        raise Refusal(400, "No metric of this name waits to be asked for.")
    return world.jobs.ask(
        ("answers", name), f"precedents by {name}", partial(world.answer, name), lasting=True
    ).told()


def job_of(world: World, request: Request) -> QueuedJob:
    """The job that an address names."""
    text = request.path_params["number"]
    job = world.jobs.every.get(int(text)) if text.isdecimal() and len(text) < 12 else None
    if job is None:
        raise Refusal(404, "There is no such job, or it ended long ago.")
    return job


async def cancel(world: World, request: Request) -> Any:
    """Ends a job, unless it is the look at all cases, without which pages have nothing to show."""
    job = job_of(world, request)
    if job.key == FILL:
        raise Refusal(403, "This job is the explorer's own: end it by ending the explorer.")
    world.jobs.cancel(job)
    return job.told()


async def let_go(world: World, request: Request) -> Any:
    """A page that waited for a job is left."""
    job = job_of(world, request)
    job.let_go()
    return job.told()


CHANGES: Mapping[tuple[str, str], Changing] = {
    ("POST", "/tags"): tag,
    ("DELETE", "/tags"): untag,
    ("DELETE", "/tags/latest"): undo,
    ("POST", "/tags/many"): tag_many,
    ("POST", "/try"): attempt,
    ("POST", "/audit"): audit,
    ("POST", "/answers"): answers,
    ("DELETE", "/jobs/{number}"): cancel,
    ("POST", "/jobs/{number}/left"): let_go,
}
