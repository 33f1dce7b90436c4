"""Figures for papers and pages: plain values in, a matplotlib figure out; no global state is touched.

`width` is in inches: COLUMN fits one column of a paper, PAGE both. Whatever colour says, a mark or a number
says too, and no text is read as mathematics.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from precedents.views.gallery import AGREES, DISAGREES
from precedents.views.shown import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN, PAGE = 3.3, 6.9
INK, MUTED, FAINT, PAPER, WEAK = "#24292e", "#6a737d", "#d9dde2", "#ffffff", "#a15c00"
COLOURS = {"passed": AGREES, "weak": WEAK, "failed": DISAGREES}
MARKS = {"passed": "o", "weak": "D", "failed": "X"}
NOTHING = "nothing to show"
NAME = 22  # letters of a metric's name in one line
Pair = tuple[str, str]  # of a metric and a criterion
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
        axes.set_xticks([0, 0.5, 1], ["0", ".5", "1"])
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
        place.set_xticks(ticks, [_power(tick) for tick in ticks], parse_math=False)
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
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"])
        axes.set_xlabel("share with the predicted label", fontsize=7, color=MUTED)
    return drawn


def costs(seconds: Mapping[str, float], *, width: float = PAGE) -> "Figure":
    """Seconds by metric."""
    drawn, axes = barred(seconds, width)
    most = max(seconds.values(), default=0) or 1.0
    for y, value in enumerate(seconds.values()):
        axes.barh(y, value, 0.62, facecolor=(MUTED, 0.6), linewidth=0)
        axes.text(value + most * 0.012, y, f"{value:.3g}", fontsize=6.5, va="center", color=INK)
    if seconds:
        axes.set_xlim(0, most * 1.12)
        axes.set_xlabel("seconds", fontsize=7, color=MUTED)
    return drawn


def names(pairs: Iterable[Pair]) -> list[str]:
    """What the pairs are of, in the order of first appearance."""
    return list(dict.fromkeys(name for pair in pairs for name in pair))


def broken(name: str, most: int) -> str:
    """A name in at most three lines of at most `most` letters; what cannot be seen in it is written out.

    It is broken where it can be. Of a very long one, the beginning and the end are kept.
    """
    lines = [""]
    for part in re.findall(r"\(?[^:/(,_\s]*[:/,_\s]*", visible(name)):
        for piece in (part[i : i + most] for i in range(0, len(part), most)):
            if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > most:
                lines.append("")
            lines[-1] += piece
    kept = lines if len(lines) <= 3 else [lines[0], f"{lines[1][: most - 1].rstrip()}…", lines[-1]]
    return "\n".join(line.rstrip() for line in kept)


def finite(values: Reals) -> "np.ndarray[Any, Any]":
    """The values that are numbers."""
    kept = np.asarray(values, dtype=float)
    return kept[np.isfinite(kept)]


def firsts(keys: Iterable[Pair]) -> list[str]:
    """The metrics, in the order of first appearance."""
    return list(dict.fromkeys(metric for metric, _ in keys))


def _style(verdicts: Mapping[Pair, str] | None, key: Pair) -> tuple[str, str]:
    verdict = (verdicts or {}).get(key, "")
    return COLOURS.get(verdict, INK), MARKS.get(verdict, "o")


def _verdicts_of(verdicts: Mapping[Pair, str] | None, keys: Iterable[Pair]) -> list[str]:
    there = {(verdicts or {}).get(key) for key in keys}
    return [verdict for verdict in MARKS if verdict in there]


def short(value: float) -> str:
    """Two digits without the zero before the point: .97, 1, –.31."""
    return re.sub(r"^(-?)0(?=\.)", r"\1", f"{round(value, 2) + 0.0:.2f}").replace("-", "–").replace("1.00", "1")


def _power(log: float) -> str:
    return f"{10**log:.2g}" if -3 < log < 4 else f"1e{log:+.1f}"


def _square(x: float, y: float, face: tuple[str, float]) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, facecolor=face, linewidth=0, in_layout=False)


def grid(count: int, across: int, width: float, height: float) -> tuple["Figure", "list[Axes]"]:
    """A figure with `count` panels, each `height` high; with none, it says that there is nothing to show."""
    from matplotlib.figure import Figure

    across = max(across, 1)
    down = max(-(-count // across), 1)
    drawn = Figure(figsize=(width, down * height + 0.45), layout="constrained", facecolor="none")
    axes = list(drawn.subplots(down, across, squeeze=False).flat)
    for place in axes:
        place.set_facecolor("none")
        place.tick_params(labelsize=6.5, length=2, width=0.6, color=MUTED, labelcolor=INK)
        place.spines[["top", "right"]].set_visible(False)
        place.spines[["left", "bottom"]].set(color=FAINT, linewidth=0.8)
    for place in axes[count:]:
        place.set_axis_off()
    if not count:
        noted(axes[0], NOTHING)
    return drawn, axes


def panelled(keys: Mapping[Pair, Any], width: float) -> tuple["Figure", "dict[str, Axes]"]:
    """A panel for each criterion, with a line for each metric; names only where a row of panels begins."""
    metrics, criteria = firsts(keys), list(dict.fromkeys(criterion for _, criterion in keys))
    room = max(int((width - 1.1) / 0.95), 1)
    down = max(-(-len(criteria) // room), 1)
    across = -(-len(criteria) // down)
    drawn, axes = grid(len(criteria), across, width, 0.55 + _height(metrics))
    for i, (criterion, place) in enumerate(zip(criteria, axes, strict=False)):
        place.set_title(broken(criterion, 17), fontsize=7.5, color=INK, parse_math=False)
        ruled(place, metrics, named=i % across == 0)
    return drawn, dict(zip(criteria, axes, strict=False))


def barred(values: Mapping[str, Any], width: float) -> tuple["Figure", "Axes"]:
    """One panel with a line for each name."""
    drawn, [axes] = grid(min(len(values), 1), 1, width, 0.45 + _height(values))
    if values:
        ruled(axes, list(values), named=True)
    return drawn, axes


def _height(names: Iterable[str]) -> float:
    """Inches for a line for each name, all as high as the name of most lines needs."""
    lines = [broken(name, NAME).count("\n") + 1 for name in names]
    return len(lines) * max(0.17, 0.125 * max(lines, default=1))


def ruled(axes: "Axes", names: Sequence[str], *, named: bool) -> None:
    """A line for each name, the first on top."""
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_yticks(
        range(len(names)), [broken(name, NAME) if named else "" for name in names], parse_math=False
    )
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)


def dashed(axes: "Axes", y: float) -> None:
    """A dash where there is no value."""
    axes.text(
        0.5, y, "–", color=MUTED, fontsize=7, ha="center", va="center", transform=axes.get_yaxis_transform()
    )


def noted(axes: "Axes", text: str) -> None:
    """A text in place of a panel."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, text, color=MUTED, fontsize=8, ha="center", va="center", transform=axes.transAxes)


def legend(
    drawn: "Figure",
    verdicts: Sequence[str],
    *,
    shades: Mapping[str, str] | None = None,
    lines: Mapping[str, Literal["-", ":"]] | None = None,
) -> None:
    """One line below the panels: the marks of the verdicts, then shades and lines by name."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Line2D([], [], color=COLOURS[verdict], marker=MARKS[verdict], markersize=4, linewidth=0, label=verdict)
        for verdict in verdicts
    ]
    handles += [Patch(facecolor=(colour, 0.35), label=name) for name, colour in (shades or {}).items()]
    handles += [
        Line2D([], [], color=AGREES if style == "-" else MUTED, linestyle=style, linewidth=1.2, label=name)
        for name, style in (lines or {}).items()
    ]
    if handles:
        drawn.legend(
            handles=handles,
            loc="outside lower center",
            ncols=5,
            frameon=False,
            fontsize=7,
            labelcolor=INK,
            handlelength=1.4,
            columnspacing=1.4,
        )
