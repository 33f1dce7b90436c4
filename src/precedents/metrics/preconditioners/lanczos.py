"""M = the exact Hessian by its extreme eigenpairs, which Lanczos finds without forming it."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from precedents.curvature.lanczos import Eigenpairs, hessian_eigenpairs
from precedents.gradients.rows import Rows, dense
from precedents.metrics.features.gradient import gradient
from precedents.metrics.preconditioners._inverse import (
    Coordinates,
    Description,
    Inverse,
    Negative,
    Preconditioner,
    absolute,
    checked_damping,
    known_settings,
)
from precedents.metrics.preconditioners._structures import Spectrum
from precedents.metrics.vectors import Vectors
from precedents.runtime.budget import FLOAT64
from precedents.runtime.cache import Slot
from precedents.runtime.cost import Cost
from precedents.runtime.given import whole_number

PAIRS: Slot[Eigenpairs] = Slot("Lanczos eigenpairs of the Hessian", large=True)


@dataclass(frozen=True)
class InverseLanczos(Preconditioner):
    """(V L V^T + damping x mean absolute diagonal x I)^-1 for the `rank` eigenpairs of H with the largest |L|.

    The rest of the Hessian counts as zero curvature: directions outside of V are divided by the damping
    alone, which is relative to the diagonal of V L V^T. `negative` keeps or drops the negative eigenvalues
    that were found, as for InverseHessian; with as many pairs as parameters the two are the same matrix.

    >>> import torch, precedents as pr
    >>> train = torch.eye(4), torch.tensor([0, 1, 0, 1])
    >>> fitted = pr.metric("cosine:gradient/lanczos(rank=3)").fit(torch.nn.Linear(4, 2), train)
    >>> print(fitted.inverse.description)  # doctest: +ELLIPSIS
    Lanczos spectrum of the exact Hessian, 10 x 10 as a spectrum of 3 pairs with residual ...
    """

    rank: int = 100
    negative: Negative = "drop"
    damping: float = 1e-3  # relative to the mean absolute entry of V L V^T's diagonal
    features = staticmethod(gradient)

    def __post_init__(self) -> None:
        checked_damping(self.damping)
        known_settings(negative=(self.negative, Negative))
        whole_number(self.rank, "rank", advice="Ask for at least one eigenpair, for example rank=100")

    def fit(self, vectors: Vectors) -> Inverse:
        """The pairs are computed once, whatever the damping and what happens to negative ones."""
        workspace = vectors.workspace
        model, train = workspace.classifier, workspace.train
        pairs = workspace.once(PAIRS.at(self.rank), lambda: hessian_eigenpairs(model, train, self.rank))
        diagonal = pairs.vectors.square() @ pairs.values
        ridge = absolute(self.damping, float(diagonal.abs().mean()))
        kind = "Lanczos spectrum of the exact Hessian"
        found = Spectrum(pairs.vectors, pairs.values, ridge, kind, self.negative == "keep")
        return Truncated(found, pairs.residual)

    def cost(self, vectors: Vectors, m: int) -> Cost:
        """About two products with the Hessian for each eigenpair, and projections on the pairs."""
        n, p = len(vectors), vectors.workspace.classifier.size
        steps = min(p, 2 * self.rank + 20)
        flops = 4.0 * p * steps * steps + 4.0 * p * self.rank * (n + m) + 2.0 * n * m * p
        pairs = FLOAT64 * self.rank * (p + n)
        return Cost(flops, passes=6 * steps, bytes=FLOAT64 * p * 2 * steps, disk=pairs, itemsize=FLOAT64)


@dataclass(frozen=True, eq=False)
class Truncated(Coordinates):
    """(V L V^T + ridge I)^-1 by some eigenpairs; vectors are compared by what V sees of them and the rest."""

    found: Spectrum = field(repr=False)  # with vectors V [d, k]
    residual: float  # of the worst eigenpair, relative to the largest

    @cached_property
    def weights(self) -> Tensor:
        """The eigenvalues [k + d] of the inverse that is used: the found ones, then the rest."""
        rest = torch.full((len(self.found.vectors),), 1 / self.found.ridge, dtype=torch.double)
        return torch.cat([self.found.weights, rest])

    @property
    def definite(self) -> bool:
        """Whether no weight is negative."""
        return self.found.definite

    @property
    def description(self) -> Description:
        """With the spectrum that was found, and the ridge for what was not."""
        found, (size, count) = self.found.description, self.found.vectors.shape
        damped = self.found.values + self.found.ridge
        if count < size:
            damped = torch.cat([damped, damped.new_tensor([self.found.ridge])])
        return replace(
            found,
            size=size,
            smallest=float(damped.min()),
            largest=float(damped.max()),
            condition=float(damped.abs().max() / damped.abs().min()),
            form=f"spectrum of {count} pairs with residual {self.residual:.1g}",
        )

    def coordinates(self, rows: Tensor | Rows) -> Tensor:
        """What V sees of each row, then what it does not [b, k + d]."""
        vectors = dense(rows)
        seen = self.found.coordinates(vectors)
        return torch.cat([seen, vectors - seen @ self.found.vectors.T], dim=1)

    def solve(self, rows: Tensor) -> Tensor:
        """What V sees by its eigenvalues, the rest by the ridge."""
        rest = rows - self.found.coordinates(rows) @ self.found.vectors.T
        return self.found.solve(rows) + rest / self.found.ridge


lanczos = InverseLanczos()
