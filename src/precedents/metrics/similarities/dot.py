"""R = K: the inner product under M^-1, which large vectors dominate."""

from torch import Tensor

from precedents.metrics.kernel import Kernel


def dot(kernel: Kernel) -> Tensor:
    """Relevance [m, n]."""
    return kernel.cross
