"""Examples: what a training set and a set of cases are: labelled instances, read in batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor
from torch.utils.data import TensorDataset

from precedents.errors import InputError
from precedents.inputs import Inputs, bare, leaves, mapped, shapes, stacked, tensors


class Batch(NamedTuple):
    """Some instances in memory."""

    inputs: Inputs  # [b, ...]
    labels: Tensor  # [b]
    indices: Sequence[int]  # their places in the set, for messages

    def relabelled(self, labels: Tensor) -> "Batch":
        """The same instances with other labels."""
        return self._replace(labels=labels)


class Source(Protocol):
    """Where inputs are read from; every reading of an instance gives the same values."""

    def read(self, indices: Sequence[int]) -> Inputs:
        """The inputs [b, ...] of these instances."""


class Originals(Protocol):
    """Instances as their owner has them."""

    def __len__(self) -> int: ...

    def __getitem__(self, i: int, /) -> Any: ...


@dataclass(frozen=True, eq=False)
class Chosen:
    """Some of them."""

    originals: Originals
    indices: Sequence[int]

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, i: int) -> Any:
        return self.originals[self.indices[i]]


@dataclass(frozen=True, eq=False)
class InMemory:
    """Inputs that are tensors already."""

    inputs: Inputs

    def read(self, indices: Sequence[int]) -> Inputs:
        """Consecutive instances are a view, others a copy."""
        if isinstance(indices, range) and indices.step == 1:
            return mapped(lambda leaf: leaf[indices.start : indices.stop], self.inputs)
        return mapped(lambda leaf: leaf[list(indices)], self.inputs)


@dataclass(frozen=True, eq=False)
class FromDataset:
    """Inputs of a map-style dataset, read when needed; a reading that differs from the first is an error."""

    dataset: Any
    marks: Sequence[bytes]  # a fingerprint of each instance at the first reading

    def read(self, indices: Sequence[int]) -> Inputs:
        """The instances one by one, each compared with its first reading."""
        items = []
        for i in indices:
            x, y = instance(self.dataset, i)
            if fingerprint(x, y) != self.marks[i]:
                raise InputError(
                    f"Instance {i} of the dataset differs at its second reading. Explanations cite "
                    "training instances by index, so the dataset must give the same values each time: "
                    "switch off shuffling, random augmentation and dropout of its inputs."
                )
            items.append(x)
        return stacked(items)


@dataclass(frozen=True, eq=False)
class Examples:
    """Labelled instances, the same at every reading."""

    source: Source
    labels: Tensor = field(repr=False)  # [n], int64
    originals: Originals | None = field(default=None, repr=False)  # what the inputs were made from, if kept

    @classmethod
    def of(cls, data: Any, what: str = "training set") -> "Examples":
        """From a pair (inputs, labels), any map-style dataset of (x, y), or Examples."""
        if isinstance(data, Examples):
            return data
        if type(data) is TensorDataset and len(data.tensors) == 2:
            data = data.tensors
        if isinstance(data, (tuple, list)) and len(data) == 2 and not _is_instance(data[0]):
            examples = _from_pair(data[0], data[1], what)
        elif hasattr(data, "__getitem__") and hasattr(data, "__len__") and not isinstance(data, (dict, str)):
            examples = _from_dataset(data, what)
        else:
            raise InputError(
                f"The {what} is a {type(data).__name__}. Pass a pair of tensors (inputs, labels) or a "
                "map-style dataset whose items are (x, y)."
            )
        return examples

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def largest(self) -> Sequence[int]:
        """Two instances to try things on: the largest where they differ, so that what suits them suits all."""
        return getattr(self.source, "largest", (0, min(1, len(self) - 1)))

    def batches(self, size: int) -> Iterator[Batch]:
        """Consecutive batches of at most `size` instances."""
        for start in range(0, len(self), size):
            yield self.take(range(start, min(start + size, len(self))))

    def take(self, indices: Sequence[int]) -> Batch:
        """These instances, in memory."""
        labels = self.labels[list(indices)]
        return Batch(self.source.read(indices), labels, indices)

    def seen(self, indices: Sequence[int]) -> list[Any]:
        """These instances one by one, as their owner has them or else as the model is fed them."""
        if self.originals is not None:
            return [self.originals[i] for i in indices]
        inputs = self.take(indices).inputs if indices else ()
        return [bare(inputs, i) for i in range(len(indices))]

    def marks(self, size: int = 512) -> list[bytes]:
        """Eight bytes for each instance, which differ when its input differs."""
        return [
            fingerprint(bare(batch.inputs, i), 0)
            for batch in self.batches(size)
            for i in range(len(batch.labels))
        ]

    def fingerprint(self) -> str:
        """A text that differs when an input, a label or the order differs."""
        labels = self.labels.numpy().tobytes()
        return blake2b(b"".join([*self.marks(), labels]), digest_size=16).hexdigest()

    def relabelled(self, labels: Tensor) -> "Examples":
        """The same instances with other labels."""
        return replace(self, labels=checked_labels(labels, len(self), "set"))

    def selected(self, indices: Sequence[int]) -> "Examples":
        """Some of the instances, read into memory."""
        inputs, labels, _ = self.take(indices)
        originals = None if self.originals is None else Chosen(self.originals, indices)
        return Examples(InMemory(inputs), labels, originals)


def instance(dataset: Any, i: int) -> tuple[Inputs, int]:
    """Item `i` as (x, y), x a nest of tensors and y a class number."""
    item = dataset[i]
    if not (isinstance(item, (tuple, list)) and len(item) == 2):
        raise InputError(
            f"Item {i} of the dataset is a {type(item).__name__}, not a pair (x, y). "
            "Labels are needed: wrap the dataset so that each item is (input, class number)."
        )
    x, y = item
    inputs = numbers(x, f"The input of item {i}")
    label = torch.as_tensor(y) if isinstance(y, (int, Tensor)) or hasattr(y, "dtype") else None
    if label is None or label.ndim != 0 or not _is_integer(label):
        raise InputError(
            f"The label of item {i} is {y!r}. Labels must be whole class numbers: 0, 1, ..., classes - 1."
        )
    return inputs, int(label)


def numbers(x: Any, what: str) -> Inputs:
    """A nest of tensors, or an error that says that `what` cannot become one."""
    try:
        return tensors(x)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(
            f"{what} is a {type(x).__name__}, which is no tensor and cannot become one. "
            "Convert it to tensors first, for example by a transform of the dataset."
        ) from None


def fingerprint(inputs: Inputs, label: int) -> bytes:
    """Eight bytes that differ when the instance differs."""
    digest = blake2b(str((label, shapes(inputs))).encode(), digest_size=8)
    for leaf in leaves(inputs):
        digest.update(leaf.cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.digest()


def checked_labels(labels: Any, count: int, what: str) -> Tensor:
    """The labels as an int64 vector, or an error that says what is wrong with them."""
    if labels is None:
        raise InputError(f"The {what} has no labels. Pass a pair (inputs, labels).")
    try:
        labels = torch.as_tensor(labels).detach().cpu()
    except (TypeError, ValueError, RuntimeError):
        raise InputError(
            f"The labels of the {what} are no numbers. Encode them as class numbers 0, 1, ..., classes - 1."
        ) from None
    if not _is_integer(labels):
        raise InputError(f"The labels of the {what} are {labels.dtype}; class numbers are integers: y.long().")
    if labels.ndim != 1 or len(labels) != count:
        raise InputError(
            f"The labels of the {what} have the shape {tuple(labels.shape)}; {count} inputs need ({count},)."
        )
    return labels.long()


def checked_range(labels: Tensor, classes: int, what: str) -> None:
    """Refuses labels that the model has no output for."""
    wrong = ((labels < 0) | (labels >= classes)).nonzero().flatten()
    if len(wrong):
        i = int(wrong[0])
        raise InputError(
            f"{len(wrong)} label(s) of the {what} are out of range: instance {i} has label "
            f"{int(labels[i])}, but the model has {classes} outputs, so labels run from 0 to {classes - 1}."
        )


def as_batch(x: Any, like: Inputs) -> tuple[Inputs, bool]:
    """Inputs [m, ...] of one case or several, shaped `like` an instance; and whether it was one case."""
    inputs = numbers(x, "What was passed as cases")
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


def _from_pair(x: Any, y: Any, what: str) -> Examples:
    inputs = numbers(x, f"The input of the {what}")
    counts = {shape[0] if shape else 0 for shape in shapes(inputs)}
    if len(counts) != 1:
        raise InputError(f"The inputs of the {what} have different lengths: {sorted(counts)}.")
    count = counts.pop()
    _not_empty(count, what)
    return Examples(InMemory(inputs), checked_labels(y, count, what))


def _from_dataset(dataset: Any, what: str) -> Examples:
    _not_empty(len(dataset), what)
    marks, labels = [], []
    first, _ = instance(dataset, 0)
    for i in range(len(dataset)):
        x, y = instance(dataset, i)
        if shapes(x) != shapes(first):
            raise InputError(
                f"Instance {i} of the {what} has the shape {shapes(x)}, instance 0 has {shapes(first)}. "
                "Pad or crop the inputs to one shape."
            )
        marks.append(fingerprint(x, y))
        labels.append(y)
    examples = Examples(FromDataset(dataset, marks), torch.tensor(labels))
    for i in sorted({0, len(marks) // 2, len(marks) - 1}):
        examples.take([i])  # a second reading, so that what is random is found before any work
    return examples


def _not_empty(count: int, what: str) -> None:
    if count == 0:
        raise InputError(f"The {what} is empty. Pass at least one labelled instance.")


def _is_integer(labels: Tensor) -> bool:
    return not (labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool)


def _is_instance(value: Any) -> bool:
    """Whether a pair's first part is itself an (x, y), so that the pair is a list of two instances."""
    return isinstance(value, (tuple, list)) and len(value) == 2 and isinstance(value[1], int)
