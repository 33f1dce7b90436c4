"""InstanceNorm: each channel, normalised by its own statistics or the running ones, is scaled and shifted."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import instance_norm as normalised

from precedents.gradients.factors import Dense, Part, trainable
from precedents.gradients.layers._rule import Rule
from precedents.gradients.sites import scaled

InstanceNorm = nn.InstanceNorm1d | nn.InstanceNorm2d | nn.InstanceNorm3d


def parts(module: InstanceNorm, grad: Tensor, x: Tensor) -> Iterator[Part]:
    """Sums over the positions of each channel."""
    back = grad.flatten(2)  # [b, c, t]
    if trainable(module.weight):
        yield Dense(module.weight, (back * _normal(module, x).flatten(2)).sum(dim=2))
    if trainable(module.bias):
        yield Dense(module.bias, back.sum(dim=2))


def sites(module: InstanceNorm, grad: Tensor, x: Tensor) -> Iterator[Part]:
    """Position by position."""
    return scaled(module, grad, _normal(module, x))


def _normal(module: InstanceNorm, x: Tensor) -> Tensor:
    running = module.track_running_stats
    statistics = (module.running_mean, module.running_var) if running else (None, None)
    return normalised(x, *statistics, use_input_stats=not running, eps=module.eps)


def _is_settled(module: InstanceNorm) -> bool:
    """Whether running statistics, if there are any, are used and not learned."""
    return not (module.training and module.track_running_stats)


instance_norm = Rule(
    (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d),
    parts,
    sites=sites,
    applies=_is_settled,
    example=lambda: (nn.InstanceNorm1d(3, affine=True), (torch.randn(4, 3, 5),)),
)
