"""A nest of values as JSON beside its tensors, and back: tuples, lists, ranges, slices and our dataclasses.

What is `known` on both sides (a parameter of the model, the model's workspace) is written by its name. A
tensor keeps the order in which its axes are stored, on which the last digits of products depend.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from precedents.runtime.sparse import SparseRows, joined_parts, parts

PLACES = (
    "precedents.gradients.",
    "precedents.curvature.",
    "precedents.index.",
    "precedents.metrics.preconditioners.",
)  # whose dataclasses may be written


class UnwritableError(Exception):
    """A value that is not made of tensors and plain values."""


def written(value: Any, known: Mapping[int, str], tensors: dict[str, Tensor]) -> Any:
    """The value as JSON; its tensors are added to `tensors`. `known` has names by the ids of values."""
    if id(value) in known:
        return {"known": known[id(value)]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, SparseRows):
        held, said = parts(value)
        return {"sparse": said, "parts": {name: _tensor(each, tensors) for name, each in held.items()}}
    if isinstance(value, Tensor) and value.device.type == "cpu":
        return _tensor(value, tensors)
    if isinstance(value, (tuple, list)):
        return {type(value).__name__: [written(part, known, tensors) for part in value]}
    if isinstance(value, (range, slice)):
        return {type(value).__name__: [value.start, value.stop, value.step]}
    kind = type(value)
    if is_dataclass(value) and kind.__module__.startswith(PLACES):
        own = {field.name: written(getattr(value, field.name), known, tensors) for field in fields(value)}
        return {"class": [kind.__module__, kind.__name__], "fields": own}
    raise UnwritableError(kind.__name__)


def read(nest: Any, known: Mapping[str, Any], tensor: Callable[[str], Tensor]) -> Any:
    """The value that was written; a nest that was not raises a KeyError, TypeError or ValueError."""
    if not isinstance(nest, dict):
        return nest
    (kind, content), *_ = nest.items()
    if kind == "known":
        return known[content]
    if kind == "tensor":
        found = tensor(content)
        return (found.reshape(nest["shape"]) if "shape" in nest else found).permute(nest["order"])
    if kind == "sparse":
        return joined_parts({name: read(part, known, tensor) for name, part in nest["parts"].items()}, content)
    if kind in ("tuple", "list"):
        every = (read(part, known, tensor) for part in content)
        return tuple(every) if kind == "tuple" else list(every)
    if kind in ("range", "slice"):
        return {"range": range, "slice": slice}[kind](*content)
    if kind == "class":
        return _class(*content)(**{name: read(part, known, tensor) for name, part in nest["fields"].items()})
    raise ValueError(f"{kind!r} is no kind of value")


def _tensor(value: Tensor, tensors: dict[str, Tensor]) -> dict[str, Any]:
    """Its axes go from the widest step to the narrowest; what shares memory with another is copied.

    The same numbers are written once: of a Linear what came back is the gradient of the bias, and a factor of
    that of the weight.
    """
    steps = value.stride()
    axes = sorted(range(value.ndim), key=lambda axis: (-steps[axis], axis))
    laid = value.detach().permute(axes)
    if not laid.is_contiguous():
        axes, laid = list(range(value.ndim)), value.detach().contiguous()
    order = [axes.index(axis) for axis in range(value.ndim)]
    for name, other in tensors.items():
        if other.dtype == laid.dtype and torch.equal(other.reshape(-1), laid.reshape(-1)):
            return {"tensor": name, "shape": list(laid.shape), "order": order}
    if any(laid.untyped_storage().data_ptr() == t.untyped_storage().data_ptr() for t in tensors.values()):
        laid = laid.clone()
    name = str(len(tensors))
    tensors[name] = laid
    return {"tensor": name, "order": order}


def _class(module: str, name: str) -> Any:
    found = getattr(import_module(module), name, None) if module.startswith(PLACES) else None
    if not (isinstance(found, type) and is_dataclass(found)):
        raise ValueError(f"{module}.{name} is no class of a stored value")
    return found
