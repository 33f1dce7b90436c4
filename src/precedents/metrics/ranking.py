"""TopK: the k most relevant training instances, block by block; ties to the smaller index, NaN never ranks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import index

import torch
from torch import Tensor

from precedents.errors import InputError, NumericalError

AT_ONCE = 2**18  # scores that are put in order at once


@dataclass(frozen=True, eq=False)
class TopK:
    """For each case its best training instances, most relevant first."""

    indices: Tensor  # [m, k], int64
    scores: Tensor  # [m, k]

    def joined(self, other: "TopK") -> "TopK":
        """Both lists, its own and an `other`, as one, still best first; associative, the same in any order."""
        indices = torch.cat([self.indices, other.indices], dim=1)
        scores = torch.cat([self.scores, other.scores], dim=1)
        by_index = indices.argsort(dim=1)
        indices, scores = indices.gather(1, by_index), scores.gather(1, by_index)
        order = descending(scores)
        return TopK(indices.gather(1, order), scores.gather(1, order))

    def best(self, k: int) -> "TopK":
        """The first k of each list."""
        return TopK(self.indices[:, :k], self.scores[:, :k])


def descending(scores: Tensor) -> Tensor:
    """The places [m, n] of a row's scores from the largest to the smallest: stable, and NaN last."""
    missing = scores.isnan()
    order = scores.masked_fill(missing, -torch.inf).argsort(dim=1, descending=True, stable=True)
    if not missing.any():
        return order
    return order.gather(1, missing.gather(1, order).byte().argsort(dim=1, stable=True))


def _firsts(block: Tensor, k: int) -> Tensor:
    """The places [m, k] of each row's largest scores, in order; by some rows at a time, for their memory."""
    rows = max(1, AT_ONCE // max(1, block.shape[1]))
    found = torch.empty(len(block), min(k, block.shape[1]), dtype=torch.long)
    for start in range(0, len(block), rows):
        found[start : start + rows] = descending(block[start : start + rows])[:, :k]
    return found


def checked_k(k: int, n: int) -> int:
    """K itself, if it is a number of precedents that n training instances can give."""
    whole = hasattr(k, "__index__") and not isinstance(k, bool)
    if not whole or not 1 <= index(k) <= n:
        kind = "" if whole else ", which is no whole number"
        raise InputError(f"k is {k!r}{kind}, but there are {n} training instances. Ask for k from 1 to {n}.")
    return index(k)


def stacked(tops: Sequence[TopK]) -> TopK:
    """The lists of consecutive groups of cases as one."""
    return TopK(torch.cat([top.indices for top in tops]), torch.cat([top.scores for top in tops]))


def top_k(blocks: Iterable[Tensor], k: int) -> TopK:
    """The k best columns of a score matrix that comes as consecutive blocks [m, b] of columns."""
    return ranked(blocks, k)[0]


def ranked(blocks: Iterable[Tensor], k: int) -> tuple[TopK, Tensor]:
    """The k best, and how many of all scores are below each of them [m, k]; NaN is below every number."""
    best, reached, start = None, torch.zeros(0), 0
    for block in blocks:
        order = _firsts(block, k)
        found = TopK(order + start, block.gather(1, order))
        before = best
        best = found if before is None else before.joined(found).best(k)
        last = best.scores[:, -1:]  # what reached it before is on the list, unless it was the last already
        reached_now = (block >= last).sum(dim=1)
        if before is not None:
            listed = (before.scores >= last).sum(dim=1)
            full = (before.scores[:, -1:] == last)[:, 0] & (before.scores.shape[1] == k)
            reached_now += torch.where(full, reached, listed)
        reached = reached_now
        start += block.shape[1]
    checked_k(k, start)
    assert best is not None
    _no_nan(best, k)
    listed = k - torch.searchsorted(best.scores.flip(1).contiguous(), best.scores.contiguous())
    as_high = torch.where(best.scores == best.scores[:, -1:], reached[:, None], listed)
    return best, start - as_high


def _no_nan(best: TopK, k: int) -> None:
    short = best.scores.isnan().any(dim=1)
    if short.any():
        case = int(short.nonzero()[0])
        count = int((~best.scores[case].isnan()).sum())
        raise NumericalError(
            f"k is {k}, but only {count} training instances have a relevance to case {case} that is a number. "
            "Look for NaN or infinite values in the inputs, the weights or the hidden layers."
        )
