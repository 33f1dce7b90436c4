"""Classifier: the user's module as the metrics see it: logits, hidden layers, parameters, fresh draws.

It holds a copy of the module in eval mode, so the user's own comes back untouched whatever happens,
and may be trained on without changing explanations that were asked for before. Passes run on clones of the
copy, each lent to one pass at a time: threads do not see each other's hooks, nor what a module notes.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from precedents.classifier.attributes import attributes
from precedents.classifier.clone import Clones, sharing_clone
from precedents.classifier.construction import Construction, Told, refuse_keywords, tensor_bytes
from precedents.classifier.hidden_layers import Tap, flat, watched
from precedents.classifier.loss import CrossEntropy, Loss
from precedents.classifier.memory_format import layout, store
from precedents.classifier.outputs import Outputs
from precedents.data.examples import Batch, Examples
from precedents.data.examples import fingerprint as mark
from precedents.data.inputs import Collated, Inputs, alone, between, count, leaves, ordered
from precedents.errors import InputError, NotApplicable, NumericalError
from precedents.runtime.budget import FLOAT64, Budget
from precedents.runtime.cache import Cache
from precedents.runtime.door import door
from precedents.runtime.guards import Work, random_state_kept
from precedents.runtime.sparse import SparseRows
from precedents.runtime.users_code import users
from precedents.runtime.wording import a_type

if TYPE_CHECKING:
    from typing_extensions import Unpack

Vectorise = Callable[[Inputs], Tensor]
FORWARD_INSTANCES = 512  # that go forward at once, at most,
FORWARD_BYTES = 2**28  # that their layers return
COPIES = 2  # of inputs while they are read: one by one, and together

RAGGED = "The instances are of different lengths, so that they are no vectors as they are."
WHERE = {"instance": "training instances"}  # what instances are, in messages

DRAWS = 0x9E3779B97F4A7C15 >> 1  # far from the seeds that people train with: a draw is no model's own beginning


def gradients_on(work: Work) -> Work:
    """Makes a function record gradients, whatever mode its caller is in."""
    return torch.inference_mode(mode=False)(torch.enable_grad()(work))


@dataclass(frozen=True, eq=False)
class Classifier:
    """A trained network with `classes` outputs. Make one with `Classifier.of`."""

    module: nn.Module  # our own copy, in eval mode; what runs is a clone of it
    classes: int
    taps: tuple[Tap, ...]  # the hidden layers, in the order of computation
    only_layer: str | None  # the name of the one Linear that holds all trainable parameters, if so
    sample: Inputs = field(repr=False)  # the first instances, to try things on
    vectorise: Vectorise | None = None
    budget: Budget = field(default_factory=Budget)
    head: str | None = None  # the name of the one Linear that returns the logits, if there is one
    loss: Loss = field(default_factory=CrossEntropy)
    outputs: Outputs = field(default_factory=Outputs)
    activations: int = 0  # numbers that the layers return for one instance
    input_bytes: int = 0  # of one instance
    narrow: torch.dtype | None = None  # the half precision of the user's own module, if it has one
    several: Inputs | None = field(default=None, repr=False)  # to try whether they are moved within a batch
    apart: bool = False  # whether they are: then each passes alone
    written: frozenset[str] = frozenset()  # the buffers that a pass writes to, by name
    cache: Cache = field(default_factory=Cache, init=False, repr=False)

    @classmethod
    @door
    @torch.inference_mode(mode=False)
    def of(cls, module: nn.Module, train: Examples, **told: "Unpack[Told]") -> "Classifier":
        """Learns the module's outputs and hidden layers from a first look at the training set `train`.

        `hidden` names the modules whose outputs are the hidden layers; without it they are what each
        layer with a weight matrix receives from the ones before it, and the last states of recurrent ones.
        `vectorise` makes vectors of the inputs, where flattening them is not enough. `memory` is how much may
        be used, in bytes or as "2 GB"; half of what is free without it. `loss` is what the module was trained
        with: cross entropy without it, or a loss of torch.nn with its weights and smoothing, or a function of
        logits [b, classes] and labels [b] that gives losses [b]. `output` is the key, attribute or position of
        the logits in what the module returns, where they are not found. Weights of half precision are computed
        with in float32, and those of several precisions in the widest of them.
        """
        refuse_keywords("Classifier.of", told, sorted(Told.__optional_keys__))
        return Construction(**told).made(cls, module, train)

    @cached_property
    def parameters(self) -> dict[str, nn.Parameter]:
        """The trainable parameters by name, shared ones once; having none is an error."""
        found = {name: p for name, p in self.module.named_parameters() if p.requires_grad}
        if not found:
            raise InputError(
                "The model has no trainable parameters, so there are no gradients to compare. "
                "Unfreeze some: model.requires_grad_(True). Or use a metric on hidden layers: cos_last."
            )
        return found

    @property
    def size(self) -> int:
        """The number of trainable parameters."""
        return sum(p.numel() for p in self.parameters.values())

    @property
    def itemsize(self) -> int:
        """The bytes of one number in the model's precision."""
        return next((p.element_size() for p in self.module.parameters() if p.is_floating_point()), FLOAT64)

    @cached_property
    def clones(self) -> Clones[nn.Module]:
        """Clones of the module that share its tensors, but for those that a pass writes to."""
        return Clones(partial(sharing_clone, self.module, self.written))

    @cached_property
    def attributes(self) -> dict[str, str]:
        """The plain values that the module's `forward` reads, as texts by name."""
        with self.clones.lent() as module, torch.no_grad():
            return attributes(module, lambda own: self.outputs.of(own, self.sample))

    def logits(self, inputs: Inputs) -> Tensor:
        """The module's logits [b, classes] for `inputs`; the graph is kept if gradients are enabled."""
        with self.clones.lent() as module:
            return self.outputs.of(module, inputs)

    @torch.no_grad()
    def finite_logits(self, batch: Batch, what: str = "instance") -> Tensor:
        """Logits of a `batch` in float64; instances without a loss are named, by `what` they are."""
        return self.checked_logits(self.logits(batch.inputs), batch.indices, what)

    @staticmethod
    def checked_logits(logits: Tensor, indices: Sequence[int], what: str = "instance") -> Tensor:
        """These `logits` in float64; those without a loss are named by `what` they are and `indices`."""
        logits = logits.double().cpu()
        wrong = (~logits.isfinite().all(dim=1)).nonzero().flatten().tolist()
        if wrong:
            named = ", ".join(f"#{indices[i]}" for i in wrong[:5]) + (" ..." if len(wrong) > 5 else "")
            raise NumericalError(
                f"The loss of {len(wrong)} {what}(s) is not finite: {named}. "
                f"Look for NaN or infinite values in these {WHERE.get(what, what + 's')} and in the weights."
            )
        return logits

    @door
    def predicted(self, examples: Examples, what: str = "instance") -> Tensor:
        """The class with the largest logit for each of the `examples` [n]; errors say `what` an instance is."""
        batches = examples.batches(self.at_once)
        return torch.cat([self.finite_logits(batch, what).argmax(dim=1) for batch in batches])

    @cached_property
    def at_once(self) -> int:
        """How many instances go forward together, so that what their layers return stays small."""
        if self.apart:
            return 1
        each = max(1, self.activations) * self.itemsize  # bytes
        room = FORWARD_BYTES // each, self.budget.bytes // (8 * each), self.readable
        return max(1, min(FORWARD_INSTANCES, *room))

    @property
    def readable(self) -> int:
        """How many instances are read at once, so that they and their pieces take a quarter of the budget."""
        return max(1, self.budget.bytes // (4 * COPIES * max(1, self.input_bytes)))

    def vectors(self, inputs: Inputs) -> Tensor:
        """The inputs as vectors [b, d]: flattened, or as `vectorise` says."""
        if self.vectorise is not None:
            return self._vectorised(inputs, self.vectorise)
        if isinstance(inputs, SparseRows):
            return inputs.double()
        if any(isinstance(m, (nn.Embedding, nn.EmbeddingBag)) for m in self.module.modules()):
            raise NotApplicable(
                "The inputs are token numbers, which are no vectors. Say how to count them: "
                "vectorise=lambda tokens: torch.nn.functional.one_hot(tokens, words).sum(1)"
            )
        if isinstance(inputs, Collated) and self.ragged:
            raise NotApplicable(f"{RAGGED} Say how to make vectors of them: vectorise=.")
        found = torch.cat([leaf.double().flatten(1).cpu() for leaf in leaves(inputs)], dim=1)
        return ordered(inputs, found) if isinstance(inputs, Collated) else found

    @staticmethod
    def _vectorised(inputs: Inputs, vectorise: Vectorise) -> Tensor:
        given = inputs.arguments if isinstance(inputs, Collated) else inputs
        given = given[0] if isinstance(given, tuple) and len(given) == 1 else given
        with users("the function vectorise", "It is called with inputs [b, ...] and returns a tensor [b, d]"):
            found = vectorise(given)
        if not isinstance(found, Tensor) or found.ndim < 1 or len(found) != count(inputs):
            what = f"the shape {tuple(found.shape)}" if isinstance(found, Tensor) else a_type(found)
            raise InputError(f"vectorise gives {what} for {count(inputs)} instances. Return a tensor [b, d].")
        return ordered(inputs, found.double().reshape(len(found), -1).cpu())

    @cached_property
    def ragged(self) -> bool:
        """Whether instances differ in shape, as far as two can tell."""
        one, *others = (
            [leaf.shape for leaf in leaves(alone(self.sample, i))] for i in range(count(self.sample))
        )
        return any(other != one for other in others)

    def of_one_width(self, strict: bool) -> "Classifier":
        """Without the hidden layers that are longer for longer instances; `strict` refuses them."""
        singles = [alone(self.sample, i) for i in range(count(self.sample))]
        kept = [tap for tap in self.taps if len({self._width(single, tap) for single in singles} | {None}) == 2]
        if strict and len(kept) < len(self.taps):
            raise InputError(
                f"A hidden layer that was named is not of one length for all instances; these are: "
                f"{', '.join(tap.module for tap in kept) or 'none'}. Name layers after the tokens are pooled."
            )
        return replace(self, taps=tuple(kept))

    def _width(self, single: Inputs, tap: Tap) -> int | None:
        """How long a hidden layer of one instance is; none if it has no axis of instances."""
        try:
            return self._hidden(single, [tap])[0][0].shape[1]
        except InputError:
            return None

    def hidden(self, inputs: Inputs, last: bool = False) -> list[Tensor]:
        """The hidden layers [b, d_i] for `inputs`, flattened, in their order; or the `last` alone."""
        return self.hidden_and_logits(inputs, last)[0]

    def hidden_and_logits(self, inputs: Inputs, last: bool = False) -> tuple[list[Tensor], Tensor]:
        """The hidden layers for `inputs`, or the `last` alone, and the logits [b, classes] of the same pass."""
        if not self.taps:
            raise NotApplicable("The model is linear: it has no hidden layer.")
        taps = self.taps[-1:] if last else self.taps
        starts = range(0, count(inputs), self.at_once)
        pieces = [self._hidden(between(inputs, start, start + self.at_once), taps) for start in starts]
        layers, logits = zip(*pieces, strict=True)
        return [torch.cat(layer) for layer in zip(*layers, strict=True)], torch.cat(logits)

    @torch.no_grad()
    def _hidden(self, inputs: Inputs, taps: Sequence[Tap]) -> tuple[list[Tensor], Tensor]:
        seen: dict[Tap, Any] = {}

        def note(tap: Tap, value: Any) -> None:
            if tap in taps:
                seen[tap] = value

        with self.clones.lent() as module, watched(module, {tap.module for tap in taps}, note):
            logits = self.outputs.of(module, inputs)
        missing = [tap.module for tap in taps if tap not in seen]
        if missing:
            raise InputError(f"The hidden layer {missing[0]!r} did not run. Name layers that do.")
        layers = [flat(seen[tap], count(inputs), self.module.get_submodule(tap.module), tap) for tap in taps]
        return [each if isinstance(inputs, Tensor) else ordered(inputs, each) for each in layers], logits

    @torch.no_grad()
    def head_input(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """What the Linear that returns the logits receives of a `batch` [b, d], and the logits; float64."""
        assert self.head is not None
        if self.apart and len(batch.labels) > 1:
            singles = [self.head_input(batch.between(i, i + 1)) for i in range(len(batch.labels))]
            return torch.cat([features for features, _ in singles]), torch.cat([own for _, own in singles])
        received: list[Tensor] = []

        def before(_: nn.Module, args: tuple[Tensor, ...], kwargs: dict[str, Tensor]) -> None:
            received.extend([*args, *kwargs.values()])

        with self.clones.lent() as module:
            handle = module.get_submodule(self.head).register_forward_pre_hook(before, with_kwargs=True)
            logits = self.outputs.of(module, batch.inputs)
            handle.remove()
        found = received[0].double().cpu()
        if isinstance(batch.inputs, Collated):
            found = ordered(batch.inputs, found)
        return found, self.checked_logits(logits, batch.indices)

    def fingerprint(self) -> str:
        """A text that differs when the architecture, a weight, a buffer, the loss or the output does."""
        digest = blake2b(f"{self.module} {self.loss} {self.outputs}".encode(), digest_size=16)
        for name, value in self.module.state_dict().items():
            if isinstance(value, Tensor):
                digest.update(f"{name} {value.dtype} ".encode() + mark(value, 0))
        return digest.hexdigest()

    def randomized(self, seed: int) -> "Classifier":
        """The architecture with a fresh draw of all parameters, the same for the same `seed`.

        Each layer draws as its own `reset_parameters` does; a parameter whose owner has none is drawn
        from a normal distribution with the mean and deviation that it has now.
        """
        copy = self._copied()
        store(copy, torch.contiguous_format)  # numbers are drawn in the order in which they are stored
        with random_state_kept(), torch.no_grad():
            torch.manual_seed(DRAWS + seed)
            for module in copy.modules():
                reset = getattr(module, "reset_parameters", getattr(module, "_reset_parameters", None))
                if callable(reset):
                    reset()
                    continue
                for parameter in module.parameters(recurse=False):
                    if parameter.numel() > 1:
                        drawn = torch.randn(parameter.shape, dtype=torch.float32)
                        parameter.copy_(drawn * parameter.std() + parameter.mean())
        store(copy, layout(self.module))
        return replace(self, module=copy.eval())

    def another(self, module: nn.Module, train: Examples, loss: Loss | None = None) -> "Classifier":
        """A classifier of another `module` of this kind, looked at in the same way by `train` and `loss`."""
        made = Classifier.of(
            module,
            train,
            vectorise=self.vectorise,
            memory=self.budget,
            loss=self.loss if loss is None else loss,
            output=self.outputs.place,
        )
        if made.outputs.single == self.outputs.single:  # what an output means is not seen in its shape
            made = replace(made, outputs=replace(made.outputs, form=self.outputs.form))
        return made.with_taps(self)

    def with_taps(self, other: "Classifier") -> "Classifier":
        """With the hidden layers of an `other` classifier of the same architecture."""
        known = {name for name, _ in self.module.named_modules()}
        return replace(self, taps=other.taps) if {tap.module for tap in other.taps} <= known else self

    def doubled(self) -> "Classifier":
        """The classifier with its weights in float64."""
        return replace(self, module=self._copied(torch.double))

    def _copied(self, dtype: torch.dtype | None = None) -> nn.Module:
        """A copy of the module, in another precision if one is given, which the budget knows of."""
        copy = deepcopy(self.module).to(dtype=dtype)
        self.budget.held.until_gone(copy, tensor_bytes(copy))
        return copy
