"""Attempts: cases of one's own, each alone, beside another one, or beside the case that it was made from."""

from typing import Any

from precedents.explorer.looks import Look
from precedents.explorer.query import Query
from precedents.explorer.questions import SHOWN, Tried
from precedents.explorer.readers import as_python
from precedents.explorer.rows import address, precedents, probabilities, tile, told
from precedents.explorer.safety import Refusal
from precedents.explorer.world import World
from precedents.seen import clipped
from precedents.views.gallery import Album, Picture, Tile
from precedents.views.instance import Cell

FORGOTTEN = "This case is not known any more: an explorer keeps the latest 64. Type it again."


def attempts(world: World, query: Query) -> Look:
    """A case of one's own, alone or beside another one; begun from a case of the test set or from nothing."""
    place = query.maybe("case", 0, len(world.test) - 1)
    one, other = (query.maybe(name, 1, 10**9) for name in ("id", "with"))
    query.over()
    found = [_attempt(world, number) for number in (other, one) if number is not None]
    begun = found[-1]["given"] if found else None
    if place is not None and len(found) == 1 and "case" in world.measures:
        found.insert(0, _case(world, place))
    line = as_python(world, begun)
    return {
        "tried": _compared(found),
        "shared": sorted(_firsts(found[0], world.main) & _firsts(found[1], world.main)) if found[1:] else [],
        "metric": world.main,
        "given": _begun(world, place) if begun is None else begun,
        "picture": _picture(world, one, place),
        "pixels": world.pixels if world.kind == "pictures" else None,
        "case": place,
        "case_called": None if place is None else world.called("case", place),
        "changed": _changed(found),
        "earlier": [_earlier(world, number) for number in reversed(world.tries.keys())],
        "id": one,
        "python": world.origin.python(world.main, line) if line else "",
        "command": "",
    }


def _begun(world: World, place: int | None) -> Any:
    """What a form has in it before anything is typed: a case, or of a table the first one."""
    if world.kind == "pictures":
        return None
    return "" if world.kind == "texts" and place is None else world.shown("case", place or 0)


def _picture(world: World, one: int | None, place: int | None) -> str:
    """Where the picture is that one draws on; empty for a sheet of white."""
    if world.kind != "pictures" or (one is None and place is None):
        return ""
    return _address(world, one) if one is not None else address(world, "case", place or 0)


def _address(world: World, number: int) -> str:
    return f"pictures/try/{number}.png?v={world.stamp}"


def _compared(found: list[Look]) -> list[Look]:
    """With what the second has that the first has not."""
    if len(found) == 2:
        for name, there in found[1]["columns"].items():
            known = _firsts(found[0], name)
            for each in there:
                each["fresh"] = name in found[0]["columns"] and each["index"] not in known
    return found


def _changed(found: list[Look]) -> list[Look]:
    """The columns of a table that differ between the two."""
    if len(found) < 2:
        return []
    one, other = ({each.name: each.value for each in it["tile"].values} for it in found)
    return [
        {"name": name, "before": one[name], "after": value}
        for name, value in other.items()
        if name in one and one[name] != value
    ]


def _firsts(found: Look, name: str) -> set[int]:
    return {each["index"] for each in found["columns"].get(name, [])}


def _earlier(world: World, number: int) -> Look:
    tried: Tried = world.tries.get(number)
    said = world.class_name(int(tried.measures.predictions[0]))
    text = clipped(tried.given, 60) if isinstance(tried.given, str) else ""
    return {"number": number, "prediction_name": said, "text": text}


def _attempt(world: World, number: int) -> Look:
    tried: Tried | None = world.tries.get(number)
    if tried is None:
        raise Refusal(404, FORGOTTEN)
    said = int(tried.measures.predictions[0])
    pairs = zip(tried.measures.likeliest[0].tolist(), tried.measures.probabilities[0].tolist(), strict=True)
    beside = None if world.kind == "pictures" else tried.shown
    return {
        "number": number,
        "case": None,
        "called": f"your case {number}",
        "prediction": said,
        "prediction_name": world.class_name(said),
        "probabilities": [{"name": world.class_name(i), "label": i, "probability": p} for i, p in pairs],
        "columns": {name: told(world, each, beside, said) for name, each in tried.precedents.items()},
        "given": tried.given,
        "tile": _shown(world, tried),
    }


def _case(world: World, place: int) -> Look:
    """A case of the test set, as far as it is answered, in the form of one's own."""
    said = int(world.measures["case"].predictions[place])
    columns = {name: precedents(world, name, place, SHOWN) for name in world.engines}
    return {
        "number": 0,
        "case": place,
        "called": world.called("case", place),
        "prediction": said,
        "prediction_name": world.class_name(said),
        "probabilities": probabilities(world, "case", place),
        "columns": {name: found for name, found in columns.items() if found is not None},
        "given": None,
        "tile": tile(world, "case", place),
    }


def _shown(world: World, tried: Tried) -> Tile:
    title = f"your case {tried.number}"
    if world.kind == "pictures":
        return Tile(title, None, Picture(_address(world, tried.number), "", *world.pixels))
    return Album().tile(Cell(title, tried.shown))
