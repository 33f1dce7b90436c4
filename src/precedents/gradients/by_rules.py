"""Plans by rules: tried against plain autograd on the first instances, and corrected where they are wrong.

A layer may have several rows for each instance, as of windows or of tokens in a row. And what comes back to a
layer may be of all instances together: then its parameters' gradients come by a slower way, and all others by
their rules.
"""

from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn

from precedents.classifier.classifier import Classifier
from precedents.classifier.outputs import fed, placed
from precedents.data.examples import Batch
from precedents.data.inputs import count
from precedents.errors import BudgetError, PrecedentsError
from precedents.gradients.comparison import Apart, Note, strays
from precedents.gradients.factors import Outer, Part
from precedents.gradients.fallbacks import by_vmap
from precedents.gradients.folding import foldable, folded
from precedents.gradients.instrumentation import instrumented
from precedents.gradients.lookups import Lookup
from precedents.gradients.patches import Patched
from precedents.gradients.plan import Plan
from precedents.gradients.recording import Recording, pulled_back
from precedents.runtime.budget import COUNTED

PIECE_COLUMNS = 2**17  # that are compared at a time, in memory that is used again
FEW_NUMBERS = 2**20  # of a gradient up to which the instances are compared at once
SEARCH = 4  # gradients of the largest parameter that are held at once when the rules are tried
PART = 16  # of the budget that the gradients of several instances may take in a trial
TRIAL = 5  # times that the layers' outputs are held in a trial: of two passes, and of their graphs
INSTEAD = "Allow more memory, or use a metric without gradients: cos_last, cos_x."
FAILURES = (RuntimeError, TypeError, ValueError, AttributeError, IndexError, AssertionError)


