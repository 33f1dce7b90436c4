"""Kernel: one block of inner products under M^-1, from which every similarity is made."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from precedents.errors import IndefiniteKernelError


@dataclass(frozen=True, eq=False)
class Kernel:
    """One block of inner products: cases are rows, training instances are columns."""

    cross: Tensor  # [m, n]
    case_sq: Tensor  # [m]
    train_sq: Tensor  # [n]
    definite: bool = True  # whether M^-1 is positive semidefinite

    def squares(self) -> tuple[Tensor, Tensor]:
        """The squared lengths as a column [m, 1] and a row [1, n]."""
        if not self.definite:
            raise IndefiniteKernelError
        return self.case_sq[:, None].clamp(min=0), self.train_sq[None, :].clamp(min=0)

    def lengths(self) -> Tensor:
        """The lengths [n] of the training instances."""
        return self.squares()[1][0].sqrt()

    def of_cases(self, places: slice) -> "Kernel":
        """The rows of some of the cases, those at `places`."""
        return Kernel(self.cross[places], self.case_sq[places], self.train_sq, self.definite)


def stacked(kernels: Sequence[Kernel]) -> Kernel:
    """Consecutive groups of cases as one."""
    first = kernels[0]
    return Kernel(
        torch.cat([kernel.cross for kernel in kernels]),
        torch.cat([kernel.case_sq for kernel in kernels]),
        first.train_sq,
        first.definite,
    )


def joined(kernels: Sequence[Kernel]) -> Kernel:
    """Consecutive blocks of training instances as one."""
    first = kernels[0]
    return Kernel(
        torch.cat([kernel.cross for kernel in kernels], dim=1),
        first.case_sq,
        torch.cat([kernel.train_sq for kernel in kernels]),
        first.definite,
    )
