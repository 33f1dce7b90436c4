"""Compare: two explainers, of two models or two metrics, on the same cases: where they differ."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from precedents.adapters._subject import Subject
from precedents.data.examples import Examples
from precedents.data.ids import Id, shown_id
from precedents.errors import InputError
from precedents.explain.cautions import left_out
from precedents.explain.jobs._portrayal import Portrayal, case_tag
from precedents.explain.jobs._tabled import DRAWN, Row, Tabled
from precedents.metrics.ranking import TopK, checked_k
from precedents.runtime.door import door
from precedents.runtime.wording import a_type
from precedents.seen import clipped
from precedents.views.gallery import Strip
from precedents.views.instance import Cell, scores

if TYPE_CHECKING:
    from precedents.explain.explainer import Explainer

BESIDE = 5  # precedents that are drawn
COMPARED = 10  # precedents of a case, if nothing is said
ALLOWED = 0.25  # of the instances whose inputs differ: a larger share with other labels are other instances


@dataclass(frozen=True, eq=False)
class View:
    """What one explainer says of the cases."""

    name: str
    cases: Examples = field(repr=False)  # with its own predictions
    top: TopK  # [m, k]
    unranked: Tensor  # [m], which cases it cannot rank for
    portrayal: Portrayal = field(repr=False)

    def label(self, case: int) -> str:
        """The predicted class of a case as a person sees it."""
        return self.portrayal.name(int(self.cases.labels[case]))

    def strip(self, case: int) -> Strip:
        """A case and its precedents, if it has any."""
        predicted, train = int(self.cases.labels[case]), self.portrayal.subject.train.labels
        title = f"{case_tag(self.cases, case)}, {self.name}\npredicted {self.label(case)}"
        found = [] if self.unranked[case] else self.top.indices[case, :BESIDE].tolist()
        values = scores(self.top.scores[case, : len(found)].tolist())
        cells = [
            self.portrayal.cell(i, value, int(train[i]) == predicted)
            for i, value in zip(found, values, strict=True)
        ]
        return Strip(Cell(title, self.portrayal.of(self.cases, case)), cells)


@dataclass(frozen=True, eq=False)
class ExplainerComparison(Tabled):
    """Two explainers on the same cases, the cases that changed most first.

    A case changed more if its prediction did, and then the fewer of its first k precedents both have.

    >>> import torch, precedents as pr
    >>> model = torch.nn.Linear(2, 2, bias=False)
    >>> _ = model.weight.data.copy_(2 * torch.eye(2))
    >>> train = torch.tensor([[1.0, 0.0], [0.0, 1.0], [9.0, 8.0]]), torch.tensor([0, 1, 0])
    >>> one, other = pr.Explainer(model, train, "cos_x"), pr.Explainer(model, train, "dot_x")
    >>> print(pr.compare(one, other, torch.tensor([[3.0, 1.0], [2.0, 3.0]]), k=1))
    cos_x and dot_x on 2 cases: the same prediction in 100%, 50% of the first 1 precedents in common
      case 0  predicted 0 by both  0 of 1 in common  first #0 and #2
      case 1  predicted 1 by both  1 of 1 in common  first #2 by both
    """

    one: View
    other: View

    columns = (
        "case",
        "case_id",
        "one_prediction",
        "other_prediction",
        "changed",
        "overlap",
        "one_first",
        "one_first_id",
        "other_first",
        "other_first_id",
    )

    legend = (
        "The cases that changed most stand first: with their precedents by the one, and below by the other."
    )

    @property
    def k(self) -> int:
        """How many precedents of a case are compared."""
        return self.one.top.indices.shape[1]

    @cached_property
    def changed(self) -> Tensor:
        """Of which cases [m] the predictions differ, by the names of their classes."""
        pairs = zip(self.one.cases.labels.tolist(), self.other.cases.labels.tolist(), strict=True)
        return torch.tensor([self.one.portrayal.plain(a) != self.other.portrayal.plain(b) for a, b in pairs])

    @cached_property
    def overlap(self) -> Tensor:
        """The shares [m] of the first k precedents that both have; NaN where one cannot rank."""
        pairs = zip(self.one.top.indices, self.other.top.indices, strict=True)
        found = torch.stack([torch.isin(own, others).double().mean() for own, others in pairs])
        return found.masked_fill(self.one.unranked | self.other.unranked, torch.nan)

    @cached_property
    def order(self) -> list[int]:
        """The cases, those that changed most first, and what cannot be compared last; ties in their order."""
        changed, overlap = self.changed.tolist(), self.overlap.nan_to_num(nan=2.0).tolist()
        return sorted(range(len(overlap)), key=lambda case: (not changed[case], overlap[case], case))

    @property
    def heading(self) -> str:
        """How much both agree."""
        same, overlap = 1 - float(self.changed.double().mean()), self.overlap[~self.overlap.isnan()]
        shared = f"{fmean(overlap.tolist()):.0%}" if len(overlap) else "none"
        return (
            f"{self.one.name} and {self.other.name} on {len(self.overlap)} cases: the same prediction in "
            f"{same:.0%}, {shared} of the first {self.k} precedents in common"
        )

    @property
    def notes(self) -> Sequence[str]:
        """Of how many cases the precedents are not compared."""
        return [said for view in (self.one, self.other) for said in left_out(view.unranked, view.name)]

    def __len__(self) -> int:
        return len(self.overlap)

    def rows(self) -> list[Row]:
        """The cases, those that changed most first."""
        return [self._row(case) for case in self.order]

    def _row(self, case: int) -> Row:
        cases = self.one.cases
        return {
            "case": case,
            "case_id": None if cases.ids is None else cases.ids[case],
            "one_prediction": self.one.portrayal.plain(int(self.one.cases.labels[case])),
            "other_prediction": self.other.portrayal.plain(int(self.other.cases.labels[case])),
            "changed": bool(self.changed[case]),
            "overlap": None if self.overlap[case].isnan() else float(self.overlap[case]),
            **self._first("one_first", self.one, case),
            **self._first("other_first", self.other, case),
        }

    def _first(self, name: str, view: View, case: int) -> Row:
        """The first precedent of a case by its place, and by its id where one of the two sets has ids."""
        if view.unranked[case]:
            return {name: None, f"{name}_id": None}
        place = int(view.top.indices[case, 0])
        return {name: place, f"{name}_id": None if self._ids is None else self._ids[place]}

    @property
    def _ids(self) -> Sequence[Id] | None:
        own, others = (view.portrayal.subject.train.ids for view in (self.one, self.other))
        return others if own is None else own

    def printed(self) -> list[Sequence[str]]:
        """Case, predictions, overlap, first precedents."""
        return [
            (
                case_tag(self.one.cases, row["case"]),
                _both("predicted", row["one_prediction"], row["other_prediction"]),
                self._shared(row["overlap"]),
                _both("first", *(self._tag(row, name) for name in ("one_first", "other_first"))),
            )
            for row in self.rows()
        ]

    def _shared(self, overlap: float | None) -> str:
        return "not ranked" if overlap is None else f"{round(overlap * self.k)} of {self.k} in common"

    def _tag(self, row: Row, name: str) -> str:
        """What a person sees a first precedent called."""
        if row[name] is None:
            return "none"
        return f"#{row[name]}" if self._ids is None else shown_id(row[f"{name}_id"])

    @property
    def drawn(self) -> tuple[int, int]:
        """Half as many as elsewhere, as each is drawn twice."""
        return DRAWN // 2, len(self)

    def strips(self) -> list[Strip]:
        """The cases that changed most, once for each explainer."""
        return [view.strip(case) for case in self.order[: self.drawn[0]] for view in (self.one, self.other)]


def _both(what: str, one: Any, other: Any) -> str:
    return f"{what} {one} by both" if one == other else f"{what} {one} and {other}"


@door
def compare(one: "Explainer", other: "Explainer", cases: Any, k: int | None = None) -> ExplainerComparison:
    """Where the predictions and the precedents of two explainers differ, on the same cases.

    one, other: explainers of two models on the same training set, or of one model by two metrics. Their classes
        are the same by their names, where both have them, and otherwise by their numbers.
    cases: as for `Explainer.explain`.
    k: how many precedents of each case are compared, no more than there are training instances; 10 without it,
        or all of a smaller set.
    """
    for name, each in (("one", one), ("other", other)):
        if not hasattr(each, "precedents_of"):
            raise InputError(f"{name} is {a_type(each)}. Pass two explainers: pr.compare(one, other, cases).")
    subjects, n = _named_alike(one.subject, other.subject), len(one.subject.train)
    _same_set(*subjects)
    k = min(COMPARED, n) if k is None else checked_k(k, n)
    asked = [each.subject.cases(cases) for each in (one, other)]
    found = [each.precedents_of(own, k) for each, own in zip((one, other), asked, strict=True)]
    names = [one.name, other.name] if one.name != other.name else ["one", "other"]
    views = [
        View(name, own, *precedents, Portrayal(subject))
        for name, own, precedents, subject in zip(names, asked, found, subjects, strict=True)
    ]
    return ExplainerComparison(views[0], views[1])


def _named_alike(one: Subject, other: Subject) -> tuple[Subject, Subject]:
    """Both with names of the classes by which predictions compare; names that differ are refused.

    Where one has none, its classes have the names of the other, by their numbers.
    """
    a, b = one.classes, other.classes
    if a is None or b is None:
        alike = one.classifier.classes == other.classifier.classes
        names = (a or b) if alike else None
        return replace(one, classes=names), replace(other, classes=names)
    if set(a) != set(b):
        own, others = (", ".join(map(clipped, sorted(x - y))) for x, y in ((set(a), set(b)), (set(b), set(a))))
        raise InputError(
            f"The names of the classes differ: the first explainer alone has {own or 'none'}, the second alone "
            f"{others or 'none'}. Name them alike, each in its model's order: Explainer(..., classes=[...])."
        )
    return one, other


def _same_set(one: Subject, other: Subject) -> None:
    """Refuses explainers whose precedents are not of the same training set.

    Inputs may differ, as where each model has its own preprocessing, and labels where some were corrected.
    """
    a, b = one.train, other.train
    advice = "Precedents are compared by their places: make both explainers with the same training set."
    if len(a) != len(b):
        raise InputError(f"One explainer has {len(a)} training instances, the other {len(b)}. {advice}")
    if a.ids is not None and b.ids is not None:
        place = next((i for i, (x, y) in enumerate(zip(a.ids, b.ids, strict=True)) if x != y), None)
        if place is not None:
            raise InputError(f"The ids of the two training sets differ, the first at {place}. {advice}")
    elif _read_from(a) is not _read_from(b) and (wrong := _unlike(one, other)):
        raise InputError(f"{wrong}. {advice} If these are the same instances, say so: ids=[...].")


def _unlike(one: Subject, other: Subject) -> str:
    """What shows that two training sets are not the same instances; empty if nothing does."""
    own, others = one.train.marks(), other.train.marks()
    moved = _moved(own, others)
    if moved is not None:
        return f"Instances are in both training sets, but in another order, the first at {moved}"
    unlike = [i for i, (x, y) in enumerate(zip(own, others, strict=True)) if x != y]
    sides = [(Portrayal(each), each.train.labels) for each in (one, other)]
    names = ([portrayal.plain(int(labels[i])) for i in unlike] for portrayal, labels in sides)
    relabelled = sum(a != b for a, b in zip(*names, strict=True))
    if relabelled <= ALLOWED * len(unlike):
        return ""
    return f"The two training sets differ in {len(unlike)} inputs, {relabelled} of which have another label"


def _moved(own: Sequence[bytes], others: Sequence[bytes]) -> int | None:
    """The first place of an instance that the other set has at another place; none if there is none."""
    first, second = _once(own), _once(others)
    moved = [place for mark, place in first.items() if second.get(mark, place) != place]
    if not moved and sorted(own) == sorted(others):
        moved = [i for i, (x, y) in enumerate(zip(own, others, strict=True)) if x != y]
    return min(moved, default=None)


def _once(marks: Sequence[bytes]) -> dict[bytes, int]:
    """The places of the instances that are there once."""
    counts = Counter(marks)
    return {mark: i for i, mark in enumerate(marks) if counts[mark] == 1}


def _read_from(train: Examples) -> Any:
    """What the instances are read from; of the same, nothing need be compared."""
    return getattr(train.source, "dataset", train.source)
