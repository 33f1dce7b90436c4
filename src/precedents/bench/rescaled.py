"""The same classifier with other weights: only its gradients differ.

What a normalization divides by grows with the weights before it. Multiplied by a factor, they change no output,
and their gradients are divided by it.
"""

from collections.abc import Iterator
from copy import deepcopy
from itertools import pairwise

import torch
from torch import nn

FACTORS = (2, 4, 8, 16)


def rescaled(model: nn.Module, factor: float) -> nn.Module:
    """A copy whose convolutions before a normalization have weights that are so many times as large."""
    copy = deepcopy(model)
    with torch.no_grad():
        for conv, norm in normalized(copy):
            for values, power in (
                (conv.weight, 1),
                (conv.bias, 1),
                (norm.running_mean, 1),
                (norm.running_var, 2),
            ):
                if values is not None:
                    values *= factor**power
            norm.eps *= factor**2
    return copy


def normalized(model: nn.Module) -> Iterator[tuple[nn.Conv2d, nn.BatchNorm2d]]:
    """Convolutions with the normalization that follows them in a sequence."""
    for sequence in model.modules():
        if isinstance(sequence, nn.Sequential):
            for first, second in pairwise(sequence):
                if isinstance(first, nn.Conv2d) and isinstance(second, nn.BatchNorm2d):
                    yield first, second
