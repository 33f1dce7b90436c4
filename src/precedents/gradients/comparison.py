"""The trial of a large model: gradients by rules against plain autograd, one parameter at a time.

Neither is ever held whole: what comes back to a parameter is compared where it arrives, and forgotten.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from copy import deepcopy
from functools import partial, reduce
from math import inf, isnan

import torch
from torch import Tensor, nn

from precedents.data.inputs import Inputs
from precedents.gradients.factors import Dense, Outer, Part
from precedents.gradients.lookups import Lookup
from precedents.gradients.patches import Patched
from precedents.gradients.recording import Recording, pulled_back

PIECE_NUMBERS = 2**17  # that are compared at a time, in memory that is used again
RELATIVE, ABSOLUTE = 1e-3, 1e-5  # by how much a number may differ: by itself, and by the largest of all


Note = tuple[int, type[Part], int]  # a parameter's id, what its gradients are, numbers of factors if kept


def noted(part: Part) -> Note:
    """What is to be known of a part when it is gone."""
    kept = isinstance(part, (Outer, Lookup, Patched)) and part.is_cheaper
    return id(part.parameter), type(part), part.stored if kept else 0  # type: ignore[attr-defined]


class HeldGradients:
    """A sink that holds the gradients of one instance, as factors where they have some."""

    def __init__(self, instance: int, keys: Collection[int]) -> None:
        self.instance, self.keys = instance, keys  # the ids of the parameters in question
        self.parts: dict[int, list[Part]] = {}  # by the parameter's id
        self.notes: list[Note] = []

    def append(self, part: Part) -> None:
        """Takes the gradients of one more parameter."""
        self.notes.append(noted(part))
        if id(part.parameter) not in self.keys:
            return
        place = slice(self.instance, self.instance + 1)
        own: Part
        if isinstance(part, (Outer, Lookup, Patched)):
            own = part.changed(lambda values: values[place])
        else:
            own = Dense(part.parameter, part.formed()[place].clone())
        self.parts.setdefault(id(part.parameter), []).append(own)

    def formed(self, key: int) -> Tensor | None:
        """The gradient of a parameter, which is forgotten; none where none came."""
        formed = [part.formed() for part in self.parts.pop(key, [])]
        return reduce(Tensor.add_, formed).flatten().cpu() if formed else None


class GradientComparison:
    """How far the gradients of an instance are from what plain autograd gives."""

    def __init__(self, held: HeldGradients) -> None:
        self.held, self.largest, self.excess = held, 0.0, 0.0

    @property
    def agrees(self) -> bool:
        """Whether no number differs by more than a part of it and of the largest of all."""
        return self.excess <= ABSOLUTE * self.largest + 1e-300

    def arrived(self, key: int, back: Tensor) -> Tensor | None:
        """Compares what came back to a parameter; in its place there is nothing to be held."""
        theirs, ours = back.detach().to_dense().flatten().cpu(), self.held.formed(key)
        ours = torch.zeros_like(theirs) if ours is None else ours
        self._compare(ours, theirs)
        return None if back.is_sparse else back.new_zeros(()).expand_as(back)

    def _compare(self, ours: Tensor, theirs: Tensor) -> None:
        """Notes how large the numbers are, and by how much they differ too much; ours are written over."""
        for mine, wanted in zip(ours.split(PIECE_NUMBERS), theirs.split(PIECE_NUMBERS), strict=True):
            sizes = wanted.abs()
            excess = float(mine.sub_(wanted).abs_().sub_(sizes, alpha=RELATIVE).max())
            self.largest = max(self.largest, float(sizes.max()))
            self.excess = inf if isnan(excess) else max(self.excess, excess)

    def rest(self) -> None:
        """Compares what plain autograd knows nothing of, which is to be zero."""
        for key in list(self.held.parts):
            ours = self.held.formed(key)
            assert ours is not None
            self._compare(ours, torch.zeros_like(ours))


class Apart:
    """The logits [b, classes] of a module by parameters of its own, which show the same numbers.

    So hooks on them are seen by nobody else. The cotangent [b, classes] is what is sent back.
    """

    def __init__(
        self,
        module: nn.Module,
        keys: Iterable[int],
        logits: Callable[[nn.Module], Tensor],
        cotangent: Tensor,
    ) -> None:
        own = {id(p): nn.Parameter(p.detach(), p.requires_grad) for p in module.parameters()}
        shared = {id(buffer): buffer for buffer in module.buffers()}
        self.parameters = {key: own[key] for key in keys}
        with torch.enable_grad():
            self.logits = logits(deepcopy(module, {**own, **shared}))
        self.cotangent = cotangent.to(self.logits)
        self.notes: list[Note] = []  # of the last pass

    def right(self, inputs: Inputs, recording: Recording, parameter: Tensor) -> bool:
        """Whether a recording gives the gradients of one parameter as plain autograd does."""
        return all(each.agrees for each in self._comparisons(inputs, recording, [id(parameter)]))

    def all_right(self, inputs: Inputs, recording: Recording) -> bool:
        """Whether it gives those of all parameters, which are not all zero."""
        found = False
        for each in self._comparisons(inputs, recording, self.parameters):
            if not each.agrees:
                return False
            found = found or each.largest > 0
        return found

    def _comparisons(
        self, inputs: Inputs, recording: Recording, keys: Collection[int]
    ) -> Iterator[GradientComparison]:
        """Instance by instance."""
        for i in range(len(self.logits)):
            held = next(recording.passes(inputs, lambda _: [self.cotangent], partial(HeldGradients, i, keys)))
            self.notes = held.notes
            yield self._compared(held, keys)

    def _compared(self, held: HeldGradients, keys: Collection[int]) -> GradientComparison:
        """The gradients of an instance against those that are held of it."""
        found, single = GradientComparison(held), torch.zeros_like(self.logits)
        single[held.instance] = self.cotangent[held.instance]
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
