"""Our gradients beside those of plain autograd, one instance at a time."""

import warnings

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from precedents import Classifier, Examples
from precedents.classifier.outputs import fed
from precedents.data.examples import Batch
from precedents.data.inputs import Inputs, alone, leaves, mapped
from precedents.gradients.gradients import loss_gradients, planned
from precedents.gradients.plan import Plan
from precedents.gradients.search import SlowGradientsWarning

CLASSES = 3
B = 4  # instances, unless a test says otherwise


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.double)


def stirred(module: nn.Module) -> nn.Module:
    """In float64 and eval mode, with parameters and statistics that are not the round ones of a new layer."""
    with torch.no_grad():
        for parameter in module.double().parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        for name, buffer in module.named_buffers():
            if name.endswith("running_mean"):
                buffer.normal_()
            if name.endswith("running_var"):
                buffer.uniform_(0.5, 2)
    return module.eval()


def frozen(module: nn.Module, name: str) -> nn.Module:
    """With all parameters of this name frozen; no name freezes none."""
    for each, parameter in module.named_parameters():
        parameter.requires_grad_(not name or each.rpartition(".")[2] != name)
    return module


class Alone(nn.Module):
    """A layer and a head."""

    def __init__(self, layer: nn.Module, *received: Tensor) -> None:
        super().__init__()
        self.layer = layer
        self.head = nn.Linear(self.flat(*received).shape[1], CLASSES).double()

    def flat(self, *received: Tensor) -> Tensor:
        output = self.layer(*received)
        output = output[0] if isinstance(output, tuple) else output
        return output.flatten(1)

    def forward(self, *received: Tensor) -> Tensor:
        return self.head(self.flat(*received))


class Inside(nn.Module):
    """A layer among others, with a residual where shapes allow it."""

    def __init__(self, layer: nn.Module, *received: Tensor) -> None:
        super().__init__()
        self.stems = nn.ModuleList(
            nn.Linear(x.shape[-1], x.shape[-1]).double()
            if x.is_floating_point() and x.ndim > 1
            else nn.Identity()
            for x in received
        )
        self.layer = layer
        self.act = nn.Tanh()
        width = self.flat(*received).shape[1]
        self.tail = stirred(
            nn.Sequential(
                nn.Linear(width, 5),
                nn.BatchNorm1d(5),
                nn.ReLU(inplace=True),
                nn.LayerNorm(5),
                nn.Linear(5, CLASSES),
            )
        )

    def flat(self, *received: Tensor) -> Tensor:
        taken = [
            self.act(stem(x)) if x.is_floating_point() else x
            for stem, x in zip(self.stems, received, strict=True)
        ]
        output = self.layer(*taken)
        output = self.act(output[0] if isinstance(output, tuple) else output)
        return (output + taken[0] if output.shape == taken[0].shape else output).flatten(1)

    def forward(self, *received: Tensor) -> Tensor:
        return self.tail(self.flat(*received))


def one_at_a_time(module: nn.Module, inputs: Inputs, labels: Tensor) -> Tensor:
    """The gradients [b, parameters] of the cross entropy."""
    parameters = [p for p in module.parameters() if p.requires_grad]
    rows = []
    for i, label in enumerate(labels):
        loss = cross_entropy(fed(module, alone(inputs, i)), label[None])
        grads = torch.autograd.grad(loss, parameters, materialize_grads=True)
        rows.append(torch.cat([grad.to_dense().flatten() for grad in grads]))
    return torch.stack(rows)


def world(inputs: Inputs) -> tuple[Examples, Batch]:
    """The inputs with labels, all of them in one batch."""
    b = len(leaves(inputs)[0])
    examples = Examples.of((mapped(torch.clone, inputs), torch.arange(b) % CLASSES))
    return examples, examples.take(range(b))


def agree(module: nn.Module, inputs: Inputs, within: float = 1e-9) -> Plan:
    """Asserts that the gradients are right to that part of the largest; says how they were computed."""
    examples, batch = world(inputs)
    model = Classifier.of(module, examples)
    rows = loss_gradients(model, batch)
    assert not rows.squares().requires_grad
    ours, theirs = rows.dense(), one_at_a_time(module, inputs, batch.labels)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=within * float(theirs.abs().max()))
    return planned(model)


def ruled(module: nn.Module, inputs: Inputs) -> Plan:
    """Asserts also that rules alone are used."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = agree(module, inputs)
    assert plan.recording is not None
    assert plan.recording.uncovered == ()
    return plan


def factored(plan: Plan) -> set[str]:
    """The names of the parameters whose gradients are kept as factors."""
    return {name for name, parameter in plan.model.parameters.items() if id(parameter) in plan.factored}


def slow(module: nn.Module, inputs: Inputs, within: float = 1e-9) -> tuple[Plan, str]:
    """Asserts that it is said, once, that a slower fallback is taken; gives what is said."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        plan = agree(module, inputs, within)
    (message,) = [str(warning.message) for warning in said if warning.category is SlowGradientsWarning]
    return plan, message


def everywhere(layer: nn.Module, *received: Tensor, freeze: str = "") -> None:
    """The layer alone and among others, by its rule."""
    frozen(stirred(layer), freeze)
    for model in (Alone(layer, *received), Inside(layer, *received)):
        ruled(model, received if len(received) > 1 else received[0])
