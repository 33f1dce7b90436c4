"""R = minus the squared distance under M^-1: zero for equal vectors, negative otherwise."""

from torch import Tensor

from precedents.metrics.kernel import Kernel


def l2(kernel: Kernel) -> Tensor:
    """Relevance [m, n], at most 0."""
    case_sq, train_sq = kernel.squares()
    return (2 * kernel.cross - case_sq - train_sq).clamp(max=0)
