"""Per-example gradients of the loss, as a residual of unit length pulled back through the network.

The gradient of a loss is J^T r with its derivatives by the logits, the residual r: softmax - onehot for the
cross entropy. The residual is made in float64 without cancellation and sent back at length one: so the
gradients of a confident float32 network, whose lengths may be 1e-20, keep all their digits.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.data.examples import Batch
from precedents.gradients.plan import Plan
from precedents.gradients.rows import Collected, Rows
from precedents.gradients.search import searched
from precedents.runtime.buffers import BUFFERS
from precedents.runtime.cache import Slot

PLAN: Slot[Plan] = Slot("plan of the gradients")


@torch.inference_mode(mode=False)
def loss_gradients(model: Classifier, batch: Batch, columns: slice | None = None) -> Rows:
    """The gradient of each instance's loss [b, parameters]; with `columns`, only some of them, formed."""
    plan = planned(model)
    b = len(batch.labels)
    matrix = BUFFERS.empty((b, plan.width(columns)), next(iter(model.parameters.values())).dtype)
    collected = None
    for places, piece in batch.pieces(plan.size):
        into = matrix[places] if isinstance(places, slice) else None
        for block in plan.pulled_back(piece, model.loss.residuals, columns, into):
            if into is not None and len(into) == b:
                return block
            collected = collected or Collected(b, matrix)
            collected.put(places, block)
    assert collected is not None
    return collected.rows()


@torch.inference_mode(mode=False)
def row_size(model: Classifier) -> tuple[int, int, int, int]:
    """The length of a gradient, the bytes of its numbers, and how many are stored: fewer, where factors do.

    And how many are of matrices that are stored as factors, and formed when they are multiplied.
    """
    plan, first = planned(model), next(iter(model.parameters.values()))
    size = next(reversed(plan.places.values())).stop
    return size, first.element_size(), plan.stored or size, plan.matrices


def pass_bytes(model: Classifier) -> int:
    """Bytes that a pass of one instance holds."""
    plan = planned(model)
    return plan.beside + plan.each


def curvature_rows(model: Classifier, batch: Batch) -> Iterator[Tensor]:
    """Rows [b, parameters], float64, whose squares sum to the instances' Gauss-Newton matrix."""
    plan = planned(model)
    size = plan.size
    for start in range(0, len(batch.labels), size):
        piece = batch.between(start, start + size)
        for rows in plan.pulled_back(piece, model.loss.roots, slice(0, model.size)):
            yield rows.dense()


def planned(model: Classifier) -> Plan:
    """How this model's gradients are computed, found out once."""
    return model.cache.once(PLAN, partial(searched, model))
