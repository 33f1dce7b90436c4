"""Contrast: the precedents of a case for each of two classes, and what separates them; in one pass."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from precedents.data.examples import Examples
from precedents.errors import InputError
from precedents.explain.cautions import Doubts
from precedents.explain.jobs._portrayal import Portrayal, beginnings, case_tag
from precedents.explain.jobs._tabled import Row, Tabled
from precedents.gradients.rows import Rows
from precedents.metrics.ranking import TopK, descending
from precedents.metrics.relevance import Relevance
from precedents.views.gallery import Strip
from precedents.views.instance import Cell, scores
from precedents.views.standing_out import StandingOut, standing_out


@dataclass(frozen=True, eq=False)
class Contrast(Tabled):
    """What speaks for one class and what for another, of one case.

    On each side stand the training instances of that class which are most relevant to the case, taken for it.

    >>> import torch, precedents as pr
    >>> model = torch.nn.Linear(2, 2, bias=False)
    >>> _ = model.weight.data.copy_(2 * torch.eye(2))
    >>> explainer = pr.Explainer(model, (torch.eye(2), torch.tensor([0, 1])), classes=["cat", "dog"])
    >>> print(explainer.contrast(torch.tensor([3.0, 1.0]), "cat", "dog"))
    cat (98.2%) or dog (1.8%)? predicted cat
      for cat  #0  +0.949  as dog -0.949
      for dog  #1  +0.316  as cat -0.316
    """

    metric: str
    case: Examples = field(repr=False)  # one, with the model's prediction
    sides: tuple[int, int]  # the two classes
    chances: tuple[float, float]  # that the model gives them
    tops: tuple[TopK, TopK]  # for each side, indices and scores [1, k]
    others: tuple[Tensor, Tensor]  # [k] each, the same for the case taken for the other class
    separating: StandingOut  # in what the two lists differ
    portrayal: Portrayal = field(repr=False)
    doubts: Doubts = field(repr=False)  # of the case, taken for each class
    cautions: Sequence[str] = ()  # what speaks against all precedents of the case
    texts: Sequence[str] = field(default=(), repr=False)  # how those of the precedents begin

    columns = ("side", "rank", "index", "id", "score", "other_score")

    legend = (
        "The case is taken for each of the two classes in turn, beside the training instances that count most "
        "for it then. The first number of each is its relevance for its own class, the second for the other."
    )

    @property
    def heading(self) -> str:
        """The question, and what the model says."""
        named = [
            f"{self._name(side)} ({chance:.1%})" for side, chance in zip(self.sides, self.chances, strict=True)
        ]
        return f"{' or '.join(named)}? predicted {self._name(int(self.case.labels[0]))}"

    def _name(self, label: int) -> str:
        return self.portrayal.name(label)

    @property
    def notes(self) -> Sequence[str]:
        """What separates the two lists, on which side of it the case is, and what speaks against all of it."""
        one, other = (f"those for {self._name(side)}" for side in self.sides)
        return [*self.separating.sentences(one, other), *self.cautions]

    def rows(self) -> list[Row]:
        """The precedents of both sides."""
        return [
            {
                "side": self.portrayal.plain(self.sides[side]),
                "rank": rank + 1,
                "id": None,
                **self.portrayal.own(int(i)),
                "score": float(self.tops[side].scores[0, rank]),
                "other_score": float(self.others[side][rank]),
            }
            for side in (0, 1)
            for rank, i in enumerate(self.tops[side].indices[0])
        ]

    def printed(self) -> list[Sequence[str]]:
        """Side, instance, and both scores."""
        rows = self.rows()
        own, other = (scores([row[name] for row in rows]) for name in ("score", "other_score"))
        return [
            (
                f"for {self._name(self.sides[side])}",
                self.portrayal.tag(row["index"]),
                mine,
                f"as {self._name(self.sides[1 - side])} {theirs}",
            )
            for row, mine, theirs in zip(rows, own, other, strict=True)
            for side in [0 if row["side"] == self.portrayal.plain(self.sides[0]) else 1]
        ]

    @property
    def drawn(self) -> tuple[int, int]:
        """All of them."""
        return len(self), len(self)

    def strips(self) -> list[Strip]:
        """A row for each side."""
        asked = self.portrayal.of(self.case, 0)
        return [
            Strip(
                Cell(f"{case_tag(self.case, 0)}\ntaken for {self._name(self.sides[side])}", asked),
                [
                    self.portrayal.cell(int(i), value, True)
                    for i, value in zip(
                        self.tops[side].indices[0],
                        scores(self.tops[side].scores[0].tolist()),
                        strict=True,
                    )
                ],
            )
            for side in (0, 1)
        ]


def contrast(
    relevance: Relevance, case: Examples, sides: tuple[int, int], k: int, portrayal: Portrayal, metric: str
) -> Contrast:
    """Of one case, for two classes; the training set is passed once for both."""
    train, model = relevance.workspace.train, relevance.workspace.classifier
    twice = case.selected([0, 0]).relabelled(torch.tensor(sides))
    matrix = relevance.scores(twice)  # [2, n]
    tops, others = [], []
    for side, label in enumerate(sides):
        places = (train.labels == label).nonzero().flatten()
        if not len(places):
            raise InputError(
                f"The class {portrayal.name(label)} has no training instance, so that nothing speaks for it. "
                f"Classes with instances: {', '.join(portrayal.name(int(i)) for i in train.labels.unique())}."
            )
        order = places[descending(matrix[side, places][None])[0, :k]]
        tops.append(TopK(order[None], matrix[side, order][None]))
        others.append(matrix[1 - side, order])
    chances = model.finite_logits(case.take([0]), "case").softmax(dim=1)[0]
    lists = [[portrayal.seen(int(i)) for i in top.indices[0]] for top in tops]
    doubts = _doubts(relevance, twice, matrix)
    asked = portrayal.of(case, 0)
    separating = StandingOut("none")  # of lists that are arbitrary
    if not doubts.unranked.any():
        separating = standing_out(lists[0], lists[1], asked)
    return Contrast(
        metric=metric,
        case=case,
        sides=sides,
        chances=(float(chances[sides[0]]), float(chances[sides[1]])),
        tops=(tops[0], tops[1]),
        others=(others[0], others[1]),
        separating=separating,
        portrayal=portrayal,
        doubts=doubts,
        texts=[] if portrayal.subject.render is None else beginnings([*lists[0], *lists[1]]),
    )


def _doubts(relevance: Relevance, cases: Examples, matrix: Tensor) -> Doubts:
    """Where the metric cannot rank, from all scores [m, n]."""
    asked = cases.take(range(len(cases)))
    empty = Rows.of(relevance.metric.features(relevance.workspace.classifier, asked)).squares() == 0
    tied = (matrix == matrix[:, :1]).all(dim=1) & (matrix.shape[1] > 1)
    return Doubts(torch.zeros(len(cases), 0, dtype=torch.bool), tied, empty)


def two_classes(number: Callable[[Any], int], one: Any, other: Any) -> tuple[int, int]:
    """The numbers of two classes, which are given by name or number and are not the same."""
    sides = number(one), number(other)
    if sides[0] == sides[1]:
        raise InputError(f"Both classes are {one!r}. Name two, as the predicted and the right one.")
    return sides
