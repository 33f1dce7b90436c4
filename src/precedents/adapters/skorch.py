"""skorch: fitted nets of PyTorch with the interface of scikit-learn; pipelines of them: scikit_learn.py."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from precedents.adapters._adapter import TRAINING, Adapter
from precedents.adapters._columns import Columns
from precedents.adapters._containers import is_frame, is_sparse
from precedents.adapters._skorch import Net, is_net
from precedents.data.examples import Examples, as_batch
from precedents.data.inputs import Collated, Inputs, shapes

TRIED = 8  # instances for which predictions are compared


class Skorch(Adapter):
    """A net, or a search for one: a torch module with a criterion and, sometimes, names of classes."""

    before = ("scikit_learn",)  # nets are estimators, too
    reads = ("labels",)

    @classmethod
    def accepts(cls, model: Any) -> bool:
        """Nets, searches of scikit-learn that have found one, and pipelines that are nothing else."""
        return is_net(_alone(model))

    def __init__(self, model: Any) -> None:
        self.net = Net(_alone(model))
        self.module, self.name = self.net.module, self.net.name
        self.classes = self.known = self.net.names

    @property
    def loss(self) -> Any:
        """The net's own criterion."""
        return self.net.loss

    def told(self, columns: Columns, classes: Any) -> None:
        """Where labels are, and the names that they may be."""
        super().told(columns, classes)
        if isinstance(classes, (list, tuple)):
            self.known = [str(name) for name in classes]

    def examples(self, data: Any, what: str) -> Examples:
        """From a pair (X, y) as `fit` takes it, or a dataset."""
        if isinstance(data, (tuple, list)) and len(data) == 2 and not isinstance(data, Examples):
            data = fed(data[0]), self.net.numbered(data[1], what, self.known)
        made = Examples.of(data, what, labels=self.where.labels)
        inputs = made.take(range(min(TRIED, len(made)))).inputs
        if isinstance(inputs, dict) and all(shape[1:] == (1,) for shape in shapes(inputs)):
            self.render = _named_values
        if what == TRAINING and not isinstance(inputs, Collated):
            self.output = self.net.looked_at(inputs).place
        return made

    def cases(self, x: Any, train: Examples) -> tuple[Inputs, bool]:
        """One row or several, as `predict` takes them."""
        return as_batch(fed(x), train.first)

    def numbered(self, labels: Any) -> Tensor:
        """Of class numbers or names of classes."""
        return self.net.numbered(labels, "cases", self.known)


def fed(x: Any) -> Any:
    """Rows as a net feeds them: a frame by its columns [n, 1], as skorch reads it; sparse rows dense."""
    if is_frame(x):
        return {str(name): np.asarray(x[name]).reshape(-1, 1) for name in x.columns}
    if is_sparse(x):
        return x.toarray()
    row = x.to_dict() if hasattr(x, "to_dict") else x  # a row of a frame
    if isinstance(row, Mapping) and row and all(np.ndim(value) == 0 for value in row.values()):
        return {str(name): np.asarray([value]) for name, value in row.items()}
    return x


def _named_values(instance: Any) -> dict[str, Any]:
    """A row of a frame by its columns."""
    return {name: value.reshape(-1)[0].item() for name, value in instance.items()}


def _alone(model: Any) -> Any:
    """The net that a search has found, or that is the only step; anything else as it is."""
    inner = getattr(model, "best_estimator_", model)
    steps: Sequence[Any] = getattr(inner, "steps", ())
    if isinstance(steps, list) and len(steps) == 1:
        inner = steps[0][1]
    return inner if inner is model else _alone(inner)


skorch = Skorch
