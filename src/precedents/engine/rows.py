"""Rows: the feature vectors of some instances, as a matrix and, where that is cheaper, as factors.

A row is its scale times what is stored, so that rows of any length keep the digits of their precision.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from precedents.engine.parts import Outer


@dataclass(frozen=True, eq=False)
class Rows:
    """b vectors of length d."""

    matrix: Tensor  # [b, f], the columns that are formed
    scale: Tensor  # [b], float64
    outers: tuple[tuple[slice, Outer], ...] = ()  # columns that are not formed, by their place

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
        return self.matrix.shape[1] + sum(place.stop - place.start for place, _ in self.outers)

    def products(self, other: "Rows") -> Tensor:
        """Inner products [b, b'] with other rows, float64; the multiplications are in the rows' precision."""
        cross = self.matrix @ other.matrix.T
        for (_, mine), (_, theirs) in zip(self.outers, other.outers, strict=True):
            cross += mine.products(theirs)
        return cross.double() * self.scale[:, None] * other.scale

    def squares(self) -> Tensor:
        """Squared lengths [b], float64."""
        lengths = torch.linalg.vector_norm(self.matrix, dim=1, dtype=torch.double).square()
        for _, outer in self.outers:
            lengths = lengths + outer.squares().double()
        return lengths * self.scale.square()

    def dense(self) -> Tensor:
        """The vectors [b, d] in float64."""
        if not self.outers:
            return self.matrix.double() * self.scale[:, None]
        vectors = torch.empty(len(self), self.width, dtype=torch.double)
        formed = torch.ones(self.width, dtype=torch.bool)
        for place, outer in self.outers:
            vectors[:, place] = outer.formed().flatten(1).double()
            formed[place] = False
        vectors[:, formed] = self.matrix.double()
        return vectors * self.scale[:, None]

    def doubled(self) -> "Rows":
        """The same rows with everything in float64."""
        outers = tuple((place, outer.doubled()) for place, outer in self.outers)
        return Rows(self.matrix.double(), self.scale, outers)

    def part(self, start: int, stop: int) -> "Rows":
        """Some consecutive rows."""
        outers = tuple(
            (place, Outer(outer.parameter, outer.left[start:stop], outer.right[start:stop]))
            for place, outer in self.outers
        )
        return Rows(self.matrix[start:stop], self.scale[start:stop], outers)


def joined(blocks: Sequence[Rows]) -> Rows:
    """Consecutive blocks of rows as one."""
    first, *rest = blocks
    if not rest:
        return first
    outers = tuple(
        (place, outer.joined([block.outers[i][1] for block in rest]))
        for i, (place, outer) in enumerate(first.outers)
    )
    return Rows(
        torch.cat([block.matrix for block in blocks]), torch.cat([block.scale for block in blocks]), outers
    )
