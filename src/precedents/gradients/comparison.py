"""The trial of a large model: gradients by rules against plain autograd, one parameter at a time.

None of plain autograd is ever held whole: what comes back to a parameter is compared where it arrives, and
forgotten.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import partial, reduce
from math import inf, isnan
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from precedents.classifier.classifier import Classifier
from precedents.data.inputs import Inputs, leaves
from precedents.gradients.factors import Dense, Outer, Part, some_of
from precedents.gradients.lookups import Lookup
from precedents.gradients.patches import Patched
from precedents.gradients.recording import Recording, pulled_back
from precedents.runtime.sparse import SparseRows

PIECE_NUMBERS = 2**17  # that are compared at a time, in memory that is used again
CHOOSING = (  # operations whose sizes the values say
    "nonzero",
    "masked_select",
    "_unique2",
    "unique_dim",
    "unique_consecutive",
)
RELATIVE, ABSOLUTE = 1e-3, 1e-5  # by how much a number may differ: by itself, and by the largest of all


Note = tuple[int, type[Part], int]  # a parameter's id, what its gradients are, numbers of factors if kept


def noted(part: Part) -> Note:
    """What is to be known of a part when it is gone."""
    kept = isinstance(part, (Outer, Lookup, Patched)) and part.is_cheaper
    return id(part.parameter), type(part), part.stored if kept else 0  # type: ignore[attr-defined]


class HeldGradients:
    """A sink that holds the gradients of some instances, as factors where they have some."""

    def __init__(self, instances: range, b: int, keys: Collection[int]) -> None:
        self.instances, self.b, self.keys = instances, b, keys  # of b; the ids of the parameters in question
        self.parts: dict[int, list[Part]] = {}  # by the parameter's id
        self.notes: list[Note] = []
        self.odd: set[int] = set()  # the ids of parameters with another number of gradients

    def append(self, part: Part) -> None:
        """Takes the gradients of one more parameter."""
        if len(part) != self.b:
            self.odd.add(id(part.parameter))
            return
        self.notes.append(noted(part))
        if id(part.parameter) not in self.keys:
            return
        place = slice(self.instances.start, self.instances.stop)
        own: Part
        if isinstance(part, (Outer, Lookup, Patched)):
            own = part.changed(lambda values: values[place])
        else:
            own = Dense(part.parameter, part.formed()[place].clone())
        self.parts.setdefault(id(part.parameter), []).append(own)

    def formed(self, key: int, instance: int) -> Tensor | None:
        """The gradient of a parameter, which is asked for once; none where none came.

        Those of a parameter are forgotten with the last instance.
        """
        last = instance == self.instances[-1]
        parts, i = self.parts.pop(key, []) if last else self.parts.get(key, []), instance - self.instances.start
        formed = [part.changed(partial(some_of, i, i + 1)).formed() for part in parts]
        return reduce(Tensor.add_, formed).flatten().cpu() if formed else None


class GradientComparison:
    """How far the gradients of an instance are from what plain autograd gives."""

    def __init__(self, held: HeldGradients, instance: int) -> None:
        self.held, self.instance, self.largest = held, instance, 0.0
        self.excess: dict[int, float] = {}  # by the parameter's id

    @property
    def wrong(self) -> set[int]:
        """The ids of those of which a number differs by more than a part of it and of the largest of all."""
        most = ABSOLUTE * self.largest + 1e-300
        return {key for key, excess in self.excess.items() if not excess <= most}

    def arrived(self, key: int, back: Tensor) -> Tensor | None:
        """Compares what came back to a parameter; in its place there is nothing to be held."""
        theirs, ours = back.detach().to_dense().flatten().cpu(), self.held.formed(key, self.instance)
        ours = torch.zeros_like(theirs) if ours is None else ours
        self._compare(key, ours, theirs)
        return None if back.is_sparse else back.new_zeros(()).expand_as(back)

    def _compare(self, key: int, ours: Tensor, theirs: Tensor) -> None:
        """Notes how large the numbers are, and by how much they differ too much; ours are written over."""
        for mine, wanted in zip(ours.split(PIECE_NUMBERS), theirs.split(PIECE_NUMBERS), strict=True):
            sizes = wanted.abs()
            excess = float(mine.sub_(wanted).abs_().sub_(sizes, alpha=RELATIVE).max())
            self.largest = max(self.largest, float(sizes.max()))
            self.excess[key] = inf if isnan(excess) else max(self.excess.get(key, 0.0), excess)

    def rest(self) -> None:
        """Compares what plain autograd knows nothing of, which is to be zero."""
        for key in [key for key in self.held.parts if key not in self.excess]:
            ours = self.held.formed(key, self.instance)
            assert ours is not None
            self._compare(key, ours, torch.zeros_like(ours))


class Apart:
    """The logits [b, classes] of a module by parameters of its own, which show the same numbers.

    So hooks on them are seen by nobody else. The cotangent [b, classes] is what is sent back; `most` is
    how many numbers of gradients may be held, if not one instance's alone.
    """

    def __init__(
        self,
        module: nn.Module,
        keys: Iterable[int],
        logits: Callable[[nn.Module], Tensor],
        cotangent: Tensor,
        most: int,
    ) -> None:
        own = {id(p): nn.Parameter(p.detach(), p.requires_grad) for p in module.parameters()}
        shared = {id(buffer): buffer for buffer in module.buffers()}
        self.parameters = {key: own[key] for key in keys}
        with torch.enable_grad():
            self.logits = logits(deepcopy(module, {**own, **shared}))
        self.cotangent, self.most = cotangent.to(self.logits), most
        self.notes: list[Note] = []  # of the last pass,
        self.odd: set[int] = set()  # which parameters had another number of gradients than there are instances,
        self.zero = True  # and whether all of the last comparison are zero

    def right(self, inputs: Inputs, recording: Recording, parameter: Tensor) -> bool:
        """Whether a recording gives the gradients of one parameter as plain autograd does."""
        return not self._wrong(inputs, recording, [id(parameter)])

    def wrong(self, inputs: Inputs, recording: Recording) -> set[int]:
        """The ids of the parameters whose gradients it does not give."""
        return self._wrong(inputs, recording, self.parameters)

    def _wrong(self, inputs: Inputs, recording: Recording, keys: Collection[int]) -> set[int]:
        found = list(self._comparisons(inputs, recording, keys))
        self.zero = not any(each.largest > 0 for each in found)
        return set[int]().union(*(each.wrong for each in found))

    def _comparisons(
        self, inputs: Inputs, recording: Recording, keys: Collection[int]
    ) -> Iterator[GradientComparison]:
        """Instance by instance, from a pass for as many as may be held."""
        b, numbers = len(self.logits), sum(self.parameters[key].numel() for key in keys)
        size = max(1, min(b, self.most // numbers))
        for start in range(0, b, size):
            sink = partial(HeldGradients, range(start, min(start + size, b)), b, keys)
            held = next(recording.passes(inputs, lambda _: [self.cotangent], sink))
            self.notes, self.odd = held.notes, held.odd
            yield from (self._compared(held, keys, i) for i in held.instances)

    def _compared(self, held: HeldGradients, keys: Collection[int], instance: int) -> GradientComparison:
        """The gradients of an instance against those that are held of it."""
        found, single = GradientComparison(held, instance), torch.zeros_like(self.logits)
        single[instance] = self.cotangent[instance]
        chosen = {key: self.parameters[key] for key in keys}
        handles = [p.register_hook(partial(found.arrived, key)) for key, p in chosen.items()]
        try:
            wanted = list(chosen.values())
            pulled_back(self.logits, wanted, single, retain_graph=True, allow_unused=True)
        finally:
            for handle in handles:
                handle.remove()
        found.rest()
        return found


class Strays:
    """A sink that finds parameters of which others than one instance get gradients."""

    def __init__(self, instance: int) -> None:
        self.instance = instance
        self.found: set[int] = set()  # their ids

    def append(self, part: Part) -> None:
        """Takes the gradients of one more parameter."""
        others = [i for i in range(len(part)) if i != self.instance]
        if part.formed()[others].any():
            self.found.add(id(part.parameter))


def strays(recording: Recording, inputs: Inputs, cotangent: Tensor) -> set[int]:
    """The ids of parameters of which an instance gets gradients that come from another one's logits."""
    found: set[int] = set()
    for i in range(len(cotangent)):
        single = torch.zeros_like(cotangent)
        single[i] = cotangent[i]
        sink = next(recording.passes(inputs, partial(_sent, single), partial(Strays, i)))
        found |= sink.found
    return found


