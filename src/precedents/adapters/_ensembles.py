"""scikit-learn's ensembles of explained models: soft votes and stacks, as one module of the same probabilities.

What is not exact so (hard votes, calibrations, parts that are trees or pipelines) is refused with the part to
take. The loss is the cross entropy of what the ensemble predicts; its parts were fitted by their own.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from precedents.errors import InputError

Maker = Callable[[Any], nn.Module]
SEARCHED = " with the labels numpy.searchsorted(model.classes_, y)"


class SoftVote(nn.Module):
    """The logarithm of the weighted mean of the parts' probabilities."""

    shares: Tensor

    def __init__(self, parts: list[nn.Module], weights: Any) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)
        given = torch.ones(len(parts)) if weights is None else torch.as_tensor(np.asarray(weights))
        self.register_buffer("shares", given.double() / given.double().sum())

    def forward(self, x: Tensor) -> Tensor:
        """From [b, d] to [b, classes]."""
        each = torch.stack([part(x).log_softmax(dim=1) for part in self.parts])
        return (each + self.shares.log()[:, None, None]).logsumexp(dim=0)


class Stack(nn.Module):
    """What the last model makes of the parts' probabilities, and of the rows if they are passed through."""

    def __init__(self, parts: list[nn.Module], last: nn.Module, passthrough: bool) -> None:
        super().__init__()
        self.parts, self.last, self.passthrough = nn.ModuleList(parts), last, passthrough

    def forward(self, x: Tensor) -> Tensor:
        """From [b, d] to [b, classes]; of two classes the second one's probability stands for both."""
        each = [part(x).softmax(dim=1) for part in self.parts]
        each = [found[:, 1:] if found.shape[1] == 2 else found for found in each]
        return self.last(torch.cat([*each, *[x] * self.passthrough], dim=1))


def voting(model: Any, module_of: Maker) -> nn.Module:
    """Of a soft vote."""
    if model.voting != "soft":
        raise instead(model, "It counts votes, which have no likelihood.", module_of)
    return SoftVote(_parts(model, module_of), model._weights_not_none)


def stacking(model: Any, module_of: Maker) -> nn.Module:
    """Of a stack on probabilities."""
    if set(model.stack_method_) != {"predict_proba"}:
        raise instead(model, "Not all of its models give probabilities to the last one.", module_of)
    last = model.final_estimator_
    if hasattr(last, "steps") or not _can(last, module_of):
        raise instead(model, f"Its last model is a {type(last).__name__}.", module_of)
    return Stack(_parts(model, module_of), module_of(last), bool(model.passthrough))


def calibrated(model: Any, module_of: Maker) -> nn.Module:
    """Of none: what a calibration says is not what the models were fitted to say."""
    raise instead(
        model, "Its probabilities come from a calibration that was fitted after its models.", module_of
    )


def instead(model: Any, reason: str, module_of: Maker) -> InputError:
    """The error that names the first part which can be explained."""
    found = next((where for where, part in _named(model) if _can(part, module_of)), None)
    advice = (
        "None of its models can be explained either: fit a LogisticRegression on the same data."
        if found is None
        else f"Pass one of its models: {found}."
    )
    return InputError(f"The {type(model).__name__} cannot be explained by its precedents. {reason} {advice}")


def _parts(model: Any, module_of: Maker) -> list[nn.Module]:
    for part in model.estimators_:
        if hasattr(part, "steps") or not _can(part, module_of):
            reason = f"It decides by several models, and a {type(part).__name__} among them is no module."
            raise instead(model, reason, module_of)
    return [module_of(part) for part in model.estimators_]


def _named(model: Any) -> Iterator[tuple[str, Any]]:
    """The fitted parts, and what to type for each."""
    if hasattr(model, "calibrated_classifiers_"):
        for i, each in enumerate(model.calibrated_classifiers_):
            frozen = type(each.estimator).__name__ == "FrozenEstimator"
            where = f"model.calibrated_classifiers_[{i}].estimator"
            yield (f"{where}.estimator", each.estimator.estimator) if frozen else (where, each.estimator)
        return
    for i, part in enumerate(model.estimators_):
        encoded = part.classes_.tolist() != model.classes_.tolist()
        yield f"model.estimators_[{i}]{SEARCHED if encoded else ''}", part


def _can(part: Any, module_of: Maker) -> bool:
    """Whether a model, or the last step of a pipeline, can be explained."""
    try:
        module_of(part.steps[-1][1] if hasattr(part, "steps") else part)
    except InputError:
        return False
    return True
