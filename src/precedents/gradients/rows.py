"""Rows: the feature vectors of some instances, as a matrix and, where that is cheaper, as factors.

A row is its scale times what is stored, so that rows of any length keep the digits of their precision.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from precedents.gradients.factors import Factored, Outer, filled, inner
from precedents.runtime.buffers import BUFFERS
from precedents.runtime.sparse import SparseRows

CHUNK_NUMBERS = 4096  # squares are summed in the rows' precision up to this length, and in float64 beyond

Factors = tuple[tuple[slice, Factored], ...]


@dataclass(frozen=True, eq=False)
class Rows:
    """b vectors of length d."""

    matrix: Tensor  # [b, f], the columns that are formed; sparse, if vectors are
    scale: Tensor  # [b], float64
    factors: Factors = ()  # columns that are not formed, by their place

    @classmethod
    def of(cls, vectors: "Tensor | Rows") -> "Rows":
        """Plain vectors [b, d] as rows."""
        if isinstance(vectors, Rows):
            return vectors
        return cls(vectors, torch.ones(len(vectors), dtype=torch.double))

    def __len__(self) -> int:
        return len(self.scale)

    @property
    def width(self) -> int:
        """The length d of a vector."""
        return self.matrix.shape[1] + sum(place.stop - place.start for place, _ in self.factors)

    @property
    def stored(self) -> int:
        """How many numbers of a vector are stored."""
        own = self.matrix.stored if isinstance(self.matrix, SparseRows) else self.matrix.shape[1]
        return own + sum(factor.stored for _, factor in self.factors)

    def between(self, start: int, stop: int) -> "Rows":
        """Some of the vectors, from `start` to before `stop`."""
        factors = tuple((place, factor.changed(lambda x: x[start:stop])) for place, factor in self.factors)
        return Rows(self.matrix[start:stop], self.scale[start:stop], factors)

    def repeated(self, room: int) -> "Rows":
        """The same, to be multiplied by several others: what is formed for one is kept, in `room` bytes."""
        factors = []
        for place, factor in self.factors:
            if isinstance(factor, Outer) and not isinstance(factor.right, SparseRows):
                size = factor.right.element_size() * len(self) * (place.stop - place.start)
                if size <= room:
                    room, factor = room - size, replace(factor, repeated=True)
            factors.append((place, factor))
        return replace(self, factors=tuple(factors))

    def products(self, other: "Rows") -> Tensor:
        """Inner products [b, b'] with other rows, float64; the multiplications are in the rows' precision."""
        cross = inner(self.matrix, other.matrix)
        for (_, mine), (_, theirs) in zip(self.factors, other.factors, strict=True):
            cross += mine.products(theirs)
        return cross.mul_(self.scale[:, None]).mul_(other.scale)

    def squares(self) -> Tensor:
        """The squared lengths of the vectors [b], in float64."""
        if isinstance(self.matrix, SparseRows):
            return self.matrix.squares().double() * self.scale.square()
        whole = self.matrix.shape[1] // CHUNK_NUMBERS * CHUNK_NUMBERS
        chunks = self.matrix[:, :whole].unflatten(1, (-1, CHUNK_NUMBERS)) if whole else self.matrix[:, None, :0]
        lengths = torch.linalg.vector_norm(chunks, dim=2).double().square().sum(dim=1)
        lengths += torch.linalg.vector_norm(self.matrix[:, whole:], dim=1).double().square()
        for _, factor in self.factors:
            lengths += factor.squares().double()
        return lengths * self.scale.square()

    def dense(self) -> Tensor:
        """The vectors [b, d] in float64."""
        if not self.factors:
            return self.matrix.double() * self.scale[:, None]
        vectors = torch.empty(len(self), self.width, dtype=torch.double)
        formed = torch.ones(self.width, dtype=torch.bool)
        for place, factor in self.factors:
            vectors[:, place] = factor.formed().flatten(1).double()
            formed[place] = False
        vectors[:, formed] = self.matrix.double()
        return vectors * self.scale[:, None]

    def doubled(self) -> "Rows":
        """These rows with everything in float64."""
        factors = tuple((place, factor.changed(_double)) for place, factor in self.factors)
        return Rows(self.matrix.double(), self.scale, factors)


def dense(vectors: Tensor | Rows) -> Tensor:
    """Vectors [b, d] as a matrix; rows in float64."""
    return vectors.dense() if isinstance(vectors, Rows) else vectors


def _double(values: Tensor) -> Tensor:
    return values.double() if values.is_floating_point() else values


class Collected:
    """Rows that are put to their places block by block, so that a block's memory is free once it is copied."""

    def __init__(self, n: int, matrix: Tensor | None = None) -> None:
        self.matrix, self.scale = matrix, torch.empty(n, dtype=torch.double)
        self.factors: Factors = ()
        self.tensors: Sequence[Tensor] = ()  # of all factors, in order

    def put(self, places: slice | Tensor, block: Rows) -> None:
        """Copies a block, unless it was formed in its place; sparse ones come in order."""
        n = len(self.scale)
        self.scale[places] = block.scale
        if not (isinstance(places, slice) and _is_in(self.matrix, places, block.matrix)):
            self.matrix = _put(self.matrix, n, places, block.matrix)
        own = [tensor for _, factor in block.factors for tensor in _tensors(factor)]
        self.factors = tuple(map(_telling, self.factors or block.factors, block.factors))
        before: Sequence[Tensor | None] = self.tensors or [None] * len(own)
        self.tensors = [_put(into, n, places, each) for into, each in zip(before, own, strict=True)]

    def rows(self) -> Rows:
        """All of them."""
        tensors = iter(self.tensors)
        factors = tuple((place, factor.changed(lambda _: next(tensors))) for place, factor in self.factors)
        assert self.matrix is not None
        return Rows(self.matrix, self.scale, factors)


def _telling(one: tuple[slice, Factored], other: tuple[slice, Factored]) -> tuple[slice, Factored]:
    """Whichever has positions, and so knows how a kernel meets them."""
    return one if any(values.numel() for values in _tensors(one[1])) else other


def _tensors(factor: Factored) -> list[Tensor]:
    """What the factor is made of."""
    found: list[Tensor] = []

    def noted(values: Tensor) -> Tensor:
        found.append(values)
        return values

    factor.changed(noted)
    return found


def _is_in(whole: Tensor | None, places: slice, values: Tensor) -> bool:
    """Whether the values were formed in their place."""
    if whole is None or isinstance(values, SparseRows):
        return False
    return whole[places].data_ptr() == values.data_ptr()


def _put(into: Tensor | None, n: int, places: slice | Tensor, values: Tensor) -> Tensor:
    """N rows with these at their places; along axes that are longer in others, zeros come after."""
    if isinstance(values, SparseRows):
        return values if into is None else torch.cat([into, values])
    into = BUFFERS.like(values, n, *values.shape[1:]) if into is None else into
    shape = [max(lengths) for lengths in zip(into.shape[1:], values.shape[1:], strict=True)]
    into = filled(into, [n, *shape])
    into[places] = filled(values, [len(values), *shape])
    return into


def joined(blocks: Iterable[tuple[range, Rows]], n: int) -> Rows:
    """Blocks of n rows in all, with their places, as one; the memory of each is free once it is copied."""
    collected = Collected(n)
    for places, block in blocks:
        if len(block) == n:
            return block
        collected.put(slice(places.start, places.stop), block)
        del block
    return collected.rows()
