"""M = I: vectors are compared as they are."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from precedents.data.examples import Examples
from precedents.gradients.rows import joined
from precedents.metrics.kernel import Kernel
from precedents.metrics.preconditioners._inverse import Description, Inverse
from precedents.metrics.workspace import Features, Workspace
from precedents.runtime.buffers import BUFFERS
from precedents.runtime.cost import Cost


@dataclass(frozen=True)
class Identity:
    """Nothing to fit."""

    space = None  # any features

    def fit(self, workspace: Workspace) -> Inverse:  # noqa: ARG002
        """The identity matrix."""
        return Unchanged()

    def cost(self, workspace: Workspace, m: int) -> Cost:  # noqa: ARG002
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

    def kernels(self, workspace: Workspace, features: Features, cases: Examples) -> Iterator[Kernel]:
        """Plain inner products, in the precision of the features."""
        with BUFFERS:
            case = joined(workspace.rows(features, cases), len(cases))
            case_sq = case.squares()
            squares = []
            known = workspace.cache.get(("squares", features))
            for places, rows in workspace.train_rows(features):
                train_sq = rows.squares() if known is None else known[places.start : places.stop]
                squares.append(train_sq)
                cross = case.products(rows)
                del rows  # its memory is free for the next ones
                yield Kernel(cross, case_sq, train_sq)
            workspace.once(("squares", features), lambda: torch.cat(squares))


identity = Identity()
