"""phi = all hidden layers, flattened and put one after the other."""

import torch
from torch import Tensor

from precedents.data import Batch
from precedents.model import Classifier


def all_hidden(model: Classifier, batch: Batch) -> Tensor:
    """All hidden layers [b, d]."""
    return torch.cat(model.hidden(batch.inputs), dim=1).double()
