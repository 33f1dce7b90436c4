"""What an audit will take: the kernels that its metrics need, for each model that its criteria look at."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from precedents.audit.front_door import _laws
from precedents.classifier.classifier import Vectorise
from precedents.classifier.outputs import Place
from precedents.criteria._result import Criterion
from precedents.criteria._trial import Retrain, Trial
from precedents.criteria.identical_instance import IdenticalInstance
from precedents.criteria.identical_subclass import IdenticalSubclass
from precedents.criteria.model_randomization import ModelRandomization
from precedents.errors import NotApplicable
from precedents.metrics.metric import Metric
from precedents.metrics.paper import METRICS
from precedents.metrics.paper import metric as metric_of
from precedents.runtime.cost import Estimate

LETTERS = 20  # bytes of a number in a record


def estimate(
    model: Any,
    train: Any,
    test: Any,
    *,
    metrics: Iterable[str | Metric] | None = None,
    criteria: Iterable[str | Criterion] | None = None,
    subclasses: tuple[Any, Any] | None = None,
    retrain: Retrain | None = None,
    hidden: Sequence[str] | None = None,
    vectorise: Vectorise | None = None,
    k: int = 10,
    memory: int | str | None = None,
    loss: Any = None,
    output: Place | None = None,
) -> Estimate:
    """Time, memory and disk of `audit`, from a trial on a few instances; retraining is not counted."""
    trial = Trial.of(
        model,
        train,
        test,
        subclasses=subclasses,
        retrain=retrain,
        hidden=hidden,
        vectorise=vectorise,
        memory=memory,
        loss=loss,
        output=output,
    )
    wanted = [metric_of(each) for each in (METRICS if metrics is None else metrics)]
    laws = _laws(trial, None if criteria is None else list(criteria), k)
    every = [trial.relevance(each) for each in wanted]
    kernels = {(each.metric.features, each.metric.preconditioner): each for each in every}
    rounds = _rounds(trial, laws)
    models = {name for name, _ in rounds}
    seconds, peak = 0.0, 0
    for relevance in kernels.values():
        try:
            parts = {m: relevance.estimate(m) for m in {1, *rounds.values()}}
        except NotApplicable:
            continue
        fit = parts[1].seconds
        seconds += len(models) * fit + sum(max(0.0, parts[m].seconds - fit) for m in rounds.values())
        peak = max(peak, *(part.memory for part in parts.values()))
    numbers = len(wanted) * len(laws) * len(trial.cases) + len(kernels) * len(trial.workspace.train)
    return Estimate(seconds, peak, LETTERS * numbers)


def _rounds(trial: Trial, laws: Mapping[str, Criterion]) -> dict[tuple[str, str], int]:
    """How many cases are compared with the training set, by model and by kind of cases."""
    m = len(trial.cases)
    rounds = {("trained", "cases"): m}
    for law in laws.values():
        if isinstance(law, ModelRandomization):
            rounds |= {(f"random {law.seed + draw}", law.label): m for draw in range(law.draws)}
        elif isinstance(law, IdenticalInstance):
            rounds["trained", "training instances"] = min(law.most, len(trial.workspace.train))
        elif isinstance(law, IdenticalSubclass) and trial.subclasses is None:
            rounds[f"merged {law.seed}", "cases"] = m
    return rounds
