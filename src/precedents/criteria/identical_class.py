"""Identical class: the k most relevant training instances all have the predicted class."""

from dataclasses import dataclass

from precedents.criteria._criterion import Criterion, lacking
from precedents.criteria._result import Result, chance_of_all, rate
from precedents.criteria._trial import Trial
from precedents.metrics.metric import Metric
from precedents.metrics.ranking import checked_k, top_k
from precedents.registry import written
from precedents.runtime.given import share


@dataclass(frozen=True)
class IdenticalClass(Criterion):
    """A success rate over the cases: 1 where the first k precedents all have the predicted class.

    >>> import torch
    >>> from precedents import Trial, metric
    >>> x, y = torch.eye(2).repeat(3, 1), torch.arange(6) % 2
    >>> model = torch.nn.Linear(2, 2, bias=False)
    >>> _ = model.weight.data.copy_(2 * torch.eye(2))
    >>> result = IdenticalClass(k=3)(Trial.of(model, (x, y), (x, y)), metric("cos_x"))
    >>> print(result.mean, result.verdict, result.reason)
    1.0 undecided too few cases (about 72 would do)
    """

    k: int = 1
    demand: float = 0.95  # the rate at which a metric passes

    order = 20
    sentence = "The most relevant training instances have the class that the model predicted."

    def __post_init__(self) -> None:
        share(self.demand, "demand")

    @property
    def counts(self) -> bool:
        """It counts where it looks at the first precedent alone."""
        return self.k == 1

    @property
    def lack(self) -> str:
        """That precedents have another class."""
        which = "the first precedent" if self.k == 1 else f"at least one of the first {self.k} precedents"
        return f"{which} has another class than the predicted one"

    def explained(self, result: Result, _metric: str, /) -> str:
        """That precedents have another class, and how often."""
        return lacking(result, self.lack)

    def __call__(self, trial: Trial, metric: Metric) -> Result:
        """For each case 1 or 0."""
        train, predicted = trial.workspace.train, trial.cases.labels
        top = top_k([trial.scores(metric)], checked_k(self.k, len(train)))
        found = train.labels[top.indices]  # [m, k]
        successes = (found == predicted[:, None]).all(dim=1)
        members = (train.labels[None, :] == predicted[:, None]).sum(dim=1)
        return rate(written(self), successes, chance_of_all(members, len(train), self.k), self.demand)


identical_class = IdenticalClass()
