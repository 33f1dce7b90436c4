"""phi = the gradient of the instance's loss by all trainable parameters."""

from precedents.classifier.classifier import Classifier
from precedents.data.examples import Batch
from precedents.gradients.gradients import loss_gradients
from precedents.gradients.rows import Rows


def gradient(model: Classifier, batch: Batch) -> Rows:
    """Loss gradients [b, parameters]."""
    return loss_gradients(model, batch)
