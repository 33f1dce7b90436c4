"""Per-example gradients of the loss, as a residual of unit length pulled back through the network.

The gradient of a loss is J^T r with its derivatives by the logits, the residual r: softmax - onehot for the
cross entropy. The residual is made in float64 without cancellation and sent back at length one: so the
gradients of a confident float32 network, whose lengths may be 1e-20, keep all their digits.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from precedents.classifier.classifier import Classifier
from precedents.data.examples import Batch
from precedents.data.inputs import between, fed, leaves
from precedents.errors import InputError, PrecedentsError
from precedents.gradients.factors import Lookup, Outer, Part
from precedents.gradients.fallbacks import by_instance, by_vmap, flat
from precedents.gradients.folding import foldable, folded
from precedents.gradients.recording import Recording, recording
from precedents.gradients.rows import Rows, joined_factors
from precedents.runtime.budget import MOST
from precedents.runtime.buffers import BUFFERS
from precedents.runtime.cache import Slot

VOLUME = 4_000_000  # numbers that come back to the layers in one pass: about what stays in_cache the processor
PIECE = 2**17  # columns that are compared at a time, in memory that is used again
LEAST = 32  # instances in one pass, however large they are
FAILURES = (RuntimeError, TypeError, ValueError, AttributeError, IndexError, AssertionError)
Cotangents = Callable[[Tensor], Sequence[Tensor]]


class SlowGradientsWarning(UserWarning):
    """Some gradients are computed by a slower road than a rule: the numbers are the same."""


PLAN: Slot["Plan"] = Slot("plan of the gradients")


@torch.inference_mode(mode=False)
def loss_gradients(model: Classifier, batch: Batch, columns: slice | None = None) -> Rows:
    """The gradient of each instance's loss [b, parameters]; with `columns`, only some of them, formed."""
    plan = planned(model)
    b = len(batch.labels)
    size = -(-b // -(-b // plan.size))  # passes of one size, no larger than the plan's
    matrix = BUFFERS.empty((b, plan.width(columns)), next(iter(model.parameters.values())).dtype)
    blocks: list[Rows] = []
    for start in range(0, b, size):
        piece = _piece(batch, start, start + size)
        cotangents = partial(_single_residual, model, piece.labels)
        blocks += plan.pulled_back(piece, cotangents, columns, matrix[start : start + size])
    return Rows(
        matrix,
        torch.cat([block.scale for block in blocks]),
        joined_factors([block.factors for block in blocks]),
    )


def _single_residual(model: Classifier, labels: Tensor, logits: Tensor) -> list[Tensor]:
    return [model.loss.residuals(logits, labels)]


def roots(model: Classifier, labels: Tensor) -> Cotangents:
    """What the Gauss-Newton matrix of instances with these labels is pulled back from."""
    return lambda logits: model.loss.roots(logits, labels)


def curvature_rows(model: Classifier, batch: Batch) -> Iterator[Tensor]:
    """Rows [b, parameters], float64, whose squares sum to the instances' Gauss-Newton matrix."""
    plan = planned(model)
    size = plan.size
    for start in range(0, len(batch.labels), size):
        piece = _piece(batch, start, start + size)
        for rows in plan.pulled_back(piece, roots(model, piece.labels), slice(0, model.size)):
            yield rows.dense()


def planned(model: Classifier) -> "Plan":
    """How this model's gradients are computed, found out once."""
    return model.cache.once(PLAN, lambda: _plan(model))


@dataclass(frozen=True, eq=False)
class Plan:
    """How the gradients of one model are computed."""

    model: Classifier
    places: dict[int, slice]  # the columns of each parameter, by its id
    recording: Recording | None = None  # none: by vmap over the whole model, or one instance at a time
    vectorised: bool = True
    factored: Mapping[int, type[Outer | Lookup]] = field(default_factory=dict)  # what is not formed, by id
    volume: float = VOLUME / 64  # numbers that come back to the layers for one instance,
    in_cache: float = VOLUME / 64  # and how many of them are worked on at once

    @property
    def size(self) -> int:
        """Instances per pass: what stays in_cache the processor, and an eighth of the budget at most."""
        in_cache = max(LEAST, min(MOST, int(VOLUME / max(self.in_cache, 1))))
        passes = self.model.budget.bytes // int(8 * 3 * self.model.itemsize * max(self.volume, 1))
        return max(1, min(in_cache, passes))

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


def _plan(model: Classifier) -> Plan:
    """Rules where they are right on the first instances, else vmap, else one instance at a time."""
    batch = Batch(model.sample, torch.zeros(len(next(leaves(model.sample))), dtype=torch.long), (0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is only tried
        plan = _by_rules(model, batch)
        if plan is not None:
            return plan
        tried, road = _tried(model, batch)
    if road:
        _said(model, road)
    if tried.recording is None:
        return Plan(model, _places(model), vectorised=tried.vectorised)
    plan = Plan(model, _places(model), recording(model, like=tried.recording))
    return _sized(plan, _caught(plan, batch))


def _by_rules(model: Classifier, batch: Batch) -> Plan | None:
    """The plan by rules alone, if they cover all and are right: the usual case, found out quickly.

    Plain autograd goes back once for each instance from the logits of the batch, so that all stay on the same
    side of every kink.
    """
    parameters = list(model.parameters.values())
    try:
        clone, logits = _folded(model, batch)
        plan = Plan(model, _places(model), recording(model, clone=clone))
        assert plan.recording is not None
        if plan.recording.uncovered:
            return None
        cotangent = _cotangent(model, batch).to(logits)
        rows = []
        for i in range(len(logits)):
            single = torch.zeros_like(logits)
            single[i] = cotangent[i]
            grads = torch.autograd.grad(logits, parameters, single, retain_graph=True, materialize_grads=True)
            rows.append(flat(grads))
        wanted = torch.stack(rows).cpu()
        parts = _caught(plan, batch)
        right = wanted.any() and _agree(_assembled(plan, parts, batch), wanted)
    except (*FAILURES, PrecedentsError):
        return None
    return _sized(plan, parts) if right else None


@torch.enable_grad()
def _folded(model: Classifier, batch: Batch) -> tuple[nn.Module | None, Tensor]:
    """A clone with what can be folded, if that changes nothing; and its logits, or the model's own."""
    inputs = model.placed(batch.inputs)
    logits, pairs = foldable(model.module, lambda: model.logits(inputs))
    if pairs:
        clone = folded(model.module, pairs)
        again = fed(clone, inputs)
        if _agree(again.detach(), logits.detach()):
            return clone, again
    return None, logits


def _tried(model: Classifier, batch: Batch) -> tuple[Plan, str]:
    """The first plan that is right, and what is to be said of it.

    The trial is in float64, where a batch and a single instance fall on the same side of every kink.
    """
    trial, wanted = _wanted(model, batch)
    if not wanted.any():
        raise InputError(
            "The model's outputs do not depend on its trainable parameters. Does it call itself by a closure "
            "or a bound method that it keeps? A copy of it still runs the original: define forward as a method."
        )
    slow = Plan(trial, _places(trial), vectorised=False)
    try:
        plan = Plan(trial, slow.places, recording(trial, partial(_right, slow, batch, wanted)))
        if _agree(_first(plan, batch), wanted):
            assert plan.recording is not None
            kinds = ", ".join(sorted(set(plan.recording.uncovered)))
            return plan, f"{kinds} has no rule: vmap over the module" if kinds else ""
        reason = "parameters are used outside of the layers that own them"
    except FAILURES as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    try:
        plan = Plan(trial, slow.places)
        if _agree(_first(plan, batch), wanted):
            return plan, f"vmap over the whole model ({reason})"
    except FAILURES:
        pass
    return slow, f"one instance at a time ({reason})"


def _places(model: Classifier) -> dict[int, slice]:
    """The columns of each parameter, by its id."""
    places, start = {}, 0
    for parameter in model.parameters.values():
        places[id(parameter)] = slice(start, start + parameter.numel())
        start += parameter.numel()
    return places


def _wanted(model: Classifier, batch: Batch) -> tuple[Classifier, Tensor]:
    """The model in float64, or as it is if it cannot compute in that, and its gradients by plain autograd."""
    doubled = model.doubled()
    try:
        return doubled, _alone(doubled, batch)
    except (PrecedentsError, RuntimeError):
        pass
    try:
        return model, _alone(model, batch)
    except RuntimeError as error:
        raise InputError(f"The model cannot be differentiated: {str(error).splitlines()[0]}") from error


def _alone(model: Classifier, batch: Batch) -> Tensor:
    """The gradients that `_first` gives, one instance at a time."""
    cotangent = _cotangent(model, batch).to(next(iter(model.parameters.values())))
    return by_instance(model, model.placed(batch.inputs), cotangent).double().cpu()


def _caught(plan: Plan, batch: Batch) -> list[Part]:
    """What a pass with the fixed cotangent catches."""
    assert plan.recording is not None
    cotangent = _cotangent(plan.model, batch)
    return next(plan.recording.passes(plan.model.placed(batch.inputs), lambda x: [cotangent.to(x)], list[Part]))


def _assembled(plan: Plan, parts: Sequence[Part], batch: Batch) -> Tensor:
    """The gradients [b, parameters] that these parts are, all formed."""
    assembly = Assembly(plan, len(batch.labels), slice(0, plan.model.size), None)
    for part in parts:
        assembly.append(part)
    return assembly.rows(torch.ones(len(batch.labels))).matrix


def _sized(plan: Plan, parts: Sequence[Part]) -> Plan:
    """With what stays factored, and with as many instances per pass as the layers' sizes suggest."""
    assert plan.recording is not None
    keys = [id(part.parameter) for part in parts]
    factored = {
        key: type(part)
        for key, part in zip(keys, parts, strict=True)
        if isinstance(part, (Outer, Lookup)) and part.is_cheaper and keys.count(key) == 1
    }
    seen = plan.recording.recorder
    volume, in_cache = seen.volume / seen.instances, seen.in_cache / seen.instances
    return Plan(plan.model, plan.places, plan.recording, factored=factored, volume=volume, in_cache=in_cache)


def _cotangent(model: Classifier, batch: Batch) -> Tensor:
    c = model.classes
    return torch.linspace(-1, 1, c, dtype=torch.double).expand(len(batch.labels), c)


def _first(plan: Plan, batch: Batch) -> Tensor:
    """The gradients of the first logit's neighbourhood: a fixed cotangent that no class is special in."""
    cotangent = _cotangent(plan.model, batch)
    return next(plan.pulled_back(batch, lambda _: [cotangent], None)).dense()


def _right(plan: Plan, batch: Batch, wanted: Tensor, recorded: Recording, parameter: Tensor) -> bool:
    """Whether a recording gives the right gradients of one parameter."""
    place = plan.places[id(parameter)]
    draft = Plan(plan.model, plan.places, recorded)
    cotangent = _cotangent(plan.model, batch)
    ours = next(draft.pulled_back(batch, lambda _: [cotangent], place)).dense()
    return _agree(ours, wanted[:, place])


def _agree(ours: Tensor, wanted: Tensor) -> bool:
    atol = 1e-5 * float(wanted.abs().max()) + 1e-300
    pieces = zip(ours.split(PIECE, dim=1), wanted.split(PIECE, dim=1), strict=True)
    return all(torch.allclose(mine.double(), theirs.double(), 1e-3, atol) for mine, theirs in pieces)


def _said(model: Classifier, road: str) -> None:
    kind = type(model.module).__name__
    warnings.warn(
        f"Gradients of {kind} by a slow road: {road}. The numbers are the same.",
        SlowGradientsWarning,
        stacklevel=2,
    )


def _piece(batch: Batch, start: int, stop: int) -> Batch:
    inputs = between(batch.inputs, start, stop)
    return Batch(inputs, batch.labels[start:stop], batch.indices[start:stop])
