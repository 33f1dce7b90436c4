"""Tiles: instances on the page. A picture is kept once, a text in parts, a table row by its nearest values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from precedents.views.comparison import Column, compared, parts, sides
from precedents.views.gallery import Cell
from precedents.views.shown import Shown, as_png

SMALL, LARGE = 72, 160  # pixels that a picture may have on its longer side, beside others and alone
LONG = 320  # letters of a text that are shown at once
FEW = 24  # columns of a table row that are shown at once


@dataclass(frozen=True)
class Picture:
    """A picture of the album."""

    name: str  # the id that the page gives it
    width: int
    height: int
    address: str  # of its data


@dataclass(frozen=True)
class Tile:
    """One instance as the page shows it: a picture, a text in parts (each of a kind), or columns."""

    title: str
    agrees: bool | None
    picture: Picture | None = None
    text: tuple[tuple[str, str], ...] = ()
    rest: tuple[tuple[str, str], ...] = ()  # what is shown on demand
    values: tuple[Column, ...] = ()  # of a precedent: the nearest to the case
    far: tuple[Column, ...] = ()  # and the farthest from it
    more: tuple[Column, ...] = ()  # what is shown on demand

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
        """The cell as a tile; beside a case, with the columns that are near and far, or with shared words."""
        shown = cell.picture
        if isinstance(shown, str):
            head = shown if len(shown) <= LONG else shown[: shown.rfind(" ", 0, LONG) + 1] or shown[:LONG]
            return Tile(
                cell.title, cell.agrees, text=parts(head, beside), rest=parts(shown[len(head) :], beside)
            )
        if isinstance(shown, Mapping):
            if not isinstance(beside, Mapping):
                every = tuple(compared(shown, shown, {}))
                return Tile(cell.title, cell.agrees, values=every[:FEW], more=every[FEW:])
            every = tuple(compared(shown, beside, spread or {}))
            near, far = sides(every)
            rest = [column for column in every[len(near) :] if column not in far]
            return Tile(cell.title, cell.agrees, values=tuple(near), far=tuple(far), more=tuple(rest))
        return Tile(cell.title, cell.agrees, self.picture(shown))


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
