"""Examples: what a training set and a set of cases are: labelled instances, read in batches."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils.data import (
    DataLoader,
    IterableDataset,
    TensorDataset,
)

from precedents.data.batch import Batch, RaggedBatch
from precedents.data.cases import as_batch
from precedents.data.collated import collated_set, collates
from precedents.data.datamodules import loader_of, unshuffled
from precedents.data.frames import ColumnNames, numeric
from precedents.data.ids import Id, checked_ids, index_ids, without_ids
from precedents.data.inputs import Inputs, bare, mapped, shapes
from precedents.data.labels import Names, checked_labels, class_names, form_of, in_order, numbers, separate_from
from precedents.data.sources import FromDataset, InMemory, Readings, Source, marks
from precedents.data.streams import Streamed, from_iterable, guarded, refuse_shuffling
from precedents.data.watch import Watch, beneath, shared_labels
from precedents.errors import InputError
from precedents.runtime.door import door
from precedents.runtime.guards import random_state_kept
from precedents.runtime.users_code import users
from precedents.runtime.wording import a_type, none_there

__all__ = [
    "Batch",
    "Examples",
    "InMemory",
    "Source",
    "as_batch",
    "checked_labels",
    "checked_range",
    "fingerprint",
    "numbers",
]

MARKED = 512  # instances that are read at once to be marked
NEEDED = (
    "Pass a pair of tensors (inputs, labels), a map-style dataset of pairs (x, y) or of dicts with a label, "
    "a DataLoader with shuffle=False, or an iterable dataset that comes in the same order each time."
)


class Originals(Protocol):
    """Instances as their owner has them."""

    def __len__(self) -> int: ...

    def __getitem__(self, i: int, /) -> Any: ...


@dataclass(frozen=True, eq=False)
class Chosen:
    """Some of the instances, as their owner has them."""

    originals: Originals
    indices: Sequence[int]

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, i: int) -> Any:
        return self.originals[self.indices[i]]


@dataclass(frozen=True, eq=False)
class Examples:
    """Labelled instances, the same at every reading."""

    source: Source
    labels: Tensor = field(repr=False)  # [n], int64
    originals: Originals | None = field(default=None, repr=False)  # what the inputs were made from, if kept
    watch: Watch | None = field(default=None, repr=False)  # over memory that is the user's own
    ids: Sequence[Id] | None = field(default=None, repr=False)  # what their owner calls the instances
    classes: Sequence[str] | None = None  # the names of the classes, if a dataset has them
    columns: ColumnNames = None  # the names of a frame's

    @classmethod
    @door
    def of(
        cls,
        data: Any,
        what: str = "training set",
        *,
        labels: Any = None,
        collate_fn: Any = None,
        ids: Any = None,
        classes: Any = None,
    ) -> "Examples":
        """From a pair (inputs, labels), a dict or frame of columns, a dataset, a DataLoader, or Examples.

        Items of a dataset and batches of a loader are pairs (x, y), or dicts whose label is called "label" or
        the like and whose other entries are the keyword arguments of the model. `labels` says where else labels
        are: a key of the items or a column, a position in them (-1 for the last part), an attribute of the
        dataset, which is then not read before it is needed, or the class numbers themselves. `collate_fn`
        makes batches of items, which may differ in shape; a loader's own is used as it is. Of a
        LightningDataModule, the loader for training or for tests is read, in the order of its data set.

        `ids` are what the instances are called: themselves, or the key, column or attribute that has them; a
        frame's own index without it. Labels may be names of `classes`, which are in the order of the model's
        outputs; or of those that a dataset has as its `classes` or `class_to_idx`.
        """
        if isinstance(data, Examples):
            return data
        if hasattr(data, "train_dataloader"):
            data = unshuffled(loader_of(data, what))
        key = ids if isinstance(ids, str) else None
        if key is not None:
            data, ids = without_ids(data, key, what)
        elif ids is None:
            ids = index_ids(data) if _is_frame(data) else index_ids(data[0]) if _has_frame(data) else None
        names = None if classes is None and type(data) is tuple else class_names(data, classes)
        own = getattr(data, "collate_fn", None) if collate_fn is None else collate_fn
        batched = own is not None and collates(data, own)
        read = collated_set(data, own, labels, what, key) if batched else None
        made = _read(data, labels, what, names) if read is None else cls(*read[:2], watch=read[2])
        called = None if ids is None else checked_ids(ids, len(made), what)
        own_names = None if names is None or classes is not None else in_order(names)
        return made if called is own_names is None else replace(made, ids=called, classes=own_names)

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def first(self) -> Inputs:
        """The first instance by itself, to know the shape of all."""
        inputs = self.take([0]).inputs
        return inputs[0] if isinstance(inputs, Tensor) else mapped(lambda leaf: leaf[0], inputs)

    @cached_property
    def largest(self) -> Sequence[int]:
        """Two instances to try things on: the largest where they differ, so that what suits them suits all."""
        return [min(i, len(self) - 1) for i in self.source.largest]

    @cached_property
    def streamed(self) -> bool:
        """Whether the inputs are read anew each time, and so may be larger than memory."""
        return self.source.streamed

    @cached_property
    def ordered(self) -> bool:
        """Whether instances are read in their order alone, so that to read some is to read all before them."""
        return isinstance(self.source, Streamed) and self.source.ordered

    def batches(self, size: int) -> Iterator[Batch]:
        """Consecutive batches of at most `size` instances."""
        for start in range(0, len(self), size):
            yield self.take(range(start, min(start + size, len(self))))

    def take(self, indices: Sequence[int]) -> Batch:
        """The instances at the places `indices`, in memory."""
        straight = isinstance(indices, range) and indices.step == 1
        places = slice(indices.start, indices.stop) if straight else list(indices)  # type: ignore[attr-defined]
        labels, inputs = self.labels[places], self.source.read(indices)
        if self.watch is not None:
            self.watch.compare(indices, inputs)
        return (RaggedBatch if self.source.ragged else Batch)(inputs, labels, indices)

    def unchanged(self, whole: bool = False) -> None:
        """Refuses a user's data that are no longer what they were at first; `whole` compares all of tensors."""
        if self.watch is not None:
            self.watch.unchanged(whole)
        if self.watch is None or not self.watch.leaves:
            self.source.unchanged()

    def seen(self, indices: Sequence[int]) -> list[Any]:
        """The instances at `indices` one by one, as their owner has them or else as the model is fed them."""
        if self.originals is not None:
            return [self.originals[i] for i in indices]
        inputs = self.take(indices).inputs if indices else ()
        return [bare(inputs, i) for i in range(len(indices))]

    def marks(self, places: Sequence[int] | None = None) -> list[bytes]:
        """Eight bytes for each instance, or for those at some `places`, which differ when its input differs.

        Inputs that are compared with their first reading whenever they are read are not read for it.
        """
        places = range(len(self)) if places is None else places
        known = self.source.known_marks(places)
        if known is not None:
            return known
        starts = range(0, len(places), MARKED)
        batches = (self.take(places[start : start + MARKED]) for start in starts)
        return [mark for batch in batches for mark in marks(batch.inputs, [0] * len(batch.labels))]

    def fingerprint(self) -> str:
        """A text that differs when an input, a label or the order differs."""
        labels = self.labels.numpy().tobytes()
        return blake2b(b"".join([*self.marks(), labels]), digest_size=16).hexdigest()

    def relabelled(self, labels: Tensor) -> "Examples":
        """These instances with other labels."""
        return replace(self, labels=checked_labels(labels, len(self), "set"))

    def selected(self, indices: Sequence[int]) -> "Examples":
        """Some of the instances, those at `indices`, read into memory."""
        batch = self.take(indices)
        originals = None if self.originals is None else Chosen(self.originals, indices)
        source = InMemory(batch.inputs, isinstance(batch, RaggedBatch))
        ids = None if self.ids is None else [self.ids[i] for i in indices]
        return Examples(source, batch.labels, originals, ids=ids, columns=self.columns)


