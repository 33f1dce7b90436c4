"""Linear: y = x W^T + b, at any number of positions."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from precedents.gradients.factors import Dense, Outer, Part, positions, trainable
from precedents.gradients.layers._rule import Rule


def parts(module: nn.Linear, grad: Tensor, x: Tensor) -> Iterator[Part]:
    """The outer products of what came back and what was received."""
    back = positions(grad)
    if trainable(module.weight):
        yield Outer(module.weight, back, positions(x))
    if trainable(module.bias):
        yield Dense(module.bias, back.sum(dim=1))


linear = Rule(
    (nn.Linear,),
    parts,
    example=lambda: (nn.Linear(3, 5), (torch.randn(4, 3),)),
)
