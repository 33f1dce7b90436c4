"""M = the Fisher information of the training set: how the loss gradients scatter."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, get_args

import torch
from torch import Tensor

from precedents.data import Examples
from precedents.engine.gram import exact_products, fisher_factor, fisher_matrix, gradient_gram
from precedents.engine.rows import joined
from precedents.errors import InputError
from precedents.evidence import Evidence, Features
from precedents.features.gradient import gradient
from precedents.kernel import Kernel
from precedents.preconditioners._inverse import (
    Description,
    Inverse,
    LowRankPlusRidge,
    Spectrum,
    Triangular,
    absolute,
    damped_root,
    low_rank_description,
    spectrum,
)
from precedents.runtime.cost import Cost
from precedents.runtime.memory import NUMBER

Kind = Literal["empirical", "true", "mean_gradient"]
SMALL = 1_500  # parameters up to which the whole spectrum costs no more than a few seconds


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
        n, p = len(evidence.train), evidence.model.size
        if self.kind == "true":
            return true_fisher(evidence, self.damping, "true Fisher")
        if self.kind == "mean_gradient":
            total = sum((rows.dense().sum(dim=0) for _, rows in evidence.train_rows(gradient)), torch.zeros(p))
            mean = (total / n)[None]
            ridge = absolute(self.damping, float(mean.square().sum()) / p)
            return LowRankPlusRidge(mean, ridge, "mean gradient Fisher")
        if p <= n:
            parts = (rows.dense() for _, rows in evidence.train_rows(gradient))
            matrix = sum((rows.T @ rows / n for rows in parts), torch.zeros(p, p, dtype=torch.double))
            return whole(matrix, self.damping, "empirical Fisher")
        gram = evidence.once("gram", lambda: gradient_gram(evidence.model, evidence.train))
        ridge = absolute(self.damping, float(gram.diagonal().sum()) / (n * p))
        return Dual(gram, damped_root(gram.clone(), n * ridge), ridge, p, evidence)

    def cost(self, evidence: Evidence, m: int) -> Cost:
        """Of the empirical Fisher in the dual: the Gram matrix, its factor, and solves for all instances."""
        n, p = len(evidence.train), evidence.model.size
        if self.kind == "true":
            return true_fisher_cost(evidence, m)
        if self.kind == "mean_gradient":
            return Cost(flops=4.0 * (n + m) * p, passes=1)
        if p <= n:
            return Cost(flops=2.0 * n * p * p + 10.0 * p**3 + 2.0 * (n + m) * p * p, bytes=3 * NUMBER * p * p)
        return Cost(flops=n * n * (p + 7 / 3 * n + 2 * m) + 2.0 * n * m * p, passes=1, bytes=3 * NUMBER * n * n)


@dataclass(frozen=True, eq=False)
class Dual:
    """(G^T G / n + ridge I)^-1 for gradients G [n, p], known by their inner products T = G G^T alone.

    With S = T + n ridge I, the kernel of a case's products c = G a with the training set is n c^T S^-1.
    """

    gram: Tensor = field(repr=False)  # T [n, n]
    root: Tensor = field(repr=False)  # the Cholesky factor of S
    ridge: float
    size: int
    evidence: Evidence = field(repr=False)
    definite = True

    @property
    def description(self) -> Description:
        """With the smallest eigenvalue exact, the largest by power iteration."""
        inner = self.root / len(self.gram) ** 0.5
        return low_rank_description("empirical Fisher", self.size, self.ridge, inner)

    def solve(self, rows: Tensor) -> Tensor:
        """(rows - rows G^T S^-1 G) / ridge, going through the training set twice."""
        blocks = [(places, block.dense()) for places, block in self.evidence.train_rows(gradient)]
        inside = torch.cholesky_solve(torch.cat([block @ rows.T for _, block in blocks]), self.root)
        seen = sum((inside[p.start : p.stop].T @ block for p, block in blocks), torch.zeros_like(rows))
        return (rows - seen) / self.ridge

    def kernels(self, evidence: Evidence, features: Features, cases: Examples) -> Iterator[Kernel]:
        """From the products of the cases with the training set, without forming anything of length p."""
        n = len(self.gram)
        case = joined(evidence.rows(features, cases), len(cases))
        blocks = [exact_products(case, rows) for _, rows in evidence.train_rows(features)]
        products = torch.cat(blocks, dim=1)  # [m, n]
        inside = torch.cholesky_solve(products.T, self.root).T
        case_sq = (case.squares() - (products * inside).sum(dim=1)) / self.ridge

        def train_squares() -> Tensor:
            return n * torch.cholesky_solve(self.gram, self.root).diagonal().clone()

        yield Kernel(n * inside, case_sq, evidence.once(("squares", self), train_squares))


def true_fisher(evidence: Evidence, damping: float, kind: str) -> Inverse:
    """The expected outer product of gradients over the model's own labels; the Gauss-Newton matrix."""
    model, train = evidence.model, evidence.train
    n, p = len(train), model.size
    primal, dual = true_fisher_bytes(evidence)
    model.budget.required(
        min(primal, dual),
        f"The {kind} matrix of {p} parameters and {n} instances",
        "Use fewer training instances, a Fisher metric, or cosine:gradient/ekfac.",
    )
    if primal <= dual:
        matrix = evidence.once("true fisher", lambda: fisher_matrix(model, train))
        return whole(matrix.clone(), damping, kind)
    factor = evidence.once("true fisher rows", lambda: fisher_factor(model, train) / n**0.5)
    return LowRankPlusRidge(factor, absolute(damping, float(factor.square().sum()) / p), kind)


def true_fisher_cost(evidence: Evidence, m: int) -> Cost:
    """In the smaller of the primal and the dual."""
    model, n = evidence.model, len(evidence.train)
    rows, p = n * (model.classes - 1), model.size
    primal, dual = true_fisher_bytes(evidence)
    small, large = (p, rows) if primal <= dual else (rows, p)
    flops = 1.0 * small * small * large + small**3 / 3 + (n + m) * small * (small + 2.0 * p) + 2.0 * n * m * p
    return Cost(flops=flops, passes=model.classes - 1, bytes=min(primal, dual))


def true_fisher_bytes(evidence: Evidence) -> tuple[int, int]:
    """In the primal and in the dual."""
    rows, p = len(evidence.train) * (evidence.model.classes - 1), evidence.model.size
    return 2 * NUMBER * p * p, NUMBER * (rows * p + 2 * rows * rows)


def whole(matrix: Tensor, damping: float, kind: str) -> Inverse:
    """A positive semidefinite matrix [p, p] inverted by its spectrum where that is cheap, else by Cholesky."""
    ridge = absolute(damping, float(matrix.diagonal().mean()))
    if len(matrix) <= SMALL:
        values, vectors = spectrum(matrix)
        return Spectrum(vectors, values.clamp(min=0), ridge, kind)
    return Triangular(damped_root(matrix, ridge), ridge, kind)


fisher = InverseFisher()
