"""The Gauss-Newton matrix of the training loss, and its factor: for the cross entropy, the true Fisher."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

import torch
from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.curvature.going_on import batches_left
from precedents.curvature.gram import BLOCK_ROWS, mirrored
from precedents.data.examples import Examples
from precedents.gradients.gradients import curvature_rows, planned
from precedents.gradients.rows import Rows, joined
from precedents.runtime.progress import tracked


def fisher_matrix(model: Classifier, train: Examples) -> Tensor:
    """The Gauss-Newton matrix [p, p], float64: for the cross entropy, the true Fisher."""
    p = model.size
    matrix = torch.zeros(p, p, dtype=torch.double)

    def add(rows: Tensor) -> None:
        for start in range(0, p, BLOCK_ROWS):
            stop = min(start + BLOCK_ROWS, p)
            matrix[start:, start:stop].addmm_(rows[:, start:].T, rows[:, start:stop])

    _gather(model, train, Gathered({"matrix": matrix}, add))
    return mirrored(matrix.div_(len(train)))


def fisher_factor(model: Classifier, train: Examples) -> Tensor:
    """The rows [n r, p], r for each instance, whose squares sum to n times that matrix, float64."""
    factor = torch.zeros(len(train) * model.loss.rank(model.classes), model.size, dtype=torch.double)
    filled = torch.zeros((), dtype=torch.long)

    def add(rows: Tensor) -> None:
        factor[int(filled) : int(filled) + len(rows)] = rows
        filled.add_(len(rows))

    _gather(model, train, Gathered({"factor": factor, "filled": filled}, add))
    return factor


def fisher_rows(model: Classifier, train: Examples) -> Rows:
    """The rows of `fisher_factor` as their factors: what is sparse is not formed."""
    plan = planned(model)
    batches = tracked(range(0, len(train), plan.size), "Gauss-Newton")
    parts = [train.take(range(start, min(start + plan.size, len(train)))) for start in batches]
    blocks = [rows.doubled() for part in parts for rows in plan.pulled_back(part, model.loss.roots, None)]
    starts = accumulate(map(len, blocks), initial=0)
    placed = [(range(start, start + len(rows)), rows) for start, rows in zip(starts, blocks, strict=False)]
    return joined(placed, placed[-1][0].stop)


@dataclass(frozen=True, eq=False)
class Gathered:
    """Sums to which rows are added once there are enough of them for a fast product."""

    sums: Mapping[str, Tensor]
    add: Callable[[Tensor], None]  # changes the sums where they are
    held: list[Tensor] = field(default_factory=list)

    def take(self, rows: Tensor) -> None:
        """Takes some rows more, and adds all that wait once they are many."""
        self.held.append(rows)
        if sum(map(len, self.held)) >= 2 * BLOCK_ROWS:
            self.flush()

    def flush(self) -> None:
        """Adds what is held."""
        if self.held:
            rows = torch.cat(self.held)
            self.held.clear()
            self.add(rows)

    def parts(self) -> Mapping[str, Tensor]:
        """The sums, and the rows that wait."""
        return {**self.sums, **({"held": torch.cat(self.held)} if self.held else {})}

    def put(self, parts: Mapping[str, Tensor]) -> None:
        """Copies the sums, and holds the rows."""
        for name, tensor in self.sums.items():
            tensor.copy_(parts[name])
        self.held[:] = [parts["held"]] if "held" in parts else []


def _gather(model: Classifier, train: Examples, gathered: Gathered) -> None:
    """All rows of the matrix."""
    size = model.budget.rows(model.size * model.classes)
    for batch in batches_left("Gauss-Newton", (model, train), size, gathered):
        for rows in curvature_rows(model, batch):
            gathered.take(rows)
    gathered.flush()
