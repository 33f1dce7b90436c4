"""LayerNorm: the normalised input is scaled and shifted entry by entry."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm as normalised

from precedents.gradients.factors import Dense, Part, trainable
from precedents.gradients.layers._rule import Rule


def parts(module: nn.LayerNorm, grad: Tensor, x: Tensor) -> Iterator[Part]:
    """Sums over the positions before the normalised axes."""
    shape = tuple(module.normalized_shape)
    back = grad.reshape(len(grad), -1, *shape)  # [b, t, *shape]
    if trainable(module.weight):
        yield Dense(module.weight, (back * normalised(x, shape, eps=module.eps).reshape(back.shape)).sum(dim=1))
    if trainable(module.bias):
        yield Dense(module.bias, back.sum(dim=1))


layer_norm = Rule(
    (nn.LayerNorm,),
    parts,
    example=lambda: (nn.LayerNorm(3), (torch.randn(4, 5, 3),)),
)
