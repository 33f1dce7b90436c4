"""The report: one page that needs nothing but itself; values in, HTML out, everything shown is escaped."""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from importlib.resources import files
from math import isfinite
from typing import TYPE_CHECKING, Any

from precedents.registry import Call
from precedents.seen import visible
from precedents.views import figures
from precedents.views.comparison import spreads
from precedents.views.gallery import Album, Tile, TiledExample
from precedents.views.instance import Cell, Shown
from precedents.views.panels import COLOURS as VERDICTS
from precedents.views.panels import FAINT, INK, MUTED, PAPER
from precedents.views.svg import inline

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure

COLOURS = {  # of the figures, as the page has them for light and for dark
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    FAINT: "var(--line)",
    PAPER: "var(--page)",
    **{colour: f"var(--{verdict})" for verdict, colour in VERDICTS.items()},
}

_Plan = tuple[Any, Callable[..., "Figure"], str]  # a figure's values, how it is drawn at a width, in words


@dataclass(frozen=True)
class ReportRow:
    """One metric by one criterion: a row of the table of all numbers."""

    metric: str
    criterion: str
    value: float | None
    low: float | None
    high: float | None
    chance: float | None
    verdict: (
        str  # passed | weak | failed | undecided, or why there is no value: not applicable | left out | error
    )
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
    right: bool  # whether the prediction is
    strips: Mapping[str, Sequence[Cell]]  # by metric
    shares: Mapping[str, Sequence[Cell]] = field(default_factory=dict)  # by metric: the same, with their shares


@dataclass(frozen=True, eq=False)
class Report:
    """All that the page shows."""

    title: str
    verdict: Sequence[str]  # sentences: the recommendation first, then its reason and cautions
    rows: Sequence[ReportRow]
    values: Mapping[tuple[str, str], Sequence[float]]  # one per case, by metric and criterion
    norms: Mapping[str, tuple[Sequence[float], Sequence[float]]]  # of all, of the selected
    hubs: Sequence[Hub]
    agreement: Mapping[str, Mapping[tuple[str, str], float]]  # by measure, by pair of metrics
    examples: Sequence[Example]
    label_agreement: Mapping[str, float]  # by metric
    duplicates: Sequence[tuple[str, str]]  # what a case and the training instance that equals it are called
    costs: Mapping[str, float]  # seconds by metric
    facts: Mapping[str, str]  # settings, versions, fingerprints
    command: str = ""  # that makes this page again
    null: float | None = None  # half the interval around zero of correlations that mean nothing
    spread: Mapping[str, float] = field(default_factory=dict)  # of the training set's columns, if it is a table
    better: Mapping[str, str] = field(default_factory=dict)  # by criterion, "higher" or "zero": what is best
    meaning: Mapping[str, str] = field(default_factory=dict)  # by criterion, in a sentence or two
    compared: Mapping[str, str] = field(default_factory=dict)  # by metric, what it compares, in a sentence
    why: Mapping[tuple[str, str], str] = field(default_factory=dict)  # of what is weak or failed, in a sentence
    copies: Mapping[tuple[str, str], Shown] = field(default_factory=dict)  # what is seen of duplicates


@dataclass(frozen=True)
class _Scale:
    """A criterion as a column of the main table, and the axis of its small plots."""

    name: str
    graded: bool  # more than yes or no for a case
    zero: bool  # whether zero is best
    low: float
    high: float

    def place(self, value: float) -> float:
        """Where a value lies on the small plots, from 4 to 92."""
        return 4 + 88 * (value - self.low) / (self.high - self.low)


@dataclass(frozen=True)
class _Inline:
    """A figure on the page, in two widths, with what it says in words."""

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
    columns = scales(report)
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
            explained=_explained(report),
            copies={pair: album.tile(Cell("", each)) for pair, each in report.copies.items()},
            meanings={_words(each.name): report.meaning.get(each.name, "") for each in columns},
            drawings={name: _drawn(name, *plan) for name, plan in _plans(report, columns).items()},
            agreement=_agreeing(report),
            hubs=_grouped(report.hubs, album),
            examples=[_example(example, album, report.spread) for example in report.examples],
            pictures=album.pictures,  # by now it holds those of the hubs and the examples
            styles=Markup(folder.joinpath("report.css").read_text("utf-8")),  # noqa: S704 (a file of the package)
            script=Markup(script),  # noqa: S704 (a file of the package)
            digest=b64encode(sha256(script.encode()).digest()).decode(),
        )
    )


def scales(report: Report) -> "list[_Scale]":
    """The criteria as columns of the main table, in its order."""
    return [_scale(report, name) for name in dict.fromkeys(row.criterion for row in report.rows)]


def environment() -> "Environment":
    """jinja2's environment with the package's templates; whatever they show is escaped and visible."""
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
    name = (Call.read(criterion) or Call(criterion)).name.replace("_", " ")
    return name[:1].upper() + name[1:]


def _settings(criterion: str) -> str:
    """`identical_class(k=10)` as `k = 10`."""
    settings = (Call.read(criterion) or Call(criterion)).settings
    return ", ".join(f"{name} = {value}" for name, value in settings.items())


def _number(value: float) -> str:
    """Three digits after the point and a real minus sign."""
    return f"{round(value, 3) + 0.0:.3f}".replace("-", "−")


def _scale(report: Report, name: str) -> _Scale:
    """A criterion for which zero is best, or whose values are other than 0 and 1, is graded."""
    rows = [row for row in report.rows if row.criterion == name]
    values = (value for (_, criterion), all in report.values.items() if criterion == name for value in all)
    graded = report.better.get(name) == "zero" or any(value not in (0, 1) for value in values)
    zero = report.better.get(name, "zero" if graded else "higher") == "zero"
    ends = [end for row in rows for end in (row.value, row.low, row.high) if end is not None and isfinite(end)]
    return _Scale(name, graded, zero, min([0.0, *ends]), max([1.0, *ends]))


