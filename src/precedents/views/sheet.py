"""A sheet: cases and their precedents side by side, as a figure or as HTML; another class is marked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import fill
from typing import TYPE_CHECKING

from precedents.views.shown import Shown, as_png, lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


def figure(strips: Sequence[Strip], heading: str = "") -> "Figure":
    """A matplotlib figure, one row per case; no global state of matplotlib is touched."""
    from matplotlib.figure import Figure

    columns = 1 + max(len(strip.precedents) for strip in strips)
    wide = 1.25 if not isinstance(strips[0].case.picture, (str, Mapping)) else 2.2
    drawn = Figure(figsize=(wide * columns, 1.7 * len(strips) + 0.4), layout="constrained")
    axes = drawn.subplots(len(strips), columns, squeeze=False)
    for row, strip in zip(axes, strips, strict=True):
        cells = [strip.case, *strip.precedents]
        for place, cell in zip(row, cells, strict=False):
            _draw(place, cell)
        for place in row[len(cells) :]:
            place.set_axis_off()
    if heading:
        drawn.suptitle(heading, fontsize=10)
    return drawn


def _draw(axes: "Axes", cell: Cell) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    colour = {None: "#222222", True: AGREES, False: DISAGREES}[cell.agrees]
    mark = " ✗" if cell.agrees is False else ""
    axes.set_title(cell.title + mark, fontsize=7, color=colour, parse_math=False)
    for spine in axes.spines.values():
        spine.set_color(colour)
        spine.set_linewidth(2.0 if cell.agrees is not True else 1.0)
    if isinstance(cell.picture, str):
        text = fill(cell.picture, 26, max_lines=7, placeholder=" ...")
        axes.text(0.04, 0.96, text, va="top", fontsize=7, transform=axes.transAxes, parse_math=False)
    elif isinstance(cell.picture, Mapping):
        text = "\n".join(lines(cell.picture, most=9))
        axes.text(
            0.04,
            0.96,
            text,
            va="top",
            fontsize=6,
            family="monospace",
            transform=axes.transAxes,
            parse_math=False,
        )
    else:
        axes.imshow(cell.picture, cmap="gray_r", vmin=0, vmax=1)


def page(strips: Sequence[Strip], heading: str = "") -> str:
    """An HTML fragment, one row per case; everything shown is escaped."""
    rows = "".join(
        "<tr>" + "".join(_cell(cell) for cell in (strip.case, *strip.precedents)) + "</tr>" for strip in strips
    )
    title = f"<caption style='text-align:left'>{escape(heading)}</caption>" if heading else ""
    return f"<table class='precedents' style='border-collapse:collapse'>{title}<tbody>{rows}</tbody></table>"


def document(fragment: str, title: str) -> str:
    """A page of its own around an HTML fragment."""
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(title)}</title></head><body style='font-family:sans-serif'>{fragment}</body></html>\n"
    )


def _cell(cell: Cell) -> str:
    colour = {None: "#222222", True: AGREES, False: DISAGREES}[cell.agrees]
    mark = " ✗" if cell.agrees is False else ""
    if isinstance(cell.picture, str):
        body = f"<p style='max-width:16em'>{escape(cell.picture)}</p>"
    elif isinstance(cell.picture, Mapping):
        body = f"<pre style='text-align:left'>{escape(chr(10).join(lines(cell.picture)))}</pre>"
    else:
        body = (
            f"<img alt='{escape(cell.title)}' width='96' style='image-rendering:pixelated' "
            f"src='{as_png(cell.picture)}'>"
        )
    style = f"border:2px solid {colour};padding:6px;text-align:center;vertical-align:top"
    return f"<td style='{style}'><div style='color:{colour}'>{escape(cell.title)}{mark}</div>{body}</td>"