def fingerprint(inputs: Inputs, label: int) -> bytes:
    """Eight bytes that differ when the instance differs."""
    return marks(mapped(lambda leaf: leaf[None], inputs), [label])[0]


def checked_range(labels: Tensor, classes: int, what: str) -> None:
    """Refuses labels that the model has no output for."""
    wrong = ((labels < 0) | (labels >= classes)).nonzero().flatten()
    if len(wrong):
        i = int(wrong[0])
        raise InputError(
            f"{len(wrong)} label(s) of the {what} are out of range: instance {i} has label "
            f"{int(labels[i])}, but the model has {classes} classes, so labels run from 0 to {classes - 1}."
        )


def _is_whole(data: Any, labels: Any) -> bool:
    """Whether all instances are there in one nest of tensors or arrays."""
    if isinstance(data, Mapping) or _is_frame(data):
        return True
    if labels is None:
        return isinstance(data, (tuple, list)) and len(data) == 2 and not _are_instances(data)
    if isinstance(labels, (str, int)):
        return isinstance(data, tuple)
    return isinstance(data, (tuple, Tensor)) or hasattr(data, "__array__")


def _read(data: Any, labels: Any, what: str, names: Names | None) -> Examples:
    """From whatever kind of data it is; labels may be `names`."""
    if type(data) is TensorDataset:
        return _in_memory(data.tensors, labels, what, names)
    if _is_whole(data, labels):
        return _in_memory(data, labels, what, names)
    if isinstance(data, (DataLoader, IterableDataset)):
        return _from_stream(data, labels, what, names)
    if hasattr(data, "__getitem__") and hasattr(data, "__len__") and not isinstance(data, (str, bytes)):
        return _from_dataset(data, labels, what, names)
    if isinstance(data, Iterable) and not isinstance(data, (Iterator, str, bytes)):
        return _from_stream(data, labels, what, names)
    raise InputError(f"The {what} is {a_type(data)}. {NEEDED}")


