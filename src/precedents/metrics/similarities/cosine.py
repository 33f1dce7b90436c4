"""R = cos of the angle under M^-1. A vector of length zero is relevant to nothing: R = 0."""

import torch
from torch import Tensor

from precedents.metrics.kernel import Kernel

PHRASE = "the angle between"


def cosine(kernel: Kernel) -> Tensor:
    """Relevance [m, n], within [-1, 1]: K / sqrt(q t).

    >>> cosine(Kernel(torch.tensor([[3.0, 0.0]]), torch.tensor([9.0]), torch.tensor([1.0, 4.0])))
    tensor([[1., 0.]])
    """
    case_sq, train_sq = kernel.squares()
    return (kernel.cross * _inverse(case_sq)).mul_(_inverse(train_sq)).clamp_(-1, 1)


def _inverse(squares: Tensor) -> Tensor:
    """One over the lengths, and zero for none."""
    lengths = squares.sqrt()
    return torch.where(lengths == 0, 0.0, 1 / lengths)
