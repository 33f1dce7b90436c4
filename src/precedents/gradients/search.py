"""The search for a plan: layer rules first, then vmap over the whole model, then one instance at a time.

Every plan is tried against plain autograd on the first instances before it is used.
"""

import warnings
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.classifier.order import ENDS, among
from precedents.data.examples import Batch
from precedents.data.inputs import Inputs, count
from precedents.errors import InputError, PrecedentsError
from precedents.gradients.by_rules import (
    FAILURES,
    FEW_NUMBERS,
    INSTEAD,
    by_rules,
    caught,
    cotangent_of,
    places_of,
    refuse_without_room,
    repaired,
    right,
    sized,
    tried_on,
    with_rest,
    wrong_of,
)
from precedents.gradients.comparison import chooses, moves
from precedents.gradients.fallbacks import by_instance
from precedents.gradients.instrumentation import instrumented
from precedents.gradients.narrowing import narrowed
from precedents.gradients.plan import Plan
from precedents.gradients.recording import Recording
from precedents.runtime.budget import FLOAT64
from precedents.runtime.guards import without_warnings
from precedents.runtime.sparse import SparseRows
from precedents.runtime.wording import first_line
from precedents.seen import clipped, told

OTHER_ROWS = "its layers see other rows than those of the instances"
SLOW_SEARCH = 6  # gradients that are held at once when something else than rules is tried, in float64


class SlowGradientsWarning(UserWarning):
    """Some gradients are computed by a slower fallback than a rule: the numbers are the same."""


def searched(model: Classifier) -> Plan:
    """Rules where they are right on the first instances, else vmap, else one instance at a time."""
    if model.size > FEW_NUMBERS:
        refuse_without_room(model, 0)
    with without_warnings():  # of what is only tried
        plan = _by_narrow(model) if isinstance(model.sample, SparseRows) else None
        plan = plan or by_rules(model)
        if plan is None:
            plan, reason = _slowly(model)
        if model.several is not None and plan.recording is not None:
            plan = replace(plan, apart=model.apart or _moves(plan, plan.recording, model.several))
    recording = plan.recording
    if recording is None or recording.uncovered or recording.without or (plan.apart and not model.apart):
        _said(model, _ways(plan) if recording is not None else reason)
    return plan


def _moves(plan: Plan, recording: Recording, several: Inputs) -> bool:
    """Whether the instances of a batch are moved within, tried on a few more than the first."""
    if plan.size == 1:
        return False
    model, inputs = plan.model, among(several, plan.size)
    labels = torch.zeros(count(inputs), dtype=torch.long)
    batch = Batch(inputs, labels, range(len(labels)))
    try:
        if recording.packed and chooses(model, inputs):  # and other instances have other numbers of rows
            return True
        return moves(recording, inputs, cotangent_of(model, batch), ENDS)
    except PrecedentsError:  # which is said where these instances are asked for
        return False
    except FAILURES:  # of what the first instances have not shown
        return True


def _slowly(model: Classifier) -> tuple[Plan, str]:
    """A plan that is right, of whatever it takes, and why it has no recording if it has none."""
    model.budget.bound(
        SLOW_SEARCH * FLOAT64 * model.size,
        f"Per-example gradients of {model.size} parameters without layer rules",
        INSTEAD,
    )
    batch = tried_on(model)
    tried, reason = _tried(model, batch)
    plan = Plan(model, places_of(model), vectorised=tried.vectorised)
    if tried.recording is None:
        return plan, reason
    plan = replace(plan, recording=instrumented(model, like=_moved(tried, plan.places)))
    return sized(plan, caught(plan, batch).parts), reason


def _moved(tried: Plan, places: Iterable[int]) -> Recording:
    """The recording of a plan, as of another model with the same parameters."""
    ids, recording = dict(zip(tried.places, places, strict=True)), tried.recording
    assert recording is not None
    packed, without = (frozenset(ids[key] for key in keys) for keys in (recording.packed, recording.without))
    return replace(recording, packed=packed, without=without)


def _by_narrow(model: Classifier) -> Plan | None:
    """The plan by rules that was found right on the columns that the first instances have."""
    narrow = narrowed(model)
    tried = None if narrow is None else by_rules(narrow)
    if tried is None:
        return None
    places = places_of(model)
    factored = {
        key: tried.factored[own] for own, key in zip(tried.places, places, strict=True) if own in tried.factored
    }
    recording = instrumented(model, like=_moved(tried, places))
    return replace(tried, model=model, places=places, recording=recording, factored=factored)


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
    slow = Plan(trial, places_of(trial), vectorised=False)
    try:
        plan = _with_rules(slow, batch, wanted)
        if len(plan.rest) < len(plan.places):
            return plan, ""
        reason = "parameters are used outside of the layers that own them"
    except FAILURES as error:
        said = isinstance(error, (PrecedentsError, NotImplementedError))  # by us, as of what a rule does not do
        reason = first_line(error) if said else OTHER_ROWS
    plan = with_rest(slow, batch, wanted)
    return plan, f"{_way(plan)} ({reason})"


def _with_rules(slow: Plan, batch: Batch, wanted: Tensor) -> Plan:
    """With the layers that have rules recorded, the rest by vmap over its module or over the model."""
    check = partial(right, slow.model, batch, lambda parameter: wanted[:, slow.places[id(parameter)]])
    plan = replace(slow, recording=instrumented(slow.model, check))

    def tried(recording: Recording) -> tuple[set[int], set[int]]:
        seen = caught(replace(plan, recording=recording), batch, forms=True)
        return wrong_of(plan, seen, [wanted[:, place] for place in plan.places.values()]), seen.odd

    found = repaired(plan, batch, tried)
    left = [wanted[:, found.places[id(found.model.parameters[name])]] for name in found.rest]
    return with_rest(found, batch, torch.cat(left, dim=1)) if left else found


def _ways(plan: Plan) -> str:
    """What is slower than a rule."""
    assert plan.recording is not None
    kinds, rest = sorted(set(plan.recording.uncovered)), plan.rest
    ways = [f"{', '.join(kinds)} has no rule: vmap over the module"] if kinds else []
    if rest:
        named = rest[0] if len(rest) == 1 else f"{rest[0]} and {len(rest) - 1} more"
        ways.append(f"{_way(plan)} for {named}, used outside of a layer or by all instances together")
    if plan.apart and not plan.model.apart:  # of which the classifier has told
        ways.append("one instance at a time, as those of a batch are moved or divided within")
    return "; ".join(ways)


def _way(plan: Plan) -> str:
    return "vmap over the whole model" if plan.vectorised else "one instance at a time"


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
        raise InputError(f"The model cannot be differentiated: {first_line(error)}") from error


def _alone(model: Classifier, batch: Batch) -> Tensor:
    """The gradients of a fixed cotangent that no class is special in, one instance at a time."""
    cotangent = cotangent_of(model, batch).to(next(iter(model.parameters.values())))
    return by_instance(model, batch.inputs, cotangent, model.parameters).double().cpu()


def _said(model: Classifier, fallback: str) -> None:
    kind = clipped(type(model.module).__name__)
    said = told(f"Gradients of {kind} by a slower fallback: {fallback}. The numbers are the same.")
    warnings.warn(said, SlowGradientsWarning, stacklevel=2)
