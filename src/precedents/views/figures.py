"""Figures for papers and pages: plain values in, a matplotlib figure out; no global state is touched.

`width` is in inches: COLUMN fits one column of a paper, PAGE both. Whatever colour says, a mark or a number
says too, and no text is read as mathematics.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from precedents.seen import visible
from precedents.views.gallery import AGREES, DISAGREES
from precedents.views.panels import (
    COLOURS,
    INK,
    MARKS,
    MUTED,
    NAME,
    PAPER,
    Pair,
    barred,
    broken,
    dashed,
    firsts,
    grid,
    legend,
    noted,
    panelled,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMN, PAGE = 3.3, 6.9  # inches
Reals = Sequence[float]


def boxes(
    values: Mapping[Pair, Reals],
    verdicts: Mapping[Pair, str] | None = None,
    *,
    null: float | None = None,
    label: str = "rank correlation",
    width: float = PAGE,
) -> "Figure":
    """One value per case, by metric, a panel per criterion.

    A box holds the middle half, its line is the median, the whiskers reach from 5 to 95%, and the mark is
    the mean. The band is the interval of `null` around zero.
    """
    found = {key: kept for key, given in values.items() if (kept := finite(given)).size}
    drawn, panels = panelled(found, width)
    every = np.concatenate([*found.values(), [0.0, 1.0]])
    margin = 0.04 * np.ptp(every)
    for criterion, axes in panels.items():
        axes.set_xlim(every.min() - margin, every.max() + margin)
        if null is not None:
            axes.axvspan(-null, null, color=MUTED, alpha=0.22, linewidth=0)
        axes.axvline(0, color=MUTED, linewidth=0.8)
        for y, metric in enumerate(firsts(found)):
            if (metric, criterion) not in found:
                dashed(axes, y)
                continue
            kept, colour, mark = found[metric, criterion], *_style(verdicts, (metric, criterion))
            low, first, middle, third, high = np.percentile(kept, [5, 25, 50, 75, 95])
            axes.hlines(y, low, high, color=colour, linewidth=0.9)
            axes.barh(y, third - first, 0.56, first, facecolor=(colour, 0.22), edgecolor=colour, linewidth=0.9)
            axes.vlines(middle, y - 0.28, y + 0.28, color=colour, linewidth=1.4)
            axes.plot(kept.mean(), y, mark, color=colour, markersize=3.6, markeredgecolor="none")
        axes.set_xlabel(label, fontsize=7, color=MUTED, parse_math=False)
    shades = {"null interval": MUTED} if null is not None else {}
    legend(drawn, _verdicts_of(verdicts, found), shades=shades)
    return drawn


def rates(
    intervals: Mapping[Pair, tuple[float, float, float]],
    chances: Mapping[Pair, float] | None = None,
    verdicts: Mapping[Pair, str] | None = None,
    *,
    width: float = PAGE,
) -> "Figure":
    """Success rates with their intervals (value, low, high), by metric, a panel per criterion."""
    drawn, panels = panelled(intervals, width)
    for criterion, axes in panels.items():
        axes.set_xlim(-0.04, 1.04)
        axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
        for y, metric in enumerate(firsts(intervals)):
            key = metric, criterion
            if key not in intervals:
                dashed(axes, y)
                continue
            colour, mark = _style(verdicts, key)
            value, low, high = intervals[key]
            axes.hlines(y, low, high, color=colour, linewidth=1.6, alpha=0.55)
            axes.plot(value, y, mark, color=colour, markersize=4, markeredgecolor="none", clip_on=False)
            if chances and key in chances:
                axes.vlines(chances[key], y - 0.5, y + 0.5, color=MUTED, linewidth=0.9, linestyles=":")
    legend(drawn, _verdicts_of(verdicts, intervals), lines={"chance": ":"} if chances else {})
    return drawn


def norms(found: Mapping[str, tuple[Reals, Reals]], *, width: float = PAGE) -> "Figure":
    """Histograms of norms, of all training instances against the selected ones, on a logarithmic axis."""
    across = min(len(found), 3 if width > 5 else 2)
    drawn, axes = grid(len(found), across, width, 1.25)
    for (name, (every, selected)), place in zip(found.items(), axes, strict=False):
        place.set_title(broken(name, 24), fontsize=7.5, color=INK, parse_math=False)
        place.set_yticks([])
        place.spines["left"].set_visible(False)
        logs = [np.log10(kept[kept > 0]) for kept in map(finite, (every, selected))]
        if not any(part.size for part in logs):
            place.set_xticks([])
            noted(place, "no norm above zero")
            continue
        together = np.concatenate(logs)
        low, high = together.min(), together.max()
        edges = np.linspace(low, high, 26) if high - low > 1e-9 else low + np.linspace(-0.5, 0.5, 26)
        for part, colour, filled in zip(logs, (MUTED, AGREES), (True, False), strict=True):
            if part.size:
                heights, _ = np.histogram(part, edges, density=True)
                style = {"facecolor": (colour, 0.35)} if filled else {"edgecolor": colour, "linewidth": 1.4}
                place.stairs(heights, edges, fill=filled, **style)
        ticks = edges[0] + (edges[-1] - edges[0]) * np.array([0.08, 0.5, 0.92])
        place.set_xticks(ticks, [plain(10**tick, digits=2) for tick in ticks], parse_math=False)
    legend(drawn, [], shades={"all": MUTED} if found else {}, lines={"selected": "-"} if found else {})
    return drawn


def agreement(pairs: Mapping[Pair, float], label: str = "", *, width: float = PAGE) -> "Figure":
    """A heat map of how far any two metrics agree; numbers where there is room, a minus where below zero."""
    there = names(pairs)
    drawn, [axes] = grid(min(len(there), 1), 1, width, 1.1 + 0.82 * (width - 1) if there else 0.5)
    if not there:
        return drawn
    side = (width - 1) / len(there)
    for y, row in enumerate(there):
        for x, column in enumerate(there):
            value = pairs.get((row, column), pairs.get((column, row)))
            if value is None or not np.isfinite(value):
                continue
            depth = min(abs(value), 1) * 0.9
            face = (AGREES if value >= 0 else DISAGREES, depth)
            axes.add_patch(_square(x, y, face))
            text = short(value) if side > 0.24 else "–" if value < 0 and side > 0.1 else ""
            ink = PAPER if depth > 0.6 else INK
            if text:
                axes.text(x, y, text, color=ink, fontsize=6, ha="center", va="center", in_layout=False)
    axes.set_xlim(-0.5, len(there) - 0.5)
    axes.set_ylim(len(there) - 0.5, -0.5)
    axes.set_aspect("equal")
    written = [broken(name, NAME) for name in there]
    small = 7 if side > 0.14 else 5.5
    axes.set_xticks(range(len(there)), written, rotation=90, fontsize=small, parse_math=False)
    axes.set_yticks(range(len(there)), written, fontsize=small, parse_math=False)
    axes.spines[:].set_visible(False)
    axes.set_title(visible(label), fontsize=8, color=INK, parse_math=False)
    return drawn


def hubs(shares: Mapping[str, Reals], *, width: float = PAGE) -> "Figure":
    """The share of cases that a metric's most selected training instances answer, one segment for each."""
    drawn, axes = barred(shares, width)
    for y, parts in enumerate(shares.values()):
        start = 0.0
        for i, share in enumerate(parts):
            axes.barh(y, share, 0.62, start, facecolor=(AGREES, max(0.9 - 0.22 * i, 0.2)), linewidth=0)
            axes.vlines(start + share, y - 0.31, y + 0.31, color=INK, linewidth=0.7)
            start += share
        axes.text(start + 0.015, y, f"{start:.0%}", fontsize=6.5, va="center", color=INK, parse_math=False)
    if shares:
        axes.set_xlim(0, 1.12)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25%", "50%", "75%", "100%"])
        axes.set_xlabel("share of the cases", fontsize=7, color=MUTED)
    return drawn


