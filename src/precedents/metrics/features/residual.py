"""phi = the residual: the softmax less the label, all that the loss tells the last layer."""

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from precedents.classifier.classifier import Classifier
from precedents.data.examples import Batch


@torch.no_grad()
def residual(model: Classifier, batch: Batch) -> Tensor:
    """Residuals [b, classes]."""
    softmax = model.finite_logits(batch).softmax(dim=1)
    return softmax - one_hot(batch.labels, model.classes)
