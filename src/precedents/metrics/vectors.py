"""Vectors: phi of the training set under one feature map, block by block, and phi of cases.

What is kept of them for the next question is decided by the memory budget.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.data.examples import Batch, Examples, InMemory
from precedents.gradients.gradients import row_size
from precedents.gradients.rows import Rows, joined
from precedents.metrics.features.gradient import gradient
from precedents.metrics.workspace import Workspace
from precedents.runtime.buffers import BUFFERS
from precedents.runtime.cache import Slot
from precedents.runtime.progress import tracked

T = TypeVar("T")

RowBlock = tuple[range, Rows]  # consecutive instances and their vectors

SIZE: Slot[tuple[int, int, int]] = Slot("length of a vector, bytes of a number, numbers that are stored")
ROWS: Slot[Sequence[RowBlock]] = Slot("vectors of the training set", large=True)
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
    width: int  # the length d of a vector
    itemsize: int  # the bytes of a number
    row_bytes: int  # what is stored of a vector: less than d numbers, where factors do for it

    @classmethod
    def of(cls, workspace: Workspace, features: Features) -> "Vectors":
        """Looks at one instance; features that have no meaning for the model fail here."""

        def made() -> tuple[int, int, int]:
            subject = workspace.subject
            if features is gradient:  # whose plan knows it
                return row_size(subject.classifier)
            row = Rows.of(features(subject.classifier, subject.train.take(subject.train.largest[:1])))
            return row.width, row.matrix.element_size(), row.stored

        width, itemsize, stored = workspace.cache.once(SIZE.at(features), made)
        return cls(workspace, features, width, itemsize, itemsize * stored)

    def __len__(self) -> int:
        """How many training instances there are."""
        return len(self.workspace.subject.train)

    def rows(self, examples: Examples, first: int = 0) -> Iterator[RowBlock]:
        """The vectors of any instances, from the first on, in blocks of a size that the budget has room for."""
        classifier, features = self.workspace.subject.classifier, self.features
        size = classifier.budget.rows(self.width, self.itemsize, self.row_bytes // self.itemsize)
        stop = len(examples)
        size = -(-(stop - first) // -(-(stop - first) // size)) if stop > first else size
        with BUFFERS.free:
            for start in tracked(range(first, stop, size), getattr(features, "__name__", "features")):
                places = range(start, min(start + size, stop))
                yield places, Rows.of(features(classifier, examples.take(places)))

    def blocks(self, again: bool = True) -> Iterator[RowBlock]:
        """The vectors of the training set; kept if they will be asked for `again` and there is room for them.

        Of a set that is streamed, which is dear to read, the first are kept as far as there is room.
        """
        workspace, slot = self.workspace, ROWS.at(self.features)
        train = workspace.subject.train
        size, streamed = self.row_bytes * len(train), train.streamed
        room = workspace.subject.classifier.budget.kept(streamed) if again else 0
        room = room if streamed or size <= room else 0

        def rest(last: RowBlock | None) -> Iterator[RowBlock]:
            if last is None and room:
                workspace.holding(slot, min(size, room))
            return self.rows(train, 0 if last is None else last[0].stop)

        def fits(block: RowBlock) -> bool:
            nonlocal room
            room -= self.row_bytes * len(block[0])
            return room >= 0

        if not room and slot not in workspace.cache:
            return rest(None)
        return workspace.cache.blocks(slot, rest, fits)

    @property
    def holding(self) -> Holding[RowBlock]:
        """The blocks, and where they are kept."""
        return Holding(ROWS.at(self.features), self.blocks)

    def groups(self, cases: Examples) -> Iterator[Examples]:
        """The cases in groups whose vectors take no more than a third of the budget."""
        budget = self.workspace.subject.classifier.budget
        size = max(1, budget.bytes // (3 * self.itemsize * self.width))
        if len(cases) <= size:
            yield cases
            return
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
        return joined(self.vectors.rows(self.cases), len(self.cases))

    def train_blocks(self) -> Iterator[RowBlock]:
        """The vectors of the training set."""
        return self.vectors.blocks(self.again)