def tried_on(model: Classifier) -> Batch:
    """The first instances, as many as the budget has room for; one that it has no room for is refused.

    Where instances pass one at a time, it is the first alone.
    """
    labels = torch.zeros(count(model.sample), dtype=torch.long)
    batch, each = Batch(model.sample, labels, range(len(labels))), TRIAL * model.itemsize * model.activations
    if model.apart:
        batch, labels = batch.between(0, 1), labels[:1]
    if len(labels) * each < COUNTED or len(labels) * each <= model.budget.bytes:
        return batch
    model.budget.bound(each, f"Per-example gradients of {model.size} parameters", INSTEAD)
    return batch.between(0, max(1, model.budget.bytes // each))


def refuse_without_room(model: Classifier, held: int) -> None:
    """Refuses a trial that the budget has no room for, with so many numbers of an instance's gradient."""
    largest = max(parameter.numel() for parameter in model.parameters.values())
    what = f"Per-example gradients of {model.size} parameters"
    model.budget.bound(model.itemsize * (SEARCH * largest + held), what, INSTEAD)


def by_rules(model: Classifier) -> Plan | None:
    """The plan by rules and copies of what they do not cover, if that is right: the usual case, quickly found.

    Plain autograd goes back once for each instance from the logits of the batch, so that all stay on the same
    side of every kink.
    """
    batch = tried_on(model)
    try:
        fresh, logits = _folded(model, batch)
        places = places_of(model)
        if next(reversed(places.values())).stop > FEW_NUMBERS:
            del logits  # and what they were made of
            return _large_by_rules(model, batch, fresh)
        check = partial(right, model, batch, partial(_wanted_of, model, batch, logits))
        plan = Plan(model, places, instrumented(model, check, fresh=fresh, alike=True))
        assert plan.recording is not None
        if plan.recording.uncovered:
            return None
        wanted = _wanted_alone(model, batch, logits)
        seen = caught(plan, batch, forms=True)
        if seen.odd and len(batch.labels) == 1:  # of which nobody can tell whose rows they are
            return None
        if seen.odd:
            plan = replace(plan, recording=replace(plan.recording, packed=frozenset(seen.odd)))
            seen = caught(plan, batch, forms=True)
            seen.odd |= _strays(plan, batch)
        if seen.odd or wrong_of(plan, seen, wanted):
            return None
    except BudgetError:
        raise
    except (*FAILURES, PrecedentsError):
        return None
    return sized(plan, seen.parts) if any(bool(part.any()) for part in wanted) else None


def _large_by_rules(model: Classifier, batch: Batch, fresh: Callable[[], nn.Module]) -> Plan | None:
    """The same where gradients are too many to be held; some may come by a slower way."""
    places, recording = places_of(model), instrumented(model, fresh=fresh)
    logits, most = partial(model.outputs.of, inputs=batch.inputs), model.budget.bytes // (PART * model.itemsize)
    apart = Apart(fresh(), places, logits, cotangent_of(model, batch), most)
    if recording.uncovered:
        recording = instrumented(model, partial(apart.right, batch.inputs), fresh=fresh, alike=True)

    def tried(recording: Recording) -> tuple[set[int], set[int]]:
        if not model.budget.fits(model.itemsize * (SEARCH + 1) * model.size, 0):  # then it matters what is held
            plan = Plan(model, places, recording)
            refuse_without_room(model, sized(plan, caught(plan, batch).parts).stored)
        return apart.wrong(batch.inputs, recording), apart.odd

    plan = repaired(Plan(model, places, recording), batch, tried, fresh)
    if apart.zero or len(plan.rest) == len(places):
        return None
    if not plan.rest:
        return sized(plan, apart.notes)
    rest = [apart.parameters[id(model.parameters[name])] for name in plan.rest]
    wanted = torch.cat(list(plain(rest, apart.cotangent, apart.logits)), dim=1)
    return sized(with_rest(plan, batch, wanted), caught(plan, batch).parts)


def repaired(
    plan: Plan,
    batch: Batch,
    tried: Callable[[Recording], tuple[set[int], set[int]]],
    fresh: Callable[[], nn.Module] | None = None,
) -> Plan:
    """With several rows of an instance gathered where that is right, and without parameters that are wrong.

    `tried` gives the ids of the parameters whose gradients a recording does not give, and of those of which it
    gives another number than there are instances.
    """
    recording = plan.recording
    assert recording is not None
    again = partial(instrumented, plan.model, fresh=fresh)
    try:
        wrong, odd = tried(recording)
    except FAILURES:
        if not recording.alone:
            raise
        recording = again(like=replace(recording, without=recording.alone))
        wrong, odd = tried(recording)
    if odd and len(batch.labels) == 1:
        wrong |= odd
    elif odd:
        recording = replace(recording, packed=frozenset(odd))
        wrong = tried(recording)[0] | _strays(replace(plan, recording=recording), batch)
    if wrong - recording.without:
        recording = again(like=replace(recording, without=recording.without | wrong))
    return replace(plan, recording=recording)


def with_rest(plan: Plan, batch: Batch, wanted: Tensor) -> Plan:
    """With the gradients that are not recorded by vmap over the model, if they are the wanted ones so."""
    cotangent = cotangent_of(plan.model, batch).to(wanted)
    try:
        inputs = placed(plan.model.module, batch.inputs)
        vectorised = agree(by_vmap(plan.model, inputs, cotangent, plan.rest).to(wanted), wanted)
    except FAILURES:
        vectorised = False
    return replace(plan, vectorised=vectorised)


def _strays(plan: Plan, batch: Batch) -> set[int]:
    assert plan.recording is not None
    return strays(plan.recording, batch.inputs, cotangent_of(plan.model, batch))


def places_of(model: Classifier) -> dict[int, slice]:
    """The columns of each parameter, by its id."""
    places, start = {}, 0
    for parameter in model.parameters.values():
        places[id(parameter)] = slice(start, start + parameter.numel())
        start += parameter.numel()
    return places


def _wanted_alone(model: Classifier, batch: Batch, logits: Tensor) -> Sequence[Tensor]:
    """The gradients [b, numbers] by plain autograd, by parameter."""
    return plain(list(model.parameters.values()), cotangent_of(model, batch), logits)


def _wanted_of(model: Classifier, batch: Batch, logits: Tensor, parameter: Tensor) -> Tensor:
    """The gradients [b, numbers] of one parameter by plain autograd."""
    return plain([parameter], cotangent_of(model, batch), logits)[0]


def plain(parameters: Sequence[Tensor], cotangent: Tensor, logits: Tensor) -> Sequence[Tensor]:
    """The gradients of parameters [b, numbers] by plain autograd, one instance after the other."""
    rows: list[list[Tensor]] = [[] for _ in parameters]
    for i in range(len(logits)):
        single = torch.zeros_like(logits)
        single[i] = cotangent[i].to(logits)
        found = pulled_back(logits, parameters, single, retain_graph=True, materialize_grads=True)
        for own, each in zip(rows, found, strict=True):
            own.append(each.to_dense().flatten().cpu())
    return list(map(torch.stack, rows))


class _Seen:
    """A sink that notes what gradients of b instances are made of; it adds them up if they are `formed`."""

    def __init__(self, b: int, formed: Container[int] = ()) -> None:
        self.b, self.forms = b, formed  # the ids of parameters whose gradients are formed
        self.formed: dict[int, Tensor] = {}  # by the parameter's id
        self.parts: list[Note] = []
        self.odd: set[int] = set()  # the ids of parameters with another number of gradients

    def append(self, part: Part) -> None:
        """Takes the gradients of one more parameter."""
        self.take([part])

    def take(self, parts: Sequence[Part]) -> None:
        """Takes the gradients of several parameters."""
        made = [
            (
                part.stored if isinstance(part, (Outer, Lookup, Patched)) and part.is_cheaper else 0,
                part.formed() if (even := len(part) == self.b) and id(part.parameter) in self.forms else None,
                even,
            )
            for part in parts
        ]
        for part, (stored, formed, even) in zip(parts, made, strict=True):
            key = id(part.parameter)
            self.parts.append((key, type(part), stored))
            if not even:
                self.odd.add(key)
            if formed is not None:
                some = formed.reshape(self.b, -1).cpu()
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
        if agree(again.detach(), logits.detach()):
            return fresh, again
    return model.clones.fresh, logits


def caught(plan: Plan, batch: Batch, forms: bool = False) -> "_Seen":
    """What a pass with the fixed cotangent catches, with the gradients of some instances."""
    assert plan.recording is not None
    cotangent, seen = cotangent_of(plan.model, batch), _Seen(len(batch.labels), plan.places if forms else ())
    few = next(reversed(plan.places.values())).stop <= FEW_NUMBERS  # whose parts can be held together
    sink = list[Part] if few else lambda: seen
    caught = next(plan.recording.passes(batch.inputs, lambda x: [cotangent.to(x)], sink))
    if isinstance(caught, list):
        seen.take(caught)
    return seen


def wrong_of(plan: Plan, seen: "_Seen", wanted: Sequence[Tensor]) -> set[int]:
    """The ids of parameters whose parts do not add up to their gradients, wanted in the plan's order."""
    atol = max(map(_tolerance, wanted))
    pairs = zip(plan.places, wanted, strict=True)
    return {key for key, part in pairs if not agree(seen.formed.pop(key, torch.zeros_like(part)), part, atol)}


def sized(plan: Plan, notes: Sequence[Note]) -> Plan:
    """With what stays factored, and with as many instances per pass as the layers' sizes suggest."""
    assert plan.recording is not None
    notes = [note for note in notes if note[0] not in plan.recording.without]
    keys = [key for key, *_ in notes]
    factored = {
        key: cast("type[Outer | Lookup | Patched]", kind)
        for key, kind, stored in notes
        if stored and keys.count(key) == 1
    }
    recorder = plan.recording.first.recorder
    volume, in_cache = recorder.volume / recorder.instances, recorder.in_cache / recorder.instances
    numbers = sum(stored for key, _, stored in notes if key in factored)
    sizes = {key: place.stop - place.start for key, place in plan.places.items()}
    formed = sum(size for key, size in sizes.items() if key not in factored)
    often = (
        (key, stored) for key, kind, stored in notes if kind is Outer and stored**2 > 2 * sizes[key] ** 1.5
    )
    matrices = sum(sizes[key] for key, _ in often if key in factored)  # of so many positions that it is faster
    found = replace(plan, factored=factored, volume=volume, in_cache=in_cache)
    return replace(found, stored=numbers + formed, matrices=matrices)


def cotangent_of(model: Classifier, batch: Batch) -> Tensor:
    """What is sent back from each instance's logits [b, classes] in a trial: no class is special in it.

    Each instance has another length, so that what comes back to one is not that of another.
    """
    length = torch.arange(1, len(batch.labels) + 1, dtype=torch.double)
    return length[:, None] * torch.linspace(-1, 1, model.classes, dtype=torch.double)


def right(
    model: Classifier, batch: Batch, wanted: Callable[[Tensor], Tensor], recorded: Recording, parameter: Tensor
) -> bool:
    """Whether a recording gives the gradients of one parameter that are wanted of it."""
    cotangent, sink = cotangent_of(model, batch), partial(_Seen, len(batch.labels), {id(parameter)})
    seen = next(recorded.passes(batch.inputs, lambda x: [cotangent.to(x)], sink))
    theirs = wanted(parameter)
    ours = seen.formed.get(id(parameter), torch.zeros_like(theirs))
    return id(parameter) not in seen.odd and agree(ours, theirs)


def _tolerance(wanted: Tensor) -> float:
    return 1e-5 * float(wanted.abs().max()) + 1e-300


def agree(ours: Tensor, wanted: Tensor, atol: float | None = None) -> bool:
    """Whether gradients are the wanted ones, but for rounding."""
    atol = _tolerance(wanted) if atol is None else atol
    pieces = zip(ours.split(PIECE_COLUMNS, dim=1), wanted.split(PIECE_COLUMNS, dim=1), strict=True)
    return all(_close(mine, theirs, atol) for mine, theirs in pieces)


def _close(ours: Tensor, wanted: Tensor, atol: float) -> bool:
    """Whether they differ by no more than that, as they mostly do, or by no more for their size."""
    usual = ours.numel() > 0 and float((ours - wanted).abs_().max()) <= atol
    return usual or torch.allclose(ours.double(), wanted.double(), 1e-3, atol)