def label_agreement(shares: Mapping[str, float], *, width: float = PAGE) -> "Figure":
    """The share of precedents that have the predicted label, by metric."""
    drawn, axes = barred(shares, width)
    for y, share in enumerate(shares.values()):
        axes.barh(y, share, 0.62, facecolor=(AGREES, 0.75), linewidth=0)
        axes.text(share + 0.015, y, f"{share:.2f}", fontsize=6.5, va="center", color=INK)
    if shares:
        axes.set_xlim(0, 1.12)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
        axes.set_xlabel("share with the predicted label", fontsize=7, color=MUTED)
    return drawn


def costs(seconds: Mapping[str, float], *, width: float = PAGE) -> "Figure":
    """The seconds that each metric took, as bars."""
    drawn, axes = barred(seconds, width)
    most = max(seconds.values(), default=0) or 1.0
    for y, value in enumerate(seconds.values()):
        axes.barh(y, value, 0.62, facecolor=(MUTED, 0.6), linewidth=0)
        axes.text(value + most * 0.012, y, plain(value), fontsize=6.5, va="center", color=INK)
    if seconds:
        axes.set_xlim(0, most * 1.12)
        axes.xaxis.set_major_formatter(lambda value, _: plain(value))
        axes.locator_params(axis="x", nbins=5)
        axes.set_xlabel("seconds", fontsize=7, color=MUTED)
    return drawn


def names(pairs: Iterable[Pair]) -> list[str]:
    """All that the pairs are of, firsts and seconds, in the order of first appearance."""
    return list(dict.fromkeys(name for pair in pairs for name in pair))


def finite(values: Reals) -> "np.ndarray[Any, Any]":
    """The values that are numbers."""
    kept = np.asarray(values, dtype=float)
    return kept[np.isfinite(kept)]


def plain(value: float, digits: int = 3) -> str:
    """A number with so many digits that count, written out where that can be read.

    >>> plain(1234567.0), plain(0.00012345), plain(0.5), plain(1.2345e9), plain(0.0)
    ('1,230,000', '0.000123', '0.5', '1.23e+09', '0')
    """
    rounded = float(f"{value:.{digits}g}")
    if rounded and not 1e-4 <= abs(rounded) < 1e7:
        return f"{rounded:.{digits}g}"
    text = np.format_float_positional(rounded, trim="-")
    return f"{rounded:,.0f}" if rounded.is_integer() else text


def short(value: float) -> str:
    """Two digits without the zero before the point: .97, 1, –.31."""
    return re.sub(r"^(-?)0(?=\.)", r"\1", f"{round(value, 2) + 0.0:.2f}").replace("-", "–").replace("1.00", "1")


def _style(verdicts: Mapping[Pair, str] | None, key: Pair) -> tuple[str, str]:
    verdict = (verdicts or {}).get(key, "")
    return COLOURS.get(verdict, INK), MARKS.get(verdict, "o")


def _verdicts_of(verdicts: Mapping[Pair, str] | None, keys: Iterable[Pair]) -> list[str]:
    there = {(verdicts or {}).get(key) for key in keys}
    return [verdict for verdict in MARKS if verdict in there]


def _square(x: float, y: float, face: tuple[str, float]) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, facecolor=face, linewidth=0, in_layout=False)
