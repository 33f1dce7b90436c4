"""Metric = features x preconditioner x similarity; Relevance = the metric fitted to a model and a training set.

R(case, train) = s(K, q, t)     K = phi(case) M^-1 phi(train)^T     q, t = the same kernel's two diagonals
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from precedents.adapters._find import read
from precedents.classifier.classifier import Classifier
from precedents.data.examples import Examples
from precedents.errors import InputError
from precedents.metrics import features as feature_maps
from precedents.metrics import preconditioners, similarities
from precedents.metrics.kernel import Kernel
from precedents.metrics.preconditioners._inverse import Inverse, Preconditioner
from precedents.metrics.preconditioners.identity import identity
from precedents.metrics.ranking import TopK, checked_k, ranked
from precedents.metrics.workspace import Features, Workspace
from precedents.registry import Registry, written
from precedents.runtime.budget import FLOAT64
from precedents.runtime.cost import Estimate, elapsed, speed

Similarity = Callable[[Kernel], Tensor]

FEATURES: Registry[Features] = Registry("feature map", feature_maps)
PRECONDITIONERS: Registry[Preconditioner] = Registry("preconditioner", preconditioners)
SIMILARITIES: Registry[Similarity] = Registry("similarity", similarities)


@dataclass(frozen=True)
class Metric:
    """How relevant a training instance is to a case, written as `similarity:features/preconditioner`."""

    features: Features
    similarity: Similarity
    preconditioner: Preconditioner = identity

    def __post_init__(self) -> None:
        space = self.preconditioner.space
        if space is not None and space is not self.features:
            raise InputError(
                f"The preconditioner {written(self.preconditioner)} acts on the features {written(space)}, "
                f"not on {written(self.features)}. Write {written(self.similarity)}:{written(space)}/"
                f"{written(self.preconditioner)}, or leave the preconditioner out."
            )

    @classmethod
    def read(cls, text: str) -> "Metric":
        """The metric that a text such as `cosine:gradient/hessian(damping=0.01)` writes."""
        similarity, colon, rest = text.partition(":")
        features, _, preconditioner = rest.partition("/")
        if not colon:
            raise InputError(f"{text!r} is no metric. Write similarity:features/preconditioner.")
        return cls(
            FEATURES.read(features),
            SIMILARITIES.read(similarity),
            PRECONDITIONERS.read(preconditioner or "identity"),
        )

    def __str__(self) -> str:
        base = f"{written(self.similarity)}:{written(self.features)}"
        return base if self.preconditioner == identity else f"{base}/{written(self.preconditioner)}"

    def fit(self, model: Any, train: Any) -> "Relevance":
        """The relevance of this training set's instances under this model."""
        reading = read(model)
        train = reading.examples(train, "training set")
        if not isinstance(model, Classifier):
            model = Classifier.of(reading.module, train, hidden=reading.hidden, vectorise=reading.vectorise)
        return Relevance(self, Workspace(model, train))


@dataclass(frozen=True)
class Relevance:
    """A metric fitted to a model and its training set."""

    metric: Metric
    workspace: Workspace

    @property
    def inverse(self) -> Inverse:
        """M^-1, fitted at its first use."""
        recipe = self.metric.preconditioner
        count = 0 if recipe in self.workspace.cache else recipe.cost(self.workspace, 0).bytes
        return self.workspace.matrix(recipe, lambda: recipe.fit(self.workspace), count)

    def kernels(self, cases: Examples) -> Iterator[Kernel]:
        """The inner products of the cases with consecutive blocks of the training set, in order."""
        return self.inverse.kernels(self.workspace, self.metric.features, cases)

    def estimate(self, m: int) -> Estimate:
        """What the relevance to m cases will take, from a trial on a few instances."""
        workspace, features = self.workspace, self.metric.features
        model, n, width = workspace.classifier, len(workspace.train), workspace.width(features)
        itemsize = workspace.itemsize(features)
        few = workspace.train.take(range(min(n, 64)))
        single = elapsed(lambda: features(model, few)) / len(few.labels)
        cost = self.metric.preconditioner.cost(workspace, m)
        seconds = (n + m + cost.passes * n) * single + cost.flops / speed(torch.double)
        seconds += 2.0 * n * m * width / speed(torch.float32 if itemsize == 4 else torch.double)
        held = itemsize * width * (m + model.budget.rows(width, itemsize))
        kept = itemsize * n * width
        memory = cost.bytes + min(held, model.budget.bytes) + min(kept, workspace.room)
        return Estimate(seconds, memory, self.disk)

    @property
    def disk(self) -> int:
        """About how many bytes it takes when it is saved."""
        workspace, features = self.workspace, self.metric.features
        cost, itemsize = self.metric.preconditioner.cost(workspace, 0), workspace.itemsize(features)
        row = cost.itemsize * workspace.width(features) or itemsize * workspace.stored(features)
        return cost.disk + len(workspace.train) * (row + 2 * FLOAT64)

    def scores(self, cases: Examples) -> Tensor:
        """The full matrix [m, n], float64; cases are rows."""
        m, n = len(cases), len(self.workspace.train)
        self.workspace.classifier.budget.required(
            2 * FLOAT64 * m * n, f"The score matrix [{m}, {n}]", "Ask for fewer cases, or explain(k=...)."
        )
        matrix = torch.empty(m, n, dtype=torch.double)
        start = 0
        for group in self.workspace.groups(self.metric.features, cases):
            column, stop = 0, start + len(group)
            for kernel in self.kernels(group):
                block = self.metric.similarity(kernel)
                matrix[start:stop, column : column + block.shape[1]] = block
                column += block.shape[1]
            start = stop
        return matrix

    def top(self, cases: Examples, k: int) -> TopK:
        """The k most relevant training instances of each case; the full matrix is never held."""
        return self.ranked(cases, k).top

    def ranked(self, cases: Examples, k: int) -> "Ranked":
        """The same, with how many scores are below each, and the lengths of the training instances."""
        k = checked_k(k, len(self.workspace.train))
        self.workspace.reused(self.metric.features)  # who explains one case will explain another
        every, lengths = [], torch.zeros(0)
        for group in self.workspace.groups(self.metric.features, cases):
            seen: list[Tensor] = []
            every.append(ranked(self._blocks(group, seen), k))
            lengths = torch.cat(seen)
        top = TopK(torch.cat([top.indices for top, _ in every]), torch.cat([top.scores for top, _ in every]))
        below = torch.cat([below for _, below in every])
        return Ranked(top, below, lengths if self.inverse.definite else None)

    def _blocks(self, cases: Examples, lengths: list[Tensor]) -> Iterator[Tensor]:
        """Relevance block by block; the lengths of the training instances are noted on the way."""
        for kernel in self.kernels(cases):
            lengths.append(kernel.lengths() if kernel.definite else kernel.train_sq)
            yield self.metric.similarity(kernel)


@dataclass(frozen=True, eq=False)
class Ranked:
    """The most relevant training instances of each case, and what passed by when they were found."""

    top: TopK
    below: Tensor  # [m, k], how many training instances have a lower score
    lengths: Tensor | None  # [n], under M^-1; none where it is indefinite
