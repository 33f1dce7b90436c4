"""phi = what the last layer receives: the model's own summary of the input."""

from torch import Tensor

from precedents.data import Batch
from precedents.model import Classifier


def last_hidden(model: Classifier, batch: Batch) -> Tensor:
    """The last hidden layer [b, d]."""
    return model.hidden(batch.inputs, last=True)[0].double()
