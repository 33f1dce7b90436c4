"""phi = all hidden layers, flattened and put one after the other."""

import torch
from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.data.examples import Batch


def all_hidden(model: Classifier, batch: Batch) -> Tensor:
    """All hidden layers [b, d]."""
    return torch.cat(model.hidden(batch.inputs), dim=1).double()
