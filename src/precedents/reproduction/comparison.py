"""Ours against the published numbers: each cell agrees, differs with a named cause, or is open.

A difference is measured in combined standard deviations, sqrt(s1^2 + s2^2 + r^2): s1 of ours and s2 of the
published repeats, r of the rounding to two printed digits. Neither s is taken to be smaller than r, nor, for a
success rate, than the spread of a rate over that many cases; and a standard deviation over fewer than five
repeats is not taken to be smaller than the published one. Where every standard deviation of a published column
is 0.00, which ten repeats cannot give, ours stand in for them. Up to two combined standard deviations agree.

A cause is named when a variant of the metric or the criterion, recorded from the same models or from ones that
differ in one choice, agrees with the published value where ours does not.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import hypot
from typing import Any, final

from precedents.metrics.names import FORMS
from precedents.registry import Call
from precedents.reproduction.published import CRITERIA, PublishedValue, is_rate, published, without_spread
from precedents.reproduction.rank_agreement import Order, RankedMetric, order
from precedents.reproduction.results import RepeatedValue, SettingResults
from precedents.reproduction.tables import ResultCell, of_paper, plain, rounded

LIMIT = 2.0  # combined standard deviations
FEW = 5  # repeats, below which their standard deviation says little
CASES = 500  # of the published numbers
ROUNDING = 0.005 / 3**0.5  # the standard deviation of what two digits round off
CLOSE = 0.03  # the difference of GC's identical class that is aimed at
FAMILY = {"ekfac": "hessian", "lanczos": "hessian"}  # other ways to the same matrix
STATUSES = ("agrees", "differs", "open", "missing")
VERDICTS = {"agrees": "passed", "differs": "weak", "open": "failed"}  # the colours of statuses
RANK_ONE = {"kind=published": "code's", "kind=mean_gradient": "exact"}  # the published code's Fisher matrix


@final
@dataclass(frozen=True)
class Variant:
    """A metric by a criterion, one of which is not as in the table."""

    metric: str
    criterion: str
    found: RepeatedValue
    deviations: float

    @property
    def agrees(self) -> bool:
        """Whether it reproduces the published value."""
        return abs(self.deviations) <= LIMIT


@dataclass(frozen=True)
class Compared:
    """A published cell, ours, and what became of it."""

    setting: str
    criterion: str
    metric: str
    cell: ResultCell
    deviations: float | None
    variants: Sequence[Variant]

    @property
    def cause(self) -> Variant | None:
        """The nearest variant that reproduces the published value, where ours does not."""
        if self.deviations is None or abs(self.deviations) <= LIMIT:
            return None
        return min((v for v in self.variants if v.agrees), key=lambda v: abs(v.deviations), default=None)

    @property
    def status(self) -> str:
        """agrees, differs (with a named cause), open, or missing (ours is)."""
        if self.deviations is None:
            return "missing"
        if abs(self.deviations) <= LIMIT:
            return "agrees"
        return "differs" if self.cause else "open"

    def under(self, *choices: str) -> float | None:
        """Ours by one of these choices, if recorded; else by the cause, if one is named; else ours."""
        made = (v.found for v in self.variants if self.choice(v) in choices)
        found = next(made, self.cause.found if self.cause else self.cell.ours)
        return found and found.mean

    def choice(self, variant: Variant) -> str:
        """What a variant has otherwise that others in the column may have too: a criterion or a damping."""
        return variant.criterion if variant.metric == self.metric else _damping(variant.metric)

    def named(self, variant: Variant) -> str:
        """What of the variant is other than in the table."""
        return variant.metric if variant.metric != self.metric else variant.criterion

    def record(self) -> dict[str, Any]:
        """As plain values."""
        cause = self.cause
        return {
            "criterion": self.criterion,
            "setting": self.setting,
            "metric": self.metric,
            **plain(self.cell),
            "deviations": rounded(self.deviations, 2),
            "status": self.status,
            "cause": self.named(cause) if cause else "",
            "cause mean": rounded(cause and cause.found.mean),
            "cause std": rounded(cause and cause.found.std),
            "cause deviations": rounded(cause and cause.deviations, 2),
        }


@dataclass(frozen=True)
class Comparison:
    """All settings with records."""

    cells: Sequence[Compared]
    orders: Sequence[Order]
    without: Sequence[SettingResults]  # settings that have no published numbers

    def counts(self, **of: str) -> dict[str, int]:
        """How many cells have each status, of all or of those with the given setting, criterion or metric."""
        chosen = [each for each in self.cells if all(getattr(each, k) == v for k, v in of.items())]
        return {status: sum(each.status == status for each in chosen) for status in STATUSES}

    def closeness(self) -> dict[str, Compared]:
        """GC's identical class by setting."""
        return {
            each.setting: each
            for each in self.cells
            if (each.metric, each.criterion) == ("cos_grad", "identical_class") and each.cell.ours
        }

    def scores(self) -> dict[tuple[str, str, str], tuple[int, int]]:
        """By metric, variant and kind of criterion: how many published cells it gives, of how many.

        A variant that differs in its criterion is beside it. The metric itself counts as its own variant.
        """
        found: dict[tuple[str, str, str], tuple[int, int]] = {}
        for each in self.cells:
            if each.cell.ours is None or each.deviations is None or not each.variants:
                continue
            tried = [("as in the tables", abs(each.deviations) <= LIMIT)]
            tried += [(each.named(variant), variant.agrees) for variant in each.variants]
            for name, agrees in tried:
                kind = "success rates" if is_rate(each.criterion) else "randomization"
                right, of = found.get((each.metric, name, kind), (0, 0))
                found[each.metric, name, kind] = right + agrees, of + 1
        return found


