"""What an audit will take: the kernels that its metrics need, for each model that its criteria look at."""

from collections.abc import Iterable

from precedents.audit.agenda import Agenda
from precedents.criteria._criterion import Criterion
from precedents.criteria._trial import Trial
from precedents.errors import NotApplicable
from precedents.runtime.cost import Estimate

LETTERS = 20  # bytes of a number in a record


def estimate(agenda: Agenda) -> Estimate:
    """Time, memory and disk of an audit, from a trial on a few instances; retraining is not counted."""
    trial = agenda.trial
    every = [trial.relevance(each) for each in agenda.metrics.values()]
    kernels = {(each.metric.features, each.metric.preconditioner): each for each in every}
    rounds = compared(trial, agenda.criteria.values())
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
    judged = len(agenda.metrics) * len(agenda.criteria) * len(trial.cases)
    return Estimate(seconds, peak, LETTERS * (judged + len(kernels) * len(trial.workspace.train)))


def compared(trial: Trial, criteria: Iterable[Criterion]) -> dict[tuple[str, str], int]:
    """How many cases are compared with the training set, by model and by kind of cases.

    The cases of the trained model are always among them: its profile is made of them.
    """
    rounds = {("trained", "cases"): len(trial.cases)}
    for criterion in criteria:
        rounds |= criterion.rounds(trial)
    return rounds
