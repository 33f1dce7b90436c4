"""The second question: answered from codes of the training rows, with exact scores for those that matter.

The rows of a large training set are not kept, but leave codes behind when they pass by for the first question.
Each further question compares all codes, and computes again the few rows that can be among the most relevant.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain

import torch
from torch import Tensor

from precedents.data.examples import Examples
from precedents.gradients.rows import Rows, joined
from precedents.index.codes import KEPT, LEFT, Coder, Codes, unit
from precedents.index.search import FIRST, SHARE, SIGMAS, Alike, Approximation, Completed, Pool, Search, firsts
from precedents.index.sketch import CountSketch
from precedents.index.suited import coordinates, refusal
from precedents.metrics.kernel import Kernel
from precedents.metrics.ranking import TopK, checked_k, descending, stacked
from precedents.metrics.relevance import Ranked, Relevance
from precedents.metrics.vectors import ROWS, Holding, RowBlock, Vectors
from precedents.runtime.budget import FLOAT64
from precedents.runtime.cache import Slot
from precedents.runtime.progress import tracked

FEWEST = 8 * FIRST  # training instances that are worth codes
SAMPLED = 16  # of how many instances one is in the sample that the basis is made of,
SAMPLE = 2048  # which has no more than so many,
LEAST = 16  # and no fewer
FLOAT32 = 4  # bytes
CODE = KEPT + LEFT + 6 * FLOAT64  # bytes, about
ARRAYS = 12  # of one number for each training instance, that a search holds for a case

CODES: Slot[Sequence[tuple[Coder, Codes]]] = Slot("codes of the training set", large=True)


@dataclass(frozen=True, eq=False)
class Recall:
    """Codes of the training set of a relevance, and the answers from them."""

    relevance: Relevance

    @property
    def vectors(self) -> Vectors:
        """What is coded."""
        return self.relevance.vectors

    @property
    def suits(self) -> bool:
        """Whether there are many vectors that can be indexed, and room for their codes."""
        workspace = self.relevance.workspace
        fits = 4 * self.bytes <= workspace.classifier.budget.bytes and self.sample >= LEAST
        return len(workspace.train) >= FEWEST and fits and refusal(self.relevance) is None

    @property
    def slot(self) -> Slot[Sequence[tuple[Coder, Codes]]]:
        """Where the codes are kept, for all similarities."""
        return CODES.at(self.vectors.features, self.relevance.metric.preconditioner)

    @property
    def bytes(self) -> int:
        """What the codes take, and what makes them."""
        width = self.vectors.width
        making = FLOAT32 * Coder.sketch_of(width).length * (self.sample + 3 * KEPT)
        return len(self.vectors) * CODE + width + making

    @property
    def sample(self) -> int:
        """How many rows the basis is made of: as many as are useful, or as there is room for."""
        row = FLOAT32 * Coder.sketch_of(self.vectors.width).length
        return min(SAMPLE, len(self.vectors) // SAMPLED, self.relevance.workspace.room // (2 * row))

    def noted(self, blocks: Iterator[RowBlock]) -> Iterator[RowBlock]:
        """The blocks of the whole training set, whose codes are kept once all have passed."""
        if self.there or not self.suits:
            yield from blocks
            return
        yield from self._noting(blocks)

    def _noting(self, blocks: Iterator[RowBlock]) -> Iterator[RowBlock]:
        n, coder, codes = len(self.vectors), self.coder(), None
        for places, rows in blocks:
            yield places, rows
            if coder is not None:
                found = coder.codes(rows)  # whose lengths are known by now
                codes = found.room(n) if codes is None else codes
                codes.put(slice(places.start, places.stop), found)
            del rows
        if coder is not None and codes is not None:
            self.keep(coder, codes)

    def keep(self, coder: Coder, codes: Codes) -> None:
        """Keeps codes for all further questions, which have so much less of the budget."""
        workspace = self.relevance.workspace
        workspace.classifier.budget.held.until_gone(codes, codes.bytes)
        workspace.cache.put(self.slot, [(coder, codes)])

    def coder(self) -> Coder | None:
        """With the basis of a sample of the rows; None if they are too dear to code as they pass by."""
        sketch, relevance = Coder.sketch_of(self.vectors.width), self.relevance
        count = max(LEAST, self.sample)  # which is asked once: free memory comes and goes
        places = sampled(relevance.workspace.train, len(self.vectors), count)
        blocks = some(relevance, places, self.vectors.at_once)
        first = next(blocks)
        if sketch.is_dear(first):
            return None
        relevance.workspace.holding(self.slot, self.bytes)
        return coder_of(sketch, chain([first], blocks), count)

    @property
    def there(self) -> bool:
        """Whether there are codes."""
        return self.slot in self.relevance.workspace.cache

    @cached_property
    def wanted(self) -> bool:
        """Whether codes are what is kept of the training set, and not its whole vectors."""
        workspace, vectors = self.relevance.workspace, self.vectors
        if self.there or ROWS.at(vectors.features) in workspace.cache or not self.suits:
            return self.there
        if vectors.weighed:  # which are formed, in float64
            return FLOAT64 * vectors.width * len(vectors) > workspace.room
        one = next(some(self.relevance, torch.tensor(workspace.train.largest[:1]), 1))
        large = vectors.row_bytes * len(vectors) > vectors.room
        return large and not Coder.sketch_of(vectors.width).is_dear(one)

    @property
    def holding(self) -> Holding[tuple[Coder, Codes]]:
        """The codes, which are made by a pass if they are not there, and where they are kept."""
        return Holding(self.slot, self._made)

    def _made(self) -> Sequence[tuple[Coder, Codes]]:
        workspace, vectors = self.relevance.workspace, self.vectors
        if not self.there:
            rows = (
                (places, coordinates(self.relevance, rows)) for places, rows in vectors.rows(workspace.train)
            )
            deque(self._noting(rows), maxlen=0)
        return workspace.cache.get(self.slot) or []

    @property
    def disk(self) -> int:
        """About how many bytes it takes when it is saved."""
        if not self.wanted:
            return self.relevance.disk
        basis = FLOAT32 * Coder.sketch_of(self.vectors.width).length * KEPT
        return len(self.vectors) * (CODE + 2 * FLOAT64) + basis

    def computed(self, m: int) -> int | None:
        """How many rows m cases will have computed again; None if a pass over all of them answers."""
        few = m * firsts(1)
        return few if self.there and SHARE * few <= len(self.vectors) else None

    def ranked(self, cases: Examples, k: int) -> Ranked | None:
        """The k most relevant of each case; None where a pass over the training set must tell.

        That is so where there are no codes, for very many cases, for one that is no number, and where too many
        rows of a set that is not very large would be computed again.
        """
        tops, below, asked, said, lengths = list[TopK](), list[Tensor](), list[Tensor](), list[str](), None
        for answer in self.answers(cases, k):  # each of which is large
            if not answer.known.case_lengths.isfinite().all() or answer.in_vain:
                return None
            tops.append(answer.top)
            below.append(answer.below())
            asked.append(answer.known.case_lengths)
            said += answer.said()
            lengths = answer.known.lengths
            del answer
        if lengths is None:
            return None
        return Ranked(stacked(tops), torch.cat(below), lengths, torch.cat(asked), len(self.vectors), said)

    def answers(self, cases: Examples, k: int) -> Iterator["Answer"]:
        """What codes and rows that are computed again say of the cases; nothing where a pass is as cheap."""
        n = len(self.vectors)
        found = self.relevance.workspace.cache.get(self.slot)
        if found is None or SHARE * len(cases) * firsts(checked_k(k, n)) > n:
            return
        self.relevance.workspace.train.unchanged()
        for group in self._groups(cases):
            yield Answer.of(self.relevance, *found[0], group, k)

    def _groups(self, cases: Examples) -> Iterator[Examples]:
        """The cases in groups that a search has room for."""
        each = ARRAYS * FLOAT64 * len(self.vectors)
        size = max(1, self.relevance.workspace.classifier.budget.bytes // (4 * each))
        for group in self.vectors.groups(cases):
            pieces = (range(i, min(i + size, len(group))) for i in range(0, len(group), size))
            yield from [group] if len(group) <= size else (group.selected(piece) for piece in pieces)


def some(relevance: Relevance, places: Tensor, size: int) -> Iterator[Rows]:
    """What is coded of some training instances, in blocks."""
    train, vectors = relevance.workspace.train, relevance.vectors
    for start in tracked(range(0, len(places), size), "some of the training set"):
        batch = train.take(places[start : start + size].tolist())
        yield coordinates(relevance, Rows.of(vectors.features(vectors.workspace.classifier, batch)))


def sampled(train: Examples, n: int, count: int) -> Tensor:
    """The places of a sample of the first n that has every class in its share, in order."""
    spread = torch.linspace(0, n - 1, count, dtype=torch.double).long()
    return train.labels[:n].argsort(stable=True)[spread].sort().values


def coder_of(sketch: CountSketch, blocks: Iterable[Rows], count: int) -> Coder:
    """With the basis of a sample of so many rows."""
    sample, start = torch.empty(count, sketch.length, dtype=torch.float32), 0
    for rows in blocks:
        sample[start : start + len(rows)] = unit(sketch, rows)
        start += len(rows)
    return Coder.of(sketch, sample[:start])


def _marks(train: Examples, places: list[int]) -> list[bytes]:
    """Of some training instances with their labels."""
    pairs = zip(train.marks(places), train.labels[places].tolist(), strict=True)
    return [mark + str(label).encode() for mark, label in pairs]


def counts_below(values: Tensor, bounds: Tensor) -> Tensor:
    """How many of many values are lower than each of a few bounds [k]; of a bound that is NaN, all are.

    >>> counts_below(torch.tensor([3.0, 1.0, 2.0, 2.0]), torch.tensor([3.0, 2.0, torch.nan]))
    tensor([3, 1, 4])
    """
    ordered, order = torch.where(bounds.isnan(), torch.inf, bounds).sort()
    reached = torch.searchsorted(ordered, values, right=True)  # how many bounds each value is not below
    counts = reached.bincount(minlength=len(bounds) + 1)[: len(bounds)].cumsum(0)
    return torch.empty_like(counts).index_copy_(0, order, counts)


@dataclass(frozen=True, eq=False)
class Answer:
    """What was found of some cases."""

    known: Approximation
    pool: Pool
    completed: Sequence[Completed]
    scores: Tensor  # [m, u], of what was computed again
    top: TopK
    in_vain: bool  # whether a pass over all rows is not much dearer, and surer; or some score is no number

    @classmethod
    def of(cls, relevance: Relevance, coder: Coder, codes: Codes, cases: Examples, k: int) -> "Answer":
        """Compares the cases with all codes, and computes again whom that leaves in question."""
        vectors, m = relevance.vectors, len(cases)
        turned = ((places, coordinates(relevance, rows)) for places, rows in vectors.rows(cases))
        case = joined(turned, m)
        case_sq = case.squares()

        def score(i: int, cross: Tensor, places: Tensor | slice) -> Tensor:
            kernel = Kernel(cross[None].double(), case_sq[i : i + 1], codes.squares[places])
            return relevance.metric.similarity(kernel)[0]

        def compute(places: Tensor) -> Tensor:
            return torch.cat([case.products(rows) for rows in some(relevance, places, vectors.at_once)], dim=1)

        known, pool = codes.approximation(coder, case), Pool(m, compute)
        search = Search(known, score, Alike(partial(_marks, vectors.workspace.train)), pool, k)
        completed = search.found()
        scores = torch.stack([score(i, pool.cross[i], pool.places) for i in range(m)])
        order = descending(scores)[:, :k]
        top = TopK(pool.places[order], scores.gather(1, order))
        in_vain = search.is_in_vain(completed) or bool(top.scores.isnan().any())
        return cls(known, pool, completed, scores, top, in_vain)

    def below(self) -> Tensor:
        """How many rows have lower scores than each of the best [m, k], at least; NaN is below every number."""
        counts = []
        for each, own, best in zip(self.completed, self.scores, self.top.scores, strict=True):
            most = each.reach.double().index_copy(0, self.pool.places, own).nan_to_num(nan=-torch.inf)
            counts.append(counts_below(most, best))
        return torch.stack(counts)

    def said(self) -> list[str]:
        """For each case how sure it is that the best were found."""
        k, n = self.top.indices.shape[1], len(self.known.lengths)
        again = f"{len(self.pool.places):,} of {n:,} rows computed again"
        sure = {
            "proved": f"exact; first {k} proved complete; {again}",
            "likely": f"exact; first {k} complete at {SIGMAS:g} sigma; {again}",
            "capped": f"exact, but capped: {again}, and others may be as relevant",
        }
        return [sure[each.sure] for each in self.completed]
