"""What figures are made of: panels with a line for each name, names in short lines, a legend, the colours.

Plain values in, matplotlib's objects out; no text is read as mathematics.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from precedents.seen import visible
from precedents.views.drawing import new_figure
from precedents.views.gallery import AGREES, DISAGREES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, MUTED, FAINT, PAPER, WEAK, OPEN = "#24292e", "#6a737d", "#d9dde2", "#ffffff", "#a15c00", "#3b6ea5"
COLOURS = {"passed": AGREES, "weak": WEAK, "failed": DISAGREES, "undecided": OPEN}
MARKS = {"passed": "o", "weak": "D", "failed": "X", "undecided": "s"}
NOTHING = "nothing to show"
NAME = 22  # letters of a metric's name in one line
Pair = tuple[str, str]  # of a metric and a criterion


def grid(count: int, across: int, width: float, height: float) -> tuple["Figure", "list[Axes]"]:
    """A figure with `count` panels, each `height` high; with none, it says that there is nothing to show."""
    across = max(across, 1)
    down = max(-(-count // across), 1)
    drawn = new_figure(figsize=(width, down * height + 0.45), layout="constrained", facecolor="none")
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
    below(drawn, handles)


def below(drawn: "Figure", handles: Sequence[Any], size: float = 7) -> None:
    """A legend of these handles below the panels, if there are any, in letters of this size."""
    if handles:
        drawn.legend(
            handles=list(handles),
            loc="outside lower center",
            ncols=5,
            frameon=False,
            fontsize=size,
            labelcolor=INK,
            handlelength=1.4,
            columnspacing=1.4,
        )


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


def firsts(keys: Iterable[Pair]) -> list[str]:
    """The metrics, in the order of first appearance."""
    return list(dict.fromkeys(metric for metric, _ in keys))


def _height(names: Iterable[str]) -> float:
    """Inches for a line for each name, all as high as the name of most lines needs."""
    lines = [broken(name, NAME).count("\n") + 1 for name in names]
    return len(lines) * max(0.17, 0.125 * max(lines, default=1))
