"""Shares drawn: layers as bars, positions as heat maps on both pictures, words and columns by their weight."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from precedents.seen import clipped, visible
from precedents.views.drawing import new_figure
from precedents.views.fragments import text_of
from precedents.views.gallery import AGREES, DISAGREES
from precedents.views.instance import Cell, as_png, is_picture
from precedents.views.instance import lines as row_lines
from precedents.views.marks import WordShares

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = 26  # letters of a layer, a word or a column beside its bar
BARS = 12  # layers that are drawn; the others are one bar
SIDE = 160  # pixels of a picture on a page
WRAPPED = "white-space:pre-wrap;overflow-wrap:anywhere"  # style of what may be wide
Both: TypeAlias = tuple[WordShares, WordShares] | None  # the words of two texts
PixelArray: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True, eq=False)
class HeatMap:
    """The shares of one layer at its own resolution, on the case and on the precedent."""

    title: str
    share: float
    case: PixelArray  # [h, w]
    precedent: PixelArray

    @property
    def largest(self) -> float:
        """The largest share of a position."""
        return float(max(np.abs(self.case).max(), np.abs(self.precedent).max(), 1e-300))


def blended(picture: PixelArray, heat: PixelArray, largest: float) -> PixelArray:
    """The picture [h, w, 3] in pale grey under the heat map: green for what speaks for, red for against.

    >>> blended(np.zeros((2, 2)), np.array([[1.0, 0.0], [0.0, -1.0]]), 1.0)[0, 1].tolist()
    [1.0, 1.0, 1.0]
    """
    grey = 1 - picture if picture.ndim == 2 else picture.mean(axis=2)
    height, width = grey.shape
    rows, columns = (np.arange(n) * m // n for n, m in ((height, heat.shape[0]), (width, heat.shape[1])))
    strong = np.clip(heat[rows][:, columns] / largest, -1, 1)
    colours = np.where(strong[..., None] > 0, _rgb(AGREES), _rgb(DISAGREES))
    ground = np.repeat((0.35 + 0.65 * grey)[..., None], 3, axis=2)
    alpha = 0.75 * np.sqrt(np.abs(strong))[..., None]
    mixed: PixelArray = (1 - alpha) * ground + alpha * colours
    return mixed


def _rgb(colour: str) -> PixelArray:
    return np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])


def enlarged(picture: PixelArray, least: int) -> PixelArray:
    """The picture with each pixel repeated, so that its shorter side has at least so many."""
    times = max(1, -(-least // min(picture.shape[:2])))
    found: PixelArray = picture.repeat(times, axis=0).repeat(times, axis=1)
    return found


def _under(picture: PixelArray, heat: PixelArray, of: HeatMap) -> PixelArray:
    """The picture, large enough for the heat map, under it."""
    return blended(enlarged(picture, max(heat.shape)), heat, of.largest)


def both_under(case: PixelArray, precedent: PixelArray, of: HeatMap) -> PixelArray:
    """One picture: the precedent and below it the case, each under its part of the heat map."""
    pictures = _under(precedent, of.precedent, of), _under(case, of.case, of)
    wide = max(each.shape[1] for each in pictures)
    line = np.ones((max(1, pictures[0].shape[0] // 16), wide, 3))
    top, bottom = (_widened(each, wide) for each in pictures)
    return np.concatenate([top, line, bottom])


def _widened(picture: PixelArray, wide: int) -> PixelArray:
    """The picture in the middle of a white one of this width."""
    left = (wide - picture.shape[1]) // 2
    return np.pad(picture, ((0, 0), (left, wide - picture.shape[1] - left), (0, 0)), constant_values=1.0)


def kept(bars: Mapping[str, float]) -> dict[str, float]:
    """The largest bars in their order, and the sum of the others as the last one."""
    largest = sorted(bars, key=lambda name: -abs(bars[name]))[:BARS]
    found = {name: bars[name] for name in bars if name in largest}
    left = [share for name, share in bars.items() if name not in largest]
    return found | ({f"{len(left)} more": sum(left)} if left else {})


@dataclass(frozen=True, eq=False)
class ShareView:
    """What is shown of the shares of a score: as a figure, and as a fragment of a page."""

    title: str
    cells: tuple[Cell, Cell]  # the case and the precedent
    bars: Mapping[str, float]  # layers
    maps: Sequence[HeatMap]
    words: Both
    columns: Mapping[str, float]  # the largest

    def figure(self) -> "Figure":
        """A matplotlib figure; no global state of matplotlib is touched."""
        drawn_bars = [("layers", kept(self.bars))]
        if self.words is not None:
            texts = zip(self.cells, self.words, strict=True)
            drawn_bars += [(f"words: {c.title}", dict(w.largest(BARS))) for c, w in texts]
        elif self.columns:
            drawn_bars.append(("columns", dict(self.columns)))
        pictured = self.maps if all(is_picture(cell.shown) for cell in self.cells) else ()
        down = 2 if pictured else 1
        height = max(1.9 * down, 0.6 + 0.19 * max(len(each) for _, each in drawn_bars))
        drawn = new_figure(figsize=(1.7 * len(pictured) + 3.2 * len(drawn_bars), height), layout="constrained")
        ratios = [1.7] * len(pictured) + [3.2] * len(drawn_bars)
        grid = drawn.add_gridspec(down, len(ratios), width_ratios=ratios)
        for i, each in enumerate(pictured):
            for j, (cell, heat) in enumerate(zip(self.cells, (each.case, each.precedent), strict=True)):
                _draw(drawn.add_subplot(grid[j, i]), cell, heat, each, named=j == 0)
        for i, (name, values) in enumerate(drawn_bars):
            _bars(drawn.add_subplot(grid[:, len(pictured) + i]), name, values)
        drawn.suptitle(visible(self.title), fontsize=9)
        return drawn

    def fragment(self, titled: bool = True) -> str:
        """HTML in which everything shown is escaped, and colours are readable on light and on dark ground."""
        sides = "".join(self._side(i) for i in range(len(self.cells)))
        tables = _table("layer", kept(self.bars))
        tables += _table("column", self.columns) if self.columns and self.words is None else ""
        title = f"<p>{escape(visible(self.title))}, of which</p>" if titled else ""
        return (
            f"<div class='precedents-shares'>{title}"
            f"<div style='display:flex;flex-wrap:wrap;gap:1em'>{sides}</div>"
            f"<div style='display:flex;flex-wrap:wrap;gap:1em'>{tables}</div></div>"
        )

    def _side(self, place: int) -> str:
        """The case, at place 0, or the precedent, with its shares."""
        cell = self.cells[place]
        head = f"<div>{escape(visible(cell.title))}</div>"
        if isinstance(cell.shown, str):
            body = text_of(cell.shown, None if self.words is None else self.words[place])
            return f"<div style='max-width:32em;overflow-wrap:anywhere'>{head}<div>{body}</div></div>"
        if isinstance(cell.shown, Mapping):
            body = escape(visible("\n".join(row_lines(cell.shown))))
            return f"<div>{head}<pre style='text-align:left;{WRAPPED}'>{body}</pre></div>"
        drawn = [(each, (each.case, each.precedent)[place]) for each in self.maps]
        pictures = "".join(
            f"<figure style='margin:0'>{_image(_under(cell.shown, heat, each), cell, each)}"
            f"<figcaption>{escape(clipped(each.title, NAME))} {each.share:+.3f}</figcaption></figure>"
            for each, heat in drawn
        )
        return f"<div>{head}<div style='display:flex;flex-wrap:wrap;gap:.5em'>{pictures}</div></div>"


def _draw(axes: "Axes", cell: Cell, heat: PixelArray, of: HeatMap, *, named: bool) -> None:
    assert not isinstance(cell.shown, (str, Mapping))
    axes.imshow(_under(cell.shown, heat, of))
    axes.set_xticks([])
    axes.set_yticks([])
    above = f"{clipped(of.title, NAME)}\n{of.share:+.3f}\n" if named else ""
    axes.set_title(above + visible(cell.title.replace("\n", " ")), fontsize=6.5, parse_math=False)


def _bars(axes: "Axes", title: str, values: Mapping[str, float]) -> None:
    names = [clipped(name, NAME) for name in values]
    colours = [AGREES if share >= 0 else DISAGREES for share in values.values()]
    axes.barh(range(len(names)), list(values.values()), color=colours)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_yticks(range(len(names)), names, fontsize=6.5, parse_math=False)
    axes.tick_params(axis="x", labelsize=6.5)
    axes.axvline(0, color="#6a737d", linewidth=0.8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_title(visible(title.replace("\n", " ")), fontsize=7.5, parse_math=False)


def _image(picture: PixelArray, cell: Cell, of: HeatMap) -> str:
    says = escape(visible(f"{cell.title.splitlines()[0]}: shares within {of.title}"))
    style = f"width:{SIDE}px;max-width:42vw;height:auto;image-rendering:pixelated"
    return f"<img alt='{says}' style='{style}' src='{as_png(picture)}'>"


def _table(name: str, values: Mapping[str, float]) -> str:
    """Names, shares and bars."""
    largest = max(map(abs, values.values()), default=0.0) or 1.0
    rows = "".join(
        f"<tr><th scope='row' style='text-align:left;font-weight:normal'>{escape(clipped(each, NAME))}</th>"
        f"<td style='text-align:right'>{share:+.3f}</td><td style='text-align:left'>"
        f"<div style='height:.7em;width:{8 * abs(share) / largest:.2f}em;"
        f"background:{AGREES if share >= 0 else DISAGREES}'></div></td></tr>"
        for each, share in values.items()
    )
    heads = f"<th scope='col' style='text-align:left'>{name}</th><th scope='col'>share</th><td></td>"
    head = f"<table style='{WRAPPED}'><thead><tr>{heads}</tr></thead>"
    return f"{head}<tbody>{rows}</tbody></table>"
