"""Relevance = a metric fitted to a model and its training set: the attribution scores, asked for in blocks."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from precedents.data.examples import Examples
from precedents.metrics.kernel import Kernel
from precedents.metrics.preconditioners._inverse import Inverse
from precedents.metrics.preconditioners.identity import identity
from precedents.metrics.ranking import TopK, checked_k, ranked, stacked
from precedents.metrics.vectors import SQUARES, Question, Vectors
from precedents.metrics.workspace import Workspace
from precedents.runtime.budget import FLOAT64
from precedents.runtime.cache import Slot
from precedents.runtime.cost import Estimate, elapsed, speed
from precedents.runtime.door import door

if TYPE_CHECKING:
    from precedents.metrics.metric import Metric

INVERSE: Slot[Inverse] = Slot("fitted inverse", large=True)


@dataclass(frozen=True, eq=False)
class Ranked:
    """The most relevant training instances of each case, and what passed by when they were found."""

    top: TopK
    below: Tensor  # [m, k], how many training instances have a lower score
    lengths: Tensor | None  # [n], under M^-1; none where it is indefinite
    case_lengths: Tensor | None  # [m], the same of the cases
    count: int  # of training instances


@dataclass(frozen=True)
class Relevance:
    """A metric fitted to a model and its training set."""

    metric: "Metric"
    workspace: Workspace

    @cached_property
    def vectors(self) -> Vectors:
        """What the metric compares."""
        return Vectors.of(self.workspace, self.metric.features)

    @property
    def inverse(self) -> Inverse:
        """M^-1, fitted at its first use, and again if it was put away."""
        return self.workspace.cache.once(self.slot, self._fitted)

    @cached_property
    def slot(self) -> Slot[Inverse]:
        """Where the fitted inverse is kept."""
        return INVERSE.at(self.metric.preconditioner, self.metric.features)

    def _fitted(self) -> Inverse:
        recipe, vectors = self.metric.preconditioner, self.vectors
        self.workspace.reserve(recipe.cost(vectors, 0).bytes)
        return recipe.fit(vectors)

    def kernels(self, cases: Examples, again: bool = True) -> Iterator[Kernel]:
        """The inner products of the cases with consecutive blocks of the training set, in order.

        `again` says that there will be another such question, so that what was computed is worth keeping.
        """
        return self.inverse.kernels(Question(self.vectors, cases, again))

    @door
    def scores(self, cases: Examples) -> Tensor:
        """The full matrix [m, n], float64; cases are rows."""
        m, n = len(cases), len(self.workspace.train)
        self.workspace.classifier.budget.required(
            2 * FLOAT64 * m * n, f"The score matrix [{m}, {n}]", "Ask for fewer cases, or explain(k=...)."
        )
        matrix = torch.empty(m, n, dtype=torch.double)
        start = 0
        for group in self.vectors.groups(cases):
            column, stop = 0, start + len(group)
            for kernel in self.kernels(group, again=len(group) < m or self._asked):
                block = self.metric.similarity(kernel)
                matrix[start:stop, column : column + block.shape[1]] = block
                column += block.shape[1]
            start = stop
        return matrix

    @property
    def _asked(self) -> bool:
        """Whether there was a question before, or a matrix was fitted, so that there will be more questions."""
        known = SQUARES.at(self.metric.features) in self.workspace.cache
        return known or self.metric.preconditioner != identity

    def top(self, cases: Examples, k: int) -> TopK:
        """The k most relevant training instances of each case; the full matrix is never held."""
        return self.ranked(cases, k).top

    @door
    def ranked(self, cases: Examples, k: int) -> Ranked:
        """The k most relevant, with how many scores are below each, and the training instances' lengths."""
        k, inverse = checked_k(k, len(self.workspace.subject.train)), self.inverse
        every, passed, asked = [], list[Kernel](), list[Tensor]()
        for group in self.vectors.groups(cases):
            passed.clear()
            every.append(ranked(self._blocks(inverse.kernels(Question(self.vectors, group)), passed), k))
            asked.append(passed[0].case_sq)
        tops, below = zip(*every, strict=True)
        lengths, own = (
            torch.cat(squares).clamp(min=0).sqrt() if inverse.definite else None
            for squares in ([each.train_sq for each in passed], asked)
        )
        return Ranked(stacked(tops), torch.cat(below), lengths, own, len(self.workspace.train))

    def _blocks(self, kernels: Iterable[Kernel], passed: list[Kernel]) -> Iterator[Tensor]:
        """Relevance block by block; the squared lengths are noted on the way."""
        for kernel in kernels:
            passed.append(Kernel(kernel.cross[:, :0], kernel.case_sq, kernel.train_sq, kernel.definite))
            yield self.metric.similarity(kernel)

    @door
    def estimate(self, m: int) -> Estimate:
        """What the relevance to m cases will take, from a trial on a few instances."""
        workspace, vectors = self.workspace, self.vectors
        model, n, width, itemsize = workspace.classifier, len(vectors), vectors.width, vectors.itemsize
        few = workspace.train.take(range(min(n, 64)))
        single = elapsed(lambda: self.metric.features(model, few)) / len(few.labels)
        cost = self.metric.preconditioner.cost(vectors, m)
        seconds = (n + m + cost.passes * n) * single + cost.flops / speed(torch.double)
        seconds += 2.0 * n * m * width / speed(torch.float32 if itemsize == 4 else torch.double)
        used = itemsize * width * (m + model.budget.rows(width, itemsize))
        kept = itemsize * n * width
        memory = cost.bytes + min(used, model.budget.bytes) + min(kept, workspace.room)
        return Estimate(seconds, memory, self.disk)

    @property
    def disk(self) -> int:
        """About how many bytes it takes when it is saved."""
        vectors = self.vectors
        cost = self.metric.preconditioner.cost(vectors, 0)
        row = cost.itemsize * vectors.width or vectors.row_bytes
        return cost.disk + len(vectors) * (row + 2 * FLOAT64)
