"""R = K: the inner product under M^-1, which large vectors dominate."""

from torch import Tensor

from precedents.metrics.kernel import Kernel

PHRASE = "the inner product of"


def dot(kernel: Kernel) -> Tensor:
    """Relevance [m, n]: K itself.

    >>> from torch import tensor
    >>> dot(Kernel(tensor([[3.0, -1.0]]), tensor([9.0]), tensor([1.0, 4.0])))
    tensor([[ 3., -1.]])
    """
    return kernel.cross
