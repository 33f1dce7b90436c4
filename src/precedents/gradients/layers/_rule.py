"""What a layer rule is: layer types, and either a formula for their gradients or an equal module that has one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from torch import nn

from precedents.gradients.factors import Part
from precedents.gradients.recording import Recorder


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
