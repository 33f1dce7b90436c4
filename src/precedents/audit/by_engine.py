"""The work of an audit on an engine: a task for each kernel, whose metrics share their work.

The model, its data and what was decided about them travel; a model that cannot is refused by the engine. This
process alone writes the ledger, a kernel at a time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from time import time
from typing import Any

from precedents.audit.agenda import Agenda
from precedents.audit.estimate import works
from precedents.audit.ledger import Ledger
from precedents.audit.limits import Limits, Time
from precedents.audit.pieces import Name, Turn, lack_of_profile, maker, pieces, turn_of
from precedents.criteria._judgement import attempted
from precedents.metrics.kernel import Kernel
from precedents.metrics.metric import Metric
from precedents.runtime.engines._engine import Engine
from precedents.runtime.progress import tracked

Errand = tuple[Name, ...]  # pieces that one worker makes, in this order


def do_on(engine: Engine, agenda: Agenda, cases: Sequence[int], ledger: Ledger, limits: Limits) -> None:
    """All pieces that are not in the ledger; `cases` are those that are shown.

    Kernels are left out by the estimates, as if one worker did everything: that is the same everywhere. What is
    not begun when the time is over, by the clock of each machine, is left out, too.
    """
    began = time()
    groups = list(_groups(agenda, cases, ledger, limits))
    _retrained(agenda, groups)
    made = engine.run(partial(pieces_made, agenda, tuple(cases), limits, began), groups)
    for group, (values, kernel) in tracked(made, "audit", len(groups), at_once=engine.elsewhere):
        for name, value in values.items():
            ledger.once(name, partial(_same, value))
        if kernel is not None:  # for the agreement of the metrics, which is found here
            agenda.trial.kept_kernel(_metric(agenda, group), partial(_same, kernel))


def pieces_made(
    agenda: Agenda, cases: Sequence[int], limits: Limits, began: float, group: Errand
) -> tuple[dict[Name, Any], Kernel | None]:
    """In a worker: the values of some pieces by their names, and their kernel if a profile was made of it.

    What is not done in time gets the reason; the audit `began` at this second of the day's clock.
    """
    values: dict[Name, Any] = {}
    passing = Time(limits, time, began)
    for name in tracked(group, f"audit of {group[0][1]}"):
        lack = passing.late() or lack_of_profile(name, values)
        with passing.of(0.0):
            values[name] = asdict(lack) if lack else maker(agenda, cases, name)()
    profiled = any(name[0] == "portrait" and "reason" not in value for name, value in values.items())
    return values, agenda.trial.kernel(_metric(agenda, group)) if profiled else None


def _metric(agenda: Agenda, group: Errand) -> Metric:
    """A metric of the kernel that a group is of."""
    kind, name, *_ = group[0]
    return agenda.kernels[name] if kind == "norms" else agenda.metrics[name]


def _groups(agenda: Agenda, cases: Sequence[int], ledger: Ledger, limits: Limits) -> Iterator[Errand]:
    """What is to be done, kernel by kernel; what cannot be afforded gets its reason at once."""
    spent = 0.0
    counted = Time(limits, lambda: spent, began=0.0)
    for work in works(agenda, limits.within):
        left = list(pieces(agenda, work, cases, ledger.values))
        turn = turn_of(agenda, work, cases, ledger, counted) if left else Turn()
        for piece in left if turn.lack else ():
            ledger.once(piece.name, partial(asdict, turn.lack))
        if left and not turn.lack:
            spent += sum(turn.seconds.values())
            yield tuple(piece.name for piece in left)


def _retrained(agenda: Agenda, groups: Sequence[Errand]) -> None:
    """Makes here, once, what criteria prepare, as models that are trained again. A failure is told there."""
    trial, needed = agenda.trial, {name[2] for group in groups for name in group if name[0] == "outcome"}
    for text in needed:
        criterion = agenda.criteria[text]
        if criterion.inapplicable(trial) is None:
            attempted(partial(criterion.prepared, trial))


def _same(value: Any) -> Any:
    return value
