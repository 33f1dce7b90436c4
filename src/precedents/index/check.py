"""Checking an index: some cases answered from it and by a full pass, side by side."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import torch
from torch import Tensor

from precedents.data.examples import Examples
from precedents.index.recall import Recall
from precedents.metrics.ranking import TopK, checked_k
from precedents.metrics.relevance import Relevance
from precedents.metrics.workspace import Workspace
from precedents.runtime.progress import tracked

TIED = 64  # units of the model's precision, of the largest score, within which scores tie


@dataclass(frozen=True)
class Answered:
    """How one case was answered from an index."""

    sure: str  # proved, likely, capped; or pass, where a full pass was made instead
    computed: int  # rows that were computed again
    seconds: float
    found: int  # of the k most relevant
    error: float  # of the returned scores, at most


@dataclass(frozen=True)
class IndexCheck:
    """An index beside a full pass over the training set."""

    k: int
    n: int
    answered: Sequence[Answered]
    seconds: float  # that the full pass took, for all cases

    @property
    def recall(self) -> float:
        """The share of the true first k that was returned."""
        return sum(each.found for each in self.answered) / (self.k * len(self.answered))

    @property
    def error(self) -> float:
        """The largest difference of a returned score from that of the full pass."""
        return max(each.error for each in self.answered)

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
            "pass": "answered by a full pass",
        }
        sure = ", ".join(f"{told[name]} {text}" for name, text in said.items() if name in told)
        most = max(each.computed for each in self.answered)
        each = median(one.seconds for one in self.answered)
        return (
            f"recall at {self.k}: {self.recall:.3f} over {m} cases; {sure}\n"
            f"error of the returned scores: {self.error:.1e} at most\n"
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
    answered = [
        _answered(relevance, cases.selected([i]), TopK(true.top.indices[i : i + 1], true.top.scores[i : i + 1]))
        for i in tracked(range(len(cases)), "cases from the index")
    ]
    return IndexCheck(k, n, answered, seconds)


def _answered(relevance: Relevance, case: Examples, true: TopK) -> Answered:
    """One case, beside what is true of it."""
    began, k = perf_counter(), true.indices.shape[1]
    found = list(Recall(relevance).answers(case, k))
    took = perf_counter() - began
    if not found or found[0].in_vain:
        return Answered("pass", len(relevance.workspace.train), took, k, 0.0)
    top, sure = found[0].top, found[0].completed[0].sure
    size = float(true.scores.abs().max()) or 1.0
    precision = torch.double if relevance.workspace.classifier.itemsize > 4 else torch.float32
    last = true.scores[0, -1] - TIED * torch.finfo(precision).eps * size
    hits = int((top.scores[0] >= last).sum())
    return Answered(sure, len(found[0].pool.places), took, hits, _error(top.scores, true.scores) / size)


def _error(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().nan_to_num(nan=torch.inf).max())
