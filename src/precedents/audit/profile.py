"""Profile: what a metric does on a model besides the criteria: whom it selects, and how long those are."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from precedents.criteria._trial import Trial
from precedents.explain.cautions import counted
from precedents.metrics.metric import Metric
from precedents.metrics.ranking import TopK, top_k
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
    """What one metric selects on a model, over all cases: classes, hubs, norms."""

    kernel: str  # features/preconditioner
    label_agreement: float  # the share of the first k precedents that have the predicted class
    firsts: Sequence[First]  # most cases first
    selected: Sequence[float]  # the lengths of the first precedents; empty under an indefinite kernel
    examples: Sequence[Sequence[Offered]]  # for each case that is shown
    work: float  # operations for one case from the start, counted and not measured


def profile(trial: Trial, metric: Metric, k: int, shown: Sequence[int]) -> Profile:
    """Of a metric by its precedents of all cases; `shown` are the cases whose precedents are kept."""
    labels, every = trial.workspace.train.labels, lengths(trial, metric)
    top = top_k([trial.scores(metric)], max(k, min(OFFERED, len(labels))))
    first, found = top.indices[:, 0], labels[top.indices[:, :k]]
    return Profile(
        kernel=kernel_name(metric),
        label_agreement=float((found == trial.cases.labels[:, None]).double().mean()),
        firsts=firsts(first, labels),
        selected=spread(every[first]) if len(every) else [],
        examples=[offered(top, labels, case) for case in shown],
        work=counted_work(Relevance(metric, trial.workspace)),
    )


def firsts(first: Tensor, labels: Tensor) -> list[First]:
    """Whom the cases have as their first precedents [m], most cases first; a hub has many.

    `labels` are those of the training instances [n].
    """
    return [First(i, int(labels[i]), count) for i, count in counted(first.tolist()).items()]


def offered(top: TopK, labels: Tensor, row: int) -> list[Offered]:
    """The precedents of a case that is shown, the case of a row of `top`."""
    indices = top.indices[row, :OFFERED]
    scores = top.scores[row, :OFFERED].nan_to_num()  # JSON has no infinity
    return [
        Offered(*each) for each in zip(indices.tolist(), labels[indices].tolist(), scores.tolist(), strict=True)
    ]


def example_places(trial: Trial, each: int) -> list[int]:
    """The cases that are shown: the first few that are predicted right, and as many that are not."""
    right = trial.cases.labels == trial.truth
    return [i for these in (right, ~right) for i in these.nonzero().flatten().tolist()[:each]]


def lengths(trial: Trial, metric: Metric) -> Tensor:
    """The lengths (norms) of all training instances under the metric's kernel [n]; none if it is indefinite."""
    kernel = trial.kernel(metric)
    return kernel.lengths() if kernel.definite else torch.empty(0)


def norms(trial: Trial, metric: Metric) -> list[float]:
    """The lengths of all training instances in order, as an audit keeps them, see `spread`."""
    return spread(lengths(trial, metric))


def kernel_name(metric: Metric) -> str:
    """What metrics of one kernel share of their textual form."""
    return str(metric).partition(":")[2]


def spread(values: Tensor) -> list[float]:
    """The finite values in order; of many, evenly spaced ones from the smallest to the largest."""
    ordered = values[values.isfinite()].sort().values.tolist()
    if len(ordered) <= MOST:
        return ordered
    return [ordered[i * (len(ordered) - 1) // (MOST - 1)] for i in range(MOST)]


def counted_work(relevance: Relevance) -> float:
    """How many operations one case takes, which is the same on every machine."""
    vectors = relevance.vectors
    cost = relevance.metric.preconditioner.cost(vectors, 1)
    return cost.flops + 2.0 * len(vectors) * vectors.width * (1 + cost.passes)
