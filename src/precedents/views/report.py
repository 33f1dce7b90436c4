"""What the report page shows, as neutral values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from precedents.views.sheet import Cell


@dataclass(frozen=True)
class Row:
    """One metric by one criterion, as `Audit.to_frame()` has it."""

    metric: str
    criterion: str
    value: float | None
    low: float | None
    high: float | None
    chance: float | None
    verdict: str  # passed | weak | failed | not applicable
    reason: str


@dataclass(frozen=True)
class Hub:
    """A training instance that answers many cases."""

    metric: str
    index: int
    share: float  # of the cases whose top precedent it is
    cell: Cell


@dataclass(frozen=True)
class Example:
    """One case with the precedents by every metric, side by side."""

    case: Cell
    right: bool
    strips: Mapping[str, Sequence[Cell]]  # by metric


@dataclass(frozen=True, eq=False)
class Report:
    """All that the page shows."""

    title: str
    verdict: Sequence[str]  # sentences for the top: the recommendation, its reason, cautions
    rows: Sequence[Row]
    values: Mapping[tuple[str, str], Sequence[float]]  # per-case values of (metric, criterion)
    norms: Mapping[str, tuple[Sequence[float], Sequence[float]]]  # by metric: of all, of the selected
    hubs: Sequence[Hub]
    agreement: Mapping[str, Mapping[tuple[str, str], float]]  # by measure, by pair of metrics
    examples: Sequence[Example]
    label_agreement: Mapping[str, float]  # by metric: share of the k precedents with the predicted label
    duplicates: Sequence[tuple[int, int]]  # (case, training instance) that are equal
    costs: Mapping[str, float]  # seconds, by metric
    facts: Mapping[str, str]  # settings, versions, fingerprints
    command: str = ""  # the command that reproduces it
