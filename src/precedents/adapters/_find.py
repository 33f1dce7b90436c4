"""Which kind of classifier a user brings, and so how it is read."""

from collections.abc import Callable
from typing import Any

from torch import nn

from precedents import adapters
from precedents.adapters._adapter import Reading
from precedents.classifier.classifier import Classifier
from precedents.errors import InputError
from precedents.registry import Registry

Kind = Callable[[Any], Reading | None]

KINDS: Registry[Kind] = Registry("kind of classifier", adapters)


def read(model: Any) -> Reading:
    """By the first kind that knows the model; a module or a Classifier is taken as it is."""
    if isinstance(model, Classifier):
        return Reading(model.module)
    for name in KINDS.names():
        reading = KINDS.get(name)(model)
        if reading is not None:
            return reading
    if isinstance(model, nn.Module):
        return Reading(model)
    others = "".join(f", or a model of {name.replace('_', ' ')}" for name in KINDS.names())
    raise InputError(
        f"The model is a {type(model).__name__}. Pass a torch.nn.Module{others}. Anything else that is "
        "computed by torch becomes one as a class with a method forward."
    )
