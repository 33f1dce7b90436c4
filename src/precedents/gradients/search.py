"""The search for a plan: layer rules first, then vmap over the whole model, then one instance at a time.

Every plan is tried against plain autograd on the first instances before it is used.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn

from precedents.classifier.classifier import Classifier
from precedents.classifier.outputs import fed, placed
from precedents.data.examples import Batch
from precedents.data.inputs import count
from precedents.errors import BudgetError, InputError, PrecedentsError
from precedents.gradients.comparison import Apart, Note
from precedents.gradients.factors import Outer, Part
from precedents.gradients.fallbacks import by_instance
from precedents.gradients.folding import foldable, folded
from precedents.gradients.instrumentation import instrumented
from precedents.gradients.lookups import Lookup
from precedents.gradients.narrowing import narrowed
from precedents.gradients.patches import Patched
from precedents.gradients.plan import Plan
from precedents.gradients.recording import Recording, pulled_back
from precedents.runtime.budget import COUNTED, FLOAT64
from precedents.runtime.guards import without_warnings
from precedents.runtime.sparse import SparseRows
from precedents.runtime.wording import first_line
from precedents.seen import clipped, told

PIECE_COLUMNS = 2**17  # that are compared at a time, in memory that is used again
FEW_NUMBERS = 2**20  # of a gradient up to which the instances are compared at once
SEARCH = 4  # gradients of the largest parameter that are held at once when the rules are tried
TRIAL = 5  # times that the layers' outputs are held in a trial: of two passes, and of their graphs
SLOW_SEARCH = 6  # and when something else is, in float64
INSTEAD = "Allow more memory, or use a metric without gradients: cos_last, cos_x."
FAILURES = (RuntimeError, TypeError, ValueError, AttributeError, IndexError, AssertionError)


class SlowGradientsWarning(UserWarning):
    """Some gradients are computed by a slower fallback than a rule: the numbers are the same."""


def searched(model: Classifier) -> Plan:
    """Rules where they are right on the first instances, else vmap, else one instance at a time."""
    batch = _tried_on(model)
    if model.size > FEW_NUMBERS:
        _has_room(model, 0)
    with without_warnings():  # of what is only tried
        plan = _by_narrow(model) if isinstance(model.sample, SparseRows) else None
        plan = plan or _by_rules(model, batch)
        if plan is not None:
            return plan
        model.budget.bound(
            SLOW_SEARCH * FLOAT64 * model.size,
            f"Per-example gradients of {model.size} parameters without layer rules",
            INSTEAD,
        )
        tried, fallback = _tried(model, batch)
    if fallback:
        _said(model, fallback)
    if tried.recording is None:
        return Plan(model, _places(model), vectorised=tried.vectorised)
    plan = Plan(model, _places(model), instrumented(model, like=tried.recording))
    return _sized(plan, _caught(plan, batch).parts)


def _has_room(model: Classifier, held: int) -> None:
    """Refuses a trial that the budget has no room for, with so many numbers of an instance's gradient."""
    largest = max(parameter.numel() for parameter in model.parameters.values())
    what = f"Per-example gradients of {model.size} parameters"
    model.budget.bound(model.itemsize * (SEARCH * largest + held), what, INSTEAD)


def _by_rules(model: Classifier, batch: Batch) -> Plan | None:
    """The plan by rules and copies of what they do not cover, if that is right: the usual case, quickly found.

    Plain autograd goes back once for each instance from the logits of the batch, so that all stay on the same
    side of every kink.
    """
    try:
        fresh, logits = _folded(model, batch)
        places = _places(model)
        if next(reversed(places.values())).stop > FEW_NUMBERS:
            del logits  # and what they were made of
            return _large_by_rules(model, batch, fresh)
        check = partial(_right, model, batch, partial(_wanted_of, model, batch, logits))
        plan = Plan(model, places, instrumented(model, check, fresh=fresh, alike=True))
        assert plan.recording is not None
        if plan.recording.uncovered:
            return None
        wanted = _wanted_alone(model, batch, logits, range(len(logits)))
        seen = _caught(plan, batch, forms=True)
        if not _adds_up(plan, seen, wanted):
            return None
    except BudgetError:
        raise
    except (*FAILURES, PrecedentsError):
        return None
    return _sized(plan, seen.parts) if any(bool(part.any()) for part in wanted) else None


