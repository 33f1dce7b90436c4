"""The order of the metrics within a column: how far ours is the published one, and why where it is not.

A reason is named when it holds by the records: the variants that are named as causes give the order; or it is
there without a few metrics, whose cells do not agree; or all cells agree, so that the order is within their
spread; or the published column, drawn again within the spread, does not have its own order; or it has no
spread, as of a single run, and a single repeat of ours has its order, or single repeats do not have the order
of our own mean either.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Any, final

import numpy as np

from precedents.reproduction.published import is_rate
from precedents.reproduction.results import RepeatedValue

ORDER = 0.8  # the rank correlation with the published column that is aimed at
DRAWS = 1000  # of a published column
LEFT = 3  # metrics that may be left out, at most, to name them as the reason


@final
@dataclass(frozen=True)
class RankedMetric:
    """A metric in a column."""

    metric: str
    ours: RepeatedValue
    theirs: float
    spread: float  # the combined standard deviation
    reproduced: float  # ours, or the variant's that is named as the cause
    agrees: bool


@dataclass(frozen=True)
class Order:
    """How far a column of ours has the order of the published one; the Fisher rows are left out."""

    setting: str
    criterion: str
    metrics: int
    correlation: float | None
    reproduced: float | None  # with the variants that are named as causes
    moved: Sequence[str]  # the metrics whose rank differs most
    without: tuple[Sequence[str], float] | None = None  # metrics to leave out, and the correlation then
    within: bool = False  # whether every cell agrees
    drawn: float | None = None  # the correlation of the published column with itself, see `_drawn`
    single: tuple[float, float] | None = None  # if the published column is of one run, see `_single`

    @property
    def status(self) -> str:
        """Whether it is as aimed at; differs for a reason; or open."""
        if not self.below:
            return "agrees"
        return "differs" if any(self.reasons) else "open"

    @property
    def below(self) -> bool:
        """Whether it is less than aimed at."""
        return self.correlation is not None and self.correlation < ORDER

    @property
    def reasons(self) -> Iterator[str]:
        """What can be named for it to be less than aimed at."""
        if not self.below:
            return
        if self.reproduced is not None and self.reproduced >= ORDER:
            yield f"{self.reproduced:.2f} with the variants"
        if self.without is not None:
            names, correlation = self.without
            yield f"{correlation:.2f} without {', '.join(names)}"
        if self.within:
            yield "every cell agrees"
        if self.drawn is not None and self.drawn < ORDER:
            yield f"within the spread: published ones drawn again have {self.drawn:.2f}"
        if self.single is not None:
            best, own = self.single
            if best >= ORDER:
                yield f"one run published: one of ours has {best:.2f}"
            elif own < ORDER:
                yield f"one run published: ours have {own:.2f} with our mean"


def order(setting: str, criterion: str, rows: Sequence[RankedMetric], spread: bool) -> Order | None:
    """Of one column. Ours is rounded to two digits first, as the published one is, so that it has such ties.

    `spread` is whether the published column has any.
    """
    if len(rows) < 3:
        return None
    theirs = np.array([row.theirs for row in rows])
    ours = np.array([round(row.ours.mean, 2) for row in rows])
    again = np.array([round(row.reproduced, 2) for row in rows])
    found = spearman(ours, theirs)
    return Order(
        setting,
        criterion,
        len(rows),
        found,
        spearman(again, theirs),
        _moved(rows, ours, theirs),
        _without(rows, ours, theirs),
        all(row.agrees for row in rows),
        _drawn(rows, theirs, criterion) if found is not None and found < ORDER else None,
        None if spread else _single(rows, ours, theirs),
    )


def spearman(first: Sequence[float] | Any, second: Sequence[float] | Any) -> float | None:
    """The rank correlation of two columns; none if one of the two has no order."""
    return _correlations([first], second)[0]


def _correlations(columns: Sequence[Any] | Any, other: Sequence[float] | Any) -> list[float | None]:
    """The rank correlations of several columns with another one; torch is loaded only when there are some."""
    import torch

    from precedents.criteria._spearman import spearman

    rows, row = (torch.tensor(np.asarray(each, dtype=float)) for each in (columns, other))
    found = zip(columns, spearman(rows, row.expand_as(rows)).tolist(), strict=True)
    return [value if len(set(column)) > 1 and len(set(other)) > 1 else None for column, value in found]


def _moved(rows: Sequence[RankedMetric], ours: Any, theirs: Any) -> list[str]:
    """The two metrics whose rank differs most."""
    import torch

    from precedents.criteria._spearman import doubled_ranks

    first, second = doubled_ranks(torch.tensor(np.stack([ours, theirs])))
    shifts = (first - second).abs().tolist()
    most = sorted(range(len(rows)), key=lambda i: -shifts[i])[:2]
    return [rows[i].metric for i in most if shifts[i] > 0]


def _without(rows: Sequence[RankedMetric], ours: Any, theirs: Any) -> tuple[Sequence[str], float] | None:
    """The fewest metrics that do not agree, without which the order is there."""
    other = [i for i, row in enumerate(rows) if not row.agrees]
    for count in range(1, LEFT + 1):
        tried = [
            (spearman(np.delete(ours, left), np.delete(theirs, left)) or 0.0, left)
            for left in map(list, combinations(other, count))
        ]
        best, left = max(tried, key=lambda each: each[0], default=(0.0, []))
        if best >= ORDER:
            return [rows[i].metric for i in left], best
    return None


def _drawn(rows: Sequence[RankedMetric], theirs: Any, criterion: str) -> float:
    """The mean correlation of the published column with draws around it, by the combined deviations."""
    noise = np.random.default_rng(0).standard_normal((DRAWS, len(rows)))
    drawn = np.clip(theirs + noise * [row.spread for row in rows], 0 if is_rate(criterion) else -1, 1).round(2)
    return fmean(found or 0.0 for found in _correlations(drawn, theirs))


def _single(rows: Sequence[RankedMetric], ours: Any, theirs: Any) -> tuple[float, float]:
    """Of our repeats: the highest correlation with the published column, the mean one with our mean column."""
    repeats = [np.round(values, 2) for values in zip(*(row.ours.values for row in rows), strict=False)]
    best, own = ([found or 0.0 for found in _correlations(repeats, other)] for other in (theirs, ours))
    return max(best), fmean(own)
