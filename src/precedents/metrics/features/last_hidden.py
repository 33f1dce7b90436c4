"""phi = what the last layer receives: the model's own summary of the input."""

from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.data.examples import Batch


def last_hidden(model: Classifier, batch: Batch) -> Tensor:
    """The last hidden layer [b, d]."""
    return model.hidden(batch.inputs, last=True)[0].double()
