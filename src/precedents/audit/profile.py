"""Profile: what a metric does on a model besides the criteria: whom it selects, and how long those are."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from precedents.criteria._trial import Trial
from precedents.explain.cautions import counted
from precedents.metrics.metric import Metric
from precedents.metrics.ranking import top_k
from precedents.metrics.relevance import Relevance

MOST = 1000  # lengths that are kept of a set: the smallest, the largest, and evenly many between
OFFERED = 3  # precedents of a case that is shown


@dataclass(frozen=True)
class First:
    """A training instance that is the first precedent of some cases."""

    index: int
    label: int
    count: int


@dataclass(frozen=True)
class Offered:
    """A precedent of a case that is shown."""

    index: int
    label: int
    score: float


@dataclass(frozen=True)
class Profile:
    """What one metric selects."""

    kernel: str  # features/preconditioner
    label_agreement: float  # the share of the first k precedents that have the predicted class
    firsts: Sequence[First]  # most cases first
    selected: Sequence[float]  # the lengths of the first precedents; empty under an indefinite kernel
    examples: Sequence[Sequence[Offered]]  # for each case that is shown
    work: float  # operations for one case from the start, counted and not measured


def profile(trial: Trial, metric: Metric, k: int, shown: Sequence[int]) -> Profile:
    """Of a metric by its precedents of all cases."""
    kernel, labels = trial.kernel(metric), trial.workspace.train.labels
    top = top_k([metric.similarity(kernel)], max(k, min(OFFERED, len(labels))))
    first, found = top.indices[:, 0], labels[top.indices]
    agreement = (found[:, :k] == trial.cases.labels[:, None]).double().mean()
    return Profile(
        kernel=kernel_name(metric),
        label_agreement=float(agreement),
        firsts=[First(i, int(labels[i]), count) for i, count in counted(first.tolist()).items()],
        selected=spread(kernel.lengths()[first]) if kernel.definite else [],
        examples=[
            [
                Offered(*each)
                for each in zip(
                    top.indices[case, :OFFERED].tolist(),
                    found[case, :OFFERED].tolist(),
                    top.scores[case, :OFFERED].nan_to_num().tolist(),  # JSON has no infinity
                    strict=True,
                )
            ]
            for case in shown
        ],
        work=_work(Relevance(metric, trial.workspace)),
    )


def norms(trial: Trial, metric: Metric) -> list[float]:
    """The lengths of all training instances under the metric's kernel; none where it is indefinite."""
    kernel = trial.kernel(metric)
    return spread(kernel.lengths()) if kernel.definite else []


def kernel_name(metric: Metric) -> str:
    """What metrics of one kernel share of their textual form."""
    return str(metric).partition(":")[2]


def spread(values: Tensor) -> list[float]:
    """The finite values in order; of many, evenly spaced ones from the smallest to the largest."""
    ordered = values[values.isfinite()].sort().values.tolist()
    if len(ordered) <= MOST:
        return ordered
    return [ordered[i * (len(ordered) - 1) // (MOST - 1)] for i in range(MOST)]


def _work(relevance: Relevance) -> float:
    vectors = relevance.vectors
    cost = relevance.metric.preconditioner.cost(vectors, 1)
    return cost.flops + 2.0 * len(vectors) * vectors.width * (1 + cost.passes)
