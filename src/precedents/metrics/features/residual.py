"""phi = the residual: the loss's derivatives by the logits, all that it tells the last layer."""

import torch
from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.data.examples import Batch


@torch.no_grad()
def residual(model: Classifier, batch: Batch) -> Tensor:
    """Residuals [b, classes] of the model's own loss: for the cross entropy, softmax - onehot."""
    return model.loss.residuals(model.finite_logits(batch), batch.labels)