def _in_memory(data: Any, labels: Any, what: str, names: Names | None) -> Examples:
    """From a pair, a dict or a frame of columns, or from inputs and their labels."""
    if labels is not None and not isinstance(labels, (str, int)):
        x, y = data, labels
    elif _is_frame(data):
        label = form_of(dict.fromkeys(data.columns), labels, None, f"The {what}").label
        x, y = data[[name for name in data.columns if name != label]], data[label]
    else:
        x, y = form_of(data, labels, None, f"The {what}").parts(data, f"The {what}")
    columns = tuple(x.columns) if _is_frame(x) else None
    inputs = numbers(x if columns is None else numeric(x, what), f"The input of the {what}")
    counts = {shape[0] if shape else 0 for shape in shapes(inputs)}
    if len(counts) != 1:
        raise InputError(f"The inputs of the {what} have different lengths: {sorted(counts)}.")
    count = counts.pop()
    _not_empty(count, what)
    labels = checked_labels(y, count, what, names)
    watch = Watch.of(what, inputs, shared_labels(y))
    return Examples(InMemory(inputs), labels, watch=watch, columns=columns)


def _from_dataset(dataset: Any, labels: Any, what: str, names: Names | None) -> Examples:
    """From a map-style dataset; it is read through for its labels, unless these are given by themselves."""
    with users(f"the {what}"):
        n = len(dataset)
    _not_empty(n, what)
    with users(f"item 0 of the {what}"):
        first = dataset[0]
    form = form_of(first, labels, dataset, "Item 0 of the dataset").named(names)
    apart = separate_from(form, dataset, labels)
    given = None if apart is None else checked_labels(apart, n, what, names)
    source = FromDataset(dataset, form, Readings(what), given if isinstance(labels, str) else None)
    known = torch.tensor(source.first_pass()) if given is None else given
    examples = Examples(source, known, watch=beneath(dataset, what, apart))
    for i in sorted({0, n // 2, n - 1}) * (1 if given is None else 2):
        examples.take([i])  # a second reading, so that what is random is found before any work
    return examples


def _from_stream(data: Any, labels: Any, what: str, names: Names | None) -> Examples:
    """From a loader or an iterable, which is gone through once for its length and its labels."""
    if isinstance(data, DataLoader):
        refuse_shuffling(data, what)
    with random_state_kept(), users(f"the {what}"):  # loaders draw a seed for their workers
        iterator = iter(data)
    readings = Readings(what)
    first = next(guarded(iterator, readings), None)
    _not_empty(0 if first is None else 1, what)
    dataset = getattr(data, "dataset", data)
    form = form_of(first, labels, dataset, f"The first item of the {what}").named(names)
    source = from_iterable(data, form, readings)
    own = source.first_pass()
    apart = separate_from(form, dataset, labels)
    given = torch.tensor(own) if apart is None else checked_labels(apart, len(own), what, names)
    examples = Examples(source, given, watch=beneath(data, what, apart))
    examples.take(range(1))  # a second reading, so that another order is found before any work
    return examples


def _not_empty(count: int, what: str) -> None:
    if count == 0:
        raise InputError(f"{none_there(what)} Pass at least one labelled instance.")


def _is_frame(data: Any) -> bool:
    return hasattr(data, "columns") and hasattr(data, "to_numpy")


def _has_frame(data: Any) -> bool:
    """Whether it is a pair of a frame and labels."""
    return isinstance(data, (tuple, list)) and len(data) == 2 and _is_frame(data[0])


def _are_instances(pair: Any) -> bool:
    """Whether a pair's first part is itself an (x, y) or a dict like the second: a list of two instances."""
    first, second = pair
    if isinstance(first, Mapping):
        return isinstance(second, Mapping)
    return isinstance(first, (tuple, list)) and len(first) == 2 and isinstance(first[1], int)
