"""Neighbours: for each of some vectors the nearest others by their cosine, block by block; no matrix of all."""

from dataclasses import dataclass

import torch
from torch import Tensor

from precedents.errors import NotApplicable
from precedents.index.codes import unit
from precedents.index.sketch import CountSketch
from precedents.metrics.features.all_hidden import all_hidden
from precedents.metrics.features.inputs import inputs
from precedents.metrics.ranking import TopK
from precedents.metrics.vectors import Features, Vectors
from precedents.metrics.workspace import Workspace
from precedents.runtime.progress import tracked
from precedents.runtime.sparse import SparseRows

FLOAT32 = 4  # bytes
WIDEST = 512  # numbers up to which vectors are compared as they are
BLOCK = 2**26  # bytes of a block of cosines


@dataclass(frozen=True, eq=False)
class Units:
    """Vectors of length one, or zero where there is no direction."""

    rows: Tensor  # [n, d], float32; sparse, if vectors are

    def __len__(self) -> int:
        return len(self.rows)

    def cosines(self, start: int, stop: int, others: "Units") -> Tensor:
        """Of some of these with all the others [stop - start, n]."""
        found: Tensor = self.rows[start:stop] @ others.rows.T
        return found.float()


def units(vectors: Vectors) -> Units:
    """The training set's vectors at length one; long ones are sketched, whatever the memory."""
    workspace, n = vectors.workspace, len(vectors)
    sketch, found, sparse = CountSketch(vectors.width, WIDEST), torch.zeros(0), list[Tensor]()
    workspace.classifier.budget.bound(
        2 * FLOAT32 * n * sketch.length, f"Neighbours of {n} instances", "Allow more memory: memory=."
    )
    for places, rows in vectors.rows(workspace.train):
        if isinstance(rows.matrix, SparseRows):
            sparse.append(_unit_sparse(rows.matrix))
            continue
        if not len(found):
            found = torch.empty(n, sketch.length)
        found[places.start : places.stop] = unit(sketch, rows)
    return Units(torch.cat(sparse) if sparse else found)


def _unit_sparse(rows: SparseRows) -> Tensor:
    lengths = rows.squares().sqrt()
    scale = torch.where(lengths > 0, 1 / lengths, 0.0)
    return SparseRows(rows.rows.multiply(scale.numpy()[:, None]).tocsr())


def own_features(workspace: Workspace) -> Features:
    """What instances are neighbours by: the hidden layers, or the inputs of a model that has none."""
    try:
        Vectors.of(workspace, all_hidden)
    except NotApplicable:
        return inputs
    return all_hidden


def nearest(asked: Units, offered: Units, k: int, title: str, same: bool, room: int = BLOCK) -> TopK:
    """For each vector that is asked for its k nearest [m, k], ties to the smaller index.

    `same` says that both are the same vectors, of which none is its own neighbour; `room` is how many bytes a
    block of cosines may take.
    """
    n, k = len(offered), min(k, len(offered) - same)
    size = max(1, min(room, BLOCK) // (FLOAT32 * max(1, n)))
    indices, values = torch.empty(len(asked), k, dtype=torch.long), torch.empty(len(asked), k)
    for start in tracked(range(0, len(asked), size), title):
        stop = min(start + size, len(asked))
        cosines = asked.cosines(start, stop, offered)
        if same:
            cosines[torch.arange(stop - start), torch.arange(start, stop)] = -torch.inf
        found = _best(cosines, k)
        indices[start:stop], values[start:stop] = found.indices, found.scores
    return TopK(indices, values)


def _best(scores: Tensor, k: int) -> TopK:
    """The k largest of each row, which need not be sorted as a whole; ties to the smaller index."""
    if not k:
        return TopK(torch.zeros(len(scores), 0, dtype=torch.long), scores[:, :0])
    values, found = scores.topk(min(k + 1, scores.shape[1]), dim=1)
    tied = (
        (values[:, k - 1] == values[:, -1]).nonzero().flatten() if values.shape[1] > k else values[:0, 0].long()
    )
    indices = found[:, :k].clone()
    if len(tied):
        indices[tied] = _first_of_equals(scores[tied], values[tied, k - 1 : k], k)
    indices = indices.sort(dim=1).values
    own = scores.gather(1, indices)
    order = own.argsort(dim=1, descending=True, stable=True)
    return TopK(indices.gather(1, order), own.gather(1, order))


def _first_of_equals(scores: Tensor, last: Tensor, k: int) -> Tensor:
    """The places [m, k] of what is above the last, and of the first ones that equal it."""
    above, equal = scores > last, scores == last
    kept = above | (equal & (equal.cumsum(dim=1) <= k - above.sum(dim=1, keepdim=True)))
    return kept.nonzero()[:, 1].reshape(len(scores), k)


def votes(top: TopK, labels: Tensor, classes: int) -> Tensor:
    """For each instance how many [n, c] of its neighbours have each label; what is unlike it has no vote."""
    found = torch.zeros(len(top.indices), classes, dtype=torch.double)
    return found.scatter_add_(1, labels[top.indices], alike(top).double())


def alike(top: TopK) -> Tensor:
    """Which neighbours [n, k] have anything in common with the instance that they are the nearest of."""
    return top.scores > 0
