"""The report: one page that needs nothing but itself; values in, HTML out, everything shown is escaped."""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from importlib.resources import files
from math import isfinite
from typing import TYPE_CHECKING, Any

from precedents.views import figures
from precedents.views.comparison import spreads
from precedents.views.gallery import Cell
from precedents.views.shown import visible
from precedents.views.svg import inline
from precedents.views.tiles import Album, Tile

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure

COLOURS = {  # of the figures, as the page has them for light and for dark
    figures.INK: "var(--ink)",
    figures.MUTED: "var(--muted)",
    figures.FAINT: "var(--line)",
    figures.PAPER: "var(--page)",
    **{colour: f"var(--{verdict})" for verdict, colour in figures.COLOURS.items()},
}


@dataclass(frozen=True)
class Row:
    """One metric by one criterion."""

    metric: str
    criterion: str
    value: float | None
    low: float | None
    high: float | None
    chance: float | None
    verdict: str  # passed | weak | failed | not applicable
    reason: str


@dataclass(frozen=True)
class Hub:
    """A training instance that answers many cases."""

    metric: str
    index: int
    share: float  # of the cases whose top precedent it is
    cell: Cell


@dataclass(frozen=True)
class Example:
    """One case with the precedents by every metric, side by side."""

    case: Cell
    right: bool
    strips: Mapping[str, Sequence[Cell]]  # by metric


@dataclass(frozen=True, eq=False)
class Report:
    """All that the page shows."""

    title: str
    verdict: Sequence[str]  # sentences: the recommendation first, then its reason and cautions
    rows: Sequence[Row]
    values: Mapping[tuple[str, str], Sequence[float]]  # one per case, by metric and criterion
    norms: Mapping[str, tuple[Sequence[float], Sequence[float]]]  # of all, of the selected
    hubs: Sequence[Hub]
    agreement: Mapping[str, Mapping[tuple[str, str], float]]  # by measure, by pair of metrics
    examples: Sequence[Example]
    label_agreement: Mapping[str, float]  # by metric
    duplicates: Sequence[tuple[int, int]]  # a case and the training instance that equals it
    costs: Mapping[str, float]  # seconds by metric
    facts: Mapping[str, str]  # settings, versions, fingerprints
    command: str = ""  # that makes this page again
    null: float | None = None  # half the interval around zero of correlations that mean nothing
    spread: Mapping[str, float] = field(default_factory=dict)  # of the training set's columns, if it is a table


@dataclass(frozen=True)
class _Column:
    """A criterion of the main table, and the axis of its small plots."""

    name: str
    graded: bool  # more than yes or no for a case
    low: float
    high: float

    def place(self, value: float) -> float:
        """Where a value lies on the small plots, from 4 to 92."""
        return 4 + 88 * (value - self.low) / (self.high - self.low)


@dataclass(frozen=True)
class _Drawing:
    """A figure in two widths, with what it says in words and what to know when reading it."""

    wide: str
    narrow: str
    label: str


def html(report: Report) -> str:
    """The report as one self-contained page."""
    from markupsafe import Markup

    folder = files("precedents.views")
    script = folder.joinpath("report.js").read_text("utf-8")
    album = Album()
    rows = {(row.metric, row.criterion): row for row in report.rows}
    columns = [_column(report, name) for name in dict.fromkeys(row.criterion for row in report.rows)]
    return (
        environment()
        .get_template("report.html.jinja")
        .render(
            report=report,
            rows=rows,
            columns=columns,
            metrics=list(dict.fromkeys(row.metric for row in report.rows)),
            counts=_counts(report.rows),
            inapplicable=_inapplicable(report.rows),
            drawings={name: _drawn(name, *drawing) for name, drawing in _drawings(report, columns).items()},
            hubs=_grouped(report.hubs, album),
            examples=[_example(example, album, report.spread) for example in report.examples],
            pictures=album.pictures,  # by now it holds those of the hubs and the examples
            styles=Markup(folder.joinpath("report.css").read_text("utf-8")),  # noqa: S704 (a file of the package)
            script=Markup(script),  # noqa: S704 (a file of the package)
            digest=b64encode(sha256(script.encode()).digest()).decode(),
        )
    )


