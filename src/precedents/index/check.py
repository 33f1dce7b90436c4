"""Checking an index: some cases answered from it and by a full pass, side by side."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import torch
from torch import Tensor

from precedents.data.examples import Examples
from precedents.index.recall import Recall
from precedents.metrics.kernel import Kernel
from precedents.metrics.ranking import TopK, checked_k
from precedents.metrics.relevance import Ranked, Relevance
from precedents.metrics.workspace import Workspace
from precedents.runtime.progress import tracked

TIED = 64  # units of the model's precision, of the size of a score, within which scores tie
PASSED = "pass"  # how a case is answered where codes would take as long


@dataclass(frozen=True)
class Answered:
    """How one case was answered from an index."""

    sure: str  # proved, likely, capped; or pass, where a full pass is made instead
    computed: int  # rows that were computed again
    seconds: float
    found: int  # of the k most relevant
    error: float  # of the returned scores, at most, in their sizes


@dataclass(frozen=True)
class IndexCheck:
    """An index beside a full pass over the training set."""

    k: int
    n: int
    answered: Sequence[Answered]
    seconds: float  # that the full pass took, for all cases

    @property
    def indexed(self) -> list[Answered]:
        """The cases that were answered from the index, and not by a pass."""
        return [each for each in self.answered if each.sure != PASSED]

    @property
    def passes(self) -> float:
        """The share of the cases that a full pass answers, since codes would take as long."""
        return 1 - len(self.indexed) / len(self.answered)

    @property
    def recall(self) -> float:
        """The share of the true first k that the index returned; NaN where it answered no case."""
        found = self.indexed
        return sum(each.found for each in found) / (self.k * len(found)) if found else math.nan

    @property
    def error(self) -> float:
        """The largest difference of a score that the index returned from that of the full pass, in its size.

        The size is what the score could be: 1 for cosines, the product of the two lengths for dot, and the
        square of their sum for l2, which is a difference of such numbers.
        """
        return max((each.error for each in self.indexed), default=math.nan)

    @property
    def sure(self) -> dict[str, int]:
        """How many cases were proved, likely and capped, or answered by a pass."""
        return dict(Counter(each.sure for each in self.answered))

    @property
    def computed(self) -> int:
        """How many rows were computed again for a case, in the median."""
        return int(median(each.computed for each in self.answered))

    def __str__(self) -> str:
        m, told = len(self.answered), self.sure
        said = {
            "proved": "proved complete",
            "likely": "complete at 4 sigma",
            "capped": "capped",
            PASSED: "answered by a full pass",
        }
        sure = ", ".join(f"{told[name]} {text}" for name, text in said.items() if name in told)
        most = max(each.computed for each in self.answered)
        each = median(one.seconds for one in self.answered)
        count = len(self.indexed)
        by = f"over the {count} of {m} cases that the index answers" if count < m else f"over {m} cases"
        found = f"recall at {self.k}: {self.recall:.3f} {by}" if count else "the index answers no case"
        error = f"error of the returned scores: {self.error:.1e} of their size at most\n" if count else ""
        return (
            f"{found}; {sure}\n{error}"
            f"rows computed again: {self.computed:,} of {self.n:,} in the median, {most:,} at most\n"
            f"seconds: {each:.3g} a case, {self.seconds:.3g} for a full pass of all {m}"
        )


def checked(relevance: Relevance, cases: Examples, k: int) -> IndexCheck:
    """Answers the cases from the codes of a relevance, one by one, and all of them by a full pass."""
    n = len(relevance.workspace.train)
    k, began = checked_k(k, n), perf_counter()
    full = Relevance(relevance.metric, Workspace(relevance.workspace.subject))
    inverse = relevance.workspace.cache.get(relevance.slot)
    if inverse is not None:
        full.workspace.cache.put(full.slot, inverse)
    true = full.ranked(cases, k)
    seconds = perf_counter() - began
    sizes, indices, scores = _sizes(relevance, true), true.top.indices, true.top.scores
    answered = [
        _answered(relevance, cases.selected([i]), TopK(indices[i : i + 1], scores[i : i + 1]), sizes[i])
        for i in tracked(range(len(cases)), "cases from the index")
    ]
    return IndexCheck(k, n, answered, seconds)


def _sizes(relevance: Relevance, true: Ranked) -> Tensor:
    """What each of the best scores [m, k] could be: as large as that of a vector that points the other way."""
    assert true.lengths is not None  # what is indexed is definite
    assert true.case_lengths is not None
    pairs = zip(true.case_lengths.double(), true.lengths.double()[true.top.indices], strict=True)
    kernels = (Kernel(-(case * train)[None], case[None] ** 2, train**2) for case, train in pairs)
    return torch.cat([relevance.metric.similarity(kernel).abs() for kernel in kernels])


def _answered(relevance: Relevance, case: Examples, true: TopK, sizes: Tensor) -> Answered:
    """One case, beside what is true of it; scores have sizes."""
    began, k = perf_counter(), true.indices.shape[1]
    found = list(Recall(relevance).answers(case, k))
    took = perf_counter() - began
    if not found or found[0].in_vain:
        return Answered(PASSED, len(relevance.workspace.train), took, 0, 0.0)
    top, sure = found[0].top, found[0].completed[0].sure
    precision = torch.double if relevance.workspace.classifier.itemsize > 4 else torch.float32
    last = true.scores[0, -1] - TIED * torch.finfo(precision).eps * sizes[-1]
    hit = torch.isin(top.indices[0], true.indices[0]) | (top.scores[0] >= last)
    errors = (top.scores[0] - true.scores[0]).abs() / torch.where(sizes > 0, sizes, 1.0)
    error = float(errors.nan_to_num(nan=torch.inf).max())
    return Answered(sure, len(found[0].pool.places), took, int(hit.sum()), error)
