"""Layouts: how instances lie in the parts of a batch that a collate_fn made, learned from what it makes of few.

A part may have the instances along an axis, padded or not; all their positions in one row, and where each
begins; be packed, nested or a list. A layout is a nest of such ways, in the form of the batch.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_sequence, pad_packed_sequence

from precedents.data.inputs import Spans
from precedents.errors import InputError

Layout: TypeAlias = Any  # a nest of dicts and tuples with ways for leaves


@dataclass(frozen=True)
class Shared:
    """One value for all instances, such as the length of the longest."""

    def apart(self, value: Any, lengths: Tensor | None) -> Sequence[Any] | None:  # noqa: ARG002
        """What belongs to each instance; nothing does."""
        return None

    def taken(self, value: Any, places: Sequence[int], lengths: Tensor | None) -> Any:  # noqa: ARG002
        """The part of a batch of these instances."""
        return value


@dataclass(frozen=True)
class AlongAxis(Shared):
    """A tensor with the instances along an axis; shorter ones are filled up."""

    axes: int  # that the tensor has
    axis: int
    padding: float | None = None  # what they are filled up with, if any was

    def apart(self, value: Tensor, lengths: Tensor | None) -> Sequence[Any]:  # noqa: ARG002
        """Rows of the axis, with their padding."""
        return value.unbind(self.axis)

    def taken(self, value: Tensor, places: Sequence[int], lengths: Tensor | None) -> Tensor:  # noqa: ARG002
        """These rows."""
        return value.index_select(self.axis, torch.tensor(places, device=value.device))


@dataclass(frozen=True)
class InARow(Shared):
    """A tensor with the positions of all instances, one after the other."""

    axes: int  # that the tensor has

    def apart(self, value: Tensor, lengths: Tensor | None) -> Sequence[Any]:
        """Pieces of these lengths."""
        if lengths is None or int(lengths.sum()) != len(value):
            raise InputError(
                "The batch has the tokens of all cases in one row, and nothing in it says where each begins. "
                "Pass the cases as the dataset has them: one item, or a list of items."
            )
        return value.split(lengths.tolist())

    def taken(self, value: Tensor, places: Sequence[int], lengths: Tensor | None) -> Tensor:
        """The pieces of these instances."""
        pieces = self.apart(value, lengths)
        return torch.cat([pieces[i] for i in places])


@dataclass(frozen=True)
class Starts(Shared):
    """Where the positions of each instance begin; with the end of the last one, or without."""

    end: bool
    axes: int = 1

    def taken(self, value: Tensor, places: Sequence[int], lengths: Tensor | None) -> Tensor:
        """Where they begin in a shorter row."""
        assert lengths is not None
        own = lengths[list(places)]
        ends = torch.cat([own.new_zeros(1), own.cumsum(0)])
        return (ends if self.end else ends[:-1]).to(value)


@dataclass(frozen=True)
class Packed(Shared):
    """A PackedSequence."""

    def apart(self, value: PackedSequence, lengths: Tensor | None) -> Sequence[Any]:  # noqa: ARG002
        """Sequences of their own lengths."""
        padded, own = pad_packed_sequence(value, batch_first=True)
        return [row[:n] for row, n in zip(padded, own.tolist(), strict=True)]

    def taken(self, value: PackedSequence, places: Sequence[int], lengths: Tensor | None) -> PackedSequence:
        """These sequences, packed."""
        every = self.apart(value, lengths)
        return pack_sequence([every[i] for i in places], enforce_sorted=False)


@dataclass(frozen=True)
class Jagged(Shared):
    """A nested tensor."""

    def apart(self, value: Tensor, lengths: Tensor | None) -> Sequence[Any]:  # noqa: ARG002
        """Its tensors."""
        return value.unbind()

    def taken(self, value: Tensor, places: Sequence[int], lengths: Tensor | None) -> Tensor:
        """These of its tensors, nested."""
        every = self.apart(value, lengths)
        return torch.nested.nested_tensor([every[i] for i in places], layout=value.layout)


@dataclass(frozen=True)
class OneByOne(Shared):
    """A list or tuple with something for each instance."""

    def apart(self, value: Any, lengths: Tensor | None) -> Sequence[Any]:  # noqa: ARG002
        """Its elements."""
        return value

    def taken(self, value: Any, places: Sequence[int], lengths: Tensor | None) -> Any:  # noqa: ARG002
        """These of them."""
        return type(value)(value[i] for i in places)


def learned(together: Any, ones: Sequence[Any]) -> Layout:
    """How the instances lie in a batch, from it and from batches of each of them alone."""
    b = len(ones)
    if isinstance(together, Mapping):
        return {key: learned(part, [one[key] for one in ones]) for key, part in together.items()}
    if isinstance(together, PackedSequence):
        return Packed()
    if isinstance(together, (tuple, list)):
        sizes = {len(one) for one in ones}
        if len(together) == b and sizes == {1}:
            return OneByOne()
        if sizes == {len(together)} and not all(isinstance(part, (int, float, str)) for part in together):
            return tuple(learned(part, list(own)) for part, *own in zip(together, *ones, strict=True))
        return Shared()
    if isinstance(together, Tensor) and together.is_nested:
        return Jagged()
    return _of_tensor(together, ones) if isinstance(together, Tensor) else Shared()


def _of_tensor(together: Tensor, ones: Sequence[Tensor]) -> Shared:
    b = len(ones)
    if any(one.ndim != together.ndim for one in ones) or together.ndim == 0:
        return Shared()
    lengths = {len(one) for one in ones}
    if together.ndim == 1 and lengths == {1} and len(together) != b and not torch.equal(together, ones[0]):
        raise ValueError(f"{len(together)} numbers for {b} items")
    if _are_starts(together, ones):
        return Starts(end=len(together) == b + 1)
    for axis in range(together.ndim):
        if together.shape[axis] == b and all(one.shape[axis] == 1 for one in ones):
            return AlongAxis(together.ndim, axis, _padding(together, ones, axis))
    return InARow(together.ndim) if len(together) == sum(map(len, ones)) else Shared()


def _are_starts(together: Tensor, ones: Sequence[Tensor]) -> bool:
    if together.ndim != 1 or together.is_floating_point() or len(together) - len(ones) not in (0, 1):
        return False
    beginning = all(len(one) == len(together) - len(ones) + 1 and int(one[0]) == 0 for one in ones)
    return beginning and int(together[0]) == 0 and bool((together.diff() >= 0).all()) and bool(together.any())


def _padding(together: Tensor, ones: Sequence[Tensor], axis: int) -> float | None:
    """The value beyond the end of an instance along another axis, where there is one value only."""
    for row, one in zip(together.unbind(axis), (one.squeeze(axis) for one in ones), strict=True):
        for other in range(row.ndim):
            beyond = row.narrow(other, one.shape[other], max(0, row.shape[other] - one.shape[other]))
            if beyond.numel() and bool((beyond == beyond.flatten()[0]).all()):
                return float(beyond.flatten()[0])
    return None


def leaves_of(layout: Layout, batch: Any) -> Iterator[tuple[Shared, Any]]:
    """Every part of a batch with the way that instances lie in it."""
    if isinstance(layout, Shared):
        yield layout, batch
    else:
        for key in layout if isinstance(layout, dict) else range(len(layout)):
            yield from leaves_of(layout[key], batch[key])


def changed(function: Callable[[Shared, Any], Any], layout: Layout, batch: Any) -> Any:
    """The batch with `function(way, part)` in place of each part."""
    if isinstance(layout, Shared):
        return function(layout, batch)
    if isinstance(layout, dict):
        return {key: changed(function, way, batch[key]) for key, way in layout.items()}
    return tuple(changed(function, way, part) for way, part in zip(layout, batch, strict=True))


def lengths_in(layout: Layout, batch: Any) -> Tensor | None:
    """How many positions each instance has in a row of all, if starts in the batch say so."""
    every = list(leaves_of(layout, batch))
    totals = [len(part) for way, part in every if isinstance(way, InARow)]
    for way, part in every:
        if isinstance(way, Starts) and totals:
            ends = part if way.end else torch.cat([part, part.new_tensor([totals[0]])])
            return ends.diff().cpu()
    return None


def parted(layout: Layout, batch: Any, lengths: Tensor | None = None) -> list[list[Any]]:
    """For each instance what of the batch belongs to it, part by part."""
    lengths = lengths_in(layout, batch) if lengths is None else lengths
    columns = [way.apart(part, lengths) for way, part in leaves_of(layout, batch)]
    return [list(row) for row in zip(*(column for column in columns if column is not None), strict=True)]


def of_one(layout: Layout, batch: Any) -> Any:
    """The one instance of a batch, without the batch's axis."""
    lengths = _one_length(layout, batch)

    def own(way: Shared, part: Any) -> Any:
        found = way.apart(part, lengths)
        return None if found is None else found[0]

    return changed(own, layout, batch)


