"""Relevance = a metric fitted to a model and its training set: the attribution scores, asked for in blocks."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from operator import attrgetter
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.data.examples import Batch, Examples
from precedents.gradients.rows import Rows
from precedents.metrics.kernel import Kernel
from precedents.metrics.preconditioners._inverse import REFUSAL, Inverse
from precedents.metrics.preconditioners.identity import identity
from precedents.metrics.ranking import TopK, checked_k, ranked, stacked
from precedents.metrics.similarities.cosine import cosine
from precedents.metrics.vectors import ROWS, SQUARES, Features, Passing, Question, Vectors
from precedents.metrics.workspace import Workspace
from precedents.runtime.budget import COUNTED, FLOAT64, MOST
from precedents.runtime.buffers import BUFFERS
from precedents.runtime.cache import Slot
from precedents.runtime.cost import Cost, Estimate, allowed, bandwidth, elapsed, parted, rate, speed, trials
from precedents.runtime.door import door
from precedents.runtime.sparse import SparseRows

if TYPE_CHECKING:
    from precedents.metrics.metric import Metric

ROUGHLY = 16  # vectors and passes that a question holds, at most, for one case
SPARSE_CASES = 64  # that a trial compares, where rows are sparse
ALLOWED = 0.5  # seconds that trials of passes may take,
ALLOWED_PAIRS = 0.2  # and those of pairs, or more of much work
LOOKS = 16  # times that inputs are gone through: they are read, watched, compared and shown,
SHOWN = 12  # and how many of them for a case, with its precedents
FOUND = 200  # bytes of what is found of a precedent: its place, scores, label and marks

INVERSE: Slot[Inverse] = Slot("fitted inverse", large=True)
ASKED: Slot[bool] = Slot("whether the whole matrix was asked for")


@dataclass(frozen=True, eq=False)
class Ranked:
    """The most relevant training instances of each case, and what passed by when they were found."""

    top: TopK
    below: Tensor  # [m, k], how many training instances have a lower score
    lengths: Tensor | None  # [n], under M^-1; none where it is indefinite
    case_lengths: Tensor | None  # [m], the same of the cases
    count: int  # of training instances
    completeness: Sequence[str] = ()  # for each case how it is known that none is missing, if not by a pass


@dataclass(frozen=True)
class Relevance:
    """A metric fitted to a model and its training set."""

    metric: "Metric"
    workspace: Workspace

    @cached_property
    def vectors(self) -> Vectors:
        """What the metric compares."""
        weighs, recipe = self._weighs, self.metric.preconditioner
        by_products = partial(recipe.by_products, self.workspace) if weighs else None
        return Vectors.of(self.workspace, self.metric.features, weighs, by_products)

    @property
    def _weighs(self) -> bool:
        """Whether there is a matrix."""
        return type(self.metric.preconditioner) is not type(identity)

    @property
    def inverse(self) -> Inverse:
        """M^-1, fitted at its first use, and again if it was put away."""
        return self.workspace.cache.once(self.slot, partial(self._fitted, self.vectors))

    @property
    def curvature(self) -> str | None:
        """What M is here, which the memory may have decided; None if there is none."""
        if not self._weighs:
            return None
        recipe = self.metric.preconditioner
        lacking = recipe.instead_of(self.workspace)
        kind = self.inverse.description.kind
        return kind if lacking is None else f"{kind}, as the memory budget has no room for {lacking}"

    @cached_property
    def slot(self) -> Slot[Inverse]:
        """Where the fitted inverse is kept."""
        return INVERSE.at(self.metric.preconditioner, self.metric.features)

    def _fitted(self, vectors: Vectors) -> Inverse:
        recipe = self.metric.preconditioner
        self.required()
        needed = recipe.cost(vectors, 0).bytes
        if needed:
            self.workspace.reserve(needed)
        return recipe.fit(vectors)

    def required(self, beside: int = 0, many: str = "") -> None:
        """Refuses a question that the budget has no room for, with bytes held `beside` it: `many` things."""
        vectors, model = self.vectors, self.workspace.subject.classifier
        numbers = vectors.width + model.activations
        if not vectors.weighed and ROUGHLY * FLOAT64 * numbers + beside < COUNTED:  # as most are
            return
        fit = 0 if self.slot in self.workspace.cache else self._fit
        need = fit + self.vectors.least + beside
        if need >= COUNTED:
            what, instead = self.metric.preconditioner.refusal(self.vectors) if fit > beside else REFUSAL
            if many and 2 * beside > need:
                what, instead = many, "Ask for fewer cases at once, for a smaller k, or allow more memory."
            self.workspace.classifier.budget.required(need, what or str(self.metric), instead)

    @cached_property
    def _fit(self) -> int:
        """Bytes that fitting the matrix holds."""
        return self.metric.preconditioner.cost(self.vectors, 0).bytes

    def kernels(self, cases: Examples, again: bool = True) -> Iterator[Kernel]:
        """The inner products of the cases with consecutive blocks of the training set, in order.

        `again` says that there will be another such question, so that what was computed is worth keeping.
        """
        self.workspace.train.unchanged()
        return self.inverse.kernels(Question(self.vectors, cases, again))

    @door
    def scores(self, cases: Examples) -> Tensor:
        """The full matrix [m, n], float64; cases are rows."""
        m, n = len(cases), len(self.workspace.train)
        self.workspace.classifier.budget.required(
            2 * FLOAT64 * m * n, f"The score matrix [{m}, {n}]", "Ask for fewer cases, or explain(k=...)."
        )
        self.required(2 * FLOAT64 * m * n)
        matrix = torch.empty(m, n, dtype=torch.double)
        start, asked = 0, self._asked
        self.workspace.cache.put(ASKED.at(self.metric.features), True)
        for group in self.vectors.groups(cases):
            column, stop = 0, start + len(group)
            for kernel in self.kernels(group, again=len(group) < m or asked):
                block = self.metric.similarity(kernel)
                matrix[start:stop, column : column + block.shape[1]] = block
                column += block.shape[1]
            start = stop
        return matrix

    @property
    def _asked(self) -> bool:
        """Whether there was a question before, or a matrix was fitted, so that there will be more questions."""
        slots = ASKED.at(self.metric.features), SQUARES.at(self.metric.features)
        known = any(slot in self.workspace.cache for slot in slots)
        return known or self.metric.preconditioner != identity

    @door
    def top(self, cases: Examples, k: int) -> TopK:
        """The k most relevant training instances of each of the `cases`; the full matrix is never held."""
        return self.ranked(cases, k).top

    def ranked(
        self, cases: Examples, k: int, shown: tuple[int, int] = (0, 0), passing: Passing | None = None
    ) -> Ranked:
        """The k most relevant to each of `cases`, how many scores are below each, and all lengths.

        `shown` is how many bytes are made afterwards of each of them, and of each different one; `passing` is
        what vectors go through that are not kept.
        """
        train = self.workspace.subject.train
        train.unchanged()
        n = len(train)
        k = checked_k(k, n)
        self.refuse_many(len(cases), n, k, shown)
        inverse = self.inverse
        every, passed, asked = [], list[Kernel](), list[Tensor]()
        for group in self.vectors.groups(cases, k):
            passed.clear()
            kernels = inverse.kernels(Question(self.vectors, group, passing=passing))
            every.append(ranked(self._blocks(kernels, passed), k))
            asked.append(passed[0].case_sq)
        tops, below = zip(*every, strict=True)
        top = stacked(tops)
        if not inverse.definite:
            return Ranked(top, torch.cat(below), None, None, n)
        lengths = torch.cat([*map(attrgetter("train_sq"), passed)]).clamp(min=0).sqrt()
        return Ranked(top, torch.cat(below), lengths, torch.cat(asked).clamp(min=0).sqrt(), n)

    def refuse_many(self, m: int, n: int, k: int, shown: tuple[int, int]) -> None:
        """Refuses m cases with k precedents each, of n, if there is no room; `shown` is as for `ranked`."""
        different = m + min(n, m * k)
        held = m * k * FOUND + m * (1 + k) * shown[0] + different * shown[1]
        self.required(held, f"What {k} precedents of {m} cases are")

    def _blocks(self, kernels: Iterable[Kernel], passed: list[Kernel]) -> Iterator[Tensor]:
        """Relevance block by block; the squared lengths are noted on the way."""
        for kernel in kernels:
            none = torch.empty(0, 0, dtype=torch.double)  # as a view would hold the whole block
            passed.append(Kernel(none, kernel.case_sq, kernel.train_sq, kernel.definite))
            yield self.metric.similarity(kernel)

    @door
    def estimate(self, m: int, computed: int | None = None) -> Estimate:
        """What the relevance to m cases will take, from a trial on a few instances.

        What is there already, computed or loaded, is not counted; `computed` is how many training instances
        are, if that is known.
        """
        vectors, n = self.vectors, len(self.vectors)
        known, fitted = self._known, self.slot in self.workspace.cache
        cost = self.metric.preconditioner.cost(vectors, m)
        done = self.metric.preconditioner.cost(vectors, 0) if fitted else Cost()
        own = (0 if known else n) if computed is None else computed
        passes = m + own + max(0.0, cost.passes - done.passes) * n
        single, pair = self._rates(m, passes)
        seconds = passes * single + n * m * pair
        if cost.flops > done.flops:
            seconds += (cost.flops - done.flops) / speed(torch.double)
        seconds += LOOKS * self.workspace.classifier.input_bytes * (n + SHOWN * m) / bandwidth()
        kept = 0 if known else min(vectors.row_bytes * n, vectors.room)
        held = self.workspace.classifier.budget.held.bytes
        return Estimate(seconds, held + cost.bytes - done.bytes + vectors.used(m) + kept, self.disk)

    @property
    def _known(self) -> bool:
        """Whether what is compared of the training set is there."""
        slots = [ROWS.at(self.metric.features)]
        if self.slot in self.workspace.cache:
            slots += [each.slot for each in self.inverse.holdings(self.vectors)]
        return any(slot in self.workspace.cache for slot in slots)

    def _rates(self, m: int, passes: float) -> tuple[float, float]:
        """Seconds for the vector of an instance and for a pair, from trials that take a small part of the work.

        `passes` is how many instances will pass, m of them cases.
        """
        model, train, features = self.workspace.classifier, self.workspace.train, self.metric.features
        made, block = list[Rows](), self.vectors.at_once
        most = min(block, len(train), MOST)

        def form(size: int) -> None:
            made.clear()  # whose memory is free for the next ones
            made.append(_rows(features, model, train.take(range(size))))

        with BUFFERS.free:  # as when there is a question
            single = rate(trials(form, most, lambda best: allowed(ALLOWED, passes * best)), block)
            if self._weighs:
                return single, _ranking()
            (rows,), b, n = made, len(made[0]), len(train)
            sparse = isinstance(model.sample, SparseRows)  # whose pairs are dear, beside their passes
            times = trials(
                lambda size: rows.between(0, size).products(rows),
                min(b, SPARSE_CASES) if sparse else b,
                lambda best: allowed(ALLOWED_PAIRS, m * n / b * best),
                least=2,  # since what is spent once is much of the first
            )
            once, pair = parted(times)
        return single + once / b, pair / b + _ranking()

    @property
    def disk(self) -> int:
        """About how many bytes it takes when it is saved."""
        vectors = self.vectors
        cost = self.metric.preconditioner.cost(vectors, 0)
        row = cost.itemsize * vectors.width or vectors.row_bytes
        return cost.disk + len(vectors) * (row + 2 * FLOAT64)


def _rows(features: Features, model: Classifier, batch: Batch) -> Rows:
    return Rows.of(features(model, batch))


@cache
def _ranking() -> float:
    """Seconds to make one score of a kernel and to rank it."""
    cross, ones = torch.rand(32, 4096, dtype=torch.double), torch.ones(4096, dtype=torch.double)
    kernel = Kernel(cross, ones[:32], ones)
    return elapsed(lambda: ranked([cosine(kernel)], 5)) / cross.numel()
