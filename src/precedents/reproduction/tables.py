"""The paper's tables from records: metrics in rows, settings in columns, ours above the published value."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pvariance
from typing import Any

from precedents.criteria._verdict import correlation_by_paper
from precedents.errors import UnknownNameError
from precedents.metrics.names import ALIASES, FORMS
from precedents.reproduction.published import (
    CRITERIA,
    PublishedModel,
    PublishedValue,
    published,
    published_models,
)
from precedents.reproduction.results import RepeatedValue, SettingResults
from precedents.views.table import NONE, Entry, Table, decimal, mean_and_std, signed

TITLES: Mapping[str, str] = {
    "model_randomization": "Model randomization: rank correlation",
    "identical_class": "Identical class: success rate",
    "identical_class(k=10)": "Identical class, top 10: success rate",
    "identical_subclass": "Identical subclass: success rate",
    "identical_subclass(k=10)": "Identical subclass, top 10: success rate",
}
FAIL = 0.7  # the mean correlation in any setting above which the paper's overview says failed
SHORT = {name: alias.upper() for alias, name in ALIASES.items()}


@dataclass(frozen=True)
class ResultCell:
    """Ours beside the published value, as far as there are the two."""

    ours: RepeatedValue | None
    published: PublishedValue | None
    missing: str = ""  # why there is none of ours

    @property
    def difference(self) -> float | None:
        """Ours less the published one."""
        if self.ours is None or self.published is None:
            return None
        return self.ours.mean - self.published.mean


@dataclass(frozen=True)
class SettingColumn:
    """What stands above a setting."""

    setting: str
    repeats: int
    parameters: float | None
    accuracy: RepeatedValue | None
    published: PublishedModel | None


@dataclass(frozen=True)
class CriterionTable:
    """The table of one criterion: metrics by settings."""

    criterion: str
    columns: Sequence[SettingColumn]
    cells: Mapping[tuple[str, str], ResultCell]  # by metric and setting

    @property
    def metrics(self) -> list[str]:
        """The rows."""
        return list(dict.fromkeys(metric for metric, _ in self.cells))

    def grid(self) -> Table:
        """The table in the paper's layout: settings as columns, metrics as rows."""
        rows: list[list[Entry | str]] = [
            ["repeats", *(str(column.repeats) for column in self.columns)],
            ["parameters", *map(_parameters, self.columns)],
            ["test accuracy", *map(_accuracy, self.columns)],
        ]
        rows += [
            [titled(metric), *(_beside(self.cells[metric, c.setting], c.repeats) for c in self.columns)]
            for metric in self.metrics
        ]
        headings = [column.setting.replace("/", "\n") for column in self.columns]
        notes = ["Ours, mean ± std over repeats; below it the published value, and ours less that."]
        reasons = {cell.missing: metric for (metric, _), cell in self.cells.items() if cell.missing}
        notes += [f"{NONE} {metric}: {reason}" for reason, metric in reasons.items()]
        return Table(TITLES[self.criterion], ["metric", *headings], rows, notes)

    def records(self) -> list[dict[str, Any]]:
        """The cells as plain values, one after the other."""
        return [
            {"criterion": self.criterion, "setting": setting, "metric": metric, **plain(cell)}
            for (metric, setting), cell in self.cells.items()
        ]


@dataclass(frozen=True)
class Average:
    """A metric by a criterion over settings: mean, std over settings and repeats, and the largest mean."""

    mean: float
    std: float
    largest: float
    settings: int


@dataclass(frozen=True)
class Overview:
    """Ours over the settings with records; the published over the same settings, and over all."""

    ours: Mapping[tuple[str, str], Average]  # by metric and criterion
    same: Mapping[tuple[str, str], Average]
    all: Mapping[tuple[str, str], Average]

    def grid(self) -> Table:
        """One row for each metric."""
        settings = max((each.settings for each in self.ours.values()), default=0)
        rows: list[list[Entry | str]] = [
            [titled(metric), *self._verdicts(metric), *self._rates(metric)] for metric in FORMS
        ]
        headings = ["metric", "Randomization", "published,\nsame settings", "published,\nall settings"]
        for criterion in RATES:
            headings += [
                TITLES[criterion].partition(":")[0],
                "published,\nsame settings",
                "published,\nall settings",
            ]
        note = (
            f"Ours over {counted(settings, 'setting')}. Randomization: failed if the mean correlation exceeds "
            f"{FAIL} in any setting; the largest one is below. Success rates: mean ± std over settings and "
            "repeats; the published ones are computed from the published tables in the same way."
        )
        return Table("Overview", headings, rows, [note])

    def _verdicts(self, metric: str) -> list[Entry]:
        key = metric, "model_randomization"
        return [_verdict(of[key]) if key in of else Entry(NONE) for of in self._parts.values()]

    def _rates(self, metric: str) -> list[Entry]:
        found = (of.get((metric, criterion)) for criterion in RATES for of in self._parts.values())
        return [Entry(mean_and_std(each.mean, each.std, 3) if each else NONE) for each in found]

    @property
    def _parts(self) -> dict[str, Mapping[tuple[str, str], Average]]:
        return {"ours": self.ours, "published, same settings": self.same, "published": self.all}

    def records(self) -> list[dict[str, Any]]:
        """The averages as plain values."""
        return [
            {"metric": metric, "criterion": criterion, "of": name}
            | {"mean": each.mean, "std": each.std, "largest": each.largest, "settings": each.settings}
            for name, averages in self._parts.items()
            for (metric, criterion), each in averages.items()
        ]


