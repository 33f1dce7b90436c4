"""phi = the gradient of the instance's loss by all trainable parameters."""

from precedents.data import Batch
from precedents.engine.gradients import loss_gradients
from precedents.engine.rows import Rows
from precedents.model import Classifier


def gradient(model: Classifier, batch: Batch) -> Rows:
    """Loss gradients [b, parameters]."""
    return loss_gradients(model, batch)
