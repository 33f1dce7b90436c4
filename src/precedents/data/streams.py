"""Streams: sets that come in an order of their own, item by item or batch by batch: iterators and loaders."""

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any

from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from precedents.data.inputs import Inputs, count, joined, mapped, shapes
from precedents.data.labels import ItemForm, checked_labels, numbers
from precedents.data.sources import Chunk, Readings, Source, instances_of, read_again
from precedents.data.watch import same_count
from precedents.errors import InputError
from precedents.runtime.guards import Guard, random_state_kept
from precedents.runtime.users_code import users

RANDOM = (RandomSampler, SubsetRandomSampler, WeightedRandomSampler)
END = object()  # of an iterator


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

    @property
    def ordered(self) -> bool:
        """Whether instances come in their order alone."""
        return self._pick is None

    def known_marks(self, indices: Sequence[int]) -> list[bytes] | None:
        """The marks of these inputs, as they were when they were read first."""
        return self._readings.known(indices)

    def unchanged(self) -> None:
        """Refuses instances that are no longer what they were, of a few that can be read by their numbers."""
        if self._pick is not None:
            read_again(self, len(self._readings.seen))

    def first_pass(self) -> list[int]:
        """The labels of all instances, which are read for the first time."""
        labels: list[int] = []
        for inputs, own in self._chunks():
            self._readings.compare(range(len(labels), len(labels) + len(own)), inputs, own)
            labels += own
        return labels

    def read(self, indices: Sequence[int]) -> Inputs:
        """Going on from where the stream is, or from its beginning if that has gone by."""
        if self._pick is not None and not self._follows(indices):
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

    def _follows(self, indices: Sequence[int]) -> bool:
        """Whether these come next, so that the stream is not gone through for them alone."""
        start = indices[0] if isinstance(indices, range) and indices.step == 1 and indices else -1
        here = self._places if self._held is not None else range(0)
        return start == 0 or here.start <= start <= here.stop

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
            iterator = guarded(iter(items), readings)
        start = 0
        for first in iterator:
            if batched or _is_batch(*form.parts(first, f"Item {start} of the {readings.what}")):
                chunk = batch_of(first, start, form, readings)
            else:
                several = [first, *islice(iterator, readings.at_once - 1)]
                chunk = instances_of(several, range(start, start + len(several)), form, readings)
            start += len(chunk[1])
            yield chunk

    return Streamed(chunks, readings, _picked(items, form, readings))


def refuse_shuffling(loader: "DataLoader[Any]", what: str) -> None:
    """Refuses a loader whose instances come in another order each time, with what to pass instead."""
    samplers = (loader.sampler, getattr(loader.batch_sampler, "sampler", None))
    drawn = next((sampler for sampler in samplers if isinstance(sampler, RANDOM)), None)
    if drawn is None:
        return
    chosen = "dataset"
    if isinstance(drawn, SubsetRandomSampler):  # of the training set itself, where others are for validation
        chosen = "torch.utils.data.Subset(dataset, sampler.indices)"
    raise InputError(
        f"The {what} is a DataLoader that shuffles, but explanations cite instances by their place. "
        f"Pass DataLoader({chosen}, batch_size=..., shuffle=False), or {chosen} itself."
    )


def guarded(iterator: Iterator[Any], readings: Readings) -> Iterator[Any]:
    """The items of a user's iterator; what it raises between them is an error about it."""
    while True:
        with readings.guard.lock, users(f"the {readings.what}"):
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
        same_count(items.dataset, len(readings.seen), readings.what)
        with readings.guard.lock, users(f"the {readings.what}"):
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
    return inputs, [0] * b if form.label is None else checked_labels(y, b, readings.what, form.names).tolist()


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
