"""Watch: tensors and arrays that a user gave are still what they were when they were read at first.

Of every row a number is kept that differs when one of its values does (a sum by odd random weights, modulo
2^64, which any single change changes). A row is compared whenever it is read. Before an answer from what was
computed of the rows, they are compared as far as that is quick: all of a set up to `QUICK` bytes, evenly
spaced ones of a larger set; and torch's count of changes in place is, of any.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, SequentialSampler, Subset, TensorDataset

from precedents.data.inputs import Inputs, leaves, tensors
from precedents.errors import StaleError
from precedents.runtime.sparse import SparseRows

QUICK = 2**24  # bytes that are compared before an answer
FIRST = 2**28  # bytes that are read at first; of a larger set evenly spaced rows, and others when they are read
PIECE = 2**24  # bytes at a time
SEED = 11


@dataclass(frozen=True, eq=False)
class Watch:
    """A user's inputs and labels, and what they were."""

    what: str
    leaves: Sequence[Tensor] = field(repr=False)  # the user's own memory
    labels: Tensor | None = field(repr=False)
    rows: Tensor = field(repr=False)  # [n], int64
    seen: Tensor = field(repr=False)  # [n], whether a row was read already
    first: Tensor | None = field(repr=False)  # the labels as they were
    versions: list[int] = field(repr=False)  # of each tensor
    direct: bool = True  # whether it is these inputs that the model is fed
    places: Tensor | None = field(
        default=None, repr=False
    )  # [n], of its rows in the user's memory, if they differ

    @classmethod
    @torch.inference_mode(mode=False)
    def of(
        cls,
        what: str,
        inputs: Inputs,
        labels: Tensor | None,
        *,
        direct: bool = True,
        places: Tensor | None = None,
    ) -> "Watch | None":
        """Notes what is there now; none of tensors without plain values (sparse, meta, quantized)."""
        own = [inputs] if isinstance(inputs, Tensor) else leaves(inputs)
        if any(leaf.layout != torch.strided or leaf.is_meta or leaf.is_quantized for leaf in own):
            return None
        n = len(own[0]) if places is None else len(places)
        rows, seen = torch.zeros(n, dtype=torch.long), torch.zeros(n, dtype=torch.bool)
        first = None if labels is None else labels.clone()
        made = cls(what, own, labels, rows, seen, first, _versions(own), direct, places)
        made._compare(made._spaced(FIRST))
        return made

    def compare(self, indices: Sequence[int], inputs: Inputs) -> None:
        """Refuses rows that were read just now and are not what they were at first."""
        if self.direct:
            read = [inputs] if isinstance(inputs, Tensor) else leaves(inputs)
            for some in _pieces(range(len(indices)), self._row_bytes):
                part = [leaf[some.start : some.stop] for leaf in read]
                self._settle(_places(indices[some.start : some.stop]), row_numbers(part))

    def unchanged(self, whole: bool = False) -> None:
        """Refuses inputs and labels that are not what they were; `whole` compares all that there is."""
        if self.labels is not None and self.first is not None:
            places = (
                (self.labels != self.first).reshape(len(self.first), -1).any(dim=1).nonzero().flatten().tolist()
            )
            if places:
                raise self._changed("label", places)
        touched = _versions(self.leaves) != self.versions
        self._compare(range(len(self.rows)) if whole or touched else self._spaced(QUICK))
        self.versions[:] = _versions(self.leaves)

    def _compare(self, places: range) -> None:
        sparse = all(isinstance(leaf, SparseRows) for leaf in self.leaves)  # read where they are
        for some in [places] if sparse else _pieces(places, self._row_bytes):
            own = slice(some.start, some.stop, some.step)
            index = own if self.places is None else self.places[own]
            numbers = row_numbers([leaf[index] for leaf in self.leaves])
            self._settle(_places(some), numbers)

    def _settle(self, places: Tensor, numbers: Tensor) -> None:
        """Notes rows that were not read before; others must be what they were."""
        known = self.seen[places]
        wrong = known & (self.rows[places] != numbers)
        if bool(wrong.any()):
            raise self._changed("row", places[wrong].tolist())
        if not bool(known.all()):
            self.rows[places], self.seen[places] = numbers, True

    def _spaced(self, most: int) -> range:
        """All rows, or evenly spaced ones of at most so many bytes."""
        n = len(self.rows)
        return range(0, n, max(1, -(-n * self._row_bytes // most)))

    @property
    def _row_bytes(self) -> int:
        sizes = (x.held if isinstance(x, SparseRows) else x.numel() * x.element_size() for x in self.leaves)
        return max(1, sum(sizes) // max(1, len(self.leaves[0])))

    def _changed(self, kind: str, places: list[int]) -> StaleError:
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        return StaleError(
            f"{kind.capitalize()} {places[0]}{more} of the {self.what} has changed since it was read at first, "
            "so what was computed is of other data. Make a new Explainer (or trial) of the changed data, or "
            "pass copies that nobody changes: x.clone(), y.clone()."
        )


def shared(values: Any) -> Tensor | None:
    """A tensor over the memory of a user's tensor or array of numbers; none of anything else."""
    values = values.to_numpy() if hasattr(values, "to_numpy") else values
    if isinstance(values, Tensor):
        return values.detach()
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "biuf" or values.ndim == 0:
        return None
    try:
        inputs = tensors(values)
    except (TypeError, ValueError):  # a type that torch does not have
        return None
    return inputs if isinstance(inputs, Tensor) else None


def beneath(data: Any, n: int, what: str) -> Watch | None:
    """Over the tensors of a TensorDataset that a loader or a Subset reads in order; none of other data."""
    if isinstance(data, DataLoader):
        samplers = data.sampler, getattr(data.batch_sampler, "sampler", data.sampler)
        if any(type(sampler) is not SequentialSampler for sampler in samplers):
            return None
        data = data.dataset
    places = torch.arange(n)
    while isinstance(data, Subset):
        places, data = torch.as_tensor(data.indices)[places], data.dataset
    if type(data) is not TensorDataset:
        return None
    return Watch.of(what, tuple(each.detach() for each in data.tensors), None, direct=False, places=places)


def row_numbers(parts: Sequence[Tensor]) -> Tensor:
    """A number for each row [b] of tensors [b, ...], int64, which differs when a value of the row does."""
    total: Tensor | None = None
    for place, leaf in enumerate(parts):
        if isinstance(leaf, SparseRows):
            own = _sparse_numbers(leaf)
        else:
            row = leaf.detach().reshape(len(leaf), -1)
            words = _words(row) if row.shape[1] else torch.zeros(len(leaf), 1, dtype=torch.long)
            own = torch.from_numpy(np.einsum("ij,j->i", words.numpy(), _weights(words.shape[1], place).numpy()))
        total = own if total is None else total * 31 + own
    assert total is not None
    return total


@lru_cache(maxsize=2)
def _weights(count: int, place: int) -> Tensor:
    """Odd random numbers, the same each time."""
    draw = torch.Generator().manual_seed(SEED + place)
    return torch.randint(-(2**62), 2**62, (count,), generator=draw) * 2 + 1


def _sparse_numbers(leaf: SparseRows) -> Tensor:
    """The same sums over the numbers that are held."""
    rows = leaf.rows
    words = _words(torch.from_numpy(rows.data)[:, None])[:, 0].numpy()
    held = type(rows)((words, rows.indices, rows.indptr), shape=rows.shape, copy=False)
    return torch.from_numpy(held @ _weights(rows.shape[1], 0).numpy())


def _words(row: Tensor) -> Tensor:
    """The bytes of rows [b, d] as whole numbers [b, w], int64; where they lie, if that can be."""
    row = row.cpu()
    flat = (row if row.stride(1) == 1 else row.contiguous()).view(torch.uint8)
    for size, dtype in ((8, torch.int64), (4, torch.int32), (2, torch.int16)):
        if all(number % size == 0 for number in (flat.shape[1], flat.storage_offset(), flat.stride(0))):
            return flat.view(dtype).long()
    return flat.long()


def _places(indices: Sequence[int]) -> Tensor:
    """As a tensor; of a range without a list of it."""
    if isinstance(indices, range):
        return torch.arange(indices.start, indices.stop, indices.step)
    return torch.as_tensor(indices)


def _pieces(places: range, row: int) -> Iterator[range]:
    """Consecutive parts of few bytes."""
    size = max(1, PIECE // row)
    return (places[start : start + size] for start in range(0, len(places), size))


def _versions(parts: Sequence[Tensor]) -> list[int]:
    """How often each tensor was changed in place, as torch counts it."""
    return [0 if leaf.is_inference() else leaf._version for leaf in parts]
