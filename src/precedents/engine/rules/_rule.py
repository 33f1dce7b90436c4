"""What a rule is: layer types, and either a formula for their gradients or an equal module that has one."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge

from precedents.engine.parts import Part

Parts = Iterable[Part]


@dataclass(frozen=True, eq=False)
class Catch:
    """Gradients to be caught in the backward pass, and what they make."""

    edges: list[GradientEdge]
    parts: Callable[[Sequence[Tensor | None]], Parts]  # from the gradients caught, one per edge; None is zero


class Recorder:
    """Collects the catches of one forward pass."""

    def __init__(self) -> None:
        self.catches: list[Catch] = []
        self.volume = 0  # how many numbers came back in the last pass
        self.instances = 0  # how many instances the pass has

    def catch(self, outputs: Iterable[Tensor], parts: Callable[[Sequence[Tensor | None]], Parts]) -> None:
        """`parts` will be called with the gradients of these outputs."""
        caught = [output for output in outputs if output.requires_grad]
        shapes = [output.shape for output in caught]

        def shaped(backs: Sequence[Tensor | None]) -> Parts:
            pairs = zip(backs, shapes, strict=True)
            return parts([None if back is None else back.reshape(shape) for back, shape in pairs])

        if caught:
            self.catches.append(Catch([get_gradient_edge(_own(output)) for output in caught], shaped))

    def drained(self) -> list[Catch]:
        """The catches so far, which are forgotten."""
        catches, self.catches = self.catches, []
        return catches


@dataclass(frozen=True)
class Rule:
    """For layers of exactly these types.

    `parts(module, grad, *received)` gives the gradients from the gradient of the layer's output and the
    arguments that the layer received. `rewritten(module, recorder)` gives instead a module that computes
    the same from the same parameters, and tells the recorder where gradients are to be caught.
    """

    types: tuple[type[nn.Module], ...]
    parts: Callable[..., Iterator[Part]] | None = None
    rewritten: Callable[[Any, Recorder], nn.Module] | None = None
    applies: Callable[[Any], bool] = lambda _: True


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
