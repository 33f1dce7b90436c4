"""Judgement: metrics by criteria, each cell a result or the reason why there is none."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from precedents import criteria as criterion_files
from precedents.criteria._result import Criterion, Result
from precedents.criteria._trial import Trial
from precedents.errors import BudgetError, NotApplicable, NumericalError
from precedents.metrics.metric import Metric
from precedents.metrics.paper import METRICS, name_of
from precedents.metrics.paper import metric as metric_of
from precedents.registry import Registry, written
from precedents.runtime.progress import tracked
from precedents.views.table import NONE, Entry, Table

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table as RichTable

T = TypeVar("T")

CRITERIA: Registry[Criterion] = Registry("criterion", criterion_files)


@dataclass(frozen=True)
class Inapplicable:
    """There is no result, and this is why."""

    reason: str


@dataclass(frozen=True)
class Judgement:
    """Every metric by every criterion."""

    outcomes: Mapping[tuple[str, str], Result | Inapplicable]  # by metric and criterion

    def __getitem__(self, key: tuple[str, str]) -> Result | Inapplicable:
        """The outcome of a metric by a criterion, both by name."""
        return self.outcomes[key]

    def to_frame(self) -> "pd.DataFrame":
        """A pandas frame, one row per metric and criterion."""
        import pandas as pd

        columns = ["metric", "criterion", "value", "std", "low", "high", "chance", "cases", "verdict", "reason"]
        rows = [_row(*key, outcome) for key, outcome in self.outcomes.items()]
        return pd.DataFrame(rows, columns=columns)

    def __rich__(self) -> "RichTable":
        cells = {key: _entry(outcome) for key, outcome in self.outcomes.items()}
        return Table.of("metric", cells).compact()


def judge(
    trial: Trial,
    metrics: Iterable[str | Metric] = tuple(METRICS),
    criteria: Iterable[str | Criterion] | None = None,
) -> Judgement:
    """Puts the metrics through the criteria; those named in the folder, unless told otherwise."""
    chosen = [metric_of(metric) for metric in ([metrics] if isinstance(metrics, str) else metrics)]
    wanted = CRITERIA.names() if criteria is None else [criteria] if isinstance(criteria, str) else criteria
    laws = [CRITERIA.read(law) if isinstance(law, str) else law for law in wanted]
    pairs = [(metric, law) for metric in chosen for law in laws]  # what a metric needs is not needed later
    found = {}
    for metric, law in tracked(pairs, "metrics by criteria"):
        found[name_of(metric), written(law)] = attempted(partial(law, trial, metric))
    return Judgement(
        {
            (name_of(metric), written(law)): found[name_of(metric), written(law)]
            for law in laws
            for metric in chosen
        }
    )


def attempted(work: Callable[[], T]) -> T | Inapplicable:
    """What the work gives; or why it has no meaning here, does not fit, or breaks down."""
    try:
        return work()
    except (NotApplicable, NumericalError, BudgetError) as reason:
        return Inapplicable(str(reason))


def _entry(outcome: Result | Inapplicable) -> Entry:
    if isinstance(outcome, Inapplicable):
        return Entry(NONE, why=outcome.reason)
    return Entry(f"{outcome.mean:.3f}", verdict=outcome.verdict)


def _row(metric: str, criterion: str, outcome: Result | Inapplicable) -> dict[str, object]:
    row: dict[str, object] = {"metric": metric, "criterion": criterion}
    if isinstance(outcome, Inapplicable):
        return row | {"verdict": "not applicable", "reason": outcome.reason}
    return row | {
        "value": outcome.mean,
        "std": outcome.std,
        "low": outcome.low,
        "high": outcome.high,
        "chance": outcome.chance,
        "cases": len(outcome.values),
        "verdict": outcome.verdict,
        "reason": outcome.noted,
    }
