"""Identical instance: a correctly predicted training instance is its own best precedent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from precedents.criteria._criterion import Criterion, lacking
from precedents.criteria._result import Result, rate
from precedents.criteria._trial import Trial
from precedents.errors import NotApplicable
from precedents.metrics.metric import Metric
from precedents.registry import written
from precedents.runtime.cache import Slot
from precedents.runtime.given import seed, share, whole_number

OWN_CASES: Slot[tuple[Trial, torch.Tensor]] = Slot("training instances as cases, and their places")
ROUNDING = 1e-9  # relative to the row's largest score: an equal of the instance is not better than it


@dataclass(frozen=True)
class IdenticalInstance(Criterion):
    """A success rate over training instances that are asked about as if they were cases.

    >>> import torch
    >>> from precedents import Trial, metric
    >>> x, y = torch.eye(2).repeat(3, 1), torch.arange(6) % 2
    >>> model = torch.nn.Linear(2, 2, bias=False)
    >>> _ = model.weight.data.copy_(2 * torch.eye(2))
    >>> x[0] *= 9  # the longest instance is in the way of its like
    >>> IdenticalInstance()(Trial.of(model, (x, y), (x, y)), metric("dot_x")).values.tolist()
    [1.0, 1.0, 0.0, 1.0, 0.0, 1.0]
    """

    most: int = 500  # how many are asked about
    seed: int = 0
    demand: float = 0.95  # the rate at which a metric passes

    about = "train"
    order = 40
    sentence = "A training instance, asked about as a case, finds itself."

    def __post_init__(self) -> None:
        whole_number(self.most, "most", advice="Ask about at least one training instance")
        seed(self.seed)
        share(self.demand, "demand")

    def rounds(self, trial: Trial) -> Mapping[tuple[str, str], int]:
        """The training instances that are asked about."""
        return {("trained", "training instances"): min(self.most, len(trial.workspace.train))}

    def trials(self, trial: Trial) -> Sequence[Trial]:
        """That of the training instances that are asked about."""
        return [self._own(trial)[0]]

    @property
    def lack(self) -> str:
        """That others come before the instance itself."""
        long = "inner products prefer long vectors"
        return f"another training instance is more relevant to one than it is to itself ({long})"

    def explained(self, result: Result, _metric: str, /) -> str:
        """That others come before the instance itself, and how often."""
        return lacking(result, self.lack)

    def __call__(self, trial: Trial, metric: Metric) -> Result:
        """For each instance asked about 1 or 0."""
        train = trial.workspace.train
        asked, places = self._own(trial)
        scores = asked.scores(metric)
        own = scores.gather(1, places[:, None])[:, 0]
        slack = ROUNDING * scores.abs().amax(dim=1)
        better = (scores > (own + slack)[:, None]).any(dim=1)
        found = rate(written(self), ~better & ~own.isnan(), 1 / len(train), self.demand)
        return replace(found, places=places)

    def _own(self, trial: Trial) -> tuple[Trial, torch.Tensor]:
        return trial.workspace.once(OWN_CASES.at(self), lambda: self._asked(trial))

    def _asked(self, trial: Trial) -> tuple[Trial, torch.Tensor]:
        train, model = trial.workspace.train, trial.workspace.classifier
        right = (model.predicted(train) == train.labels).nonzero().flatten()
        if not len(right):
            raise NotApplicable("The model predicts no training instance correctly.")
        order = torch.randperm(len(right), generator=torch.Generator().manual_seed(self.seed))
        places = right[order[: self.most]].sort().values
        cases = train.selected(places.tolist())
        return Trial(trial.workspace, cases, cases.labels), places


identical_instance = IdenticalInstance()
