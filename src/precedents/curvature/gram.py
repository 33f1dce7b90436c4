"""Inner products of gradients in float64, and curvature matrices made of them, in bounded memory."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.data.examples import Examples
from precedents.gradients.gradients import curvature_rows, loss_gradients
from precedents.runtime.budget import FLOAT64
from precedents.runtime.progress import tracked

BLOCK = 1024  # rows or columns of a product at a time


def gradient_gram(model: Classifier, train: Examples) -> Tensor:
    """T = G G^T [n, n] of the loss gradients, in float64.

    When the gradients do not fit into the budget, the parameters are taken in slices, with one pass over
    the data for each: no matrix of all instances by all parameters is ever held.
    """
    n, p = len(train), model.size
    model.budget.required(2 * FLOAT64 * n * n, f"The Gram matrix of {n} instances", "Use fewer instances.")
    width = max(1, min(p, (model.budget.bytes - 2 * FLOAT64 * n * n) // (2 * model.itemsize * n)))
    gram = torch.zeros(n, n, dtype=torch.double)
    slices = [slice(start, min(start + width, p)) for start in range(0, p, width)]
    for columns in tracked(slices, "Gram matrix"):
        size = model.budget.rows(columns.stop - columns.start, model.itemsize)
        rows, lengths = None, []
        for batch in train.batches(size):
            block = loss_gradients(model, batch, columns)
            rows = block.matrix.new_empty(n, block.matrix.shape[1]) if rows is None else rows
            rows[batch.indices[0] : batch.indices[-1] + 1] = block.matrix
            lengths.append(block.scale)
        assert rows is not None
        _add_lower(gram, rows, torch.cat(lengths))
    return _mirrored(gram)


def fisher_matrix(model: Classifier, train: Examples) -> Tensor:
    """The Gauss-Newton matrix [p, p], float64: for the cross entropy, the true Fisher matrix."""
    p = model.size
    matrix = torch.zeros(p, p, dtype=torch.double)
    for rows in _gathered(model, train):
        for start in range(0, p, BLOCK):
            stop = min(start + BLOCK, p)
            matrix[start:, start:stop].addmm_(rows[:, start:].T, rows[:, start:stop])
    return _mirrored(matrix.div_(len(train)))


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
            if sum(map(len, held)) >= 2 * BLOCK:
                yield torch.cat(held)
                held = []
    if held:
        yield torch.cat(held)


def _add_lower(gram: Tensor, rows: Tensor, lengths: Tensor) -> None:
    """Gram += R R^T below the diagonal, for R = lengths x rows."""
    doubled = partial(_doubled, rows, lengths)
    for start in range(0, len(rows), BLOCK):
        right = doubled(start)
        for below in range(start, len(rows), BLOCK):
            left = right if below == start else doubled(below)
            gram[below : below + BLOCK, start : start + BLOCK] += left @ right.T


def _doubled(rows: Tensor, lengths: Tensor, start: int) -> Tensor:
    return rows[start : start + BLOCK].double() * lengths[start : start + BLOCK, None]


def _mirrored(matrix: Tensor) -> Tensor:
    """The lower triangle copied to the upper, block by block."""
    for start in range(0, len(matrix), BLOCK):
        stop = min(start + BLOCK, len(matrix))
        corner = matrix[start:stop, start:stop]
        corner.copy_(corner.tril() + corner.tril(-1).T)
        matrix[start:stop, stop:] = matrix[stop:, start:stop].T
    return matrix
