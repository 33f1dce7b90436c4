"""M = the Fisher information of the training set: how the loss gradients scatter."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor

from precedents.curvature.dual import diagonal, solved
from precedents.curvature.gauss_newton import fisher_factor, fisher_matrix, fisher_rows
from precedents.curvature.gram import gradient_gram
from precedents.errors import NotApplicable
from precedents.gradients.gradients import row_size
from precedents.gradients.rows import Rows
from precedents.metrics.features.gradient import gradient
from precedents.metrics.kernel import Kernel
from precedents.metrics.preconditioners._by_products import LowRankByProducts
from precedents.metrics.preconditioners._inverse import (
    Description,
    Inverse,
    Negative,
    Preconditioner,
    absolute,
    checked_damping,
    known_settings,
)
from precedents.metrics.preconditioners._structures import (
    LowRankPlusRidge,
    Spectrum,
    Triangular,
    damped_root,
    low_rank_description,
    spectrum,
)
from precedents.metrics.vectors import Question, Vectors
from precedents.metrics.workspace import Workspace
from precedents.runtime.budget import FLOAT64
from precedents.runtime.cache import Slot
from precedents.runtime.cost import Cost
from precedents.runtime.sparse import SparseRows

PHRASE = "after weighting by the Fisher matrix"

FisherKind = Literal["empirical", "true", "mean_gradient", "published"]
GRAM: Slot[Tensor] = Slot("Gram matrix of the gradients", large=True)
MATRIX: Slot[Tensor] = Slot("true Fisher matrix", large=True)
FACTOR: Slot[Tensor] = Slot("rows of the true Fisher matrix", large=True)
ROOTS: Slot[Rows] = Slot("factors of the rows of the true Fisher matrix", large=True)
PUBLISHED: Slot[tuple[Tensor, Tensor, float]] = Slot("spectrum of the published Fisher matrix", large=True)

SPARSE = 8  # how much slower numbers are multiplied that are found by their places
SMALL = 1_500  # parameters up to which the whole spectrum costs no more than a few seconds


@dataclass(frozen=True)
class InverseFisher(Preconditioner):
    """(F + damping x mean diagonal x I)^-1.

    empirical: the mean outer product of the gradients for the given labels.
    true: its expectation over the model's own labels, exact; equal to the Gauss-Newton matrix.
    mean_gradient: the outer product of the mean gradient, of rank one.
    published: the same with its entries in float32, as in the paper's published code. At the damping there,
    1e-10 of the mean absolute entry, its inverse is mostly their rounding, which has negative eigenvalues that
    `negative` keeps or drops: for comparison alone.

    >>> import torch, precedents as pr
    >>> train = torch.eye(4), torch.tensor([0, 1, 0, 1])
    >>> fitted = pr.metric("dot:gradient/fisher(damping=0.1)").fit(torch.nn.Linear(4, 2), train)
    >>> print(fitted.inverse.description)  # doctest: +ELLIPSIS
    empirical Fisher, 10 x 10 as a low rank plus ridge, damping ..., definite
    """

    kind: FisherKind = "empirical"
    negative: Negative = "drop"  # of interest to `published` alone
    damping: float = 1e-3  # relative to the mean of F's diagonal
    features = staticmethod(gradient)

    def __post_init__(self) -> None:
        checked_damping(self.damping)
        known_settings(kind=(self.kind, FisherKind), negative=(self.negative, Negative))

    def fit(self, vectors: Vectors) -> Inverse:
        """The inverse for these `vectors`, in the primal or the dual, whichever is smaller."""
        workspace, n, p = vectors.workspace, len(vectors), vectors.workspace.classifier.size
        if self.kind == "true":
            return true_fisher(_likelihood(workspace), self.damping, "true Fisher")
        if self.kind == "mean_gradient":
            mean = _mean_gradient(vectors)[None]
            ridge = absolute(self.damping, float(mean.square().sum()) / p)
            return LowRankPlusRidge.of(mean, ridge, "mean gradient Fisher")
        if self.kind == "published":
            values, basis, size = workspace.once(PUBLISHED, lambda: _published(vectors))
            ridge, kind = absolute(self.damping, size), "mean gradient Fisher in float32"
            return Spectrum(basis, values, ridge, kind, keep=self.negative == "keep")
        if p <= n:
            parts = (rows.dense() for _, rows in vectors.blocks())
            matrix = sum((rows.T @ rows / n for rows in parts), torch.zeros(p, p, dtype=torch.double))
            return whole(matrix, self.damping, "empirical Fisher")
        gram = workspace.once(GRAM, lambda: gradient_gram(workspace.classifier, workspace.train))
        ridge = absolute(self.damping, float(gram.diagonal().sum()) / (n * p))
        root = damped_root(gram.clone(), n * ridge)
        return Dual(root, n * diagonal(gram, root), ridge, p, workspace)

    def by_products(self, workspace: Workspace) -> bool:
        """In the dual, of gradients by sparse inputs; the `workspace` knows both."""
        if self.kind == "true":
            return dual_by_products(workspace)
        sparse = isinstance(workspace.classifier.sample, SparseRows)
        return sparse and self.kind == "empirical" and workspace.classifier.size > len(workspace.train)

    def settled(self, workspace: Workspace) -> "InverseFisher":  # noqa: ARG002
        """`negative` is of no interest where no eigenvalue is, in any `workspace`."""
        return self if self.kind == "published" else replace(self, negative="drop")

    def cost(self, vectors: Vectors, m: int) -> Cost:
        """Of the empirical Fisher of `vectors` in the dual: Gram matrix, factor, solves, with m cases."""
        n, p = len(vectors), vectors.workspace.classifier.size
        if self.kind == "true":
            return true_fisher_cost(vectors.workspace, m)
        if self.kind == "mean_gradient":
            return Cost(flops=4.0 * (n + m) * p, passes=1)
        if self.kind == "published":
            applied = 2.0 * (n + m) * p * p
            return Cost(10.0 * p**3 + applied, passes=1, bytes=4 * FLOAT64 * p * p, disk=FLOAT64 * p * p)
        if p <= n:
            flops, square = 2.0 * n * p * p + 10.0 * p**3 + 2.0 * (n + m) * p * p, FLOAT64 * p * p
            return Cost(flops, bytes=3 * square, disk=square, itemsize=FLOAT64)
        pair, square = _pair(vectors.workspace), FLOAT64 * n * n
        flops = n * n * (pair + 5 / 3 * n + 2 * m) + 2.0 * n * m * pair
        return Cost(flops, passes=1, bytes=3 * square, disk=square)


@dataclass(frozen=True, eq=False)
class Dual(Inverse):
    """(G^T G / n + ridge I)^-1 for gradients G [n, p], known by their inner products T = G G^T alone.

    With S = T + n ridge I, the kernel of a case's products c = G a with the training set is n c^T S^-1.
    """

    root: Tensor = field(repr=False)  # the Cholesky factor of S [n, n]
    squares: Tensor = field(repr=False)  # of the training instances: the diagonal of n T S^-1
    ridge: float
    size: int
    workspace: Workspace = field(repr=False)
    definite = True

    @property
    def description(self) -> Description:
        """With the smallest eigenvalue exact, the largest by power iteration."""
        inner = self.root / len(self.root) ** 0.5
        return low_rank_description("empirical Fisher", self.size, self.ridge, inner)

    def solve(self, rows: Tensor) -> Tensor:
        """(rows - rows G^T S^-1 G) / ridge, going through the training set twice."""
        vectors = Vectors.of(self.workspace, gradient, weighed=True)
        products = torch.cat([block.dense() @ rows.T for _, block in vectors.blocks()])
        inside = solved(self.root, products)
        seen = torch.zeros_like(rows)
        for places, block in vectors.blocks():
            seen += inside[places.start : places.stop].T @ block.dense()
        return (rows - seen) / self.ridge

    def kernels(self, question: Question) -> Iterator[Kernel]:
        """From the products of the cases with the training set, without forming anything of length p."""
        case = question.case_rows().doubled()
        blocks = [case.products(rows.doubled()) for _, rows in question.train_blocks()]
        products = torch.cat(blocks, dim=1)  # [m, n]
        inside = solved(self.root, products.T).T
        case_sq = (case.squares() - (products * inside).sum(dim=1)) / self.ridge
        yield Kernel(len(self.root) * inside, case_sq, self.squares)


def _likelihood(workspace: Workspace) -> Workspace:
    """The workspace, if its loss is a likelihood, to which a true Fisher matrix belongs."""
    if not workspace.classifier.loss.likelihood:
        raise NotApplicable(
            "The true Fisher matrix belongs to a likelihood, which a loss with weights, smoothing or a "
            "form of its own is not. Use fisher(kind=empirical) or hessian(kind=gauss_newton)."
        )
    return workspace


def _published(vectors: Vectors) -> tuple[Tensor, Tensor, float]:
    """The spectrum of the outer product of the mean gradient in float32, and its mean absolute entry."""
    p = vectors.workspace.classifier.size
    vectors.workspace.classifier.budget.required(
        4 * FLOAT64 * p * p, f"The spectrum of a matrix of {p} parameters", "Use kind=mean_gradient instead."
    )
    mean = _mean_gradient(vectors).float()
    return *spectrum((mean[:, None] * mean[None, :]).double()), float(mean.double().abs().mean()) ** 2


def _mean_gradient(vectors: Vectors) -> Tensor:
    """Of the training set [p]."""
    sums = (rows.dense().sum(dim=0) for _, rows in vectors.blocks())
    return sum(sums, torch.zeros(vectors.workspace.classifier.size)) / len(vectors)


def true_fisher(workspace: Workspace, damping: float, kind: str) -> Inverse:
    """The Gauss-Newton matrix: of cross entropy, the mean gradient square over the model's own labels."""
    model, train = workspace.classifier, workspace.train
    n, p = len(train), model.size
    primal, dual = true_fisher_bytes(workspace)
    model.budget.required(
        min(primal, dual),
        f"The {kind} matrix of {p} parameters and {n} instances",
        "Use fewer training instances, a Fisher metric, or cosine:gradient/ekfac.",
    )
    if primal <= dual:
        if FLOAT64 * p * p > model.budget.kept(streamed=False):
            return whole(fisher_matrix(model, train), damping, kind)
        matrix = workspace.once(MATRIX, lambda: fisher_matrix(model, train))
        return whole(matrix.clone(), damping, kind)
    if dual_by_products(workspace):
        rows = workspace.once(ROOTS, lambda: fisher_rows(model, train))
        rows = replace(rows, scale=rows.scale / n**0.5)
        return LowRankByProducts.of(rows, absolute(damping, float(rows.squares().sum()) / p), kind)
    factor = workspace.once(FACTOR, lambda: fisher_factor(model, train) / n**0.5)
    return LowRankPlusRidge.of(factor, absolute(damping, float(factor.square().sum()) / p), kind)


