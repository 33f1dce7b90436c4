"""Result: one number per case, and what it comes to: mean, interval, chance level and verdict."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import torch
from torch import Tensor

from precedents.criteria._trial import Trial
from precedents.metrics.metric import Metric

Verdict = Literal["passed", "weak", "failed"]
Z = 1.96  # two-sided 95%


@dataclass(frozen=True, eq=False)
class Result:
    """How one metric did by one criterion."""

    criterion: str
    values: Tensor = field(repr=False)  # [m], one per case
    low: float  # of the 95% confidence interval of the mean
    high: float
    chance: float  # what a metric that ranks at random would get
    verdict: Verdict
    notes: Mapping[str, float] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        """Over the cases."""
        return float(self.values.mean())

    @property
    def std(self) -> float:
        """Over the cases."""
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


class Criterion(Protocol):
    """A frozen value; called with a trial and a metric, it gives the result or raises NotApplicable."""

    def __call__(self, trial: Trial, metric: Metric, /) -> Result:
        """One number per case and its summary."""


def rate(criterion: str, successes: Tensor, chance: float, demand: float) -> Result:
    """A success rate. It passes at `demand`, fails below one half or at chance, and is weak between.

    A rate at `demand` over so few cases that chance is not excluded is weak: they do not decide.
    """
    values = successes.double()
    low, high = wilson(float(values.sum()), len(values))
    mean = float(values.mean())
    verdict: Verdict = "weak"
    if mean >= demand:
        verdict = "passed" if low > chance else "weak"
    elif mean < 0.5 or low <= chance:
        verdict = "failed"
    return Result(criterion, values, low, high, chance, verdict)


def wilson(successes: float, count: int) -> tuple[float, float]:
    """Wilson's 95% interval of a rate."""
    share, z2 = successes / count, Z * Z
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = Z * (share * (1 - share) / count + z2 / (4 * count**2)) ** 0.5 / (1 + z2 / count)
    low = 0.0 if successes == 0 else min(share, middle - half)
    high = 1.0 if successes == count else max(share, middle + half)
    return max(0.0, low), min(1.0, high)


def bootstrap(values: Tensor, draws: int = 2000) -> tuple[float, float]:
    """The 95% interval of the mean by resampling the cases, from a fixed seed of its own."""
    random = torch.Generator().manual_seed(0)
    places = torch.randint(len(values), (draws, len(values)), generator=random)
    low, high = values[places].mean(dim=1).quantile(torch.tensor([0.025, 0.975], dtype=values.dtype)).tolist()
    return low, high


def chance_of_all(members: Tensor, n: int, k: int) -> float:
    """The mean chance that k instances drawn without replacement out of n are all among the `members`."""
    chance = torch.ones(len(members), dtype=torch.double)
    for i in range(k):
        chance *= (members - i).clamp(min=0).double() / (n - i)
    return float(chance.mean())
