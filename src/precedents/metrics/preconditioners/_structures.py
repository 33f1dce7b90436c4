"""Structures of a fitted inverse: a spectrum, a triangular root, a low rank plus a ridge."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from precedents.errors import NumericalError
from precedents.gradients.rows import Rows, dense
from precedents.metrics.kernel import Kernel
from precedents.metrics.preconditioners._inverse import Coordinates, Description, Inverse
from precedents.metrics.vectors import Holding, Question, Vectors
from precedents.runtime.cache import Slot

SEEN: Slot[Sequence[tuple[Tensor, Tensor]]] = Slot("what U sees of the training set", large=True)


@dataclass(frozen=True, eq=False)
class Spectrum(Coordinates):
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

    def coordinates(self, rows: Tensor | Rows) -> Tensor:
        """In the basis of the eigenvectors."""
        return dense(rows) @ self.vectors

    def solve(self, rows: Tensor) -> Tensor:
        """V diag(weights) V^T applied to each row."""
        return (self.coordinates(rows) * self.weights) @ self.vectors.T


@dataclass(frozen=True, eq=False)
class Triangular(Coordinates):
    """(L L^T)^-1 for a positive definite matrix that is held whole by its Cholesky factor."""

    root: Tensor = field(repr=False)  # L [d, d]
    ridge: float
    kind: str
    definite = True
    weights = None

    @cached_property
    def description(self) -> Description:
        """With the extreme eigenvalues by power iteration."""
        root = self.root
        largest = power_iteration(lambda v: root @ (root.T @ v), len(root))
        inverse = power_iteration(lambda v: torch.cholesky_solve(v[:, None], root)[:, 0], len(root))
        return Description(
            kind=self.kind,
            size=len(root),
            damping=self.ridge,
            smallest=1 / inverse,
            largest=largest,
            condition=largest * inverse,
            form="Cholesky factor",
        )

    def coordinates(self, rows: Tensor | Rows) -> Tensor:
        """L^-1 v: vectors whose plain inner products are those under the inverse."""
        return torch.linalg.solve_triangular(self.root, dense(rows).T, upper=False).T

    def solve(self, rows: Tensor) -> Tensor:
        """By two triangular solves."""
        return torch.cholesky_solve(rows.T, self.root).T


class LowRank(Inverse, ABC):
    """(ridge I + U^T U)^-1 by the Woodbury identity, for U of shape [r, d], however vectors are held."""

    inner: Tensor  # the Cholesky factor of U U^T + ridge I [r, r]
    ridge: float
    definite = True

    @abstractmethod
    def held(self, rows: Rows) -> Any:
        """The rows as they are multiplied."""

    @abstractmethod
    def products(self, rows: Any, others: Any) -> Tensor:
        """The inner products of rows that are held with others."""

    @abstractmethod
    def by_factor(self, rows: Any) -> tuple[Tensor, Tensor]:
        """U times rows that are held [r, b], and their squared lengths [b]."""

    def kernels(self, question: Question) -> Iterator[Kernel]:
        """By plain inner products, less those of what U sees of the vectors."""
        case = self.held(question.case_rows())
        case_seen, case_sq = self._seen(case)
        seen = self.seen(question.vectors)
        for (_, rows), (train_seen, train_sq) in zip(question.train_blocks(), seen, strict=True):
            cross = (self.products(case, self.held(rows)) - case_seen @ train_seen.T) / self.ridge
            yield Kernel(cross, case_sq, train_sq)

    def seen(self, vectors: Vectors) -> Sequence[tuple[Tensor, Tensor]]:
        """What U sees of the training set [b, r], and squared lengths under the inverse [b], block by block."""

        def made() -> list[tuple[Tensor, Tensor]]:
            return [self._seen(self.held(rows)) for _, rows in vectors.blocks()]

        return vectors.workspace.once(SEEN.at(vectors.features, self), made)

    def holdings(self, vectors: Vectors) -> Sequence[Holding[Any]]:
        """The vectors, and what U sees of them."""
        return [vectors.holding, Holding(SEEN.at(vectors.features, self), lambda: self.seen(vectors))]

    def _seen(self, rows: Any) -> tuple[Tensor, Tensor]:
        products, squares = self.by_factor(rows)
        seen = torch.linalg.solve_triangular(self.inner, products, upper=False).T
        return seen, (squares - seen.square().sum(dim=1)) / self.ridge


@dataclass(frozen=True, eq=False)
class LowRankPlusRidge(LowRank):
    """The same with vectors that are formed, for r < d."""

    factor: Tensor = field(repr=False)  # U
    inner: Tensor = field(repr=False)
    ridge: float
    kind: str

    @classmethod
    def of(cls, factor: Tensor, ridge: float, kind: str) -> "LowRankPlusRidge":
        """From U."""
        return cls(factor, damped_root(factor @ factor.T, ridge), ridge, kind)

    @cached_property
    def description(self) -> Description:
        """With the smallest eigenvalue exact, the largest by power iteration."""
        return low_rank_description(self.kind, self.factor.shape[1], self.ridge, self.inner)

    def solve(self, rows: Tensor) -> Tensor:
        """(rows - rows U^T (U U^T + ridge I)^-1 U) / ridge."""
        inside = torch.cholesky_solve(self.factor @ rows.T, self.inner)
        return (rows - inside.T @ self.factor) / self.ridge

    def held(self, rows: Rows) -> Tensor:
        """Formed."""
        return rows.dense()

    def products(self, rows: Tensor, others: Tensor) -> Tensor:
        """Of matrices."""
        return rows @ others.T

    def by_factor(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """U times a matrix."""
        return self.factor @ rows.T, rows.square().sum(dim=1)


def damped_root(gram: Tensor, ridge: float) -> Tensor:
    """The Cholesky factor of gram + ridge I; the matrix is overwritten."""
    gram.diagonal().add_(ridge)
    root, failed = torch.linalg.cholesky_ex(gram)
    if failed:
        raise NumericalError(f"The damping {ridge:.3g} is below rounding. Use a larger one: damping=1e-3.")
    return root


def low_rank_description(kind: str, size: int, ridge: float, inner: Tensor) -> Description:
    """Of a matrix U^T U + ridge I whose rank leaves the ridge as its smallest eigenvalue."""
    largest = power_iteration(lambda v: inner @ (inner.T @ v), len(inner))
    return Description(
        kind=kind,
        size=size,
        damping=ridge,
        smallest=ridge,
        largest=largest,
        condition=largest / ridge,
        form="low rank plus ridge",
    )


def power_iteration(times: Callable[[Tensor], Tensor], size: int, steps: int = 200) -> float:
    """The largest eigenvalue of a positive definite matrix, from a fixed start, to about six digits."""
    vector = torch.randn(size, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    value = 0.0
    for _ in range(steps):
        vector = times(vector / vector.norm())
        before, value = value, float(vector.norm())
        if abs(value - before) <= 1e-7 * value:
            break
    return value


def spectrum(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues (ascending) and eigenvectors (columns) of a symmetric matrix."""
    values, vectors = torch.linalg.eigh(matrix)
    return values, vectors
