"""phi = all hidden layers, flattened and put one after the other."""

import torch
from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.data.examples import Batch

PHRASE = "what all hidden layers give"


def all_hidden(model: Classifier, batch: Batch) -> Tensor:
    """All hidden layers [b, d], float64.

    >>> import torch, precedents as pr
    >>> train = pr.Examples.of((torch.eye(2), torch.tensor([0, 1])))
    >>> layers = [torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 5), torch.nn.Linear(5, 3)]
    >>> network = torch.nn.Sequential(*layers)
    >>> model = pr.Classifier.of(network, train)
    >>> all_hidden(model, train.take([0, 1])).shape  # 4 and 5 numbers
    torch.Size([2, 9])
    """
    return torch.cat(model.hidden(batch.inputs), dim=1).double()
