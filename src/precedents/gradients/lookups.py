"""Lookup: the gradients of a table of which each instance has used a few rows, as of an embedding."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import isqrt

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from precedents.gradients.factors import LARGE_NUMBERS, PRODUCT_NUMBERS, in_rows, inner, some_of

GATHERING = 8  # how much slower numbers are multiplied that must be gathered first
TABLE_NUMBERS = 2**23  # of tables that are laid out at once


@dataclass(frozen=True, eq=False)
class Lookup:
    """The gradient of a table [v, e] of which each instance has used a few rows."""

    parameter: Tensor  # [v, e]
    rows: Tensor  # [b, t], int64
    values: Tensor  # [b, t, e]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def is_cheaper(self) -> bool:
        """By counting: the t entries that were used against the v of the table; of a large one, the numbers."""
        few = self.parameter.numel() >= LARGE_NUMBERS and 2 * self.stored < self.parameter.numel()
        return few or GATHERING * self.rows.shape[1] < len(self.parameter)

    @property
    def stored(self) -> int:
        """The rows' numbers and their values."""
        return self.rows.shape[1] * (1 + self.values.shape[2])

    def formed(self) -> Tensor:
        """The whole table for each instance; what falls on one row adds up."""
        return self._table(self.rows, len(self.parameter))

    def form(self, target: Tensor) -> None:
        """Writes the whole tables to the target."""
        target.copy_(self.formed().reshape(target.shape))

    def products(self, other: "Lookup") -> Tensor:
        """The other's entries, weighed by this one's table of the rows that it has used."""
        few = max(1, isqrt(TABLE_NUMBERS // self._entries), 2 * TABLE_NUMBERS // self.parameter.numel())
        if few < len(self):
            mine = (self.changed(partial(some_of, i, i + few)) for i in range(0, len(self), few))
            return torch.cat([each.products(other) for each in mine])
        size = max(1, PRODUCT_NUMBERS // other._entries)
        theirs = (other.changed(partial(some_of, i, i + size)) for i in range(0, max(1, len(other)), size))
        return torch.cat([self._weighed(each) for each in theirs]).T

    def _weighed(self, other: "Lookup") -> Tensor:
        """The inner products [b', b]; the other is laid out as well where it has most of the used rows too."""
        places, table = self._used
        e, used = self.values.shape[2], places[other.rows]
        if len(table) <= 2 * e * other.rows.shape[1]:
            return inner(other._table(used, len(table) // e).flatten(1), table.T)
        entries = used[..., None] * e + torch.arange(e, device=places.device)
        weights = other.values.flatten(1).contiguous()
        return embedding_bag(entries.flatten(1), table, per_sample_weights=weights, mode="sum")

    @property
    def _entries(self) -> int:
        """How many numbers an instance's values are."""
        return max(1, self.values.shape[1] * self.values.shape[2])

    def squares(self) -> Tensor:
        """What an instance's entries on the same row have in common, summed over pairs of positions."""
        same = self.rows[:, :, None] == self.rows[:, None, :]
        return (torch.bmm(self.values, self.values.transpose(1, 2)) * same).sum(dim=(1, 2))

    def changed(self, function: Callable[[Tensor], Tensor]) -> "Lookup":
        """The rows and the values, each changed by a `function`."""
        return Lookup(self.parameter, function(self.rows), function(self.values))

    def gathered(self, b: int) -> "Lookup":
        """With the positions of each of b instances's rows."""
        return self.changed(partial(in_rows, b))

    @classmethod
    def summed(cls, parts: Sequence["Lookup"], parameter: Tensor, b: int) -> "Lookup":
        """The `parts` of several calls of a layer, or of none, as one call's: b instances, by `parameter`."""
        rows = torch.zeros(b, 0, dtype=torch.long, device=parameter.device)
        none = cls(parameter, rows, parameter.new_zeros(b, 0, parameter.shape[1]))
        every = list(parts) or [none]
        places, values = ([p.rows for p in every], [p.values for p in every])
        return every[0] if len(every) == 1 else cls(parameter, torch.cat(places, 1), torch.cat(values, 1))

    @cached_property
    def _used(self) -> tuple[Tensor, Tensor]:
        """For each row of the table its place among the u that were used, and these as [(u + 1) e, b].

        Those that were not used have the last place, where nothing is.
        """
        used, own = self.rows.unique(return_inverse=True)
        places = torch.full((len(self.parameter),), len(used), dtype=torch.long, device=used.device)
        places[used] = torch.arange(len(used), device=used.device)
        return places, self._table(own, len(used) + 1).flatten(1).T.contiguous()

    def _table(self, rows: Tensor, v: int) -> Tensor:
        b, e = len(rows), self.values.shape[2]
        table = self.values.new_zeros(b * v, e)
        places = rows + v * torch.arange(b, device=rows.device)[:, None]
        return table.index_add_(0, places.flatten(), self.values.reshape(-1, e)).reshape(b, v, e)