def _one_length(layout: Layout, batch: Any) -> Tensor | None:
    totals = [len(part) for way, part in leaves_of(layout, batch) if isinstance(way, InARow)]
    return torch.tensor(totals[:1]) if totals else None


def begins(row: Any, own: Any) -> bool:
    """Whether what a batch has of an instance is what it is alone, but for padding after it or before it."""
    if not (isinstance(row, Tensor) and isinstance(own, Tensor)):
        try:
            return bool(row == own)
        except (TypeError, ValueError, RuntimeError):
            return True  # what cannot be compared says nothing
    if row.ndim != own.ndim or any(n < m for n, m in zip(row.shape, own.shape, strict=True)):
        return False
    first, last = (
        (slice(n) for n in own.shape),
        (slice(m - n, m) for n, m in zip(own.shape, row.shape, strict=True)),
    )
    return any(_equal(row[tuple(part)], own) for part in (first, last))


def _equal(one: Tensor, other: Tensor) -> bool:
    return torch.equal(one, other) or (one.is_floating_point() and torch.allclose(one, other, equal_nan=True))


def fed(layout: Layout, batch: Any) -> Any:
    """What the model is given of a batch: a dict, or a tuple, of one value where there is no other."""
    return (batch,) if isinstance(layout, Shared) else batch


def spans_in(layout: Layout, batch: Any, lengths: Sequence[Tensor]) -> dict[int, Spans]:
    """Of each part with the positions of all instances in one row, whose each is; `lengths` of such parts."""
    found, given = {}, iter(lengths)
    for way, part in leaves_of(layout, batch):
        if isinstance(way, InARow):
            own = next(given, None)
            if own is not None and int(own.sum()) == len(part):
                found[len(part)] = Spans.of(own)
        elif isinstance(way, Packed):
            found[len(part.data)] = _packed_spans(part)
    return found


def _packed_spans(packed: PackedSequence) -> Spans:
    """Step by step those sequences that are so long, the longest first."""
    sizes = packed.batch_sizes.tolist()
    rows = torch.cat([torch.arange(n) for n in sizes])
    places = torch.repeat_interleave(torch.arange(len(sizes)), packed.batch_sizes)
    owners = rows if packed.sorted_indices is None else packed.sorted_indices.cpu()[rows]
    return Spans(owners, places, sizes[0])
