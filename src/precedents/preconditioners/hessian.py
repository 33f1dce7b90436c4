"""M = the Hessian of the mean training loss: how the loss bends around the trained parameters."""

from dataclasses import dataclass
from typing import Literal, get_args

from torch import Tensor

from precedents.engine.hessian import exact_hessian, linear_hessian
from precedents.errors import InputError
from precedents.evidence import Evidence
from precedents.features.gradient import gradient
from precedents.model import Classifier
from precedents.preconditioners._inverse import Inverse, Spectrum, absolute, spectrum
from precedents.preconditioners.fisher import true_fisher, true_fisher_cost
from precedents.runtime.cost import Cost
from precedents.runtime.memory import NUMBER

Kind = Literal["auto", "exact", "gauss_newton"]
Negative = Literal["drop", "keep"]

EXACT = 2_000  # parameters up to which the exact Hessian takes seconds to minutes


@dataclass(frozen=True)
class InverseHessian:
    """(H + damping x mean absolute diagonal x I)^-1.

    exact: the Hessian itself; a network's has negative eigenvalues, which `negative` keeps or drops.
    gauss_newton: its positive semidefinite part that leaves out the curvature of the network.
    auto: exact for linear models (in closed form) and up to 2,000 parameters, Gauss-Newton beyond.
    """

    kind: Kind = "auto"
    negative: Negative = "drop"
    damping: float = 1e-3  # relative to the mean absolute entry of H's diagonal
    space = staticmethod(gradient)

    def __post_init__(self) -> None:
        for name, value, known in (("kind", self.kind, Kind), ("negative", self.negative, Negative)):
            if value not in get_args(known):
                raise InputError(f"{name} is {value!r}. Use one of: {', '.join(get_args(known))}.")

    def fit(self, evidence: Evidence) -> Inverse:
        """The inverse, with its spectrum where the matrix is held whole."""
        model = evidence.model
        exact = self._is_exact(model)
        if model.head is None and not exact:
            key = ("gauss-newton", self.damping)
            return evidence.once(key, lambda: true_fisher(evidence, self.damping, "Gauss-Newton"))
        hessian = evidence.once("hessian", lambda: _dense(evidence))
        values, vectors = evidence.once("hessian spectrum", lambda: spectrum(hessian))
        kind = "exact Hessian" if exact else "Gauss-Newton"
        keep = self.negative == "keep"
        ridge = absolute(self.damping, float(hessian.diagonal().abs().mean()))
        return Spectrum(vectors, values, ridge, kind, keep)

    def cost(self, evidence: Evidence, m: int) -> Cost:
        """Of the exact Hessian row by row or in closed form, or of the Gauss-Newton matrix."""
        model, n, p = evidence.model, len(evidence.train), evidence.model.size
        if model.head is None and not self._is_exact(model):
            return true_fisher_cost(evidence, m)
        solved = 10.0 * p**3 + 2.0 * (n + m) * p * p
        if model.head is not None:
            return Cost(flops=n * p * p + solved, passes=1, bytes=4 * NUMBER * p * p)
        return Cost(flops=solved, passes=4 * p, bytes=4 * NUMBER * p * p)

    def _is_exact(self, model: Classifier) -> bool:
        small = model.head is not None or model.size <= EXACT
        return self.kind == "exact" or (self.kind == "auto" and small)


def _dense(evidence: Evidence) -> Tensor:
    p = evidence.model.size
    evidence.model.budget.required(
        4 * NUMBER * p * p,
        f"The exact Hessian of {p} parameters",
        "Use InverseHessian(kind='gauss_newton'), or a Fisher metric.",
    )
    compute = exact_hessian if evidence.model.head is None else linear_hessian
    return compute(evidence.model, evidence.train)


hessian = InverseHessian()
