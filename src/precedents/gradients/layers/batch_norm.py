"""BatchNorm in eval mode: an affine map with the running statistics."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm as normalised

from precedents.gradients.factors import Dense, Part, trainable
from precedents.gradients.layers._rule import Rule
from precedents.gradients.sites import scaled


def parts(module: nn.BatchNorm2d, grad: Tensor, x: Tensor) -> Iterator[Part]:
    """Sums over the positions of each channel."""
    back, x = grad.reshape(*grad.shape[:2], -1), x.reshape(*x.shape[:2], -1)  # [b, c, t]
    total = back.sum(dim=2)
    if trainable(module.weight):
        assert module.running_mean is not None
        assert module.running_var is not None
        weighed = (x - module.running_mean[:, None]).mul_(back).sum(dim=2)
        yield Dense(module.weight, weighed * (module.running_var + module.eps).rsqrt())
    if trainable(module.bias):
        yield Dense(module.bias, total)


def sites(module: nn.BatchNorm2d, grad: Tensor, x: Tensor) -> Iterator[Part]:
    """Position by position."""
    assert module.running_mean is not None
    assert module.running_var is not None
    normal = normalised(x, module.running_mean, module.running_var, eps=module.eps)
    return scaled(module, grad, normal)


def _is_affine(module: nn.BatchNorm2d) -> bool:
    return not module.training and module.running_mean is not None


batch_norm = Rule(
    (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d),
    parts,
    sites=sites,
    applies=_is_affine,
    example=lambda: (nn.BatchNorm1d(3), (torch.randn(4, 3, 5),)),
)
