"""R = cos of the angle under M^-1. A vector of length zero is relevant to nothing: R = 0."""

import torch
from torch import Tensor

from precedents.kernel import Kernel


def cosine(kernel: Kernel) -> Tensor:
    """Relevance [m, n], within [-1, 1]."""
    case_sq, train_sq = kernel.squares()
    lengths = case_sq.sqrt() * train_sq.sqrt()
    return torch.where(lengths == 0, 0.0, kernel.cross / lengths).clamp(-1, 1)
