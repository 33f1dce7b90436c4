"""Evidence: a classifier with its training set, and what was computed from the two, kept while it fits.

Eighteen metrics share four feature maps and a few matrices; whoever holds the evidence computes each once.
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast

import torch
from torch import Tensor

from precedents.data import Batch, Examples
from precedents.engine.memory import NUMBER, available, required, rows_per_block
from precedents.model import Classifier
from precedents.runtime.progress import tracked

T = TypeVar("T")


class Features(Hashable, Protocol):
    """phi: what an instance is to a metric."""

    def __call__(self, model: Classifier, batch: Batch, /) -> Tensor:
        """Vectors [b, d], float64 on the CPU; each depends on its own instance alone."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the explanations of one model rest on."""

    model: Classifier
    train: Examples
    _kept: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of `make`, computed at the first call with this key."""
        if key not in self._kept:
            self._kept[key] = make()
        return cast("T", self._kept[key])

    def width(self, features: Features) -> int:
        """The length d of a feature vector."""
        return self.once(("width", features), lambda: features(self.model, self.train.take([0])).shape[1])

    def rows(self, features: Features, examples: Examples) -> Iterator[tuple[range, Tensor]]:
        """Feature vectors [b, d] of consecutive instances, with their places."""
        size = rows_per_block(self.width(features))
        starts = range(0, len(examples), size)
        for start in tracked(starts, getattr(features, "__name__", "features")):
            places = range(start, min(start + size, len(examples)))
            yield places, features(self.model, examples.take(places))

    def train_rows(self, features: Features) -> Iterator[tuple[range, Tensor]]:
        """The same of the training set; computed once if a quarter of the free memory holds them."""
        if NUMBER * len(self.train) * self.width(features) > available() // 4 and features not in self._kept:
            yield from self.rows(features, self.train)
            return
        matrix = self.matrix(features)
        size = rows_per_block(matrix.shape[1], most=4096)
        for start in range(0, len(matrix), size):
            places = range(start, min(start + size, len(matrix)))
            yield places, matrix[places.start : places.stop]

    def matrix(self, features: Features) -> Tensor:
        """All feature vectors of the training set [n, d], kept."""

        def filled() -> Tensor:
            n, d = len(self.train), self.width(features)
            required(NUMBER * n * d, f"The feature matrix [{n}, {d}]", "Use fewer training instances.")
            matrix = torch.empty(n, d, dtype=torch.double)
            for places, rows in self.rows(features, self.train):
                matrix[places.start : places.stop] = rows
            return matrix

        return self.once(features, filled)
