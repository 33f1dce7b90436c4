"""Grad-Cos in two parts: what the residuals and what the features of the last layer say.

The gradient of a Linear that returns the logits is the outer product of the residual r, the loss's
derivatives by them (softmax - onehot), and of what the layer receives, h (with an entry 1 for the bias). So the
cosine of two such gradients is cos(r, r') cos(h, h'): for a model that is this layer alone, the whole score.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.data.examples import Batch, Examples
from precedents.metrics.workspace import Workspace

SIZE = 512  # instances per pass


@dataclass(frozen=True, eq=False)
class Parts:
    """For each case and precedent the two cosines, [m, k]."""

    residual: Tensor
    feature: Tensor

    def of_cases(self, places: slice) -> "Parts":
        """The rows of some of the cases."""
        return Parts(self.residual[places], self.feature[places])


def parts(workspace: Workspace, cases: Examples, indices: Tensor) -> Parts | None:
    """Of the cases and their precedents [m, k]; none where the logits come from no trainable Linear."""
    model = workspace.classifier
    if not any(_trained(model)):
        return None
    every, places = indices.unique(return_inverse=True)
    train = [workspace.train.take(chunk.tolist()) for chunk in every.split(SIZE)]
    case_r, case_h = _units(model, list(cases.batches(SIZE)))
    train_r, train_h = _units(model, train)
    return Parts((case_r @ train_r.T).gather(1, places), (case_h @ train_h.T).gather(1, places))


def _trained(model: Classifier) -> tuple[bool, bool]:
    """Whether the weight and the bias of the layer that returns the logits are trainable."""
    if model.head is None:
        return False, False
    own = dict(model.module.get_submodule(model.head).named_parameters())
    weight, bias = (name in own and own[name].requires_grad for name in ("weight", "bias"))
    return weight, bias


def _units(model: Classifier, batches: list[Batch]) -> tuple[Tensor, Tensor]:
    """Residuals [n, c] and features [n, d], each of length one."""
    weight, bias = _trained(model)
    rs, hs = [], []
    for batch in batches:
        features, logits = model.head_input(batch)
        one = torch.ones(len(features), 1, dtype=torch.double)
        residuals = model.loss.residuals(logits, batch.labels)
        rs.append(_unit(residuals[:, 1:] if model.outputs.single else residuals))
        hs.append(_unit(torch.cat([features] * weight + [one] * bias, dim=1)))
    return torch.cat(rs), torch.cat(hs)


def _unit(rows: Tensor) -> Tensor:
    """Scaled twice, so that squares of tiny numbers do not vanish; zero stays zero."""
    for order in (torch.inf, 2.0):
        length = torch.linalg.vector_norm(rows, order, dim=1, keepdim=True)
        rows = torch.where(length > 0, rows / length, 0.0)
    return rows
