"""What speaks against a precedent: it answers many cases, is very long, or is the case itself.

hub             the first precedent of at least three cases, and of at least half as many as a class has on
                average; judged over 20 cases or more.
outlying norm   longer than 99% of the training instances, and than three times their median, under M^-1.
duplicate       its input is the case's own.
zero vector     it has no direction under the metric: of gradients, its prediction is saturated.
not ranked      all training instances have the same score, so that none is more relevant than another.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from precedents.adapters._subject import Subject
from precedents.data.inputs import Collated, Inputs, bare, leaves, mapped
from precedents.metrics.relevance import Ranked
from precedents.runtime.sparse import SparseRows

ANOTHER, HUB, NORM, DUPLICATE = "another class", "hub", "outlying norm", "duplicate of the case"
ZERO, UNRANKED = "zero vector", "not ranked"
ENOUGH = 20  # cases that hubs are judged over
LEAST = 3  # cases that a hub answers
HIGH = 0.99  # the quantile of the lengths above which one is outlying
TIMES = 3  # and how many medians it must exceed
ROUNDINGS = 4  # of half precision, within which two logits are not told apart


@dataclass(frozen=True)
class Finding:
    """What is known of a metric on this model and training set."""

    hubs: Mapping[int, float] = field(default_factory=dict)  # by training instance: the share of cases
    failed: Sequence[str] = ()  # criteria


class Findings(Protocol):
    """What an audit knows."""

    def about(self, metric: str, subject: Subject) -> Finding:
        """The finding on a metric; refuses a subject that is not what was audited."""


def counted(firsts: Iterable[int]) -> dict[int, int]:
    """How many cases each training instance is the first precedent of: most first, then by index."""
    return dict(sorted(Counter(firsts).items(), key=lambda item: (-item[1], item[0])))


def hubs(counts: Mapping[int, int], cases: int, classes: int) -> dict[int, float]:
    """The training instances that are hubs, with the share of the cases that they answer."""
    least = max(LEAST, cases / (2 * classes))
    return {i: count / cases for i, count in counts.items() if cases >= ENOUGH and count >= least}


def are_hubs(ranked: Ranked, classes: int, finding: Finding | None) -> Tensor:
    """Which precedents [m, k] are hubs: in the audit, else among those of these cases that are ranked for."""
    indices = ranked.top.indices
    if finding is None:
        firsts = indices[~Doubts.of(ranked).unranked, 0].tolist()
        own: Mapping[int, float] = hubs(counted(firsts), len(firsts), classes)
    else:
        own = finding.hubs
    return torch.isin(indices, torch.tensor(list(own), dtype=torch.long))


def left_out(unranked: Tensor, metric: str) -> list[str]:
    """The sentence on cases that count nowhere, if there are any."""
    count = int(unranked.sum())
    if not count:
        return []
    return [
        f"{count} of {len(unranked)} cases are not counted, as {metric} cannot rank for them: explain says why."
    ]


def marks(
    ranked: Ranked, classes: int, finding: Finding | None, another: Tensor, copies: Tensor
) -> dict[str, Tensor]:
    """What speaks against precedents; which have another class and are copies [m, k] is known."""
    hubs = are_hubs(ranked, classes, finding)
    return {ANOTHER: another, HUB: hubs, NORM: are_outlying(ranked), DUPLICATE: copies}


def are_outlying(ranked: Ranked) -> Tensor:
    """Which precedents [m, k] have an outlying norm; lengths that do not exist are not outlying."""
    if ranked.lengths is None:
        return torch.zeros_like(ranked.top.indices, dtype=torch.bool)
    return outlying(ranked.lengths)[ranked.top.indices]


def outlying(lengths: Tensor) -> Tensor:
    """Which of the lengths [n] are outlying; of those that are no number, none is."""
    known = lengths[lengths.isfinite()]
    if not len(known):
        return torch.zeros(len(lengths), dtype=torch.bool)
    return lengths > max(_quantile(known, HIGH), TIMES * _quantile(known, 0.5))


@dataclass(frozen=True, eq=False)
class Doubts:
    """Where a metric cannot rank."""

    zero: Tensor  # [m, k], which precedents have a vector of zeros
    tied: Tensor  # [m], of which cases all training instances have the same score
    empty: Tensor  # [m], which cases have a vector of zeros

    @classmethod
    def of(cls, ranked: Ranked) -> "Doubts":
        """Where lengths do not exist, none is zero; a training set of one instance is no tie."""
        places, below = ranked.top.indices, ranked.below
        tied = (below == 0).all(dim=1) & (ranked.count > 1)
        if ranked.lengths is None or ranked.case_lengths is None:
            return cls(torch.zeros_like(places, dtype=torch.bool), tied, torch.zeros_like(tied))
        return cls(ranked.lengths[places] == 0, tied, ranked.case_lengths == 0)

    @property
    def unranked(self) -> Tensor:
        """Which cases [m] have no precedents that mean anything."""
        return self.tied | self.empty

    def marks(self, k: int) -> dict[str, Tensor]:
        """By name which of the k precedents of each case [m, k] are in doubt."""
        return {ZERO: self.zero, UNRANKED: self.tied[:, None].expand(-1, k)}

    def remarks(self, metric: str, gradients: bool) -> list[list[str]]:
        """For each case why the metric, which is of gradients or not, cannot rank; nothing where it can."""
        saturated = "the gradient of its loss is zero, as that of a saturated prediction"
        reasons = {True: saturated if gradients else "its vector is zero"}
        said = []
        for tied, empty in zip(self.tied.tolist(), self.empty.tolist(), strict=True):
            why = reasons.get(empty, "all training instances have the same score")
            said.append([f"Caution: {metric} cannot rank here: {why}."] if tied or empty else [])
        return said


def _quantile(values: Tensor, share: float) -> float:
    """With the nearest two mixed; `torch.quantile` refuses long vectors, and to sort them takes longer."""
    place = share * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    ordered = np.partition(values.numpy(), (low, high))
    return float(ordered[low] + (place - low) * (ordered[high] - ordered[low]))


def equal(asked: Inputs, offered: Inputs) -> Tensor:
    """Which precedents [m, k] have the inputs of their case; padding is no part of an instance."""
    if isinstance(asked, SparseRows) and isinstance(offered, SparseRows):
        m, k = offered.shape[:2]
        cases = asked.rows[torch.arange(m).repeat_interleave(k).numpy()]
        return torch.from_numpy((cases != offered.rows).getnnz(axis=1) == 0).reshape(m, k)
    if isinstance(asked, Tensor) and isinstance(offered, Tensor):
        return (asked.to(offered)[:, None] == offered).flatten(2).all(dim=2)
    m, k = (offered if isinstance(offered, Collated) else leaves(offered)[0]).shape[:2]
    rows = [mapped(lambda leaf, i=i: leaf[i], offered) for i in range(m)]  # type: ignore[misc]
    return torch.tensor([[_same(bare(asked, i), bare(rows[i], j)) for j in range(k)] for i in range(m)])


def _same(one: Inputs, other: Inputs) -> bool:
    pairs = zip(leaves(one), leaves(other), strict=True)
    return all(a.shape == b.shape and torch.equal(a.to(b), b) for a, b in pairs)


def rounded(logits: Tensor, narrow: torch.dtype) -> list[list[str]]:
    """For each case whether its two likeliest classes are nearer than the model's own precision can tell."""
    first, second = logits.double().cpu().topk(2, dim=1).values.unbind(dim=1)
    within = ROUNDINGS * torch.finfo(narrow).eps * logits.abs().amax(dim=1).double().cpu()
    name = str(narrow).removeprefix("torch.")
    told = f"Caution: the model is in {name} and computed with in float32; itself it may predict another class."
    return [[told] if near else [] for near in (first - second <= within).tolist()]
