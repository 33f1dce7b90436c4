"""Measures: what the model says of every instance of a set, in columns."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.data.examples import Examples

LIKELIEST = 5  # classes whose probabilities are kept of an instance

Step = Callable[[int, int], None]  # is told how many are done, and of how many


@dataclass(frozen=True, eq=False)
class Measures:
    """Columns of a set of n instances."""

    labels: Tensor  # [n], int64
    likeliest: Tensor  # [n, classes that are kept], int32, the likeliest first
    probabilities: Tensor  # the same in float32
    losses: Tensor  # [n], float32, of the label

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def predictions(self) -> Tensor:
        """The class with the largest logit [n]."""
        return self.likeliest[:, 0].long()

    @property
    def confidences(self) -> Tensor:
        """The probability of the predicted class [n]."""
        return self.probabilities[:, 0]

    @property
    def wrong(self) -> Tensor:
        """Which predictions are [n]."""
        return self.predictions != self.labels

    def tensors(self) -> dict[str, Tensor]:
        """By name, to be kept."""
        return {name: getattr(self, name) for name in ("labels", "likeliest", "probabilities", "losses")}


@torch.no_grad()
def measured(model: Classifier, examples: Examples, step: Step) -> Measures:
    """What the model makes of all instances; ties go to the smaller class, as predictions do."""
    likeliest, probabilities, losses = list[Tensor](), list[Tensor](), list[Tensor]()
    done = 0
    for batch in examples.batches(model.at_once):
        logits = model.finite_logits(batch)
        order = logits.argsort(dim=1, descending=True, stable=True)[:, :LIKELIEST]
        likeliest.append(order.int())
        probabilities.append(logits.softmax(dim=1).gather(1, order).float())
        losses.append(model.loss(logits, batch.labels).float())
        done += len(batch.labels)
        step(done, len(examples))
    return Measures(examples.labels, torch.cat(likeliest), torch.cat(probabilities), torch.cat(losses))
