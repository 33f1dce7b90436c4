"""phi = the residual: the loss's derivatives by the logits, all that it tells the last layer."""

import torch
from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.data.examples import Batch

PHRASE = "the errors of the outputs"


@torch.no_grad()
def residual(model: Classifier, batch: Batch) -> Tensor:
    """Residuals [b, classes] of the model's own loss, float64: for the cross entropy, softmax - onehot.

    >>> import torch, precedents as pr
    >>> train = pr.Examples.of((torch.eye(2), torch.tensor([0, 1])))
    >>> model = pr.Classifier.of(torch.nn.Linear(2, 3), train)
    >>> residual(model, train.take([0, 1])).sum(dim=1).abs() < 1e-12
    tensor([True, True])
    """
    return model.loss.residuals(model.finite_logits(batch), batch.labels)
