"""Plain autograd, one instance at a time: what scores are compared with."""

from collections.abc import Callable
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy


def cosines(
    module: nn.Module, x: Tensor, y: Tensor, loss: Callable[[Tensor, Tensor], Tensor] = cross_entropy
) -> Tensor:
    """The cosines [n, n] of the gradients of all instances' losses, by a copy of the module in eval mode."""
    copy = deepcopy(module).eval()
    parameters = [p for p in copy.parameters() if p.requires_grad]
    rows = []
    for i in range(len(x)):
        grads = torch.autograd.grad(
            loss(copy(x[i : i + 1]), y[i : i + 1]).sum(), parameters, materialize_grads=True
        )
        rows.append(torch.cat([grad.flatten().double() for grad in grads]))
    units = torch.nn.functional.normalize(torch.stack(rows), eps=0.0)
    return units @ units.T
