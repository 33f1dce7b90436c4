"""Second derivatives of the mean training loss, dense and in float64."""

import torch
from torch import Tensor, nn

from precedents.classifier.classifier import Classifier, gradients_on
from precedents.curvature.attention import FormulaOfAttention, refuse_nested
from precedents.curvature.going_on import batches_left, going_on
from precedents.data.examples import Batch, Examples
from precedents.errors import InputError
from precedents.runtime.budget import FLOAT64
from precedents.runtime.checkpoint import InPlace

PIECE_ROWS = 64  # of the matrix at a time


@gradients_on
def exact_hessian(model: Classifier, train: Examples, size: int = 256) -> Tensor:
    """The Hessian [p, p] of the mean loss, by differentiating its gradient entry by entry."""
    size, count = _sizes(model, size)
    model = twice_differentiable(model).doubled()
    total = torch.zeros(model.size, model.size, dtype=torch.double)
    n, p = len(train), model.size
    steps = [(first, start) for first in range(0, n, size) for start in range(0, p, count)]
    taken, gradient = -1, torch.empty(0)
    for first, start in going_on(steps, "Hessian", (model, train), InPlace({"total": total})):
        if first != taken:
            batch = train.take(range(first, min(first + size, n)))
            taken, gradient = first, _batch_gradient(model, batch) / n
        total[start : start + count] += _rows(model, gradient, start, count).cpu()
    return (total + total.T) / 2


def _sizes(model: Classifier, size: int) -> tuple[int, int]:
    """How many instances are differentiated at a time, up to `size`, and how many rows of the matrix."""
    each = 4 * FLOAT64 * max(1, model.activations)  # bytes of an instance, for each row
    room = max(1, model.budget.bytes // 4 // each)
    size = min(size, room)
    return size, max(1, min(PIECE_ROWS, room // size))


def twice_differentiable(model: Classifier) -> Classifier:
    """The model, if its loss has second derivatives."""
    logits = model.logits(model.sample).detach().cpu()
    model.loss.curvature(logits, torch.zeros(len(logits), dtype=torch.long), 0)
    return model


def linear_hessian(model: Classifier, train: Examples, size: int = 1024) -> Tensor:
    """The Hessian [p, p] of a model whose trainable parameters are one Linear that gives the logits.

    It is the mean of C ⊗ a a^T, for the second derivatives C of the loss by what the Linear returns, and for
    what it receives, a.
    """
    if model.only_layer is None:
        raise InputError("The closed form is for models whose trainable parameters are one final Linear.")
    head = model.module.get_submodule(model.only_layer)
    assert isinstance(head, nn.Linear)
    c, d = head.out_features, head.in_features
    first = model.classes - c  # one output for two classes is the second logit
    total = torch.zeros(c, d + 1, c, d + 1, dtype=torch.double)
    for batch in batches_left("Hessian of a linear model", (model, train), size, InPlace({"total": total})):
        received, logits = model.head_input(batch)
        a = torch.cat([received, torch.ones(len(received), 1, dtype=torch.double)], dim=1)
        for k in range(c):
            row = model.loss.curvature(logits, batch.labels, first + k)[:, first:]
            for j in range(k + 1):
                total[k, :, j] += (a * row[:, j : j + 1]).T @ a / len(train)
    for k in range(c):
        for j in range(k):
            total[j, :, k] = total[k, :, j].T
    return _in_parameter_order(head, total)


def _batch_gradient(model: Classifier, batch: Batch) -> Tensor:
    """The gradient [p] of the batch's summed loss, with its graph."""
    refuse_nested(batch.inputs)
    with FormulaOfAttention():  # which has a second derivative
        logits = model.logits(batch.inputs)
    loss = model.loss(logits, batch.labels).sum()
    parts = torch.autograd.grad(
        loss, list(model.parameters.values()), create_graph=True, materialize_grads=True
    )
    return torch.cat([part.flatten() for part in parts])


def _rows(model: Classifier, gradient: Tensor, start: int, count: int) -> Tensor:
    """The derivatives [count, p] of consecutive entries of the gradient, from `start` on."""
    stop = min(start + count, len(gradient))
    parameters = list(model.parameters.values())
    units = torch.eye(len(gradient), device=gradient.device, dtype=gradient.dtype)[start:stop]
    try:
        parts = torch.autograd.grad(
            gradient, parameters, units, retain_graph=True, is_grads_batched=True, materialize_grads=True
        )
        return torch.cat([part.flatten(1) for part in parts], dim=1)
    except RuntimeError:  # an operation that vmap has no rule for
        single = [
            torch.autograd.grad(gradient, parameters, unit, retain_graph=True, materialize_grads=True)
            for unit in units
        ]
        return torch.stack([torch.cat([part.flatten() for part in parts]) for parts in single])


def _in_parameter_order(head: nn.Linear, blocks: Tensor) -> Tensor:
    """From [c, d + 1, c, d + 1] to the order of the trainable parameters: the weight, then the bias."""
    c, d = head.out_features, head.in_features
    places = torch.arange(c * (d + 1)).reshape(c, d + 1)
    order = []
    for name, parameter in head.named_parameters():
        if parameter.requires_grad:
            order.append(places[:, :d].flatten() if name == "weight" else places[:, d])
    keep = torch.cat(order)
    return blocks.reshape(c * (d + 1), c * (d + 1))[keep][:, keep]
