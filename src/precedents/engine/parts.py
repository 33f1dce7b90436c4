"""Parts: the gradients of one parameter for each of b instances, formed or as the factors they are made of.

Inner products of factored gradients need no forming: that of two outer products is the product of the
inner products of their factors.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

OVERHEAD = 64  # what a factored product costs beside its multiplications, per pair of instances


class Part(Protocol):
    """Gradients of one parameter."""

    @property
    def parameter(self) -> Tensor:
        """The parameter they belong to."""

    def formed(self) -> Tensor:
        """The gradients [b, *shape of the parameter]."""


@dataclass(frozen=True, eq=False)
class Dense:
    """Gradients as they are."""

    parameter: Tensor
    values: Tensor  # [b, *shape]

    def formed(self) -> Tensor:
        """The values."""
        return self.values


@dataclass(frozen=True, eq=False)
class Outer:
    """The gradient of a matrix [o, i] as a sum over positions of outer products."""

    parameter: Tensor  # [o, i], or with more axes of length one
    left: Tensor  # [b, t, o]
    right: Tensor  # [b, t, i]

    @property
    def factoring_pays(self) -> bool:
        """Whether inner products cost fewer operations by factors than by formed gradients."""
        t, o, i = self.left.shape[1], self.left.shape[2], self.right.shape[2]
        return t * t * (o + i) + OVERHEAD < o * i

    def formed(self) -> Tensor:
        """The sums of outer products."""
        return torch.bmm(self.left.transpose(1, 2), self.right).reshape(-1, *self.parameter.shape)

    def products(self, other: "Outer") -> Tensor:
        """Inner products [b, b'] with the gradients of other instances."""
        (a, t), (b, s) = self.left.shape[:2], other.left.shape[:2]
        lefts = self.left.flatten(0, 1) @ other.left.flatten(0, 1).T  # [a t, b s]
        lefts *= self.right.flatten(0, 1) @ other.right.flatten(0, 1).T
        return lefts if t == s == 1 else lefts.reshape(a, t, b, s).sum(dim=(1, 3))

    def squares(self) -> Tensor:
        """Squared lengths [b]."""
        lefts = torch.bmm(self.left, self.left.transpose(1, 2))
        return (lefts * torch.bmm(self.right, self.right.transpose(1, 2))).sum(dim=(1, 2))

    def moved(self, device: str) -> "Outer":
        """With its factors on another device."""
        return Outer(self.parameter, self.left.to(device), self.right.to(device))

    def doubled(self) -> "Outer":
        """With its factors in float64."""
        return Outer(self.parameter, self.left.double(), self.right.double())

    def joined(self, others: "list[Outer]") -> "Outer":
        """With the instances of others after its own."""
        every = [self, *others]
        return Outer(self.parameter, torch.cat([p.left for p in every]), torch.cat([p.right for p in every]))


@dataclass(frozen=True, eq=False)
class Lookup:
    """The gradient of a table [v, e] of which each instance has used a few rows."""

    parameter: Tensor  # [v, e]
    rows: Tensor  # [b, t], int64
    values: Tensor  # [b, t, e]

    def formed(self) -> Tensor:
        """The whole table for each instance; what falls on one row adds up."""
        v, e = self.parameter.shape
        b = len(self.rows)
        table = self.values.new_zeros(b * v, e)
        places = self.rows + v * torch.arange(b, device=self.rows.device)[:, None]
        return table.index_add_(0, places.flatten(), self.values.reshape(-1, e)).reshape(b, v, e)
