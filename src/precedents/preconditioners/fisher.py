"""M = the Fisher information of the training set: how the loss gradients scatter."""

from dataclasses import dataclass
from typing import Literal, get_args

import torch

from precedents.engine.gradients import sampled_gradients
from precedents.engine.memory import NUMBER, required, rows_per_block
from precedents.errors import InputError
from precedents.evidence import Evidence
from precedents.features.gradient import gradient
from precedents.preconditioners._inverse import Inverse, inverse_of_rows

Kind = Literal["empirical", "true", "mean_gradient"]


@dataclass(frozen=True)
class InverseFisher:
    """(F + damping x mean diagonal x I)^-1.

    empirical: the mean outer product of the gradients for the given labels.
    true: its expectation over the model's own labels, exact; equal to the Gauss-Newton matrix.
    mean_gradient: the outer product of the mean gradient, of rank one, as in the paper's published code.
    """

    kind: Kind = "empirical"
    damping: float = 1e-3  # relative to the mean of F's diagonal
    space = staticmethod(gradient)

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise InputError(f"kind is {self.kind!r}. Use one of: {', '.join(get_args(Kind))}.")

    def fit(self, evidence: Evidence) -> Inverse:
        """The inverse in the primal or the dual, whichever is smaller."""
        if self.kind == "true":
            return true_fisher(evidence, self.damping, "true Fisher")
        gradients = evidence.matrix(gradient)
        if self.kind == "mean_gradient":
            return inverse_of_rows(gradients.mean(dim=0, keepdim=True), self.damping, "mean gradient Fisher")
        return inverse_of_rows(gradients / len(gradients) ** 0.5, self.damping, "empirical Fisher")


def true_fisher(evidence: Evidence, damping: float, kind: str) -> Inverse:
    """The expected outer product of gradients over the model's own labels; the Gauss-Newton matrix."""
    return inverse_of_rows(evidence.once("true fisher", lambda: _expected_rows(evidence)), damping, kind)


def _expected_rows(evidence: Evidence) -> torch.Tensor:
    """Rows [n c, p] whose squares sum to the true Fisher."""
    model, train = evidence.model, evidence.train
    n, c, p = len(train), model.classes, model.size
    required(2 * NUMBER * n * c * p, f"The {n * c} x {p} Jacobian of the true Fisher", "Use fewer instances.")
    factor = torch.empty(n, c, p, dtype=torch.double)
    for batch in train.batches(rows_per_block(p)):
        for k, rows in enumerate(sampled_gradients(model, batch)):
            factor[batch.indices[0] : batch.indices[-1] + 1, k] = rows
    return factor.flatten(0, 1) / n**0.5


fisher = InverseFisher()
