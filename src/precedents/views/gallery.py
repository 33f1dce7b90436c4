"""Cases and their precedents side by side: a figure, or the tiles of a page; as HTML: fragments.py.

An instance of another class than the predicted one is marked. On a page a picture is kept once, a text comes in
parts, and a table row by its values nearest to the case's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from precedents.seen import clipped, visible
from precedents.views import comparison
from precedents.views.comparison import Column, compared, parts, sides
from precedents.views.drawing import new_figure
from precedents.views.instance import Cell, Shown, as_png, is_picture, lines, shrunk, written
from precedents.views.marks import WordShares, around, graded

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROWS = 8  # columns of a table row in a figure
WORDS = 3  # of a text by their shares, in a figure
HIGHEST = 2.5  # times its width that a picture is high in a figure
LETTERS = 12  # of a heading that an inch has room for
IN_FIGURE = 150  # letters of a text in a figure
NAME = 24  # letters of a word or a column with its share
SMALL, LARGE = 72, 160  # pixels that a picture of a page may have on its longer side, beside others and alone
LONG = 320  # letters of a text that a page shows at once
FEW = 24  # columns of a table row that a page shows at once
AGREES, DISAGREES = "#2a7f62", "#c0392b"  # colours


@dataclass(frozen=True)
class Strip:
    """One case and its precedents."""

    case: Cell
    precedents: Sequence[Cell]
    spread: Mapping[str, float] = field(default_factory=dict)  # of a table's columns; else of those shown here

    @cached_property
    def known(self) -> Mapping[str, float]:
        """The standard deviations of the columns."""
        return self.spread or comparison.spreads(cell.shown for cell in (self.case, *self.precedents))

    @property
    def cells(self) -> list[Cell]:
        """All of them; of a table row, the case begins with what its precedents show of themselves."""
        rows = [cell.shown for cell in self.precedents]
        first = replace(self.case, shown=comparison.told_first(self.case.shown, rows, self.known))
        return [first, *self.precedents]

    def lines(self, cell: Cell, most: int) -> list[str]:
        """A table row: all of the case as far as there is room, and of a precedent what is near and far."""
        row, case = cell.shown, self.case.shown
        assert isinstance(row, Mapping)
        if cell.agrees is None or not isinstance(case, Mapping):
            return lines(row, most)
        return comparison.lines(row, case, self.known)


@dataclass(frozen=True)
class Picture:
    """A picture on a page: the address of its data, and in an album the id that it has there and its size."""

    address: str
    name: str = ""
    width: int = 0  # pixels
    height: int = 0


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
        """What tiles like this one are called: pictures, rows or texts."""
        return "pictures" if self.picture else "rows" if self.values else "texts"


@dataclass(frozen=True)
class TiledExample:
    """One case and its precedents by every metric, as tiles."""

    case: Tile
    right: bool  # whether the prediction is
    strips: Mapping[str, Sequence[Tile]]  # by metric
    shares: Mapping[str, Sequence[Tile]] = field(default_factory=dict)  # by metric: the same, with their shares


def figure(strips: Sequence[Strip], heading: str = "") -> "Figure":
    """The strips as a matplotlib figure, one row per case; no global state of matplotlib is touched."""
    columns = 1 + max(len(strip.precedents) for strip in strips)
    wide = max(_width(cell, strip) for strip in strips for cell in strip.cells)
    heights = [_height(strip) for strip in strips]
    drawn = new_figure(figsize=(wide * columns, sum(heights) + 0.4), layout="constrained")
    axes = drawn.subplots(len(strips), columns, squeeze=False, height_ratios=heights)
    for row, strip in zip(axes, strips, strict=True):
        for place, cell in zip(row, strip.cells, strict=False):
            _draw(place, cell, strip)
        for place in row[1 + len(strip.precedents) :]:
            place.set_axis_off()
    if heading:
        room = max(24, int(LETTERS * wide * columns))
        drawn.suptitle("\n".join(fill(line, room) for line in visible(heading).splitlines()), fontsize=10)
    return drawn


def _width(cell: Cell, strip: Strip) -> float:
    """Inches that the cell needs: a table row as many as its longest line."""
    if isinstance(cell.shown, Mapping):
        every = [*strip.lines(cell, ROWS), *by_share(cell)]
        return max(2.2, 0.25 + 0.055 * max(map(len, every), default=0))
    return 2.2 if isinstance(cell.shown, str) else 1.25


def _height(strip: Strip) -> float:
    """Inches that the strip needs: pictures that are higher than wide more than others."""
    ratios = [each.shown.shape[0] / each.shown.shape[1] for each in strip.cells if is_picture(each.shown)]
    return 0.45 + 1.25 * min(max([1.0, *ratios]), HIGHEST)


def _draw(axes: "Axes", cell: Cell, strip: Strip) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    colour = {None: "#222222", True: AGREES, False: DISAGREES}[cell.agrees]
    mark = " ✗" if cell.agrees is False else ""
    axes.set_title(visible(cell.title) + mark, fontsize=7, color=colour, parse_math=False)
    for spine in axes.spines.values():
        spine.set_color(colour)
        spine.set_linewidth(2.0 if cell.agrees is not True else 1.0)
    if is_picture(cell.shown):
        axes.imshow(cell.shown, cmap="gray_r", vmin=0, vmax=1)
        return
    if isinstance(cell.shown, str):
        kept = fill(visible(_kept(cell, cell.shown)), 26, max_lines=7, placeholder=" ...")
        text, size, family = "\n".join([kept, *by_share(cell)]), 7, "sans-serif"
    else:
        text, size, family = "\n".join([*strip.lines(cell, ROWS), *by_share(cell)]), 6, "monospace"
    place: dict[str, Any] = {"va": "top", "transform": axes.transAxes, "in_layout": False}
    axes.text(0.04, 0.96, visible(text), fontsize=size, family=family, parse_math=False, **place)


def _kept(cell: Cell, text: str) -> str:
    """Of a text whose words have shares, what matters; else all of it, which is cut after some lines."""
    marked = () if cell.words is None else around(cell.words.marked(text), IN_FIGURE)
    return "".join(piece for piece, _ in marked) or text


def by_share(cell: Cell) -> list[str]:
    """Of a precedent the columns, or the words, with the largest shares of the score, if they are known."""
    words = [] if cell.words is None or cell.agrees is None else cell.words.largest(WORDS)
    named = words if isinstance(cell.shown, str) else list(cell.columns.items())
    return ["by share", *(f" {clipped(name, NAME)} {share:+.3f}" for name, share in named)] if named else []


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
            self.pictures[key] = Picture(as_png(small), f"picture-{len(self.pictures)}", width, height)
        return self.pictures[key]

    def alone(self, cell: Cell) -> Tile:
        """A case as a tile, its picture larger than those of its precedents."""
        if isinstance(cell.shown, (str, Mapping)):
            return self.tile(cell)
        return Tile(cell.title, cell.agrees, self.picture(cell.shown, LARGE))

    def divided(self, cell: Cell) -> Tile:
        """An instance with the shares of its score as a tile; a picture has that of the case below it."""
        if isinstance(cell.shown, str):
            return _of_shares(cell, cell.shown, cell.words or WordShares((), ordered=False))
        if isinstance(cell.shown, Mapping):
            return _of_columns(cell, cell.shown)
        return Tile(cell.title, cell.agrees, self.picture(cell.shown, 2 * LARGE))

    def tile(self, cell: Cell, beside: Shown | None = None, spread: Mapping[str, float] | None = None) -> Tile:
        """An instance as a tile; beside a case, with the columns that are near and far, or with shared words.

        `spread` gives the standard deviations of a table's columns.
        """
        if isinstance(cell.shown, str):
            return _of_text(cell, cell.shown, beside)
        if isinstance(cell.shown, Mapping):
            return _of_row(cell, cell.shown, beside, spread or {})
        return Tile(cell.title, cell.agrees, self.picture(cell.shown))


def _of_shares(cell: Cell, text: str, words: WordShares) -> Tile:
    """The part of a text with the largest shares, its words marked by them."""
    kinds = graded(around(words.marked(text), LONG))
    return Tile(cell.title, cell.agrees, text=kinds)


def _of_columns(cell: Cell, row: Mapping[str, Any]) -> Tile:
    """The columns with the largest shares, each with its value."""
    every = {str(name): written(value, ".4g") for name, value in row.items()}
    found = (Column(name, every.get(name, ""), said=f"{share:+.3f}") for name, share in cell.columns.items())
    return Tile(cell.title, cell.agrees, values=tuple(found))


def _of_text(cell: Cell, text: str, beside: Shown | None) -> Tile:
    """The beginning, to the end of a word, and the rest."""
    head = first_words(text)
    return Tile(cell.title, cell.agrees, text=parts(head, beside), rest=parts(text[len(head) :], beside))


def first_words(text: str) -> str:
    """As much of a text as a page shows at once, to the end of a word."""
    return text if len(text) <= LONG else text[: text.rfind(" ", 0, LONG) + 1] or text[:LONG]


def _of_row(cell: Cell, row: Mapping[str, Any], beside: Shown | None, spread: Mapping[str, float]) -> Tile:
    """The first columns; beside a case, the nearest and the farthest."""
    if not isinstance(beside, Mapping):
        every = tuple(compared(row, row, {}))
        return Tile(cell.title, cell.agrees, values=every[:FEW], more=every[FEW:])
    every = tuple(compared(row, beside, spread))
    near, far = sides(every)
    rest = [column for column in every[len(near) :] if column not in far]
    return Tile(cell.title, cell.agrees, values=tuple(near), far=tuple(far), more=tuple(rest))
