"""Batch: some instances in memory; those of different lengths go on in smaller batches with less padding."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from torch import Tensor

from precedents.data.inputs import Inputs, between
from precedents.data.ragged import by_length


class Batch(NamedTuple):
    """Some instances in memory, with their labels and places."""

    inputs: Inputs  # [b, ...]
    labels: Tensor  # [b]
    indices: Sequence[int]  # their places in the set, for messages

    def relabelled(self, labels: Tensor) -> "Batch":
        """These instances with other labels."""
        return self._replace(labels=labels)

    def between(self, start: int, stop: int) -> "Batch":
        """Some consecutive instances, from place `start` to before `stop`."""
        if start <= 0 and stop >= len(self.labels):
            return self
        inputs = between(self.inputs, start, stop)
        return type(self)(inputs, self.labels[start:stop], self.indices[start:stop])

    def pieces(self, size: int) -> Iterable[tuple[slice | Tensor, "Batch"]]:
        """All instances in batches of one size, no larger than this; with their places."""
        b = len(self.labels)
        size = -(-b // -(-b // size))
        return [(slice(start, start + size), self.between(start, start + size)) for start in range(0, b, size)]


class RaggedBatch(Batch):
    """Instances of different lengths, filled up as an attention mask says."""

    def pieces(self, size: int) -> Iterator[tuple[slice | Tensor, Batch]]:
        """By their length, without the padding that none of a batch needs."""
        if len(self.labels) < 2:
            yield from super().pieces(size)
            return
        for places, inputs in by_length(self.inputs, size):
            yield places, Batch(inputs, self.labels[places], [self.indices[i] for i in places])
