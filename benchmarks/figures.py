"""The two pictures of the page: contestants beside the limit, and growth with n, m and p."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.records import Record
from benchmarks.summary import Row, Summary

OURS, PEER, WRONG = "#1b6ca8", "#9aa5b1", "#e8c9c4"

AXES = {"n": ("n", "training instances"), "m": ("m", "cases"), "p": ("parameters", "parameters")}


def speed_figure(works: Sequence[Summary], titles: dict[str, str], names: dict[str, str]) -> Figure:
    """For each model a bar for each contestant, as long as its time relative to the limit, which is a line."""
    figure = Figure(figsize=(11, 1.0 + 0.32 * len(names) * -(-len(works) // 3)), layout="constrained")
    panels = figure.subplots(-(-len(works) // 3), 3, squeeze=False).flatten()
    for axes, work in zip(panels, works, strict=False):
        bars(axes, work, names)
        axes.set_title(titles[work.model], fontsize=10, loc="left")
    for axes in panels[len(works) :]:
        axes.set_axis_off()
    figure.supxlabel("time relative to one pass over the data and one matrix product", fontsize=9)
    return figure


def bars(axes: Axes, work: Summary, names: dict[str, str]) -> None:
    """One model."""
    rows = [row for row in work.rows if row.who in names]
    longest = max([2.0, *(row.by_limit for row in rows if row.by_limit is not None)])
    for place, row in enumerate(rows):
        if row.by_limit is None:
            axes.text(1.0, place, f" {reason(row)}", va="center", fontsize=7, color="#777777")
            continue
        axes.barh(place, row.by_limit, height=0.7, color=colour(row))
        text = f" {row.by_limit:.2f}" if row.counts else f" {row.by_limit:.2f}, {reason(row)}"
        axes.text(row.by_limit, place, text, va="center", fontsize=7)
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.set_xlim(min([0.5, *(row.by_limit * 0.7 for row in rows if row.by_limit)]), longest * 6)
    axes.set_yticks(range(len(rows)), [names[row.who] for row in rows], fontsize=8)
    axes.invert_yaxis()
    axes.tick_params(axis="x", labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)


def colour(row: Row) -> str:
    """Ours, a peer's, or that of wrong numbers."""
    if not row.counts:
        return WRONG
    return OURS if row.who in {"dot_grad", "cos_grad"} else PEER


def reason(row: Row) -> str:
    """The first words of why it does not count."""
    return row.status if row.status.startswith("wrong") else row.status.partition(":")[0]


def growth_figure(records: Sequence[Record]) -> Figure:
    """Seconds above, memory below, over each of the three sizes."""
    figure = Figure(figsize=(9, 5), layout="constrained")
    grid = figure.subplots(2, 3, squeeze=False)
    for column, (axis, (size, label)) in enumerate(AXES.items()):
        points = sorted((r for r in records if r["axis"] == axis and "seconds" in r), key=lambda r: r[size])
        for axes, value, unit in zip(
            grid[:, column], ("seconds", "own_megabytes"), ("seconds", "peak, MB"), strict=True
        ):
            axes.plot([r[size] for r in points], [r[value] for r in points], "o-", color=OURS)
            axes.set_xlim(left=0)
            axes.set_ylim(bottom=0, top=1.15 * max([1e-9, *(r[value] for r in points)]))
            axes.set_ylabel(unit if column == 0 else "", fontsize=9)
            axes.tick_params(labelsize=8)
            axes.spines[["top", "right"]].set_visible(False)
        grid[1, column].set_xlabel(label, fontsize=9)
    return figure
