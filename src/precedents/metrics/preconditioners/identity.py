"""M = I: vectors are compared as they are."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from precedents.metrics.kernel import Kernel
from precedents.metrics.preconditioners._inverse import Description, Inverse, Preconditioner
from precedents.metrics.vectors import SQUARES, Question, Vectors
from precedents.runtime.buffers import BUFFERS
from precedents.runtime.cost import Cost

NOTHING = Cost()


@dataclass(frozen=True)
class Identity(Preconditioner):
    """M = I: nothing to fit.

    >>> import torch, precedents as pr
    >>> train = torch.eye(4), torch.tensor([0, 1, 0, 1])
    >>> fitted = pr.metric("cosine:gradient").fit(torch.nn.Linear(4, 2), train)
    >>> print(fitted.inverse.description)  # doctest: +ELLIPSIS
    identity
    """

    def fit(self, vectors: Vectors) -> Inverse:  # noqa: ARG002
        """The identity matrix."""
        return Unchanged()

    def cost(self, vectors: Vectors, m: int) -> Cost:  # noqa: ARG002
        """Nothing."""
        return NOTHING


@dataclass(frozen=True)
class Unchanged(Inverse):
    """I^-1 = I."""

    definite = True
    description = Description(kind="identity")

    def solve(self, rows: Tensor) -> Tensor:
        """The rows themselves."""
        return rows

    def kernels(self, question: Question) -> Iterator[Kernel]:
        """Plain inner products, in the precision of the features."""
        cache, slot = question.vectors.workspace.cache, SQUARES.at(question.vectors.features)
        with BUFFERS.free:
            case = question.case_rows()
            case_sq = case.squares()
            squares, known = [], cache.get(slot)
            for places, rows in question.train_blocks():
                cross = case.products(rows)  # which may find the lengths on its way
                train_sq = rows.squares() if known is None else known[places.start : places.stop]
                squares.append(train_sq)
                del rows  # its memory is free for the next ones
                yield Kernel(cross, case_sq, train_sq)
            cache.once(slot, lambda: torch.cat(squares))


identity = Identity()
