"""A model of sparse inputs, on the columns alone that its first instances have: all others add nothing."""

from dataclasses import replace

import numpy as np
from torch import nn

from precedents.classifier.classifier import Classifier
from precedents.classifier.clone import sharing_clone
from precedents.runtime.sparse import SparseRows


def narrowed(model: Classifier) -> Classifier | None:
    """The model with fewer inputs, to try things on; none where they are not sparse or no Linear is first."""
    sample, clone = model.sample, sharing_clone(model.module)
    first = next((layer for layer in clone.modules() if isinstance(layer, nn.Linear)), None)
    if first is None or not isinstance(sample, SparseRows) or first.in_features != sample.shape[-1]:
        return None
    used = np.unique(sample.rows.indices)
    first.weight = nn.Parameter(first.weight.detach()[:, used], first.weight.requires_grad)
    first.in_features = len(used)
    return replace(model, module=clone, sample=SparseRows(sample.rows[:, used], sample.lead))
