"""One recorded pass: the model goes forward and back once, and what comes back to its layers is caught.

Gradients are made as soon as what they need comes back, while it is in the processor's cache.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge

from precedents.classifier.clone import Clones
from precedents.classifier.outputs import Outputs
from precedents.data.inputs import Collated, Inputs, Spans, count, leaves, mapped
from precedents.errors import InputError
from precedents.gradients.factors import ApartError, Part
from precedents.runtime.wording import a_type

Backs = Sequence[Tensor | None]  # the gradients that came back, one for each output; None is zero


class Sink(Protocol):
    """Takes the gradients as they come."""

    def append(self, part: Part, /) -> None:
        """Takes the gradients of one more parameter."""


S = TypeVar("S", bound=Sink)


@dataclass(frozen=True, eq=False)
class LayerCall:
    """One call of a layer in a recorded pass."""

    instances: int  # b, how many instances the pass has
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    output: Any
    spans: Mapping[int, Spans] = field(
        default_factory=dict
    )  # of tensors with all positions in a row, by length


@dataclass(eq=False)
class Catch:
    """Gradients to be caught in the backward pass, and what they make."""

    parts: Callable[[Backs], Iterable[Part]]
    shapes: list[torch.Size]
    steps: int = 1  # in which the layer works through its numbers, one after the other
    backs: dict[int, Tensor] = field(default_factory=dict)

    def give(self, sink: Sink) -> None:
        """Gives the parts that what came back makes, which is forgotten."""
        backs, self.backs = self.backs, {}
        if any(back.numel() for back in backs.values()):  # else it has received no rows
            each = [backs[i].reshape(shape) if i in backs else None for i, shape in enumerate(self.shapes)]
            for part in self.parts(each):
                sink.append(part)


@dataclass(eq=False)
class Pass:
    """The catches of one forward pass; to be closed, since what it holds and its hooks hold each other."""

    edges: list[GradientEdge] = field(default_factory=list)  # what the backward pass must come to
    catches: list[Catch] = field(default_factory=list)
    sink: Sink = field(default_factory=list[Part])
    keep: bool = False  # whether there will be another backward pass
    volume: int = 0  # how many numbers came back,
    in_cache: int = 0  # and how many of them are worked on at once
    turns: Counter[str] = field(default_factory=Counter)  # how often each layer was called

    def arrived(self, catch: int, output: int, back: Tensor) -> None:
        """The gradient of a catch's output is there; when all are, its parts are given at once."""
        caught = self.catches[catch]
        caught.backs[output] = back
        self.volume += back.numel()
        self.in_cache += back.numel() // caught.steps
        if len(caught.backs) == len(caught.shapes):
            caught.give(self.sink)
            if not self.keep:
                caught.parts = _spent

    def back(self, logits: Tensor, cotangent: Tensor, sink: Sink, keep: bool) -> None:
        """One backward pass; parts go to the sink as they come."""
        self.sink, self.keep, self.volume, self.in_cache = sink, keep, 0, 0
        if self.edges:  # else no layer was called
            pulled_back(logits, self.edges, cotangent, retain_graph=keep, allow_unused=True)
        with torch.no_grad():
            for catch in self.catches:  # of whose outputs only some were used
                catch.give(sink)

    def close(self) -> None:
        """Forgets everything."""
        self.edges, self.catches, self.sink = [], [], list[Part]()


def _spent(_: Backs) -> Iterable[Part]:
    return ()


class Recorder:
    """Collects the catches of a forward pass, as the layers of a clone tell it."""

    def __init__(self) -> None:
        self.running = Pass()
        self.instances = 0  # how many instances the pass has
        self.spans: Mapping[int, Spans] = {}  # as of `LayerCall`
        self.volume = self.in_cache = 0  # as of the last backward pass
        self.known: dict[str, bool] = {}  # as `seconds` of the recording
        self.beyond: list[Tensor] = []  # what the backward pass goes on to though nothing is caught there

    def is_for_all(self, name: str, x: Tensor) -> bool:
        """Whether what a layer received [1, ...] is one for all instances, as it was in the first pass.

        Else it may be the one position that all instances have, which lie along another axis.
        """
        turn = self.running.turns[name]
        self.running.turns[name] += 1
        if self.instances == 1:
            return False
        return self.known.setdefault(f"{name}, call {turn}", len(x) == 1) and len(x) == 1

    def catch(
        self,
        outputs: Iterable[Tensor],
        parts: Callable[[Backs], Iterable[Part]],
        received: Iterable[Tensor] = (),
        steps: int = 1,
    ) -> None:
        """`parts` will be called with the gradients of these outputs.

        If something `received` needs gradients itself, then the backward pass goes on beyond these outputs.
        """
        caught = [_own(output) for output in outputs if output.requires_grad]
        if not caught:
            return
        running, place = self.running, len(self.running.catches)
        shapes = [output.shape for output in outputs if output.requires_grad]
        running.catches.append(Catch(parts, shapes, steps))
        for i, output in enumerate(caught):
            output.register_hook(partial(running.arrived, place, i))
        if not any(tensor.requires_grad for tensor in received):
            running.edges += map(get_gradient_edge, caught)


