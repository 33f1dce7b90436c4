"""What a fitted inverse is, and the two structures it comes in: a spectrum, or a low rank plus a ridge."""

from collections.abc import Callable, Hashable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from precedents.errors import InputError, NumericalError
from precedents.evidence import Evidence


@dataclass(frozen=True)
class Description:
    """What a fitted inverse says of itself; the eigenvalues are those of the damped matrix."""

    kind: str
    size: int | None = None  # parameters
    damping: float = 0.0  # absolute: what was added to the diagonal
    smallest: float = 1.0
    largest: float = 1.0
    negative: int = 0  # how many eigenvalues are below zero
    definite: bool = True  # whether the inverse in use is positive semidefinite
    condition: float = 1.0  # the largest by the smallest eigenvalue, in absolute value
    form: str = "none"  # spectrum, or low rank plus ridge

    def to_dict(self) -> dict[str, object]:
        """All of it as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        if self.size is None:
            return self.kind
        sign = f"{self.negative} negative eigenvalues, " if self.negative else ""
        return (
            f"{self.kind}, {self.size} x {self.size} as a {self.form}, damping {self.damping:.3g}, "
            f"eigenvalues {self.smallest:.3g} to {self.largest:.3g}, condition {self.condition:.2g}, {sign}"
            f"{'definite' if self.definite else 'indefinite'}"
        )


class Inverse(Protocol):
    """M^-1, fitted to a model and its training set."""

    @property
    def definite(self) -> bool:
        """Whether <v, M^-1 v> is never negative."""

    @property
    def description(self) -> Description:
        """Kind, size, damping, spectrum."""

    def solve(self, rows: Tensor) -> Tensor:
        """M^-1 applied to each row [b, d]."""


class Preconditioner(Hashable, Protocol):
    """A recipe for M: frozen, printable, fitted by `fit`."""

    @property
    def space(self) -> Callable[..., Tensor] | None:
        """The features that M acts on; None for any."""

    def fit(self, evidence: Evidence) -> Inverse:
        """M^-1 for this model and training set."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    """(A + ridge I)^-1 by the eigenvalues of A; `keep` says whether negative curvature takes part."""

    vectors: Tensor = field(repr=False)  # [d, d], columns
    values: Tensor = field(repr=False)  # [d], of A, ascending
    ridge: float
    kind: str
    keep: bool = False

    @cached_property
    def weights(self) -> Tensor:
        """The eigenvalues of the inverse that is used."""
        damped = self.values + self.ridge
        if not bool((damped != 0).all()):
            raise NumericalError("The matrix is singular. Use a larger damping, for example damping=1e-3.")
        return 1 / damped if self.keep else torch.where(damped > 0, 1 / damped, 0.0)

    @property
    def definite(self) -> bool:
        """Whether no weight is negative."""
        return bool((self.weights >= 0).all())

    @property
    def description(self) -> Description:
        """With the exact spectrum."""
        damped = self.values + self.ridge
        negative = int((damped < 0).sum())
        return Description(
            kind=self.kind + ("" if self.keep or not negative else ", negative curvature dropped"),
            size=len(damped),
            damping=self.ridge,
            smallest=float(damped[0]),
            largest=float(damped[-1]),
            negative=negative,
            definite=self.definite,
            condition=float(damped.abs().max() / damped.abs().min()),
            form="spectrum",
        )

    def solve(self, rows: Tensor) -> Tensor:
        """V diag(weights) V^T applied to each row."""
        return (rows @ self.vectors * self.weights) @ self.vectors.T


@dataclass(frozen=True, eq=False)
class LowRankPlusRidge:
    """(ridge I + U^T U)^-1 by the Woodbury identity, for U of shape [r, d] with r < d."""

    factor: Tensor = field(repr=False)  # U
    ridge: float
    kind: str
    definite = True

    @cached_property
    def inner(self) -> Tensor:
        """The Cholesky factor of U U^T + ridge I [r, r]."""
        gram = self.factor @ self.factor.T
        gram.diagonal().add_(self.ridge)
        root, failed = torch.linalg.cholesky_ex(gram)
        if failed:
            raise NumericalError(
                f"The damping {self.ridge:.3g} is below rounding. Use a larger one, for example damping=1e-3."
            )
        return root

    @cached_property
    def description(self) -> Description:
        """With the smallest eigenvalue exact, the largest by power iteration."""
        largest = largest_eigenvalue(self.inner)
        return Description(
            kind=self.kind,
            size=self.factor.shape[1],
            damping=self.ridge,
            smallest=self.ridge,
            largest=largest,
            condition=largest / self.ridge,
            form="low rank plus ridge",
        )

    def solve(self, rows: Tensor) -> Tensor:
        """(rows - rows U^T (U U^T + ridge I)^-1 U) / ridge."""
        inside = torch.cholesky_solve(self.factor @ rows.T, self.inner)
        return (rows - inside.T @ self.factor) / self.ridge


def largest_eigenvalue(root: Tensor, steps: int = 200) -> float:
    """The largest eigenvalue of L L^T by power iteration from a fixed start, to about six digits."""
    vector = torch.randn(len(root), dtype=root.dtype, generator=torch.Generator().manual_seed(0))
    value = 0.0
    for _ in range(steps):
        vector = root @ (root.T @ (vector / vector.norm()))
        before, value = value, float(vector.norm())
        if abs(value - before) <= 1e-7 * value:
            break
    return value


def spectrum(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues (ascending) and eigenvectors (columns) of a symmetric matrix."""
    values, vectors = torch.linalg.eigh(matrix)
    return values, vectors


def ridge(damping: float, diagonal: Tensor) -> float:
    """The absolute damping: relative to the mean absolute entry of the matrix's diagonal."""
    if not damping > 0:
        raise InputError(f"The damping is {damping}; it must be positive, for example damping=1e-3.")
    size = float(diagonal.abs().mean())
    return damping * (size if size > 0 else 1.0)


def inverse_of_rows(factor: Tensor, damping: float, kind: str) -> Inverse:
    """(U^T U + ridge I)^-1 in the smaller of the primal [d, d] and the dual [r, r]."""
    r, d = factor.shape
    absolute = ridge(damping, factor.square().sum(dim=0))
    if r < d:
        return LowRankPlusRidge(factor, absolute, kind)
    values, vectors = spectrum(factor.T @ factor)
    return Spectrum(vectors, values.clamp(min=0), absolute, kind)
