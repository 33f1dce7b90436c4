"""What a fitted inverse is, and its structures: a spectrum, a triangular root, a low rank plus a ridge."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Protocol, get_args

import torch
from torch import Tensor

from precedents.data.examples import Examples
from precedents.errors import InputError, NumericalError
from precedents.gradients.rows import Rows, dense, joined
from precedents.metrics.kernel import Kernel
from precedents.metrics.workspace import Features, Workspace
from precedents.runtime.budget import FLOAT64
from precedents.runtime.cost import Cost

Negative = Literal["drop", "keep"]  # what becomes of negative eigenvalues


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
    form: str = "none"  # how it is held

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

    def kernels(self, workspace: Workspace, features: Features, cases: Examples) -> Iterator[Kernel]:
        """The inner products under M^-1 of the cases with consecutive blocks of the training set."""


class Preconditioner(Hashable, Protocol):
    """A recipe for M: frozen, printable, fitted by `fit`.

    Where several recipes come to the same M, `settled(workspace)`, if it has that, is one for all of them.
    """

    @property
    def space(self) -> Callable[..., Any] | None:
        """The features that M acts on; None for any."""

    def fit(self, workspace: Workspace) -> Inverse:
        """M^-1 for this model and training set."""

    def cost(self, workspace: Workspace, m: int) -> Cost:
        """What fitting it and weighing the training set and m cases by it will cost."""


class Coordinates(Protocol):
    """An inverse M^-1 = B diag(w) B^T: vectors are compared by their coordinates v B, weighed by w."""

    @property
    def definite(self) -> bool:
        """Whether no weight is negative."""

    @property
    def weights(self) -> Tensor | None:
        """W [d]; None for ones."""

    def coordinates(self, rows: Tensor | Rows) -> Tensor | Rows:
        """V B of each row [b, d]."""


def coordinate_kernels(
    inverse: Coordinates, workspace: Workspace, features: Features, cases: Examples
) -> Iterator[Kernel]:
    """Kernels by coordinates; the training set's are kept if they fit."""

    def turned(rows: Rows) -> Rows:
        return Rows.of(inverse.coordinates(rows))

    def weighed(rows: Rows) -> Rows:
        return rows if inverse.weights is None else replace(rows, matrix=rows.matrix * inverse.weights)

    def squares(rows: Rows) -> Tensor:
        if inverse.weights is None:
            return rows.squares()
        return (rows.matrix * weighed(rows).matrix).sum(dim=1) * rows.scale.square()

    def blocks() -> Iterator[tuple[Rows, Tensor]]:
        for _, rows in workspace.train_rows(features):
            block = turned(rows)
            yield block, squares(block)

    case = joined(((places, turned(rows)) for places, rows in workspace.rows(features, cases)), len(cases))
    case_sq, case = squares(case), weighed(case)
    key, size = ("coordinates", inverse, features), FLOAT64 * len(workspace.train) * workspace.width(features)
    fits = size <= workspace.room
    if fits:
        workspace.holding(key, size)
    found = workspace.cache.blocks(key, lambda last: blocks() if last is None else (), lambda _: fits)
    for block, train_sq in found:
        yield Kernel(case.products(block), case_sq, train_sq, inverse.definite)


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

    def coordinates(self, rows: Tensor | Rows) -> Tensor:
        """In the basis of the eigenvectors."""
        return dense(rows) @ self.vectors

    def solve(self, rows: Tensor) -> Tensor:
        """V diag(weights) V^T applied to each row."""
        return (self.coordinates(rows) * self.weights) @ self.vectors.T

    def kernels(self, workspace: Workspace, features: Features, cases: Examples) -> Iterator[Kernel]:
        """By coordinates."""
        return coordinate_kernels(self, workspace, features, cases)


@dataclass(frozen=True, eq=False)
class Triangular:
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

    def kernels(self, workspace: Workspace, features: Features, cases: Examples) -> Iterator[Kernel]:
        """By coordinates."""
        return coordinate_kernels(self, workspace, features, cases)


@dataclass(frozen=True, eq=False)
class LowRankPlusRidge:
    """(ridge I + U^T U)^-1 by the Woodbury identity, for U of shape [r, d] with r < d."""

    factor: Tensor = field(repr=False)  # U
    inner: Tensor = field(repr=False)  # the Cholesky factor of U U^T + ridge I [r, r]
    ridge: float
    kind: str
    definite = True

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

    def kernels(self, workspace: Workspace, features: Features, cases: Examples) -> Iterator[Kernel]:
        """By plain inner products, less those of what U sees of the vectors."""

        def seen(rows: Tensor) -> Tensor:
            return torch.linalg.solve_triangular(self.inner, self.factor @ rows.T, upper=False).T

        case = torch.cat([rows.dense() for _, rows in workspace.rows(features, cases)])
        case_seen = seen(case)
        case_sq = (case.square().sum(dim=1) - case_seen.square().sum(dim=1)) / self.ridge

        def blocks() -> list[tuple[Tensor, Tensor]]:
            every = []
            for _, rows in workspace.train_rows(features):
                train = rows.dense()
                train_seen = seen(train)
                squares = train.square().sum(dim=1) - train_seen.square().sum(dim=1)
                every.append((train_seen, squares / self.ridge))
            return every

        kept = workspace.matrix(("seen", self, features), blocks)
        for (_, rows), (train_seen, train_sq) in zip(workspace.train_rows(features), kept, strict=True):
            cross = (case @ rows.dense().T - case_seen @ train_seen.T) / self.ridge
            yield Kernel(cross, case_sq, train_sq)


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


def absolute(damping: float, size: float) -> float:
    """The absolute damping: relative to the mean absolute entry of the matrix's diagonal."""
    if not damping > 0:
        raise InputError(f"The damping is {damping}; it must be positive, for example damping=1e-3.")
    return damping * (size if size > 0 else 1.0)


def known_settings(**settings: tuple[str, Any]) -> None:
    """Refuses a setting that is not one of its literal type's values."""
    for name, (value, known) in settings.items():
        if value not in get_args(known):
            raise InputError(f"{name} is {value!r}. Use one of: {', '.join(get_args(known))}.")
