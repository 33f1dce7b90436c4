"""What a model is fed: a tensor, or a tuple or dict of them, with the instances along the first axis."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from precedents.runtime.guards import without_warnings

Inputs: TypeAlias = Tensor | tuple["Inputs", ...] | dict[str, "Inputs"]
Nest = TypeVar("Nest")  # Inputs, or what a layer receives and returns: lists and other values as well


def tensors(value: Any) -> Inputs:
    """A nest of dicts and tuples with tensors for leaves: arrays, lists and numbers are converted."""
    if isinstance(value, dict):
        return {key: tensors(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return tuple(tensors(part) for part in value)
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        with without_warnings():  # nobody writes to inputs: a file may be mapped for reading only
            return torch.as_tensor(value)
    return torch.as_tensor(value)


def unusable(tensor: Tensor) -> str | None:
    """Why nothing can be computed with a tensor, and what to do about it; none if something can."""
    if tensor.is_meta:
        return "has a shape and no values: it is on the device meta. Load it on a device, for example the cpu"
    if tensor.is_nested:
        return "is a nested tensor. Pad it: torch.nested.to_padded_tensor(x, 0.0)"
    if tensor.layout is not torch.strided:
        return f"is a sparse tensor ({str(tensor.layout)[6:]}). Make it dense: x.to_dense()"
    if tensor.is_quantized:
        return f"is quantised ({tensor.dtype}), and has no gradients. Use what it was made from: x.dequantize()"
    if tensor.is_complex():
        return "has complex numbers, of which losses and cosines are none. Use real ones: torch.view_as_real(x)"
    return None


def mapped(function: Callable[[Tensor], Tensor], nest: Nest) -> Nest:
    """A nest of dicts, tuples and lists with `function` applied to every tensor; what is none stays."""
    if isinstance(nest, Tensor):
        return cast("Nest", function(nest))
    if isinstance(nest, dict):
        return cast("Nest", {key: mapped(function, part) for key, part in nest.items()})
    if isinstance(nest, (tuple, list)):
        parts = [mapped(function, part) for part in nest]
        return cast("Nest", parts if isinstance(nest, list) else tuple(parts))
    return nest


def leaves(nest: Any) -> Iterator[Tensor]:
    """The tensors in a nest of dicts, tuples and lists, in order."""
    if isinstance(nest, Tensor):
        yield nest
    elif isinstance(nest, (dict, tuple, list)):
        for part in nest.values() if isinstance(nest, dict) else nest:
            yield from leaves(part)


def count(inputs: Inputs) -> int:
    """How many instances there are."""
    return len(next(leaves(inputs)))


def taken(inputs: Inputs, indices: Sequence[int]) -> Inputs:
    """These instances: consecutive ones are a view, others a copy."""
    if isinstance(indices, range) and indices.step == 1:
        return between(inputs, indices.start, indices.stop)
    return mapped(lambda leaf: leaf[list(indices)], inputs)


def between(inputs: Inputs, start: int, stop: int) -> Inputs:
    """The instances from `start` to before `stop`, as a view."""
    return mapped(lambda leaf: leaf[start:stop], inputs)


def alone(inputs: Inputs, i: int) -> Inputs:
    """Instance i as a batch of one."""
    return between(inputs, i, i + 1)


def bare(inputs: Inputs, i: int) -> Inputs:
    """Instance i by itself; without its padding, where an attention mask [b, t] says what that is."""
    mask = inputs.get("attention_mask") if isinstance(inputs, dict) else None
    if not isinstance(mask, Tensor) or mask.ndim != 2:
        return mapped(lambda leaf: leaf[i], inputs)
    real = mask[i] != 0
    return mapped(lambda leaf: leaf[i][real] if leaf.shape[:2] == mask.shape else leaf[i], inputs)


def shapes(inputs: Inputs) -> list[tuple[int, ...]]:
    """The shapes of the tensors of the nest, in order."""
    return [tuple(leaf.shape) for leaf in leaves(inputs)]


def joined(pieces: Sequence[Inputs]) -> Inputs:
    """Consecutive batches as one: the tensors of the nests one after the other along their first axis."""
    return pieces[0] if len(pieces) == 1 else _together(torch.cat, pieces)


def stacked(items: Sequence[Inputs]) -> Inputs:
    """Instances one by one become one nest with the instances along a new first axis."""
    return _together(torch.stack, items)


def _together(function: Callable[[Any], Tensor], nests: Sequence[Any]) -> Inputs:
    """One nest of several with the same form: `function` makes a tensor of those in the same place."""
    first = nests[0]
    if isinstance(first, dict):
        return {key: _together(function, [nest[key] for nest in nests]) for key in first}
    if isinstance(first, tuple):
        return tuple(_together(function, parts) for parts in zip(*nests, strict=True))
    return function(nests)
