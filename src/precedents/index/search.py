"""From approximate scores to exact ones: the best are computed again until no other can be among the first k.

Where a bound is known, rows are computed until the list is proved complete, if that takes few. Else the error
of the codes is measured on the rows that were computed anyway, and others are left out that are several such
errors below the k-th score. What would take too many rows is cut off, and said; where a pass over all of them
is not much dearer than what is read already, the search is given up for that pass.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

FIRST = 64  # rows that are computed again for each case, by which the error of all others is judged
BATCH = 256  # rows that are computed again at once after that, for all cases
LOOKED = 16384  # rows among which equal ones are looked for, where there are very many
PROVING = 256  # rows that are computed again to prove that a list is complete
SHARE = 2  # of how many rows one may be computed again before all of them pass by instead
SHORT = 65536  # rows of which a list is never cut off: they pass by instead; of more
CAP = 2048  # are computed again for a case, at most
DIGITS = (1e4, 1e3)  # steps of a logarithm of a length, and of a cosine, within which rows may be equal
SIGMAS = 4.0  # errors that a row must be below, to be left out

Sure = Literal["proved", "likely", "capped"]


@dataclass(frozen=True, eq=False)
class Approximation:
    """What is known of the cosines of m cases with n rows before any row is computed again."""

    about: Tensor  # [m, n], an estimate
    most: Tensor | None  # [m, n], which they are proved not to exceed, if anything is
    sigma: Tensor  # [m, n], the size that its errors should have, by the formula
    lengths: Tensor  # [n], float64
    case_lengths: Tensor  # [m], float64


class Pool:
    """Rows that were computed again, for all cases at once."""

    def __init__(self, m: int, compute: Callable[[Tensor], Tensor]) -> None:
        self.places = torch.zeros(0, dtype=torch.long)  # [u], ascending
        self.cross = torch.zeros(m, 0, dtype=torch.double)  # [m, u], inner products with the cases
        self._compute = compute

    def add(self, places: Tensor) -> None:
        """Computes those of the rows that are missing."""
        missing = places[~torch.isin(places, self.places)].unique()
        if len(missing):
            every, cross = torch.cat([self.places, missing]), self._compute(missing)
            order = every.argsort()
            self.places, self.cross = every[order], torch.cat([self.cross, cross], dim=1)[:, order]

    def at(self, case: int, places: Tensor) -> Tensor:
        """The inner products [u] of a case with some of the rows."""
        return self.cross[case, torch.searchsorted(self.places, places)]


class Alike:
    """A number for each of some rows, which equal rows share; each row is read once."""

    def __init__(self, read: Callable[[list[int]], Sequence[bytes]]) -> None:
        self._read = read
        self._known: dict[int, bytes] = {}  # marks by place
        self._numbers: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._known)

    def at(self, places: Tensor) -> Tensor:
        """The numbers [u] of the rows at some places."""
        every = places.tolist()
        new = [place for place in every if place not in self._known]
        self._known.update(zip(new, self._read(new), strict=True))
        return torch.tensor(
            [self._numbers.setdefault(self._known[place], len(self._numbers)) for place in every],
            dtype=torch.long,
        )


Score = Callable[[int, Tensor, Tensor | slice], Tensor]  # of a case's inner products [u] with some of the rows


def firsts(k: int) -> int:
    """How many rows are computed again for each case, in any case."""
    return max(FIRST, 2 * k)


@dataclass(frozen=True, eq=False)
class Search:
    """The k best of n rows for each of m cases, by scores that rise with the cosine."""

    known: Approximation
    score: Score
    alike: Alike
    pool: Pool
    k: int

    def found(self) -> list["Completed"]:
        """Computes rows until the k best of each case are among them; and how sure that is."""
        best = [self._firsts(case) for case in range(len(self.known.case_lengths))]
        self.pool.add(torch.cat(best))
        return [self._completed(case, first) for case, first in enumerate(best)]

    def is_in_vain(self, found: Sequence["Completed"]) -> bool:
        """Whether a pass over all rows is not much dearer than more of this, and surer."""
        cut = any(each.sure == "capped" for each in found)
        return cut and (len(self.known.lengths) <= SHORT or self.cost + BATCH > self.worth)

    def _firsts(self, case: int) -> Tensor:
        """The rows [u] that seem to be best."""
        about = self._scores(case, self.known.about[case])
        return about.nan_to_num(nan=-torch.inf).topk(min(len(about), firsts(self.k))).indices

    @property
    def cost(self) -> int:
        """How many rows were computed; one that is only read costs half as much."""
        return len(self.pool.places) + len(self.alike) // 2

    @property
    def worth(self) -> int:
        """How many rows may be computed before a pass over all is cheaper."""
        return len(self.known.lengths) // SHARE

    def _completed(self, case: int, first: Tensor) -> "Completed":
        reach = self._scores(case, self._reach(case, first))
        if self.known.most is not None:
            most = self._scores(case, self.known.most[case])
            few = int(self._open(case, most).sum()) <= PROVING
            if few and self._complete(case, most, PROVING):
                return Completed("proved", reach)
        return Completed("likely" if self._complete(case, reach, CAP) else "capped", reach)

    def _reach(self, case: int, first: Tensor) -> Tensor:
        """Cosines [n] that are not exceeded, as far as the errors of the first rows tell."""
        by = self.known.lengths[first] * self.known.case_lengths[case]
        about, sigma = self.known.about[case], self.known.sigma[case]
        errors = torch.where(by > 0, self.pool.at(case, first) / by, 0.0) - about[first]
        usual, relative = _size(errors), _size(errors / sigma[first]).clamp(min=1)
        return about + SIGMAS * (relative * sigma).clamp(min=usual)

    def _complete(self, case: int, reach: Tensor, cap: int) -> bool:
        """Computes rows that may be among the k best, the most promising first; whether none is left."""
        left = self._best(case, self._open(case, reach), reach)
        while len(left) and (len(reach) <= SHORT or cap > 0) and self._pays(left):
            self.pool.add(left[:BATCH])
            cap -= BATCH
            left = self._best(case, self._open(case, reach), reach)
        return not len(left)

    def _pays(self, left: Tensor) -> bool:
        """Whether what is left to be computed is worth it; of very many rows, whether the next ones are."""
        return self.cost + (len(left) if len(self.known.lengths) <= SHORT else BATCH) <= self.worth

    def _best(self, case: int, may: Tensor, reach: Tensor) -> Tensor:
        """Rows in the order of what they may reach; of very many, no more than k that are equal.

        Of equal rows the first ones rank before the others.
        """
        left = may.nonzero().flatten()
        left = left[reach[left].argsort(descending=True, stable=True)]
        if len(left) <= BATCH:
            return left
        every = torch.cat([left[:LOOKED], self.pool.places]).sort().values
        own = self._numbers(case, every)
        order = own.argsort(stable=True)
        begins = torch.searchsorted(own[order], own[order])  # where the group of each begins
        first = every[order[torch.arange(len(every)) - begins < self.k]]
        return left[torch.isin(left, first) | (torch.arange(len(left)) >= LOOKED)]

    def _numbers(self, case: int, places: Tensor) -> Tensor:
        """Numbers [u] of rows, which equal rows share; only rows whose codes are like others' are read."""
        lengths, about = self.known.lengths[places].log(), self.known.about[case, places].double()
        steps = zip((lengths, about), DIGITS, strict=True)
        keys = [(each * digits).nan_to_num(0, 0, 0).round().long() for each, digits in steps]
        _, group, counts = (keys[0] * 2**16 + keys[1]).unique(return_inverse=True, return_counts=True)
        several = counts[group] > 1
        numbers = -1 - torch.arange(len(places))
        numbers[several] = self.alike.at(places[several])
        return numbers

    def _open(self, case: int, reach: Tensor) -> Tensor:
        """Which rows [n] may be among the k best and are not computed; what may tie counts, NaN does not."""
        scores = self.score(case, self.pool.cross[case], self.pool.places)
        scores = scores[~scores.isnan()]
        last = scores.topk(self.k).values[-1] if len(scores) >= self.k else -torch.inf
        may = reach >= last
        may[self.pool.places] = False
        return may

    def _scores(self, case: int, cosines: Tensor) -> Tensor:
        cross = cosines * self.known.lengths * self.known.case_lengths[case]
        return self.score(case, cross, slice(None))


@dataclass(frozen=True, eq=False)
class Completed:
    """How sure it is that a case's k best were computed, and what scores the others reach at most."""

    sure: Sure
    reach: Tensor  # [n]


def _size(errors: Tensor) -> Tensor:
    """Their root mean square: about zero, since the best of estimates are rather too high."""
    return errors.square().mean().sqrt()
