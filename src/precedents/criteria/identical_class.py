"""Identical class: the k most relevant training instances all have the predicted class."""

from dataclasses import dataclass

from precedents.criteria._result import Result, chance_of_all, rate
from precedents.criteria._trial import Trial
from precedents.metrics.metric import Metric
from precedents.metrics.ranking import checked_k, top_k
from precedents.registry import written


@dataclass(frozen=True)
class IdenticalClass:
    """A success rate over the cases."""

    k: int = 1
    demand: float = 0.95  # the rate at which a metric passes

    def __call__(self, trial: Trial, metric: Metric) -> Result:
        """For each case 1 or 0."""
        train, predicted = trial.workspace.train, trial.cases.labels
        top = top_k([trial.scores(metric)], checked_k(self.k, len(train)))
        found = train.labels[top.indices]  # [m, k]
        successes = (found == predicted[:, None]).all(dim=1)
        members = (train.labels[None, :] == predicted[:, None]).sum(dim=1)
        return rate(written(self), successes, chance_of_all(members, len(train), self.k), self.demand)


identical_class = IdenticalClass()
