"""Metric = features x preconditioner x similarity, a frozen value with a text.

R(case, train) = s(K, q, t)     K = phi(case) M^-1 phi(train)^T     q, t = the same kernel's two diagonals
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from precedents.adapters._subject import Subject
from precedents.errors import InputError
from precedents.metrics.features import FEATURES
from precedents.metrics.kernel import Kernel
from precedents.metrics.preconditioners import PRECONDITIONERS
from precedents.metrics.preconditioners._inverse import Preconditioner
from precedents.metrics.preconditioners.identity import identity
from precedents.metrics.relevance import Relevance
from precedents.metrics.similarities import SIMILARITIES
from precedents.metrics.vectors import Features
from precedents.metrics.workspace import Workspace
from precedents.registry import written
from precedents.runtime.door import door

Similarity = Callable[[Kernel], Tensor]


@dataclass(frozen=True)
class Metric:
    """How relevant a training instance is to a case, written as `similarity:features/preconditioner`.

    >>> metric = Metric.read("cosine:gradient/hessian(damping=0.01)")
    >>> metric.similarity.__name__, metric.features.__name__, metric.preconditioner.damping
    ('cosine', 'gradient', 0.01)
    >>> print(Metric(metric.features, metric.similarity))
    cosine:gradient
    """

    features: Features
    similarity: Similarity
    preconditioner: Preconditioner = identity

    def __post_init__(self) -> None:
        own = self.preconditioner.features
        if own is not None and own is not self.features:
            raise InputError(
                f"The preconditioner {written(self.preconditioner)} acts on the features {written(own)}, "
                f"not on {written(self.features)}. Write {written(self.similarity)}:{written(own)}/"
                f"{written(self.preconditioner)}, or leave the preconditioner out."
            )

    @classmethod
    def read(cls, text: str) -> "Metric":
        """The metric that a text such as `cosine:gradient/hessian(damping=0.01)` writes."""
        similarity, colon, rest = text.partition(":")
        features, _, preconditioner = rest.partition("/")
        if not colon:
            raise InputError(f"{text!r} is no metric. Write similarity:features/preconditioner.")
        return cls(
            FEATURES.read(features),
            SIMILARITIES.read(similarity),
            PRECONDITIONERS.read(preconditioner or "identity"),
        )

    def __str__(self) -> str:
        base = f"{written(self.similarity)}:{written(self.features)}"
        return base if self.preconditioner == identity else f"{base}/{written(self.preconditioner)}"

    @door
    def fit(self, model: Any, train: Any = None) -> "Relevance":
        """The relevance of the instances of `train` under this `model`, both as for `Explainer`."""
        return Relevance(self, Workspace(Subject.of(model, train)))
