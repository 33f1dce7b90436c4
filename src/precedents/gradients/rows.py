"""Rows: the feature vectors of some instances, as a matrix and, where that is cheaper, as factors.

A row is its scale times what is stored, so that rows of any length keep the digits of their precision.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from precedents.gradients.factors import Factored
from precedents.runtime.buffers import BUFFERS

CHUNK_NUMBERS = 4096  # squares are summed in the rows' precision up to this length, and in float64 beyond

Factors = tuple[tuple[slice, Factored], ...]


@dataclass(frozen=True, eq=False)
class Rows:
    """b vectors of length d."""

    matrix: Tensor  # [b, f], the columns that are formed
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
        return self.matrix.shape[1] + sum(factor.stored for _, factor in self.factors)

    def between(self, start: int, stop: int) -> "Rows":
        """Some of the vectors."""
        factors = tuple((place, factor.changed(lambda x: x[start:stop])) for place, factor in self.factors)
        return Rows(self.matrix[start:stop], self.scale[start:stop], factors)

    def products(self, other: "Rows") -> Tensor:
        """Inner products [b, b'] with other rows, float64; the multiplications are in the rows' precision."""
        cross = self.matrix @ other.matrix.T
        for (_, mine), (_, theirs) in zip(self.factors, other.factors, strict=True):
            cross += mine.products(theirs)
        return cross.double().mul_(self.scale[:, None]).mul_(other.scale)

    def squares(self) -> Tensor:
        """The squared lengths of the vectors [b], in float64."""
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
        self.tensors: list[Tensor] = []  # of all factors, in order

    def put(self, places: slice | Tensor, block: Rows) -> None:
        """Copies a block, unless it was formed in its place."""
        n = len(self.scale)
        if self.matrix is None:
            self.matrix = BUFFERS.empty((n, block.matrix.shape[1]), block.matrix.dtype)
        self.scale[places] = block.scale
        if not isinstance(places, slice) or self.matrix[places].data_ptr() != block.matrix.data_ptr():
            self.matrix[places] = block.matrix
        own = [tensor for _, factor in block.factors for tensor in _tensors(factor)]
        if not self.factors:
            self.factors, self.tensors = block.factors, [_room(each, n) for each in own]
        for i, each in enumerate(own):
            self.tensors[i] = _lengthened(self.tensors[i], each.shape[1])
            self.tensors[i][places, : each.shape[1]] = each
            self.tensors[i][places, each.shape[1] :] = 0  # positions that only others have

    def rows(self) -> Rows:
        """All of them."""
        tensors = iter(self.tensors)
        factors = tuple((place, factor.changed(lambda _: next(tensors))) for place, factor in self.factors)
        assert self.matrix is not None
        return Rows(self.matrix, self.scale, factors)


def _tensors(factor: Factored) -> list[Tensor]:
    """What the factor is made of."""
    found: list[Tensor] = []

    def noted(values: Tensor) -> Tensor:
        found.append(values)
        return values

    factor.changed(noted)
    return found


def _room(values: Tensor, n: int) -> Tensor:
    return BUFFERS.like(values, n, *values.shape[1:])


def _lengthened(values: Tensor, t: int) -> Tensor:
    """Values [n, t', ...] with room for t positions."""
    if t <= values.shape[1]:
        return values
    longer = BUFFERS.like(values, len(values), t, *values.shape[2:])
    longer[:, : values.shape[1]], longer[:, values.shape[1] :] = values, 0
    return longer


def joined(blocks: Iterable[tuple[range, Rows]], n: int) -> Rows:
    """Blocks of n rows in all, with their places, as one; the memory of each is free once it is copied."""
    collected = Collected(n)
    for places, block in blocks:
        if len(block) == n:
            return block
        collected.put(slice(places.start, places.stop), block)
        del block
    return collected.rows()
