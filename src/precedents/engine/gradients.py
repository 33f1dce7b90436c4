"""Per-example gradients of the loss, as a residual of unit length pulled back through the network.

The gradient of the cross entropy is J^T r with the residual r = softmax - onehot. The residual is made
in float64 without cancellation and sent back at length one: so the gradients of a confident float32
network, whose lengths may be 1e-20, keep all their digits.
"""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.func import functional_call, vjp, vmap

from precedents.data import Batch
from precedents.inputs import Inputs, alone, mapped
from precedents.model import Classifier


def residuals(logits: Tensor, labels: Tensor) -> Tensor:
    """Softmax - onehot [b, c] in float64; the entry of the label is minus the sum of the others."""
    probabilities = logits.double().softmax(dim=1).scatter(1, labels[:, None], 0.0)
    return probabilities.scatter(1, labels[:, None], -probabilities.sum(dim=1, keepdim=True))


def loss_gradients(model: Classifier, batch: Batch) -> Tensor:
    """The gradient of each instance's loss [b, parameters], float64."""
    return pulled_back(model, batch.inputs, residuals(model.finite_logits(batch), batch.labels))


def sampled_gradients(model: Classifier, batch: Batch) -> Iterator[Tensor]:
    """For each class k, sqrt(p_k) times the gradients for label k: their squares sum to the true Fisher."""
    logits = model.finite_logits(batch)
    roots = logits.softmax(dim=1).sqrt()
    for k in range(model.classes):
        labels = torch.full_like(batch.labels, k)
        yield pulled_back(model, batch.inputs, roots[:, k : k + 1] * residuals(logits, labels))


def pulled_back(model: Classifier, inputs: Inputs, cotangents: Tensor) -> Tensor:
    """J^T v for each instance and its own v [b, c]: [b, parameters], float64."""
    lengths = cotangents.norm(dim=1, keepdim=True)
    units = torch.where(lengths > 0, cotangents / lengths, 0.0)
    placed = model.placed(inputs)
    home = next(iter(model.parameters.values()))
    rows = _pulled_back(model, placed, units.to(home))
    return rows.double().cpu() * lengths


def _pulled_back(model: Classifier, inputs: Inputs, units: Tensor) -> Tensor:
    try:
        return _vectorised(model, inputs, units)
    except (RuntimeError, NotImplementedError):  # an operation that vmap has no rule for
        return torch.stack([_single(model, alone(inputs, i), units[i]) for i in range(len(units))])


def _vectorised(model: Classifier, inputs: Inputs, units: Tensor) -> Tensor:
    parameters = {name: p.detach() for name, p in model.parameters.items()}

    def single(instance: Inputs, unit: Tensor) -> Tensor:
        def logits(values: dict[str, Tensor]) -> Tensor:
            arguments = mapped(lambda leaf: leaf[None], instance)
            args, kwargs = ((), arguments) if isinstance(arguments, dict) else (arguments, None)
            return functional_call(model.module, values, args, kwargs)[0]

        back = vjp(logits, parameters)[1]
        grads = back(unit)[0]
        return torch.cat([grads[name].flatten() for name in parameters])

    return vmap(single)(inputs, units)


def _single(model: Classifier, instance: Inputs, unit: Tensor) -> Tensor:
    """One instance by plain autograd: slow and obvious."""
    with torch.enable_grad():
        logits = model.logits(instance)[0]
        grads = torch.autograd.grad(logits, list(model.parameters.values()), unit, materialize_grads=True)
    return torch.cat([grad.flatten() for grad in grads])
