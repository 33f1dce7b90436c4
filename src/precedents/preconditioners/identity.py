"""M = I: vectors are compared as they are."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from precedents.data import Examples
from precedents.engine.rows import joined
from precedents.evidence import Evidence, Features
from precedents.kernel import Kernel
from precedents.preconditioners._inverse import Description, Inverse
from precedents.runtime.cost import Cost
from precedents.runtime.memory import ROOMS


@dataclass(frozen=True)
class Identity:
    """Nothing to fit."""

    space = None  # any features

    def fit(self, evidence: Evidence) -> Inverse:  # noqa: ARG002
        """The identity matrix."""
        return Unchanged()

    def cost(self, evidence: Evidence, m: int) -> Cost:  # noqa: ARG002
        """Nothing."""
        return Cost()


@dataclass(frozen=True)
class Unchanged:
    """I^-1 = I."""

    definite = True
    description = Description(kind="identity")

    def solve(self, rows: Tensor) -> Tensor:
        """The rows themselves."""
        return rows

    def kernels(self, evidence: Evidence, features: Features, cases: Examples) -> Iterator[Kernel]:
        """Plain inner products, in the precision of the features."""
        with ROOMS:
            case = joined(evidence.rows(features, cases), len(cases))
            case_sq = case.squares()
            squares = []
            known = evidence.kept.get(("squares", features))
            for places, rows in evidence.train_rows(features):
                train_sq = rows.squares() if known is None else known[places.start : places.stop]
                squares.append(train_sq)
                cross = case.products(rows)
                del rows  # its memory is free for the next ones
                yield Kernel(cross, case_sq, train_sq)
            evidence.once(("squares", features), lambda: torch.cat(squares))


identity = Identity()
