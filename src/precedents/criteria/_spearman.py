"""Spearman's rank correlation of score rows, with average ranks for ties."""

import torch
from torch import Tensor

AT_ONCE = 2**20  # scores that are ranked at once


def spearman(first: Tensor, second: Tensor) -> Tensor:
    """The rank correlation [m] of the rows of two score matrices [m, n].

    Ranks are doubled and centred, so they are whole numbers and equal orders correlate at exactly 1.
    A row that ties everything has no order: with another such row it agrees (1), with any other it
    shares nothing (0).

    >>> spearman(torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[10.0, 40.0, 90.0]]))
    tensor([1.], dtype=torch.float64)
    """
    size = max(1, AT_ONCE // max(1, first.shape[1]))
    parts = zip(first.split(size), second.split(size), strict=True)
    return torch.cat([_spearman(one, other) for one, other in parts])


def _spearman(first: Tensor, second: Tensor) -> Tensor:
    """Of a few rows."""
    a, b = doubled_ranks(first), doubled_ranks(second)
    ab, aa, bb = (a * b).sum(dim=1), a.square().sum(dim=1), b.square().sum(dim=1)
    ordered = (aa > 0) & (bb > 0)
    correlation = ab / torch.where(ordered, aa * bb, 1.0).sqrt()
    return torch.where(ordered, correlation, ((aa == 0) & (bb == 0)).double())


def doubled_ranks(scores: Tensor) -> Tensor:
    """Twice the average rank of each entry in its row [m, n], less the mean: whole numbers. NaN is lowest.

    >>> doubled_ranks(torch.tensor([[0.1, 0.3, 0.3]]))
    tensor([[-2.,  1.,  1.]], dtype=torch.float64)
    """
    scores = scores.masked_fill(scores.isnan(), -torch.inf).contiguous()
    ordered = scores.sort(dim=1).values
    below = torch.searchsorted(ordered, scores, right=False)
    not_above = torch.searchsorted(ordered, scores, right=True)
    return (below + not_above - scores.shape[1]).double()
