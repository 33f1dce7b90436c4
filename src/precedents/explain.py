"""Explainer: from a model and its training set to explanations; Explanation: cases with their precedents."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from precedents.data import Examples, InMemory, as_batch, checked_labels, checked_range
from precedents.errors import InputError
from precedents.evidence import Evidence
from precedents.inputs import Inputs, leaves, mapped
from precedents.metric import Metric, Relevance
from precedents.model import Classifier, Vectorise
from precedents.paper import metric as metric_of
from precedents.paper import name_of
from precedents.ranking import TopK
from precedents.runtime.cost import Estimate
from precedents.views.sheet import Cell, Strip, figure, page
from precedents.views.shown import Render, shown

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Precedent:
    """A training instance offered as evidence."""

    rank: int  # from 1
    index: int  # its place in the training set
    label: int
    score: float
    agrees: bool  # whether its class is the predicted one


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why these cases were predicted as they were: for each, the most relevant training instances."""

    metric: str
    predictions: Tensor  # [m]
    top: TopK  # indices and scores [m, k]
    labels: Tensor  # [m, k], of the precedents
    cases: Inputs = field(repr=False)  # [m, ...]
    precedents_inputs: Inputs = field(repr=False)  # [m, k, ...]
    classes: Sequence[str] | None = None
    render: Render | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.predictions)

    def __getitem__(self, case: int) -> "Explanation":
        """The explanation of one of the cases."""
        if not -len(self) <= case < len(self):
            raise IndexError(f"There is no case {case} among {len(self)}.")
        i = range(len(self))[case]
        return replace(
            self,
            predictions=self.predictions[i : i + 1],
            top=TopK(self.top.indices[i : i + 1], self.top.scores[i : i + 1]),
            labels=self.labels[i : i + 1],
            cases=mapped(lambda leaf: leaf[i : i + 1], self.cases),
            precedents_inputs=mapped(lambda leaf: leaf[i : i + 1], self.precedents_inputs),
        )

    def __iter__(self) -> Iterator["Explanation"]:
        return (self[i] for i in range(len(self)))

    def precedents(self, case: int = 0) -> list[Precedent]:
        """The precedents of a case, most relevant first."""
        rows = zip(
            self.top.indices[case].tolist(),
            self.labels[case].tolist(),
            self.top.scores[case].tolist(),
            strict=True,
        )
        predicted = int(self.predictions[case])
        return [Precedent(r + 1, i, y, s, y == predicted) for r, (i, y, s) in enumerate(rows)]

    def name(self, label: int) -> str:
        """The class's name, or its number."""
        return str(label) if self.classes is None else str(self.classes[label])

    def __str__(self) -> str:
        return "\n".join(self._sentence(case) for case in range(len(self)))

    def _sentence(self, case: int) -> str:
        which = f"case {case}: " if len(self) > 1 else ""
        found = self.precedents(case)
        places = max(len(str(p.index)) for p in found)
        names = max(len(self.name(p.label)) for p in found)
        digits = "+.3f" if 1e-3 <= max(abs(p.score) for p in found) < 1e4 else "+.3e"
        lines = [f"{which}predicted {self.name(int(self.predictions[case]))}, because of"]
        lines += [
            f"  #{p.index:<{places}}  {self.name(p.label):<{names}}  {p.score:{digits}}"
            + ("" if p.agrees else "  (another class)")
            for p in found
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values: the metric, and for each case its prediction and its precedents."""
        return {
            "metric": self.metric,
            "cases": [
                {
                    "case": case,
                    "prediction": self._plain(int(self.predictions[case])),
                    "precedents": [
                        {
                            "rank": p.rank,
                            "index": p.index,
                            "label": self._plain(p.label),
                            "score": p.score,
                            "agrees": p.agrees,
                        }
                        for p in self.precedents(case)
                    ],
                }
                for case in range(len(self))
            ],
        }

    def _plain(self, label: int) -> int | str:
        return label if self.classes is None else self.name(label)

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=2)

    def to_frame(self) -> "pd.DataFrame":
        """A pandas frame, one row per case and precedent."""
        import pandas as pd

        rows = [
            (case, self._plain(int(self.predictions[case])), p.rank, p.index, self._plain(p.label), p.score)
            for case in range(len(self))
            for p in self.precedents(case)
        ]
        return pd.DataFrame(rows, columns=["case", "prediction", "rank", "index", "label", "score"])

    def plot(self) -> "Figure":
        """The cases and their precedents side by side, as a matplotlib figure."""
        return figure(self._strips(), self._heading())

    def to_html(self) -> str:
        """The same as an HTML fragment, which notebooks show by themselves; everything in it is escaped."""
        return page(self._strips(), self._heading())

    def _repr_html_(self) -> str:
        return self.to_html()

    def _heading(self) -> str:
        return f"precedents by {self.metric}"

    def _strips(self) -> list[Strip]:
        return [self._strip(case) for case in range(len(self))]

    def _strip(self, case: int) -> Strip:
        predicted = self.name(int(self.predictions[case]))
        asked = mapped(lambda leaf: leaf[case], self.cases)
        cells = []
        for p in self.precedents(case):
            instance = mapped(lambda leaf, r=p.rank: leaf[case][r - 1], self.precedents_inputs)  # type: ignore[misc]
            title = f"#{p.index} {self.name(p.label)}\n{p.score:+.3g}"
            cells.append(Cell(title, shown(instance, self.render), p.agrees))
        return Strip(Cell(f"case {case}\npredicted {predicted}", shown(asked, self.render)), cells)


class Explainer:
    """Explains predictions of a model by instances of its training set.

    `metric` is one of `precedents.METRICS`, an abbreviation of the paper, a textual form or a Metric.
    `hidden` names modules whose outputs are the hidden layers, `vectorise` turns inputs into vectors for
    the metrics on inputs, `classes` names the classes, and `render` turns an instance into what a person
    sees: an image array, a text or a mapping of named values. `memory` is how much may be used, in bytes or
    as "2 GB"; half of what is free without it.
    """

    def __init__(
        self,
        model: nn.Module | Classifier,
        train: Any,
        metric: str | Metric = "cos_grad",
        *,
        hidden: Sequence[str] | None = None,
        vectorise: Vectorise | None = None,
        classes: Sequence[str] | None = None,
        render: Render | None = None,
        memory: int | str | None = None,
    ) -> None:
        train = Examples.of(train)
        if not isinstance(model, Classifier):
            model = Classifier.of(model, train, hidden=hidden, vectorise=vectorise, memory=memory)
        if classes is not None and len(classes) != model.classes:
            raise InputError(
                f"There are {len(classes)} class names, but the model has {model.classes} outputs."
            )
        self.relevance = Relevance(metric_of(metric), Evidence(model, train))
        self.relevance.evidence.width(self.relevance.metric.features)  # what cannot work fails here
        self.classes, self.render = classes, render

    def __repr__(self) -> str:
        evidence = self.relevance.evidence
        return f"Explainer({name_of(self.relevance.metric)}, {len(evidence.train)} training instances)"

    def explain(self, x: Any, k: int = 5, *, labels: Any = None) -> Explanation:
        """The k most relevant training instances of one case or of each case of a batch.

        The label of a case is the model's own prediction unless `labels` says otherwise.
        """
        cases = self._cases(x, labels)
        top = self.relevance.top(cases, k)
        train = self.relevance.evidence.train
        flat = train.take(top.indices.flatten().tolist())
        shape = top.indices.shape
        return Explanation(
            metric=name_of(self.relevance.metric),
            predictions=cases.labels,
            top=top,
            labels=flat.labels.reshape(shape),
            cases=cases.take(range(len(cases))).inputs,
            precedents_inputs=mapped(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), flat.inputs),
            classes=self.classes,
            render=self.render,
        )

    def scores(self, x: Any, *, labels: Any = None) -> Tensor:
        """The relevance of every training instance [m, n], float64; cases are rows."""
        return self.relevance.scores(self._cases(x, labels))

    def estimate(self, m: int = 1) -> Estimate:
        """Time, memory and disk that explaining m cases will take, from a trial on a few instances."""
        return self.relevance.estimate(m)

    def _cases(self, x: Any, labels: Any) -> Examples:
        evidence = self.relevance.evidence
        like = mapped(lambda leaf: leaf[0], evidence.train.take([0]).inputs)
        inputs, single = as_batch(x, like)
        labels = [labels] if single and labels is not None else labels
        return as_cases(evidence.model, inputs, labels)


def as_cases(model: Classifier, inputs: Inputs, labels: Any = None) -> Examples:
    """Cases to be explained: with the given labels, or with the model's own predictions."""
    count = len(next(leaves(inputs)))
    unlabelled = Examples(InMemory(inputs), torch.zeros(count, dtype=torch.long))
    if labels is None:
        return unlabelled.relabelled(model.predicted(unlabelled))
    given = checked_labels(labels, count, "cases")
    checked_range(given, model.classes, "cases")
    return unlabelled.relabelled(given)
