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
    RandomSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from precedents.data.batch import Batch, RaggedBatch
from precedents.data.collated import collated_set, collates
from precedents.data.collated_cases import collated_cases
from precedents.data.inputs import (
    Collated,
    Inputs,
    bare,
    leaves,
    mapped,
    shapes,
)
from precedents.data.labels import checked_labels, form_of, numbers, separate_from
from precedents.data.sources import FromDataset, InMemory, Readings, Source, marks
from precedents.data.streams import Streamed, from_iterable, guarded
from precedents.data.watch import Watch, shared
from precedents.errors import InputError
from precedents.runtime.door import door
from precedents.runtime.guards import random_state_kept
from precedents.runtime.users_code import users
from precedents.runtime.wording import a_type

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

RANDOM = (RandomSampler, SubsetRandomSampler, WeightedRandomSampler)
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

    @classmethod
    @door
    def of(
        cls, data: Any, what: str = "training set", *, labels: Any = None, collate_fn: Any = None
    ) -> "Examples":
        """From a pair (inputs, labels), a dict or frame of columns, a dataset, a DataLoader, or Examples.

        Items of a dataset and batches of a loader are pairs (x, y), or dicts whose label is called "label" or
        the like and whose other entries are the keyword arguments of the model. `labels` says where else labels
        are: a key of the items or a column, a position in them (-1 for the last part), an attribute of the
        dataset, which is then not read before it is needed, or the class numbers themselves.

        `collate_fn` makes batches of items, which may differ in shape; a loader's own is used as it is.
        """
        if isinstance(data, Examples):
            return data
        own = getattr(data, "collate_fn", None) if collate_fn is None else collate_fn
        if own is not None and collates(data, own):
            return cls(*collated_set(data, own, labels, what))
        if type(data) is TensorDataset:
            return _in_memory(data.tensors, labels, what)
        if _is_whole(data, labels):
            return _in_memory(data, labels, what)
        if isinstance(data, (DataLoader, IterableDataset)):
            return _from_stream(data, labels, what)
        if hasattr(data, "__getitem__") and hasattr(data, "__len__") and not isinstance(data, (str, bytes)):
            return _from_dataset(data, labels, what)
        if isinstance(data, Iterable) and not isinstance(data, (Iterator, str, bytes)):
            return _from_stream(data, labels, what)
        raise InputError(f"The {what} is {a_type(data)}. {NEEDED}")

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def first(self) -> Inputs:
        """The first instance by itself, to know the shape of all."""
        return mapped(lambda leaf: leaf[0], self.take([0]).inputs)

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
        return isinstance(self.source, Streamed)

    def batches(self, size: int) -> Iterator[Batch]:
        """Consecutive batches of at most `size` instances."""
        for start in range(0, len(self), size):
            yield self.take(range(start, min(start + size, len(self))))

    def take(self, indices: Sequence[int]) -> Batch:
        """The instances at these places, in memory."""
        straight = isinstance(indices, range) and indices.step == 1
        places = slice(indices.start, indices.stop) if straight else list(indices)  # type: ignore[attr-defined]
        labels, inputs = self.labels[places], self.source.read(indices)
        if self.watch is not None:
            self.watch.compare(indices, inputs)
        return (RaggedBatch if self.source.ragged else Batch)(inputs, labels, indices)

    def unchanged(self, whole: bool = False) -> None:
        """Refuses a user's tensors that are no longer what they were at first; `whole` compares every row."""
        if self.watch is not None:
            self.watch.unchanged(whole)

    def seen(self, indices: Sequence[int]) -> list[Any]:
        """These instances one by one, as their owner has them or else as the model is fed them."""
        if self.originals is not None:
            return [self.originals[i] for i in indices]
        inputs = self.take(indices).inputs if indices else ()
        return [bare(inputs, i) for i in range(len(indices))]

    def marks(self, size: int = 512) -> list[bytes]:
        """Eight bytes for each instance, which differ when its input differs."""
        return [mark for batch in self.batches(size) for mark in marks(batch.inputs, [0] * len(batch.labels))]

    def fingerprint(self) -> str:
        """A text that differs when an input, a label or the order differs."""
        labels = self.labels.numpy().tobytes()
        return blake2b(b"".join([*self.marks(), labels]), digest_size=16).hexdigest()

    def relabelled(self, labels: Tensor) -> "Examples":
        """These instances with other labels."""
        return replace(self, labels=checked_labels(labels, len(self), "set"))

    def selected(self, indices: Sequence[int]) -> "Examples":
        """Some of the instances, read into memory."""
        batch = self.take(indices)
        originals = None if self.originals is None else Chosen(self.originals, indices)
        return Examples(InMemory(batch.inputs, isinstance(batch, RaggedBatch)), batch.labels, originals)


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


def as_batch(x: Any, like: Inputs) -> tuple[Inputs, bool]:
    """Inputs [m, ...] of one case or several, shaped `like` an instance; and whether it was one case."""
    if isinstance(like, Collated):
        return collated_cases(x, like.together)  # type: ignore[arg-type]
    if isinstance(like, dict) and isinstance(x, Mapping) and set(like) <= set(x):
        x = {key: x[key] for key in like}  # a label may be among the rest
    inputs = _typed(numbers(x, "What was passed as cases"), like)
    wanted, given = shapes(like), shapes(inputs)
    if given == wanted:
        return mapped(lambda leaf: leaf[None], inputs), True
    if [shape[1:] for shape in given] == wanted and all(shape[0] for shape in given):
        return inputs, False
    one, many = (", ".join(map(str, each)) for each in (wanted, [("m", *shape) for shape in wanted]))
    raise InputError(
        f"The cases have the shape {', '.join(map(str, given))}, but the training instances have {one}. "
        f"Pass one case {one} or a batch {many.replace(chr(39), '')}."
    )


