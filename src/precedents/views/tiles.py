"""Tiles: instances on the page. A picture is kept once, a text in parts, a table row by its nearest values."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from precedents.views.sheet import Cell
from precedents.views.shown import Shown, as_png

SMALL, LARGE = 72, 160  # pixels that a picture may have on its longer side, beside others and alone
LONG = 320  # letters of a text that are shown at once
NEAR = 0.05  # of the spread of a value, within which two values are near
FEW = 6  # values of a precedent that are shown at once
UNKNOWN = re.compile(r"(‹[^‹›]*›)")


@dataclass(frozen=True)
class Picture:
    """A picture of the album."""

    name: str  # the id that the page gives it
    width: int
    height: int
    address: str  # of its data


@dataclass(frozen=True)
class Named:
    """A value of a table row."""

    name: str
    value: str
    near: bool = False  # to the case's


@dataclass(frozen=True)
class Tile:
    """One instance as the page shows it: a picture, a text in parts (each known or not), or values."""

    title: str
    agrees: bool | None
    picture: Picture | None = None
    text: tuple[tuple[str, bool], ...] = ()
    rest: tuple[tuple[str, bool], ...] = ()  # what is shown on demand
    values: tuple[Named, ...] = ()
    more: tuple[Named, ...] = ()  # what is shown on demand

    @property
    def kind(self) -> str:
        """What tiles like this one are called."""
        return "pictures" if self.picture else "rows" if self.values else "texts"


@dataclass
class Album:
    """The pictures of a page, each kept once however often it is shown."""

    pictures: dict[Any, Picture] = field(default_factory=dict)

    def picture(self, array: "np.ndarray[Any, Any]", most: int = SMALL) -> Picture:
        """The array as a picture of at most so many pixels a side."""
        small = shrunk(array, most)
        key = small.shape, small.tobytes()
        if key not in self.pictures:
            height, width = small.shape[:2]
            self.pictures[key] = Picture(f"picture-{len(self.pictures)}", width, height, as_png(small))
        return self.pictures[key]

    def alone(self, cell: Cell) -> Tile:
        """A case as a tile."""
        if isinstance(cell.picture, (str, Mapping)):
            return self.tile(cell)
        return Tile(cell.title, cell.agrees, self.picture(cell.picture, LARGE))

    def tile(self, cell: Cell, beside: Shown | None = None, spread: Mapping[str, float] | None = None) -> Tile:
        """The cell as a tile; a table row beside another begins with the values that are nearest to it."""
        shown = cell.picture
        if isinstance(shown, str):
            head = shown if len(shown) <= LONG else shown[: shown.rfind(" ", 0, LONG) + 1] or shown[:LONG]
            return Tile(cell.title, cell.agrees, text=_parts(head), rest=_parts(shown[len(head) :]))
        if isinstance(shown, Mapping):
            values = _named(shown, beside if isinstance(beside, Mapping) else None, spread or {})
            few = FEW if beside is not None else 4 * FEW
            return Tile(cell.title, cell.agrees, values=values[:few], more=values[few:])
        return Tile(cell.title, cell.agrees, self.picture(shown))


def spreads(rows: Iterable[Shown]) -> dict[str, float]:
    """For each number of some table rows, how far its values lie apart."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if isinstance(row, Mapping):
            for name, value in row.items():
                if _number(value):
                    found.setdefault(str(name), []).append(float(value))
    return {name: max(values) - min(values) for name, values in found.items()}


def shrunk(picture: "np.ndarray[Any, Any]", most: int) -> "np.ndarray[Any, Any]":
    """The picture with at most `most` pixels a side, each the mean of a block."""
    step = -(-max(picture.shape[:2]) // most)
    if step <= 1:
        return picture
    height, width = (-(-side // step) for side in picture.shape[:2])
    missing = [(0, height * step - picture.shape[0]), (0, width * step - picture.shape[1])]
    whole = np.pad(picture, missing + [(0, 0)] * (picture.ndim - 2), mode="edge")
    blocks = whole.reshape(height, step, width, step, *picture.shape[2:])
    mean: np.ndarray[Any, Any] = blocks.mean(axis=(1, 3))
    return mean


def _parts(text: str) -> tuple[tuple[str, bool], ...]:
    """The text in parts, and for each whether it is known; unknown words stand between ‹ and ›."""
    return tuple((part, not UNKNOWN.fullmatch(part)) for part in UNKNOWN.split(text) if part)


def _named(
    row: Mapping[str, Any], beside: Mapping[str, Any] | None, spread: Mapping[str, float]
) -> tuple[Named, ...]:
    if beside is None:
        return tuple(Named(str(name), _written(value)) for name, value in row.items())
    apart = {name: _apart(value, beside.get(name), spread.get(str(name), 0.0)) for name, value in row.items()}
    nearest = sorted(row, key=lambda name: apart[name])
    return tuple(Named(str(name), _written(row[name]), apart[name] <= NEAR) for name in nearest)


def _apart(one: Any, other: Any, spread: float) -> float:
    """How far two values are apart, from 0 (equal) to 1 (as far as any, or not to be compared)."""
    if _number(one) and _number(other):
        return abs(float(one) - float(other)) / spread if spread else 0.0
    return 0.0 if one == other else 1.0


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and bool(np.isfinite(value))


def _written(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