def compare(found: Sequence[SettingResults]) -> Comparison:
    """Every published cell of the settings that have records."""
    theirs = published()
    known, flat = of_paper(found), without_spread()
    cells = [
        _compared(each, criterion, metric, cell, (criterion, setting) not in flat)
        for each in known
        for (criterion, setting, metric), cell in theirs.items()
        if setting == each.setting
    ]
    columns = [(criterion, each.setting) for each in known for criterion in CRITERIA.values()]
    orders = [
        _order([c for c in cells if (c.criterion, c.setting) == column], column not in flat)
        for column in columns
    ]
    return Comparison(cells, [each for each in orders if each], [each for each in found if each not in known])


def deviations(ours: RepeatedValue, theirs: PublishedValue, rate: bool, spread: bool = True) -> float:
    """The difference in combined standard deviations; without `spread`, theirs is unknown."""
    return (ours.mean - theirs.mean) / combined(ours, theirs, rate, spread)


def combined(ours: RepeatedValue, theirs: PublishedValue, rate: bool, spread: bool = True) -> float:
    """The combined standard deviation, see above."""
    own = ours.std or 0.0
    first = own if ours.repeats >= FEW else max(own, theirs.std)
    second = theirs.std if spread else max(own, theirs.std)
    floors = [ROUNDING, ROUNDING]
    if rate:
        cases = ours.cases or CASES
        floors = [max(ROUNDING, _sampling(ours.mean, cases)), max(ROUNDING, _sampling(theirs.mean, CASES))]
    return hypot(max(first, floors[0]), max(second, floors[1]), ROUNDING)


def variants(found: SettingResults, metric: str, criterion: str) -> Iterator[tuple[str, str]]:
    """Recorded pairs of a metric and a criterion, one of which differs from the given one in settings."""
    for name in found.tried(criterion):
        if name != metric and _parts(FORMS[metric]) == _parts(FORMS.get(name, name)):
            yield name, criterion
    for other in found.criteria():
        if other != criterion and _kin(criterion, other) and metric in found.tried(other):
            yield metric, other


def _compared(
    found: SettingResults, criterion: str, metric: str, theirs: PublishedValue, spread: bool
) -> Compared:
    measured = partial(deviations, theirs=theirs, rate=is_rate(criterion), spread=spread)
    ours = found.outcome(metric, criterion)
    cell = ResultCell(ours, theirs, found.missing(metric, criterion))
    others = [
        Variant(name, other, estimate, measured(estimate))
        for name, other in variants(found, metric, criterion)
        if (estimate := found.outcome(name, other))
    ]
    return Compared(found.setting, criterion, metric, cell, ours and measured(ours), others)


def _order(cells: Sequence[Compared], spread: bool) -> Order | None:
    """Of one column, without the Fisher rows. What is chosen most often is chosen in the whole column."""
    cells = [c for c in cells if "fisher" not in c.metric]
    causes = [(c, c.cause) for c in cells if c.cause]
    named = Counter(c.choice(cause) for c, cause in causes if cause.metric == c.metric).most_common(1)
    named += Counter(c.choice(cause) for c, cause in causes if cause.metric != c.metric).most_common(1)
    rows = [
        RankedMetric(
            c.metric,
            c.cell.ours,
            c.cell.published.mean,
            combined(c.cell.ours, c.cell.published, is_rate(c.criterion), spread),
            c.under(*(choice for choice, _ in named)) or 0.0,
            c.status == "agrees",
        )
        for c in cells
        if c.cell.ours and c.cell.published
    ]
    return order(cells[0].setting, cells[0].criterion, rows, spread) if cells else None


def _sampling(rate: float, cases: float) -> float:
    """The standard deviation of a rate over so many cases, one success and one failure added."""
    share = (rate * cases + 1) / (cases + 2)
    return (share * (1 - share) / cases) ** 0.5


def _parts(form: str) -> tuple[str, ...]:
    """Similarity, features and preconditioner without their settings."""
    similarity, features, preconditioner = (*re.split("[:/]", re.sub(r"\(.*?\)", "", form)), "")[:3]
    return similarity, features, FAMILY.get(preconditioner, preconditioner)


def _damping(form: str) -> str:
    """As it is written."""
    found = re.search(r"damping=[^,)]*", form)
    return found[0] if found else ""


def _kin(criterion: str, other: str) -> bool:
    """The same criterion with the same k."""
    one, another = (Call.read(text) or Call(text) for text in (criterion, other))
    return one.name == another.name and one.settings.get("k") == another.settings.get("k")
