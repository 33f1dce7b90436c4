"""Sets whose items become batches by a collate_fn: of a DataLoader, or of a dataset that it is named with."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    TensorDataset,
)
from torch.utils.data._utils.collate import default_collate, default_convert

from precedents.data.collation import Collation, Member, item_mark
from precedents.data.inputs import Collated
from precedents.data.labels import checked_labels, separate
from precedents.data.sources import Chunk, Readings, Source, chunk_of, read_again
from precedents.data.streams import Streamed, guarded
from precedents.data.watch import Watch, beneath, same_count
from precedents.errors import InputError
from precedents.runtime.guards import random_state_kept
from precedents.runtime.users_code import users
from precedents.runtime.wording import a_type, none_there

FEW = 16  # items that a collate_fn is learned from
NUMBER = 8  # bytes of one that the model is fed, at most
MANY = 8  # items from which on the collate_fn is not asked again what it makes of each alone


def collates(data: Any, function: Any) -> bool:
    """Whether batches are made by a function of the user's own, and not as every loader makes them."""
    if not callable(function):
        raise InputError(f"collate_fn is {a_type(function)}. Pass a function of a list of items.")
    if isinstance(data, DataLoader):
        return data.batch_sampler is not None and function not in (default_collate, default_convert)
    return not isinstance(data, type)


@dataclass(frozen=True, eq=False)
class FromItems(Source):
    """Instances of a map-style dataset, read when needed, as items of a collation."""

    dataset: Any
    collation: Collation
    readings: Readings
    known: Sequence[Member] = field(default=(), repr=False)  # what was read at first, without the items

    @property
    def streamed(self) -> bool:
        """Whether the items come from elsewhere than memory."""
        dataset = self.dataset
        while isinstance(dataset, Subset):
            dataset = dataset.dataset
        return not isinstance(dataset, (list, tuple, TensorDataset))

    @cached_property
    def largest(self) -> tuple[int, int]:
        """The longest and the shortest, between which there is most padding."""
        return extremes(self.known)

    def read(self, indices: Sequence[int]) -> Collated:
        """The items, each compared with its first reading; of many, as their owner has them."""
        members = self.members(indices) if len(indices) <= MANY else self._unchanged(indices)
        found = Collated(members, self.collation)
        self.readings.compare(indices, found, [member.label for member in members])
        return found

    def known_marks(self, indices: Sequence[int]) -> list[bytes] | None:
        """Of the first reading."""
        return self.readings.known(indices)

    def unchanged(self) -> None:
        """Refuses items that are no longer what they were, of a few that are read again."""
        same_count(self.dataset, len(self.readings.seen), self.readings.what)
        read_again(self, len(self.readings.seen))

    def members(self, indices: Sequence[int]) -> list[Member]:
        """The items, and what the collate_fn makes of each alone."""
        items = fetched(self.dataset, indices, self.readings)
        return [self.collation.member(item, f"item {i}") for i, item in zip(indices, items, strict=True)]

    def _unchanged(self, indices: Sequence[int]) -> list[Member]:
        """The items; what the collate_fn makes of each that is what it was, is known."""
        found = []
        for i, item in zip(indices, fetched(self.dataset, indices, self.readings), strict=True):
            known, own = self.known[i], item_mark(item)
            same = own is not None and own == known.raw
            found.append(replace(known, item=item) if same else self.collation.member(item, f"item {i}"))
        return found


def fetched(dataset: Any, indices: Sequence[int], readings: Readings) -> list[Any]:
    """Items of a dataset, as a loader fetches them."""
    several = getattr(dataset, "__getitems__", None)
    if several is not None:
        with readings.guard.lock, users(f"the {readings.what}"):
            return list(several(list(indices)))
    found = []
    for i in indices:
        with readings.guard.lock, users(f"item {i} of the {readings.what}"):
            found.append(dataset[i])
    return found


def spaced(count: int) -> list[int]:
    """A few places in a set, evenly apart."""
    return sorted({round(i * (count - 1) / (FEW - 1)) for i in range(FEW)})


def first_pass(members: Iterator[Sequence[Member]], readings: Readings, collation: Collation) -> list[Member]:
    """All instances, read for the first time; their items are not kept."""
    found: list[Member] = []
    for chunk in members:
        places = range(len(found), len(found) + len(chunk))
        readings.compare(places, Collated(chunk, collation), [member.label for member in chunk])
        found += [replace(member, item=None) for member in chunk]
    return found


def in_chunks(read: Callable[[int, int], list[Member]]) -> Iterator[list[Member]]:
    """All instances, read as so many from a place on; how many, the largest of those before say."""
    start, size = 0, 1
    while some := read(start, size):
        yield some
        start, size = start + len(some), chunk_of(NUMBER * max(member.numbers for member in some))


def extremes(members: Sequence[Member]) -> tuple[int, int]:
    """The places of the longest and of the shortest; of two different ones, if all are alike."""
    order = sorted(range(len(members)), key=lambda i: -members[i].numbers)
    return order[0], order[-1]