def _large_by_rules(model: Classifier, batch: Batch, fresh: Callable[[], nn.Module]) -> Plan | None:
    """The same where gradients are too many to be held; a parameter without a rule may be given as copies."""
    places, recording = _places(model), instrumented(model, fresh=fresh)
    apart = Apart(fresh(), places, partial(model.outputs.of, inputs=batch.inputs), _cotangent(model, batch))
    if recording.uncovered:
        recording = instrumented(model, partial(apart.right, batch.inputs), fresh=fresh, alike=True)
    if recording.uncovered:
        return None
    plan = Plan(model, places, recording)
    if not model.budget.fits(model.itemsize * (SEARCH + 1) * model.size, 0):  # then it matters what is held
        _has_room(model, _sized(plan, _caught(plan, batch).parts).stored)
    return _sized(plan, apart.notes) if apart.all_right(batch.inputs, recording) else None


def _tried_on(model: Classifier) -> Batch:
    """The first instances: as many as the budget has room for; one that it has no room for is refused."""
    labels = torch.zeros(count(model.sample), dtype=torch.long)
    batch, each = Batch(model.sample, labels, range(len(labels))), TRIAL * model.itemsize * model.activations
    if len(labels) * each < COUNTED or len(labels) * each <= model.budget.bytes:
        return batch
    model.budget.bound(each, f"Per-example gradients of {model.size} parameters", INSTEAD)
    return batch.between(0, max(1, model.budget.bytes // each))


def _by_narrow(model: Classifier) -> Plan | None:
    """The plan by rules that was found right on the columns that the first instances have."""
    narrow = narrowed(model)
    tried = None if narrow is None else _by_rules(narrow, _tried_on(narrow))
    if tried is None:
        return None
    places = _places(model)
    factored = {
        key: tried.factored[own] for own, key in zip(tried.places, places, strict=True) if own in tried.factored
    }
    return replace(tried, model=model, places=places, recording=instrumented(model), factored=factored)


def _wanted_alone(model: Classifier, batch: Batch, logits: Tensor, some: Sequence[int]) -> Sequence[Tensor]:
    """The gradients [instances, numbers] by plain autograd, of some instances of the batch; by parameter."""
    return _plain(list(model.parameters.values()), _cotangent(model, batch), logits, some)


def _wanted_of(model: Classifier, batch: Batch, logits: Tensor, parameter: Tensor) -> Tensor:
    """The gradients [b, numbers] of one parameter by plain autograd."""
    return _plain([parameter], _cotangent(model, batch), logits, range(len(logits)))[0]


def _plain(
    parameters: Sequence[Tensor], cotangent: Tensor, logits: Tensor, some: Sequence[int]
) -> Sequence[Tensor]:
    """The gradients of parameters [some of b, numbers] by plain autograd, one instance after the other."""
    rows: list[list[Tensor]] = [[] for _ in parameters]
    for i in some:
        single = torch.zeros_like(logits)
        single[i] = cotangent[i].to(logits)
        found = pulled_back(logits, parameters, single, retain_graph=True, materialize_grads=True)
        for own, each in zip(rows, found, strict=True):
            own.append(each.to_dense().flatten().cpu())
    return list(map(torch.stack, rows))


class _Seen:
    """A sink that notes what gradients are made of, and adds them up if it `forms` them."""

    def __init__(self, forms: bool = False) -> None:
        self.forms = forms
        self.formed: dict[int, Tensor] = {}  # by the parameter's id
        self.parts: list[Note] = []

    def append(self, part: Part) -> None:
        """Takes the gradients of one more parameter."""
        self.take([part])

    def take(self, parts: Sequence[Part]) -> None:
        """Takes the gradients of several parameters."""
        made = [
            (
                part.stored if isinstance(part, (Outer, Lookup, Patched)) and part.is_cheaper else 0,
                part.formed() if self.forms else None,
            )
            for part in parts
        ]
        for part, (stored, formed) in zip(parts, made, strict=True):
            key = id(part.parameter)
            self.parts.append((key, type(part), stored))
            if formed is not None:
                some = formed.flatten(1).cpu()
                self.formed[key] = self.formed[key] + some if key in self.formed else some


@torch.enable_grad()
def _folded(model: Classifier, batch: Batch) -> tuple[Callable[[], nn.Module], Tensor]:
    """How clones are made with what can be folded, if that changes nothing; and the logits of one."""
    with model.clones.lent() as module:
        logits, pairs = foldable(module, partial(model.outputs.of, module, batch.inputs))
    if pairs:
        fresh = partial(folded, model, pairs)
        clone = fresh()
        again = fed(clone, placed(clone, batch.inputs))
        if _agree(again.detach(), logits.detach()):
            return fresh, again
    return model.clones.fresh, logits


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
        check = partial(_right, trial, batch, lambda parameter: wanted[:, slow.places[id(parameter)]])
        plan = Plan(trial, slow.places, instrumented(trial, check))
        if _agree(_first(plan, batch), wanted):
            assert plan.recording is not None
            kinds = ", ".join(sorted(set(plan.recording.uncovered)))
            return plan, f"{kinds} has no rule: vmap over the module" if kinds else ""
        reason = "parameters are used outside of the layers that own them"
    except FAILURES as error:
        reason = first_line(error)
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
        raise InputError(f"The model cannot be differentiated: {first_line(error)}") from error


def _alone(model: Classifier, batch: Batch) -> Tensor:
    """The gradients that `_first` gives, one instance at a time."""
    cotangent = _cotangent(model, batch).to(next(iter(model.parameters.values())))
    return by_instance(model, batch.inputs, cotangent).double().cpu()


def _caught(plan: Plan, batch: Batch, forms: bool = False) -> "_Seen":
    """What a pass with the fixed cotangent catches, with the gradients of some instances."""
    assert plan.recording is not None
    cotangent, seen = _cotangent(plan.model, batch), _Seen(forms)
    few = next(reversed(plan.places.values())).stop <= FEW_NUMBERS  # whose parts can be held together
    sink = list[Part] if few else lambda: seen
    caught = next(plan.recording.passes(batch.inputs, lambda x: [cotangent.to(x)], sink))
    if isinstance(caught, list):
        seen.take(caught)
    return seen


def _adds_up(plan: Plan, seen: "_Seen", wanted: Sequence[Tensor]) -> bool:
    """Whether the parts of each parameter add up to its gradients, which are wanted in the plan's order."""
    atol = max(_tolerance(part) for part in wanted)
    for key, part in zip(plan.places, wanted, strict=True):
        if not _agree(seen.formed.pop(key, torch.zeros_like(part)), part, atol):
            return False
    return True


def _sized(plan: Plan, notes: Sequence[Note]) -> Plan:
    """With what stays factored, and with as many instances per pass as the layers' sizes suggest."""
    assert plan.recording is not None
    keys = [key for key, *_ in notes]
    factored = {
        key: cast("type[Outer | Lookup | Patched]", kind)
        for key, kind, stored in notes
        if stored and keys.count(key) == 1
    }
    recorder = plan.recording.first.recorder
    volume, in_cache = recorder.volume / recorder.instances, recorder.in_cache / recorder.instances
    numbers = sum(stored for key, _, stored in notes if key in factored)
    formed = sum(place.stop - place.start for key, place in plan.places.items() if key not in factored)
    return replace(plan, factored=factored, volume=volume, in_cache=in_cache, stored=numbers + formed)


def _cotangent(model: Classifier, batch: Batch) -> Tensor:
    c = model.classes
    return torch.linspace(-1, 1, c, dtype=torch.double).expand(len(batch.labels), c)


def _first(plan: Plan, batch: Batch) -> Tensor:
    """The gradients of the first logit's neighbourhood: a fixed cotangent that no class is special in."""
    cotangent = _cotangent(plan.model, batch)
    return next(plan.pulled_back(batch, lambda *_: [cotangent], None)).dense()


def _right(
    model: Classifier, batch: Batch, wanted: Callable[[Tensor], Tensor], recorded: Recording, parameter: Tensor
) -> bool:
    """Whether a recording gives the gradients of one parameter that are wanted of it."""
    draft = Plan(model, _places(model), recorded)
    place, cotangent = draft.places[id(parameter)], _cotangent(model, batch)
    ours = next(draft.pulled_back(batch, lambda *_: [cotangent], place)).dense()
    return _agree(ours, wanted(parameter))


def _tolerance(wanted: Tensor) -> float:
    return 1e-5 * float(wanted.abs().max()) + 1e-300


def _agree(ours: Tensor, wanted: Tensor, atol: float | None = None) -> bool:
    atol = _tolerance(wanted) if atol is None else atol
    pieces = zip(ours.split(PIECE_COLUMNS, dim=1), wanted.split(PIECE_COLUMNS, dim=1), strict=True)
    return all(_close(mine, theirs, atol) for mine, theirs in pieces)


def _close(ours: Tensor, wanted: Tensor, atol: float) -> bool:
    """Whether they differ by no more than that, as they mostly do, or by no more for their size."""
    usual = ours.numel() > 0 and float((ours - wanted).abs_().max()) <= atol
    return usual or torch.allclose(ours.double(), wanted.double(), 1e-3, atol)


def _said(model: Classifier, fallback: str) -> None:
    kind = clipped(type(model.module).__name__)
    said = told(f"Gradients of {kind} by a slower fallback: {fallback}. The numbers are the same.")
    warnings.warn(said, SlowGradientsWarning, stacklevel=2)
