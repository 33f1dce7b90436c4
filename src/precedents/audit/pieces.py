"""The work of an audit in pieces, each recorded when it is finished, and the audit that they come to."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from precedents.audit.agenda import Agenda
from precedents.audit.agreement import agreement
from precedents.audit.audit import Audit
from precedents.audit.instances import duplicates, example_cases, pictures
from precedents.audit.json import plain_agreement, plain_outcome, read_agreement, read_outcome, read_profile
from precedents.audit.ledger import Ledger
from precedents.audit.profile import Profile, norms, profile
from precedents.audit.recommendation import recommend
from precedents.audit.scope import Scope
from precedents.criteria._criterion import Criterion
from precedents.criteria._judgement import Inapplicable, Judgement, attempted, outcome
from precedents.criteria._trial import Trial
from precedents.metrics.metric import Metric
from precedents.runtime.cost import elapsed
from precedents.runtime.progress import tracked
from precedents.views.comparison import spread_of


def audited(agenda: Agenda, scope: Scope, ledger: Ledger, afford: float | None) -> Audit:
    """Does what is on the agenda and not yet in the ledger, and puts it together.

    `scope` says what is audited, `afford` how many seconds explaining one case may take.
    """
    trial, subject = agenda.trial, agenda.trial.workspace.subject
    cases = example_cases(trial)
    for piece, work in tracked(list(pieces(agenda, [case.index for case in cases])), "audit"):
        ledger.once(piece, work)
    judgement, profiles = _judgement(agenda, ledger.values), _profiles(agenda, ledger.values)
    selecting = {name: own for name, own in agenda.metrics.items() if isinstance(profiles[name], Profile)}
    agreed = partial(_agreement, trial, selecting, agenda.k)
    found = ledger.once(("agreement",), agreed) if ledger.lasting else agreed()
    costs = {name: ledger.values["portrait", name]["seconds"] for name in selecting}
    return Audit(
        scope=scope,
        judgement=judgement,
        profiles=profiles,
        norms={kernel: _norms_of(ledger.values["norms", kernel]) for kernel in agenda.kernels},
        agreement=read_agreement(found),
        duplicates=duplicates(trial),
        examples=cases,
        recommendation=recommend(judgement, profiles, costs, afford),
        costs=costs,
        pictures=pictures(trial, cases, profiles),
        spread=spread_of(subject.train, subject.render),
    )


def pieces(agenda: Agenda, cases: Sequence[int]) -> Iterator[tuple[tuple[str, ...], Callable[[], Any]]]:
    """The work, each piece with its name; what is cheap and shared by the others comes first.

    `cases` are those that are shown with their precedents.
    """
    trial = agenda.trial
    for name, metric in agenda.metrics.items():
        yield ("portrait", name), partial(_profile, trial, metric, agenda.k, cases)
    for name, metric in agenda.kernels.items():
        yield ("norms", name), partial(_norms, trial, metric)
    for name, metric in agenda.metrics.items():
        for text, criterion in agenda.criteria.items():
            yield ("outcome", name, text), partial(_outcome, criterion, trial, metric)


def _profile(trial: Trial, metric: Metric, k: int, cases: Sequence[int]) -> dict[str, Any]:
    """With the measured seconds of explaining one more case beside it."""
    made = attempted(lambda: profile(trial, metric, k, cases))
    if isinstance(made, Inapplicable):
        return asdict(made)
    relevance, one = trial.relevance(metric), trial.cases.selected([0])
    return asdict(made) | {"seconds": elapsed(lambda: relevance.top(one, k), times=1)}


def _norms(trial: Trial, metric: Metric) -> list[float] | dict[str, Any]:
    made = attempted(lambda: norms(trial, metric))
    return asdict(made) if isinstance(made, Inapplicable) else made


def _norms_of(value: Any) -> Sequence[float]:
    """None where there is a reason in their place."""
    return value if isinstance(value, list) else []


def _outcome(criterion: Criterion, trial: Trial, metric: Metric) -> dict[str, Any]:
    return plain_outcome(outcome(criterion, trial, metric))


def _agreement(trial: Trial, metrics: Mapping[str, Metric], k: int) -> dict[str, Any]:
    return plain_agreement(agreement(trial, metrics, k))


def _judgement(agenda: Agenda, values: Mapping[tuple[str, ...], Any]) -> Judgement:
    outcomes = {
        (name, text): read_outcome(values["outcome", name, text] | {"criterion": text})
        for text in agenda.criteria
        for name in agenda.metrics
    }
    return Judgement(outcomes, agenda.criteria)


def _profiles(agenda: Agenda, values: Mapping[tuple[str, ...], Any]) -> dict[str, Profile | Inapplicable]:
    return {name: read_profile(values["portrait", name]) for name in agenda.metrics}
