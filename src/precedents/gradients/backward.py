"""One backward pass from logits with a cotangent, as `torch.autograd.grad` makes it, and quick the first time.

A cotangent that is passed to torch as `grad_outputs` makes it import symbolic shapes, and sympy with them,
which takes most of a second. The gradient of the sum of products has the same bits: a cotangent times one.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge


def pulled_back(
    logits: Tensor, to: Sequence[Tensor] | Sequence[GradientEdge], cotangent: Tensor, **options: Any
) -> tuple[Tensor, ...]:
    """The gradients at tensors or edges, given that of the logits; `options` are those of torch."""
    with torch.inference_mode(mode=False), torch.enable_grad():
        given = cotangent.clone() if cotangent.is_inference() else cotangent
        total = (logits * given).sum()
    return torch.autograd.grad(total, to, **options)
