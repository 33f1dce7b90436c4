"""What a classifier of skorch is made of: its module, its loss, and the names of its classes."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from precedents.adapters._trainer import SAY_IT
from precedents.adapters._transformer import runnable
from precedents.classifier.construction import unwrapped
from precedents.classifier.outputs import Outputs, outputs_of, placed, returned
from precedents.classifier.user_loss import ProbabilityLoss, formed
from precedents.data.examples import checked_labels
from precedents.data.inputs import Inputs, count
from precedents.data.labels import number_of, numbered_names
from precedents.errors import InputError

OWN = "skorch"
SAME = 1e-3  # how far probabilities may be from those of predict_proba
LIKELIHOODS = (nn.NLLLoss, nn.CrossEntropyLoss, nn.BCELoss, nn.BCEWithLogitsLoss)


def is_net(model: Any) -> bool:
    """Whether it is of skorch, or of a class that is made of one."""
    return OWN in {kind.__module__.partition(".")[0] for kind in type(model).__mro__}


@dataclass(frozen=True, eq=False)
class Net:
    """A net that was fitted, read; one that cannot be explained is refused."""

    net: Any

    def __post_init__(self) -> None:
        name, kinds = self.name, {kind.__name__ for kind in type(self.net).__mro__}
        if "RegressorMixin" in kinds:
            raise InputError(
                f"The {name} predicts numbers, not classes. Cut them into classes for a NeuralNetClassifier."
            )
        if not getattr(self.net, "initialized_", False):
            raise InputError(
                f"The {name} is not fitted. Call net.fit(X, y), or net.initialize() and net.load_params()."
            )
        if not isinstance(getattr(self.net, "module_", None), nn.Module):
            raise InputError(
                f"The {name} has no module_. Pass the torch.nn.Module that predicts instead of it."
            )
        if getattr(self.net, "threshold", 0.5) != 0.5:
            raise InputError(
                f"The {name} predicts by another threshold ({self.net.threshold}) than the likeliest class. "
                "Explain what it thresholds: net.set_params(threshold=0.5)."
            )

    @property
    def name(self) -> str:
        """What it is called in errors."""
        return type(self.net).__name__

    @property
    def module(self) -> nn.Module:
        """What predicts; as it was before it was compiled, if it is."""
        return unwrapped(self.net.module_)

    @cached_property
    def names(self) -> list[str] | None:
        """Of the classes, if they are called by words."""
        try:
            found = list(np.asarray(self.net.classes_).tolist())
        except AttributeError:  # skorch's own, for a net that was never shown labels
            return None
        return found if found and all(isinstance(each, str) for each in found) else None

    @property
    def criterion(self) -> Any:
        """The loss as one of the module's outputs: skorch takes the logarithm itself for NLLLoss."""
        own = unwrapped(getattr(self.net, "criterion_", None))
        logs = any(kind.__name__ == "NeuralNetClassifier" for kind in type(self.net).__mro__)
        return ProbabilityLoss(own.weight) if isinstance(own, nn.NLLLoss) and logs else own

    @property
    def loss(self) -> Any:
        """What it was trained by; a get_loss of the user's own must be said."""
        if type(self.net).get_loss.__module__.partition(".")[0] != OWN:
            raise InputError(
                f"{self.name} computes its loss by a get_loss of its own, which gives one number for a batch; "
                f"the loss of each instance is needed. {SAY_IT}"
            )
        return self.criterion

    def numbered(self, labels: Any, what: str, known: Sequence[str] | None = None) -> Tensor:
        """Class numbers of labels, which may be names of classes."""
        given = np.asarray(labels.tolist() if hasattr(labels, "tolist") else labels, dtype=object)
        places = numbered_names((name, place) for place, name in enumerate(known or self.names or ()))
        wrong = [each for each in given.reshape(-1).tolist() if isinstance(each, str) and each not in places]
        if wrong:
            said = ", ".join(map(repr, places)) or "numbers: encode y as for net.fit, or pass classes=[...]"
            raise InputError(
                f"A label of the {what} is {wrong[0]!r}. The classes of the {self.name} are {said}."
            )
        if any(isinstance(each, str) for each in given.reshape(-1).tolist()):
            every = given.reshape(-1).tolist()
            labels = [number_of(each, places, f"the {what}") if each in places else each for each in every]
        return checked_labels(labels, len(given) if given.ndim else 1, what)

    @torch.no_grad()
    def looked_at(self, inputs: Inputs) -> Outputs:
        """Where the logits are in what the module returns; its probabilities must be those of predict_proba."""
        module, b = runnable(self.module), count(inputs)
        output = returned(module, inputs)
        outputs = formed(outputs_of(output, b, 0 if isinstance(output, tuple) else None), self.criterion)
        wanted, logits = self._probabilities(module, inputs), outputs.logits(output, b).double().cpu()
        if wanted is None or wanted.shape[0] != b or not logits.isfinite().all():  # refused elsewhere
            return outputs
        found = logits.softmax(dim=1)
        likely = isinstance(self.criterion, LIKELIHOODS) and self.net.predict_nonlinearity == "auto"
        off = float((found - wanted).abs().max()) if likely and found.shape == wanted.shape else 0.0
        if not off <= SAME or (not likely and not torch.equal(found.argmax(dim=1), wanted.argmax(dim=1))):
            raise InputError(
                f"The predictions of {self.name}.predict_proba are not those of its module and its criterion, "
                "because of an infer or a predict_nonlinearity of its own. Explain what predicts as a module: "
                "pr.Explainer(net.module_, (X, y), loss=...)."
            )
        return outputs

    def _probabilities(self, module: nn.Module, inputs: Inputs) -> Tensor | None:
        """Of predict_proba, by a copy of the net around this module; none if that takes other data."""
        other = object.__new__(type(self.net))  # whose own copies are by pickle, which not every class has
        own = {"module_": module, "criterion_": deepcopy(self.net.criterion_)}
        other.__dict__ |= {**vars(self.net), **own}
        try:
            return torch.as_tensor(np.asarray(other.predict_proba(placed(module, inputs)))).double()
        except Exception:
            return None
