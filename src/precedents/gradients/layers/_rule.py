"""What a layer rule is: layer types, and a formula for their gradients or an equal module that has one."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from precedents.gradients.factors import Part
from precedents.gradients.recording import Recorder

EVERYTHING = None  # a rule covers all parameters of the layer and of the modules inside it


@dataclass(frozen=True)
class Rule:
    """For layers of exactly these types; a text names one of a library that may not be there.

    `parts(module, grad, *received)` gives the gradients from the gradient of the layer's output and the
    arguments that the layer received. `rewritten(module, recorder)` gives instead a module that computes
    the same from the same parameters, and tells the recorder where gradients are to be caught. A layer with a
    parameter of another name than those that the rule `covers` is computed by a fallback. `example` gives a
    layer and what four instances feed it: the tests hold the rule to plain autograd on it. `sites`, called as
    `parts` is, gives the same gradients with all positions in the open; without it what `parts` has formed is
    not divided into shares.
    """

    types: tuple[type[nn.Module] | str, ...]
    parts: Callable[..., Iterable[Part]] | None = None
    rewritten: Callable[[Any, Recorder], nn.Module] | None = None
    applies: Callable[[Any], bool] = lambda _: True
    covers: tuple[str, ...] | None = ("weight", "bias")  # the names of the layer's own parameters
    sites: Callable[..., Iterable[Part]] | None = None
    broadcasts: bool = False  # whether the layer may receive one input [1, ...] that is meant for all instances
    example: Callable[[], tuple[nn.Module, tuple[Tensor, ...]]] = field(kw_only=True)

    def follows(self, module: nn.Module) -> bool:
        """Whether the gradients of the module are to be computed by this rule."""
        if self.covers is EVERYTHING:
            return self.applies(module)
        trains = any(p.requires_grad for p in module.parameters(recurse=False))
        return trains and set(module._parameters) <= set(self.covers) and self.applies(module)
