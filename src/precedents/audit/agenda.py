"""Agenda: what an audit has to do: which metrics go through which criteria on a trial."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from precedents.audit.profile import kernel_name
from precedents.criteria._criterion import Criterion, Judge
from precedents.criteria._judgement import by_text, default_criteria
from precedents.criteria._trial import Trial
from precedents.criteria._verdict import VerdictRule, checked_rule
from precedents.errors import InputError
from precedents.metrics.metric import Metric
from precedents.metrics.paper import METRICS, name_of
from precedents.metrics.paper import metric as metric_of
from precedents.metrics.ranking import checked_k
from precedents.metrics.similarities.dot import dot
from precedents.registry import by_name
from precedents.runtime.given import several


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
