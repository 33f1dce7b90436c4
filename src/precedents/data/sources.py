"""Sources: where inputs are read from. Every reading of an instance gives the same values, or is an error."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from operator import itemgetter
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler

from precedents.data.inputs import Collated, Inputs, bare, count, joined, leaves, mapped, shapes, stacked, taken
from precedents.data.labels import ItemForm, checked_labels, class_number, numbers
from precedents.errors import InputError
from precedents.runtime.guards import Guard, random_state_kept
from precedents.runtime.sparse import SparseRows
from precedents.runtime.users_code import users

Chunk = tuple[Inputs, list[int]]  # instances with their labels
MARK_BYTES = 8  # of an instance
END = object()  # of an iterator
CHUNK_INSTANCES = 256  # that are read before they are compared with their first reading


class Source(Protocol):
    """Where inputs are read from."""

    @property
    def streamed(self) -> bool:
        """Whether the inputs are read anew each time, from elsewhere than memory: little is kept of them."""
        return False

    @property
    def ragged(self) -> bool:
        """Whether instances differ in length, and are filled up to the longest of a batch."""
        return False

    @property
    def largest(self) -> tuple[int, int]:
        """Two instances to try things on: the largest where they differ."""
        return 0, 1

    def read(self, indices: Sequence[int]) -> Inputs:
        """The inputs [b, ...] of these instances."""


@dataclass(frozen=True, eq=False)
class InMemory(Source):
    """Inputs that are tensors already."""

    inputs: Inputs
    ragged: bool = False

    def read(self, indices: Sequence[int]) -> Inputs:
        """Consecutive instances are a view, others a copy."""
        return taken(self.inputs, indices)


def marks(inputs: Inputs, labels: Sequence[int]) -> list[bytes]:
    """For each instance some bytes, which differ when its inputs, their shape or its label differ.

    Padding is no part of an instance, where an attention mask or a collate_fn says what that is.
    """
    if isinstance(inputs, Collated):
        pairs = zip(inputs.members, labels, strict=True)
        return [blake2b(member.mark + str(y).encode(), digest_size=MARK_BYTES).digest() for member, y in pairs]
    if not (isinstance(inputs, dict) and "attention_mask" in inputs):
        return _marks(inputs, labels)
    alone = (mapped(lambda leaf: leaf[None], bare(inputs, i)) for i in range(len(labels)))
    return [_marks(one, [label])[0] for one, label in zip(alone, labels, strict=True)]


def _marks(inputs: Inputs, labels: Sequence[int]) -> list[bytes]:
    shape = [each[1:] for each in shapes(inputs)]
    rows = [_bytes(leaf) for leaf in leaves(inputs)]
    starts = {label: blake2b(str((label, shape)).encode(), digest_size=MARK_BYTES) for label in set(labels)}
    found = []
    for i, label in enumerate(labels):
        digest = starts[label].copy()
        for row in rows:
            digest.update(row[i])
        found.append(digest.digest())
    return found


def _bytes(leaf: Tensor) -> Any:
    """The bytes of each instance as a row of an array; of sparse rows those of their numbers and places."""
    if isinstance(leaf, SparseRows):
        rows = leaf.rows
        parts = (np.split(x, rows.indptr[1:-1]) for x in (rows.indices.astype(np.int64), rows.data))
        return [place.tobytes() + value.tobytes() for place, value in zip(*parts, strict=True)]
    leaf = leaf.detach().cpu().contiguous()
    return leaf.reshape(len(leaf), leaf[0].numel()).view(torch.uint8).numpy()


@dataclass(frozen=True, eq=False)
class Readings:
    """What the instances were at their first reading."""

    what: str
    marks: bytearray = field(default_factory=bytearray, repr=False)
    seen: bytearray = field(default_factory=bytearray, repr=False)  # a byte for each instance that was read
    shapes: list[list[tuple[int, ...]]] = field(default_factory=list)  # of the first instance that was read
    guard: Guard = field(default_factory=Guard, repr=False)

    def compare(self, indices: Sequence[int], inputs: Inputs, labels: Sequence[int]) -> None:
        """Notes instances that are read for the first time; others must be what they were."""
        found = marks(inputs, labels)
        with self.guard.lock:
            for i, mark in zip(indices, found, strict=True):
                if i >= len(self.seen):
                    room = i + 1 - len(self.seen)
                    self.seen.extend(bytes(room))
                    self.marks.extend(bytes(room * MARK_BYTES))
                place = slice(i * MARK_BYTES, (i + 1) * MARK_BYTES)
                if self.seen[i] and self.marks[place] != mark:
                    raise self.changed(i)
                self.seen[i], self.marks[place] = 1, mark

    def shaped(self, i: int, inputs: Inputs) -> None:
        """Refuses an instance of another shape than the first."""
        found = shapes(inputs)
        if not self.shapes:
            self.shapes.append(found)
        if found != self.shapes[0]:
            raise InputError(
                f"Instance {i} of the {self.what} has the shape {found}, instance 0 has {self.shapes[0]}. "
                "Pad or crop the inputs to one shape, or pass a loader with a collate_fn that pads its batches."
            )

    def changed(self, i: int) -> InputError:
        """That a second reading gave something else."""
        return InputError(
            f"Instance {i} of the dataset differs at its second reading. Explanations cite "
            "training instances by index, so the dataset must give the same values each time: "
            "switch off shuffling, random augmentation and dropout of its inputs."
        )


@dataclass(frozen=True, eq=False)
class FromDataset(Source):
    """Inputs of a map-style dataset, read when needed."""

    dataset: Any
    form: ItemForm
    readings: Readings
    known: Tensor | None = field(default=None, repr=False)  # labels that those of the items must equal
    streamed = True

    def read(self, indices: Sequence[int]) -> Inputs:
        """The instances one by one."""
        return self.labelled(indices)[0]

    def labelled(self, indices: Sequence[int]) -> Chunk:
        """With their labels; 0 where items have none."""
        pieces, labels = [], []
        for start in range(0, len(indices), CHUNK_INSTANCES):
            chunk = indices[start : start + CHUNK_INSTANCES]
            inputs, own = _instances((self._item(i) for i in chunk), chunk, self.form, self.readings)
            self._agree(chunk, own)
            self.readings.compare(chunk, inputs, own)
            pieces.append(inputs)
            labels += own
        return joined(pieces), labels

    def _item(self, i: int) -> Any:
        with users(f"item {i} of the {self.readings.what}"):
            return self.dataset[i]

    def first_pass(self) -> list[int]:
        """The labels of all instances, which are read for the first time."""
        every = range(len(self.dataset))
        chunks = (every[start : start + CHUNK_INSTANCES] for start in range(0, len(every), CHUNK_INSTANCES))
        return [label for chunk in chunks for label in self.labelled(chunk)[1]]

    def _agree(self, indices: Sequence[int], labels: Sequence[int]) -> None:
        if self.known is None or self.form.label is None:
            return
        for i, label in zip(indices, labels, strict=True):
            if label != int(self.known[i]):
                raise InputError(
                    f"Item {i} of the {self.readings.what} has the label {label}, but the labels that were "
                    f"named say {int(self.known[i])}. Leave labels= out, and those of the items are taken."
                )


def _instances(items: Any, places: Sequence[int], form: ItemForm, readings: Readings) -> Chunk:
    """Items that are instances, as one batch; the label is 0 where items have none."""
    found, labels = [], []
    for i, item in zip(places, items, strict=False):
        x, y = form.parts(item, f"Item {i} of the {readings.what}")
        inputs = numbers(x, f"The input of item {i}")
        readings.shaped(i, inputs)
        found.append(inputs)
        labels.append(0 if form.label is None else class_number(y, f"item {i}"))
    return stacked(found), labels


class Streamed(Source):
    """Instances that come in an order of their own: read from the first to the last; going back starts anew.

    A set that can also give an instance by its number says so by `pick`.
    """

    streamed = True

    def __init__(
        self,
        chunks: Callable[[], Iterator[Chunk]],
        readings: Readings,
        pick: Callable[[Sequence[int]], Chunk] | None = None,
    ) -> None:
        self._chunks, self._readings, self._pick = chunks, readings, pick
        self._iterator: Iterator[Chunk] | None = None
        self._places = range(0)  # of the chunk that was read last,
        self._held: Inputs | None = None  # and what it is
        self._guard = Guard()
        self._process = os.getpid()  # whose stream it is

    def first_pass(self) -> list[int]:
        """The labels of all instances, which are read for the first time."""
        labels: list[int] = []
        for inputs, own in self._chunks():
            self._readings.compare(range(len(labels), len(labels) + len(own)), inputs, own)
            labels += own
        return labels

    def read(self, indices: Sequence[int]) -> Inputs:
        """Going on from where the stream is, or from its beginning if that has gone by."""
        if self._pick is not None and not isinstance(indices, range):
            inputs, labels = self._pick(indices)
            self._readings.compare(indices, inputs, labels)
            return inputs
        wanted = sorted(set(indices))
        with self._guard.lock:
            try:
                pieces = self._pieces(wanted)
            except BaseException:  # nobody knows how far the stream has gone
                self._held = None
                raise
        found, order = joined(pieces), sorted(set(indices))
        if list(indices) == order:
            return found
        places = {i: place for place, i in enumerate(order)}
        return mapped(lambda leaf: leaf[[places[i] for i in indices]], found)

    def _pieces(self, wanted: list[int]) -> list[Inputs]:
        """These instances, in ascending order, in as many pieces as they lie in chunks."""
        pieces = []
        if wanted[0] < self._places.start or self._held is None or self._process != os.getpid():
            self._restart()
        while wanted:
            here = [i - self._places.start for i in wanted if i < self._places.stop]
            if here:
                rows = slice(here[0], here[-1] + 1) if len(here) == here[-1] - here[0] + 1 else here
                assert self._held is not None
                pieces.append(mapped(itemgetter(rows), self._held))
                wanted = wanted[len(here) :]
            if wanted:
                self._advance()
        return pieces

    def _restart(self) -> None:
        self._process = os.getpid()
        self._iterator, self._held, self._places = self._chunks(), None, range(0)
        self._advance()

    def _advance(self) -> None:
        """To the next chunk; after the last one nothing is kept open."""
        start = self._places.stop
        chunk = next(self._iterator, None) if self._iterator is not None else None
        if chunk is None:
            raise self._readings.changed(start)
        inputs, labels = chunk
        places = range(start, start + len(labels))
        self._readings.compare(places, inputs, labels)
        self._held, self._places = inputs, places
        if self._places.stop >= len(self._readings.seen):
            self._iterator = None


def from_iterable(items: Any, form: ItemForm, readings: Readings) -> Streamed:
    """A set that can only be gone through: of instances, or of batches of them."""
    batched = isinstance(items, DataLoader) and items.batch_sampler is not None

    def chunks() -> Iterator[Chunk]:
        with random_state_kept(), users(f"the {readings.what}"):  # loaders draw a seed for their workers
            iterator = guarded(iter(items), readings.what)
        start = 0
        for first in iterator:
            if batched or _is_batch(*form.parts(first, f"Item {start} of the {readings.what}")):
                chunk = batch_of(first, start, form, readings)
            else:
                several = [first, *islice(iterator, CHUNK_INSTANCES - 1)]
                chunk = _instances(several, range(start, start + len(several)), form, readings)
            start += len(chunk[1])
            yield chunk

    return Streamed(chunks, readings, _picked(items, form, readings))


def guarded(iterator: Iterator[Any], what: str) -> Iterator[Any]:
    """The items of a user's iterator; what it raises between them is an error about it."""
    while True:
        with users(f"the {what}"):
            item = next(iterator, END)
        if item is END:
            return
        yield item