def _own(output: Tensor) -> Tensor:
    """The tensor whose gradient is caught: what a view shows whole, since writing to a view changes it."""
    base = output._base
    whole = base is not None and not base.is_leaf and base.numel() == output.numel()
    return base if whole and base.is_contiguous() and output.is_contiguous() else output  # type: ignore[union-attr, return-value]


def hook(module: nn.Module, recorder: Recorder, parts: Callable[[LayerCall, Any], Iterable[Part]]) -> None:
    """Makes the recorder catch what comes back to a module's outputs; `parts` makes the gradients of it."""

    def caught(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        tensors = _tensors([*args, *kwargs.values()])
        received = [(value, value._version) for value in tensors]
        call = LayerCall(recorder.instances, args, kwargs, output, recorder.spans)

        def made(backs: Backs) -> Iterable[Part]:
            if any(value._version != version for value, version in received):
                raise InputError(
                    f"What {a_type(module)} received was changed in place after it was used. "
                    "Use the operation that is not in place."
                )
            return parts(call, backs)

        recorder.catch(_tensors([output]), made, tensors)

    module.register_forward_hook(caught, prepend=True, with_kwargs=True)


def _tensors(values: list[Any]) -> list[Tensor]:
    """All tensors within; most values are tensors themselves."""
    return values if all(isinstance(value, Tensor) for value in values) else leaves(values)


@dataclass(eq=False)
class ByRule:
    """The gradients of a layer by its rule, which has the instances along the first axis.

    A layer that has them along the second, as recurrent and attention layers do unless told otherwise, is known
    by what first comes back to it; that this was read rightly is tried like everything else.
    """

    parts: Callable[..., Iterable[Part]]  # of the rule
    name: str
    module: nn.Module
    seconds: dict[str, bool]  # which layers have the instances along the second axis, as far as that is known

    def __call__(self, call: LayerCall, backs: list[Tensor]) -> Iterable[Part]:
        """From the gradient of its output and what it received."""
        back, b = backs[0], call.instances
        if self.name not in self.seconds:
            self.seconds[self.name] = len(back) != b and back.ndim > 1 and back.shape[1] == b
        ordered = partial(_first, b) if self.seconds[self.name] else Tensor.detach
        if back.is_nested or (call.spans and len(back) != b and len(back) in call.spans):
            ordered = partial(_padded, call.spans)
        received = (back, *call.args, *call.kwargs.values())
        given = [ordered(x) if isinstance(x, Tensor) else mapped(ordered, x) for x in received]
        return self.parts(self.module, *given)


def _first(b: int, values: Tensor) -> Tensor:
    """With the second axis first, if that is the instances'."""
    values = values.detach()
    return values.transpose(0, 1) if values.ndim > 1 and values.shape[1] == b else values


def _padded(spans: Mapping[int, Spans], values: Tensor) -> Tensor:
    """With a row [most, ...] for each instance, if the positions of all are in one row, or nested."""
    values = values.detach()
    if values.is_nested:
        return torch.nested.to_padded_tensor(values, 0.0)
    own = spans.get(len(values)) if values.ndim else None
    return values if own is None else own.laid_out(values)


@dataclass(frozen=True, eq=False)
class Reordered:
    """A sink of parts whose instances come in another order."""

    sink: Sink
    order: Tensor  # for each instance its row

    def append(self, part: Part) -> None:
        """Takes the gradients of one more parameter."""
        self.sink.append(part.changed(lambda values: values[self.order]))


@dataclass(frozen=True, eq=False)
class Gathering:
    """A sink of parts, some of which have several rows for each of b instances; some are left out."""

    sink: Sink
    b: int
    packed: Set[int]  # the ids of parameters whose parts are gathered,
    without: Set[int]  # and of those without any
    calls: dict[int, int]  # how many parts each of those that are gathered had in the first pass
    seen: Counter[int] = field(default_factory=Counter)

    def append(self, part: Part) -> None:
        """Takes the gradients of one more parameter."""
        key = id(part.parameter)
        if key in self.packed:
            self.seen[key] += 1
            if len(part) > self.b and len(part) % self.b == 0:
                part = part.gathered(self.b)
        if key not in self.without:
            self.sink.append(part)

    def close(self) -> None:
        """Refuses more parts than there were: the rows of some instances each, and not some rows of all."""
        if self.b > 1 and any(n > self.calls.setdefault(key, n) for key, n in self.seen.items()):
            raise ApartError("A layer received the instances in more calls than before.")


@dataclass(frozen=True, eq=False)
class Instrument:
    """A clone of the model's module, and the recorder that its layers tell."""

    clone: nn.Module
    recorder: Recorder = field(default_factory=Recorder)

    def forward(self, inputs: Inputs, outputs: Outputs) -> tuple[Tensor, Pass]:
        """The logits [b, c], and what will be caught on the way back from them."""
        running = self.recorder.running = Pass()
        b = self.recorder.instances = len(inputs) if isinstance(inputs, Tensor) else count(inputs)
        self.recorder.spans = inputs.made.spans if isinstance(inputs, Collated) else {}
        running.edges += map(get_gradient_edge, self.recorder.beyond)
        try:
            with torch.inference_mode(mode=False), torch.enable_grad():
                return outputs.computed(self.clone, inputs, b), running
        except BaseException:
            running.close()
            raise
        finally:
            self.recorder.running = Pass()


@dataclass(frozen=True, eq=False)
class Recording:
    """How the passes of a model are recorded: by clones of its module, one for each pass at a time."""

    first: Instrument  # by which it was tried
    clones: Clones[Instrument]
    outputs: Outputs
    seconds: dict[str, bool]  # as of `ByRule`
    uncovered: tuple[str, ...] = ()  # the types of modules whose parameters no rule covers
    copies: Mapping[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)  # by module and name, the
    # shapes of parameters that are given as copies
    packed: Set[int] = frozenset()  # the ids of parameters of layers with several rows for each instance,
    without: Set[int] = frozenset()  # of those whose gradients come from elsewhere,
    alone: Set[int] = frozenset()  # and of those whose gradients come by vmap over their module
    calls: dict[int, int] = field(default_factory=dict)  # as of `Gathering`

    def passes(
        self, inputs: Inputs, cotangents: Callable[[Tensor], Sequence[Tensor]], sink: Callable[[], S]
    ) -> Iterator[S]:
        """A sink with the gradients for each cotangent [b, c] of the logits, from one forward pass."""
        with self.clones.lent() as own:
            logits, running = own.forward(inputs, self.outputs)
            order = inputs.made.order if isinstance(inputs, Collated) else None
            logits = logits if order is None else logits[order]
            try:
                several = cotangents(logits.detach())
                for i, cotangent in enumerate(several):
                    found = sink()
                    taken: Sink = found if order is None else Reordered(found, order)
                    if self.packed or self.without:
                        taken = Gathering(taken, len(cotangent), self.packed, self.without, self.calls)
                    running.back(logits, cotangent, taken, keep=i < len(several) - 1)
                    if isinstance(taken, Gathering):
                        taken.close()
                    own.recorder.volume, own.recorder.in_cache = running.volume, running.in_cache
                    yield found
            finally:
                running.close()


def pulled_back(
    logits: Tensor, to: Sequence[Tensor] | Sequence[GradientEdge], cotangent: Tensor, **options: Any
) -> tuple[Tensor, ...]:
    """The gradients at tensors or edges, given that of the logits; `options` are those of torch.

    A cotangent that is passed to torch as `grad_outputs` makes it import symbolic shapes, and sympy with them,
    which takes most of a second. The gradient of the sum of products has the same bits: a cotangent times one.
    """
    with torch.inference_mode(mode=False), torch.enable_grad():
        given = cotangent.clone() if cotangent.is_inference() else cotangent
        total = (logits * given).sum()
    return torch.autograd.grad(total, to, **options)