def _counts(rows: Sequence[ReportRow]) -> dict[str, tuple[int, int]]:
    """By metric, how many criteria it passed and how many applied."""
    counts: dict[str, tuple[int, int]] = {}
    for row in rows:
        passed, applied = counts.get(row.metric, (0, 0))
        counts[row.metric] = passed + (row.verdict == "passed"), applied + (row.value is not None)
    return counts


def _inapplicable(rows: Sequence[ReportRow]) -> dict[str, dict[str, list[str]]]:
    """By kind and reason, the metrics that it keeps out."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        if row.value is None:
            kept = reasons.setdefault(row.verdict, {}).setdefault(row.reason, [])
            kept += [row.metric] if row.metric not in kept else []
    return reasons


def _explained(report: Report) -> dict[tuple[str, str, str], list[str]]:
    """By criterion, verdict and the sentence that says why, the metrics of which it is said."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for row in report.rows:
        if said := report.why.get((row.metric, row.criterion)):
            found.setdefault((row.criterion, row.verdict, said), []).append(row.metric)
    return found


def _grouped(hubs: Sequence[Hub], album: Album) -> dict[str, list[tuple[Hub, Tile]]]:
    grouped: dict[str, list[tuple[Hub, Tile]]] = {}
    for hub in hubs:
        grouped.setdefault(hub.metric, []).append((hub, album.tile(hub.cell)))
    return grouped


def _example(example: Example, album: Album, spread: Mapping[str, float]) -> TiledExample:
    case, beside = album.alone(example.case), example.case.shown
    spread = spread or spreads(cell.shown for strip in example.strips.values() for cell in strip)
    strips = {
        metric: [album.tile(cell, beside, spread) for cell in strip] for metric, strip in example.strips.items()
    }
    shares = {metric: [album.divided(cell) for cell in strip] for metric, strip in example.shares.items()}
    return TiledExample(case, example.right, strips, shares)


def _plans(report: Report, columns: Sequence[_Scale]) -> dict[str, tuple[Callable[..., "Figure"], str]]:
    """The figures that there are values for, each as a function of its width, and in words."""
    every = _of_criteria(report, columns) | _of_metrics(report) | _of_pairs(report)
    return {name: (draw, label) for name, (values, draw, label) in every.items() if values}


def _of_criteria(report: Report, columns: Sequence[_Scale]) -> dict[str, _Plan]:
    """What is graded as boxes, the others as rates."""
    graded = {column.name for column in columns if column.graded}
    verdicts = {(row.metric, row.criterion): row.verdict for row in report.rows}
    chances = {(row.metric, row.criterion): row.chance for row in report.rows if row.chance is not None}
    correlations = {key: values for key, values in report.values.items() if key[1] in graded}
    rates = {
        (row.metric, row.criterion): (row.value, row.low, row.high)
        for row in report.rows
        if row.criterion not in graded
        and row.value is not None
        and row.low is not None
        and row.high is not None
    }
    boxes = partial(figures.boxes, correlations, verdicts, null=report.null)
    intervals = partial(figures.rates, rates, chances, verdicts)
    said = "Success rates of each metric with intervals and chance levels, as in the table of verdicts."
    return {
        "boxes": (correlations, boxes, "Box plots of the rank correlations of each metric."),
        "rates": (rates, intervals, said),
    }


def _of_metrics(report: Report) -> dict[str, _Plan]:
    """Norms, hubs, labels and costs, by metric."""
    norms, labels, costs = report.norms, report.label_agreement, report.costs
    shares: dict[str, list[float]] = {}
    for hub in report.hubs:
        shares.setdefault(hub.metric, []).append(hub.share)
    lengths = "Histograms of norms, of all training instances and of the selected ones."
    agreed, seconds = _listed(labels, "{:.2f}"), _listed(costs, "{:.3g}")
    return {
        "norms": (norms, partial(figures.norms, norms), lengths),
        "hubs": (shares, partial(figures.hubs, shares), "Shares of the cases by metric; given below as well."),
        "labels": (labels, partial(figures.label_agreement, labels), f"Label agreement: {agreed}"),
        "costs": (costs, partial(figures.costs, costs), f"Seconds: {seconds}"),
    }


def _agreeing(report: Report) -> dict[str, dict[tuple[str, str], float]]:
    """The agreement of metrics that passed a criterion; of all where fewer than two did."""
    passed = {row.metric for row in report.rows if row.verdict == "passed"}
    kept = {
        m: {p: v for p, v in pairs.items() if passed.issuperset(p)} for m, pairs in report.agreement.items()
    }
    return {m: kept[m] if len(figures.names(kept[m])) > 1 else dict(all) for m, all in report.agreement.items()}


def _of_pairs(report: Report) -> dict[str, _Plan]:
    """How far any two metrics agree, a heat map for each measure."""
    return {
        f"agreement-{i}": (
            pairs,
            partial(figures.agreement, pairs),
            f"Heat map: {measure}. The numbers are in the table below.",
        )
        for i, (measure, pairs) in enumerate(_agreeing(report).items())
    }


def _listed(values: Mapping[str, float], form: str) -> str:
    return ", ".join(f"{name} {form.format(value)}" for name, value in values.items())


def _drawn(name: str, draw: Callable[..., "Figure"], label: str) -> _Inline:
    from markupsafe import Markup

    wide, narrow = (
        Markup(inline(draw(width=width), f"{name}-{size}", COLOURS))  # noqa: S704 (its text is escaped)
        for size, width in (("wide", figures.PAGE), ("narrow", figures.COLUMN))
    )
    return _Inline(wide, narrow, label)
