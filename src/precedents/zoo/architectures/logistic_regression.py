"""Logistic regression: one linear layer on the flattened input."""

from math import prod

from torch import nn


def logistic_regression(shape: tuple[int, ...], classes: int) -> nn.Module:
    """For inputs of this shape."""
    return nn.Sequential(nn.Flatten(), nn.Linear(prod(shape), classes))
