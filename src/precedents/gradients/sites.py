"""Sites: the gradient of one instance, position by position, as sums of outer products that nothing has summed.

The gradient of a layer is a sum over positions (pixels, tokens, steps) of outer products of what came back and
what was received. So the inner product of two gradients is a sum over pairs of positions of
`<a_p, a'_q> <d_p, d'_q>`, and its parts are found without forming either gradient.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import torch
from torch import Tensor

from precedents.gradients.factors import Dense, Outer, Part, in_rows, trainable
from precedents.gradients.lookups import Lookup
from precedents.gradients.patches import Patched
from precedents.runtime.budget import Budget
from precedents.runtime.sparse import SparseRows

PAIR_NUMBERS = 2**22  # inner products of positions that are held at once
EXACT = 8  # times that the factors of a layer are held when it is divided, most of them in float64
REFUSAL = "What all positions of a layer add to a score", "Allow more memory: memory=."


@dataclass(frozen=True, eq=False)
class Sites:
    """The gradients of one parameter: a sum over t positions, in g groups, of outer products.

    With `rows` the parameter is a table, and a position adds its `left` to the row that it has used.
    """

    parameter: Tensor
    left: Tensor  # [b, t, g, o]
    right: Tensor  # [b, t, g, i]
    shape: tuple[int, ...] | None  # of the positions; None where it is one sum of all of them
    rows: Tensor | None = None  # [b, t], int64

    @classmethod
    def at(cls, parameter: Tensor, left: Tensor, right: Tensor | None, shape: Sequence[int]) -> "Sites":
        """Of factors [b, t, o] and [b, t, i]; without the second one, of vectors that add up."""
        right = left.new_ones(*left.shape[:2], 1) if right is None else right
        return cls(parameter, left[:, :, None], right[:, :, None], tuple(shape))

    @classmethod
    def of(cls, part: Part) -> "Sites":
        """Of what a rule gives; what is formed has no positions any more."""
        if isinstance(part, Sites):
            return part
        if isinstance(part, Patched):
            shape = part.back.shape[3:] if part.back.shape[2] == 1 else part.back.shape[2:]
            return replace(cls.of(part.outer()), shape=tuple(shape))
        if isinstance(part, Outer):
            return cls.at(part.parameter, part.left, part.right, part.left.shape[1:2])
        if isinstance(part, Lookup):
            ones = part.values.new_ones(*part.rows.shape, 1)
            found = cls.at(part.parameter, part.values, ones, part.rows.shape[1:])
            return replace(found, rows=part.rows)
        return cls.whole(part.parameter, part.formed())

    @classmethod
    def whole(cls, parameter: Tensor, values: Tensor) -> "Sites":
        """Gradients [b, ...] that are formed."""
        return replace(cls.at(parameter, values.reshape(len(values), 1, -1), None, ()), shape=None)

    def __len__(self) -> int:
        return len(self.left)

    @property
    def bytes(self) -> int:
        """What the factors take; sparse ones are not counted."""
        dense = (each for each in (self.left, self.right) if not isinstance(each, SparseRows))
        return sum(each.numel() * each.element_size() for each in dense)

    def changed(self, function: Callable[[Tensor], Tensor]) -> "Sites":
        """With each of its tensors changed, all of which have the instances as their first axis."""
        rows = None if self.rows is None else function(self.rows)
        return replace(self, left=function(self.left), right=function(self.right), rows=rows)

    def gathered(self, b: int) -> "Sites":
        """With an axis of each of b instances's rows before those of the positions."""
        shape = None if self.shape is None else (len(self) // b, *self.shape)
        return replace(self.changed(partial(in_rows, b)), shape=shape)

    def formed(self) -> Tensor:
        """The gradients [b, *shape of the parameter]."""
        if self.rows is None:
            found = torch.einsum("btgo,btgi->bgoi", self.left, self.right)
        else:
            found = self.left.new_zeros(len(self), *self.parameter.shape)
            for own, rows, values in zip(found, self.rows, self.left[:, :, 0], strict=True):
                own.index_add_(0, rows, values)
        return found.reshape(len(self), *self.parameter.shape)

    def form(self, target: Tensor) -> None:
        """Writes the gradients to a target."""
        target.copy_(self.formed().reshape(target.shape))

    def exact(self) -> "Sites":
        """Of the first instance, in float64 on the CPU; sparse factors with their zeros."""
        return self.changed(lambda values: _exact(values[:1]))

    def matches(self, other: "Sites") -> bool:
        """Whether the two are made of factors of one kind and size."""
        sizes = ((each.left.shape[2:], each.right.shape[2:], each.rows is None) for each in (self, other))
        return len(set(sizes)) == 1

    def turned(self) -> "Sites":
        """With the positions in the other order, as of a layer that goes from the end to the beginning."""
        return self.changed(lambda values: values.flip(1))

    def blocks(self, other: "Sites") -> Iterator[Tensor]:
        """What each pair of positions adds to the inner product, some rows [., t'] after the other."""
        size = max(1, PAIR_NUMBERS // max(1, other.left.shape[1] * self.left.shape[2]))
        for start in range(0, self.left.shape[1], size):
            some = slice(start, start + size)
            pairs = ((self.left[0, some], other.left[0]), (self.right[0, some], other.right[0]))
            lefts, rights = (torch.einsum("pgd,qgd->gpq", one, two) for one, two in pairs)
            found = (lefts * rights).sum(dim=0)
            if self.rows is not None and other.rows is not None:
                found = found * (self.rows[0, some, None] == other.rows[0])
            yield found

    def margins(self, other: "Sites") -> tuple[Tensor, Tensor]:
        """What each position of both [t], [t'] adds to the inner product, over all positions of the other."""
        (_, t, _, o), s, i = self.left.shape, other.left.shape[1], self.right.shape[3]
        if self.rows is None and t * s * (o + i + 1) > 4 * (t + s) * o * i:  # by counting
            return self.against(other), other.against(self)
        own, theirs = list[Tensor](), torch.zeros(s, dtype=torch.double)
        for block in self.blocks(other):
            own.append(block.sum(dim=1))
            theirs += block.sum(dim=0)
        return (torch.cat(own) if own else torch.zeros(0, dtype=torch.double)), theirs

    def against(self, other: "Sites") -> Tensor:
        """What each position of this one [t] adds, by the sum of the other's outer products."""
        summed = torch.einsum("tgo,tgi->goi", other.left[0], other.right[0])
        found = self.left.new_empty(len(self.left[0]))
        size = max(1, PAIR_NUMBERS // max(1, prod(self.right.shape[2:])))
        for start in range(0, len(found), size):
            some = slice(start, start + size)
            turned = torch.einsum("tgo,goi->tgi", self.left[0, some], summed)
            found[some] = (turned * self.right[0, some]).sum(dim=(1, 2))
        return found

    def product(self, other: "Sites") -> float:
        """The inner product."""
        return float(self.margins(other)[0].sum())

    def columns(self, other: "Sites") -> Tensor | None:
        """What each entry that was received adds [i], where there is but one position of each."""
        alone = self.left.shape[1:3] == other.left.shape[1:3] == (1, 1)
        if not alone or self.shape is None or self.right.shape[3] < 2:
            return None
        return (self.left[0, 0, 0] @ other.left[0, 0, 0]) * self.right[0, 0, 0] * other.right[0, 0, 0]


def _exact(values: Tensor) -> Tensor:
    values = values.dense() if isinstance(values, SparseRows) else values
    return values.cpu() if values.dtype == torch.long else values.double().cpu()


def scaled(module: Any, grad: Tensor, normal: Tensor) -> Iterator[Part]:
    """The sites of a layer that scales and shifts channels [b, c, ...] which were normalised before."""
    size, shape = grad.shape[:2], tuple(grad.shape[2:])
    if trainable(module.weight):
        yield Sites.at(module.weight, (grad * normal).reshape(*size, -1).transpose(1, 2), None, shape)
    if trainable(module.bias):
        yield Sites.at(module.bias, grad.reshape(*size, -1).transpose(1, 2), None, shape)


class OpenParts:
    """A sink of sites; a bias that adds up what came back to the matrix before it has its positions."""

    def __init__(self, budget: Budget, held: int) -> None:
        self.budget, self.held = budget, held
        self.found: dict[int, list[Sites]] = {}  # by the parameter's id
        self.before: Sites | None = None

    def append(self, part: Part) -> None:
        """Takes the gradients of one more parameter, all of whose rows are of the one instance."""
        part = part if len(part) == 1 else part.gathered(1)
        if isinstance(part, Patched):
            self._required(part.laid_out_bytes)
        sites, before = Sites.of(part), self.before
        if isinstance(part, Dense) and before is not None and _adds_up(before.left, part.values):
            sites = replace(before, parameter=part.parameter, right=torch.ones_like(before.right[..., :1]))
        elif isinstance(part, Outer):
            self.before = sites
        self._required(sites.bytes)
        self.held += sites.bytes
        self.found.setdefault(id(part.parameter), []).append(sites)

    def _required(self, count: int) -> None:
        """Refuses what has no room beside what is held: of this layer the factors of both in float64."""
        self.budget.bound(self.held + EXACT * count, *REFUSAL)


def _adds_up(left: Tensor, values: Tensor) -> bool:
    """Whether the values [b, o] are the sum of the factors [b, t, 1, o]."""
    total = left.sum(dim=(1, 2))
    near = 1e-6 * float(total.abs().max())
    return total.shape == values.shape and torch.allclose(total, values, rtol=0, atol=near)


def joined(several: Sequence[Sites]) -> Sites:
    """The gradients of all calls of a layer as those of one, with an axis of calls; formed, if they differ."""
    first = several[0]
    if len(several) == 1:
        return first
    shapes = {each.shape for each in several}
    if None in shapes or not all(map(first.matches, several)):
        return Sites.whole(first.parameter, torch.stack([each.formed() for each in several]).sum(dim=0))
    left, right = (torch.cat(each, 1) for each in zip(*((s.left, s.right) for s in several), strict=True))
    rows = [each.rows for each in several if each.rows is not None]
    shape = (len(several), *(first.shape or ())) if len(shapes) == 1 else (left.shape[1],)
    return Sites(first.parameter, left, right, shape, torch.cat(rows, 1) if rows else None)
