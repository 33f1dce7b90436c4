"""M = the Hessian of the mean training loss: how the loss bends around the trained parameters."""

from dataclasses import dataclass, replace
from typing import Literal

from torch import Tensor

from precedents.engine.hessian import exact_hessian, linear_hessian
from precedents.evidence import Evidence
from precedents.features.gradient import gradient
from precedents.preconditioners._inverse import Inverse, Negative, Spectrum, absolute, known_settings, spectrum
from precedents.preconditioners.ekfac import InverseEKFAC
from precedents.preconditioners.fisher import true_fisher, true_fisher_bytes, true_fisher_cost, whole
from precedents.runtime.cost import Cost
from precedents.runtime.memory import NUMBER

Kind = Literal["auto", "exact", "gauss_newton", "ekfac"]

EXACT = 2_000  # parameters up to which the exact Hessian takes seconds to minutes


@dataclass(frozen=True)
class InverseHessian:
    """(H + damping x mean absolute diagonal x I)^-1.

    exact: the Hessian itself; a network's has negative eigenvalues, which `negative` keeps or drops.
    gauss_newton: its positive semidefinite part that leaves out the curvature of the network.
    ekfac: an approximation of that by Kronecker products, for what is too large for it.
    auto: exact for linear models (in closed form) and up to 2,000 parameters, Gauss-Newton beyond, and EK-FAC
    where that does not fit into the memory budget. The fitted inverse says what it is.
    """

    kind: Kind = "auto"
    negative: Negative = "drop"
    damping: float = 1e-3  # relative to the mean absolute entry of H's diagonal
    space = staticmethod(gradient)

    def __post_init__(self) -> None:
        known_settings(kind=(self.kind, Kind), negative=(self.negative, Negative))

    def fit(self, evidence: Evidence) -> Inverse:
        """The inverse, with its spectrum where the matrix is held whole."""
        kind = self.chosen(evidence)
        if kind == "ekfac":
            return InverseEKFAC(self.damping).fit(evidence)
        if kind == "gauss_newton" and not _closed(evidence):
            key = ("gauss-newton", self.damping)
            return evidence.matrix(key, lambda: true_fisher(evidence, self.damping, "Gauss-Newton"))
        hessian = evidence.matrix("hessian", lambda: _dense(evidence))
        if evidence.model.head is not None:  # of a linear model: positive semidefinite
            key = ("hessian inverse", self.damping)
            return evidence.matrix(key, lambda: whole(hessian.clone(), self.damping, "exact Hessian"))
        values, vectors = evidence.matrix("hessian spectrum", lambda: spectrum(hessian))
        name = "exact Hessian" if kind == "exact" else "Gauss-Newton"
        ridge = absolute(self.damping, float(hessian.diagonal().abs().mean()))
        return Spectrum(vectors, values, ridge, name, keep=self.negative == "keep")

    def cost(self, evidence: Evidence, m: int) -> Cost:
        """Of the exact Hessian row by row or in closed form, of Gauss-Newton, or of EK-FAC."""
        model, n, p = evidence.model, len(evidence.train), evidence.model.size
        kind = self.chosen(evidence)
        if kind == "ekfac":
            return InverseEKFAC(self.damping).cost(evidence, m)
        if kind == "gauss_newton" and not _closed(evidence):
            return true_fisher_cost(evidence, m)
        applied = 2.0 * (n + m) * p * p
        closed = model.head is not None
        flops, passes = (n * p * p + p**3 / 3 + applied, 1) if closed else (10.0 * p**3 + applied, 4 * p)
        return Cost(flops, passes, _dense_bytes(p), disk=NUMBER * p * p, number=NUMBER)

    def settled(self, evidence: Evidence) -> "InverseHessian":
        """Of the kind that is chosen here; `negative` is of no interest where no eigenvalue is."""
        kind = self.chosen(evidence)
        positive = kind != "exact" or evidence.model.head is not None
        return replace(self, kind=kind, negative="drop" if positive else self.negative)

    def chosen(self, evidence: Evidence) -> Kind:
        """The kind that was asked for; for "auto" the same for as long as the evidence is there."""
        return self.kind if self.kind != "auto" else evidence.once("curvature", lambda: _affordable(evidence))


def _affordable(evidence: Evidence) -> Kind:
    """The first of the three that is."""
    model, budget = evidence.model, evidence.model.budget.bytes
    if (model.head is not None or model.size <= EXACT) and _dense_bytes(model.size) <= budget:
        return "exact"
    return "gauss_newton" if min(true_fisher_bytes(evidence)) <= budget else "ekfac"


def _dense_bytes(p: int) -> int:
    return 4 * NUMBER * p * p


def _closed(evidence: Evidence) -> bool:
    """Whether the model is linear, and its Hessian, which is the Gauss-Newton matrix, fits as a whole."""
    return evidence.model.head is not None and _dense_bytes(evidence.model.size) <= evidence.model.budget.bytes


def _dense(evidence: Evidence) -> Tensor:
    p = evidence.model.size
    evidence.model.budget.required(
        _dense_bytes(p),
        f"The exact Hessian of {p} parameters",
        "Use InverseHessian(kind='ekfac'), or a Fisher metric.",
    )
    compute = exact_hessian if evidence.model.head is None else linear_hessian
    return compute(evidence.model, evidence.train)


hessian = InverseHessian()
