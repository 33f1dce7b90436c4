"""Trial: a model, its training set and some cases before the criteria, with what they share kept."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from precedents.adapters._columns import Columns
from precedents.adapters._find import adapter_of
from precedents.adapters._subject import Subject
from precedents.classifier.construction import Told, refuse_keywords
from precedents.classifier.loss import Loss
from precedents.data.examples import Examples, InMemory, checked_labels
from precedents.data.labels import shared_names
from precedents.errors import InputError, NotApplicable
from precedents.metrics.features.inputs import inputs
from precedents.metrics.kernel import Kernel, joined, stacked
from precedents.metrics.metric import Metric
from precedents.metrics.preconditioners.identity import identity
from precedents.metrics.relevance import Relevance
from precedents.metrics.workspace import Workspace
from precedents.runtime.budget import FLOAT64
from precedents.runtime.cache import Slot
from precedents.runtime.door import door
from precedents.runtime.guards import random_state_kept
from precedents.runtime.users_code import users
from precedents.runtime.wording import a_type

if TYPE_CHECKING:
    from typing_extensions import Unpack

Retrain = Callable[[Examples, int], nn.Module]  # a training set with new labels, a seed -> a trained model
Fresh = Callable[[int], nn.Module]  # a seed -> an untrained model


class TrialOptions(Told, total=False):
    """What `Trial.of` may be told besides the model and its data."""

    subclasses: tuple[Any, Any] | None
    retrain: Retrain | None
    fresh: Fresh | None
    text: Any  # the names of columns, as for Explainer
    image: Any
    labels: Any
    ids: Any


@dataclass(frozen=True, eq=False)
class Trial:
    """What the criteria look at: a model, its training set and the cases. Make one with `Trial.of`."""

    workspace: Workspace
    cases: Examples  # labelled with the model's own predictions
    truth: Tensor  # [m], the cases' given labels
    subclasses: tuple[Tensor, Tensor] | None = None  # of the training instances [n] and of the cases [m]
    retrain: Retrain | None = None
    fresh: Fresh | None = None
    trained: "Trial | None" = None  # of a model with drawn parameters: the trial it was drawn for

    @classmethod
    @door
    def of(cls, model: Any, train: Any = None, test: Any = None, **options: "Unpack[TrialOptions]") -> "Trial":
        """A trial of the metrics on this `model` and its `train`, with the instances of `test` as cases.

        `subclasses` are finer labels of the training instances and of the cases; `retrain` trains a
        model like this one on merged classes, for the identical subclass criterion; `fresh` makes an
        untrained model of the same kind, where drawing each layer anew is not how the model starts. `hidden`,
        `vectorise`, `memory`, `loss` and `output` are as for `Classifier.of`; `text`, `image` and `labels` name
        columns, and a Trainer brings its data with it, as for `audit`.
        """
        refuse_keywords("Trial.of", options, (*sorted(TrialOptions.__optional_keys__), "classes", "render"))
        told: Any = dict(options)
        own = {name: told.pop(name, None) for name in ("subclasses", "retrain", "fresh")}
        columns = Columns.of(*(told.pop(name, None) for name in ("text", "image", "labels", "ids")))
        return cls.about(Subject.of(model, train, columns=columns, **told), test, **own)

    @classmethod
    @door
    def about(
        cls,
        subject: Subject,
        test: Any,
        subclasses: tuple[Any, Any] | None = None,
        retrain: Retrain | None = None,
        fresh: Fresh | None = None,
    ) -> "Trial":
        """A trial of a `subject` that is made already.

        `test`, `subclasses`, `retrain` and `fresh` are as for `Trial.of`.
        """
        cases, pair = subject.test(test), None
        for name, given in (("retrain", retrain), ("fresh", fresh)):
            if given is not None and not callable(given):
                raise InputError(f"{name} is {a_type(given)}. Pass a function that returns a torch.nn.Module.")
        if subclasses is not None:
            if not isinstance(subclasses, (tuple, list)) or len(subclasses) != 2:
                raise InputError(
                    f"subclasses is {a_type(subclasses)}. Pass a pair: finer labels of the training set, and "
                    "of the test set."
                )
            known = shared_names(*subclasses)
            pair = (
                checked_labels(subclasses[0], len(subject.train), "training set's subclasses", known),
                checked_labels(subclasses[1], len(cases), "test set's subclasses", known),
            )
        return cls._of(Workspace(subject), cases, pair, retrain, fresh)

    @classmethod
    def _of(cls, workspace: Workspace, test: Examples, *rest: Any) -> "Trial":
        n, model = len(test), workspace.classifier
        size = 0 if isinstance(test.source, InMemory) else n * model.input_bytes
        model.budget.bound(size, f"A test set of {n} cases", "Use fewer cases, or allow more memory.")
        held = replace(test.selected(range(n)), watch=test.watch)
        model.budget.held.until_gone(held.source, size)
        return cls(workspace, workspace.subject.predicted(held), test.labels, *rest)

    def scores(self, metric: Metric) -> Tensor:
        """The relevance [m, n] of training instances to cases by a `metric`; those of one kernel share it."""
        return metric.similarity(self.kernel(metric))

    def relevance(self, metric: Metric) -> Relevance:
        """A metric fitted to this trial's model and training set; what it computes is shared with others."""
        settled = metric.preconditioner.settled(self.workspace)
        return Relevance(replace(metric, preconditioner=settled), self.workspace)

    @door
    def kernel(self, metric: Metric) -> Kernel:
        """The inner products of cases with training instances for a `metric`; those of one share it.

        Inputs are the same to every model that is fed them, so their products are those of the trained one.
        """
        if self.trained is not None and metric.features is inputs and metric.preconditioner == identity:
            return self.trained.kernel(metric)
        for examples in (self.workspace.train, self.cases):
            examples.unchanged()
        return self.kept_kernel(metric, lambda: _whole(self.relevance(metric), self.cases))

    def kept_kernel(self, metric: Metric, make: Callable[[], Kernel]) -> Kernel:
        """The kernel of a metric that is kept here, or what `make` gives, which is kept from then on."""
        return self.workspace.kernel(self._slot(metric), self.kernel_bytes, make)

    def has_kernel(self, metric: Metric) -> bool:
        """Whether the kernel of a metric is kept here."""
        return self._slot(metric) in self.workspace.kernels

    @property
    def kernel_bytes(self) -> int:
        """Of one kernel of all cases."""
        return FLOAT64 * len(self.cases) * len(self.workspace.train)

    def _slot(self, metric: Metric) -> Slot[Kernel]:
        return KERNEL.at(self, metric.features, self.relevance(metric).metric.preconditioner)

    @door
    def randomized(self, seed: int, label: str) -> "Trial":
        """The trial of a model with freshly drawn parameters, by `seed`, with the cases of this one.

        With label "own" the cases carry the random model's predictions, with "shared" the trained one's.
        """

        def drawn() -> Workspace:
            model, subject = self.workspace.classifier, self.workspace.subject
            random = model.randomized(seed)
            if self.fresh is not None:
                with random_state_kept(), users("the function fresh", "It is called with a seed"):
                    made = self.fresh(seed)
                random = model.another(adapter_of(made).module, subject.train)
            return Workspace(subject.before(random), self.workspace.shared)

        def trial() -> Trial:
            random = self.workspace.once(DRAWN.at(seed), drawn)
            cases = random.subject.predicted(self.cases) if label == "own" else self.cases
            return Trial(random, cases, self.truth, trained=self)

        return self.workspace.once(RANDOMIZED.at(self, seed, label), trial)

    @property
    def unmergeable(self) -> str | None:
        """The reason why no model can be trained on merged classes; none if one can."""
        if self.retrain is None:
            return "No subclass labels were given, and no way to retrain on merged classes."
        if self.workspace.classifier.classes < 3:
            return "Merging two classes into two leaves no subclasses."
        return None

    @door
    def merged(self, seed: int) -> "Trial":
        """The trial of a model trained on classes merged by `seed` into two; the old are the subclasses."""
        if self.retrain is None or self.unmergeable:
            raise NotApplicable(self.unmergeable)
        loss, retrain = self.workspace.classifier.loss.merged(), self.retrain
        return self.workspace.once(MERGED.at(self, seed), lambda: self._merged(seed, loss, retrain))

    def _merged(self, seed: int, loss: Loss, retrain: Retrain) -> "Trial":
        subject = self.workspace.subject
        groups = merge(subject.classifier.classes, seed)
        train = subject.train.relabelled(groups[subject.train.labels])
        with random_state_kept(), users("the function retrain", "It is called with Examples and a seed"):
            model = retrain(train, seed)
        if not isinstance(model, nn.Module):
            raise InputError(f"retrain returned {a_type(model)}. Return the trained torch.nn.Module.")
        classifier = subject.classifier.another(adapter_of(model).module, train, loss)
        workspace = Workspace(subject.before(classifier, train), self.workspace.shared)
        test = self.cases.relabelled(groups[self.truth])
        return Trial._of(workspace, test, (subject.train.labels, self.truth))


