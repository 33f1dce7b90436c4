"""The Gauss-Newton matrix of the training loss, and its factor: for the cross entropy, the true Fisher."""

from collections.abc import Iterator

import torch
from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.curvature.gram import BLOCK_ROWS, mirrored
from precedents.data.examples import Examples
from precedents.gradients.gradients import curvature_rows
from precedents.runtime.progress import tracked


def fisher_matrix(model: Classifier, train: Examples) -> Tensor:
    """The Gauss-Newton matrix [p, p], float64: for the cross entropy, the true Fisher."""
    p = model.size
    matrix = torch.zeros(p, p, dtype=torch.double)
    for rows in _gathered(model, train):
        for start in range(0, p, BLOCK_ROWS):
            stop = min(start + BLOCK_ROWS, p)
            matrix[start:, start:stop].addmm_(rows[:, start:].T, rows[:, start:stop])
    return mirrored(matrix.div_(len(train)))


def fisher_factor(model: Classifier, train: Examples) -> Tensor:
    """The rows [n r, p], r for each instance, whose squares sum to n times that matrix, float64."""
    factor = torch.empty(len(train) * model.loss.rank(model.classes), model.size, dtype=torch.double)
    start = 0
    for rows in _gathered(model, train):
        factor[start : start + len(rows)] = rows
        start += len(rows)
    return factor


def _gathered(model: Classifier, train: Examples) -> Iterator[Tensor]:
    """The rows of the matrix in blocks large enough for a fast product."""
    size = model.budget.rows(model.size * model.classes)
    held: list[Tensor] = []
    for batch in tracked(train.batches(size), "Gauss-Newton", len(range(0, len(train), size))):
        for rows in curvature_rows(model, batch):
            held.append(rows)
            if sum(map(len, held)) >= 2 * BLOCK_ROWS:
                yield torch.cat(held)
                held = []
    if held:
        yield torch.cat(held)
