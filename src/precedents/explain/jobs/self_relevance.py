"""Self-relevance: how relevant every training instance is to itself, with the label that it has; O(n)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from precedents.explain.jobs._portrayal import Portrayal, side_by_side
from precedents.explain.jobs._tabled import DRAWN, Row, Tabled
from precedents.metrics.features.gradient import gradient
from precedents.metrics.kernel import Kernel
from precedents.metrics.paper import name_of
from precedents.metrics.preconditioners.identity import identity
from precedents.metrics.ranking import descending
from precedents.metrics.relevance import Relevance
from precedents.metrics.similarities.cosine import cosine
from precedents.metrics.similarities.dot import dot
from precedents.metrics.similarities.l2 import l2
from precedents.metrics.vectors import SQUARES
from precedents.views.gallery import Strip
from precedents.views.instance import scores

TOGETHER = 64  # instances whose similarity to themselves is made at once
SAME: Mapping[Callable[[Kernel], Tensor], str] = {cosine: "one", l2: "zero"}  # of everything with itself


@dataclass(frozen=True, eq=False)
class SelfRelevance(Tabled):
    """How relevant each training instance is to itself: largest where the model needs it to believe its label.

    >>> import torch, precedents as pr
    >>> model = torch.nn.Linear(2, 2, bias=False)
    >>> _ = model.weight.data.copy_(2 * torch.eye(2))
    >>> train = torch.tensor([[1.0, 0.0], [0.0, 1.0], [3.0, 0.0]]), torch.tensor([0, 1, 1])
    >>> print(pr.Explainer(model, train, "dot_grad").self_relevance())
    dot_grad of 3 training instances to themselves, largest first
      #2  1  +17.91
      #0  0  +0.03
      #1  1  +0.03
    """

    metric: str
    scores: Tensor  # [n], float64
    lengths: Tensor | None  # [n], under M^-1; none where it is indefinite
    same: str | None  # what this metric is of everything with itself, if that is known,
    instead: str  # and which one to ask then
    portrayal: Portrayal = field(repr=False)

    gradients: bool = True  # whether vectors are gradients, in which labels take part

    @property
    def legend(self) -> str:
        """What the numbers are of."""
        if self.gradients:
            return (
                "How much of its label the model believes because of this instance alone: at the top may be "
                "wrong labels, and rare or hard instances."
            )
        return "The lengths of inputs or layers: how far from zero they are, in which labels take no part."

    @cached_property
    def order(self) -> list[int]:
        """The training instances, the largest first; ties to the smaller index, and NaN last."""
        values = self.scores if self.same is None or self.lengths is None else self.lengths
        return [int(i) for i in descending(values[None])[0]]

    @property
    def heading(self) -> str:
        """What it is of."""
        return f"{self.metric} of {len(self.scores)} training instances to themselves, {self._first} first"

    @property
    def _first(self) -> str:
        return "largest" if self.same is None or self.lengths is None else "longest"

    @property
    def notes(self) -> Sequence[str]:
        """Which metric to use where this one is the same for all."""
        if self.same is None:
            return ()
        told = f"{self.metric} of everything with itself is {self.same}, so that lengths of vectors rank here"
        return [f'{told}. Use pr.Explainer(model, train, "{self.instead}").self_relevance().']

    @property
    def columns(self) -> Sequence[str]:
        """The names of the values of a row."""
        own = list(self.portrayal.own(0))
        return ["rank", *own, "score", *([] if self.lengths is None else ["length"])]

    def rows(self) -> list[Row]:
        """Every training instance, the largest first."""
        return [
            {"rank": rank, **self.portrayal.own(i), "score": float(self.scores[i]), **self._length(i)}
            for rank, i in enumerate(self.order, 1)
        ]

    def _length(self, i: int) -> Row:
        return {} if self.lengths is None else {"length": float(self.lengths[i])}

    def __len__(self) -> int:
        return len(self.scores)

    def printed(self) -> list[Sequence[str]]:
        """Instance, label, score; lengths where these rank."""
        order = self.order
        values = self._told(order)
        labels = self.portrayal.subject.train.labels
        return [
            (self.portrayal.tag(i), self.portrayal.name(int(labels[i])), value)
            for i, value in zip(order, values, strict=True)
        ]

    def _told(self, places: Sequence[int]) -> list[str]:
        """What ranks these instances, in print."""
        if self.same is None or self.lengths is None:
            return scores([float(self.scores[i]) for i in places])
        values = scores([float(self.lengths[i]) for i in places])
        return [f"length {value.removeprefix('+')}" for value in values]

    def strips(self) -> list[Strip]:
        """The largest."""
        first = self.order[:DRAWN]
        values = self._told(first)
        return side_by_side([self.portrayal.cell(i, value) for i, value in zip(first, values, strict=True)])


def own_squares(relevance: Relevance) -> Tensor:
    """The squared lengths [n] of the training instances under M^-1: the kernel's diagonal, in one pass."""
    workspace, features = relevance.workspace, relevance.metric.features
    known = workspace.cache.get(SQUARES.at(features)) if relevance.metric.preconditioner == identity else None
    if known is not None:
        workspace.train.unchanged()
        return known  # of a question before
    one = workspace.train.selected([0])
    relevance.required()
    return torch.cat([kernel.train_sq for kernel in relevance.kernels(one)])


def own_scores(relevance: Relevance, squares: Tensor) -> Tensor:
    """The relevance [n] of each to itself, from the diagonal of the kernel through the similarity."""
    found = []
    for own in squares.split(TOGETHER):
        kernel = Kernel(own.diag(), own, own, relevance.inverse.definite)
        found.append(relevance.metric.similarity(kernel).diagonal())
    return torch.cat(found)


def self_relevance(relevance: Relevance, metric: str, portrayal: Portrayal) -> SelfRelevance:
    """Of every training instance to itself, by a fitted metric."""
    squares = own_squares(relevance)
    definite = relevance.inverse.definite
    return SelfRelevance(
        metric=metric,
        scores=own_scores(relevance, squares),
        lengths=squares.clamp(min=0).sqrt() if definite else None,
        same=SAME.get(relevance.metric.similarity),
        instead=name_of(replace(relevance.metric, similarity=dot)),
        portrayal=portrayal,
        gradients=relevance.metric.features is gradient,
    )
