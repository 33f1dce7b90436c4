"""A plan: how the gradients of one model are computed, pass by pass, and where they are put.

By a recording of the layers; or by vmap over the whole model, or one instance at a time: the same numbers.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor
from torch.func import functional_call, vjp, vmap

from precedents.data import Batch
from precedents.engine.parts import Lookup, Outer, Part
from precedents.engine.record import Recording
from precedents.engine.rows import Rows
from precedents.errors import InputError
from precedents.inputs import Inputs, alone, mapped
from precedents.model import Classifier

VOLUME = 4_000_000  # numbers that come back to the layers in one pass: about what stays near the processor
LEAST = 32  # instances in one pass, however large they are
Cotangents = Callable[[Tensor], Sequence[Tensor]]


@dataclass(frozen=True, eq=False)
class Plan:
    """How the gradients of one model are computed."""

    model: Classifier
    places: dict[int, slice]  # the columns of each parameter, by its id
    recording: Recording | None = None  # none: by vmap over the whole model, or one instance at a time
    vectorised: bool = True
    factored: Mapping[int, type[Outer | Lookup]] = field(default_factory=dict)  # what is not formed, by id
    volume: float = VOLUME / 64  # numbers that come back to the layers for one instance

    @property
    def size(self) -> int:
        """Instances per pass: what stays near the processor, and an eighth of the budget at most."""
        near = max(LEAST, min(1024, int(VOLUME / max(self.volume, 1))))
        passes = self.model.budget.bytes // int(8 * 3 * self.model.number * max(self.volume, 1))
        return max(1, min(near, passes))

    def parameter(self, key: int) -> Tensor:
        """The parameter with this id."""
        return next(p for p in self.model.parameters.values() if id(p) == key)

    def width(self, columns: slice | None) -> int:
        """How many columns are formed."""
        return sum(place.stop - place.start for place, _ in self.targets(columns).values())

    def targets(self, columns: slice | None) -> dict[int, tuple[slice, slice]]:
        """Where a parameter's gradients are formed, and which part of them; by id.

        Without `columns` everything is formed that is not factored; with them, only what falls into them.
        """
        low, high = (0, self.model.size) if columns is None else (columns.start, columns.stop)
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
            for each in cotangents(self.model.checked_logits(logits, batch.indices)):
                length = each.norm(dim=1)
                lengths.append(length)
                units.append(torch.where(length[:, None] > 0, each / length[:, None], 0.0).to(logits))
            return units

        inputs = self.model.placed(batch.inputs)
        if self.recording is not None:
            assembly = partial(Assembly, self, len(batch.labels), columns, into)
            for i, assembled in enumerate(self.recording.passes(inputs, made, assembly)):
                yield assembled.rows(lengths[i])
            return
        with torch.no_grad():
            made(self.model.logits(inputs))
        for unit, length in zip(units, lengths, strict=True):
            one_by_one = by_vmap if self.vectorised else by_instance
            matrix = one_by_one(self.model, inputs, unit).cpu()
            matrix = matrix if columns is None else matrix[:, columns]
            yield Rows(matrix if into is None else into.copy_(matrix), length)


class Assembly:
    """Gradients of b instances, put to their places as they come; what stays factored is set aside."""

    def __init__(self, plan: Plan, b: int, columns: slice | None, into: Tensor | None) -> None:
        self.plan, self.b = plan, b
        if into is None:
            into = torch.empty(b, plan.width(columns), dtype=next(iter(plan.model.parameters.values())).dtype)
        self.matrix = into
        self.targets = plan.targets(columns)
        self.factors: dict[int, list[Part]] = {key: [] for key in plan.places if key not in self.targets}
        self.filled: set[int] = set()

    def append(self, part: Part) -> None:
        """The gradients of one parameter; what comes later is added."""
        if len(part) != self.b:
            raise InputError("A layer received the instances along another axis than the first in this batch.")
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

    def rows(self, lengths: Tensor) -> Rows:
        """All of them; zero where the loss does not depend on a parameter."""
        for key, (place, _) in self.targets.items():
            if key not in self.filled:
                self.matrix[:, place] = 0
        factors = []
        for key, parts in self.factors.items():
            whole = self.plan.factored[key].summed(cast("Any", parts), self.plan.parameter(key), self.b)
            factors.append((self.plan.places[key], whole.changed(Tensor.cpu)))
        return Rows(self.matrix, lengths, tuple(factors))


def by_vmap(model: Classifier, inputs: Inputs, units: Tensor) -> Tensor:
    """By vmap over the whole model."""
    parameters = {name: p.detach() for name, p in model.parameters.items()}

    def single(instance: Inputs, unit: Tensor) -> Tensor:
        def logits(values: dict[str, Tensor]) -> Tensor:
            arguments = mapped(lambda leaf: leaf[None], instance)
            args, kwargs = ((), arguments) if isinstance(arguments, dict) else (arguments, None)
            return functional_call(model.module, values, args, kwargs)[0]

        grads = vjp(logits, parameters)[1](unit)[0]
        return torch.cat([grads[name].flatten() for name in parameters])

    return vmap(single)(inputs, units)


def by_instance(model: Classifier, inputs: Inputs, units: Tensor) -> Tensor:
    """One instance at a time by plain autograd: slow and obvious."""
    parameters = list(model.parameters.values())
    rows = []
    for i, unit in enumerate(units):
        with torch.inference_mode(mode=False), torch.enable_grad():
            logits = model.logits(alone(inputs, i))[0]
        grads = torch.autograd.grad(logits, parameters, unit, materialize_grads=True)
        rows.append(flat(grads))
    return torch.stack(rows)


def flat(grads: Sequence[Tensor]) -> Tensor:
    """The gradients of all parameters as one vector."""
    return torch.cat([grad.to_dense().flatten() for grad in grads])
