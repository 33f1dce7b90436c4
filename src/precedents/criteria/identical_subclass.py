"""Identical subclass: the k most relevant training instances have the case's own subclass.

The subclasses are given with the trial, or made by merging the classes at random into two and training
a model on those. Only cases that the model predicts correctly count.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from precedents.criteria._criterion import Criterion, lacking
from precedents.criteria._result import Result, chance_of_all, rate
from precedents.criteria._trial import Trial
from precedents.errors import NotApplicable
from precedents.metrics.metric import Metric
from precedents.metrics.ranking import checked_k, top_k
from precedents.registry import written
from precedents.runtime.given import seed, share


@dataclass(frozen=True)
class IdenticalSubclass(Criterion):
    """A success rate over the correctly predicted cases: 1 where the first k precedents have the own subclass.

    >>> import torch
    >>> from precedents import Trial, metric
    >>> x, y = torch.eye(2).repeat(3, 1), torch.arange(6) % 2
    >>> model = torch.nn.Linear(2, 2, bias=False)
    >>> _ = model.weight.data.copy_(2 * torch.eye(2))
    >>> finer = torch.tensor([0, 1, 0, 2, 0, 2])  # the second class is of two kinds
    >>> trial = Trial.of(model, (x, y), (x, y), subclasses=(finer, finer))
    >>> IdenticalSubclass()(trial, metric("cos_x")).values.tolist()
    [1.0, 1.0, 1.0, 0.0, 1.0, 0.0]
    """

    k: int = 1
    seed: int = 0  # of the merge, where subclasses are made
    demand: float = 0.95  # the rate at which a metric passes

    order = 30
    needs = ("subclasses", "retrain")
    sentence = (
        "Classes are merged for training; the most relevant instances should still come from the case's own "
        "class."
    )

    def __post_init__(self) -> None:
        seed(self.seed)
        share(self.demand, "demand")

    @property
    def counts(self) -> bool:
        """It counts where it looks at the first precedent alone."""
        return self.k == 1

    def inapplicable(self, trial: Trial) -> str | None:
        """The reason why there are no subclasses: no labels of them, and no model of merged classes."""
        return None if trial.subclasses is not None else trial.unmergeable

    def rounds(self, trial: Trial) -> Mapping[tuple[str, str], int]:
        """The cases under the model of merged classes, unless there are subclass labels."""
        model = "trained" if trial.subclasses is not None else f"merged {self.seed}"
        return {(model, "cases"): len(trial.cases)}

    @property
    def lack(self) -> str:
        """That precedents have another subclass."""
        which = "the first precedent" if self.k == 1 else f"at least one of the first {self.k} precedents"
        return f"{which} has another subclass than the case, though the model is right"

    def explained(self, result: Result, _metric: str, /) -> str:
        """That precedents have another subclass, and how often."""
        return lacking(result, self.lack)

    def __call__(self, trial: Trial, metric: Metric) -> Result:
        """For each correctly predicted case 1 or 0."""
        if trial.subclasses is None:
            metric = trial.relevance(metric).metric  # the other model's matrices are of this one's kind
            trial = trial.merged(self.seed)
        assert trial.subclasses is not None
        train_subclasses, case_subclasses = trial.subclasses
        right = trial.cases.labels == trial.truth
        if not right.any():
            raise NotApplicable("The model predicts no case correctly.")
        n = len(trial.workspace.train)
        wanted = case_subclasses[right]
        top = top_k([trial.scores(metric)[right]], checked_k(self.k, n))
        successes = (train_subclasses[top.indices] == wanted[:, None]).all(dim=1)
        members = (train_subclasses[None, :] == wanted[:, None]).sum(dim=1)
        found = rate(written(self), successes, chance_of_all(members, n, self.k), self.demand)
        return replace(found, places=right.nonzero().flatten())


identical_subclass = IdenticalSubclass()
