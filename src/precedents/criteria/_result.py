"""Result: one number per case, and what it comes to: mean, interval, chance level and verdict."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import isfinite, nan

import torch
from torch import Tensor

from precedents.criteria._interval import Interval, exact, student, wilson
from precedents.criteria._verdict import (
    RANKS,
    Decision,
    Verdict,
    VerdictRule,
    correlation_by_paper,
    correlation_deserves,
    rate_by_paper,
    rate_deserves,
)
from precedents.errors import InputError
from precedents.seen import boxed

ROUNDING = 1e-9  # by which a value may exceed its bounds


@dataclass(frozen=True, eq=False)
class Result:
    """How one metric did by one criterion: its value for every case and what they come to."""

    criterion: str  # its text, as `identical_class(k=10)`
    values: Tensor = field(repr=False)  # [m], one per case
    low: float  # of the 95% confidence interval of the mean
    high: float
    chance: float  # what a metric that ranks at random would get
    verdict: Verdict
    notes: Mapping[str, float] = field(default_factory=dict)
    between: tuple[Verdict, ...] = ()  # of an undecided one: the verdicts that are open, worst first
    enough: int | None = None  # of an undecided one: how many cases would do; none if a million would not
    paper: Verdict | None = None  # the verdict by the paper's rule; none if it has none
    places: Tensor | None = field(default=None, repr=False)  # [m], of whom the values are; none: of all cases

    @property
    def mean(self) -> float:
        """The mean of the values over the cases."""
        return float(self.values.mean())

    @property
    def std(self) -> float:
        """The standard deviation of the values over the cases."""
        return float(self.values.std(correction=0)) if len(self.values) else nan

    @property
    def noted(self) -> str:
        """The notes as a text, after the reason of what is undecided."""
        told = [self.reason] if self.reason else []
        return ", ".join(told + [f"{name} {value:.3f}" for name, value in self.notes.items()])

    @property
    def reason(self) -> str:
        """Why it is undecided, and how many cases would decide; empty if it is decided."""
        if self.verdict != "undecided":
            return ""
        if self.enough is not None:
            return f"too few cases (about {self.enough} would do)"
        if not len(self.values):
            return "no cases"
        if not isfinite(self.mean + self.chance):
            return "a value is no number"
        return "no number of cases would do (it lies at a threshold or within chance)"

    @property
    def worst(self) -> Verdict:
        """The verdict; of what is undecided, the worst that is open."""
        return (*self.between, "failed")[0] if self.verdict == "undecided" else self.verdict

    def by(self, rule: VerdictRule) -> "Result":
        """With the verdict by a rule, as `_verdict` has them; what has none by the paper's keeps its own."""
        if rule == "paper" and self.paper is not None:
            return replace(self, verdict=self.paper, between=(), enough=None)
        return self

    def __str__(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return (
            f"{self.criterion}: {self.mean:.3f} ± {self.std:.3f} over {len(self.values)} cases, "
            f"95% interval [{self.low:.3f}, {self.high:.3f}], chance {self.chance:.3f}: {self.verdict}{why}"
        )

    def _repr_html_(self) -> str:
        return boxed(str(self))


def rate(criterion: str, successes: Tensor, chance: float, demand: float) -> Result:
    """The result of a criterion whose value is a success rate, with its exact interval and its verdict.

    `criterion` is its text, `successes` are 1 or 0 for each case [m], or shares between; `chance` is what a
    metric that ranks at random would get, `demand` the rate at which a metric passes (`_verdict` has the rule).

    >>> print(rate("often", torch.tensor([1, 1, 0, 1] * 50), chance=0.1, demand=0.95))
    often: 0.750 ± 0.433 over 200 cases, 95% interval [0.684, 0.808], chance 0.100: weak
    >>> rate("often", torch.tensor([1, 1, 0, 1]), chance=0.1, demand=0.95).reason
    'too few cases (about 19 would do)'
    """
    values = _bounded(criterion, successes.double(), (0.0, 1.0))
    count, mean = len(values), float(values.mean())
    if not (isfinite(mean) and isfinite(chance)):
        return Result(criterion, values, 0.0, 1.0, chance, "undecided", between=RANKS)

    def interval(number: int) -> Interval:
        return exact(float(values.sum()) if number == count else mean * number, number)

    decided = Decision.of(interval, count, partial(rate_deserves, chance=chance, demand=demand))
    paper = rate_by_paper(mean, wilson(float(values.sum()), count)[0], chance, demand)
    return _result(criterion, values, interval(count), chance, decided, paper)


def correlation(
    criterion: str, values: Tensor, near: float, fail: float, nulls: Mapping[str, float] | None = None
) -> Result:
    """The result of a criterion whose value is a mean correlation, best at zero, with Student's interval.

    `criterion` is its text, `values` are between -1 and 1, one for each case [m]. A metric passes within `near`
    of zero and fails above `fail` (`_verdict` has the rule). `nulls` are halves of the interval of correlations
    that mean nothing, with their names; what is within the first of them is not told from zero. They are noted.

    >>> print(correlation("likeness", torch.full((40,), 0.3), near=0.1, fail=0.7))
    likeness: 0.300 ± 0.000 over 40 cases, 95% interval [0.185, 0.362], chance 0.000: weak
    """
    values, nulls = _bounded(criterion, values.double(), (-1.0, 1.0)), nulls or {}
    count, mean = len(values), float(values.mean())
    if not isfinite(mean):
        return Result(criterion, values, -1.0, 1.0, 0.0, "undecided", nulls, RANKS)
    largest = max(0.0, 1 - mean * mean) ** 0.5  # that the spread can be: of one case it is not known
    spread = float(values.std(correction=0)) if count > 1 else largest
    decided = Decision.of(
        partial(student, mean, spread),
        count,
        partial(correlation_deserves, near=near, fail=fail),
        next(iter(nulls.values()), 0.0),
    )
    paper = correlation_by_paper(mean, max(nulls.values(), default=near), fail)
    found = _result(criterion, values, student(mean, spread, count), 0.0, decided, paper)
    return replace(found, notes=nulls)


def _result(
    criterion: str, values: Tensor, interval: Interval, chance: float, decided: Decision, paper: Verdict
) -> Result:
    return Result(
        criterion,
        values,
        *interval,
        chance,
        decided.verdict,
        between=decided.between,
        enough=decided.enough,
        paper=paper,
    )


def _bounded(criterion: str, values: Tensor, bounds: Interval) -> Tensor:
    """The values, which lie within the bounds or are no numbers."""
    least, most = bounds
    if (values < least - ROUNDING).any() or (values > most + ROUNDING).any():
        found = f"between {float(values.min()):.4g} and {float(values.max()):.4g}"
        raise InputError(f"The values of {criterion} lie {found}. Give them between {least:g} and {most:g}.")
    return values


def chance_of_all(members: Tensor, n: int, k: int) -> float:
    """The mean chance that k instances drawn without replacement out of n are all among the `members`.

    `members` [m] is how many of the n are right for each case.

    >>> chance_of_all(torch.tensor([5]), n=10, k=1)
    0.5
    """
    chance = torch.ones(len(members), dtype=torch.double)
    for i in range(k):
        chance *= (members - i).clamp(min=0).double() / (n - i)
    return float(chance.mean())
