"""Vectors: phi of the training set under one feature map, block by block, and phi of cases.

What is kept of them for the next question is decided by the memory budget.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Protocol, TypeVar

from torch import Tensor

from precedents.classifier.classifier import COPIES, Classifier
from precedents.data.batch import Batch
from precedents.data.examples import Examples, InMemory
from precedents.gradients.gradients import pass_bytes, row_size
from precedents.gradients.plan import A_FEW
from precedents.gradients.rows import Rows, joined
from precedents.metrics.features.gradient import gradient
from precedents.metrics.workspace import Workspace
from precedents.runtime.budget import COUNTED, FLOAT64, MANY, MOST
from precedents.runtime.buffers import BUFFERS
from precedents.runtime.cache import Slot
from precedents.runtime.progress import tracked
from precedents.runtime.sparse import SparseRows

T = TypeVar("T")

UNFORMED = 0.75  # of a vector's numbers are stored, at most, where blocks are large as of vectors never formed
WEIGHED = 3  # vectors for one that is weighed: as it is formed, as it is weighed, and what comes of both
SCORE = 32  # bytes of a score while it is made and ranked: an inner product twice, and what comes of it,
LISTED = 160  # and of one that is listed, while lists are joined

RowBlock = tuple[range, Rows]  # consecutive instances and their vectors
Passing = Callable[[Iterator[RowBlock]], Iterator[RowBlock]]  # looks at blocks on their way

SIZE: Slot[tuple[int, int, int, int]] = Slot("length of a vector, bytes of a number, numbers stored, formed")
WEIGHED_ROWS: Slot[int] = Slot("rows that are weighed at once")
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
    weighed: bool = False  # whether they are compared under a matrix: then they are formed, in float64
    by_products: Callable[[], bool] | None = None  # whether none is formed although they are weighed
    formed_bytes: int = 0  # of a vector that are stored as factors, and formed when they are multiplied

    @classmethod
    def of(
        cls,
        workspace: Workspace,
        features: Features,
        weighed: bool = False,
        by_products: Callable[[], bool] | None = None,
    ) -> "Vectors":
        """Looks at one instance in a `workspace`; `features` that have no meaning for the model fail here.

        `weighed` says that the vectors are compared under a matrix, `by_products` if that needs none formed.
        """

        def made() -> tuple[int, int, int, int]:
            subject = workspace.subject
            if features is gradient:  # whose plan knows it
                return row_size(subject.classifier)
            row = Rows.of(features(subject.classifier, subject.train.take(subject.train.largest[:1])))
            return row.width, row.matrix.element_size(), row.stored, 0

        width, itemsize, stored, formed = workspace.cache.once(SIZE.at(features), made)
        sizes = width, itemsize, itemsize * stored
        return cls(workspace, features, *sizes, weighed, by_products, itemsize * formed)

    def __len__(self) -> int:
        """How many training instances there are."""
        return len(self.workspace.subject.train)

    def rows(self, examples: Examples, first: int = 0) -> Iterator[RowBlock]:
        """The vectors of `examples`, from the `first` on, in blocks of a size that the budget has room for."""
        classifier, features = self.workspace.subject.classifier, self.features
        size, stop = self.at_once, len(examples)
        size = -(-(stop - first) // -(-(stop - first) // size)) if stop > first else size
        with BUFFERS.free:
            for start in tracked(range(first, stop, size), getattr(features, "__name__", "features")):
                places = range(start, min(start + size, stop))
                yield places, Rows.of(features(classifier, examples.take(places)))

    def blocks(self, again: bool = True, passing: Passing | None = None) -> Iterator[RowBlock]:
        """The vectors of the training set; kept if they will be asked for `again` and there is room for them.

        Of a set that is streamed, which is dear to read, the first are kept as far as there is room. What is
        not kept whole goes through `passing`, if it is given.
        """
        workspace, slot = self.workspace, ROWS.at(self.features)
        train = workspace.subject.train
        size, streamed = self.row_bytes * len(train), train.streamed
        room = self.room if again else 0
        room = room if streamed or size <= room else 0

        def rest(last: RowBlock | None) -> Iterator[RowBlock]:
            if last is None and room:
                workspace.holding(slot, min(size, room))
            return self.rows(train, 0 if last is None else last[0].stop)

        def fits(block: RowBlock) -> bool:
            nonlocal room
            room -= self.row_bytes * len(block[0])
            return room >= 0

        there = slot in workspace.cache
        whole, passes = not room and not there, size > room and not there
        blocks = rest(None) if whole else workspace.cache.blocks(slot, rest, fits)
        blocks = passing(blocks) if passing is not None and passes else blocks
        return _pieces(blocks, self._weighed) if self._forms else blocks

    @property
    def _unformed(self) -> bool:
        """Whether factors do for what is compared, or for a good part of it."""
        return not self._forms and self.row_bytes < UNFORMED * self.itemsize * self.width

    @cached_property
    def at_once(self) -> int:
        """How many rows are made at once."""
        model, row = self.workspace.subject.classifier, self.row_bytes
        if self._unformed:
            most = model.budget.unformed(row, MANY if isinstance(model.sample, SparseRows) else MOST)
        else:
            most = model.budget.rows(self.width, self.itemsize, row // self.itemsize)
        return min(most, model.readable)

    @property
    def _weighed(self) -> int:
        """How many rows are weighed at once: the same for all that are weighed in this workspace."""
        budget = self.workspace.subject.classifier.budget
        slot = WEIGHED_ROWS.at(self.features)
        return self.workspace.once(slot, lambda: max(1, min(MOST, budget.bytes // (8 * self._formed))))

    @cached_property
    def _forms(self) -> bool:
        """Whether vectors are formed to be compared, which is asked for when the matrix is chosen."""
        return self.weighed and not (self.by_products is not None and self.by_products())

    @cached_property
    def _formed(self) -> int:
        """Bytes of a vector while it is compared: as it is stored, or formed and weighed."""
        return WEIGHED * FLOAT64 * self.width if self._forms else self.row_bytes

    @cached_property
    def least(self) -> int:
        """Bytes without which no case is compared: a case, two training instances, and a pass."""
        return 3 * self._formed + self._pass + self._read

    @cached_property
    def _pass(self) -> int:
        """Bytes of what makes the vector of one instance."""
        model = self.workspace.subject.classifier
        if self.features is gradient:
            return pass_bytes(model)
        return 2 * model.itemsize * model.activations

    def used(self, m: int, k: int = 0) -> int:
        """Bytes that comparing m cases holds at once, k scores of each listed, without what is kept."""
        return self._used(m, k) + self.repeated(min(m, self._group(k)), k)

    def _used(self, m: int, k: int = 0) -> int:
        """The same, if nothing is kept formed from block to block."""
        budget, rows = self.workspace.subject.classifier.budget, self._weighed if self._forms else self.at_once
        share = max(budget.bytes // 8, min(A_FEW * self._pass, budget.bytes // 4))  # as of plans
        passing = max(self._pass, min(rows * self._pass, share))
        held = rows if self._unformed else 2 * rows
        read, group = self.at_once * self._read, min(m, self._group(k))
        return group * (self._formed + self._scored(k)) + held * self._formed + passing + read

    def repeated(self, m: int, k: int = 0) -> int:
        """Bytes in which what is formed of m cases for a block is kept, with k listed; none for one block."""
        if m * self.formed_bytes < COUNTED or self._forms or len(self) <= self.at_once:
            return 0
        room = self.workspace.subject.classifier.budget.bytes - self._used(m, k) - self.room
        return max(0, min(m * self.formed_bytes, room))

    @property
    def _read(self) -> int:
        """Bytes of an instance while it is read; none where the inputs are in memory already."""
        subject = self.workspace.subject
        return COPIES * subject.classifier.input_bytes if subject.train.streamed else 0

    @property
    def room(self) -> int:
        """How many bytes of the training set's vectors are kept for the next question."""
        budget = self.workspace.subject.classifier.budget
        kept = budget.kept(self.workspace.subject.train.streamed)
        return kept if budget.given is None else max(0, min(kept, budget.bytes - self._used(1)))

    @property
    def holding(self) -> Holding[RowBlock]:
        """The blocks, and where they are kept."""
        return Holding(ROWS.at(self.features), self.blocks)

    def _scored(self, k: int) -> int:
        """Bytes of the scores of a case with a block of the training set, and of the k that are listed."""
        whole = self.weighed and not self._forms  # what is compared by products alone may be so at once
        columns = 2 * len(self) if whole else min(len(self), self.at_once)
        return SCORE * columns + LISTED * k

    def _group(self, k: int) -> int:
        """How many cases are compared at once: a third of the budget for vectors, or an eighth for scores."""
        each = 3 * self._formed + 8 * self._scored(k)
        return max(1, self.workspace.subject.classifier.budget.bytes // max(each, 1))

    def groups(self, cases: Examples, k: int = 0) -> Iterable[Examples]:
        """The cases in groups whose vectors and scores, k of each listed, the budget has room for."""
        m = len(cases)
        size = 1 if m == 1 else self._group(k)
        if m <= size:
            return [cases]
        ragged = cases.source.ragged
        return (Examples(InMemory(each.inputs, ragged), each.labels) for each in cases.batches(size))


@dataclass(frozen=True, eq=False)
class Question:
    """Cases that are compared with the vectors of a training set."""

    vectors: Vectors
    cases: Examples
    again: bool = True  # whether there will be another question like it
    passing: Passing | None = None  # what the vectors go through that are not kept

    def case_rows(self) -> Rows:
        """The vectors of the cases."""
        m = len(self.cases)
        room, rows = self.vectors.repeated(m), joined(self.vectors.rows(self.cases), m)
        return rows.repeated(room) if room else rows

    def train_blocks(self) -> Iterator[RowBlock]:
        """The vectors of the training set."""
        return self.vectors.blocks(self.again, self.passing)


def _pieces(blocks: Iterator[RowBlock], size: int) -> Iterator[RowBlock]:
    """The blocks, in pieces of at most so many rows."""
    for places, rows in blocks:
        for start in range(0, len(places), size):
            yield places[start : start + size], rows.between(start, start + size)
        del rows
