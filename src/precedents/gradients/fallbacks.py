"""Fallbacks: slower ways to per-example gradients, for models that have layers without a rule."""

from collections.abc import Collection, Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, vjp, vmap

from precedents.classifier.classifier import Classifier
from precedents.data.inputs import Inputs, alone, leaves, mapped
from precedents.gradients.factors import Dense, Part
from precedents.gradients.recording import Backs, LayerCall, pulled_back


def by_vmap(model: Classifier, inputs: Inputs, units: Tensor, names: Collection[str]) -> Tensor:
    """The gradients [b, numbers] of the named parameters, at once, by vmap of the model's products."""
    parameters = {name: model.parameters[name].detach() for name in names}

    def single(instance: Inputs, unit: Tensor) -> Tensor:
        def logits(values: dict[str, Tensor]) -> Tensor:
            arguments = mapped(lambda leaf: leaf[None], instance)
            args, kwargs = ((), arguments) if isinstance(arguments, dict) else (arguments, None)
            return model.outputs.logits(functional_call(module, values, args, kwargs), 1)[0]

        grads = vjp(logits, parameters)[1](unit)[0]
        return torch.cat([grads[name].flatten() for name in parameters])

    with model.clones.lent() as module, torch.no_grad():  # which has other parameters meanwhile
        return vmap(single)(inputs, units)


def by_instance(model: Classifier, inputs: Inputs, units: Tensor, names: Collection[str]) -> Tensor:
    """The gradients [b, numbers] of the named parameters, one instance at a time: slow and obvious."""
    parameters = [model.parameters[name] for name in names]
    rows = []
    for i, unit in enumerate(units):
        with torch.inference_mode(mode=False), torch.enable_grad():
            logits = model.logits(alone(inputs, i))[0]
        grads = pulled_back(logits, parameters, unit, materialize_grads=True)
        rows.append(flat(grads))
    return torch.stack(rows)


def flat(grads: Sequence[Tensor]) -> Tensor:
    """The gradients of several parameters as one vector."""
    return torch.cat([grad.to_dense().flatten() for grad in grads])


def module_by_vmap(
    model: Classifier, known: dict[str, bool], name: str, left: Sequence[str], call: LayerCall, backs: Backs
) -> Iterable[Part]:
    """The gradients of some of the named module's own parameters by vmap over its products, else one by one.

    Which of its arguments have the instances is `known` from the first pass: a table may be as long as a batch.
    """
    given = leaves((call.args, call.kwargs))
    which = [value.ndim > 0 and len(value) == call.instances for value in given]
    if call.instances > 1:
        which = [
            known.setdefault(f"{name}, argument {i} of {len(given)}", has) and has
            for i, has in enumerate(which)
        ]
    with model.clones.lent() as whole:  # which has other parameters meanwhile
        return _of_module(whole.get_submodule(name), left, call, backs, which)


def _of_module(
    module: nn.Module, left: Sequence[str], call: LayerCall, backs: Backs, which: Sequence[bool]
) -> list[Part]:
    b, given = call.instances, (call.args, call.kwargs)
    outputs = [value for value in leaves(call.output) if value.requires_grad]
    full = [torch.zeros_like(o) if back is None else back for back, o in zip(backs, outputs, strict=True)]
    batched = [value for value, has in zip(leaves(given), which, strict=True) if has]
    own = {name: p for name, p in module.named_parameters() if name in left}
    wanted = [o.shape for o in outputs]

    def single(received: list[Tensor], back: list[Tensor]) -> tuple[Tensor, ...]:
        ones, has = iter(received), iter(which)
        its = mapped(lambda value: next(ones)[None] if next(has) else value, given)

        def returned(values: dict[str, Tensor]) -> list[Tensor]:
            every = [v for v in leaves(functional_call(module, values, *its)) if v.is_floating_point()]
            return [value for value, shape in zip(every, wanted, strict=False) if value.shape[1:] == shape[1:]]

        pulled = vjp(returned, {name: p.detach() for name, p in own.items()})[1]
        grads = pulled([each[None] for each in back])[0]
        return tuple(grads[name] for name in own)

    try:
        values = vmap(single)([value.detach() for value in batched], full)
    except (RuntimeError, NotImplementedError, ValueError):  # an operation that vmap has no rule for
        rows = [single([v[i].detach() for v in batched], [back[i] for back in full]) for i in range(b)]
        values = tuple(torch.stack(column) for column in zip(*rows, strict=True))
    return [Dense(p, value) for p, value in zip(own.values(), values, strict=True)]