RATES = ("identical_class", "identical_subclass")


def criterion_of(test: str) -> str:
    """A criterion by its name, or by that of the published table."""
    if CRITERIA.get(test, test) not in TITLES:
        raise UnknownNameError("table", test, CRITERIA)
    return CRITERIA.get(test, test)


def table(criterion: str, found: Sequence[SettingResults]) -> CriterionTable:
    """The table of a criterion; metrics that no setting tried and none published are left out."""
    theirs, models = published(), published_models()
    columns = [_column(each, criterion, models.get((criterion, each.setting))) for each in found]
    cells = {
        (metric, each.setting): ResultCell(
            each.outcome(metric, criterion),
            theirs.get((criterion, each.setting, metric)),
            each.missing(metric, criterion),
        )
        for metric in FORMS
        for each in found
    }
    there = {m for (m, _), cell in cells.items() if cell.ours or cell.published or cell.missing}
    return CriterionTable(criterion, columns, {key: cell for key, cell in cells.items() if key[0] in there})


def overview(found: Sequence[SettingResults]) -> Overview:
    """Every metric over the settings that are in the paper, or over all if none is."""
    theirs = published()
    found = of_paper(found) or found
    run = {each.setting for each in found}
    ours: dict[tuple[str, str], Average] = {}
    same: dict[tuple[str, str], Average] = {}
    every: dict[tuple[str, str], Average] = {}
    for metric in FORMS:
        for criterion in ("model_randomization", *RATES):
            key = metric, criterion
            cells = {setting: cell for (c, setting, m), cell in theirs.items() if (m, c) == key}
            outcomes = [each.outcome(metric, criterion) for each in found]
            _add(ours, key, [(o.mean, pvariance(o.values)) for o in outcomes if o])
            _add(same, key, [(cell.mean, cell.std**2) for setting, cell in cells.items() if setting in run])
            _add(every, key, [(cell.mean, cell.std**2) for cell in cells.values()])
    return Overview(ours, same, every)


def of_paper(found: Sequence[SettingResults]) -> list[SettingResults]:
    """Those settings that the paper has numbers of."""
    settings = {setting for _, setting, _ in published()}
    return [each for each in found if each.setting in settings]


def titled(metric: str) -> str:
    """A metric's name, with the paper's abbreviation."""
    return f"{metric} ({SHORT[metric]})" if metric in SHORT else metric


def lined(criterion: str) -> str:
    """`identical_class(k=10)` in three short lines."""
    return criterion.replace("_", "\n").replace("(", "\n(")


def counted(count: int, noun: str) -> str:
    """1 repeat, 2 repeats."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


def plain(cell: ResultCell) -> dict[str, Any]:
    """A cell as plain values; numbers with as many digits as they are worth."""
    ours, theirs = cell.ours, cell.published
    return {
        "mean": rounded(ours and ours.mean),
        "std": rounded(ours and ours.std),
        "repeats": ours.repeats if ours else 0,
        "cases": rounded(ours and ours.cases, 1),
        "chance": rounded(ours and ours.chance),
        "published mean": theirs and theirs.mean,
        "published std": theirs and theirs.std,
        "difference": rounded(cell.difference),
        "missing": cell.missing,
    }


def rounded(value: float | None, digits: int = 4) -> float | None:
    """A number for a file."""
    return None if value is None else round(value, digits) + 0.0


def _add(
    to: dict[tuple[str, str], Average], key: tuple[str, str], parts: Iterable[tuple[float, float]]
) -> None:
    """The average of (mean, variance) pairs, one for each setting; each counts the same."""
    means, variances = [*zip(*parts, strict=True)] or ((), ())
    if means:
        std = (pvariance(means) + fmean(variances)) ** 0.5
        to[key] = Average(fmean(means), std, max(means), len(means))


def _column(found: SettingResults, criterion: str, theirs: PublishedModel | None) -> SettingColumn:
    kind = "merged" if "subclass" in criterion else "trained"
    size = found.model(kind, "parameters")
    counts = [o.repeats for metric in FORMS if (o := found.outcome(metric, criterion))]
    return SettingColumn(
        found.setting, max(counts, default=0), size and size.mean, found.model(kind, "test accuracy"), theirs
    )


def _parameters(column: SettingColumn) -> Entry:
    ours = NONE if column.parameters is None else f"{column.parameters:,.0f}"
    return Entry(ours, (column.published.parameters,) if column.published else ())


def _accuracy(column: SettingColumn) -> Entry:
    return _beside(ResultCell(column.accuracy, column.published.accuracy if column.published else None))


def _beside(cell: ResultCell, repeats: int | None = None) -> Entry:
    """Ours, the published value and the difference; fewer repeats than the column's are named."""
    under = [mean_and_std(cell.published.mean, cell.published.std)] if cell.published else []
    if cell.ours is None:
        return Entry(NONE, tuple(under), why=cell.missing)
    if cell.difference is not None:
        under.append(signed(cell.difference))
    if repeats is not None and cell.ours.repeats != repeats:
        under.append(counted(cell.ours.repeats, "repeat"))
    return Entry(mean_and_std(cell.ours.mean, cell.ours.std), tuple(under))


def _verdict(average: Average) -> Entry:
    verdict = correlation_by_paper(average.largest, null=1.0, fail=FAIL)
    return Entry(verdict, (decimal(average.largest),), verdict)
