"""M = the Gauss-Newton matrix by EK-FAC: layer by layer, diagonal in a Kronecker basis; for large networks."""

from dataclasses import dataclass, field
from functools import cached_property

from torch import Tensor

from precedents.curvature.ekfac import Basis, block_shapes, corrected_eigenvalues, kronecker_basis
from precedents.gradients.rows import Rows
from precedents.metrics.features.gradient import gradient
from precedents.metrics.preconditioners._inverse import (
    Coordinates,
    Description,
    Inverse,
    Preconditioner,
    absolute,
    checked_damping,
)
from precedents.metrics.vectors import Vectors
from precedents.metrics.workspace import Workspace
from precedents.runtime.budget import FLOAT64
from precedents.runtime.cache import Slot
from precedents.runtime.cost import Cost

EKFAC: Slot[tuple[Basis, Tensor]] = Slot("EK-FAC basis and eigenvalues", large=True)


@dataclass(frozen=True)
class InverseEKFAC(Preconditioner):
    """(G + damping x mean diagonal x I)^-1 for the Gauss-Newton matrix G, approximated.

    Between layers G is taken as zero. Within a Linear or a convolution it is diagonal in the products of
    the eigenvectors of the layer's two second moments, and that diagonal is exact: so are G's trace and
    the damping. For all other parameters (norms, embeddings, recurrent and attention layers, convolutions
    with groups, shared ones) G is its own diagonal.

    >>> import torch, precedents as pr
    >>> train = torch.eye(4), torch.tensor([0, 1, 0, 1])
    >>> fitted = pr.metric("cosine:gradient/ekfac").fit(torch.nn.Linear(4, 2), train)
    >>> print(fitted.inverse.description)  # doctest: +ELLIPSIS
    EK-FAC, 10 x 10 as a Kronecker basis, damping ..., definite
    """

    damping: float = 1e-3  # relative to the mean of G's diagonal
    features = staticmethod(gradient)

    def __post_init__(self) -> None:
        checked_damping(self.damping)

    def fit(self, vectors: Vectors) -> Inverse:
        """Two passes over the training set, whatever the damping."""
        workspace = vectors.workspace
        basis, values = workspace.once(EKFAC, lambda: _fitted(workspace))
        return Rotated(basis, values, absolute(self.damping, float(values.mean())))

    def cost(self, vectors: Vectors, m: int) -> Cost:
        """Passes for the moments and for the diagonal, and rotating every gradient."""
        model, n = vectors.workspace.classifier, len(vectors)
        shapes = list(block_shapes(model.module))
        rotation = sum(2.0 * o * j * (o + j) for o, j in shapes)
        flops = rotation * (n * model.classes + n + m) + 2.0 * n * m * model.size
        own, basis = FLOAT64 * model.size, FLOAT64 * sum(o * o + j * j for o, j in shapes)
        return Cost(flops, 2 * model.classes, 2 * own + 3 * basis, disk=own + basis, itemsize=model.itemsize)


@dataclass(frozen=True, eq=False)
class Rotated(Coordinates):
    """(Q diag(values) Q^T + ridge I)^-1 for a basis Q of Kronecker products."""

    basis: Basis = field(repr=False)
    values: Tensor = field(repr=False)  # [d], in the order of the basis
    ridge: float
    definite = True
    weights = None

    @cached_property
    def damped(self) -> Tensor:
        """The eigenvalues [d] of the damped matrix."""
        return self.values + self.ridge

    @property
    def description(self) -> Description:
        """With the spectrum of the approximation."""
        smallest, largest = float(self.damped.min()), float(self.damped.max())
        return Description(
            kind="EK-FAC",
            size=len(self.damped),
            damping=self.ridge,
            smallest=smallest,
            largest=largest,
            condition=largest / smallest,
            form="Kronecker basis",
        )

    @cached_property
    def roots(self) -> tuple[float, Tensor]:
        """The roots of the eigenvalues [d], which may be small: by their mean, which comes first."""
        roots = self.damped.sqrt()
        mean = float(roots.mean())
        return mean, roots / mean

    def coordinates(self, rows: Tensor | Rows) -> Rows:
        """In the basis, by the roots of the eigenvalues: plain inner products are those under the inverse."""
        turned, (mean, roots) = self.basis.rotated(rows), self.roots
        return Rows(turned.matrix.div_(roots), turned.scale / mean)

    def solve(self, rows: Tensor) -> Tensor:
        """Into the basis, divided by the eigenvalues, and back."""
        return self.basis.restored(self.basis.rotated(rows).dense().div_(self.damped))


def _fitted(workspace: Workspace) -> tuple[Basis, Tensor]:
    basis = kronecker_basis(workspace.classifier, workspace.train)
    return basis, corrected_eigenvalues(workspace.classifier, workspace.train, basis)


ekfac = InverseEKFAC()
