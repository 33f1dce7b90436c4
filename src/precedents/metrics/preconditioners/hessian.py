"""M = the Hessian of the mean training loss: how the loss bends around the trained parameters."""

from dataclasses import dataclass, replace
from typing import Literal

from torch import Tensor

from precedents.curvature.hessian import exact_hessian, linear_hessian
from precedents.metrics.features.gradient import gradient
from precedents.metrics.preconditioners._inverse import (
    Inverse,
    Negative,
    Preconditioner,
    absolute,
    checked_damping,
    known_settings,
)
from precedents.metrics.preconditioners._structures import Spectrum, spectrum
from precedents.metrics.preconditioners.ekfac import InverseEKFAC
from precedents.metrics.preconditioners.fisher import (
    dual_by_products,
    true_fisher,
    true_fisher_bytes,
    true_fisher_cost,
    whole,
)
from precedents.metrics.vectors import Vectors
from precedents.metrics.workspace import Workspace
from precedents.runtime.budget import FLOAT64
from precedents.runtime.cache import Slot
from precedents.runtime.cost import Cost
from precedents.runtime.sparse import SparseRows

PHRASE = "after influence-function weighting"

HessianKind = Literal["auto", "exact", "gauss_newton", "ekfac"]

CURVATURE: Slot[HessianKind] = Slot("kind of curvature that was chosen", travels=True)
HESSIAN: Slot[Tensor] = Slot("Hessian", large=True)
SPECTRUM: Slot[tuple[Tensor, Tensor]] = Slot("eigenvalues and eigenvectors of the Hessian", large=True)
LINEAR: Slot[Inverse] = Slot("inverse Hessian of a linear model", large=True)
GAUSS_NEWTON: Slot[Inverse] = Slot("inverse Gauss-Newton matrix", large=True)

NAMES = {"exact": "exact Hessian", "gauss_newton": "Gauss-Newton", "ekfac": "EK-FAC"}
EXACT = 2_000  # parameters up to which the exact Hessian takes seconds to minutes


