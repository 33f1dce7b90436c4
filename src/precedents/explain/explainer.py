"""Explainer: from a model and its training set to explanations."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from precedents.adapters._columns import Columns
from precedents.adapters._subject import Subject
from precedents.classifier.classifier import Vectorise
from precedents.classifier.construction import refuse_keywords
from precedents.classifier.outputs import Place
from precedents.data.examples import Batch, Examples
from precedents.data.inputs import Inputs, mapped
from precedents.errors import InputError
from precedents.explain.cautions import Doubts, Findings, equal, marks, rounded
from precedents.explain.decomposition import Decomposition, decomposed, decomposed_bytes, decomposed_seconds
from precedents.explain.explanation import Explanation
from precedents.explain.jobs.jobs import Jobs
from precedents.explain.naming import Sharing
from precedents.explain.saving import opened, save
from precedents.explain.shares import Shares
from precedents.index.contents import read_metric
from precedents.index.recall import Recall
from precedents.metrics.features.gradient import gradient
from precedents.metrics.metric import Metric
from precedents.metrics.names import GRAD_COS
from precedents.metrics.paper import metric as metric_of
from precedents.metrics.paper import name_of
from precedents.metrics.ranking import checked_k
from precedents.metrics.relevance import Ranked, Relevance
from precedents.metrics.vectors import RowBlock
from precedents.metrics.workspace import Workspace
from precedents.runtime.cache import Slot
from precedents.runtime.cost import Estimate
from precedents.runtime.door import door
from precedents.runtime.given import path, whole_number
from precedents.runtime.wording import a_type, first_of
from precedents.views.comparison import spread_of
from precedents.views.instance import Render, shown

UNCOUNTED = 100  # precedents whose parts take so little that it is not counted
SPREAD: Slot[Mapping[str, float]] = Slot("spread of the columns that are shown")


class Explainer(Jobs):
    """Explains predictions of a model by instances of its training set.

    model: whatever an adapter accepts: a torch.nn.Module, a fitted classifier of scikit-learn or skorch, a
        model, a pipeline or a Trainer of Hugging Face, a module or a Trainer of Lightning, or a Classifier.
    train: its training set, as `Examples.of` or the model's own library takes it; a Trainer brings its own.
    metric: one of `precedents.METRICS`, an abbreviation of the paper, a textual form or a Metric.
    hidden: the modules whose outputs are the hidden layers; found out without it.
    vectorise: turns inputs into vectors for the metrics on inputs; they are flattened without it.
    classes: the names of the classes.
    render: turns an instance into what a person sees: `precedents.images`, `texts`, `tables`, or any function
        that returns an image array, a text or a mapping of named values.
    memory: how much may be used, in bytes or as "2 GB"; half of what is free without it.
    audit: what `precedents.audit` found of this model and training set: explanations then know the hubs, and
        say when their metric failed.
    loss: what the model was trained with, if it is not plain cross entropy, as for `Classifier.of`.
    output: which of the model's outputs are the logits, if that is not found, as for `Classifier.of`.
    text: the column of the texts, where rows of Hugging Face have several; two for pairs of texts.
    image: the column of the images.
    labels: the column of the labels, if it is not called so, as for `Examples.of`.
    ids: what the training instances are called, one text or whole number each, or the column that has them.
        Without it a frame's index, or a column `id` of rows with named fields, says it.
    index: whether codes of a large training set are kept, so that further questions need no pass over it.

    >>> import torch
    >>> x, y = torch.eye(4), torch.tensor([0, 1, 0, 1])
    >>> model = torch.nn.Linear(4, 2, bias=False)
    >>> weight = torch.tensor([[2.0, -1.0, 2.0, -1.0], [-2.0, 1.0, -2.0, 1.0]])
    >>> _ = model.load_state_dict({"weight": weight})
    >>> print(Explainer(model, (x, y)).explain(x[2] + x[0] / 2, k=2))
    predicted 0, because of
      #2  0  +0.894  above 75%
      #0  0  +0.447  above 50%
    """

    @door
    def __init__(
        self,
        model: Any,
        train: Any = None,
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
        text: str | Sequence[str] | None = None,
        image: str | None = None,
        labels: Any = None,
        ids: Any = None,
        index: bool = True,
    ) -> None:
        if not isinstance(index, bool):
            raise InputError(f"index is {a_type(index)}. Pass True or False; a folder goes to Explainer.load.")
        if not isinstance(metric, (str, Metric)):
            raise InputError(
                f"metric is {a_type(metric)}. Pass a name, as 'cos_grad', or a Metric. Labels of the training "
                "set go with its inputs: Explainer(model, (X, y))."
            )
        self.subject = Subject.of(
            model,
            train,
            classes=classes,
            render=render,
            hidden=hidden,
            vectorise=vectorise,
            memory=memory,
            loss=loss,
            output=output,
            columns=None if text is image is labels is ids is None else Columns.of(text, image, labels, ids),
        )
        self.relevance = Relevance(metric_of(metric), Workspace(self.subject))
        self.relevance.vectors  # noqa: B018  what cannot work fails here
        self.name, self.index = name_of(self.relevance.metric), index
        if self.subject.render is not None:
            shown(self.subject.train.seen([0])[0], self.subject.render)  # what cannot be shown fails here
        if audit is not None and not hasattr(audit, "about"):
            raise InputError(f"audit is {a_type(audit)}. Pass what precedents.audit(model, train, test) gives.")
        self.finding = None if audit is None else audit.about(self.name, self.subject)

    def __repr__(self) -> str:
        return f"Explainer({self.name}, {len(self.subject.train)} training instances)"

    _reading: Callable[[], AbstractContextManager[None]] = staticmethod(nullcontext)  # of a folder, if loaded

    _recall: Recall | None = None  # what further questions of a large training set are answered from

    @property
    def classes(self) -> Sequence[str] | None:
        """The names of the classes, if they are known."""
        return self.subject.classes

    @property
    def render(self) -> Render | None:
        """What turns an instance into what a person sees, if it was given or the model's kind has one."""
        return self.subject.render

    @door
    def explain(self, x: Any, k: int = 5, *, labels: Any = None, truth: Any = None) -> Explanation:
        """The k most relevant training instances of one case `x`, or of each case of a batch.

        The label of a case is the model's own prediction unless `labels` says otherwise: numbers, or names.
        `truth` are the true labels, which are shown where they are others, and exported.
        """
        cases = self.subject.cases(x, labels)
        true = None if truth is None else self.subject.cases(x, truth).labels
        ranked = self._ranked(cases, k)
        train, indices = self.subject.train, ranked.top.indices
        unique, places = indices.unique(return_inverse=True)  # which are read once
        offered, asked = train.take(unique.tolist()), cases.take(range(len(cases)))
        precedents, found = mapped(itemgetter(places), offered.inputs), offered.labels[places]
        doubts = Doubts.of(ranked)
        doubted = doubts.remarks(self.name, self.relevance.metric.features is gradient)
        another, copies = found != cases.labels[:, None], equal(asked.inputs, precedents)
        flags = marks(ranked, self.subject.classifier.classes, self.finding, another, copies)
        flags |= doubts.marks(indices.shape[1])
        return Explanation(
            predictions=cases.labels,
            top=ranked.top,
            labels=found,
            cases=asked.inputs,
            precedents_inputs=precedents,
            percentiles=_percentiles(ranked),
            flags=_named(flags, *indices.shape),
            parts=self._parts(asked, offered, places),
            originals=_originals(cases, train, indices),
            given=labels is not None,
            remarks=self._remarks(x, asked.inputs, doubted),
            **_called(cases, train, indices),
            completeness=ranked.completeness,
            truth=true,
            count=ranked.count,
            **self._known(),
        )

    def _ranked(self, cases: Examples, k: int) -> Ranked:
        """The most relevant training instances: from codes, if there are any and they do; else by a pass."""
        with self._reading():
            ranked, shown = None, self._shown(len(cases), k)
            if self._recall is not None:
                n = len(self.subject.train)
                self.relevance.refuse_many(len(cases), n, checked_k(k, n), shown)
                ranked = self._recall.ranked(cases, k)
            if ranked is None:
                passing = self._passing if self.index else None
                ranked = self.relevance.ranked(cases, k, shown, passing)
        return ranked

    def _shown(self, m: int, k: Any) -> tuple[int, int]:
        """Bytes of each instance whose inputs are compared, and of each different one that is decomposed."""
        model = self.subject.classifier
        counts = self._divides and not (isinstance(k, int) and m * k <= UNCOUNTED)
        return 2 * model.input_bytes, decomposed_bytes(model) if counts else 0

    def _passing(self, blocks: Iterator[RowBlock]) -> Iterator[RowBlock]:
        """Vectors that are not kept leave codes behind."""
        self._recall = Recall(self.relevance)
        return self._recall.noted(blocks)

    def _known(self) -> dict[str, Any]:
        """What explanations of all cases share."""
        subject, relevance = self.subject, self.relevance
        spread = partial(spread_of, subject.train, subject.render)
        return {
            "metric": self.name,
            "warnings": self._warnings(),
            "sharing": self._sharing,
            "classes": subject.classes,
            "render": subject.render,
            "spread": relevance.workspace.cache.once(SPREAD, spread),
            "curvature": relevance.curvature if relevance.vectors.weighed else None,
        }

    @property
    def _divides(self) -> bool:
        """Whether scores are told in two parts: those of Grad-Cos are."""
        return self.name == GRAD_COS

    def _parts(self, asked: Batch, offered: Batch, places: Tensor) -> Decomposition | None:
        model = self.subject.classifier
        return decomposed(model, asked, offered, places) if self._divides else None

    def _remarks(self, x: Any, inputs: Inputs, found: Sequence[Sequence[str]]) -> list[list[str]]:
        """For each case what speaks against all of its precedents, with what was found of the scores."""
        known = self.subject.adapter.unknown(x, self.subject.train, inputs)
        said = [[f"Caution: the model does not know {each}."] if each else [] for each in known]
        model = self.subject.classifier
        if model.narrow is not None:
            with torch.no_grad():
                told = rounded(model.logits(inputs), model.narrow)
            said = [[*first, *more] for first, more in zip(said, told, strict=True)]
        return [[*first, *more] for first, more in zip(said, found, strict=True)]

    def _warnings(self) -> list[str]:
        if self.finding is None or not self.finding.failed:
            return []
        failed = ", ".join(self.finding.failed)
        return [f"Caution: {self.name} failed the audit of this model: {failed}."]

    @door
    def scores(self, x: Any, *, labels: Any = None) -> Tensor:
        """The relevance of every training instance to cases `x` [m, n], float64; `labels` as for `explain`."""
        cases = self.subject.cases(x, labels)
        with self._reading():
            return self.relevance.scores(cases)

    @door
    def shares(self, x: Any, index: int | str, *, labels: Any = None) -> Shares:
        """Why a training instance is relevant to one case: its score, in parts that sum to it exactly.

        The parts are those of layers, and within them of tokens, image regions or columns, of the case and of
        one training instance. A metric whose score is no such sum is NotApplicable, with the reason.

        x: one case, as for `explain`; `labels` likewise.
        index: the place of the training instance, or its id if that is a text; a number is always a place.
        """
        case = self.subject.cases(x, labels)
        if len(case) > 1:
            raise InputError(f"There are {len(case)} cases. Pass one: shares({first_of(x)}, index).")
        return self._sharing.of(case, index)

    @property
    def _sharing(self) -> Sharing:
        return Sharing(self.relevance.metric, self.name, self.subject)

    @door
    def estimate(self, m: int = 1) -> Estimate:
        """Time and memory that explaining m cases will take, from a trial; and the disk that `save` will."""
        recall, m = Recall(self.relevance), whole_number(m, "m")
        found = self.relevance.estimate(m, recall.computed(m) if self.index else None)
        more = decomposed_seconds(self.subject.classifier, self.subject.train, m) if self._divides else 0
        return replace(found, seconds=found.seconds + more, disk=recall.disk)

    @door
    def save(self, folder: str | Path) -> None:
        """Keeps the fitted metric and the training set's vectors, so that `load` answers at once.

        Of a large training set codes are kept, of about a kilobyte for each instance. The folder gets
        safetensors and a JSON manifest, whole or not at all. `estimate().disk` says how many bytes; a disk
        without room is refused. The model and the training set are not in it.
        """
        save(self.relevance, path(folder, "folder"), self.subject)

    @classmethod
    @door
    def load(cls, folder: str | Path, model: Any, train: Any = None, **options: Any) -> "Explainer":
        """The explainer that was saved from this `model` and `train`: the same numbers, bit for bit.

        The folder may be an index that `Index.build` made. Of codes, the numbers are those of further
        questions: they compute a few instances again. `metric` may have another similarity than was saved.

        A weight, label or row that has changed is refused, with what differs. `options` are those of an
        Explainer: what no file can hold (`render`, `vectorise`, `hidden`, a `metric` of your own parts) is
        passed again.
        """
        refuse_keywords("Explainer.load", options, list(inspect.signature(cls).parameters)[2:])
        saved = opened(path(folder, "folder"))
        if "metric" not in options:
            options["metric"] = read_metric(saved.metric)
        explainer = cls(model, train, **options)
        saved.restore(explainer.relevance)
        explainer._reading = saved.reading
        explainer._recall = Recall(explainer.relevance) if explainer.index else None
        explainer.subject = saved.named(explainer.subject)
        return explainer


