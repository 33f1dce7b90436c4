"""Linear: y = x W^T + b, at any number of positions."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from precedents.gradients.factors import Dense, Outer, Part, positions, trainable
from precedents.gradients.layers._rule import Rule
from precedents.gradients.sites import Sites


def parts(module: nn.Linear, grad: Tensor, x: Tensor) -> Iterator[Part]:
    """The outer products of what came back and what was received."""
    back = positions(grad)
    if trainable(module.weight):
        yield Outer(module.weight, back, positions(x))
    if trainable(module.bias):
        yield Dense(module.bias, back.sum(dim=1))


def sites(module: nn.Linear, grad: Tensor, x: Tensor) -> Iterator[Part]:
    """Position by position."""
    shape = tuple(grad.shape[1:-1])
    if trainable(module.weight):
        yield Sites.at(module.weight, positions(grad), positions(x), shape)
    if trainable(module.bias):
        yield Sites.at(module.bias, positions(grad), None, shape)


linear = Rule(
    (nn.Linear,),
    parts,
    sites=sites,
    example=lambda: (nn.Linear(3, 5), (torch.randn(4, 3),)),
)
