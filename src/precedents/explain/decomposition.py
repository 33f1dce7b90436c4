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
from precedents.runtime.budget import FLOAT64
from precedents.runtime.cost import rate, speed, trials
from precedents.runtime.sparse import SparseRows

AT_ONCE = 2**20  # cosines that are held at once
UNASKED = 5  # precedents of a case, if nobody says how many
ALLOWED = 0.1  # seconds that trials may take


@dataclass(frozen=True, eq=False)
class Decomposition:
    """For each case and precedent the two cosines, [m, k]."""

    residual: Tensor
    feature: Tensor

    def of_cases(self, places: slice) -> "Decomposition":
        """The rows of some of the cases."""
        return Decomposition(self.residual[places], self.feature[places])


def decomposed(model: Classifier, cases: Batch, train: Batch, places: Tensor) -> Decomposition | None:
    """Of the cases and their precedents, whose places [m, k] among some training instances are given.

    None where the logits come from no trainable Linear.
    """
    weight, bias = _trained(model)
    if not (weight or bias):
        return None
    case_r, case_h = _units(model, cases)
    train_r, train_h = _units(model, train)
    rows, found = max(1, AT_ONCE // len(train_r)), torch.empty(2, *places.shape, dtype=torch.double)
    for start in range(0, len(places), rows):
        some, own = slice(start, start + rows), places[start : start + rows]
        found[0, some] = (case_r[some] @ train_r.T).gather(1, own)
        found[1, some] = _cosines(case_h[some], train_h, weight, bias).gather(1, own)
    return Decomposition(*found)


def decomposed_bytes(model: Classifier) -> int:
    """Bytes of what an instance is decomposed by."""
    if not any(_trained(model)) or isinstance(model.sample, SparseRows):
        return 0
    head = model.module.get_submodule(str(model.head))
    return 2 * FLOAT64 * sum(dict(head.named_parameters())["weight"].shape)


def decomposed_seconds(model: Classifier, train: Examples, m: int) -> float:
    """About how long that takes for m cases and UNASKED precedents of each, from trials on a few instances."""
    if not any(_trained(model)):
        return 0.0
    counts, room = m + min(len(train), UNASKED * m), model.budget.bytes // max(1, 4 * decomposed_bytes(model))
    block = max(1, min(len(train), model.at_once, room))
    found = trials(lambda size: _units(model, train.take(range(size))), block, lambda _: ALLOWED)
    seconds = counts * rate(found, block)
    if isinstance(model.sample, SparseRows):
        return seconds
    head = model.module.get_submodule(str(model.head))
    width = dict(head.named_parameters())["weight"].shape[1]
    return seconds + 2 * m * (counts - m) * width / speed(torch.double)


def _cosines(case: Tensor, train: Tensor, weight: bool, bias: bool) -> Tensor:
    """Of features [m, n] of length one, or of sparse ones as they are, with an entry 1 for the bias."""
    if not isinstance(case, SparseRows) or not isinstance(train, SparseRows):
        return case @ train.T
    case_sq, train_sq = (weight * rows.squares() + bias for rows in (case, train))
    lengths = case_sq.sqrt()[:, None] * train_sq.sqrt()
    return torch.where(lengths > 0, (weight * (case @ train.T) + bias) / lengths, 0.0)


def _trained(model: Classifier) -> tuple[bool, bool]:
    """Whether the weight and the bias of the layer that returns the logits are trainable.

    Neither where they are made of other parameters, as when it is pruned: then the product is not the gradient.
    """
    if model.head is None:
        return False, False
    own = dict(model.module.get_submodule(model.head).named_parameters())
    if "weight" not in own or own.keys() - {"weight", "bias"}:
        return False, False
    weight, bias = (name in own and own[name].requires_grad for name in ("weight", "bias"))
    return weight, bias


def _units(model: Classifier, batch: Batch) -> tuple[Tensor, Tensor]:
    """Residuals [n, c] and features [n, d], each of length one; sparse features as they are."""
    weight, bias = _trained(model)
    first = 1 if model.outputs.form != "logits" else 0  # one output for two classes is the second logit
    rs, hs = list[Tensor](), list[Tensor]()
    b, size = len(batch.labels), model.at_once
    for piece in [batch] if b <= size else [batch.between(i, i + size) for i in range(0, b, size)]:
        features, logits = model.head_input(piece)
        one = torch.ones(len(features), 1, dtype=torch.double)
        residuals = model.loss.residuals(logits, piece.labels)
        rs.append(_unit(residuals[:, first:]))
        if isinstance(features, SparseRows):
            hs.append(features)
        else:
            hs.append(_unit(torch.cat([features] * weight + [one] * bias, dim=1)))
    return torch.cat(rs), torch.cat(hs)


def _unit(rows: Tensor) -> Tensor:
    """Scaled twice, so that squares of tiny numbers do not vanish; zero stays zero."""
    for order in (torch.inf, 2.0):
        length = torch.linalg.vector_norm(rows, order, dim=1, keepdim=True)
        rows = torch.where(length > 0, rows / length, 0.0)
    return rows
