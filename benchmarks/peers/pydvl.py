"""pyDVL: its gradient blocks, with the identity in the place of the inverse Hessian."""

import numpy as np
import torch
from pydvl.influence import InfluenceMode
from pydvl.influence.torch.base import (
    TensorOperator,
    TorchBatch,
    TorchGradientProvider,
    TorchOperatorGradientComposition,
)
from torch import Tensor, nn
from torch.nn.functional import cross_entropy


class Identity(TensorOperator):
    """Leaves gradients as they are."""

    device, dtype = torch.device("cpu"), torch.float32

    def __init__(self, size: int) -> None:
        self.size = size

    @property
    def input_size(self) -> int:
        """The number of parameters."""
        return self.size

    def to(self, device: torch.device) -> "Identity":  # noqa: ARG002
        """There is nothing to move."""
        return self

    def _apply_to_vec(self, vec: Tensor) -> Tensor:
        return vec

    def _apply_to_mat(self, mat: Tensor) -> Tensor:
        return mat


def scores(
    model: nn.Module, x_train: Tensor, y_train: Tensor, x_cases: Tensor, y_cases: Tensor, *, batch: int
) -> np.ndarray:
    """Grad-Dot [m, n]."""
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    provider = TorchGradientProvider(model, cross_entropy, parameters)
    block = TorchOperatorGradientComposition(Identity(sum(p.numel() for p in parameters.values())), provider)
    cases = torch.cat([block.transformed_grads(part) for part in batches(x_cases, y_cases, batch)])
    found = [
        block.interactions_from_transformed_grads(cases, part, InfluenceMode.Up)
        for part in batches(x_train, y_train, batch)
    ]
    return torch.cat(found, dim=1).numpy()


def batches(x: Tensor, y: Tensor, size: int) -> list[TorchBatch]:
    """Consecutive instances."""
    return [TorchBatch(*pair) for pair in zip(x.split(size), y.split(size), strict=True)]
