"""Explainer: from a model and its training set to explanations."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from precedents.adapters._find import read
from precedents.classifier.classifier import Classifier, Vectorise
from precedents.classifier.outputs import Place
from precedents.data.examples import Examples, InMemory, checked_labels, checked_range
from precedents.data.inputs import Inputs, bare, leaves, mapped
from precedents.errors import InputError
from precedents.explain.cautions import ANOTHER, DUPLICATE, HUB, NORM, Findings, counted, hubs, outlying
from precedents.explain.decomposition import parts
from precedents.explain.explanation import Explanation
from precedents.explain.saving import Saved, save
from precedents.metrics.metric import Metric, Ranked, Relevance
from precedents.metrics.paper import METRICS, name_of
from precedents.metrics.paper import metric as metric_of
from precedents.metrics.workspace import Workspace
from precedents.runtime.cost import Estimate
from precedents.views.comparison import spread_of
from precedents.views.instance import Render, shown

GRAD_COS = METRICS["cos_grad"]


class Explainer:
    """Explains predictions of a model by instances of its training set.

    `metric` is one of `precedents.METRICS`, an abbreviation of the paper, a textual form or a Metric.
    `hidden` names modules whose outputs are the hidden layers, `vectorise` turns inputs into vectors for
    the metrics on inputs, `classes` names the classes, and `render` turns an instance into what a person
    sees: `precedents.images`, `texts`, `tables`, or any function that returns an image array, a text or a
    mapping of named values. `memory` is how much may be used, in bytes or as "2 GB"; half of what is free
    without it. `audit` is what `precedents.audit` found of this model and training set: explanations then
    know the hubs, and say when their metric failed. `loss` is what the model was
    trained with, if it is not plain cross entropy, and `output` says which of its outputs are the logits, if
    that is not found, both as for `Classifier.of`.
    """

    def __init__(
        self,
        model: Any,
        train: Any,
        metric: str | Metric = "cos_grad",
        *,
        hidden: Sequence[str] | None = None,
        vectorise: Vectorise | None = None,
        classes: Sequence[str] | None = None,
        render: Render | None = None,
        memory: int | str | None = None,
        audit: Findings | None = None,
        loss: Any = None,
        output: Place | None = None,
    ) -> None:
        self.reading = read(model)
        train = self.reading.examples(train, "training set")
        if not isinstance(model, Classifier):
            model = Classifier.of(
                self.reading.module,
                train,
                hidden=hidden or self.reading.hidden,
                vectorise=vectorise or self.reading.vectorise,
                memory=memory,
                loss=loss,
                output=output,
            )
        classes = checked_names(classes or self.reading.classes, model)
        self.relevance = Relevance(metric_of(metric), Workspace(model, train))
        self.relevance.workspace.width(self.relevance.metric.features)  # what cannot work fails here
        self.classes, self.render = classes, render or self.reading.render
        if self.render is not None:
            shown(train.seen([0])[0], self.render)  # what cannot be shown fails here
        known = None if audit is None else audit.about(name_of(self.relevance.metric), self.relevance.workspace)
        self.finding = known

    def __repr__(self) -> str:
        workspace = self.relevance.workspace
        return f"Explainer({name_of(self.relevance.metric)}, {len(workspace.train)} training instances)"

    def explain(self, x: Any, k: int = 5, *, labels: Any = None) -> Explanation:
        """The k most relevant training instances of one case or of each case of a batch.

        The label of a case is the model's own prediction unless `labels` says otherwise.
        """
        cases = self._cases(x, labels)
        ranked = self.relevance.ranked(cases, k)
        metric, workspace, indices = self.relevance.metric, self.relevance.workspace, ranked.top.indices
        flat = workspace.train.take(indices.flatten().tolist())
        found = flat.labels.reshape(indices.shape)
        asked = cases.take(range(len(cases))).inputs
        offered = mapped(lambda leaf: leaf.reshape(*indices.shape, *leaf.shape[1:]), flat.inputs)
        marks = {
            ANOTHER: found != cases.labels[:, None],
            HUB: self._hubs(indices),
            NORM: self._outlying(ranked),
            DUPLICATE: _equal(asked, offered),
        }
        return Explanation(
            metric=name_of(metric),
            predictions=cases.labels,
            top=ranked.top,
            labels=found,
            cases=asked,
            precedents_inputs=offered,
            percentiles=100 * ranked.below.double() / len(workspace.train),
            flags=_named(marks, *indices.shape),
            parts=parts(workspace, cases, indices) if metric == GRAD_COS else None,
            warnings=self._warnings(),
            classes=self.classes,
            render=self.render,
            originals=_originals(cases, workspace.train, indices),
            spread=self._spread,
            given=labels is not None,
        )

    @cached_property
    def _spread(self) -> dict[str, float]:
        return spread_of(self.relevance.workspace.train, self.render)

    def _hubs(self, indices: Tensor) -> Tensor:
        """Which precedents [m, k] are hubs: in the audit, else among these cases."""
        firsts = counted(indices[:, 0].tolist())
        own = hubs(firsts, len(indices), self.relevance.workspace.classifier.classes)
        known = own if self.finding is None else self.finding.hubs
        return torch.isin(indices, torch.tensor(list(known), dtype=torch.long))

    def _outlying(self, ranked: Ranked) -> Tensor:
        """Which precedents [m, k] have an outlying norm; lengths that do not exist are not outlying."""
        if ranked.lengths is None:
            return torch.zeros_like(ranked.top.indices, dtype=torch.bool)
        return outlying(ranked.lengths)[ranked.top.indices]

    def _warnings(self) -> list[str]:
        if self.finding is None or not self.finding.failed:
            return []
        name, failed = name_of(self.relevance.metric), ", ".join(self.finding.failed)
        return [f"Caution: {name} failed the audit of this model: {failed}."]

    def scores(self, x: Any, *, labels: Any = None) -> Tensor:
        """The relevance of every training instance [m, n], float64; cases are rows."""
        return self.relevance.scores(self._cases(x, labels))

    def estimate(self, m: int = 1) -> Estimate:
        """Time and memory that explaining m cases will take, from a trial; and the disk that `save` will."""
        return self.relevance.estimate(m)

    def save(self, folder: str | Path) -> None:
        """Keeps the fitted metric and the training set's vectors, so that `load` answers at once.

        The folder gets safetensors and a JSON manifest, whole or not at all. `estimate().disk` says how
        many bytes; a disk without room is refused. The model and the training set are not in it.
        """
        save(self.relevance, Path(folder), self.classes)

    @classmethod
    def load(cls, folder: str | Path, model: Any, train: Any, **options: Any) -> "Explainer":
        """The explainer that was saved from this model and training set: the same numbers, bit for bit.

        A weight, label or row that has changed is refused, with what differs. `options` are those of an
        Explainer: what no file can hold (`render`, `vectorise`, `hidden`) is passed again.
        """
        saved = Saved.open(Path(folder))
        explainer = cls(model, train, **{"metric": saved.manifest.metric} | options)
        saved.restore(explainer.relevance)
        explainer.classes = explainer.classes or saved.manifest.classes
        return explainer

    def _cases(self, x: Any, labels: Any) -> Examples:
        workspace = self.relevance.workspace
        inputs, single = self.reading.cases(x, workspace.train)
        if labels is not None:
            labels = [labels] if single else labels
            labels = self.reading.numbered(labels) if self.reading.numbered else labels
        originals = self.reading.originals(x, workspace.train) if self.reading.originals else None
        return replace(as_cases(workspace.classifier, inputs, labels), originals=originals)


def checked_names(classes: Sequence[str] | None, model: Classifier) -> list[str] | None:
    """The names of the classes as texts, if there is one for each output of the model."""
    if classes is not None and len(classes) != model.classes:
        raise InputError(f"There are {len(classes)} class names, but the model has {model.classes} outputs.")
    return None if classes is None else [str(name) for name in classes]


def _originals(
    cases: Examples, train: Examples, indices: Tensor
) -> tuple[Sequence[Any], Sequence[Sequence[Any]]] | None:
    """Of the cases and of their precedents [m, k], if both were kept."""
    if cases.originals is None or train.originals is None:
        return None
    return cases.seen(range(len(cases))), [train.seen(row) for row in indices.tolist()]


def _equal(asked: Inputs, offered: Inputs) -> Tensor:
    """Which precedents [m, k] have the inputs of their case."""
    m, k = next(leaves(offered)).shape[:2]
    rows = [mapped(lambda leaf, i=i: leaf[i], offered) for i in range(m)]  # type: ignore[misc]
    return torch.tensor([[_same(bare(asked, i), bare(rows[i], j)) for j in range(k)] for i in range(m)])


def _same(one: Inputs, other: Inputs) -> bool:
    pairs = zip(leaves(one), leaves(other), strict=True)
    return all(a.shape == b.shape and torch.equal(a.to(b), b) for a, b in pairs)


def _named(marks: Mapping[str, Tensor], m: int, k: int) -> list[list[tuple[str, ...]]]:
    """For each case and precedent the names of the marks [m, k] that are set."""
    every = {name: mark.tolist() for name, mark in marks.items()}
    return [[tuple(name for name, mark in every.items() if mark[i][j]) for j in range(k)] for i in range(m)]


def as_cases(model: Classifier, inputs: Inputs, labels: Any = None) -> Examples:
    """Cases to be explained: with the given labels, or with the model's own predictions."""
    count = len(next(leaves(inputs)))
    unlabelled = Examples(InMemory(inputs), torch.zeros(count, dtype=torch.long))
    if labels is None:
        return unlabelled.relabelled(model.predicted(unlabelled))
    given = checked_labels(labels, count, "cases")
    checked_range(given, model.classes, "cases")
    return unlabelled.relabelled(given)
