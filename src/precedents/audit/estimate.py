"""What an audit will take, metric by metric: kernels, for each model that the criteria look at."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from precedents.audit.agenda import Agenda
from precedents.audit.limits import Limits
from precedents.audit.profile import counted_work
from precedents.criteria._criterion import Criterion
from precedents.criteria._judgement import Inapplicable, attempted
from precedents.criteria._trial import Trial
from precedents.metrics.metric import Metric
from precedents.metrics.preconditioners.identity import identity
from precedents.metrics.relevance import Relevance
from precedents.runtime.cost import Estimate
from precedents.runtime.progress import duration
from precedents.runtime.wording import readable

LETTERS = 20  # bytes of a number in a record
RANKED = 1e-7  # seconds in which one score takes its place in an order
LEAST = 1e-3  # seconds of any piece of work

Rounds = Mapping[tuple[str, str], int]  # how many cases are compared, by model and by kind of cases


@dataclass(frozen=True, eq=False)
class KernelWork:
    """What the metrics of one kernel take, which share their work."""

    metrics: Mapping[str, Metric]  # by their names
    first: float = 0.0  # seconds of explaining one case from the start
    rounds: Mapping[tuple[str, str], float] = field(default_factory=dict)  # seconds by model and kind of cases
    again: float = 0.0  # seconds of one more pass over the training set, if it is not kept
    memory: int = 0
    lack: Inapplicable | None = None  # why there will be no results
    counted: float = 0.0  # operations, by which works are ordered: seconds are not the same twice

    @property
    def seconds(self) -> float:
        """Seconds of all rounds together, under all models and kinds of cases."""
        return sum(self.rounds.values())


@dataclass(frozen=True)
class MetricEstimate:
    """What one metric is expected to take in an audit, or why it will have no result."""

    metric: str
    seconds: float
    memory: int  # bytes
    without: str | None = None  # not applicable, left out or error
    reason: str | None = None


@dataclass(frozen=True)
class AuditEstimate(Estimate):
    """What an audit is expected to take: all of it, where shared work counts once, and metric by metric."""

    metrics: Sequence[MetricEstimate] = ()

    def __str__(self) -> str:
        wide = max(len(each.metric) for each in self.metrics)
        lines = [super().__str__(), ""]
        for each in self.metrics:
            took = f"{duration(each.seconds):>12}  {readable(each.memory):>9}"
            told = took if each.without is None else f"{each.without}: {each.reason}"
            lines.append(f"{each.metric:<{wide}}  {told}")
        return "\n".join(lines)


def estimate(agenda: Agenda, limits: Limits | None = None) -> AuditEstimate:
    """Time, memory and disk of an audit, from a trial on a few instances; retraining is not counted."""
    trial, seconds, memory, kernels = agenda.trial, 0.0, 0, 0
    found: dict[str, MetricEstimate] = {}
    for work in works(agenda):
        lack = work.lack or (limits and (limits.dear(work.first) or limits.late(seconds, work.seconds)))
        told = (lack.kind, lack.reason) if lack else (None, None)
        for name in work.metrics:
            found[name] = MetricEstimate(name, work.seconds, work.memory, *told)
        if lack is None:
            seconds, memory, kernels = seconds + work.seconds, max(memory, work.memory), kernels + 1
    judged = sum(each.without is None for each in found.values()) * len(agenda.criteria) * len(trial.cases)
    disk = LETTERS * (judged + kernels * len(trial.workspace.train))
    return AuditEstimate(seconds, memory, disk, [found[name] for name in agenda.metrics])


def works(agenda: Agenda) -> list[KernelWork]:
    """The work of all metrics by kernel, from the least to the most."""
    trial, kernels = agenda.trial, dict[object, dict[str, Metric]]()
    for name, metric in agenda.metrics.items():
        fitted = attempted(partial(trial.relevance, metric))
        shared = metric if isinstance(fitted, Inapplicable) else fitted.metric
        kernels.setdefault((shared.features, shared.preconditioner), {})[name] = metric
    rounds = compared(trial, agenda.criteria.values())
    found = (_work(trial, metrics, rounds) for metrics in kernels.values())
    return sorted(found, key=lambda each: each.counted)


def compared(trial: Trial, criteria: Iterable[Criterion]) -> dict[tuple[str, str], int]:
    """How many cases are compared with the training set, by model and by kind of cases.

    The cases of the trained model are always among them: its profile is made of them.
    """
    rounds = {("trained", "cases"): len(trial.cases)}
    for criterion in criteria:
        rounds |= rounds_of(criterion, trial)
    return rounds


def rounds_of(criterion: Criterion, trial: Trial) -> Rounds:
    """Those of one criterion; none if it does not know."""
    found = attempted(lambda: criterion.rounds(trial))
    return {} if isinstance(found, Inapplicable) else found


def ranking(cases: int, trial: Trial) -> float:
    """Seconds in which all training instances are ordered for so many cases."""
    return LEAST + RANKED * cases * len(trial.workspace.train)


def _work(trial: Trial, metrics: Mapping[str, Metric], rounds: Rounds) -> KernelWork:
    """As far as it can be told: what fails here will say so when it is tried."""
    metric = next(iter(metrics.values()))
    made = attempted(lambda: _measured(trial.relevance(metric), metrics, rounds))
    return made if isinstance(made, KernelWork) else KernelWork(metrics, lack=made)


def _measured(relevance: Relevance, metrics: Mapping[str, Metric], rounds: Rounds) -> KernelWork:
    workspace, most = relevance.workspace, max(rounds.values())
    one, many = relevance.estimate(1), relevance.estimate(most)
    cost = relevance.metric.preconditioner.cost(relevance.vectors, most)
    if workspace.classifier.budget.given is not None:
        workspace.classifier.budget.required(
            cost.bytes, f"The matrix of {', '.join(metrics)}", "Allow more memory, or use another metric."
        )
    plain = Relevance(replace(relevance.metric, preconditioner=identity), workspace)
    passing = one.seconds if plain.metric == relevance.metric else plain.estimate(1).seconds
    kept = relevance.vectors.row_bytes * len(relevance.vectors) <= workspace.room
    more = max(0.0, many.seconds - one.seconds) / max(1, most - 1)
    again, seconds, models = 0.0 if kept else passing, dict[tuple[str, str], float](), set[str]()
    for (model, kind), m in rounds.items():
        seconds[model, kind] = (again if model in models else one.seconds) + more * (m - 1)
        models.add(model)
    counted, memory = counted_work(relevance), max(one.memory, many.memory)
    return KernelWork(metrics, one.seconds, seconds, again, memory, counted=counted)
