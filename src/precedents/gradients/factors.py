"""Parts: the gradients of one parameter for each of b instances, formed or as the factors they are made of.

Inner products of factored gradients need no forming: that of two outer products is the product of the
inner products of their factors, and rows of a table that only one of two instances has used add nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from precedents.errors import InputError
from precedents.runtime.buffers import BUFFERS
from precedents.runtime.sparse import SparseRows

OVERHEAD = 64  # what a factored product costs beside its multiplications, per pair of instances
LARGE_NUMBERS = 2**16  # of a gradient from which on it is faster to form it in its place than to copy it
FORMING = 1.25  # what a formed product costs with the forming and holding of the gradients
WRITING = 20  # multiplications in whose time a number of a formed gradient is written, in memory used again

PRODUCT_NUMBERS = 2**22  # inner products of factors that are held at once, or numbers of gradients in pieces
PARTED = 2**16  # columns of a product: longer sums of single precision are parted, and added in float64

Self = TypeVar("Self", bound="Factored")


class Part(Protocol):
    """The per-example gradients of one parameter, for b instances."""

    @property
    def parameter(self) -> Tensor:
        """The parameter they belong to."""

    def __len__(self) -> int:
        """How many instances there are."""

    def formed(self) -> Tensor:
        """The gradients [b, *shape of the parameter]."""

    def form(self, target: Tensor) -> None:
        """Writes the gradients to a target [b, numbers of the parameter]."""

    def changed(self, function: Callable[[Tensor], Tensor], /) -> "Part":
        """With each of its tensors changed, all of which have the instances as their first axis."""

    def gathered(self, b: int, /) -> "Part":
        """Of b instances, where each has several rows, one after the other: as one with all their positions."""


class Factored(Part, Protocol):
    """Gradients of one parameter that need not be formed to be multiplied."""

    @property
    def is_cheaper(self) -> bool:
        """Whether the factors are kept: they cost fewer operations than formed gradients, or fewer numbers."""

    @property
    def stored(self) -> int:
        """How many numbers the factors of one gradient are."""

    def products(self: Self, other: Self) -> Tensor:
        """Inner products [b, b'] with the gradients of other instances."""

    def squares(self) -> Tensor:
        """The squared lengths of the gradients [b]."""

    def changed(self: Self, function: Callable[[Tensor], Tensor]) -> Self:
        """With each of its tensors changed, all of which have the instances as their first axis."""


@dataclass(frozen=True, eq=False)
class Dense:
    """Gradients that are formed: one tensor of the parameter's shape for each instance."""

    parameter: Tensor
    values: Tensor  # [b, *shape]

    @classmethod
    def over(cls, parameter: Tensor, back: Tensor) -> "Dense":
        """Of a `parameter` added at every position: the sum over these of what came `back` [b, ..., d]."""
        return cls(parameter, positions(back).sum(dim=1))

    def __len__(self) -> int:
        return len(self.values)

    def formed(self) -> Tensor:
        """The values, as they are."""
        return self.values

    def form(self, target: Tensor) -> None:
        """Writes a copy of the values to the target."""
        target.copy_(self.values.reshape(target.shape))

    def changed(self, function: Callable[[Tensor], Tensor]) -> "Dense":
        """With the values changed by a `function`."""
        return Dense(self.parameter, function(self.values))

    def gathered(self, b: int) -> "Dense":
        """The sums of each of b instances's rows."""
        return self.changed(lambda values: values.unflatten(0, (b, -1)).sum(dim=1))


@dataclass(frozen=True, eq=False)
class Outer:
    """The gradient of a matrix [o, i] as a sum over positions of outer products."""

    parameter: Tensor  # [o, i], or with more axes of length one
    left: Tensor  # [b, t, o]
    right: Tensor  # [b, t, i]
    repeated: bool = False  # whether it is multiplied by several others: what was formed for one is kept

    @classmethod
    def over(cls, parameter: Tensor, back: Tensor, met: Tensor) -> "Outer":
        """Of a `parameter`: what came `back` [b, ..., o] and what it `met` [b, ..., i], at any positions."""
        return cls(parameter, positions(back), positions(met))

    def __len__(self) -> int:
        return len(self.left)

    @property
    def is_cheaper(self) -> bool:
        """By counting: t t (o + i) against o i multiplications for each pair of instances, and the forming.

        Of a large matrix, t (o + i) against o i numbers: it is formed in pieces when it is multiplied. Sparse
        factors always are.
        """
        if isinstance(self.right, SparseRows):
            return True
        t, o, i = self.left.shape[1], self.left.shape[2], self.right.shape[2]
        few = o * i >= LARGE_NUMBERS and t * (o + i) < o * i
        return few or t * t * (o + i) + OVERHEAD < FORMING * o * i

    @property
    def stored(self) -> int:
        """T (o + i) numbers: both factors at each position."""
        width = self.right.stored if isinstance(self.right, SparseRows) else self.right.shape[2]
        return self.left.shape[1] * (self.left.shape[2] + width)

    def formed(self) -> Tensor:
        """The sums of outer products."""
        return torch.bmm(self.left.transpose(1, 2), self.right).reshape(-1, *self.parameter.shape)

    def form(self, target: Tensor) -> None:
        """Writes the sums of outer products to the target; a large one goes to its place at once."""
        left = self.left.transpose(1, 2)
        place = target.unflatten(1, (left.shape[1], -1))
        if target.device != left.device:
            place.copy_(torch.bmm(left, self.right))
        elif self.parameter.numel() >= LARGE_NUMBERS:
            torch.bmm(left, self.right, out=place)
        else:
            place.copy_(torch.bmm(left, self.right, out=BUFFERS.like(place)))

    def products(self, other: "Outer") -> Tensor:
        """By factors, summed over pairs of positions, with those of an `other`; or of formed gradients.

        By counting: a b t s (o + i) multiplications, against those of forming and a b o i.
        """
        (a, t, o), (b, s, i) = self.left.shape, other.right.shape
        if a * b * t * s * (o + i) > o * i * (a * (t + WRITING) + b * (s + WRITING) + a * b):
            return self._in_pieces(other)
        size = max(1, PRODUCT_NUMBERS // max(1, t * b * s))
        if size < a:
            few = (self.changed(partial(some_of, i, i + size)) for i in range(0, a, size))
            return torch.cat([each.products(other) for each in few])
        lefts = self.left.flatten(0, 1) @ other.left.flatten(0, 1).T  # [a t, b s]
        lefts *= self.right.flatten(0, 1) @ other.right.flatten(0, 1).T
        return lefts if t == s == 1 else lefts.reshape(a, t, b, s).sum(dim=(1, 3))

    def _in_pieces(self, other: "Outer") -> Tensor:
        """Products of gradients of which a few rows are formed at a time."""
        a, b, (o, i) = len(self), len(other), (self.left.shape[2], self.right.shape[2])
        size = max(1, PRODUCT_NUMBERS // ((a + b) * i))
        total, lengths = (self.left.new_zeros(shape, dtype=torch.double) for shape in ((a, b), (b,)))
        for start in range(0, o, size):
            mine, theirs = (each._piece(start, min(start + size, o)) for each in (self, other))
            total += inner(mine, theirs)
            lengths += torch.linalg.vector_norm(theirs, dim=1).double().square_()
        other.__dict__["_lengths"] = lengths  # which are then known
        return total

    def _piece(self, start: int, stop: int) -> Tensor:
        """Some rows of the gradients [b, rows times i]."""
        i = self.right.shape[2]
        if self.repeated:
            return self._whole[:, start * i : stop * i]
        left = self.left[:, :, start:stop].transpose(1, 2)
        place = BUFFERS.like(self.right, len(self), stop - start, i)
        return torch.bmm(left, self.right, out=place).flatten(1)

    @cached_property
    def _whole(self) -> Tensor:
        """The gradients [b, o times i]."""
        whole = BUFFERS.like(self.right, len(self), self.left.shape[2], self.right.shape[2])
        return torch.bmm(self.left.transpose(1, 2), self.right, out=whole).flatten(1)

    def squares(self) -> Tensor:
        """The products of the factors' inner products, of each instance with itself [b]."""
        return self._lengths

    @cached_property
    def _lengths(self) -> Tensor:
        lefts = torch.bmm(self.left, self.left.transpose(1, 2))
        return (lefts * torch.bmm(self.right, self.right.transpose(1, 2))).sum(dim=(1, 2))

    def changed(self, function: Callable[[Tensor], Tensor]) -> "Outer":
        """With both factors changed by a `function`."""
        return Outer(self.parameter, function(self.left), function(self.right))

    def gathered(self, b: int) -> "Outer":
        """With the positions of each of b instances's rows."""
        return self.changed(partial(in_rows, b))

    @classmethod
    def summed(cls, parts: Sequence["Outer"], parameter: Tensor, b: int) -> "Outer":
        """The `parts` of several calls of a layer, or of none, as one call's: b instances, by `parameter`."""
        o = len(parameter)
        none = cls(parameter, parameter.new_zeros(b, 0, o), parameter.new_zeros(b, 0, parameter.numel() // o))
        every = list(parts) or [none]
        lefts, rights = ([p.left for p in every], [p.right for p in every])
        return every[0] if len(every) == 1 else cls(parameter, torch.cat(lefts, 1), torch.cat(rights, 1))


def some_of(start: int, stop: int, values: Tensor) -> Tensor:
    """Some of the instances."""
    return values[start:stop]


def in_rows(b: int, values: Tensor) -> Tensor:
    """[b k, t, ...] as [b, k t, ...]."""
    return values.unflatten(0, (b, -1)).flatten(1, 2)


def inner(one: Tensor, other: Tensor) -> Tensor:
    """Inner products [b, b'] of rows, float64, multiplied in their own precision."""
    if one.shape[1] <= PARTED or one.dtype == torch.double or isinstance(one, SparseRows):
        return (one @ other.T).double()
    total = one.new_zeros(len(one), len(other), dtype=torch.double)
    for mine, theirs in zip(one.split(PARTED, dim=1), other.split(PARTED, dim=1), strict=True):
        total += mine @ theirs.T
    return total


def filled(block: Tensor, shape: Sequence[int]) -> Tensor:
    """The block as one of a larger shape, with zeros after its own numbers."""
    if list(block.shape) == shape:
        return block
    larger = BUFFERS.like(block, *shape).zero_()
    larger[tuple(map(slice, block.shape))] = block
    return larger


def positions(values: Tensor) -> Tensor:
    """[b, ..., d] as [b, t, d]."""
    return values.reshape(len(values), -1, values.shape[-1])


def trainable(parameter: Tensor | None) -> bool:
    """Whether the parameter is there and counts."""
    return parameter is not None and parameter.requires_grad


class ApartError(InputError):
    """A layer received another number of instances than there are, as where each goes its own way."""


class Assembly:
    """Gradients of b instances, put to their places as they come; what stays factored is set aside.

    `targets` has, by the parameter's id, the columns of the matrix [b, columns] and which part of its gradients
    they are; `every` has the ids of all parameters.
    """

    def __init__(
        self, matrix: Tensor, targets: Mapping[int, tuple[slice, slice]], every: Iterable[int]
    ) -> None:
        self.matrix, self.targets, self.b = matrix, targets, len(matrix)
        self.factors: dict[int, list[Part]] = {key: [] for key in every if key not in targets}
        self.filled: set[int] = set()

    def append(self, part: Part) -> None:
        """Puts the gradients of one parameter to their place; what comes later is added."""
        if len(part) != self.b:
            if self.b > 1:
                raise ApartError(
                    "A layer received the instances along another axis than the first in this batch."
                )
            part = part.gathered(1)  # all rows are its own, whatever their number
        key = id(part.parameter)
        if key in self.factors:
            self.factors[key].append(part)
            return
        place, own = self.targets[key]
        target = self.matrix[:, place]
        if key in self.filled:
            target += part.formed().reshape(self.b, -1)[:, own].to(target.device)
        elif target.shape[1] == part.parameter.numel():
            part.form(target)
        elif target.shape[1]:
            target.copy_(part.formed().reshape(self.b, -1)[:, own])
        self.filled.add(key)

    def asks(self, parameter: Tensor) -> bool:
        """Whether any of the gradients of a parameter has a place."""
        place, _ = self.targets.get(id(parameter), (slice(0, 1), None))
        return place.stop > place.start

    def complete(self) -> Mapping[int, list[Part]]:
        """Fills in zeros where the loss does not depend on a parameter; gives what was set aside, by id."""
        for key, (place, _) in self.targets.items():
            if key not in self.filled:
                self.matrix[:, place] = 0
        return self.factors