def _typed(inputs: Inputs, like: Inputs) -> Inputs:
    """Whole numbers as floating point ones, where training instances are; the other way round is refused."""
    single = isinstance(inputs, Tensor), isinstance(like, Tensor)
    if all(single) and inputs.is_floating_point() == like.is_floating_point():  # type: ignore[union-attr]
        return inputs
    own, wanted = list(leaves(inputs)), list(leaves(like))
    if len(own) != len(wanted) or len(set(single)) > 1:
        raise InputError(f"The cases are {_form(inputs)}, but the training instances are {_form(like)}.")
    for leaf, other in zip(own, wanted, strict=True):
        if leaf.is_floating_point() and not other.is_floating_point():
            raise InputError(
                f"The cases are {leaf.dtype}, but the training instances are {other.dtype}, as token numbers "
                "are. Pass whole numbers: x.long()."
            )
    kinds = iter(wanted)

    def typed(leaf: Tensor) -> Tensor:
        other = next(kinds)
        return leaf.to(other.dtype) if other.is_floating_point() and not leaf.is_floating_point() else leaf

    return mapped(typed, inputs)


def _form(inputs: Inputs) -> str:
    """How a nest of tensors is made."""
    if isinstance(inputs, dict):
        return f"a dict with {', '.join(map(repr, inputs))}"
    return f"a tuple of {len(inputs)} tensors" if isinstance(inputs, tuple) else "one tensor"


def _is_whole(data: Any, labels: Any) -> bool:
    """Whether all instances are there in one nest of tensors or arrays."""
    if isinstance(data, Mapping) or _is_frame(data):
        return True
    if labels is None:
        return isinstance(data, (tuple, list)) and len(data) == 2 and not _are_instances(data)
    if isinstance(labels, (str, int)):
        return isinstance(data, tuple)
    return isinstance(data, (tuple, Tensor)) or hasattr(data, "__array__")


def _in_memory(data: Any, labels: Any, what: str) -> Examples:
    """From a pair, a dict or a frame of columns, or from inputs and their labels."""
    if labels is not None and not isinstance(labels, (str, int)):
        x, y = data, labels
    elif _is_frame(data):
        label = form_of(dict.fromkeys(data.columns), labels, None, f"The {what}").label
        x, y = data[[name for name in data.columns if name != label]], data[label]
    else:
        x, y = form_of(data, labels, None, f"The {what}").parts(data, f"The {what}")
    inputs = numbers(x.to_numpy() if _is_frame(x) else x, f"The input of the {what}")
    counts = {shape[0] if shape else 0 for shape in shapes(inputs)}
    if len(counts) != 1:
        raise InputError(f"The inputs of the {what} have different lengths: {sorted(counts)}.")
    count = counts.pop()
    _not_empty(count, what)
    labels = checked_labels(y, count, what).clone()
    return Examples(InMemory(inputs), labels, watch=Watch.of(what, inputs, shared(y)))


def _from_dataset(dataset: Any, labels: Any, what: str) -> Examples:
    """From a map-style dataset; it is read through for its labels, unless these are given by themselves."""
    with users(f"the {what}"):
        n = len(dataset)
    _not_empty(n, what)
    with users(f"item 0 of the {what}"):
        first = dataset[0]
    form = form_of(first, labels, dataset, "Item 0 of the dataset")
    apart = separate_from(form, dataset, labels)
    given = None if apart is None else checked_labels(apart, n, what)
    source = FromDataset(dataset, form, Readings(what), given if isinstance(labels, str) else None)
    examples = Examples(source, torch.tensor(source.first_pass()) if given is None else given)
    for i in sorted({0, n // 2, n - 1}) * (1 if given is None else 2):
        examples.take([i])  # a second reading, so that what is random is found before any work
    return examples


def _from_stream(data: Any, labels: Any, what: str) -> Examples:
    """From a loader or an iterable, which is gone through once for its length and its labels."""
    if isinstance(data, DataLoader):
        samplers = (data.sampler, getattr(data.batch_sampler, "sampler", None))
        if any(isinstance(sampler, RANDOM) for sampler in samplers):
            raise InputError(
                f"The {what} is a DataLoader that shuffles, but explanations cite instances by their place. "
                "Pass a DataLoader(dataset, batch_size=..., shuffle=False), or the dataset itself."
            )
    with random_state_kept(), users(f"the {what}"):  # loaders draw a seed for their workers
        iterator = iter(data)
    first = next(guarded(iterator, what), None)
    _not_empty(0 if first is None else 1, what)
    dataset = getattr(data, "dataset", data)
    form = form_of(first, labels, dataset, f"The first item of the {what}")
    source = from_iterable(data, form, Readings(what))
    own = source.first_pass()
    apart = separate_from(form, dataset, labels)
    examples = Examples(source, torch.tensor(own) if apart is None else checked_labels(apart, len(own), what))
    examples.take(range(1))  # a second reading, so that another order is found before any work
    return examples


def _not_empty(count: int, what: str) -> None:
    if count == 0:
        raise InputError(f"The {what} is empty. Pass at least one labelled instance.")


def _is_frame(data: Any) -> bool:
    return hasattr(data, "columns") and hasattr(data, "to_numpy")


def _are_instances(pair: Any) -> bool:
    """Whether a pair's first part is itself an (x, y) or a dict like the second: a list of two instances."""
    first, second = pair
    if isinstance(first, Mapping):
        return isinstance(second, Mapping)
    return isinstance(first, (tuple, list)) and len(first) == 2 and isinstance(first[1], int)
