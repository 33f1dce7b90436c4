"""Codes: what is kept of a training row, about a kilobyte for any number of parameters.

A row of unit length, sketched where it is long, becomes its coordinates in an orthonormal basis (the principal
directions of a sample) and a second sketch of what the basis leaves out, both rounded to a byte a number. So

    <u, v> = <Bu, Bv> + <rest of u, rest of v>

where the first product is known but for the rounding, and the second one is estimated by its sketch. It is at
most the product of the two lengths, which are known: where rows are not sketched first, that is a proof.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from precedents.gradients.rows import Rows
from precedents.index.search import Approximation
from precedents.index.sketch import CountSketch

KEPT = 256  # coordinates in the basis,
LEFT = 768  # and buckets of what it leaves out
EXACT = 16384  # columns up to which rows are not sketched first,
BUCKETS = 8192  # and buckets of longer ones
LARGEST = 127  # number in a byte
ROUNDING = 1e-5  # what single precision adds to an inner product of unit rows, at most
SLACK = 4e-6  # and to a squared length
CODED = 128  # rows that are coded at once
SCANNED = 1024  # rows that are compared at once: what stays in the processor's cache


@dataclass(frozen=True, eq=False)
class CodedCases:
    """What cases are to codes: not rounded."""

    kept: Tensor  # [m, kept]
    left: Tensor  # [m, left], as long as the rest of each
    rest: Tensor  # [m], the length of the rest


@dataclass(frozen=True, eq=False)
class Coder:
    """Turns rows into codes."""

    first: CountSketch
    basis: Tensor  # [length of the first sketch, kept], orthonormal columns
    buckets: int = LEFT  # of what the basis leaves out

    @classmethod
    def of(cls, first: CountSketch, sample: Tensor, kept: int = KEPT, buckets: int = LEFT) -> "Coder":
        """With the principal directions of some rows [s, length], each of unit length or zero."""
        gram = (sample @ sample.T).double()
        values, vectors = torch.linalg.eigh(gram)
        directions = sample.T @ vectors.flip(1)[:, :kept].to(sample)
        sure = values.flip(0)[:kept] > gram.diagonal().sum() * 1e-7  # others are noise, which costs a byte each
        basis = torch.linalg.qr(directions[:, sure]).Q
        return cls(first, basis, buckets)

    @classmethod
    def sketch_of(cls, width: int) -> CountSketch:
        """How rows of this width are made shorter first, if they are."""
        return CountSketch(width, EXACT if width <= EXACT else BUCKETS)

    @cached_property
    def second(self) -> CountSketch:
        """Of what the basis leaves out."""
        return CountSketch(self.first.length, self.buckets, seed=1)

    @cached_property
    def _basis_sketch(self) -> Tensor:
        """The second sketch of each direction [kept, left]."""
        return self.second.of(Rows.of(self.basis.T.contiguous()))

    def asked(self, rows: Rows) -> CodedCases:
        """What the rows are to codes."""
        return self._parts(unit(self.first, rows))

    def _parts(self, units: Tensor) -> CodedCases:
        kept = units @ self.basis
        left = self.second.of(Rows.of(units)).sub_(kept @ self._basis_sketch)
        rest = (units.square().sum(dim=1) - kept.square().sum(dim=1) + SLACK).clamp_(min=0).sqrt_()
        own = left.norm(dim=1)
        left *= torch.where(own > 0, rest / own, 0.0)[:, None]
        return CodedCases(kept, left, rest)

    def codes(self, rows: Rows) -> "Codes":
        """The codes of the rows."""
        pieces = (rows.between(i, i + CODED) for i in range(0, len(rows), CODED))
        kept, kept_scale, left, left_scale, rest, lost = map(
            torch.cat, zip(*map(self._codes, pieces), strict=True)
        )
        return Codes(kept, kept_scale, left, left_scale, rest, lost, rows.squares())

    def _codes(self, rows: Rows) -> tuple[Tensor, ...]:
        parts = self._parts(unit(self.first, rows))
        kept, kept_scale = rounded(parts.kept)
        left, left_scale = rounded(parts.left)
        lost = (parts.kept - kept * kept_scale[:, None]).norm(dim=1)
        return kept, kept_scale, left, left_scale, parts.rest, lost


def unit(sketch: CountSketch, rows: Rows) -> Tensor:
    """Rows, or their sketches, of unit length [b, length]; zero where there is no length, or no number."""
    found = torch.empty(len(rows), sketch.length, dtype=torch.float32)
    for start in range(0, len(rows), CODED):
        few = sketch.of(rows.between(start, start + CODED))
        lengths = torch.linalg.vector_norm(few, dim=1, dtype=torch.double)
        few.mul_(torch.where(lengths > 0, 1 / lengths, 0.0).to(few)[:, None])
        few.masked_fill_(~lengths.isfinite()[:, None], 0.0)
        found[start : start + CODED] = few
    return found


def rounded(values: Tensor) -> tuple[Tensor, Tensor]:
    """Numbers [b, c] as bytes, and what a one means in each row."""
    scale = values.abs().amax(dim=1) / LARGEST if values.shape[1] else values.new_zeros(len(values))
    steps = torch.where(scale > 0, 1 / scale, 0.0)
    return (values * steps[:, None]).round_().to(torch.int8), scale


@dataclass(frozen=True, eq=False)
class Codes:
    """Codes of n rows, as tensors: coordinates and buckets in a byte each, and the lengths that bounds need."""

    kept: Tensor  # [n, kept], int8
    kept_scale: Tensor  # [n]
    left: Tensor  # [n, left], int8
    left_scale: Tensor  # [n]
    rest: Tensor  # [n], the length of what the basis leaves out
    lost: Tensor  # [n], the length of what rounding took from the coordinates
    squares: Tensor  # [n], the squared length of the row itself, float64

    def __len__(self) -> int:
        return len(self.squares)

    @property
    def bytes(self) -> int:
        """What the codes take in memory."""
        return sum(each.nbytes for each in vars(self).values())

    def room(self, n: int) -> "Codes":
        """Room for n like these."""
        return Codes(*(each.new_empty(n, *each.shape[1:]) for each in vars(self).values()))

    def put(self, places: slice, codes: "Codes") -> None:
        """Copies some to their places."""
        for into, each in zip(vars(self).values(), vars(codes).values(), strict=True):
            into[places] = each

    def some(self, places: Tensor | slice) -> "Codes":
        """Those at some places."""
        return Codes(*(each[places] for each in vars(self).values()))

    def approximation(self, coder: Coder, cases: Rows) -> Approximation:
        """What is known of the cosines with some cases."""
        asked = coder.asked(cases)
        about, most = self._cosines(asked)
        left, lost = asked.rest[:, None] * self.rest, asked.kept.norm(dim=1)[:, None] * self.lost
        most += left + lost + ROUNDING
        errors = lost.square_().div_(max(1, self.kept.shape[1])).add_(left.square_().div_(self.left.shape[1]))
        if not coder.first.exact:
            errors += (1 - about.square()).square_().div_(coder.first.buckets)
        sigma = errors.add_(ROUNDING**2).sqrt_()
        proved = most if coder.first.exact else None
        return Approximation(about, proved, sigma, self.squares.sqrt(), cases.squares().sqrt())

    def _cosines(self, asked: CodedCases) -> tuple[Tensor, Tensor]:
        """About the cosines [m, n] with the cases, and the part of them that is no estimate."""
        n = len(self)
        about, known = (torch.empty(len(asked.rest), n, dtype=torch.float32) for _ in range(2))
        for start in range(0, n, SCANNED):
            place = slice(start, min(start + SCANNED, n))
            kept = asked.kept @ self.kept[place].T.float()
            left = asked.left @ self.left[place].T.float()
            known[:, place] = kept.mul_(self.kept_scale[place])
            about[:, place] = left.mul_(self.left_scale[place]).add_(kept)
        return about, known
