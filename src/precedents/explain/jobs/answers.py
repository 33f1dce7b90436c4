"""Answers: which cases a training instance is a precedent of, and which instances answer very many: hubs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from torch import Tensor

from precedents.data.examples import Examples
from precedents.explain.cautions import counted, hubs, left_out
from precedents.explain.jobs._portrayal import Portrayal, case_tag, side_by_side
from precedents.explain.jobs._tabled import DRAWN, Row, Tabled
from precedents.metrics.ranking import TopK
from precedents.views.gallery import Strip
from precedents.views.instance import Cell, scores

FEW = 5  # cases that are drawn for an instance


@dataclass(frozen=True, eq=False)
class Answers(Tabled):
    """For some training instances the cases among whose first k precedents they are, most relevant first.

    >>> import torch, precedents as pr
    >>> model = torch.nn.Linear(2, 2, bias=False)
    >>> _ = model.weight.data.copy_(2 * torch.eye(2))
    >>> explainer = pr.Explainer(model, (torch.eye(2), torch.tensor([0, 1])))
    >>> print(explainer.answers(0, torch.tensor([[3.0, 1.0], [1.0, 2.0], [5.0, 0.0]]), k=1))
    #0 is among the first 1 precedents of 2 of 3 cases
      #0  0  first precedent of case 2  predicted 0  +1.000
      #0  0  first precedent of case 0  predicted 0  +0.949
    """

    metric: str
    indices: Sequence[int]  # the training instances that were asked for
    cases: Examples = field(repr=False)  # with the model's predictions
    top: TopK  # the precedents of all cases [m, k]
    unranked: Tensor  # [m], which cases the metric cannot rank for: they count nowhere
    portrayal: Portrayal = field(repr=False)

    columns = ("index", "id", "label", "case", "case_id", "prediction", "rank", "score", "agrees")

    legend = (
        "Each training instance stands first, and then the cases that it is a precedent of. ✗: the case is "
        "predicted as another class than its label."
    )

    @property
    def k(self) -> int:
        """How many precedents of a case count."""
        return self.top.indices.shape[1]

    @cached_property
    def counts(self) -> Mapping[int, int]:
        """How many cases each training instance is the first precedent of: most first."""
        return counted(self.top.indices[~self.unranked, 0].tolist())

    @cached_property
    def hubs(self) -> Mapping[int, float]:
        """The training instances that answer very many cases, with their share; of 20 cases or more."""
        return hubs(self.counts, int((~self.unranked).sum()), self.portrayal.subject.classifier.classes)

    @property
    def heading(self) -> str:
        """How many cases."""
        m = len(self.cases)
        if len(self.indices) == 1:
            found, which = len(self.rows()), f"{self.portrayal.tag(self.indices[0])} is"
        else:
            found, which = (
                len({row["case"] for row in self.rows()}),
                f"{len(self.indices)} training instances are",
            )
        return f"{which} among the first {self.k} precedents of {found} of {m} cases"

    @property
    def notes(self) -> Sequence[str]:
        """Hubs among those that were asked for, and how many cases are not counted."""
        found = {i: share for i, share in self.hubs.items() if i in set(self.indices)}
        told = [
            f"{self.portrayal.tag(i)} is a hub: the first precedent of {share:.0%} of the cases."
            for i, share in found.items()
        ]
        return [*told, *left_out(self.unranked, self.metric)]

    def rows(self) -> list[Row]:
        """For each instance its cases, most relevant first."""
        return [row for j in self.indices for row in self._rows(j)]

    def _rows(self, j: int) -> list[Row]:
        found = ((self.top.indices == j) & ~self.unranked[:, None]).nonzero().tolist()
        labels, train = self.cases.labels, self.portrayal.subject.train.labels
        rows = [
            {
                "id": None,
                **self.portrayal.own(j),
                "case": case,
                "case_id": None if self.cases.ids is None else self.cases.ids[case],
                "prediction": self.portrayal.plain(int(labels[case])),
                "rank": place + 1,
                "score": float(self.top.scores[case, place]),
                "agrees": bool(labels[case] == train[j]),
            }
            for case, place in found
        ]
        return sorted(rows, key=lambda row: (row["rank"], -row["score"], row["case"]))

    def printed(self) -> list[Sequence[str]]:
        """Instance, label, case, prediction, score."""
        rows = self.rows()
        values = scores([row["score"] for row in rows])
        return [
            (
                self.portrayal.tag(row["index"]),
                str(row["label"]),
                f"{_nth(row['rank'])} precedent of {case_tag(self.cases, row['case'])}",
                f"predicted {row['prediction']}",
                value,
            )
            for row, value in zip(rows, values, strict=True)
        ]

    @property
    def drawn(self) -> tuple[int, int]:
        """Of the instances that were asked for."""
        return DRAWN, len(self.indices)

    def strips(self) -> list[Strip]:
        """Each instance beside the first of its cases."""
        if all(len(self._rows(j)) == 0 for j in self.indices):
            return side_by_side([self.portrayal.cell(j) for j in self.indices[:DRAWN]])
        return [
            Strip(self.portrayal.cell(j), [self._cell(row) for row in self._rows(j)[:FEW]])
            for j in self.indices[:DRAWN]
        ]

    def _cell(self, row: Row) -> Cell:
        title = f"{case_tag(self.cases, row['case'])}\npredicted {row['prediction']}"
        return Cell(title, self.portrayal.of(self.cases, row["case"]), row["agrees"])


def _nth(rank: int) -> str:
    """The rank in words.

    >>> [_nth(i) for i in (1, 2, 3, 4, 11, 22)]
    ['first', '2nd', '3rd', '4th', '11th', '22nd']
    """
    if rank == 1:
        return "first"
    ending = "th" if rank % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    return f"{rank}{ending}"
