"""Fallbacks: slower ways to per-example gradients, for models that have layers without a rule."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.func import functional_call, vjp, vmap

from precedents.classifier.classifier import Classifier
from precedents.data.inputs import Inputs, alone, mapped


def by_vmap(model: Classifier, inputs: Inputs, units: Tensor) -> Tensor:
    """All instances at once, by vmap of the model's vector-Jacobian product."""
    parameters = {name: p.detach() for name, p in model.parameters.items()}

    def single(instance: Inputs, unit: Tensor) -> Tensor:
        def logits(values: dict[str, Tensor]) -> Tensor:
            arguments = mapped(lambda leaf: leaf[None], instance)
            args, kwargs = ((), arguments) if isinstance(arguments, dict) else (arguments, None)
            return model.outputs.logits(functional_call(model.module, values, args, kwargs), 1)[0]

        grads = vjp(logits, parameters)[1](unit)[0]
        return torch.cat([grads[name].flatten() for name in parameters])

    return vmap(single)(inputs, units)


def by_instance(model: Classifier, inputs: Inputs, units: Tensor) -> Tensor:
    """One instance at a time by plain autograd: slow and obvious."""
    parameters = list(model.parameters.values())
    rows = []
    for i, unit in enumerate(units):
        with torch.inference_mode(mode=False), torch.enable_grad():
            logits = model.logits(alone(inputs, i))[0]
        grads = torch.autograd.grad(logits, parameters, unit, materialize_grads=True)
        rows.append(flat(grads))
    return torch.stack(rows)


def flat(grads: Sequence[Tensor]) -> Tensor:
    """The gradients of all parameters as one vector."""
    return torch.cat([grad.to_dense().flatten() for grad in grads])
