"""A low rank plus a ridge that is known by inner products alone: what is sparse is never formed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from precedents.gradients.rows import Rows
from precedents.metrics.kernel import Kernel
from precedents.metrics.preconditioners._inverse import Description, Inverse
from precedents.metrics.preconditioners._structures import SEEN, damped_root, low_rank_description
from precedents.metrics.vectors import Holding, Question, Vectors

FORMED_NUMBERS = 2**23  # of rows of U that are formed at a time, where somebody asks for a solution


@dataclass(frozen=True, eq=False)
class LowRankByProducts(Inverse):
    """(ridge I + U^T U)^-1 by the Woodbury identity, for rows U [r, d] that are held as their factors."""

    factor: Rows = field(repr=False)  # U
    inner: Tensor = field(repr=False)  # the Cholesky factor of U U^T + ridge I [r, r]
    ridge: float
    kind: str
    definite = True

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

    def kernels(self, question: Question) -> Iterator[Kernel]:
        """By plain inner products, less those of what U sees of the vectors."""
        case = question.case_rows().doubled()
        case_seen, case_sq = self._seen(case)
        seen = self.seen(question.vectors)
        for (_, rows), (train_seen, train_sq) in zip(question.train_blocks(), seen, strict=True):
            cross = (case.products(rows.doubled()) - case_seen @ train_seen.T) / self.ridge
            yield Kernel(cross, case_sq, train_sq)

    def seen(self, vectors: Vectors) -> Sequence[tuple[Tensor, Tensor]]:
        """What U sees of the training set [b, r], and squared lengths under the inverse [b], block by block."""

        def made() -> list[tuple[Tensor, Tensor]]:
            return [self._seen(rows.doubled()) for _, rows in vectors.blocks()]

        return vectors.workspace.once(SEEN.at(vectors.features, self), made)

    def holdings(self, vectors: Vectors) -> Sequence[Holding[Any]]:
        """The vectors, and what U sees of them."""
        return [vectors.holding, Holding(SEEN.at(vectors.features, self), lambda: self.seen(vectors))]

    def _seen(self, rows: Rows) -> tuple[Tensor, Tensor]:
        seen = torch.linalg.solve_triangular(self.inner, self.factor.products(rows), upper=False).T
        return seen, (rows.squares() - seen.square().sum(dim=1)) / self.ridge
