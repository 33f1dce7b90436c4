"""Result: one number per case, and what it comes to: mean, interval, chance level and verdict."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from precedents.criteria._verdict import Verdict, of_rate

Z = 1.96  # two-sided 95%


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

    @property
    def mean(self) -> float:
        """The mean of the values over the cases."""
        return float(self.values.mean())

    @property
    def std(self) -> float:
        """The standard deviation of the values over the cases."""
        return float(self.values.std(correction=0))

    @property
    def noted(self) -> str:
        """The notes as a text."""
        return ", ".join(f"{name} {value:.3f}" for name, value in self.notes.items())

    def __str__(self) -> str:
        return (
            f"{self.criterion}: {self.mean:.3f} ± {self.std:.3f} over {len(self.values)} cases, "
            f"95% interval [{self.low:.3f}, {self.high:.3f}], chance {self.chance:.3f}: {self.verdict}"
        )


def rate(criterion: str, successes: Tensor, chance: float, demand: float) -> Result:
    """The result of a criterion whose value is a success rate, with Wilson's interval and its verdict.

    `criterion` is its text, `successes` are 1 or 0 for each case [m], or shares between; `chance` is what a
    metric that ranks at random would get, `demand` the rate at which a metric passes (`_verdict` has the rule).

    >>> print(rate("three_of_four", torch.tensor([1, 1, 0, 1]), chance=0.1, demand=0.95))
    three_of_four: 0.750 ± 0.433 over 4 cases, 95% interval [0.301, 0.954], chance 0.100: weak
    """
    values = successes.double()
    low, high = wilson(float(values.sum()), len(values))
    verdict = of_rate(float(values.mean()), low, chance, demand)
    return Result(criterion, values, low, high, chance, verdict)


def wilson(successes: float, count: int) -> tuple[float, float]:
    """Wilson's 95% interval of a rate of `successes` in `count`.

    >>> [round(end, 3) for end in wilson(8, 10)]
    [0.49, 0.943]
    """
    share, z2 = successes / count, Z * Z
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = Z * (share * (1 - share) / count + z2 / (4 * count**2)) ** 0.5 / (1 + z2 / count)
    low = 0.0 if successes == 0 else min(share, middle - half)
    high = 1.0 if successes == count else max(share, middle + half)
    return max(0.0, low), min(1.0, high)


def bootstrap(values: Tensor, draws: int = 2000) -> tuple[float, float]:
    """The 95% interval of the mean of `values` [m] by resampling them `draws` times, from a fixed seed."""
    random = torch.Generator().manual_seed(0)
    places = torch.randint(len(values), (draws, len(values)), generator=random)
    low, high = values[places].mean(dim=1).quantile(torch.tensor([0.025, 0.975], dtype=values.dtype)).tolist()
    return low, high


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
