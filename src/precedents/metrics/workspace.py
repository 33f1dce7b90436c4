"""Workspace: a classifier with its training set, and what was computed from the two, kept while it fits.

Eighteen metrics share four feature maps and a few matrices; whoever holds the workspace computes each once.
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.data.examples import Batch, Examples, InMemory
from precedents.gradients.rows import Rows
from precedents.runtime.budget import SharedBudget
from precedents.runtime.buffers import BUFFERS
from precedents.runtime.cache import Cache
from precedents.runtime.progress import tracked

T = TypeVar("T")


class Features(Hashable, Protocol):
    """phi: what an instance is to a metric."""

    def __call__(self, model: Classifier, batch: Batch, /) -> Tensor | Rows:
        """Vectors [b, d] on the CPU, as they are or as Rows; each depends on its own instance alone."""


@dataclass(frozen=True, eq=False)
class Workspace:
    """What the explanations of one model rest on."""

    classifier: Classifier
    train: Examples
    shared: SharedBudget = field(
        default_factory=SharedBudget, repr=False
    )  # shared with models that are tried beside this one
    cache: Cache = field(default_factory=Cache, init=False, repr=False)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of `make`, computed at the first call with this key and kept with the workspace."""
        return self.cache.once(key, make)

    def matrix(self, key: Hashable, make: Callable[[], T], count: int = 0) -> T:
        """The same for what is large, which may be put away; making it takes so many bytes."""

        def made() -> T:
            if count:
                self.shared.take(self.cache, count, self.classifier.budget, again=True)
            return make()

        return self.cache.once(key, made, large=True)

    def holding(self, key: Hashable, count: int) -> None:
        """Says that so many bytes will be kept by this key, which other models may have to give."""
        if key not in self.cache:
            self.shared.take(self.cache, count, self.classifier.budget)

    def width(self, features: Features) -> int:
        """The length d of a feature vector."""
        return self._sample(features).width

    def stored(self, features: Features) -> int:
        """How many numbers of a feature vector are held: fewer than d, where factors do for it."""
        return self._sample(features).stored

    def itemsize(self, features: Features) -> int:
        """The bytes of a number of a feature vector."""
        return self._sample(features).matrix.element_size()

    def _sample(self, features: Features) -> Rows:
        largest = self.train.largest[:1]
        return self.once(
            ("sample", features), lambda: Rows.of(features(self.classifier, self.train.take(largest)))
        )

    def rows(self, features: Features, examples: Examples, first: int = 0) -> Iterator[tuple[range, Rows]]:
        """Feature vectors of consecutive instances from the first on, with their places."""
        size = self.classifier.budget.rows(self.width(features), self.itemsize(features), self.stored(features))
        rest = len(examples) - first
        size = -(-rest // -(-rest // size)) if rest else size  # blocks of one size
        with BUFFERS:
            for start in tracked(range(first, len(examples), size), getattr(features, "__name__", "features")):
                places = range(start, min(start + size, len(examples)))
                yield places, Rows.of(features(self.classifier, examples.take(places)))

    def reused(self, features: Features) -> None:
        """Says that the training set's vectors will be asked for again: they are kept from now on."""
        self.once(("reused", features), lambda: True)

    @property
    def room(self) -> int:
        """How many bytes of what is computed from the training set are kept for the next question."""
        return self.classifier.budget.kept(self.train.streamed)

    def train_rows(self, features: Features) -> Iterator[tuple[range, Rows]]:
        """The same of the training set; kept from the second time on, if there is room for them.

        Of a set that is streamed, which is dear to read, the first are kept as far as there is room.
        """
        size = self.itemsize(features) * len(self.train) * self.stored(features)
        keep = ("reused", features) in self.cache and (self.train.streamed or size <= self.room)
        room = self.room if keep else 0
        if keep:
            self.holding(("rows", features), min(size, room))
        self.reused(features)

        def rest(last: tuple[range, Rows] | None) -> Iterator[tuple[range, Rows]]:
            return self.rows(features, self.train, 0 if last is None else last[0].stop)

        def fits(block: tuple[range, Rows]) -> bool:
            nonlocal room
            room -= self.itemsize(features) * len(block[0]) * self.stored(features)
            return room >= 0

        return self.cache.blocks(("rows", features), rest, fits)

    def groups(self, features: Features, cases: Examples) -> Iterator[Examples]:
        """The cases in groups whose features take no more than a third of the budget."""
        size = max(1, self.classifier.budget.bytes // (3 * self.itemsize(features) * self.width(features)))
        for batch in cases.batches(size):
            yield Examples(InMemory(batch.inputs), batch.labels)
