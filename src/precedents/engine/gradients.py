"""Per-example gradients of the loss, as a residual of unit length pulled back through the network.

The gradient of the cross entropy is J^T r with the residual r = softmax - onehot. The residual is made
in float64 without cancellation and sent back at length one: so the gradients of a confident float32
network, whose lengths may be 1e-20, keep all their digits.
"""

import warnings
from collections.abc import Iterator, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from precedents.data import Batch
from precedents.engine.folding import foldable, folded
from precedents.engine.parts import Lookup, Outer, Part
from precedents.engine.plan import Assembly, Plan, by_instance, flat
from precedents.engine.record import Recording, recording
from precedents.engine.rows import Rows, joined_factors
from precedents.errors import InputError, PrecedentsError
from precedents.inputs import fed, leaves, mapped
from precedents.model import Classifier
from precedents.runtime.memory import ROOMS

PIECE = 2**17  # columns that are compared at a time, in memory that is used again
FAILURES = (RuntimeError, TypeError, ValueError, AttributeError, IndexError, AssertionError)


class SlowGradientsWarning(UserWarning):
    """Some gradients are computed by a slower road than a rule: the numbers are the same."""


def residuals(logits: Tensor, labels: Tensor) -> Tensor:
    """Softmax - onehot [b, c] in float64; the entry of the label is minus the sum of the others."""
    probabilities = logits.double().softmax(dim=1).scatter(1, labels[:, None], 0.0)
    return probabilities.scatter(1, labels[:, None], -probabilities.sum(dim=1, keepdim=True))


def roots(logits: Tensor) -> list[Tensor]:
    """C - 1 cotangents [b, c] whose outer products sum to diag p - p p^T, for the softmax p; no cancellation.

    They are the columns of its Cholesky factor: column k spreads what class k takes from the later ones.
    """
    p = logits.double().softmax(dim=1)
    tail = p.flip(1).cumsum(1).flip(1)  # tail[k] = p[k] + p[k + 1] + ...
    columns = []
    for k in range(p.shape[1] - 1):
        rest = tail[:, k + 1 : k + 2]
        column = torch.zeros_like(p)
        column[:, k + 1 :] = torch.where(rest > 0, -p[:, k + 1 :] / rest, 0.0)
        column[:, k] = 1
        weight = torch.where(tail[:, k] > 0, p[:, k] * rest[:, 0] / tail[:, k], 0.0)
        columns.append(column * weight.sqrt()[:, None])
    return columns


@torch.inference_mode(mode=False)
def loss_gradients(model: Classifier, batch: Batch, columns: slice | None = None) -> Rows:
    """The gradient of each instance's loss [b, parameters]; with `columns`, only some of them, formed."""
    plan = planned(model)
    b = len(batch.labels)
    size = -(-b // -(-b // plan.size))  # passes of one size, no larger than the plan's
    matrix = ROOMS.empty((b, plan.width(columns)), next(iter(model.parameters.values())).dtype)
    blocks: list[Rows] = []
    for start in range(0, b, size):
        piece = _piece(batch, start, start + size)
        cotangents = partial(_single_residual, piece.labels)
        blocks += plan.pulled_back(piece, cotangents, columns, matrix[start : start + size])
    return Rows(
        matrix,
        torch.cat([block.scale for block in blocks]),
        joined_factors([block.factors for block in blocks]),
    )


def _single_residual(labels: Tensor, logits: Tensor) -> list[Tensor]:
    return [residuals(logits, labels)]


def fisher_rows(model: Classifier, batch: Batch) -> Iterator[Tensor]:
    """Rows [b, parameters], c - 1 times, float64: their squares sum to the true Fisher of the instances."""
    plan = planned(model)
    size = plan.size
    for start in range(0, len(batch.labels), size):
        piece = _piece(batch, start, start + size)
        for rows in plan.pulled_back(piece, roots, slice(0, model.size)):
            yield rows.dense()


def planned(model: Classifier) -> Plan:
    """How this model's gradients are computed, found out once."""
    return model.kept.once("plan", lambda: _plan(model))


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
        if isinstance(part, (Outer, Lookup)) and part.pays and keys.count(key) == 1
    }
    volume = plan.recording.recorder.volume / plan.recording.recorder.instances
    return Plan(plan.model, plan.places, plan.recording, factored=factored, volume=volume)


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
    inputs = mapped(lambda leaf: leaf[start:stop], batch.inputs)
    return Batch(inputs, batch.labels[start:stop], batch.indices[start:stop])
