"""What a model is fed: a tensor, or a tuple or dict of them, with the instances along the first axis.

Or instances that become such a batch together, by a function of their owner's: `Collated`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeAlias, TypeVar, Union, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from precedents.runtime.guards import without_warnings

Inputs: TypeAlias = Union[Tensor, tuple["Inputs", ...], dict[str, "Inputs"], "Collated"]
Nest = TypeVar("Nest")  # Inputs, or what a layer receives and returns: lists and other values as well


@dataclass(frozen=True, eq=False)
class MadeBatch:
    """A batch that some instances became."""

    inputs: Any  # what the model is fed: a tuple or a dict
    order: Tensor | None = None  # for each instance its row in the batch; none: the same
    spans: Mapping[int, "Spans"] = field(default_factory=dict)  # by length, tensors of all positions in a row


class Together(Protocol):
    """How instances become a batch."""

    def made(self, members: Sequence[Any], /) -> MadeBatch:
        """The batch of these instances."""

    def alone(self, member: Any, /) -> Inputs:
        """One instance by itself, without a batch's axis."""


class Collated:
    """Instances that become a batch together; an array of them, which is indexed as a tensor is."""

    def __init__(self, members: Any, together: Together) -> None:
        self.together = together
        self.members: np.ndarray[Any, Any] = members if isinstance(members, np.ndarray) else _array(members)

    def __len__(self) -> int:
        return len(self.members)

    def __getitem__(self, places: Any) -> "Collated":
        found = self.members[places.numpy() if isinstance(places, Tensor) else places]
        return Collated(found if isinstance(found, np.ndarray) else _array([found]).reshape(()), self.together)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array of instances."""
        return self.members.shape

    @cached_property
    def made(self) -> MadeBatch:
        """The batch of all of them."""
        return self.together.made(list(self.members))

    @property
    def arguments(self) -> Any:
        """What the model is fed: a tuple of positional arguments, or a dict of named ones."""
        return self.made.inputs

    def in_order(self, rows: Tensor) -> Tensor:
        """Rows that the model gave for the batch, in the order of the instances."""
        order = self.made.order
        return rows if order is None else rows[order.to(rows.device)]

    @cached_property
    def alone(self) -> Inputs:
        """The one instance that there is, without a batch's axis."""
        return self.together.alone(self.members.item())

    def tensors(self) -> list[Tensor]:
        """The tensors of the batch, or of the one instance; what is packed or nested as all its positions."""
        found = leaves(self.made.inputs if self.members.ndim else self.alone)
        return [leaf.values() if leaf.is_nested else leaf for leaf in found]


def _array(members: Sequence[Any]) -> Any:
    array = np.empty(len(members), dtype=object)
    for i, member in enumerate(members):
        array[i] = member
    return array


def ordered(inputs: Inputs, values: Tensor) -> Tensor:
    """Rows that a batch gave, in the order of its instances."""
    return inputs.in_order(values) if isinstance(inputs, Collated) else values


@dataclass(frozen=True, eq=False)
class Spans:
    """Positions of all instances in one row: to which instance each belongs, and where in it."""

    owners: Tensor  # [t]
    places: Tensor  # [t]
    count: int  # of instances

    @classmethod
    def of(cls, lengths: Tensor) -> "Spans":
        """Of instances one after the other with these lengths [b]."""
        lengths = lengths.long().cpu()
        owners = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        starts = lengths.cumsum(0) - lengths
        return cls(owners, torch.arange(len(owners)) - starts[owners], len(lengths))

    @property
    def plain(self) -> bool:
        """Whether each instance has the one position that has its number."""
        return len(self.owners) == self.count and torch.equal(self.owners, torch.arange(self.count))

    def laid_out(self, values: Tensor) -> Tensor:
        """Values [t, ...] as [b, most, ...], with zeros where an instance has fewer positions."""
        if values.ndim == 0 or len(values) != len(self.owners):
            return values
        most = int(self.places.max()) + 1 if len(self.places) else 0
        rows = values.new_zeros(self.count, most, *values.shape[1:])
        rows[self.owners.to(values.device), self.places.to(values.device)] = values
        return rows