def _sent(cotangent: Tensor, logits: Tensor) -> list[Tensor]:
    """What is sent back, as the logits are."""
    return [cotangent.to(logits)]


class Moved:
    """A sink that finds whether any of b instances gets gradients though nothing was sent back to it."""

    def __init__(self, b: int, still: Sequence[int]) -> None:
        self.b, self.still = b, still  # to which nothing was sent back
        self.found = False

    def append(self, part: Part) -> None:
        """Takes the gradients of one more parameter, of which any factor may be zero."""
        if len(part) != self.b:
            self.found = True
            return
        touched = torch.ones(len(self.still), dtype=torch.bool)

        def noted(values: Tensor) -> Tensor:
            if not isinstance(values, SparseRows):
                some = values[self.still].reshape(len(self.still), -1).nan_to_num(0.0, 0.0, 0.0)
                touched.logical_and_(some.any(dim=1).cpu())
            return values

        part.changed(noted)
        self.found |= bool(touched.any())


def moves(recording: Recording, inputs: Inputs, cotangent: Tensor, still: Sequence[int]) -> bool:
    """Whether instances of a batch get gradients of others, tried with some to which nothing is sent back."""
    sent = cotangent.clone()
    sent[still] = 0
    return next(recording.passes(inputs, partial(_sent, sent), partial(Moved, len(sent), still))).found


class Choosing(TorchDispatchMode):
    """Notes whether an operation gives as many rows as the values of what it is given say."""

    found = False

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Calls the operation."""
        name = function.overloadpacket.__name__
        masks = [each for each in leaves(list(args[1:2])) if each.dtype in (torch.bool, torch.uint8)]
        self.found |= name in CHOOSING or (name == "index" and bool(masks))
        return function(*args, **(kwargs or {}))


def chooses(model: Classifier, inputs: Inputs) -> bool:
    """Whether the model computes on rows that it chooses by their values, as on those that are no padding."""
    with model.clones.lent() as module, torch.no_grad(), Choosing() as mode:  # type: ignore[no-untyped-call]
        model.outputs.of(module, inputs)
    return mode.found
