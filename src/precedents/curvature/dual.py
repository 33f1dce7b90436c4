"""Systems in the dual, by a Cholesky factor of which no copy is held."""

import torch
from torch import Tensor

from precedents.runtime.progress import tracked

COLUMNS = 1_024  # of a system in the dual that are solved at once


def solved(root: Tensor, columns: Tensor) -> Tensor:
    """S^-1 applied to columns, for S by its Cholesky factor, of which `cholesky_solve` would hold a copy."""
    below = torch.linalg.solve_triangular(root, columns, upper=False)
    return torch.linalg.solve_triangular(root.T, below, upper=True)


def diagonal(gram: Tensor, root: Tensor) -> Tensor:
    """The diagonal of S^-1 T for T = `gram` and S by its Cholesky factor: some columns at a time.

    Of each column only what stands on the diagonal or below is solved back.
    """
    n, parts = len(gram), list[Tensor]()
    for start in tracked(range(0, n, COLUMNS), "Fisher matrix in the dual"):
        columns = gram[:, start : start + COLUMNS]
        below = torch.linalg.solve_triangular(root, columns, upper=False)[start:]
        back = torch.linalg.solve_triangular(root[start:, start:].T, below, upper=True)
        parts.append(back.diagonal().clone())
    return torch.cat(parts)
