"""PReLU: max(x, 0) + a min(x, 0), with one a or one for each channel."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from precedents.gradients.factors import Dense, Part
from precedents.gradients.layers._rule import Rule


def parts(module: nn.PReLU, grad: Tensor, x: Tensor) -> Iterator[Part]:
    """Sums of what came back to negative entries: over all of them, or over the positions of a channel."""
    shares = grad * x.clamp(max=0)
    yield Dense(module.weight, shares.reshape(len(x), module.num_parameters, -1).sum(dim=2))


prelu = Rule(
    (nn.PReLU,),
    parts,
    example=lambda: (nn.PReLU(3), (torch.randn(4, 3, 5),)),
)
