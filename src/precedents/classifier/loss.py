"""The loss of one decision and its derivatives by the logits: cross entropy, or what a model was trained by."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from precedents.errors import InputError, NotApplicable
from precedents.runtime.users_code import users
from precedents.runtime.wording import a_type

Function = Callable[[Tensor, Tensor], Tensor]  # logits [b, c], labels [b] -> losses [b]


class Loss(Protocol):
    """A function of an instance's logits and its label."""

    @property
    def likelihood(self) -> bool:
        """Whether it is -log p of the label, for the softmax p."""

    def __call__(self, logits: Tensor, labels: Tensor, /) -> Tensor:
        """The losses [b] of logits [b, c]; the graph is kept."""

    def residuals(self, logits: Tensor, labels: Tensor, /) -> Tensor:
        """The gradients [b, c] by the logits, float64."""

    def curvature(self, logits: Tensor, labels: Tensor, k: int, /) -> Tensor:
        """Row k [b, c] of the second derivatives by the logits, float64."""

    def rank(self, classes: int, /) -> int:
        """How many roots there are."""

    def roots(self, logits: Tensor, labels: Tensor, /) -> list[Tensor]:
        """Vectors [b, c], float64, whose outer products sum to the second derivatives."""

    def merged(self) -> "Loss":
        """The loss for a model of other classes, as when some are merged."""


@dataclass(frozen=True)
class CrossEntropy:
    """Sum of -t log p over the classes: the label's t is one, less what smoothing spreads, times its weight."""

    weight: tuple[float, ...] | None = None  # of each class
    label_smoothing: float = 0.0

    @property
    def likelihood(self) -> bool:
        """Whether there are neither weights nor smoothing."""
        return self == CrossEntropy()

    def __call__(self, logits: Tensor, labels: Tensor) -> Tensor:
        """By torch's own."""
        weight = None if self.weight is None else logits.new_tensor(self.weight)
        smoothing = self.label_smoothing
        return cross_entropy(
            logits, labels.to(logits.device), weight, reduction="none", label_smoothing=smoothing
        )

    def __str__(self) -> str:
        weight = [] if self.weight is None else [f"weight={list(self.weight)}"]
        smoothing = [f"label_smoothing={self.label_smoothing}"] if self.label_smoothing else []
        said = ", ".join(weight + smoothing)
        return "cross entropy" + (f" with {said}" if said else "")

    def residuals(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Sum(t) softmax - t; the entry of the label is minus the sum of the others, without cancellation."""
        p, t = _softmax(logits), self._targets(logits, labels)
        others = (t.sum(dim=1, keepdim=True) * p - t).scatter(1, labels[:, None], 0.0)
        return others.scatter(1, labels[:, None], -others.sum(dim=1, keepdim=True))

    def curvature(self, logits: Tensor, labels: Tensor, k: int) -> Tensor:
        """Row k of sum(t) (diag p - p p^T)."""
        p, mass = _softmax(logits), self._targets(logits, labels).sum(dim=1, keepdim=True)
        own = torch.zeros_like(p)
        own[:, k] = 1
        return mass * p[:, k : k + 1] * (own - p)

    def rank(self, classes: int) -> int:
        """One less than there are classes."""
        return classes - 1

    def roots(self, logits: Tensor, labels: Tensor) -> list[Tensor]:
        """The columns of the Cholesky factor of sum(t) (diag p - p p^T), without cancellation.

        Column k spreads what class k takes from the later ones.
        """
        p, mass = _softmax(logits), self._targets(logits, labels).sum(dim=1)
        tail = p.flip(1).cumsum(1).flip(1)  # tail[k] = p[k] + p[k + 1] + ...
        columns = []
        for k in range(p.shape[1] - 1):
            rest = tail[:, k + 1 : k + 2]
            column = torch.zeros_like(p)
            column[:, k + 1 :] = torch.where(rest > 0, -p[:, k + 1 :] / rest, 0.0)
            column[:, k] = 1
            weight = torch.where(tail[:, k] > 0, p[:, k] * rest[:, 0] / tail[:, k], 0.0) * mass
            columns.append(column * weight.sqrt()[:, None])
        return columns

    def merged(self) -> Loss:
        """With the same smoothing; there are no weights for other classes."""
        if self.weight is not None:
            raise NotApplicable("The loss weighs the classes, and there are no weights for merged ones.")
        return self

    def _targets(self, logits: Tensor, labels: Tensor) -> Tensor:
        """T [b, c], float64."""
        c, smoothing = logits.shape[1], self.label_smoothing
        t = torch.full(logits.shape, smoothing / c, dtype=torch.double)
        t.scatter_(1, labels[:, None], 1 - smoothing + smoothing / c)
        return t if self.weight is None else t * torch.tensor(self.weight, dtype=torch.double)


@dataclass(frozen=True, eq=False)
class GivenLoss:
    """Any function of the logits and the labels; derivatives are by autograd, in float64 where it can."""

    function: Function
    precision: torch.dtype
    device: torch.device
    likelihood = False

    def __call__(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Of the function."""
        asked = logits.to(self.device, self.precision)
        with users("the loss"):
            losses = self.function(asked, labels.to(self.device))
        if not isinstance(losses, Tensor):
            raise InputError(f"The loss is {a_type(losses)} and no tensor. Return losses [b].")
        return losses.to(logits)

    def __str__(self) -> str:
        return "given"

    def residuals(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The gradients [b, c] by the logits, by autograd."""
        return self._first(logits, labels)[1].detach()

    def curvature(self, logits: Tensor, labels: Tensor, k: int) -> Tensor:
        """By autograd of the residuals; none where they are constant."""
        given, first = self._first(logits, labels)
        if not first.requires_grad:
            return torch.zeros_like(first)
        try:
            return torch.autograd.grad(first[:, k].sum(), given, materialize_grads=True)[0]
        except RuntimeError as error:
            raise NotApplicable(
                f"The given loss cannot be differentiated twice: {error}. Use a metric without a Hessian."
            ) from error

    def rank(self, classes: int) -> int:
        """As many as there are classes."""
        return classes

    def roots(self, logits: Tensor, labels: Tensor) -> list[Tensor]:
        """By eigenvectors; a loss that bends down somewhere has none."""
        rows = [self.curvature(logits, labels, k) for k in range(logits.shape[1])]
        values, vectors = torch.linalg.eigh(torch.stack(rows, dim=1))
        if bool((values < -1e-6 * values.abs().max()).any()):
            raise NotApplicable(
                "The given loss is not convex in the logits, so it has no Gauss-Newton matrix. "
                "Use the exact Hessian: hessian(kind=exact), or a Fisher metric."
            )
        return list((vectors * values.clamp(min=0).sqrt()[:, None]).unbind(dim=2))

    def merged(self) -> Loss:
        """The function itself, which may take any number of classes."""
        return self

    def _first(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of its own graph, and the derivatives by them, with a graph."""
        with torch.inference_mode(mode=False), torch.enable_grad():
            given = logits.detach().double().cpu().clone().requires_grad_()
            total = self(given, labels).sum()
            first = torch.autograd.grad(total, given, create_graph=True, materialize_grads=True)[0]
        return given, first


def _softmax(logits: Tensor) -> Tensor:
    return logits.double().softmax(dim=1)
