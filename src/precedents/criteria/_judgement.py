"""Judgement: metrics by criteria, each cell a result or the reason why there is none."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import TYPE_CHECKING, Literal, TypeVar

from precedents.criteria import CRITERIA
from precedents.criteria._criterion import Criterion, Judge, Unlisted
from precedents.criteria._result import Result
from precedents.criteria._trial import Trial
from precedents.criteria._verdict import VerdictRule, checked_rule
from precedents.errors import (
    BudgetError,
    InputError,
    NotApplicable,
    NumericalError,
    PrecedentsError,
    StaleError,
)
from precedents.metrics.metric import Metric
from precedents.metrics.paper import METRICS, name_of
from precedents.metrics.paper import metric as metric_of
from precedents.registry import by_name
from precedents.runtime.door import door
from precedents.runtime.given import several
from precedents.runtime.progress import tracked
from precedents.runtime.users_code import out_of_memory, why
from precedents.runtime.wording import a_type
from precedents.views.table import NONE, Entry, Table

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table as RichTable

T = TypeVar("T")

Lack = Literal["not applicable", "left out", "error"]


@dataclass(frozen=True)
class Inapplicable:
    """The place of a result that there is none of, with the reason why.

    It has no meaning here (not applicable), cannot be afforded (left out), or a part of it failed (error).
    """

    reason: str
    kind: Lack = "not applicable"


@dataclass(frozen=True)
class Judgement:
    """Every metric by every criterion."""

    outcomes: Mapping[tuple[str, str], Result | Inapplicable]  # by metric and criterion
    criteria: Mapping[str, Criterion] = field(default_factory=dict, repr=False, compare=False)  # by their texts

    def __getitem__(self, key: tuple[str, str]) -> Result | Inapplicable:
        """The outcome of a metric by a criterion, both by name."""
        return self.outcomes[key]

    def criterion(self, text: str) -> Criterion:
        """The criterion of this text, for what it says of itself."""
        return self.criteria[text] if text in self.criteria else described(text)

    def explained(self, metric: str, text: str) -> str:
        """Why a `metric` is weak or failed by the criterion of this `text`, in a sentence; else it is empty."""
        found = self.outcomes.get((metric, text))
        if not isinstance(found, Result) or found.verdict not in ("weak", "failed"):
            return ""
        said = attempted(lambda: self.criterion(text).explained(found, metric))
        return said if isinstance(said, str) else ""

    def to_frame(self) -> "pd.DataFrame":
        """A pandas frame, one row per metric and criterion."""
        import pandas as pd

        columns = ["metric", "criterion", "value", "std", "low", "high", "chance", "cases", "verdict", "reason"]
        rows = [_row(*key, outcome) for key, outcome in self.outcomes.items()]
        return pd.DataFrame(rows, columns=columns)

    @property
    def reasons(self) -> list[str]:
        """A sentence for each reason why results are not there: of which metrics, by which criteria."""
        cells: dict[Inapplicable, list[tuple[str, str]]] = {}
        for key, outcome in self.outcomes.items():
            if isinstance(outcome, Inapplicable):
                cells.setdefault(outcome, []).append(key)
        return [f"{NONE} {why.kind}: {self._named(keys)}. {why.reason}" for why, keys in cells.items()]

    def _named(self, cells: Sequence[tuple[str, str]]) -> str:
        """Metrics, where they have no result at all, and otherwise the criteria that they have none by."""
        metrics, criteria = (list(dict.fromkeys(names)) for names in zip(*self.outcomes, strict=True))
        without = [name for name in metrics if all((name, text) in cells for text in criteria)]
        parts = [", ".join(without)] if without else []
        for text in criteria:
            some = [name for name, own in cells if own == text and name not in without]
            if some:
                parts.append(f"{text} of {'all metrics' if some == metrics else ', '.join(some)}")
        return "; ".join(parts)

    def table(self, beside: Mapping[tuple[str, str], Entry] | None = None) -> Table:
        """Metrics by criteria, with more columns beside them if some are given: cells by metric and heading."""
        return Table.of("metric", {key: _entry(o) for key, o in self.outcomes.items()} | dict(beside or {}))

    def __rich__(self) -> "RichTable":
        return self.table().compact()

    def _repr_html_(self) -> str:
        return self.table().html()


@door
def judge(
    trial: Trial,
    metrics: Iterable[str | Metric] = tuple(METRICS),
    criteria: Iterable[str | Criterion | Judge] | None = None,
    rule: VerdictRule = "interval",
) -> Judgement:
    """Puts the metrics through the criteria; without `criteria` through all of the folder.

    `metrics` and `criteria` are names, texts such as `identical_class(k=10)`, or values; a function of a trial
    and a metric that gives a `Result` is a criterion as well. What does not apply is told with its reason.
    `rule` is how verdicts are reached: "interval", where they are earned, or "paper", by the means alone.
    """
    rule = checked_rule(rule)
    chosen = by_name(map(metric_of, several(metrics, "metrics", Metric)), "metrics", name_of)
    named = by_text(CRITERIA.names() if criteria is None else criteria)
    pairs = [(name, text) for name in chosen for text in named]  # what a metric needs is not needed later
    found = {}
    for name, text in tracked(pairs, "metrics by criteria"):
        found[name, text] = outcome(named[text], trial, chosen[name], rule)
    keys = [(name, text) for text in named for name in chosen]
    return Judgement({key: found[key] for key in keys}, named)


def by_text(criteria: "str | Iterable[str | Criterion | Judge]") -> dict[str, Criterion]:
    """Criteria by their texts, from names, texts, values or functions; one alone may be given as it is.

    >>> by_text("identical_class(k=10)")
    {'identical_class(k=10)': IdenticalClass(k=10, demand=0.95)}
    """
    named = [_criterion(each) for each in several(criteria, "criteria", Criterion)]
    return by_name(named, "criteria")


def default_criteria(trial: Trial, k: int) -> dict[str, Criterion]:
    """What an audit of this trial runs when no criteria are named: all that have what they need, in order.

    `k` is how many precedents the audit looks at.
    """
    every = sorted((CRITERIA.get(name) for name in CRITERIA.names()), key=lambda each: each.order)
    return by_text([each for one in every if one.is_given(trial) for each in one.variants(k)])


def described(text: str) -> Criterion:
    """The criterion that a text such as `identical_class(k=10)` writes; of one in no file, only the text."""
    try:
        return CRITERIA.read(text)
    except InputError:
        return Unlisted(text)


def outcome(
    criterion: Criterion, trial: Trial, metric: Metric, rule: VerdictRule = "interval"
) -> Result | Inapplicable:
    """The result of a metric by a criterion, with the verdict by a rule; or the reason why there is none."""
    reason = criterion.inapplicable(trial)
    return applicable(lambda: criterion(trial, metric).by(rule)) if reason is None else Inapplicable(reason)


def _criterion(given: str | Criterion | Judge) -> Criterion:
    if isinstance(given, str):
        return CRITERIA.read(given)
    if not callable(given):
        raise InputError(
            f"A criterion is {a_type(given)}. Pass its name, or a function of a trial and a metric."
        )
    return given if isinstance(given, Criterion) else Unlisted.of(given)


def applicable(work: Callable[[], T]) -> T | Inapplicable:
    """What `work` gives; or the reason why it has no meaning here, or cannot be afforded."""
    try:
        return work()
    except (NotApplicable, NumericalError) as reason:
        return Inapplicable(str(reason))
    except BudgetError as reason:
        return Inapplicable(str(reason), "left out")


def attempted(work: Callable[[], T]) -> T | Inapplicable:
    """What `work` gives; or the reason why it has no meaning here, cannot be afforded, or fails.

    Whatever is raised becomes a reason, but that the data are others than they were: nothing holds then.
    """
    try:
        return applicable(work)
    except StaleError:
        raise
    except PrecedentsError as error:
        return Inapplicable(str(error), "error")
    except (Exception, SystemExit) as error:
        memory = out_of_memory(error)
        return Inapplicable(why(error), "error") if memory is None else Inapplicable(memory, "left out")


def _entry(outcome: Result | Inapplicable) -> Entry:
    if isinstance(outcome, Inapplicable):
        return Entry(NONE, why=outcome.reason)
    text = NONE if isnan(outcome.mean) else f"{outcome.mean:.3f}"
    return Entry(text, verdict=outcome.verdict, why=outcome.reason)


def _row(metric: str, criterion: str, outcome: Result | Inapplicable) -> dict[str, object]:
    row: dict[str, object] = {"metric": metric, "criterion": criterion}
    if isinstance(outcome, Inapplicable):
        return row | {"verdict": outcome.kind, "reason": outcome.reason}
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