def true_fisher_cost(workspace: Workspace, m: int) -> Cost:
    """In the smaller of the primal and the dual."""
    model, n = workspace.classifier, len(workspace.train)
    rank, p = model.loss.rank(model.classes), model.size
    rows = n * rank
    primal, dual = true_fisher_bytes(workspace)
    pair = _pair(workspace) if primal > dual else p
    small, large = (p, rows) if primal <= dual else (rows, pair)
    flops = 1.0 * small * small * large + small**3 / 3
    flops += (n + m) * small * (small + 2.0 * pair) + 2.0 * n * m * pair
    disk = FLOAT64 * (p * p if primal <= dual else rows * (_stored(workspace) + rows + n))
    return Cost(flops, passes=rank, bytes=min(primal, dual), disk=disk, itemsize=FLOAT64 * (primal <= dual))


def true_fisher_bytes(workspace: Workspace) -> tuple[int, int]:
    """In the primal and in the dual."""
    model = workspace.classifier
    rows, p = len(workspace.train) * model.loss.rank(model.classes), model.size
    squares = 3 if isinstance(model.sample, SparseRows) else 2  # inner products of both factors are held
    return 2 * FLOAT64 * p * p, FLOAT64 * (rows * _stored(workspace) + squares * rows * rows)


def dual_by_products(workspace: Workspace) -> bool:
    """Whether the Gauss-Newton matrix is inverted in the dual, of gradients by sparse inputs."""
    primal, dual = true_fisher_bytes(workspace)
    return isinstance(workspace.classifier.sample, SparseRows) and dual < primal


def _stored(workspace: Workspace) -> int:
    """How many numbers of a gradient are held: fewer than there are parameters, of sparse inputs."""
    model = workspace.classifier
    return row_size(model)[2] if isinstance(model.sample, SparseRows) else model.size


def _pair(workspace: Workspace) -> int:
    """Multiplications for an inner product of two gradients, or what takes as long."""
    sparse = isinstance(workspace.classifier.sample, SparseRows)
    return SPARSE * _stored(workspace) if sparse else workspace.classifier.size


def whole(matrix: Tensor, damping: float, kind: str) -> Inverse:
    """A positive semidefinite matrix [p, p] inverted by its spectrum where that is cheap, else by Cholesky."""
    ridge = absolute(damping, float(matrix.diagonal().mean()))
    if len(matrix) <= SMALL:
        values, vectors = spectrum(matrix)
        return Spectrum(vectors, values.clamp(min=0), ridge, kind)
    return Triangular(damped_root(matrix, ridge), ridge, kind)


fisher = InverseFisher()