SCORES = 4  # matrices of all scores that a criterion holds at once

KERNEL: Slot[Kernel] = Slot("kernel of all cases with all training instances", large=True)
DRAWN: Slot[Workspace] = Slot("workspace of a model with drawn parameters")
RANDOMIZED: Slot[Trial] = Slot("trial of a model with drawn parameters")
MERGED: Slot[Trial] = Slot("trial of a model of merged classes", travels=True)


def _whole(relevance: Relevance, cases: Examples) -> Kernel:
    m, n = len(cases), len(relevance.workspace.train)
    need, what = SCORES * FLOAT64 * m * n, f"The scores [{m}, {n}] of all cases"
    relevance.workspace.classifier.budget.bound(need, what, "Use fewer cases.")
    relevance.required(need)
    groups = relevance.vectors.groups(cases)
    return stacked([joined(list(relevance.kernels(group))) for group in groups])


def merge(classes: int, seed: int) -> Tensor:
    """The new class, 0 or 1, of each old one [classes]: shuffled by seed, as many in each as can be.

    >>> merge(4, seed=0).bincount().tolist()
    [2, 2]
    """
    order = torch.randperm(classes, generator=torch.Generator().manual_seed(seed))
    groups = torch.zeros(classes, dtype=torch.long)
    groups[order[classes // 2 :]] = 1
    return groups
