"""Sources: where inputs are read from. Every reading of an instance gives the same values, or is an error."""

from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from random import Random
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from precedents.data.inputs import Collated, Inputs, bare, joined, leaves, mapped, shapes, stacked, taken
from precedents.data.labels import ItemForm, class_number, numbers
from precedents.errors import InputError, StaleError
from precedents.runtime.guards import Guard, draws_kept
from precedents.runtime.sparse import SparseRows
from precedents.runtime.users_code import users

Chunk = tuple[Inputs, list[int]]  # instances with their labels
MARK_BYTES = 8  # of an instance
LISTED_INSTANCES = 1024  # of a list that are read again before an answer from what was computed of it
SOME, QUICK_SECONDS = 16, 0.01  # instances of a dataset that are read again, and in how long
PLACES = Random(0)  # noqa: S311  that draws the first of these
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

    def known_marks(self, indices: Sequence[int]) -> list[bytes] | None:  # noqa: ARG002
        """The marks of these inputs, if they were read before and are compared at every reading."""
        return None

    def unchanged(self) -> None:
        """Refuses inputs that are no longer what they were, as far as that is quick to tell."""
        return


@dataclass(frozen=True, eq=False)
class InMemory(Source):
    """Inputs that are tensors already."""

    inputs: Inputs
    ragged: bool = False

    def read(self, indices: Sequence[int]) -> Inputs:
        """Consecutive instances are a view, others a copy."""
        if not isinstance(self.inputs, Tensor):
            return taken(self.inputs, indices)
        straight = isinstance(indices, range) and indices.step == 1
        return self.inputs[indices.start : indices.stop] if straight else self.inputs[list(indices)]  # type: ignore[attr-defined]


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
    marks: bytearray = field(default_factory=bytearray, repr=False)  # of inputs,
    labels: "array[int]" = field(default_factory=lambda: array("q"), repr=False)  # and their labels
    seen: bytearray = field(default_factory=bytearray, repr=False)  # a byte for each instance that was read
    shapes: list[list[tuple[int, ...]]] = field(default_factory=list)  # of the first instance that was read
    guard: Guard = field(default_factory=Guard, repr=False)

    def compare(self, indices: Sequence[int], inputs: Inputs, labels: Sequence[int]) -> None:
        """Notes instances that are read for the first time; others must be what they were."""
        found = marks(inputs, [0] * len(labels))
        with self.guard.lock:
            for i, mark, label in zip(indices, found, labels, strict=True):
                if i >= len(self.seen):
                    room = i + 1 - len(self.seen)
                    self.seen.extend(bytes(room))
                    self.marks.extend(bytes(room * MARK_BYTES))
                    self.labels.extend([0] * room)
                place = slice(i * MARK_BYTES, (i + 1) * MARK_BYTES)
                if self.seen[i] and (self.marks[place] != mark or self.labels[i] != label):
                    raise self.changed(i)
                self.seen[i], self.marks[place], self.labels[i] = 1, mark, label

    def known(self, indices: Sequence[int]) -> list[bytes] | None:
        """The marks of some inputs, if all of them were read."""
        if not all(i < len(self.seen) and self.seen[i] for i in indices):
            return None
        return [bytes(self.marks[i * MARK_BYTES : (i + 1) * MARK_BYTES]) for i in indices]

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
        return another(f"Instance {i} of the dataset")


def another(what: str) -> InputError:
    """That an instance is not what it was at its first reading."""
    return InputError(
        f"{what} differs from its first reading, and explanations cite training instances by index. Where it "
        "is drawn anew each time, switch off shuffling, random augmentation and dropout of the inputs; where "
        "its owner has changed it, make a new Explainer (or trial) of the changed data."
    )


@contextmanager
def looking_again() -> Iterator[None]:
    """In which instances are read that were read before: what differs is stale, and nothing is drawn."""
    with draws_kept():
        try:
            yield
        except InputError as error:
            if type(error) is not InputError:  # but a failure of the owner's code
                raise
            raise StaleError(str(error)) from None


def read_again(source: Source, n: int) -> None:
    """Reads the first of n instances, the last and a drawn one, and some after it while that is quick."""
    end, drawn = perf_counter() + QUICK_SECONDS, PLACES.randrange(n)
    with looking_again():
        source.read([0, n - 1])
        for i in range(min(SOME, n)):
            if i and perf_counter() > end:
                return
            source.read([(drawn + i) % n])


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

    def known_marks(self, indices: Sequence[int]) -> list[bytes] | None:
        """Of the first reading."""
        return self.readings.known(indices)

    def labelled(self, indices: Sequence[int]) -> Chunk:
        """With their labels; 0 where items have none."""
        pieces, labels = [], []
        for start in range(0, len(indices), CHUNK_INSTANCES):
            chunk = indices[start : start + CHUNK_INSTANCES]
            inputs, own = instances_of((self._item(i) for i in chunk), chunk, self.form, self.readings)
            self._agree(chunk, own)
            self.readings.compare(chunk, inputs, own)
            pieces.append(inputs)
            labels += own
        return joined(pieces), labels

    def unchanged(self) -> None:
        """Refuses items of a list that are no longer what they were, evenly spaced ones; a few of others."""
        if isinstance(self.dataset, (list, tuple)):
            with looking_again():
                self.labelled(range(0, len(self.dataset), -(-len(self.dataset) // LISTED_INSTANCES)))
        else:
            read_again(self, len(self.readings.seen))

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


def instances_of(items: Any, places: Sequence[int], form: ItemForm, readings: Readings) -> Chunk:
    """Items that are instances, as one batch; the label is 0 where items have none."""
    found, labels = [], []
    for i, item in zip(places, items, strict=False):
        x, y = form.parts(item, f"Item {i} of the {readings.what}")
        inputs = numbers(x, f"The input of item {i}")
        readings.shaped(i, inputs)
        found.append(inputs)
        labels.append(0 if form.label is None else class_number(y, f"item {i}", form.names))
    return stacked(found), labels
