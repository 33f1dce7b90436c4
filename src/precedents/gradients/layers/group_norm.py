"""GroupNorm: the channels, normalised group by group, are scaled and shifted."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import group_norm as normalised

from precedents.gradients.factors import Dense, Part, trainable
from precedents.gradients.layers._rule import Rule
from precedents.gradients.sites import scaled


def parts(module: nn.GroupNorm, grad: Tensor, x: Tensor) -> Iterator[Part]:
    """Sums over the positions of each channel."""
    back = grad.reshape(*grad.shape[:2], -1)  # [b, c, t]
    if trainable(module.weight):
        normal = normalised(x, module.num_groups, eps=module.eps).reshape(back.shape)
        yield Dense(module.weight, (back * normal).sum(dim=2))
    if trainable(module.bias):
        yield Dense(module.bias, back.sum(dim=2))


def sites(module: nn.GroupNorm, grad: Tensor, x: Tensor) -> Iterator[Part]:
    """Position by position."""
    return scaled(module, grad, normalised(x, module.num_groups, eps=module.eps))


group_norm = Rule(
    (nn.GroupNorm,),
    parts,
    sites=sites,
    example=lambda: (nn.GroupNorm(2, 4), (torch.randn(4, 4, 3),)),
)
