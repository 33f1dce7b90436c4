"""Preconditioner and Inverse: what a matrix M and its fitted inverse must give, and what they have by default.

A preconditioner must have `fit`; what it returns must have `solve`, `definite` and `description`. Kernels and
costs have defaults, which a structure that can do better replaces.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from numbers import Real
from typing import Any, ClassVar, Literal, get_args

from torch import Tensor

from precedents.errors import InputError
from precedents.gradients.rows import Rows, joined
from precedents.metrics.kernel import Kernel
from precedents.metrics.vectors import Features, Holding, Passing, Question, Vectors
from precedents.metrics.workspace import Workspace
from precedents.runtime.budget import FLOAT64
from precedents.runtime.cache import Slot
from precedents.runtime.cost import Cost

REFUSAL = ("", "Allow more memory, or use a cheaper metric: cos_grad, cos_last, cos_x.")
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


class Inverse(ABC):
    """M^-1, fitted to the vectors of a training set."""

    @property
    @abstractmethod
    def definite(self) -> bool:
        """Whether <v, M^-1 v> is never negative."""

    @property
    @abstractmethod
    def description(self) -> Description:
        """Kind, size, damping, spectrum."""

    @abstractmethod
    def solve(self, rows: Tensor) -> Tensor:
        """M^-1 applied to each of the `rows` [b, d], float64."""

    def kernels(self, question: Question) -> Iterator[Kernel]:
        """The inner products under M^-1 of the `question`'s cases with blocks of the training set.

        By solving every row, unless a structure knows better; it must come to the same.
        """
        case = question.case_rows().dense()
        weighed = self.solve(case)
        case_sq = (case * weighed).sum(dim=1)
        for _, rows in question.train_blocks():
            train = rows.dense()
            train_sq = (train * self.solve(train)).sum(dim=1)
            yield Kernel(weighed @ train.T, case_sq, train_sq, self.definite)

    def holdings(self, vectors: Vectors) -> Sequence[Holding[Any]]:
        """What of the training set's `vectors` its kernels read, and so what is saved with it."""
        return [vectors.holding]


class Preconditioner(ABC):
    """A recipe for M: a frozen dataclass, whose fields are the settings of texts: `fisher(damping=0.01)`."""

    features: ClassVar[Features | None] = None  # what M acts on; None for any

    @abstractmethod
    def fit(self, vectors: Vectors) -> Inverse:
        """M^-1 for the vectors of this training set, whose workspace has the model."""

    def cost(self, vectors: Vectors, m: int) -> Cost:
        """What fitting it to `vectors` and weighing them and m cases costs: as of a matrix [d, d]."""
        n, d = len(vectors), vectors.width
        return Cost(2.0 * (n + m) * d * d + d**3, passes=1, bytes=2 * FLOAT64 * d * d, disk=FLOAT64 * d * d)

    def refusal(self, vectors: Vectors) -> tuple[str, str]:  # noqa: ARG002
        """What needs so much memory for these `vectors`, or nothing for the metric, and what to do."""
        return REFUSAL

    def by_products(self, workspace: Workspace) -> bool:  # noqa: ARG002
        """Whether inner products of the vectors do for it in a `workspace`, so that none is formed."""
        return False

    def settled(self, workspace: Workspace) -> "Preconditioner":  # noqa: ARG002
        """One recipe for all that come to the same M in a `workspace`; itself, unless it knows others."""
        return self

    def instead_of(self, workspace: Workspace) -> str | None:  # noqa: ARG002
        """What the memory budget of a `workspace` had no room for, if that decided what M is there."""
        return None


COORDINATES: Slot[Sequence[tuple[Rows, Tensor]]] = Slot("coordinates of the training set", large=True)


class Coordinates(Inverse):
    """An inverse M^-1 = B diag(w) B^T: vectors are compared by their coordinates v B, weighed by w."""

    @property
    @abstractmethod
    def weights(self) -> Tensor | None:
        """W [d]; None for ones."""

    @abstractmethod
    def coordinates(self, rows: Tensor | Rows) -> Tensor | Rows:
        """V B of each row [b, d]."""

    def kernels(self, question: Question) -> Iterator[Kernel]:
        """By coordinates; the training set's are kept if they fit."""
        vectors, cases = question.vectors, question.cases
        turned = ((places, Rows.of(self.coordinates(rows))) for places, rows in vectors.rows(cases))
        case = joined(turned, len(cases))
        case_sq, case = self._squares(case), self._weighed(case)
        for block, train_sq in self.blocks(vectors, question.passing):
            yield Kernel(case.products(block), case_sq, train_sq, self.definite)

    def blocks(self, vectors: Vectors, passing: Passing | None = None) -> Iterator[tuple[Rows, Tensor]]:
        """The coordinates of the training set, and their squared lengths under w.

        Those that are not kept go through `passing`, if it is given.
        """
        workspace, slot = vectors.workspace, COORDINATES.at(vectors.features, self)
        size = FLOAT64 * len(vectors) * vectors.width
        fits = size <= workspace.room

        def made(last: object) -> Iterator[tuple[Rows, Tensor]]:
            if last is None and fits:
                workspace.holding(slot, size)
            raw = vectors.blocks(again=not fits) if last is None else iter(())
            turned = ((places, Rows.of(self.coordinates(rows))) for places, rows in raw)
            for _, block in turned if fits or passing is None else passing(turned):
                yield block, self._squares(block)

        if not fits and slot not in workspace.cache:
            return made(None)
        return workspace.cache.blocks(slot, made, lambda _: fits)

    def holdings(self, vectors: Vectors) -> Sequence[Holding[Any]]:
        """The coordinates."""
        return [Holding(COORDINATES.at(vectors.features, self), lambda: self.blocks(vectors))]

    def _weighed(self, rows: Rows) -> Rows:
        return rows if self.weights is None else replace(rows, matrix=rows.matrix * self.weights)

    def _squares(self, rows: Rows) -> Tensor:
        if self.weights is None:
            return rows.squares()
        return (rows.matrix * self._weighed(rows).matrix).sum(dim=1) * rows.scale.square()


def absolute(damping: float, size: float) -> float:
    """The absolute damping: relative to the mean absolute entry of the matrix's diagonal."""
    checked_damping(damping)
    return damping * (size if size > 0 else 1.0)


def checked_damping(damping: float) -> None:
    """Refuses a damping that is no positive and finite number."""
    if isinstance(damping, bool) or not isinstance(damping, Real) or not 0 < damping < inf:
        raise InputError(
            f"The damping is {damping!r}; it must be positive, for example damping=1e-3, and a finite number."
        )


def known_settings(**settings: tuple[str, Any]) -> None:
    """Refuses a setting that is not one of its literal type's values."""
    for name, (value, known) in settings.items():
        if value not in get_args(known):
            raise InputError(f"{name} is {value!r}. Use one of: {', '.join(get_args(known))}.")
