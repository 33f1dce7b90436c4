"""Count sketch: vectors of any length in a few thousand buckets, so that inner products are kept on average.

Each column has a sign and a bucket, by a hash of its place and of a seed, never by a generator's state: so rows
that are formed, rows that stay factored and rows on another machine meet in the same buckets. The columns of a
chunk, which is as long as there are buckets, never meet: a chunk is turned by its own offset and added.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import torch
from torch import Tensor

from precedents.gradients.factors import WRITING, Factored, some_of
from precedents.gradients.lookups import Lookup
from precedents.gradients.rows import Rows

PIECE_NUMBERS = 2**22  # of gradients that are formed at once to be added up
HASHED = 2**20  # places that are hashed at once
GOLDEN = 0x9E3779B97F4A7C15  # the step of splitmix64, and its two multipliers
MIXERS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def hashed(
    places: "np.ndarray[tuple[int], np.dtype[np.uint64]]", seed: int
) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
    """64 bits for each place, which look random: the finisher of splitmix64.

    >>> hashed(np.arange(2, dtype=np.uint64), 0)
    array([16294208416658607535,  7960286522194355700], dtype=uint64)
    """
    with np.errstate(over="ignore"):
        bits = (places + np.uint64(seed + 1)) * np.uint64(GOLDEN)
        for shift, mixer in MIXERS:
            bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(mixer)
        return bits ^ (bits >> np.uint64(31))


@dataclass(frozen=True)
class CountSketch:
    """Vectors of some width, added up in buckets; unchanged where there are as many buckets as columns."""

    width: int
    buckets: int
    seed: int = 0

    @property
    def exact(self) -> bool:
        """Whether no two columns meet."""
        return self.width <= self.buckets

    @property
    def length(self) -> int:
        """Of what comes out."""
        return min(self.width, self.buckets)

    @cached_property
    def signs(self) -> Tensor:
        """One for each column [width], int8."""
        signs = torch.empty(self.width, dtype=torch.int8)
        for start in range(0, self.width, HASHED):
            stop = min(start + HASHED, self.width)
            bits = hashed(np.arange(start, stop, dtype=np.uint64), 2 * self.seed) >> np.uint64(63)
            signs[start:stop] = torch.from_numpy(1 - 2 * bits.astype(np.int8))
        return signs

    @cached_property
    def offsets(self) -> Tensor:
        """By how much each chunk of columns is turned."""
        chunks = np.arange(-(-self.width // self.buckets), dtype=np.uint64)
        return torch.from_numpy((hashed(chunks, 2 * self.seed + 1) % np.uint64(self.buckets)).astype(np.int64))

    def of(self, rows: Rows) -> Tensor:
        """The sketches [b, length] of what is stored of the rows, without their scale."""
        into = torch.zeros(len(rows), self.length, dtype=rows.matrix.dtype)
        for start, columns in _formed(rows):
            self.add(columns, start, into)
        for place, factor in rows.factors:
            if isinstance(factor, Lookup):
                self._look_up(factor, place.start, into)
            else:
                self._form(factor, place.start, into)
        return into

    def is_dear(self, rows: Rows) -> bool:
        """Whether forming what stays factored costs more than the passes that gave it, by counting."""
        forming, passing = 0.0, float(WRITING * rows.matrix.shape[1])
        for _, factor in rows.factors:
            if not isinstance(factor, Lookup):
                size = factor.parameter.numel()
                o = len(factor.parameter)
                positions = factor.stored / (o + size // o)
                forming, passing = forming + size * (positions + WRITING), passing + 3 * size * positions
        return forming > passing

    def add(self, columns: Tensor, start: int, into: Tensor) -> None:
        """Adds consecutive columns [b, c], the first of which is at `start`, to their buckets."""
        if self.exact:
            into[:, start : start + columns.shape[1]] = columns
            return
        stop, size = start + columns.shape[1], self.buckets
        for chunk in range(start // size, -(-stop // size)):
            first, last = max(start, chunk * size), min(stop, (chunk + 1) * size)
            turn = chunk * size + size - int(self.offsets[chunk])  # the column that is added to bucket 0
            for a, b in ((first, min(last, turn)), (max(first, turn), last)):
                if a < b:
                    bucket = (a - turn) % size
                    signs = self.signs[a:b].to(columns.dtype)
                    into[:, bucket : bucket + b - a].addcmul_(columns[:, a - start : b - start], signs)

    def _form(self, factor: Factored, start: int, into: Tensor) -> None:
        """Adds gradients that are formed for a few instances at a time."""
        size = max(1, PIECE_NUMBERS // factor.parameter.numel())
        for i in range(0, len(factor), size):
            few = factor.changed(partial(some_of, i, i + size)).formed().flatten(1)
            self.add(few.to(into), start, into[i : i + size])

    def _look_up(self, table: Lookup, start: int, into: Tensor) -> None:
        """Adds the rows of a table that each instance has used, and no others."""
        b, e = len(table), table.values.shape[2]
        places = (start + table.rows[..., None] * e + torch.arange(e)).flatten(1)
        values = table.values.flatten(1).to(into)
        if self.exact:
            into.scatter_add_(1, places, values)
            return
        signs = self.signs[places].to(into.dtype)
        buckets = (places + self.offsets[places // self.buckets]) % self.buckets
        into.scatter_add_(1, buckets, values.mul(signs) if b else values)


def _formed(rows: Rows) -> Iterator[tuple[int, Tensor]]:
    """The runs of columns that are formed, by where they begin."""
    before, column = 0, 0
    for place in [
        *sorted((place for place, _ in rows.factors), key=lambda place: place.start),
        slice(rows.width, rows.width),
    ]:
        count = place.start - before
        if count:
            yield before, rows.matrix[:, column : column + count]
        before, column = place.stop, column + count
