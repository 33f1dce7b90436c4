"""phi = x: the input itself, as the model is fed it; blind to the model."""

from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.data.examples import Batch

PHRASE = "the inputs themselves, whatever the model"


def inputs(model: Classifier, batch: Batch) -> Tensor:
    """The inputs as vectors [b, d], float64.

    >>> import torch, precedents as pr
    >>> train = pr.Examples.of((torch.eye(2), torch.tensor([0, 1])))
    >>> model = pr.Classifier.of(torch.nn.Linear(2, 3), train)
    >>> inputs(model, train.take([0, 1]))
    tensor([[1., 0.],
            [0., 1.]], dtype=torch.float64)
    """
    return model.vectors(batch.inputs)
