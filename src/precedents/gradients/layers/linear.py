"""Linear: y = x W^T + b, at any number of positions."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from precedents.gradients.factors import Dense, Outer, Part, positions, trainable
from precedents.gradients.layers._rule import Rule
from precedents.gradients.sites import Sites


def parts(module: nn.Linear, grad: Tensor, x: Tensor) -> Sequence[Part]:
    """The outer products of what came back and what was received."""
    weight, bias = module.weight, module.bias
    found: list[Part] = [Outer.over(weight, grad, x)] if weight.requires_grad else []
    if bias is not None and bias.requires_grad:
        found.append(Dense.over(bias, grad))
    return found


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