def _picked(items: Any, form: ItemForm, readings: Readings) -> Callable[[Sequence[int]], Chunk] | None:
    """How instances are read by their numbers from a loader that takes a map-style dataset in its order."""
    if not isinstance(items, DataLoader) or type(items.batch_sampler) is not BatchSampler:
        return None
    if not isinstance(items.batch_sampler.sampler, SequentialSampler):
        return None

    def pick(indices: Sequence[int]) -> Chunk:
        with users(f"the {readings.what}"):
            batch = items.collate_fn([items.dataset[i] for i in indices])
        return batch_of(batch, 0, form, readings)

    return pick


def batch_of(batch: Any, start: int, form: ItemForm, readings: Readings) -> Chunk:
    """A batch of a loader, whose first instance has this number."""
    where = f"The batch from instance {start} of the {readings.what}"
    x, y = form.parts(batch, where)
    inputs = numbers(_untied(x), f"The input of the batch from instance {start}")
    counts = {shape[0] if shape else 0 for shape in shapes(inputs)}
    if len(counts) != 1 or 0 in counts:
        raise InputError(f"{where} has inputs of different lengths: {sorted(counts)}.")
    readings.shaped(start, mapped(lambda leaf: leaf[0], inputs))
    b = counts.pop()
    return inputs, [0] * b if form.label is None else checked_labels(y, b, readings.what).tolist()


def _untied(value: Any) -> Any:
    """Lists of tensors, as loaders make them of tuples, as tuples again; lists of numbers as they are."""
    if isinstance(value, dict):
        return {key: _untied(part) for key, part in value.items()}
    return tuple(map(_untied, value)) if isinstance(value, list) and _holds(value) else value


def _holds(value: Any) -> bool:
    """Whether there is a tensor in a nest of lists."""
    return isinstance(value, Tensor) or (isinstance(value, list) and any(map(_holds, value)))


def _is_batch(x: Any, y: Any) -> bool:
    """Whether there are several labels, for as many inputs."""
    several = isinstance(y, (list, tuple)) or getattr(y, "ndim", 0) > 0
    return several and len(y) == count(numbers(_untied(x), "The input"))
