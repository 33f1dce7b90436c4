"""LayerNorm: the normalised input is scaled and shifted entry by entry."""

from collections.abc import Iterator
from math import prod

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm as normalised

from precedents.gradients.factors import Dense, Part, trainable
from precedents.gradients.layers._rule import Rule
from precedents.gradients.sites import Sites


def parts(module: nn.LayerNorm, grad: Tensor, x: Tensor) -> Iterator[Part]:
    """Sums over the positions before the normalised axes."""
    shape = tuple(module.normalized_shape)
    back = grad.reshape(len(grad), -1, *shape)  # [b, t, *shape]
    if trainable(module.weight):
        yield Dense(module.weight, (back * normalised(x, shape, eps=module.eps).reshape(back.shape)).sum(dim=1))
    if trainable(module.bias):
        yield Dense(module.bias, back.sum(dim=1))


def sites(module: nn.LayerNorm, grad: Tensor, x: Tensor) -> Iterator[Part]:
    """Position by position."""
    shape = tuple(module.normalized_shape)
    before = tuple(grad.shape[1 : grad.ndim - len(shape)])
    back = grad.reshape(len(grad), prod(before), -1)
    if trainable(module.weight):
        normal = normalised(x, shape, eps=module.eps).reshape(back.shape)
        yield Sites.at(module.weight, back * normal, None, before)
    if trainable(module.bias):
        yield Sites.at(module.bias, back, None, before)


layer_norm = Rule(
    (nn.LayerNorm,),
    parts,
    sites=sites,
    example=lambda: (nn.LayerNorm(3), (torch.randn(4, 5, 3),)),
)
