"""Identical subclass: the k most relevant training instances have the case's own subclass.

The subclasses are given with the trial, or made by merging the classes at random into two and training
a model on those. Only cases that the model predicts correctly count.
"""

from dataclasses import dataclass

from precedents.criteria._result import Result, chance_of_all, rate
from precedents.criteria._trial import Trial
from precedents.errors import NotApplicable
from precedents.metrics.metric import Metric
from precedents.metrics.ranking import checked_k, top_k
from precedents.registry import written


@dataclass(frozen=True)
class IdenticalSubclass:
    """A success rate over the correctly predicted cases."""

    k: int = 1
    seed: int = 0  # of the merge, where subclasses are made
    demand: float = 0.95  # the rate at which a metric passes

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
        return rate(written(self), successes, chance_of_all(members, n, self.k), self.demand)


identical_subclass = IdenticalSubclass()
