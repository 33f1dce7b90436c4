"""What a rule is: layer types, and either a formula for their gradients or an equal module that has one."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge

from precedents.gradients.factors import Part

Parts = Iterable[Part]


class Sink(Protocol):
    """Takes the gradients as they come."""

    def append(self, part: Part, /) -> None:
        """One more."""


@dataclass(eq=False)
class Catch:
    """Gradients to be caught in the backward pass, and what they make."""

    parts: Callable[[Sequence[Tensor | None]], Parts]  # from the gradients caught, one per output; None is zero
    shapes: list[torch.Size]
    steps: int = 1  # in which the layer works through its numbers, one after the other
    backs: dict[int, Tensor] = field(default_factory=dict)

    def give(self, sink: Sink) -> None:
        """Gives the parts that what came back makes, which is forgotten."""
        backs, self.backs = self.backs, {}
        if backs:
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
        torch.autograd.grad(logits, self.edges, cotangent, retain_graph=keep, allow_unused=True)
        with torch.no_grad():
            for catch in self.catches:  # of whose outputs only some were used
                catch.give(sink)

    def close(self) -> None:
        """Forgets everything."""
        self.edges, self.catches, self.sink = [], [], list[Part]()


def _spent(_: Sequence[Tensor | None]) -> Parts:
    return ()


class Recorder:
    """Collects the catches of a forward pass."""

    def __init__(self) -> None:
        self.running = Pass()
        self.instances = 0  # how many instances the pass has
        self.volume = self.in_cache = 0  # as of the last backward pass

    def catch(
        self,
        outputs: Iterable[Tensor],
        parts: Callable[[Sequence[Tensor | None]], Parts],
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


@dataclass(frozen=True)
class Rule:
    """For layers of exactly these types.

    `parts(module, grad, *received)` gives the gradients from the gradient of the layer's output and the
    arguments that the layer received. `rewritten(module, recorder)` gives instead a module that computes
    the same from the same parameters, and tells the recorder where gradients are to be caught. `whole` says
    that the formula is for the parameters of the modules inside as well.
    """

    types: tuple[type[nn.Module], ...]
    parts: Callable[..., Iterator[Part]] | None = None
    rewritten: Callable[[Any, Recorder], nn.Module] | None = None
    applies: Callable[[Any], bool] = lambda _: True
    whole: bool = False


def _own(output: Tensor) -> Tensor:
    """The tensor whose gradient is caught: what a view shows whole, since writing to a view changes it."""
    base = output._base
    whole = base is not None and not base.is_leaf and base.numel() == output.numel()
    return base if whole and base.is_contiguous() and output.is_contiguous() else output  # type: ignore[union-attr, return-value]


def positions(values: Tensor) -> Tensor:
    """[b, ..., d] as [b, t, d]."""
    return values.reshape(len(values), -1, values.shape[-1])


def trainable(parameter: Tensor | None) -> bool:
    """Whether the parameter is there and counts."""
    return parameter is not None and parameter.requires_grad
