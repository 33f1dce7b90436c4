"""Figures of a reproduction: bars beside published values, strips of quantiles, scatters, curves, dots.

As in `figures`: plain values in, a matplotlib figure out, no text is read as mathematics.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from precedents.views.figures import PAGE, Reals
from precedents.views.gallery import AGREES
from precedents.views.panels import (
    FAINT,
    INK,
    MUTED,
    WEAK,
    Pair,
    below,
    broken,
    dashed,
    firsts,
    grid,
    panelled,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Mid-tones that are legible on light and on dark, and to those who do not see all colours.
HUES = (
    "#0f7bb8",
    "#d8641b",
    "#128a63",
    "#c45f97",
    "#b58900",
    "#7a68c8",
    "#7d8790",
    "#b3423a",
    "#4fa3a5",
    "#8a9a1f",
)
LETTERS = 6.5  # size of a legend's
SHAPES = ("o", "^", "s", "D", "v", "P", "X", "<", ">", "p")


@dataclass(frozen=True)
class Bar:
    """A rate with its standard deviation, the published value and chance, as far as they are known."""

    value: float | None
    std: float | None = None
    published: float | None = None
    chance: float | None = None


def bars(values: Mapping[Pair, Bar], *, width: float = PAGE) -> "Figure":
    """By metric, a panel per criterion: a bar, its standard deviation, the published value as a diamond."""
    drawn, panels = panelled(values, width)
    for criterion, axes in panels.items():
        axes.set_xlim(0, 1.06)
        axes.set_xticks([0, 0.5, 1], ["0", ".5", "1"])
        for y, metric in enumerate(firsts(values)):
            bar = values.get((metric, criterion), Bar(None))
            if bar.value is None and bar.published is None:
                dashed(axes, y)
            if bar.value is not None:
                axes.barh(y, bar.value, 0.62, facecolor=(AGREES, 0.55), linewidth=0)
                if bar.std:
                    axes.hlines(y, bar.value - bar.std, bar.value + bar.std, color=INK, linewidth=0.9)
            if bar.published is not None:
                _diamond(axes, bar.published, y)
            if bar.chance is not None:
                axes.vlines(bar.chance, y - 0.5, y + 0.5, color=MUTED, linewidth=0.9, linestyles=":")
    handles = [_patch("ours, ± std", AGREES)] if values else []
    if any(bar.published is not None for bar in values.values()):
        handles.append(_mark("published", "D", WEAK))
    if any(bar.chance is not None for bar in values.values()):
        handles.append(_line("chance", ":", MUTED))
    below(drawn, handles, LETTERS)
    return drawn


def dots(
    given: Mapping[Pair, Mapping[str, float]], label: str = "", *, log: bool = False, width: float = PAGE
) -> "Figure":
    """By metric, a panel per heading: one mark for each series."""
    values = {
        key: {n: v for n, v in each.items() if isfinite(v) and (v > 0 or not log)}
        for key, each in given.items()
    }
    drawn, panels = panelled(values, width)
    series = list(dict.fromkeys(name for each in values.values() for name in each))
    for heading, axes in panels.items():
        if log:
            _logarithmic(axes)
        else:
            axes.set_xlim(*_reach(values.values()))
        for y, metric in enumerate(firsts(values)):
            here = values.get((metric, heading), {})
            if not here:
                dashed(axes, y)
            for name, value in here.items():
                shape, hue = _look(series.index(name))
                axes.plot(value, y, shape, color=hue, markersize=3.6, alpha=0.85, mew=0)
        axes.set_xlabel(label, fontsize=7, color=MUTED, parse_math=False)
    below(drawn, [_mark(name, *_look(i)) for i, name in enumerate(series)], LETTERS)
    return drawn


def strips(
    quantiles: Mapping[Pair, Reals], label: str = "", *, powers: bool = False, width: float = PAGE
) -> "Figure":
    """Distributions by row, a panel per heading, from quantiles at equal steps.

    The thin line is all of it, the thick one the middle half, the mark the median. With `powers` the values are
    logarithms to the base 10.
    """
    kept = {key: np.asarray(each, dtype=float) for key, each in quantiles.items() if len(each)}
    drawn, panels = panelled(kept, width)
    for heading, axes in panels.items():
        for y, row in enumerate(firsts(kept)):
            each = kept.get((row, heading))
            if each is None or not np.isfinite(each).all():
                dashed(axes, y)
                continue
            low, first, middle, third, high = np.interp(
                [0, 0.25, 0.5, 0.75, 1], np.linspace(0, 1, len(each)), each
            )
            colour = MUTED if row.startswith("all") else AGREES
            axes.hlines(y, low, high, color=colour, linewidth=0.9)
            axes.hlines(y, first, third, color=colour, linewidth=4.5, alpha=0.5)
            axes.plot(middle, y, "|", color=colour, markersize=7, markeredgewidth=1.8)
        if powers:
            _powers(axes)
        axes.set_xlabel(label, fontsize=7, color=MUTED, parse_math=False)
    return drawn


def scatters(
    panels: Mapping[str, tuple[Sequence[Reals], Sequence[str], Sequence[str]]], *, width: float = PAGE
) -> "Figure":
    """Points by panel: (coordinates, what colours them, what shapes them). Colours have their names there."""
    drawn, axes = grid(len(panels), min(len(panels), 3), width, 2.3)
    for (name, (xy, groups, shapes)), place in zip(panels.items(), axes, strict=False):
        points = np.asarray(xy, dtype=float).reshape(-1, 2)
        hues, forms = list(dict.fromkeys(sorted(groups))), list(dict.fromkeys(sorted(shapes)))
        for i, group in enumerate(hues):
            for j, form in enumerate(forms):
                here = points[[a == group and b == form for a, b in zip(groups, shapes, strict=True)]]
                if len(here):
                    style: Any = {"color": HUES[i % 10], "markersize": 2.6, "alpha": 0.75, "mew": 0}
                    place.plot(here[:, 0], here[:, 1], SHAPES[j % 10], **style)
            x, y = np.median(points[[a == group for a in groups]], axis=0)
            place.text(
                x, y, broken(group, 14), fontsize=6, color=INK, ha="center", va="center", parse_math=False
            )
        place.set_xticks([])
        place.set_yticks([])
        place.spines[:].set_visible(True)
        place.spines[:].set(color=FAINT)
        place.set_title(broken(name, 26), fontsize=7.5, color=INK, parse_math=False)
    return drawn


def curves(
    panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]],
    label: str = "",
    *,
    levels: Mapping[str, Mapping[str, float]] | None = None,
    width: float = PAGE,
) -> "Figure":
    """Lines of (x, y) by name, a panel per heading, x on a logarithmic axis; `levels` are dotted lines."""
    drawn, axes = grid(len(panels), min(len(panels), 3), width, 1.7)
    series = list(dict.fromkeys(name for each in panels.values() for name in each))
    for (heading, lines), place in zip(panels.items(), axes, strict=False):
        _logarithmic(place)
        place.set_title(broken(heading, 26), fontsize=7.5, color=INK, parse_math=False)
        place.set_ylim(-0.04, 1.04)
        place.grid(color=FAINT, linewidth=0.6)
        for name, points in lines.items():
            shape, hue = _look(series.index(name))
            style: Any = {"color": hue, "marker": shape, "markersize": 3, "linewidth": 1.1}
            place.plot([x for x, _ in points], [y for _, y in points], **style)
            if levels and name in levels.get(heading, {}):
                place.axhline(levels[heading][name], color=hue, linewidth=0.9, linestyle=":")
        place.set_xlabel(label, fontsize=7, color=MUTED, parse_math=False)
    handles = [_mark(name, *_look(i)) for i, name in enumerate(series)]
    below(drawn, handles + ([_line("published", ":", MUTED)] if levels else []), LETTERS)
    return drawn


def _reach(values: Iterable[Mapping[str, float]]) -> tuple[float, float]:
    """From 0 to 1 and to whatever is beyond, with a margin."""
    every = [0.0, 1.0, *(value for each in values for value in each.values())]
    margin = 0.04 * (max(every) - min(every))
    return min(every) - margin, max(every) + margin


def _logarithmic(axes: Any) -> None:
    """A logarithmic axis whose numbers are plain text."""
    from matplotlib.ticker import LogLocator

    axes.set_xscale("log")
    axes.minorticks_off()
    axes.xaxis.set_major_locator(LogLocator(numticks=5))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")


def _diamond(axes: Any, x: float, y: float) -> None:
    axes.plot(x, y, "D", color=WEAK, markersize=3.4, markeredgecolor="none", clip_on=False, zorder=3)


def _powers(axes: Any) -> None:
    """Whole powers of ten where there are some, else three places."""
    low, high = axes.get_xlim()
    step = max(1, round((high - low) / 3))
    ticks = [tick for tick in range(int(np.ceil(low)), int(np.floor(high)) + 1) if tick % step == 0]
    if len(ticks) < 2:
        ticks = [float(tick) for tick in np.linspace(low, high, 3)]  # type: ignore[misc]
    axes.set_xticks(ticks, [f"{10.0**t:.2g}" if abs(t) < 3 else f"1e{t:+.3g}" for t in ticks], parse_math=False)


def _patch(name: str, colour: str) -> Any:
    from matplotlib.patches import Patch

    return Patch(facecolor=(colour, 0.55), label=name)


def _look(place: int) -> tuple[str, str]:
    """The shape and the colour of a series; no two of a hundred are the same."""
    return SHAPES[(place + place // 10) % 10], HUES[place % 10]


def _mark(name: str, shape: str, colour: str) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, marker=shape, markersize=4, linewidth=0, label=name)


def _line(name: str, style: Literal["-", ":"], colour: str) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, linestyle=style, linewidth=1.2, label=name)
