"""Model randomization: a metric that looks at the model orders the training set otherwise for a random model.

For each case the rank correlation between the relevance of all training instances under the trained model
and under one whose parameters are drawn anew.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch

from precedents.classifier.classifier import Classifier
from precedents.criteria._criterion import Criterion
from precedents.criteria._interval import Z
from precedents.criteria._result import Result, correlation
from precedents.criteria._spearman import spearman
from precedents.criteria._trial import Trial
from precedents.errors import InputError
from precedents.metrics.metric import Metric
from precedents.registry import written
from precedents.runtime.given import seed, share, whole_number

Label = Literal["own", "shared"]
SAME = 1 - 1e-6  # a correlation above it is that of the same ranking
SHARED = "Both models explain the same label here: what labels and inputs give without a model stays."
ALWAYS = (
    "By the angle between gradients that is always so for a linear model of two classes: once the label is "
    "given, its weights have no say in it."
)


@dataclass(frozen=True)
class ModelRandomization(Criterion):
    """A mean rank correlation over the cases; zero is best, one means that the model is not looked at.

    >>> import torch
    >>> from precedents import Trial, metric
    >>> x, y = torch.eye(2).repeat(3, 1), torch.arange(6) % 2
    >>> model = torch.nn.Linear(2, 2, bias=False)
    >>> _ = model.weight.data.copy_(2 * torch.eye(2))
    >>> x, y = x.repeat(6, 1), y.repeat(6)
    >>> print(ModelRandomization(draws=1)(Trial.of(model, (x, y), (x, y)), metric("cos_x")))
    model_randomization(draws=1): 1.000 ± 0.000 over 36 cases, 95% interval [0.805, 1.000], chance 0.000: failed
    """

    draws: int = 3  # random models
    label: Label = "own"  # each model explains its own prediction, or both the trained model's
    seed: int = 0
    fail: float = 0.7  # the mean correlation above which the paper calls it failed
    near: float = 0.1  # the mean correlation, on either side of zero, up to which it passes

    better = "zero"
    order = 10
    sentence = (
        "A metric that looks at the model ranks the training set otherwise once the model's parameters are "
        "drawn at random. The rank correlation of the two should be near 0; 1 means that the model is not "
        "looked at."
    )

    def __post_init__(self) -> None:
        if self.label not in get_args(Label):
            raise InputError(f"label is {self.label!r}. Use one of: {', '.join(get_args(Label))}.")
        whole_number(self.draws, "draws", advice="Draw at least one random model")
        seed(self.seed)
        share(self.fail, "fail")

    def variants(self, k: int) -> Sequence[Criterion]:
        """Each model explains its own prediction, and both the trained model's."""
        return *super().variants(k), replace(self, label="shared")

    def rounds(self, trial: Trial) -> Mapping[tuple[str, str], int]:
        """The cases under the trained model and under every random one."""
        random = [f"random {self.seed + draw}" for draw in range(self.draws)]
        return {**super().rounds(trial), **{(model, self.label): len(trial.cases) for model in random}}

    def trials(self, trial: Trial) -> Iterator[Trial]:
        """That of the trained model, and of every random one as it is asked for."""
        yield trial
        yield from (trial.randomized(self.seed + draw, self.label) for draw in range(self.draws))

    def others(self, trial: Trial) -> Mapping[str, Classifier]:
        """The first random model, whose behaviour kept work is known by, too."""
        random = trial.randomized(self.seed, "shared").workspace.classifier
        return {f"the random model of seed {self.seed}, so pass the same fresh": random}

    @property
    def lack(self) -> str:
        """That the ranking stays, and by how much."""
        return (
            "most of the ranking stays when the model's parameters are drawn at random: "
            f"a rank correlation above {self.fail:g}"
        )

    def failing(self, result: Result) -> torch.Tensor:
        """The cases by which alone it would fail."""
        return result.values > self.fail

    def explained(self, result: Result, metric: str, /) -> str:
        """How much of the ranking stays under random parameters, and what that may be."""
        drawn, learned = "when the model's parameters are drawn at random", "what the model has learned"
        if float(result.values.min()) > SAME:
            why = f"The ranking stays the same {drawn}: it does not depend on {learned}."
            return f"{why} {ALWAYS}" if self.label == "shared" and "grad" in metric else why
        if result.mean < 0:
            return f"The ranking is in part turned around {drawn}, so the two have something in common."
        much = "Most" if result.mean > self.fail else "Part"
        why = f"{much} of the ranking stays {drawn}, so that part does not come from {learned}."
        return f"{why} {SHARED}" if self.label == "shared" else why

    def __call__(self, trial: Trial, metric: Metric) -> Result:
        """For each case the mean correlation over the draws."""
        metric = trial.relevance(metric).metric  # the random models' matrices are of the trained one's kind
        trained = trial.scores(metric)
        draws = [
            spearman(trained, trial.randomized(self.seed + i, self.label).scores(metric))
            for i in range(self.draws)
        ]
        values = torch.stack(draws).mean(dim=0)
        m, n = trained.shape
        nulls = {"null over training instances": null(n), "null over cases": null(m)}
        found = correlation(written(self), values, self.near, self.fail, nulls)
        between = float(torch.stack([draw.mean() for draw in draws]).std(correction=0))
        return replace(found, notes=nulls | {"std over draws": between})


def null(count: int) -> float:
    """Half the 95% interval of a rank correlation of `count` independent ranks around zero."""
    return Z / (count - 1) ** 0.5 if count > 1 else 1.0


model_randomization = ModelRandomization()
