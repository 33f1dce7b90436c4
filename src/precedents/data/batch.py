"""Batch: some instances in memory; those of different lengths go on in smaller batches with less padding."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from torch import Tensor

from precedents.data.inputs import Inputs, between, lengths, shortened, taken


class Batch(NamedTuple):
    """Some instances in memory, with their labels and places."""

    inputs: Inputs  # [b, ...]
    labels: Tensor  # [b]
    indices: Sequence[int]  # their places in the set, for messages
    ragged: bool = False  # whether they are of different lengths, and filled up as an attention mask says

    def relabelled(self, labels: Tensor) -> "Batch":
        """These instances with other labels."""
        return self._replace(labels=labels)

    def between(self, start: int, stop: int) -> "Batch":
        """Some consecutive instances."""
        if start <= 0 and stop >= len(self.labels):
            return self
        inputs = between(self.inputs, start, stop)
        return Batch(inputs, self.labels[start:stop], self.indices[start:stop], self.ragged)

    def pieces(self, size: int) -> Iterator[tuple[slice | Tensor, "Batch"]]:
        """All instances in batches of one size, no larger than this; with their places.

        Those of different lengths come by their length, without the padding that none of a batch needs.
        """
        b = len(self.labels)
        ends = lengths(self.inputs) if self.ragged and b > 1 else None
        if ends is not None:
            yield from self._by_length(ends, size)
            return
        size = -(-b // -(-b // size))
        for start in range(0, b, size):
            yield slice(start, start + size), self.between(start, start + size)

    def _by_length(self, ends: Tensor, size: int) -> Iterator[tuple[Tensor, "Batch"]]:
        """The longest first; of shorter ones there are more in a batch."""
        order, start, longest = ends.argsort(descending=True, stable=True), 0, int(ends.max())
        while start < len(order):
            end = max(1, int(ends[order[start]]))
            places = order[start : start + size * longest // end]
            inputs = shortened(taken(self.inputs, places.tolist()), end)
            start += len(places)
            yield places, Batch(inputs, self.labels[places], [self.indices[i] for i in places])
