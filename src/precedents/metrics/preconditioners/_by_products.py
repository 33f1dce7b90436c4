"""A low rank plus a ridge that is known by inner products alone: what is sparse is never formed."""

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from precedents.gradients.rows import Rows
from precedents.metrics.preconditioners._inverse import Description
from precedents.metrics.preconditioners._structures import LowRank, damped_root, low_rank_description

FORMED_NUMBERS = 2**23  # of rows of U that are formed at a time, where somebody asks for a solution


@dataclass(frozen=True, eq=False)
class LowRankByProducts(LowRank):
    """(ridge I + U^T U)^-1 for rows U [r, d] that are held as their factors."""

    factor: Rows = field(repr=False)  # U
    inner: Tensor = field(repr=False)
    ridge: float
    kind: str

    @classmethod
    def of(cls, factor: Rows, ridge: float, kind: str) -> "LowRankByProducts":
        """From U."""
        return cls(factor, damped_root(factor.products(factor), ridge), ridge, kind)

    @cached_property
    def description(self) -> Description:
        """With the smallest eigenvalue exact, the largest by power iteration."""
        return low_rank_description(self.kind, self.factor.width, self.ridge, self.inner)

    def solve(self, rows: Tensor) -> Tensor:
        """(rows - rows U^T (U U^T + ridge I)^-1 U) / ridge, with some rows of U formed at a time."""
        size = max(1, FORMED_NUMBERS // max(1, self.factor.width))
        places = [(start, start + size) for start in range(0, len(self.factor), size)]
        products = torch.cat([self.factor.between(*place).dense() @ rows.T for place in places])
        inside, seen = torch.cholesky_solve(products, self.inner), torch.zeros_like(rows)
        for start, stop in places:
            seen += inside[start:stop].T @ self.factor.between(start, stop).dense()
        return (rows - seen) / self.ridge

    def held(self, rows: Rows) -> Rows:
        """As factors, in float64."""
        return rows.doubled()

    def products(self, rows: Rows, others: Rows) -> Tensor:
        """Of factors."""
        return rows.products(others)

    def by_factor(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """U times rows, by their factors."""
        return self.factor.products(rows), rows.squares()
