"""phi = the gradient of the instance's loss by all trainable parameters."""

from precedents.classifier.classifier import Classifier
from precedents.data.examples import Batch
from precedents.gradients.gradients import loss_gradients
from precedents.gradients.rows import Rows

PHRASE = "the loss gradients"


def gradient(model: Classifier, batch: Batch) -> Rows:
    """Loss gradients [b, parameters] of a `batch`: per-example (per-sample) gradients, from one pass.

    >>> import torch, precedents as pr
    >>> train = pr.Examples.of((torch.eye(2), torch.tensor([0, 1])))
    >>> model = pr.Classifier.of(torch.nn.Linear(2, 3), train)
    >>> gradient(model, train.take([0, 1])).dense().shape  # 2 x 3 weights and 3 biases
    torch.Size([2, 9])
    """
    return loss_gradients(model, batch)
