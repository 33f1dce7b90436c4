"""Conv1D of transformers, in GPT and GPT-2: y = x W + b, a linear layer that stores its weight transposed."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from precedents.gradients.factors import Dense, Outer, Part, positions, trainable
from precedents.gradients.layers._rule import Rule
from precedents.gradients.sites import Sites


def parts(module: Any, grad: Tensor, x: Tensor) -> Iterator[Part]:
    """The outer products of what was received and what came back."""
    back = positions(grad)
    if trainable(module.weight):
        yield Outer(module.weight, positions(x), back)
    if trainable(module.bias):
        yield Dense(module.bias, back.sum(dim=1))


def sites(module: Any, grad: Tensor, x: Tensor) -> Iterator[Part]:
    """Position by position."""
    shape = tuple(grad.shape[1:-1])
    if trainable(module.weight):
        yield Sites.at(module.weight, positions(x), positions(grad), shape)
    if trainable(module.bias):
        yield Sites.at(module.bias, positions(grad), None, shape)


def example() -> tuple[nn.Module, tuple[Tensor, ...]]:
    """A small one."""
    from transformers import pytorch_utils

    made: Any = pytorch_utils.Conv1D
    return made(5, 3), (torch.randn(4, 2, 3),)


conv1d = Rule(("transformers.pytorch_utils.Conv1D",), parts, sites=sites, example=example)
