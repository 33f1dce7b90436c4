"""Agenda: what an audit has to do: which metrics go through which criteria on a trial."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from precedents.audit.profile import kernel_name
from precedents.criteria._criterion import Criterion, Judge
from precedents.criteria._judgement import Inapplicable, attempted, by_text, default_criteria
from precedents.criteria._trial import Trial
from precedents.criteria._verdict import VerdictRule, checked_rule
from precedents.errors import InputError
from precedents.metrics.metric import Metric
from precedents.metrics.paper import METRICS, name_of
from precedents.metrics.paper import metric as metric_of
from precedents.metrics.preconditioners.identity import identity
from precedents.metrics.ranking import checked_k
from precedents.metrics.similarities.dot import dot
from precedents.registry import by_name
from precedents.runtime.given import several

SHARE = 0.125  # of the memory, that the kernels of one metric may take


@dataclass(frozen=True, eq=False)
class Agenda:
    """Metrics by criteria on one trial. Make one with `Agenda.of`."""

    trial: Trial
    metrics: Mapping[str, Metric]  # by their names
    criteria: Mapping[str, Criterion]  # by their texts
    k: int  # precedents that are looked at
    rule: VerdictRule = "interval"  # of the verdicts

    @classmethod
    def of(
        cls,
        trial: Trial,
        metrics: Sequence[str | Metric] | None = None,
        criteria: Sequence[str | Criterion | Judge] | None = None,
        k: int = 10,
        rule: VerdictRule = "interval",
    ) -> "Agenda":
        """The named metrics and criteria; without them all of the paper, and all that the trial allows.

        `metrics` and `criteria` are names, texts or values; `k` is how many precedents are looked at,
        and `rule` how verdicts are reached.
        """
        k = checked_k(k, len(trial.workspace.train))
        given = list(METRICS) if metrics is None else metrics
        chosen = by_name(map(metric_of, several(given, "metrics", Metric)), "metrics", name_of)
        plain = [replace(each, similarity=dot) for each in chosen.values()]
        by_name(plain, "features or preconditioners", kernel_name)
        named = default_criteria(trial, k) if criteria is None else by_text(criteria)
        if not chosen or not named:
            raise InputError(
                "There is nothing to audit. Name at least one metric and one criterion, or neither."
            )
        for criterion in named.values():
            checked_k(criterion.fewest, len(trial.workspace.train))
        return cls(trial, chosen, named, k, checked_rule(rule))

    @property
    def kernels(self) -> dict[str, Metric]:
        """A metric of each kernel, by the kernel's name."""
        return {kernel_name(metric): metric for metric in self.metrics.values()}

    def kernels_beside(self, trials: Iterable[Trial], metric: Metric) -> None:
        """Makes the kernels by a `metric` of `trials`, and those that criteria will ask of the same models.

        So a matrix is fitted once to each model, also where the memory has no room for several. What cannot be
        made says so when it is asked for.
        """
        metric = self.trial.relevance(metric).metric
        if metric.preconditioner == identity:
            return
        named = (each for one in self.criteria.values() for each in self._trials(one))
        every = dict.fromkeys([self.trial, *named])  # each once
        if sum(each.kernel_bytes for each in every) > SHARE * self.trial.workspace.classifier.budget.bytes:
            return
        for trial in trials:
            for each in every:
                if each.workspace is trial.workspace:
                    attempted(partial(each.kernel, metric))

    def _trials(self, criterion: Criterion) -> Sequence[Trial]:
        """Those of one criterion; none if it does not know."""
        found = attempted(lambda: list(criterion.trials(self.trial)))
        return [] if isinstance(found, Inapplicable) else found