@dataclass(frozen=True)
class InverseHessian(Preconditioner):
    """(H + damping x mean absolute diagonal x I)^-1.

    exact: the Hessian itself; a network's has negative eigenvalues, which `negative` keeps or drops.
    gauss_newton: its positive semidefinite part that leaves out the curvature of the network.
    ekfac: an approximation of that by Kronecker products, for what is too large for it.
    auto: exact for linear models (in closed form) and up to 2,000 parameters, Gauss-Newton beyond, and EK-FAC
    where that does not fit into the memory budget. The fitted inverse says what it is.

    >>> import torch, precedents as pr
    >>> train = torch.eye(4), torch.tensor([0, 1, 0, 1])
    >>> fitted = pr.metric("cosine:gradient/hessian(damping=0.1)").fit(torch.nn.Linear(4, 2), train)
    >>> print(fitted.inverse.description)  # doctest: +ELLIPSIS
    exact Hessian, 10 x 10 as a spectrum, damping ..., definite
    """

    kind: HessianKind = "auto"
    negative: Negative = "drop"
    damping: float = 1e-3  # relative to the mean absolute entry of H's diagonal
    features = staticmethod(gradient)

    def __post_init__(self) -> None:
        checked_damping(self.damping)
        known_settings(kind=(self.kind, HessianKind), negative=(self.negative, Negative))

    def fit(self, vectors: Vectors) -> Inverse:
        """The inverse for these `vectors`, with its spectrum where the matrix is held whole."""
        workspace, damping = vectors.workspace, self.damping
        kind = self.chosen(workspace)
        if kind == "ekfac":
            return InverseEKFAC(damping).fit(vectors)
        if kind == "gauss_newton" and not _closed(workspace):
            slot = GAUSS_NEWTON.at(damping)
            return workspace.once(slot, lambda: true_fisher(workspace, damping, "Gauss-Newton"))
        hessian = workspace.once(HESSIAN, lambda: _dense(workspace))
        if workspace.classifier.only_layer is not None:  # of a linear model: positive semidefinite
            slot = LINEAR.at(damping)
            return workspace.once(slot, lambda: whole(hessian.clone(), damping, "exact Hessian"))
        values, basis = workspace.once(SPECTRUM, lambda: spectrum(hessian))
        name = "exact Hessian" if kind == "exact" else "Gauss-Newton"
        ridge = absolute(damping, float(hessian.diagonal().abs().mean()))
        return Spectrum(basis, values, ridge, name, keep=self.negative == "keep")

    def cost(self, vectors: Vectors, m: int) -> Cost:
        """Of the exact Hessian, of Gauss-Newton, or of EK-FAC, for these `vectors` and m cases."""
        workspace = vectors.workspace
        model, n, p = workspace.classifier, len(vectors), workspace.classifier.size
        kind = self.chosen(workspace)
        if kind == "ekfac":
            return InverseEKFAC(self.damping).cost(vectors, m)
        if kind == "gauss_newton" and not _closed(workspace):
            return true_fisher_cost(workspace, m)
        applied = 2.0 * (n + m) * p * p
        closed = model.only_layer is not None
        flops, passes = (n * p * p + p**3 / 3 + applied, 1) if closed else (10.0 * p**3 + applied, 4 * p)
        return Cost(flops, passes, _dense_bytes(p), disk=FLOAT64 * p * p, itemsize=FLOAT64)

    def refusal(self, vectors: Vectors) -> tuple[str, str]:
        """The exact Hessian of these `vectors` by its name."""
        if self.chosen(vectors.workspace) == "exact":
            return _refusal(vectors.workspace.classifier.size)
        return super().refusal(vectors)

    def by_products(self, workspace: Workspace) -> bool:
        """As the Gauss-Newton matrix in the dual, of a `workspace` with gradients by sparse inputs."""
        if not isinstance(workspace.classifier.sample, SparseRows):
            return False
        dual = self.chosen(workspace) == "gauss_newton" and not _closed(workspace)
        return dual and dual_by_products(workspace)

    def settled(self, workspace: Workspace) -> "InverseHessian":
        """Of the kind that is chosen in a `workspace`; `negative` is of no interest where no eigenvalue is."""
        kind = self.chosen(workspace)
        positive = kind != "exact" or workspace.classifier.only_layer is not None
        return replace(self, kind=kind, negative="drop" if positive else self.negative)

    def chosen(self, workspace: Workspace) -> HessianKind:
        """The kind that was asked for; for "auto" the same for as long as the workspace is there."""
        return self.kind if self.kind != "auto" else workspace.once(CURVATURE, lambda: _affordable(workspace))

    def instead_of(self, workspace: Workspace) -> str | None:
        """What the memory budget of a `workspace` had no room for, where that decided on the kind."""
        kind, model = self.chosen(workspace), workspace.classifier
        best = "exact" if model.only_layer is not None or model.size <= EXACT else "gauss_newton"
        return NAMES[best] if self.kind == "auto" and kind != best else None


def _affordable(workspace: Workspace) -> HessianKind:
    """The first of the three that is."""
    model, budget = workspace.classifier, workspace.classifier.budget.bytes
    if (model.only_layer is not None or model.size <= EXACT) and _dense_bytes(model.size) <= budget:
        return "exact"
    return "gauss_newton" if min(true_fisher_bytes(workspace)) <= budget else "ekfac"


def _dense_bytes(p: int) -> int:
    return 4 * FLOAT64 * p * p


def _refusal(p: int) -> tuple[str, str]:
    what = f"The exact Hessian of {p} parameters"
    return what, "Use InverseHessian(kind='ekfac'), or a Fisher metric."


def _closed(workspace: Workspace) -> bool:
    """Whether the model is linear, and its Hessian, which is the Gauss-Newton matrix, fits as a whole."""
    return (
        workspace.classifier.only_layer is not None
        and _dense_bytes(workspace.classifier.size) <= workspace.classifier.budget.bytes
    )


def _dense(workspace: Workspace) -> Tensor:
    p = workspace.classifier.size
    workspace.classifier.budget.required(_dense_bytes(p), *_refusal(p))
    compute = exact_hessian if workspace.classifier.only_layer is None else linear_hessian
    return compute(workspace.classifier, workspace.train)


hessian = InverseHessian()
