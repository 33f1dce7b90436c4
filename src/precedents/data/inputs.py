"""What a model is fed: a tensor, or a tuple or dict of them, with the instances along the first axis."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias
from warnings import catch_warnings, simplefilter

import numpy as np
import torch
from torch import Tensor, nn

Inputs: TypeAlias = Tensor | tuple["Inputs", ...] | dict[str, "Inputs"]


def tensors(value: Any) -> Inputs:
    """The same nest with tensors for leaves: arrays, lists of numbers and numbers are converted."""
    if isinstance(value, dict):
        return {key: tensors(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return tuple(tensors(part) for part in value)
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        with catch_warnings():
            simplefilter("ignore")  # nobody writes to inputs: a file may be mapped for reading only
            return torch.as_tensor(value)
    return torch.as_tensor(value)


def mapped(function: Callable[[Tensor], Tensor], inputs: Inputs) -> Inputs:
    """The same nest with `function` applied to every tensor."""
    if isinstance(inputs, dict):
        return {key: mapped(function, part) for key, part in inputs.items()}
    if isinstance(inputs, tuple):
        return tuple(mapped(function, part) for part in inputs)
    return function(inputs)


def leaves(inputs: Inputs) -> Iterator[Tensor]:
    """The tensors of the nest, in order."""
    if isinstance(inputs, Tensor):
        yield inputs
    else:
        for part in inputs.values() if isinstance(inputs, dict) else inputs:
            yield from leaves(part)


def count(inputs: Inputs) -> int:
    """How many instances there are."""
    return len(next(leaves(inputs)))


def between(inputs: Inputs, start: int, stop: int) -> Inputs:
    """Some consecutive instances."""
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


def stacked(items: Sequence[Inputs]) -> Inputs:
    """Instances one by one become one nest with the instances along a new first axis."""
    first = items[0]
    if isinstance(first, dict):
        return {key: stacked([item[key] for item in items]) for key in first}  # type: ignore[index, call-overload]
    if isinstance(first, tuple):
        return tuple(stacked([item[i] for item in items]) for i in range(len(first)))  # type: ignore[index]
    return torch.stack(items)  # type: ignore[arg-type]


def fed(module: nn.Module, inputs: Inputs) -> Any:
    """The module's output: a tuple is its positional arguments, a dict its keyword arguments."""
    if isinstance(inputs, dict):
        return module(**inputs)
    return module(*inputs) if isinstance(inputs, tuple) else module(inputs)
