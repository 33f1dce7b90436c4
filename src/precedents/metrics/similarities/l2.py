"""R = minus the squared distance under M^-1: zero for equal vectors, negative otherwise."""

from torch import Tensor

from precedents.metrics.kernel import Kernel

PHRASE = "the distance between"


def l2(kernel: Kernel) -> Tensor:
    """Relevance [m, n], at most 0: 2 K - q - t.

    >>> from torch import tensor
    >>> l2(Kernel(tensor([[3.0, -1.0]]), tensor([9.0]), tensor([1.0, 4.0])))
    tensor([[ -4., -15.]])
    """
    case_sq, train_sq = kernel.squares()
    return (2 * kernel.cross - case_sq - train_sq).clamp(max=0)
