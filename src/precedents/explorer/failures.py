"""Failures: which cases, or training instances, failed a cell of the audit, and why a cell may not say it."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from precedents.audit.audit import Audit
from precedents.criteria._result import Result
from precedents.explorer.world import World

OTHERS = "The audit is of other cases than the first of these, so that its numbers lead to none of them."
UNKNOWN = "Of whom some numbers are, the audit does not say: an earlier version made it. Audit again."


@dataclass(frozen=True, eq=False)
class FailedCell:
    """The instances that failed one metric by one criterion."""

    set: str  # case | train
    places: Tensor
    metric: str
    criterion: str
    why: str  # what the criterion asks for, and what is so of them, in sentences

    @property
    def name(self) -> str:
        """As an address has it."""
        return f"{self.metric}:{self.criterion}"

    def mask(self, count: int) -> Tensor:
        """Which of so many instances they are [count]."""
        found = torch.zeros(count, dtype=torch.bool)
        found[self.places] = True
        return found


def cells(world: World, which: str | None = None) -> Mapping[str, FailedCell]:
    """By `metric:criterion` the cells of the audit whose instances are known; of one set, if it is named."""
    audit = world.audit
    if audit is None:
        return {}
    key = "cells of the audit", id(audit)
    if key not in world.found:
        world.found[key] = dict(_cells(world, audit))
    found: Mapping[str, FailedCell] = world.found[key]
    return found if which is None else {name: cell for name, cell in found.items() if cell.set == which}


def untold(world: World) -> list[str]:
    """Why some cells lead to no instances, a sentence each."""
    audit = world.audit
    if audit is None:
        return []
    results = {key: each for key, each in audit.judgement.outcomes.items() if isinstance(each, Result)}
    about = {key: audit.judgement.criterion(key[1]).about for key in results}
    found = [OTHERS] if "case" in about.values() and not _own_cases(world, audit) else []
    unplaced = any(_places(audit, about[key], each) is None for key, each in results.items())
    return [*found, UNKNOWN] if unplaced else found


def _cells(world: World, audit: Audit) -> Mapping[str, FailedCell]:
    found = {}
    for (metric, text), outcome in audit.judgement.outcomes.items():
        criterion = audit.judgement.criterion(text)
        if not isinstance(outcome, Result) or (criterion.about == "case" and not _own_cases(world, audit)):
            continue
        places = _places(audit, criterion.about, outcome)
        if places is not None:
            failed = places[criterion.failing(outcome)]
            here = "In these cases" if criterion.about == "case" else "Of these"
            lack = f"{here} {criterion.lack}." if criterion.lack else ""
            why = " ".join(filter(None, [criterion.sentence, lack]))
            cell = FailedCell(criterion.about, failed, metric, text, why)
            found[cell.name] = cell
    return found


def _places(audit: Audit, about: str, outcome: Result) -> Tensor | None:
    """Of which instances the values are; None where an older audit does not say it."""
    if outcome.places is not None:
        return outcome.places
    every = about == "case" and len(outcome.values) == audit.scope.cases
    return torch.arange(audit.scope.cases) if every else None


def _own_cases(world: World, audit: Audit) -> bool:
    """Whether the audit's cases are the first of the test set."""
    count, mark = audit.scope.cases, audit.scope.facts["test set fingerprint"]
    key = f"cases of the audit {mark}"
    if key not in world.found:
        first = world.test.selected(range(min(count, len(world.test))))
        world.found[key] = count <= len(world.test) and first.fingerprint() == mark
    return bool(world.found[key])
