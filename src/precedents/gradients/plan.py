"""A plan: how the per-example gradients of one model are computed, and how they become rows."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from sys import maxsize
from typing import Any, cast

import torch
from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.classifier.outputs import placed
from precedents.data.examples import Batch
from precedents.data.inputs import Collated, Inputs
from precedents.gradients.factors import ApartError, Assembly, Dense, Outer
from precedents.gradients.fallbacks import by_instance, by_vmap
from precedents.gradients.folding import Folded
from precedents.gradients.lookups import Lookup
from precedents.gradients.patches import Patched
from precedents.gradients.recording import Recording
from precedents.gradients.rows import Rows, joined
from precedents.runtime.budget import MANY, MOST
from precedents.runtime.sparse import SparseRows

PASS_NUMBERS = 4_000_000  # that come back to the layers in one pass: about what stays in the processor's cache
LEAST_INSTANCES = 32  # in one pass, unless more than LARGE_PASS_NUMBERS come back of them
LARGE_PASS_NUMBERS = 40_000_000  # that come back: taking so much memory anew costs more than few instances
A_FEW = 8  # instances in one pass, however large they are or if memory is scarce, since fewer are slower

# Of logits and labels, what is pulled back: vectors [b, c], or several sets of them.
Cotangents = Callable[[Tensor, Tensor], Tensor | Sequence[Tensor]]


@dataclass(frozen=True, eq=False)
class Plan:
    """How the gradients of one model are computed."""

    model: Classifier
    places: dict[int, slice]  # the columns of each parameter, by its id
    recording: Recording | None = None  # what it has no gradients of, all if there is none, comes by vmap over
    vectorised: bool = True  # the whole model, or one instance at a time
    factored: Mapping[int, type[Outer | Lookup | Patched]] = field(
        default_factory=dict
    )  # what is not formed, by id
    volume: float = PASS_NUMBERS / 64  # numbers that come back to the layers for one instance,
    in_cache: float = PASS_NUMBERS / 64  # and how many of them are worked on at once
    stored: int = 0  # how many numbers of a gradient are stored, of the largest instances; none known: all
    matrices: int = 0  # and of how many the factors are stored, but they may be formed to be multiplied
    apart: bool = False  # whether the instances of a batch are moved within, so that each passes alone

    @property
    def size(self) -> int:
        """Instances per pass: what stays in the cache, and an eighth of the budget; for a few, a quarter."""
        each = self.each
        room = self.model.budget.bytes // each
        return max(1, min(self._in_cache, max(room // 8, min(A_FEW, room // 4))))

    @cached_property
    def _in_cache(self) -> int:
        most = MANY if isinstance(self.model.sample, SparseRows) else MOST
        each = max(self.in_cache, 1)
        least = max(A_FEW, min(LEAST_INSTANCES, int(LARGE_PASS_NUMBERS / each)))
        return max(least, min(most, int(PASS_NUMBERS / each)))

    @cached_property
    def each(self) -> int:
        """Bytes that a pass holds of one instance: what comes back, three times, or what the layers return."""
        return int(self.model.itemsize * max(3 * self.volume, 2 * self.model.activations, 1))

    @cached_property
    def beside(self) -> int:
        """Bytes that a pass holds beside the instances: the weights of layers that were folded."""
        folded = self.recording is not None and any(
            isinstance(layer, Folded) for layer in self.recording.first.clone.modules()
        )
        return self.model.itemsize * self.model.size if folded else 0

    def width(self, columns: slice | None) -> int:
        """How many columns are formed."""
        return sum(place.stop - place.start for place, _ in self.targets(columns).values())

    def targets(self, columns: slice | None) -> dict[int, tuple[slice, slice]]:
        """Where a parameter's gradients are formed, and which part of them; by id.

        Without `columns` everything is formed that is not factored; with them, only what falls into them.
        """
        low, high = (0, maxsize) if columns is None else (columns.start, columns.stop)
        found, start = {}, 0
        for key, place in self.places.items():
            if columns is None and key in self.factored:
                continue
            first, last = (min(max(bound, place.start), place.stop) for bound in (low, high))
            stop = start + last - first
            found[key] = slice(start, stop), slice(first - place.start, last - place.start)
            start = stop
        return found

    def pulled_back(
        self, batch: Batch, cotangents: Cotangents, columns: slice | None, into: Tensor | None = None
    ) -> Iterator[Rows]:
        """J^T v for each instance and its own v, for each set of cotangents v [b, c]; formed `into`."""
        units: list[Tensor] = []
        lengths: list[Tensor] = []

        def made(logits: Tensor) -> list[Tensor]:
            found = cotangents(self.model.checked_logits(logits, batch.indices), batch.labels)
            for each in [found] if isinstance(found, Tensor) else found:
                length = each.norm(dim=1)
                lengths.append(length)
                units.append(torch.where(length[:, None] > 0, each / length[:, None], 0.0).to(logits))
            return units

        if self.recording is not None and self._is_apart(batch):
            yield from self._one_by_one(batch, cotangents, columns, into)
            return
        if self.recording is not None:
            sink = partial(self.assembly, len(batch.labels), columns, into)
            try:
                for i, assembled in enumerate(self.recording.passes(batch.inputs, made, sink)):
                    if self.recording.without:
                        self._complete(assembled, batch.inputs, units[i])
                    yield self._rows(assembled, lengths[i])
            except ApartError:
                yield from self._one_by_one(batch, cotangents, columns, into)
            return
        with torch.no_grad():
            made(self.model.logits(self._given(batch.inputs)))
        for unit, length in zip(units, lengths, strict=True):
            matrix = self._slowly(batch.inputs, unit, self.model.parameters)
            matrix = matrix if columns is None else matrix[:, columns]
            yield Rows(matrix if into is None else into.copy_(matrix), length)

    def _given(self, inputs: Inputs) -> Inputs:
        """The inputs where the model is."""
        return inputs if isinstance(inputs, Collated) else placed(self.model.module, inputs)

    def _slowly(self, inputs: Inputs, unit: Tensor, names: Collection[str]) -> Tensor:
        """The gradients [b, numbers] of some parameters, which no pass has recorded."""
        one_by_one = by_vmap if self.vectorised else by_instance
        return one_by_one(self.model, self._given(inputs), unit, names).cpu()

    def _complete(self, assembled: Assembly, inputs: Inputs, unit: Tensor) -> None:
        """Puts the gradients that the recording has none of to those that it has, if they are asked for."""
        asked = [name for name in self.rest if assembled.asks(self.model.parameters[name])]
        if asked:
            own = [self.model.parameters[name] for name in asked]
            matrix = self._slowly(inputs, unit, asked)
            for parameter, block in zip(own, matrix.split([p.numel() for p in own], dim=1), strict=True):
                assembled.append(Dense(parameter, block.reshape(-1, *parameter.shape)))

    @cached_property
    def rest(self) -> tuple[str, ...]:
        """The names of the parameters that the recording has no gradients of."""
        every = self.model.parameters.items()
        return tuple(name for name, p in every if self.recording is None or id(p) in self.recording.without)

    def _is_apart(self, batch: Batch) -> bool:
        return _is_ambiguous(batch.inputs) or (self.apart and len(batch.labels) > 1)

    def _one_by_one(
        self, batch: Batch, cotangents: Cotangents, columns: slice | None, into: Tensor | None
    ) -> Iterator[Rows]:
        """The same from a pass for each instance."""
        singles = [batch.between(i, i + 1) for i in range(len(batch.labels))]
        every = [list(self.pulled_back(single, cotangents, columns)) for single in singles]
        for singles_rows in zip(*every, strict=True):
            rows = joined(((range(i, i + 1), row) for i, row in enumerate(singles_rows)), len(singles_rows))
            yield rows if into is None else replace(rows, matrix=into.copy_(rows.matrix))

    def assembly(self, b: int, columns: slice | None, into: Tensor | None = None) -> Assembly:
        """Where the gradients of b instances are put as they come; formed `into` a matrix, if one is given."""
        if into is None:
            into = torch.empty(b, self.width(columns), dtype=next(iter(self.model.parameters.values())).dtype)
        return Assembly(into, self.targets(columns), self.places)

    def _rows(self, assembled: Assembly, lengths: Tensor) -> Rows:
        """The gradients that were put together, with their lengths."""
        factors = []
        for key, parts in assembled.complete().items():
            whole = self.factored[key].summed(cast("Any", parts), self._parameters[key], assembled.b)
            factors.append((self.places[key], whole if whole.parameter.is_cpu else whole.changed(Tensor.cpu)))
        return Rows(assembled.matrix, lengths, tuple(factors))

    @cached_property
    def _parameters(self) -> dict[int, Tensor]:
        return {id(parameter): parameter for parameter in self.model.parameters.values()}


def _is_ambiguous(inputs: Inputs) -> bool:
    """Whether there are as many instances as positions of all of them in a row, but not one of each."""
    spans = inputs.made.spans if isinstance(inputs, Collated) else {}
    return any(length == each.count and not each.plain for length, each in spans.items())
