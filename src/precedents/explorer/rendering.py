"""Rendering: looks become pages by our templates, plain values by JSON, and instances pictures."""

import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from precedents.explorer.jobs import FILL, OVER
from precedents.explorer.looks import Look, facts
from precedents.explorer.safety import Refusal
from precedents.explorer.world import SETS, World
from precedents.seen import escaped
from precedents.views.gallery import LARGE, Tile
from precedents.views.instance import png, shrunk
from precedents.views.report import environment

if TYPE_CHECKING:
    from jinja2 import Environment

TRIED = "try"
PICTURES = (*SETS, TRIED)  # sets that have some
ASSETS: Mapping[str, tuple[str, str]] = {  # by name the folder of the package, and the type
    "explorer.js": ("explorer/assets", "text/javascript; charset=utf-8"),
    "map.js": ("explorer/assets", "text/javascript; charset=utf-8"),
    "explorer.css": ("explorer/assets", "text/css; charset=utf-8"),
    "report.css": ("views", "text/css; charset=utf-8"),
    "icon.svg": ("explorer/assets", "image/svg+xml"),
}


@cache
def templates() -> "Environment":
    """The package's templates, with those of the explorer."""
    from jinja2 import ChoiceLoader, PackageLoader

    made = environment()
    assert made.loader is not None
    made.loader = ChoiceLoader([PackageLoader("precedents", "explorer/templates"), made.loader])
    return made


@cache
def asset(name: str) -> tuple[bytes, str]:
    """A file that pages need, and its type; from a closed list."""
    if name not in ASSETS:
        raise Refusal(404, "There is no such file.")
    folder, kind = ASSETS[name]
    return files("precedents").joinpath(folder, name).read_bytes(), kind


def page(world: World, name: str, look: Look, depth: int) -> bytes:
    """A page `depth` folders below the first, whose links are all relative."""
    jobs = list(world.jobs.every.values())
    filling = next((job for job in jobs if job.key == FILL and job.state not in OVER), None)
    text = (
        templates()
        .get_template(f"{name}.html.jinja")
        .render(
            look=look,
            facts=facts(world),
            base="../" * depth,
            page={"case": "cases", "trains": "train"}.get(name, name),
            job=None if filling is None else filling.told(),
            restart=world.origin.restart,
        )
    )
    return text.encode()


def as_json(look: Any) -> bytes:
    """Plain values; what is no number is null."""
    return escaped(json.dumps(plain(look), ensure_ascii=False, allow_nan=False)).encode()


def plain(value: Any) -> Any:
    """As JSON has it; a tile is what it shows."""
    if isinstance(value, Tile):
        return _tile(value)
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    return value if value is None or isinstance(value, (bool, int)) else str(value)


def _tile(tile: Tile) -> dict[str, Any]:
    if tile.picture is not None:
        return {"picture": tile.picture.address}
    if tile.values:
        return {"values": {each.name: each.value for each in (*tile.values, *tile.far, *tile.more)}}
    return {"text": "".join(part for part, _ in (*tile.text, *tile.rest))}


def _tried(world: World, number: int) -> Any:
    tried = world.tries.get(number)
    if tried is None:
        raise Refusal(404, "There is no such picture any more.")
    return tried.shown


def picture(world: World, which: str, place: int) -> bytes:
    """An instance as PNG, made once."""
    if which not in PICTURES or world.kind != "pictures":
        raise Refusal(404, "There are no such pictures.")
    found = world.pictures.get((which, place))
    if found is None:
        array = world.shown(which, place) if which != TRIED else _tried(world, place)
        assert isinstance(array, np.ndarray)
        found = png(shrunk(array, LARGE))
        world.pictures.put((which, place), found)
    return found