def environment() -> "Environment":
    """The package's templates; whatever they show is escaped and visible."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("precedents", "views"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"words": _words, "settings": _settings, "number": _number, "names": figures.names}
    return environment


def _words(criterion: str) -> str:
    """`identical_class(k=10)` as `Identical class`."""
    name = criterion.partition("(")[0].replace("_", " ")
    return name[:1].upper() + name[1:]


def _settings(criterion: str) -> str:
    """`identical_class(k=10)` as `k = 10`."""
    return criterion.partition("(")[2].removesuffix(")").replace("=", " = ")


def _number(value: float) -> str:
    """Three digits after the point and a real minus sign."""
    return f"{round(value, 3) + 0.0:.3f}".replace("-", "−")


def _column(report: Report, name: str) -> _Column:
    """A criterion whose values are other than 0 and 1, or which is about random models, is graded."""
    rows = [row for row in report.rows if row.criterion == name]
    values = (value for (_, criterion), all in report.values.items() if criterion == name for value in all)
    graded = name.startswith("model_randomization") or any(value not in (0, 1) for value in values)
    ends = [end for row in rows for end in (row.value, row.low, row.high) if end is not None and isfinite(end)]
    return _Column(name, graded, min([0.0, *ends]), max([1.0, *ends]))


def _counts(rows: Sequence[Row]) -> dict[str, tuple[int, int]]:
    """By metric, how many criteria it passed and how many applied."""
    counts: dict[str, tuple[int, int]] = {}
    for row in rows:
        passed, applied = counts.get(row.metric, (0, 0))
        counts[row.metric] = passed + (row.verdict == "passed"), applied + (row.verdict != "not applicable")
    return counts


def _inapplicable(rows: Sequence[Row]) -> dict[str, list[str]]:
    """By reason, the metrics (with the criterion, unless it is the reason for all) that it keeps out."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.verdict == "not applicable":
            reasons.setdefault(row.reason, []).append(row.metric)
    return {reason: list(dict.fromkeys(metrics)) for reason, metrics in reasons.items()}


def _grouped(hubs: Sequence[Hub], album: Album) -> dict[str, list[tuple[Hub, Tile]]]:
    grouped: dict[str, list[tuple[Hub, Tile]]] = {}
    for hub in hubs:
        grouped.setdefault(hub.metric, []).append((hub, album.tile(hub.cell)))
    return grouped


def _example(example: Example, album: Album, spread: Mapping[str, float]) -> dict[str, Any]:
    beside = example.case.picture
    spread = spread or spreads(cell.picture for strip in example.strips.values() for cell in strip)
    return {
        "right": example.right,
        "case": album.alone(example.case),
        "strips": {
            metric: [album.tile(cell, beside, spread) for cell in strip]
            for metric, strip in example.strips.items()
        },
    }


def _drawings(report: Report, columns: Sequence[_Column]) -> dict[str, tuple[Callable[..., "Figure"], str]]:
    """The figures that there are values for, each as a function of its width, and in words."""
    graded = {column.name for column in columns if column.graded}
    verdicts = {(row.metric, row.criterion): row.verdict for row in report.rows}
    spread = {key: values for key, values in report.values.items() if key[1] in graded}
    rates = {
        (row.metric, row.criterion): (row.value, row.low, row.high)
        for row in report.rows
        if row.criterion not in graded
        and row.value is not None
        and row.low is not None
        and row.high is not None
    }
    chances = {(row.metric, row.criterion): row.chance for row in report.rows if row.chance is not None}
    shares: dict[str, list[float]] = {}
    for hub in report.hubs:
        shares.setdefault(hub.metric, []).append(hub.share)
    every: dict[str, tuple[Any, Callable[..., Figure], str]] = {
        "boxes": (
            spread,
            partial(figures.boxes, spread, verdicts, null=report.null),
            "Box plots of the rank correlations of each metric.",
        ),
        "rates": (
            rates,
            partial(figures.rates, rates, chances, verdicts),
            "Success rates of each metric with intervals and chance levels, as in the table of verdicts.",
        ),
        "norms": (
            report.norms,
            partial(figures.norms, report.norms),
            "Histograms of norms, of all training instances and of the selected ones.",
        ),
        "hubs": (shares, partial(figures.hubs, shares), "Shares of the cases by metric; given below as well."),
        "labels": (
            report.label_agreement,
            partial(figures.label_agreement, report.label_agreement),
            "Label agreement: " + _listed(report.label_agreement, "{:.2f}"),
        ),
        "costs": (
            report.costs,
            partial(figures.costs, report.costs),
            "Seconds: " + _listed(report.costs, "{:.3g}"),
        ),
    }
    for i, (measure, pairs) in enumerate(report.agreement.items()):
        draw = partial(figures.agreement, pairs)
        every[f"agreement-{i}"] = pairs, draw, f"Heat map: {measure}. The numbers are in the table below."
    return {name: (draw, label) for name, (values, draw, label) in every.items() if values}


def _listed(values: Mapping[str, float], form: str) -> str:
    return ", ".join(f"{name} {form.format(value)}" for name, value in values.items())


def _drawn(name: str, draw: Callable[..., "Figure"], label: str) -> _Drawing:
    from markupsafe import Markup

    wide, narrow = (
        Markup(inline(draw(width=width), f"{name}-{size}", COLOURS))  # noqa: S704 (its text is escaped)
        for size, width in (("wide", figures.PAGE), ("narrow", figures.COLUMN))
    )
    return _Drawing(wide, narrow, label)
