"""RMSNorm: the input divided by the root of its mean square is scaled entry by entry."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import rms_norm as normalised

from precedents.gradients.factors import Dense, Part
from precedents.gradients.layers._rule import Rule


def parts(module: nn.RMSNorm, grad: Tensor, x: Tensor) -> Iterator[Part]:
    """Sums over the positions before the normalised axes."""
    shape = list(module.normalized_shape)
    back = grad * normalised(x, shape, eps=module.eps)
    yield Dense(module.weight, back.reshape(len(grad), -1, *shape).sum(dim=1))


rms_norm = Rule(
    (nn.RMSNorm,),
    parts,
    example=lambda: (nn.RMSNorm(3), (torch.randn(4, 5, 3),)),
)
