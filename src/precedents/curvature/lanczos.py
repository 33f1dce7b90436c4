"""The extreme eigenvalues of the exact Hessian, from its products with vectors: the matrix is never formed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.curvature.attention import FormulaOfAttention, refuse_nested
from precedents.curvature.going_on import going_on
from precedents.curvature.hessian import twice_differentiable
from precedents.data.examples import Batch, Examples
from precedents.gradients.gradients import planned
from precedents.runtime.budget import FLOAT64
from precedents.runtime.checkpoint import Sums

TOLERANCE = 1e-8  # of the residuals, relative to the largest eigenvalue in absolute value
STEPS_PER_PAIR = 6  # products with a vector for each wanted pair, at most
PAUSE_STEPS = 10  # steps between two looks at the residuals


@dataclass(frozen=True, eq=False)
class Eigenpairs:
    """Some eigenvalues of a symmetric matrix H with their eigenvectors."""

    values: Tensor  # [k], ascending
    vectors: Tensor = field(repr=False)  # [p, k], orthonormal columns
    residual: float  # the largest |H v - value v|, relative to the largest |value|
    steps: int  # how many products with H were taken


def hessian_eigenpairs(model: Classifier, train: Examples, rank: int) -> Eigenpairs:
    """The eigenpairs of the Hessian whose eigenvalues are largest in absolute value, by Lanczos."""
    p, size = model.size, planned(model).size
    rank = min(rank, p)
    steps = min(p, STEPS_PER_PAIR * rank + 10 * PAUSE_STEPS)
    model.budget.required(
        FLOAT64 * p * (steps + 2 * rank), f"A Lanczos basis of {steps} vectors", "Use a smaller rank."
    )
    doubled = twice_differentiable(model).doubled()

    def left(steps: Sequence[int], sums: Sums) -> Iterator[int]:
        return going_on(steps, "Lanczos", (model, train), sums)

    return lanczos(lambda v: _product(doubled, train, v[None], size)[0], p, rank, steps, left=left)


@dataclass(eq=False)
class Krylov:
    """The basis that Lanczos has so far, the matrix in it, and where fresh directions come from."""

    basis: Tensor  # [steps, p], of which `count` rows are known
    inner: Tensor  # [steps, steps], the matrix in the basis, tridiagonal
    random: torch.Generator
    count: int = 0

    @classmethod
    def of(cls, steps: int, size: int) -> "Krylov":
        """One direction."""
        basis = torch.empty(steps, size, dtype=torch.double)
        made = cls(basis, torch.zeros(steps, steps, dtype=torch.double), torch.Generator().manual_seed(0))
        made.add(_fresh(made.random, basis[:0]))
        return made

    def add(self, vector: Tensor) -> None:
        """One direction more."""
        self.basis[self.count] = vector
        self.count += 1

    def parts(self) -> Mapping[str, Tensor]:
        """What is known."""
        return {
            "basis": self.basis[: self.count],
            "inner": self.inner,
            "random": self.random.get_state(),
        }

    def put(self, parts: Mapping[str, Tensor]) -> None:
        """Copies what is known."""
        self.count = len(parts["basis"])
        self.basis[: self.count] = parts["basis"]
        self.inner.copy_(parts["inner"])
        self.random.set_state(parts["random"].clone())


def lanczos(
    times: Callable[[Tensor], Tensor],
    size: int,
    rank: int,
    steps: int,
    tolerance: float = TOLERANCE,
    left: Callable[[Sequence[int], Sums], Iterable[int]] = lambda steps, _: steps,
) -> Eigenpairs:
    """The `rank` eigenpairs of largest absolute value of a symmetric matrix, by its products with vectors.

    The start is fixed and every vector is made orthogonal to all before it, twice. When nothing new is
    left, the basis goes on with a fresh direction: after `size` steps it is complete. It ends when the
    residuals of the wanted pairs are small, or after `steps`, with the pairs as good as they are then.
    `left` are those of the steps that are left, after it has brought the sums to where they were.
    """
    krylov = Krylov.of(steps, size)
    inner = krylov.inner
    for step in left(range(steps), krylov):
        known = krylov.basis[: step + 1]
        rest = times(known[step])
        inner[step, step] = known[step] @ rest
        rest = _orthogonal(rest, known)
        length = float(rest.norm())
        last = step + 1 == steps
        if last or (step + 1 >= rank and step % PAUSE_STEPS == 0):
            values, vectors = torch.linalg.eigh(inner[: step + 1, : step + 1])
            wanted = values.abs().argsort(descending=True, stable=True)[:rank].sort().values
            largest = float(values.abs().max())
            residual = 0.0 if step + 1 == size else length * float(vectors[-1, wanted].abs().max())
            if last or residual <= tolerance * largest:
                break
        if length <= 1e-13 * float(inner.abs().max()):  # an invariant subspace, to rounding
            krylov.add(_fresh(krylov.random, known))
        else:
            krylov.add(rest / length)
            inner[step, step + 1] = inner[step + 1, step] = length
    relative = residual / largest if largest > 0 else 0.0
    return Eigenpairs(values[wanted], known.T @ vectors[:, wanted], relative, step + 1)


def _fresh(random: torch.Generator, known: Tensor) -> Tensor:
    """A direction of length one that is orthogonal to all that are known."""
    vector = torch.randn(known.shape[1], dtype=torch.double, generator=random)
    vector = _orthogonal(vector, known)
    return vector / vector.norm()


def _orthogonal(vector: Tensor, known: Tensor) -> Tensor:
    for _ in range(2):
        vector = vector - (known @ vector) @ known
    return vector


def _product(model: Classifier, train: Examples, vectors: Tensor, size: int) -> Tensor:
    """H v for each row v [k, p], with the Hessian H of the mean training loss; exact, in float64."""
    total = torch.zeros_like(vectors)
    for start in range(0, len(train), size):
        batch = train.take(range(start, min(start + size, len(train))))
        for i, product in enumerate(_batch_products(model, batch, vectors)):
            total[i] += product
    return total / len(train)


def _batch_products(model: Classifier, batch: Batch, vectors: Tensor) -> Iterator[Tensor]:
    """The Hessian of the batch's summed loss times each vector: the gradient is differentiated along it."""
    parameters = list(model.parameters.values())
    with torch.enable_grad():
        refuse_nested(batch.inputs)
        with FormulaOfAttention():  # which can be differentiated twice
            logits = model.logits(batch.inputs)
        model.checked_logits(logits.detach(), batch.indices)
        loss = model.loss(logits, batch.labels).sum()
        gradient = torch.autograd.grad(loss, parameters, create_graph=True, materialize_grads=True)
    counts = [p.numel() for p in parameters]
    for vector in vectors:
        pieces = [v.to(p).view_as(p) for v, p in zip(vector.split(counts), parameters, strict=True)]
        parts = torch.autograd.grad(gradient, parameters, pieces, retain_graph=True, materialize_grads=True)
        yield torch.cat([part.to_dense().flatten() for part in parts]).cpu()
