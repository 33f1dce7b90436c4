"""What is refused of a module, and of what it gives, each in a line that says what would be right."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

from precedents.classifier.user_loss import refuse_probabilities
from precedents.data.examples import Examples, checked_range
from precedents.data.inputs import Collated, Inputs, alone, between, count, unusable
from precedents.data.labels import REGRESSION
from precedents.errors import InputError
from precedents.runtime.wording import a_type

if TYPE_CHECKING:
    from precedents.classifier.classifier import Classifier

PROGRAMS = {"torch.jit": "scripted or traced by torch.jit", "torch.export": "a program of torch.export"}
LENGTHS = 12  # instances that are tried with and without padding
MANY_INSTANCES = 32  # whose one output lies within 0 and 1, if it is a probability


def accepted(module: nn.Module) -> nn.Module:
    """The module, if it is one whose weights can be computed with."""
    if not isinstance(module, nn.Module):
        raise InputError(f"The model is {a_type(module)}. Pass a torch.nn.Module.")
    refuse_programs(module)
    for name, value in (*module.named_parameters(), *module.named_buffers()):
        if isinstance(value, (UninitializedParameter, UninitializedBuffer)):
            raise InputError(
                f"The weight {name} of the model is not initialised: its layer is lazy, and waits for a first "
                "input to know its shape. Call the model once, as you did in training, or load its weights."
            )
        if reason := unusable(value):
            raise InputError(f"The weight {name} of the model {reason}.")
    return module


def refuse_programs(model: Any) -> None:
    """Refuses what torch.jit and torch.export make of a module: its code is fixed, and its layers are gone."""
    homes = [kind.__module__ for kind in type(model).__mro__]
    for home, made in PROGRAMS.items():
        if any(each.startswith(home) for each in homes):
            raise InputError(
                f"The model is {made}: its layers cannot be seen. Pass the nn.Module that it was made from; "
                "module.load_state_dict(...) gives it the weights that are here, in the state_dict."
            )


def refuse_unsteady(logits: Tensor, single: Tensor, padded: bool, *, same: bool) -> None:
    """Refuses what is random, with other outputs when it is asked again, and what mixes instances."""
    if not same:
        raise InputError(
            "The model gives different outputs for the same input in eval mode. Tie its randomness to "
            "self.training: F.dropout(x, training=self.training)."
        )
    _refuse_mixing(logits, single, padded)


def _refuse_mixing(logits: Tensor, single: Tensor, padded: bool) -> None:
    within = float(torch.finfo(logits.dtype).eps) ** 0.5 * float(logits.abs().nan_to_num().max())
    if padded and not torch.allclose(logits, single, rtol=0, atol=within, equal_nan=True):
        i = int((logits - single).abs().nan_to_num(torch.inf).amax(dim=1).argmax())
        raise InputError(
            "The model's output for an instance depends on its padding or on the others of its batch: "
            f"alone one has the logits {_few(single[i])}, beside others {_few(logits[i])}. Let the model leave "
            "out what is padded (a mean over the lengths, pack_padded_sequence, an attention mask), and let no "
            "layer mix the instances."
        )
    rounding = 1e-5 + 1e-4 * float(logits.abs().nan_to_num(0.0, 0.0).max())
    if not torch.allclose(logits, single, rtol=1e-3, atol=rounding, equal_nan=True):
        raise InputError(
            "The model's output for an instance depends on the other instances of the batch. "
            "Gradients per instance need BatchNorm with track_running_stats=True and the batch as first axis."
        )


def _few(numbers: Tensor) -> str:
    shown = ", ".join(f"{value:.4g}" for value in numbers[:4].tolist())
    return f"[{shown} ...]" if len(numbers) > 4 else f"[{shown}]"


@torch.no_grad()
def refuse_padding(model: "Classifier", inputs: Inputs) -> None:
    """Refuses a model for which instances are not the same in a batch as alone, tried on some."""
    some = between(inputs, 0, min(LENGTHS, model.at_once))
    assert isinstance(some, Collated)
    if len({member.numbers for member in some.members}) > 1:
        singles = torch.cat([model.logits(alone(some, i)) for i in range(count(some))])
        _refuse_mixing(model.logits(some), singles, padded=True)


@torch.no_grad()
def refuse_outputs(model: "Classifier", logits: Tensor | None, train: Examples, single: bool) -> None:
    """Refuses `logits` that are probabilities, if there are any, and labels without an output."""
    if logits is not None and single:
        few = train.take(range(min(len(train), MANY_INSTANCES))).inputs
        logits = model.logits(few)[:, 1:]
    if logits is not None:
        refuse_probabilities(logits)
    if single and int(train.labels.max()) > 1:
        raise InputError(
            "The model has one output, which tells class 1 from class 0, but the training set has a label "
            f"{int(train.labels.max())}. {REGRESSION}"
        )
    checked_range(train.labels, model.classes, "training set")
