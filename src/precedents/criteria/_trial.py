"""Trial: a model, its training set and some cases before the criteria, with what they share kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from precedents.adapters._find import read
from precedents.classifier.classifier import Classifier, Vectorise
from precedents.classifier.outputs import Place
from precedents.data.examples import Examples, checked_labels, checked_range
from precedents.errors import InputError, NotApplicable
from precedents.metrics.kernel import Kernel, joined, stacked
from precedents.metrics.metric import Metric, Relevance
from precedents.metrics.workspace import Workspace

Retrain = Callable[[Examples, int], nn.Module]  # a training set with new labels, a seed -> a trained model
Fresh = Callable[[int], nn.Module]  # a seed -> an untrained model


@dataclass(frozen=True, eq=False)
class Trial:
    """What the criteria look at. Make one with `Trial.of`."""

    workspace: Workspace
    cases: Examples  # labelled with the model's own predictions
    truth: Tensor  # [m], the cases' given labels
    subclasses: tuple[Tensor, Tensor] | None = None  # of the training instances [n] and of the cases [m]
    retrain: Retrain | None = None
    fresh: Fresh | None = None

    @classmethod
    def of(
        cls,
        model: Any,
        train: Any,
        test: Any,
        *,
        hidden: Sequence[str] | None = None,
        vectorise: Vectorise | None = None,
        subclasses: tuple[Any, Any] | None = None,
        retrain: Retrain | None = None,
        fresh: Fresh | None = None,
        memory: int | str | None = None,
        loss: Any = None,
        output: Place | None = None,
    ) -> "Trial":
        """A trial of the metrics on this model, with the instances of `test` as cases.

        `subclasses` are finer labels of the training instances and of the cases; `retrain` trains a
        model like this one on merged classes, for the identical subclass criterion; `fresh` makes an
        untrained model of the same kind, where drawing each layer anew is not how the model starts. `loss` and
        `output` are as for `Classifier.of`.
        """
        reading = read(model)
        train, test = reading.examples(train, "training set"), reading.examples(test, "test set")
        if not isinstance(model, Classifier):
            model = Classifier.of(
                reading.module,
                train,
                hidden=hidden or reading.hidden,
                vectorise=vectorise or reading.vectorise,
                memory=memory,
                loss=loss,
                output=output,
            )
        checked_range(test.labels, model.classes, "test set")
        pair = None
        if subclasses is not None:
            pair = (
                checked_labels(subclasses[0], len(train), "training set's subclasses"),
                checked_labels(subclasses[1], len(test), "test set's subclasses"),
            )
        return cls._of(Workspace(model, train), test, pair, retrain, fresh)

    @classmethod
    def _of(cls, workspace: Workspace, test: Examples, *rest: Any) -> "Trial":
        held = test.selected(range(len(test)))
        return cls(workspace, held.relabelled(workspace.classifier.predicted(held)), test.labels, *rest)

    def scores(self, metric: Metric) -> Tensor:
        """The relevance [m, n] of all training instances to the cases; metrics of one kernel share it."""
        return metric.similarity(self.kernel(metric))

    def relevance(self, metric: Metric) -> Relevance:
        """The metric before this trial's model, with what it can share with others."""
        recipe = metric.preconditioner
        settled = getattr(recipe, "settled", lambda _: recipe)(self.workspace)
        return Relevance(replace(metric, preconditioner=settled), self.workspace)

    def kernel(self, metric: Metric) -> Kernel:
        """The inner products of all cases with all training instances."""
        relevance = self.relevance(metric)
        self.workspace.reused(metric.features)  # by the metrics to come
        key = ("kernel", self, metric.features, relevance.metric.preconditioner)
        return self.workspace.once(key, lambda: _whole(relevance, self.cases))

    def randomized(self, seed: int, label: str) -> "Trial":
        """The same cases before a model with freshly drawn parameters.

        With label "own" the cases carry the random model's predictions, with "shared" the trained one's.
        """

        def workspace() -> Workspace:
            model, train = self.workspace.classifier, self.workspace.train
            drawn = model.randomized(seed)
            if self.fresh is not None:
                with torch.random.fork_rng(devices=[]):
                    made = self.fresh(seed)
                drawn = model.another(read(made).module, train)
            return Workspace(drawn, train, self.workspace.shared)

        def trial() -> Trial:
            random = self.workspace.once(("randomized", seed), workspace)
            own = self.cases.relabelled(random.classifier.predicted(self.cases))
            return Trial(random, own if label == "own" else self.cases, self.truth)

        return self.workspace.once(("randomized trial", self, seed, label), trial)

    def merged(self, seed: int) -> "Trial":
        """The trial of a model trained on classes merged at random into two; the old are the subclasses."""
        if self.retrain is None:
            raise NotApplicable("No subclass labels were given, and no way to retrain on merged classes.")
        classes, retrain = self.workspace.classifier.classes, self.retrain
        if classes < 3:
            raise NotApplicable("Merging two classes into two leaves no subclasses.")
        loss = self.workspace.classifier.loss.merged()

        def trial() -> Trial:
            train, groups = self.workspace.train, merge(classes, seed)
            merged_train = train.relabelled(groups[train.labels])
            with torch.random.fork_rng(devices=[]):
                model = retrain(merged_train, seed)
            if not isinstance(model, nn.Module):
                raise InputError(
                    f"retrain returned a {type(model).__name__}. Return the trained torch.nn.Module."
                )
            classifier = self.workspace.classifier.another(read(model).module, merged_train, loss)
            test = self.cases.relabelled(groups[self.truth])
            workspace = Workspace(classifier, merged_train, self.workspace.shared)
            return Trial._of(workspace, test, (train.labels, self.truth))

        return self.workspace.once(("merged", self, seed), trial)


def _whole(relevance: Relevance, cases: Examples) -> Kernel:
    groups = relevance.workspace.groups(relevance.metric.features, cases)
    return stacked([joined(list(relevance.kernels(group))) for group in groups])


def merge(classes: int, seed: int) -> Tensor:
    """The new class, 0 or 1, of each old one [classes]: shuffled by seed, as many in each as can be."""
    order = torch.randperm(classes, generator=torch.Generator().manual_seed(seed))
    groups = torch.zeros(classes, dtype=torch.long)
    groups[order[classes // 2 :]] = 1
    return groups
