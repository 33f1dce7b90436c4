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
        edges = [get_gradient_edge(output) for output in outputs if output.requires_grad]
        if edges:
            self.catches.append(Catch(edges, parts))

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


def positions(values: Tensor) -> Tensor:
    """[b, ..., d] as [b, t, d]."""
    return values.reshape(len(values), -1, values.shape[-1])


def trainable(parameter: Tensor | None) -> bool:
    """Whether the parameter is there and counts."""
    return parameter is not None and parameter.requires_grad
