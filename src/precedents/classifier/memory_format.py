"""The layout in which convolutions are fastest on a CPU: channels last, where the model runs in it."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from precedents.errors import PrecedentsError


@torch.no_grad()
def laid_out(module: nn.Module, logits: Callable[[], Tensor], usual: Tensor) -> Tensor:
    """Stores the weights of two-dimensional convolutions with their channels last; activations follow them.

    A module that counts on the usual layout, as `view` does, keeps it. Gives the logits in the layout chosen.
    """
    weights = _weights(module)
    if not weights or any(weight.device.type != "cpu" for weight in weights):
        return usual
    store(module, torch.channels_last)
    try:
        found = logits()
        if torch.allclose(found, usual, rtol=1e-3, atol=1e-5, equal_nan=True):
            return found
    except PrecedentsError:
        pass
    store(module, torch.contiguous_format)
    return usual


def layout(module: nn.Module) -> torch.memory_format:
    """How the weights of its convolutions are stored."""
    usual = all(weight.is_contiguous() for weight in _weights(module))
    return torch.contiguous_format if usual else torch.channels_last


def store(module: nn.Module, layout: torch.memory_format) -> None:
    """Stores the weights of its convolutions in this way; their values are the same."""
    for weight in _weights(module):
        weight.data = weight.data.contiguous(memory_format=layout)


def _weights(module: nn.Module) -> list[nn.Parameter]:
    layers = [layer for layer in module.modules() if type(layer) is nn.Conv2d]
    return [weight for layer in layers if (weight := layer._parameters.get("weight")) is not None]
