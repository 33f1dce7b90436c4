"""The layout in which convolutions are fastest on a CPU: channels last, where the model runs in it."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from precedents.errors import PrecedentsError
from precedents.model import Classifier


@torch.no_grad()
def lay_out(model: Classifier) -> None:
    """Stores the weights of two-dimensional convolutions with their channels last; activations follow them.

    A model that counts on the usual layout, as `view` does, keeps it.
    """
    layers = [module for module in model.module.modules() if type(module) is nn.Conv2d]
    weights = [w for layer in layers if (w := layer._parameters.get("weight")) is not None]
    if not weights or any(weight.device.type != "cpu" for weight in weights):
        return
    expected = model.logits(model.placed(model.sample))
    _store(weights, torch.channels_last)
    try:
        logits = model.logits(model.placed(model.sample))
        same = torch.allclose(logits, expected, rtol=1e-3, atol=1e-5, equal_nan=True)
    except PrecedentsError:
        same = False
    if not same:
        _store(weights, torch.contiguous_format)


def _store(weights: Sequence[Tensor], layout: torch.memory_format) -> None:
    for weight in weights:
        weight.data = weight.data.contiguous(memory_format=layout)
