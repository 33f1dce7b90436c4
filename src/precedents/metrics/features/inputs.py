"""phi = x: the input itself, as the model is fed it; blind to the model."""

from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.data.examples import Batch


def inputs(model: Classifier, batch: Batch) -> Tensor:
    """The inputs as vectors [b, d]."""
    return model.vectors(batch.inputs)
