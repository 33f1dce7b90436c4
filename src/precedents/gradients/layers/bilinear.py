"""Bilinear: y = x' A x'' + b, with a matrix A for each output, at any number of positions."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from precedents.gradients.factors import Dense, Part, positions, trainable
from precedents.gradients.layers._rule import Rule


def parts(module: nn.Bilinear, grad: Tensor, x: Tensor, y: Tensor) -> Iterator[Part]:
    """The outer products of what came back and of both inputs."""
    back, x, y = positions(grad), positions(x), positions(y)
    if trainable(module.weight):
        pairs = (back[..., None] * x[..., None, :]).flatten(2)  # [b, t, out * in1]
        formed = torch.bmm(pairs.transpose(1, 2), y)
        yield Dense(module.weight, formed.reshape(-1, *module.weight.shape))
    if trainable(module.bias):
        yield Dense(module.bias, back.sum(dim=1))


bilinear = Rule(
    (nn.Bilinear,),
    parts,
    example=lambda: (nn.Bilinear(3, 2, 5), (torch.randn(4, 3), torch.randn(4, 2))),
)
