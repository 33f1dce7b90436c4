"""Vectors: phi of the training set under one feature map, block by block, and phi of cases.

What is kept of them for the next question is decided by the memory budget.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.data.examples import Batch, Examples, InMemory
from precedents.gradients.rows import Rows, joined
from precedents.metrics.workspace import Workspace
from precedents.runtime.buffers import BUFFERS
from precedents.runtime.cache import Slot
from precedents.runtime.progress import tracked

T = TypeVar("T")

Block = tuple[range, Rows]  # consecutive instances and their vectors

SAMPLE: Slot[Rows] = Slot("vector of one instance")
ROWS: Slot[Sequence[Block]] = Slot("vectors of the training set", large=True)
SQUARES: Slot[Tensor] = Slot("squared lengths [n] of the training set's vectors")


class Features(Hashable, Protocol):
    """phi: what an instance is to a metric."""

    def __call__(self, model: Classifier, batch: Batch, /) -> Tensor | Rows:
        """Vectors [b, d] on the CPU, as they are or as Rows; each depends on its own instance alone."""


@dataclass(frozen=True, eq=False)
class Holding(Generic[T]):
    """Something of the training set that questions read in blocks: where it is kept, how it is read."""

    slot: Slot[Sequence[T]]
    read: Callable[[], Iterable[T]]


@dataclass(frozen=True, eq=False)
class Vectors:
    """The vectors of a workspace's training set under one feature map."""

    workspace: Workspace
    features: Features

    @property
    def sample(self) -> Rows:
        """The vector of one instance, the largest where they differ."""
        subject = self.workspace.subject

        def made() -> Rows:
            return Rows.of(self.features(subject.classifier, subject.train.take(subject.train.largest[:1])))

        return self.workspace.once(SAMPLE.at(self.features), made)

    @property
    def width(self) -> int:
        """The length d of a vector."""
        return self.sample.width

    @property
    def itemsize(self) -> int:
        """The bytes of a number of a vector."""
        return self.sample.matrix.element_size()

    @property
    def row_bytes(self) -> int:
        """The bytes that are stored of a vector: fewer than of d numbers, where factors do for it."""
        return self.itemsize * self.sample.stored

    def __len__(self) -> int:
        """How many training instances there are."""
        return len(self.workspace.train)

    def of(self, examples: Examples, first: int = 0) -> Iterator[Block]:
        """The vectors of any instances, from the first on, in blocks of a size that the budget has room for."""
        sample, classifier = self.sample, self.workspace.classifier
        size = classifier.budget.rows(sample.width, self.itemsize, sample.stored)
        rest = len(examples) - first
        size = -(-rest // -(-rest // size)) if rest else size
        with BUFFERS:
            for start in tracked(
                range(first, len(examples), size), getattr(self.features, "__name__", "features")
            ):
                places = range(start, min(start + size, len(examples)))
                yield places, Rows.of(self.features(classifier, examples.take(places)))

    def blocks(self, again: bool = True) -> Iterator[Block]:
        """The vectors of the training set; kept if they will be asked for `again` and there is room for them.

        Of a set that is streamed, which is dear to read, the first are kept as far as there is room.
        """
        workspace, slot = self.workspace, ROWS.at(self.features)
        room, size = workspace.room, self.row_bytes * len(self)
        room = room if again and (workspace.train.streamed or size <= room) else 0
        if room:
            workspace.holding(slot, min(size, room))

        def rest(last: Block | None) -> Iterator[Block]:
            return self.of(workspace.train, 0 if last is None else last[0].stop)

        def fits(block: Block) -> bool:
            nonlocal room
            room -= self.row_bytes * len(block[0])
            return room >= 0

        return workspace.cache.blocks(slot, rest, fits)

    @property
    def holding(self) -> Holding[Block]:
        """The blocks, and where they are kept."""
        return Holding(ROWS.at(self.features), self.blocks)

    def groups(self, cases: Examples) -> Iterator[Examples]:
        """The cases in groups whose vectors take no more than a third of the budget."""
        size = max(1, self.workspace.classifier.budget.bytes // (3 * self.itemsize * self.width))
        for batch in cases.batches(size):
            yield Examples(InMemory(batch.inputs), batch.labels)


@dataclass(frozen=True, eq=False)
class Question:
    """Cases that are compared with the vectors of a training set."""

    vectors: Vectors
    cases: Examples
    again: bool = True  # whether there will be another question like it

    def case_rows(self) -> Rows:
        """The vectors of the cases."""
        return joined(self.vectors.of(self.cases), len(self.cases))

    def train_blocks(self) -> Iterator[Block]:
        """The vectors of the training set."""
        return self.vectors.blocks(self.again)
