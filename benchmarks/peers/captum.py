"""captum: TracInCP with one checkpoint, by its batched per-example gradients."""

from typing import Any

import numpy as np
from captum.influence import TracInCP
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


def scores(*work: Any, batch: int) -> np.ndarray:
    """Grad-Dot [m, n]."""
    return traced(*work, batch=batch, together=True)


def traced(
    model: nn.Module,
    x_train: Tensor,
    y_train: Tensor,
    x_cases: Tensor,
    y_cases: Tensor,
    *,
    batch: int,
    together: bool,
) -> np.ndarray:
    """Grad-Dot [m, n], the gradients of a batch formed together or one after the other."""
    tracin = TracInCP(
        model,
        TensorDataset(x_train, y_train),
        checkpoints=iter(["the model as it is"]),
        checkpoints_load_func=lambda _model, _checkpoint: 1.0,  # nothing to load; the learning rate is 1
        loss_fn=nn.CrossEntropyLoss(reduction="sum" if together else "none"),
        batch_size=batch,
        sample_wise_grads_per_batch=together,
    )
    return tracin.influence(DataLoader(TensorDataset(x_cases, y_cases), batch)).detach().numpy()
