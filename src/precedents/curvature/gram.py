"""The Gram matrix: inner products of the loss gradients in float64, in bounded memory."""

from functools import partial

import torch
from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.curvature.going_on import going_on
from precedents.data.examples import Examples
from precedents.gradients.gradients import loss_gradients
from precedents.runtime.allocator import given_back
from precedents.runtime.budget import FLOAT64
from precedents.runtime.checkpoint import InPlace
from precedents.runtime.sparse import SparseRows

BLOCK_ROWS = 1024  # or columns, of a product at a time


def gradient_gram(model: Classifier, train: Examples) -> Tensor:
    """T = G G^T [n, n] of the loss gradients, in float64.

    When the gradients do not fit into the budget, the parameters are taken in slices, with one pass over
    the data for each: no matrix of all instances by all parameters is ever held.
    """
    n, p = len(train), model.size
    model.budget.required(2 * FLOAT64 * n * n, f"The Gram matrix of {n} instances", "Use fewer instances.")
    if isinstance(model.sample, SparseRows):
        return _by_factors(model, train)
    width = max(1, min(p, _room(model, n) // (model.itemsize * n + 2 * FLOAT64 * min(n, BLOCK_ROWS))))
    gram = torch.zeros(n, n, dtype=torch.double)
    steps = [(first, start) for first in range(0, p, width) for start in range(0, n, BLOCK_ROWS)]
    taken, rows = -1, None
    for first, start in going_on(steps, "Gram matrix", (model, train), InPlace({"gram": gram})):
        if first != taken:
            rows = None  # whose memory is free for the next ones
            taken, rows = first, _gradients(model, train, slice(first, min(first + width, p)))
        assert rows is not None
        _add_lower(gram, *rows, start)
    return mirrored(gram)


def _by_factors(model: Classifier, train: Examples) -> Tensor:
    """The same of gradients that are held as their factors, which take little where these are sparse."""
    n = len(train)
    gram = torch.zeros(n, n, dtype=torch.double)
    blocks = [loss_gradients(model, batch).doubled() for batch in train.batches(BLOCK_ROWS)]
    steps = range(len(blocks))
    for i in going_on(steps, "Gram matrix of sparse rows", (model, train), InPlace({"gram": gram})):
        for j in range(i + 1):
            below, start = i * BLOCK_ROWS, j * BLOCK_ROWS
            gram[below : below + BLOCK_ROWS, start : start + BLOCK_ROWS] = blocks[i].products(blocks[j])
    given_back(gram.nbytes)
    return mirrored(gram)


def _room(model: Classifier, n: int) -> int:
    """Bytes for gradients beside the matrix [n, n], its copy and a pass."""
    return model.budget.bytes * 3 // 4 - 2 * FLOAT64 * n * n


def _gradients(model: Classifier, train: Examples, columns: slice) -> tuple[Tensor, Tensor]:
    """Some columns of all gradients [n, width], and what each row is multiplied with [n]."""
    size = model.budget.rows(columns.stop - columns.start, model.itemsize)
    rows, lengths = None, []
    for batch in train.batches(size):
        block = loss_gradients(model, batch, columns)
        rows = block.matrix.new_empty(len(train), block.matrix.shape[1]) if rows is None else rows
        rows[batch.indices[0] : batch.indices[-1] + 1] = block.matrix
        lengths.append(block.scale)
    assert rows is not None
    return rows, torch.cat(lengths)


def _add_lower(gram: Tensor, rows: Tensor, lengths: Tensor, start: int) -> None:
    """Gram += R R^T in the columns of a block from the diagonal down, for R = lengths x rows."""
    doubled = partial(_doubled, rows, lengths)
    right = doubled(start)
    for below in range(start, len(rows), BLOCK_ROWS):
        left = right if below == start else doubled(below)
        gram[below : below + BLOCK_ROWS, start : start + BLOCK_ROWS] += left @ right.T


def _doubled(rows: Tensor, lengths: Tensor, start: int) -> Tensor:
    return rows[start : start + BLOCK_ROWS].double() * lengths[start : start + BLOCK_ROWS, None]


def mirrored(matrix: Tensor) -> Tensor:
    """The lower triangle copied to the upper, block by block."""
    for start in range(0, len(matrix), BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, len(matrix))
        corner = matrix[start:stop, start:stop]
        corner.copy_(corner.tril() + corner.tril(-1).T)
        matrix[start:stop, stop:] = matrix[stop:, start:stop].T
    return matrix
