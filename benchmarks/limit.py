"""The limit: one plain forward and backward pass over all instances, and one matrix product of all gradients.

No method that forms every gradient can be faster: the pass is what training for one epoch costs, and the
product [m, p] x [p, n] has to be made of it.
"""

from time import perf_counter

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

BLOCK = 2**28  # numbers of both matrices held at once: one gigabyte


def pass_seconds(model: nn.Module, x: Tensor, y: Tensor, batch: int) -> float:
    """Seconds for the gradient of the summed cross entropy, by ordinary autograd."""
    model.zero_grad()
    start = perf_counter()
    for inputs, labels in zip(x.split(batch), y.split(batch), strict=True):
        cross_entropy(model(inputs), labels, reduction="sum").backward()
    return perf_counter() - start


def product_seconds(m: int, n: int, p: int) -> float:
    """Seconds for the product of random float32 matrices [m, p] x [p, n]; in blocks of p where it is large.

    So every number is read once, however large the matrices are.
    """
    width = max(1, min(p, BLOCK // (m + n)))
    cases, train = torch.randn(m, width), torch.randn(n, width)
    out = torch.zeros(m, n)
    seconds = 0.0
    for first in range(0, p, width):
        last = min(width, p - first)
        start = perf_counter()
        out.addmm_(cases[:, :last], train[:, :last].T)
        seconds += perf_counter() - start
    return seconds
