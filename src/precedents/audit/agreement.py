"""How far metrics agree: the share of the first k precedents in common, and the rank correlation."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import torch
from torch import Tensor

from precedents.criteria._spearman import doubled_ranks
from precedents.criteria._trial import Trial
from precedents.metrics.metric import Metric
from precedents.metrics.ranking import top_k

VOLUME = 2**23  # scores of all metrics that are held at once


def agreement(trial: Trial, metrics: Mapping[str, Metric], k: int) -> dict[str, dict[tuple[str, str], float]]:
    """By measure (overlap of the first `k`, rank correlation) and pair of metrics, the mean over the cases."""
    m, n, q = len(trial.cases), len(trial.workspace.train), len(metrics)
    size = max(1, VOLUME // max(1, n * q))
    common, correlation = torch.zeros(q, q, dtype=torch.double), torch.zeros(q, q, dtype=torch.double)
    for start in range(0, m, size):
        places = slice(start, min(start + size, m))
        scores = [metric.similarity(trial.kernel(metric).of_cases(places)) for metric in metrics.values()]
        common += _products([_chosen(each, k) for each in scores]) / k
        ranks = [_unit(doubled_ranks(each)) for each in scores]
        unordered = [(each == 0).all(dim=1, keepdim=True).double() for each in ranks]
        correlation += _products(ranks) + _products(unordered)  # two that order nothing agree
    pairs = list(combinations(range(q), 2))
    names = list(metrics)
    return {
        measure: {(names[i], names[j]): float(total[i, j] / m) for i, j in pairs}
        for measure, total in ((f"overlap at {k}", common), ("rank correlation", correlation))
    }


def _products(vectors: Sequence[Tensor]) -> Tensor:
    """Inner products [q, q] of q matrices."""
    rows = torch.stack([each.flatten() for each in vectors])
    return rows @ rows.T


def _chosen(scores: Tensor, k: int) -> Tensor:
    """One for the first k precedents of each case, zero for the others."""
    return torch.zeros_like(scores).scatter(1, top_k([scores], k).indices, 1.0)


def _unit(rows: Tensor) -> Tensor:
    length = rows.norm(dim=1, keepdim=True)
    return torch.where(length > 0, rows / length, 0.0)