def _percentiles(ranked: Ranked) -> Tensor:
    """How many percent of the scores are lower [m, k]: in whole numbers, if others are estimates."""
    if ranked.completeness:
        return (100 * ranked.below // ranked.count).double()
    return 100 * ranked.below.double() / ranked.count


def _originals(
    cases: Examples, train: Examples, indices: Tensor
) -> tuple[Sequence[Any], Sequence[Sequence[Any]]] | None:
    """Of the cases and of their precedents [m, k], if both were kept."""
    if cases.originals is None or train.originals is None:
        return None
    return cases.seen(range(len(cases))), [train.seen(row) for row in indices.tolist()]


def _called(cases: Examples, train: Examples, indices: Tensor) -> dict[str, Any]:
    """What their owner calls the cases, and their precedents [m, k]."""
    ids = None if train.ids is None else [[train.ids[i] for i in row] for row in indices.tolist()]
    return {"case_ids": cases.ids, "ids": ids}


def _named(marks: Mapping[str, Tensor], m: int, k: int) -> list[list[tuple[str, ...]]]:
    """For each case and precedent the names of the marks [m, k] that are set."""
    every = {name: mark.tolist() for name, mark in marks.items()}
    return [[tuple(name for name, mark in every.items() if mark[i][j]) for j in range(k)] for i in range(m)]
