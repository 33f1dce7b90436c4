"""A sheet: cases and their precedents side by side, as a figure or as HTML; another class is marked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from textwrap import fill
from typing import TYPE_CHECKING, Any

from precedents.views import comparison
from precedents.views.shown import Shown, as_png, lines, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROWS = 8  # of a table row in a figure
AGREES, DISAGREES = "#2a7f62", "#c0392b"


@dataclass(frozen=True)
class Cell:
    """One instance on the sheet, with what is written above it."""

    title: str
    picture: Shown
    agrees: bool | None = None  # None for a case


@dataclass(frozen=True)
class Strip:
    """One case and its precedents."""

    case: Cell
    precedents: Sequence[Cell]
    spread: Mapping[str, float] = field(default_factory=dict)  # of a table's columns; else of those shown here

    @cached_property
    def known(self) -> Mapping[str, float]:
        """The standard deviations of the columns."""
        return self.spread or comparison.spreads(cell.picture for cell in (self.case, *self.precedents))

    @property
    def cells(self) -> list[Cell]:
        """All of them; of a table row, the case begins with what its precedents show of themselves."""
        rows = [cell.picture for cell in self.precedents]
        first = replace(self.case, picture=comparison.told_first(self.case.picture, rows, self.known))
        return [first, *self.precedents]

    def lines(self, cell: Cell, most: int) -> list[str]:
        """A table row: all of the case as far as there is room, and of a precedent what is near and far."""
        row, case = cell.picture, self.case.picture
        assert isinstance(row, Mapping)
        if cell.agrees is None or not isinstance(case, Mapping):
            return lines(row, most)
        return comparison.lines(row, case, self.known)


def figure(strips: Sequence[Strip], heading: str = "") -> "Figure":
    """A matplotlib figure, one row per case; no global state of matplotlib is touched."""
    from matplotlib.figure import Figure

    columns = 1 + max(len(strip.precedents) for strip in strips)
    wide = max(_width(cell, strip) for strip in strips for cell in strip.cells)
    drawn = Figure(figsize=(wide * columns, 1.7 * len(strips) + 0.4), layout="constrained")
    axes = drawn.subplots(len(strips), columns, squeeze=False)
    for row, strip in zip(axes, strips, strict=True):
        for place, cell in zip(row, strip.cells, strict=False):
            _draw(place, cell, strip)
        for place in row[1 + len(strip.precedents) :]:
            place.set_axis_off()
    if heading:
        drawn.suptitle(heading, fontsize=10)
    return drawn


def _width(cell: Cell, strip: Strip) -> float:
    """Inches that the cell needs: a table row as many as its longest line."""
    if isinstance(cell.picture, Mapping):
        return max(2.2, 0.25 + 0.055 * max(map(len, strip.lines(cell, ROWS)), default=0))
    return 2.2 if isinstance(cell.picture, str) else 1.25


def _draw(axes: "Axes", cell: Cell, strip: Strip) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    colour = {None: "#222222", True: AGREES, False: DISAGREES}[cell.agrees]
    mark = " ✗" if cell.agrees is False else ""
    axes.set_title(cell.title + mark, fontsize=7, color=colour, parse_math=False)
    for spine in axes.spines.values():
        spine.set_color(colour)
        spine.set_linewidth(2.0 if cell.agrees is not True else 1.0)
    if not isinstance(cell.picture, (str, Mapping)):
        axes.imshow(cell.picture, cmap="gray_r", vmin=0, vmax=1)
        return
    if isinstance(cell.picture, str):
        text, size, family = fill(visible(cell.picture), 26, max_lines=7, placeholder=" ..."), 7, "sans-serif"
    else:
        text, size, family = visible("\n".join(strip.lines(cell, ROWS))), 6, "monospace"
    place: dict[str, Any] = {"va": "top", "transform": axes.transAxes, "in_layout": False}
    axes.text(0.04, 0.96, text, fontsize=size, family=family, parse_math=False, **place)


def page(strips: Sequence[Strip], heading: str = "") -> str:
    """An HTML fragment, one row per case; everything shown is escaped."""
    rows = "".join("<tr>" + "".join(_cell(cell, strip) for cell in strip.cells) + "</tr>" for strip in strips)
    title = f"<caption style='text-align:left'>{escape(heading)}</caption>" if heading else ""
    return f"<table class='precedents' style='border-collapse:collapse'>{title}<tbody>{rows}</tbody></table>"


def document(fragment: str, title: str) -> str:
    """A page of its own around an HTML fragment."""
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(title)}</title></head><body style='font-family:sans-serif'>{fragment}</body></html>\n"
    )


def _cell(cell: Cell, strip: Strip) -> str:
    colour = {None: "#222222", True: AGREES, False: DISAGREES}[cell.agrees]
    mark = " ✗" if cell.agrees is False else ""
    if isinstance(cell.picture, str):
        other = strip.case.picture if cell.agrees is not None else None
        body = f"<p style='max-width:16em'>{_text(cell.picture, other)}</p>"
    elif isinstance(cell.picture, Mapping):
        text = visible("\n".join(strip.lines(cell, most=12)))
        body = f"<pre style='text-align:left'>{escape(text)}</pre>"
    else:
        body = (
            f"<img alt='{escape(cell.title)}' width='96' style='image-rendering:pixelated' "
            f"src='{as_png(cell.picture)}'>"
        )
    style = f"border:2px solid {colour};padding:6px;text-align:center;vertical-align:top"
    return f"<td style='{style}'><div style='color:{colour}'>{escape(cell.title)}{mark}</div>{body}</td>"


def _text(text: str, case: Shown | None) -> str:
    """With words that the case has too in bold, and unknown ones marked."""
    tags = {"": "{}", "shared": "<b>{}</b>", "unknown": "<mark>{}</mark>"}
    return "".join(tags[kind].format(escape(visible(part))) for part, kind in comparison.parts(text, case))
