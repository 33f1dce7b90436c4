"""dattri: TracInAttributor with one checkpoint of weight one."""

import numpy as np
import torch
from dattri.algorithm.tracin import TracInAttributor
from dattri.task import AttributionTask
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset


def scores(
    model: nn.Module, x_train: Tensor, y_train: Tensor, x_cases: Tensor, y_cases: Tensor, *, batch: int
) -> np.ndarray:
    """Grad-Dot [m, n]."""

    def loss(parameters: dict[str, Tensor], instance: tuple[Tensor, Tensor]) -> Tensor:
        x, y = instance
        return cross_entropy(functional_call(model, parameters, x[None]), y[None])

    task = AttributionTask(loss_func=loss, model=model, checkpoints=model.state_dict())
    attributor = TracInAttributor(task, weight_list=torch.ones(1), normalized_grad=False)
    attributor.projector_kwargs = None  # as an argument, None stands for a projection to 512 dimensions
    train, cases = TensorDataset(x_train, y_train), TensorDataset(x_cases, y_cases)
    with torch.no_grad():
        found = attributor.attribute(DataLoader(train, batch), DataLoader(cases, batch))
    return found.T.numpy()
