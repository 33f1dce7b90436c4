"""The paper's figures and ours beyond it, from records: what there is to draw, and how it is read."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, Any

from precedents.metrics.names import FORMS
from precedents.reproduction.published import CRITERIA, is_rate, published
from precedents.reproduction.results import Duration, RepeatedValue, SettingResults
from precedents.reproduction.tables import RATES, TITLES, counted, of_paper, overview, table, titled
from precedents.reproduction.variant_tables import SHARED
from precedents.views import figures, plots
from precedents.views.plots import Bar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER_NULL = 0.088  # that the paper prints for its 500 cases
DAMPED = re.compile(r"(?P<metric>\w+:gradient/\w+)\((?:negative=\w+, )?damping=(?P<damping>[\d.e+-]+)\)")
DAMPING = 1e-3  # of the metrics themselves
RESIDUAL = "cosine:residual"
SUCCESS = [criterion for criterion in TITLES if is_rate(criterion)]


@dataclass(frozen=True)
class Drawing:
    """A figure with the section it belongs to and what to know when reading it."""

    name: str
    section: str
    caption: str
    draw: Callable[[], "Figure"]


def drawings(found: Sequence[SettingResults], spent: Sequence[Duration]) -> list[Drawing]:
    """All figures that there are records for, in the order of reading."""
    made: Iterable[Iterator[Drawing]] = (
        _overview(found),
        _randomization(found),
        _success(found),
        _norms(found),
        _hubs(found),
        _residuals(found),
        _umap(found),
        _stability(found),
        _damping(found),
        _costs(spent),
    )
    return [drawing for drawings in made for drawing in drawings]


def _overview(found: Sequence[SettingResults]) -> Iterator[Drawing]:
    over = overview(found)
    names = {"model_randomization": "largest randomization correlation"}
    values: dict[tuple[str, str], dict[str, float]] = {}
    for (metric, criterion), ours in over.ours.items():
        key = titled(metric), names.get(criterion, TITLES[criterion].partition(":")[0])
        same = over.same.get((metric, criterion))
        pick = "largest" if criterion in names else "mean"
        values[key] = {"ours": getattr(ours, pick)} | ({"published": getattr(same, pick)} if same else {})
    if values:
        caption = (
            "Overview: the largest mean correlation over the settings (above 0.7 the paper says failed), and "
            "the mean success rates over the settings; ours and the published ones over the same settings."
        )
        yield Drawing("overview", "Overview", caption, partial(plots.dots, values))


def _randomization(found: Sequence[SettingResults]) -> Iterator[Drawing]:
    panels = {"own label": "model_randomization", "shared label": SHARED}
    values: dict[tuple[str, str], list[float]] = {}
    theirs, compared = published(), of_paper(found) or found
    for metric in FORMS:
        for heading, criterion in panels.items():
            outcomes = [each.outcome(metric, criterion) for each in compared]
            there = [value for outcome in outcomes if outcome for value in outcome.values]
            if there:
                values[titled(metric), heading] = there
        printed = [theirs.get(("model_randomization", each.setting, metric)) for each in compared]
        if any(printed) and (titled(metric), "own label") in values:
            values[titled(metric), "published"] = [cell.mean for cell in printed if cell]
    if values:
        caption = (
            "Model randomization: the rank correlations by metric over all settings and repeats, each model "
            "explaining its own prediction, or both the trained model's; and the published means over the same "
            "settings. The band is the paper's null interval. Box: middle half; whiskers: 5 to 95%; mark: mean."
        )
        draw = partial(figures.boxes, values, null=PAPER_NULL)
        yield Drawing("randomization", "Model randomization", caption, draw)
    for each in found:
        bars = {
            (titled(metric), heading): [*outcome.values]
            for metric in FORMS
            for heading, criterion in panels.items()
            if (outcome := each.outcome(metric, criterion))
        }
        if bars:
            nulls = [o.nulls for m in FORMS if (o := each.outcome(m, "model_randomization")) and o.nulls]
            null = nulls[0][0] if nulls else None
            caption = (
                f"Model randomization in {each.setting}, over {counted(each.repeats, 'repeat')}. The band is "
                "the null interval over the training instances."
            )
            draw = partial(figures.boxes, bars, null=null)
            yield Drawing(f"randomization-{_file(each)}", "Model randomization", caption, draw)


def _success(found: Sequence[SettingResults]) -> Iterator[Drawing]:
    tables = {criterion: table(criterion, found) for criterion in SUCCESS}
    for each in found:
        values = {}
        for metric in FORMS:
            for criterion, made in tables.items():
                cell = made.cells.get((metric, each.setting))
                if cell and (cell.ours or cell.published):
                    ours, theirs = cell.ours, cell.published
                    values[titled(metric), criterion] = Bar(
                        ours and ours.mean, ours and ours.std, theirs and theirs.mean, ours and ours.chance
                    )
        if any(bar.value is not None for bar in values.values()):
            over = counted(each.repeats, "repeat")
            caption = f"Success rates in {each.setting}: over {over}, as published, and by chance."
            yield Drawing(f"success-{_file(each)}", "Success rates", caption, partial(plots.bars, values))


def _norms(found: Sequence[SettingResults]) -> Iterator[Drawing]:
    for each in found:
        values: dict[tuple[str, str], Sequence[float]] = {}
        for [first, *_] in each.under("norms").values():
            for metric, chosen in first["chosen"].items():
                values["all", titled(metric)] = first["all"]
                values["chosen first", titled(metric)] = chosen
        if values:
            caption = (
                f"Norms in {each.setting}: of all training instances, and of those that a metric chose first "
                "for the cases, under the metric's own preconditioner. Thin: from the least to the largest; "
                "thick: the middle half; mark: the median."
            )
            draw = partial(plots.strips, values, "norm", powers=True)
            yield Drawing(f"norms-{_file(each)}", "Norms of the chosen instances", caption, draw)


def _hubs(found: Sequence[SettingResults]) -> Iterator[Drawing]:
    for each in found:
        cases = each.model("trained", "cases")
        values = {
            titled(metric): [times / cases.mean for _, times, *_ in first]
            for metric, [first, *_] in each.under("hubs").items()
            if cases and cases.mean
        }
        if values:
            caption = (
                f"The five training instances that are chosen most often in {each.setting}, as shares of the "
                "cases. A metric whose few hubs answer most cases explains all of them alike."
            )
            name = f"hubs-{_file(each)}"
            yield Drawing(name, "Most often chosen instances", caption, partial(figures.hubs, values))


def _residuals(found: Sequence[SettingResults]) -> Iterator[Drawing]:
    for each in found:
        values: dict[tuple[str, str], Sequence[float]] = {}
        for kind, heading in (("trained", "classes"), ("merged", "subclasses, merged classes")):
            for first in each.of("residuals", kind)[:1]:
                for pair in ("same", "other"):
                    values[f"residuals, {pair}", heading] = first[pair]["residual"]
                    values[f"GC, {pair}", heading] = first[pair]["gradient"]
        if values:
            caption = (
                f"Cosines of residuals and of gradients in {each.setting}, over pairs of instances of the same "
                "class and of others (left), and of the same subclass and of others when classes are merged "
                "(right)."
            )
            draw = partial(plots.strips, values, "cosine")
            yield Drawing(f"residuals-{_file(each)}", "Residuals", caption, draw)
    bars = {
        (setting.setting, f"{name}: {criterion}"): Bar(
            outcome.mean, outcome.std, None, _known(outcome, criterion)
        )
        for criterion in RATES
        for name, metric in (("residuals", RESIDUAL), ("GC", "cos_grad"))
        for setting in found
        if setting.outcome(RESIDUAL, criterion) and (outcome := setting.outcome(metric, criterion))
    }
    if bars:
        caption = (
            "Residuals alone, as a metric, beside GC and chance. The paper's claim: the residuals carry the "
            "class, but are at chance for the subclass; what GC knows of subclasses comes from the features. "
            "Chance of the subclass is here that of someone who knows which of the two classes it is in."
        )
        yield Drawing("residuals", "Residuals", caption, partial(plots.bars, bars))


def _known(outcome: RepeatedValue, criterion: str) -> float | None:
    """Chance for someone who knows the class that the model was trained on: half of all, if merged."""
    known = 2 if criterion == "identical_subclass" else 1
    return None if outcome.chance is None else min(known * outcome.chance, 1.0)


def _umap(found: Sequence[SettingResults]) -> Iterator[Drawing]:
    panels = {}
    for each in found:
        for first in filter(None, each.of("umap")[:1]):
            subclass, superclass = ([str(name) for name in first[k]] for k in ("subclass", "superclass"))
            panels[each.setting] = first["xy"], subclass, superclass
    if panels:
        caption = (
            "All hidden layers of models that were trained on merged classes, by UMAP. Colours and names: the "
            "subclass, which the model never saw; shapes: the class that it was trained on."
        )
        yield Drawing("umap", "Merged classes", caption, partial(plots.scatters, panels))


def _stability(found: Sequence[SettingResults]) -> Iterator[Drawing]:
    headings = {"overlap": "overlap of the top 10", "correlation": "rank correlation"}
    values: dict[tuple[str, str], dict[str, float]] = {}
    for metric in _metrics("stability", found):
        for key, heading in headings.items():
            values[titled(metric), heading] = {
                each.setting: fmean(value[key] for value in there)
                for each in found
                if (there := each.under("stability").get(metric))
            }
    if values:
        caption = (
            "Stability: two models trained on the same data from different seeds. The share of the ten most "
            "relevant training instances that they have in common, and the rank correlation of all of them."
        )
        yield Drawing("stability", "Stability", caption, partial(plots.dots, values))


def _damping(found: Sequence[SettingResults]) -> Iterator[Drawing]:
    """The success rates of metrics by the damping of their variants."""
    names = {re.sub(r"\(.*", "", form): name for name, form in FORMS.items()}
    theirs = published()
    for criterion in SUCCESS:
        panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
        levels: dict[str, dict[str, float]] = {}
        for each in found:
            for form in each.tried(criterion):
                damped = DAMPED.fullmatch(form)
                metric = names.get(damped["metric"]) if damped else None
                outcome = each.outcome(form, criterion)
                if damped is None or metric is None or outcome is None:
                    continue
                line = panels.setdefault(titled(metric), {}).setdefault(each.setting, [])
                if not line and (own := each.outcome(metric, criterion)):
                    line.append((DAMPING, own.mean))
                line.append((float(damped["damping"]), outcome.mean))
                if cell := theirs.get((criterion, each.setting, metric)):
                    levels.setdefault(titled(metric), {})[each.setting] = cell.mean
        ordered = {name: {s: sorted(points) for s, points in lines.items()} for name, lines in panels.items()}
        if ordered:
            caption = (
                "Damping of the inverse matrix, relative to the mean of its diagonal, which is "
                f"{DAMPING:g} in the tables. {TITLES[criterion]}. Dotted: the published value of the setting "
                "with the same colour."
            )
            name = f"damping-{re.sub(r'[^a-z0-9]+', '-', criterion).strip('-')}"
            draw = partial(plots.curves, ordered, "damping", levels=levels)
            yield Drawing(name, "Damping", caption, draw)


def _costs(spent: Sequence[Duration]) -> Iterator[Drawing]:
    """Outcomes by all criteria together, alternatives not counted."""
    criteria = {*CRITERIA.values(), "identical_instance", SHARED}
    sums: dict[tuple[str, str], dict[int, float]] = {}
    for each in spent:
        if each.piece[0] == "outcome" and each.piece[1] in FORMS and each.piece[2] in criteria:
            repeats = sums.setdefault((each.piece[1], each.setting), {})
            repeats[each.repeat] = repeats.get(each.repeat, 0.0) + each.seconds
    values = {
        (titled(metric), "seconds"): {s: fmean(sums[m, s].values()) for m, s in sums if m == metric}
        for metric in FORMS
        if any(metric == m for m, _ in sums)
    }
    if values:
        caption = (
            "Seconds for a metric by all criteria, on average over the repeats; what several metrics share, "
            "and the training of the models, counts where it was first needed."
        )
        yield Drawing("costs", "Cost", caption, partial(plots.dots, values, "seconds", log=True))


def _metrics(kind: str, found: Sequence[SettingResults]) -> list[str]:
    there: dict[str, Any] = {name: None for each in found for name in each.under(kind)}
    return sorted(there, key=lambda name: [*FORMS, name].index(name))


def _file(found: SettingResults) -> str:
    """A setting as a part of a file's name."""
    return re.sub(r"[^\w.-]+", "-", found.setting)
