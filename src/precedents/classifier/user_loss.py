"""The loss that a user's model was trained with, recognised: a loss of torch.nn, or any function that fits."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from precedents.classifier.loss import CrossEntropy, Function, GivenLoss, Loss
from precedents.classifier.outputs import Outputs
from precedents.errors import InputError, UserCodeError
from precedents.runtime.users_code import why
from precedents.runtime.wording import a_type


class ProbabilityLoss(nn.NLLLoss):
    """-log(p + eps) for the label's probability p, of a model that returns probabilities; as in skorch."""


def formed(outputs: Outputs, loss: Any) -> Outputs:
    """The outputs as the loss takes them: nn.BCELoss and ProbabilityLoss take probabilities."""
    if isinstance(loss, ProbabilityLoss) and not outputs.single:
        return replace(outputs, form="probabilities")
    return replace(outputs, form="probability") if isinstance(loss, nn.BCELoss) and outputs.single else outputs


def loss_of(given: Any, outputs: Outputs, logits: Tensor) -> Loss:
    """The loss that was given, tried on the logits of some instances; without one, cross entropy."""
    if given is None:
        return CrossEntropy()
    if isinstance(given, CrossEntropy):
        return given
    if isinstance(given, (nn.BCEWithLogitsLoss, nn.BCELoss)):
        return _binary(given, outputs, logits.shape[1])
    if isinstance(given, (nn.CrossEntropyLoss, nn.NLLLoss)):
        return _of_classes(given, outputs, logits)
    return _tried(given.function if isinstance(given, GivenLoss) else given, logits)


def refuse_probabilities(values: Tensor) -> None:
    """Probabilities [b, c] or [b, 1] are no logits: their cross entropy is not the model's loss."""
    if not bool(((values >= 0) & (values <= 1)).all()):
        return
    if values.shape[1] == 1:
        raise InputError(
            f"The model's output for {len(values)} instances lies within 0 and 1, as probabilities do; a logit "
            "is expected. Pass loss=nn.BCELoss() if it is a probability, loss=nn.BCEWithLogitsLoss() if not."
        )
    if bool(((values.sum(dim=1) - 1).abs() < 1e-3).all()):
        raise InputError(
            "The model returns probabilities: no output is negative and each row sums to 1. Logits are "
            "expected, as the cross entropy of probabilities is not the loss that a softmax is trained with. "
            "Leave the softmax out, or say what the loss is: loss=lambda p, y: nn.functional.nll_loss(p.log(), "
            "y, reduction='none'); for a model that was trained by the cross entropy of its probabilities, "
            "loss=nn.CrossEntropyLoss()."
        )


def _of_classes(given: nn.CrossEntropyLoss | nn.NLLLoss, outputs: Outputs, logits: Tensor) -> CrossEntropy:
    name, c = type(given).__name__, logits.shape[1]
    if outputs.single:
        raise InputError(
            f"{name} needs an output for each class, but the model has one output. Trained for two classes, "
            "its loss is nn.BCEWithLogitsLoss(), and that is taken without loss=."
        )
    if isinstance(given, nn.NLLLoss) and not bool((logits.logsumexp(dim=1).abs() < 1e-3).all()):
        if isinstance(given, ProbabilityLoss):
            raise InputError(
                "The loss takes the logarithm of probabilities, but the model's outputs are none: they do not "
                "sum to 1. End the module with a softmax, or train it by criterion=torch.nn.CrossEntropyLoss."
            )
        raise InputError(
            "NLLLoss takes log-probabilities, but the model's outputs are none: their exponentials do not "
            "sum to 1. Leave loss= out, or pass nn.CrossEntropyLoss(), for a model that returns logits."
        )
    weight = None if given.weight is None else given.weight.double().tolist()
    if weight is not None and len(weight) != c:
        raise InputError(f"{name} has {len(weight)} weights, but the model has {c} outputs.")
    return _weighed(weight, getattr(given, "label_smoothing", 0.0))  # of log-probabilities it is the same


def _binary(given: nn.BCEWithLogitsLoss | nn.BCELoss, outputs: Outputs, c: int) -> CrossEntropy:
    name = type(given).__name__
    if not outputs.single:
        raise InputError(
            f"{name} of {c} outputs decides on {c} labels, each by itself: that is a multi-label model, and an "
            "explanation is of one decision. Wrap the model so that it returns the one output in question, "
            "[b], with that label, 0 or 1, as the class. For one label among several use CrossEntropyLoss."
        )
    sizes = [1.0 if part is None else part for part in (given.weight, getattr(given, "pos_weight", None))]
    if any(isinstance(part, Tensor) and part.numel() != 1 for part in sizes):
        raise InputError(f"{name} has weights for several outputs or instances; one output takes one weight.")
    every, positive = map(float, sizes)
    return _weighed([every, every * positive], 0.0)


def _weighed(weight: list[float] | None, smoothing: float) -> CrossEntropy:
    same = weight is None or all(each == 1 for each in weight)
    return CrossEntropy(None if same or weight is None else tuple(weight), smoothing)


def _tried(given: Any, logits: Tensor) -> GivenLoss:
    """The function, if it gives each instance its own loss."""
    what = (
        "Pass nn.CrossEntropyLoss(), or a function of logits [b, classes] and labels [b] that gives losses [b]"
    )
    if not callable(given):
        raise InputError(f"The loss is {a_type(given)}. {what}.")
    function = _unreduced(given)
    labels = torch.arange(len(logits)) % logits.shape[1]
    failed: BaseException | None = None
    for precision in (torch.double, logits.dtype):
        loss = GivenLoss(function, precision, logits.device)
        try:
            together = loss(logits, labels)
            single = [loss(logits[i : i + 1], labels[i : i + 1]) for i in range(len(logits))]
        except UserCodeError as error:
            failed = error.__cause__
            continue
        if together.shape != labels.shape or any(each.shape != (1,) for each in single):
            raise InputError(
                f"The loss gives {tuple(together.shape)} for {len(labels)} instances. {what}: reduction='none'."
            )
        if not torch.allclose(together, torch.cat(single), rtol=1e-3, atol=1e-6, equal_nan=True):
            raise InputError(
                "The loss of an instance depends on the other instances of the batch. " + what + "."
            )
        return loss
    assert failed is not None
    raise UserCodeError(f"The loss cannot be computed: {why(failed)}. {what}.") from failed


def _unreduced(given: Any) -> Function:
    """One loss for each instance: a module's own reduction is left out."""
    if not isinstance(given, nn.Module):
        return given
    module = deepcopy(given).double()
    if hasattr(module, "reduction"):
        module.__dict__["reduction"] = "none"
    return module
