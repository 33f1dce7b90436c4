"""RMSNorm: the input divided by the root of its mean square is scaled entry by entry."""

from collections.abc import Iterator
from math import prod

import torch
from torch import Tensor, nn
from torch.nn.functional import rms_norm as normalised

from precedents.gradients.factors import Dense, Part
from precedents.gradients.layers._rule import Rule
from precedents.gradients.sites import Sites


def parts(module: nn.RMSNorm, grad: Tensor, x: Tensor) -> Iterator[Part]:
    """Sums over the positions before the normalised axes."""
    shape = list(module.normalized_shape)
    back = grad * normalised(x, shape, eps=module.eps)
    yield Dense(module.weight, back.reshape(len(grad), -1, *shape).sum(dim=1))


def sites(module: nn.RMSNorm, grad: Tensor, x: Tensor) -> Iterator[Part]:
    """Position by position."""
    shape = list(module.normalized_shape)
    before = tuple(grad.shape[1 : grad.ndim - len(shape)])
    back = grad * normalised(x, shape, eps=module.eps)
    yield Sites.at(module.weight, back.reshape(len(grad), prod(before), -1), None, before)


rms_norm = Rule(
    (nn.RMSNorm,),
    parts,
    sites=sites,
    example=lambda: (nn.RMSNorm(3), (torch.randn(4, 5, 3),)),
)