def tensors(value: Any) -> Inputs:
    """A nest of dicts and tuples with tensors for leaves: arrays, lists and numbers are converted."""
    if isinstance(value, dict):
        return {key: tensors(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return tuple(tensors(part) for part in value)
    if isinstance(value, Tensor):
        return value.detach()
    value = plain_array(value)
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        with without_warnings():  # nobody writes to inputs: a file may be mapped for reading only
            return torch.as_tensor(value)
    return torch.as_tensor(value)


def plain_array(value: Any) -> Any:
    """An array that torch cannot read where it is, backward or in another byte order, as a copy that it can."""
    if not isinstance(value, np.ndarray) or (value.dtype.isnative and min(value.strides, default=0) >= 0):
        return value
    return np.array(value, value.dtype.newbyteorder("="), order="C")


def unusable(tensor: Tensor) -> str | None:
    """Why nothing can be computed with a tensor, and what to do about it; none if something can."""
    if tensor.is_meta:
        return "has a shape and no values: it is on the device meta. Load it on a device, for example the cpu"
    if tensor.is_nested:
        return "is a nested tensor. Pad it: torch.nested.to_padded_tensor(x, 0.0)"
    if tensor.layout is not torch.strided:
        return f"is a sparse tensor ({str(tensor.layout)[6:]}). Make it dense: x.to_dense()"
    if tensor.is_quantized:
        return f"is quantised ({tensor.dtype}), and has no gradients. Use what it was made from: x.dequantize()"
    if tensor.is_complex():
        return "has complex numbers, of which losses and cosines are none. Use real ones: torch.view_as_real(x)"
    return None


def mapped(function: Callable[[Tensor], Tensor], nest: Nest) -> Nest:
    """A nest of dicts, tuples and lists with `function` applied to every tensor; what is none stays."""
    if isinstance(nest, Tensor):
        return cast("Nest", function(nest))
    if isinstance(nest, dict):
        return cast("Nest", {key: mapped(function, part) for key, part in nest.items()})
    if isinstance(nest, (tuple, list)):
        parts = [mapped(function, part) for part in nest]
        if isinstance(nest, PackedSequence):  # whose sizes stay where they are
            return cast("Nest", PackedSequence(parts[0], nest.batch_sizes, *parts[2:]))
        return cast("Nest", parts if isinstance(nest, list) else tuple(parts))
    return cast("Nest", function(nest)) if isinstance(nest, Collated) else nest  # type: ignore[arg-type]


def leaves(nest: Any) -> list[Tensor]:
    """The tensors in a nest of dicts, tuples and lists, in order."""
    if isinstance(nest, Tensor):
        return [nest]
    if isinstance(nest, Collated):
        return nest.tensors()
    if not isinstance(nest, (dict, tuple, list)):
        return []
    parts = nest.values() if isinstance(nest, dict) else nest
    return [leaf for part in parts for leaf in leaves(part)]


def count(inputs: Inputs) -> int:
    """How many instances there are."""
    return len(inputs) if isinstance(inputs, Collated) else len(leaves(inputs)[0])


def taken(inputs: Inputs, indices: Sequence[int]) -> Inputs:
    """These instances: consecutive ones are a view, others a copy."""
    if isinstance(indices, range) and indices.step == 1:
        return between(inputs, indices.start, indices.stop)
    return mapped(lambda leaf: leaf[list(indices)], inputs)


def between(inputs: Inputs, start: int, stop: int) -> Inputs:
    """The instances from `start` to before `stop`, as a view."""
    return mapped(lambda leaf: leaf[start:stop], inputs)


def alone(inputs: Inputs, i: int) -> Inputs:
    """Instance i as a batch of one."""
    return between(inputs, i, i + 1)


def bare(inputs: Inputs, i: int) -> Inputs:
    """Instance i by itself; without its padding, where an attention mask [b, t] says what that is."""
    if isinstance(inputs, Collated):
        return inputs[i]
    mask = inputs.get("attention_mask") if isinstance(inputs, dict) else None
    if not isinstance(mask, Tensor) or mask.ndim != 2:
        return mapped(lambda leaf: leaf[i], inputs)
    real = mask[i] != 0
    return mapped(lambda leaf: leaf[i][real] if leaf.shape[:2] == mask.shape else leaf[i], inputs)


def shapes(inputs: Inputs) -> list[tuple[int, ...]]:
    """The shapes of the tensors of the nest, in order."""
    return [tuple(leaf.shape) for leaf in leaves(inputs)]


def joined(pieces: Sequence[Inputs]) -> Inputs:
    """Consecutive batches as one: the tensors of the nests one after the other along their first axis."""
    return pieces[0] if len(pieces) == 1 else _together(torch.cat, pieces)


def stacked(items: Sequence[Inputs]) -> Inputs:
    """Instances one by one become one nest with the instances along a new first axis."""
    return _together(torch.stack, items)


def _together(function: Callable[[Any], Tensor], nests: Sequence[Any]) -> Inputs:
    """One nest of several with the same form: `function` makes a tensor of those in the same place."""
    first = nests[0]
    if isinstance(first, dict):
        return {key: _together(function, [nest[key] for nest in nests]) for key in first}
    if isinstance(first, tuple):
        return tuple(_together(function, parts) for parts in zip(*nests, strict=True))
    if isinstance(first, Collated):
        return Collated(np.concatenate([np.atleast_1d(nest.members) for nest in nests]), first.together)
    return function(nests)
