"""phi = what the last layer receives: the model's own summary of the input."""

from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.data.examples import Batch

PHRASE = "what the last layer receives"


def last_hidden(model: Classifier, batch: Batch) -> Tensor:
    """The last hidden layer [b, d], float64.

    >>> import torch, precedents as pr
    >>> train = pr.Examples.of((torch.eye(2), torch.tensor([0, 1])))
    >>> network = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))
    >>> model = pr.Classifier.of(network, train)
    >>> last_hidden(model, train.take([0, 1])).shape
    torch.Size([2, 4])
    """
    return model.hidden(batch.inputs, last=True)[0].double()