def mapped_set(dataset: Any, function: Any, labels: Any, what: str) -> tuple[FromItems, list[int]]:
    """A map-style dataset with its collate_fn, read once; and the labels that its batches have."""
    with users(f"the {what}"):
        count = len(dataset)
    if count == 0:
        return _empty(what)
    readings = Readings(what)
    items = fetched(dataset, spaced(count), readings)
    draft = FromItems(dataset, Collation.of(function, items, what, labels), readings)
    chunks = in_chunks(lambda start, size: draft.members(range(start, min(start + size, count))))
    members = first_pass(chunks, draft.readings, draft.collation)
    source = FromItems(dataset, draft.collation, draft.readings, members)
    return source, [member.label for member in members]


class StreamedItems(Streamed):
    """Instances of an iterable dataset, which come in an order of their own, as items of a collation."""

    def __init__(self, dataset: Any, collation: Collation, readings: Readings) -> None:
        super().__init__(partial(_chunks, dataset, collation, readings), readings)
        self.collation, self.readings = collation, readings
        self.extremes = (0, 1)

    @property
    def largest(self) -> tuple[int, int]:
        """The longest and the shortest."""
        return self.extremes


def streamed_set(dataset: Any, function: Any, labels: Any, what: str) -> tuple[StreamedItems, list[int]]:
    """An iterable dataset with its collate_fn, gone through once; and the labels that its batches have."""
    readings = Readings(what)
    items = list(islice(_items(dataset, readings), FEW))
    if not items:
        return _empty(what)
    source = StreamedItems(dataset, Collation.of(function, items, what, labels), readings)
    members = first_pass(_members(dataset, source.collation, readings), readings, source.collation)
    source.extremes = extremes(members)
    return source, [member.label for member in members]


def _items(dataset: Any, readings: Readings) -> Iterator[Any]:
    with random_state_kept(), users(f"the {readings.what}"):
        iterator = iter(dataset)
    return guarded(iterator, readings)


def _members(dataset: Any, collation: Collation, readings: Readings) -> Iterator[list[Member]]:
    items = _items(dataset, readings)

    def read(start: int, size: int) -> list[Member]:
        return [collation.member(item, f"item {i}") for i, item in enumerate(islice(items, size), start)]

    return in_chunks(read)


def _chunks(dataset: Any, collation: Collation, readings: Readings) -> Iterator[Chunk]:
    for members in _members(dataset, collation, readings):
        yield Collated(members, collation), [member.label for member in members]


def collated_set(
    data: Any, function: Any, labels: Any, what: str, called: str | None = None
) -> tuple[Source, Tensor, Watch | None]:
    """A loader or a dataset with a collate_fn, in the order of the dataset whatever the sampler's is.

    And its labels: those of the batches, unless `labels` has them by themselves or says where they are; and who
    watches these.
    `called` is the key of an item that has its id.
    """
    dataset = data.dataset if isinstance(data, DataLoader) else data
    apart = None if labels is None or isinstance(labels, int) else separate(dataset, labels)
    streams = isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__")
    if isinstance(data, DataLoader) and not streams:
        _refuse_sampler(data, what)
    read = streamed_set if streams else mapped_set
    source, found = read(dataset, function, labels if apart is None else apart, what)
    for i in sorted({0, len(found) // 2, len(found) - 1}):
        source.read(range(i, i + 1))  # a second reading, so that what is random is found before any work
    if isinstance(source, FromItems) and called is not None:
        source = replace(source, collation=replace(source.collation, called=called))
    known = torch.tensor(found) if apart is None else checked_labels(apart, len(found), what)
    return source, known, beneath(None, what, apart)


def _refuse_sampler(loader: "DataLoader[Any]", what: str) -> None:
    """Refuses a loader that does not take every instance of its dataset once, in whatever order."""
    own = loader.batch_sampler
    sampler: Any = own.sampler if type(own) is BatchSampler else None
    with random_state_kept(), users(f"the sampler of the {what}"):
        count = len(loader.dataset)  # type: ignore[arg-type]
        once = isinstance(sampler, RandomSampler) and not sampler.replacement and sampler.num_samples == count
        if isinstance(sampler, SequentialSampler) or once:
            return
        given = list(sampler) if sampler is not None else [i for batch in own or () for i in batch]
    if sorted(given) != list(range(count)):
        raise InputError(
            f"The sampler of the {what} draws {len(given)} times from the {count} instances of its dataset: "
            "some of them never, or more than once. Pass a loader of the instances that are meant: "
            "DataLoader(torch.utils.data.Subset(loader.dataset, indices), collate_fn=loader.collate_fn); "
            "or all: pr.Examples.of(loader.dataset, collate_fn=loader.collate_fn)."
        )


def _empty(what: str) -> Any:
    raise InputError(f"{none_there(what)} Pass at least one labelled instance.")
