"""The work of an audit in pieces, each recorded when it is finished, and the audit that they come to."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from time import monotonic
from typing import Any

from precedents.audit.agenda import Agenda
from precedents.audit.agreement import agreement
from precedents.audit.audit import Audit
from precedents.audit.estimate import KernelWork, measured, ranking, rounds_of, works
from precedents.audit.instances import Case, duplicates, example_cases, ids_of, pictures, shares
from precedents.audit.json import plain_agreement, plain_outcome, read_agreement, read_outcome, read_profile
from precedents.audit.ledger import PASSING, Ledger
from precedents.audit.limits import Limits, Time
from precedents.audit.profile import Profile, kernel_name, norms, profile
from precedents.audit.recommendation import Recommendation, recommend
from precedents.audit.scope import Scope
from precedents.criteria._criterion import Criterion
from precedents.criteria._judgement import Inapplicable, Judgement, attempted, outcome
from precedents.criteria._trial import Trial
from precedents.explain.naming import Sharing
from precedents.explain.shares import Shares
from precedents.metrics.metric import Metric
from precedents.runtime.cache import Slot
from precedents.runtime.checkpoint import forget, kept_in
from precedents.runtime.cost import elapsed
from precedents.runtime.progress import tracked
from precedents.views.comparison import spread_of
from precedents.views.instance import Shown

ONE_MORE: Slot[float] = Slot("measured seconds of one more case")

Name = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class PieceOfWork:
    """One piece of the work, and the seconds that it is expected to take."""

    name: Name
    make: Callable[[], Any]  # a plain value
    seconds: float


Do = Callable[[Agenda, Sequence[int], Ledger, Limits], None]


def audited(agenda: Agenda, scope: Scope, ledger: Ledger, limits: Limits, work: Do | None = None) -> Audit:
    """Does what is on the agenda and not yet in the ledger, and puts it together.

    `scope` says what is audited, `limits` what it may take; `work` does what is not done yet, in the place of
    `do`.
    """
    time, trial, subject = Time(limits, monotonic), agenda.trial, agenda.trial.workspace.subject
    cases = example_cases(trial)
    with kept_in(ledger.folder, str(scope.facts)):
        if any(name not in ledger.values for name in names(agenda)):
            (work or do)(agenda, [case.index for case in cases], ledger, limits)
    judgement, profiles = _judgement(agenda, ledger.values), _profiles(agenda, ledger.values)
    selecting = {name: own for name, own in agenda.metrics.items() if isinstance(profiles[name], Profile)}
    agreed = partial(_agreement, trial, selecting, agenda.k, time)
    lasting = not any(isinstance(each, Inapplicable) and each.kind in PASSING for each in profiles.values())
    found = ledger.once(("agreement",), agreed) if lasting else agreed()
    if not time.late():  # after which the next call goes on with what was broken off
        forget(ledger.folder)
    copies = duplicates(trial)
    costs = {name: ledger.values["portrait", name]["seconds"] for name in selecting}
    recommended = recommend(judgement, profiles, costs, limits.afford)
    seen = pictures(trial, cases, profiles, copies)
    return Audit(
        scope=scope,
        judgement=judgement,
        profiles=profiles,
        norms={kernel: _norms_of(ledger.values["norms", kernel]) for kernel in agenda.kernels},
        agreement=read_agreement({} if "reason" in found else found),
        duplicates=copies,
        examples=cases,
        recommendation=recommended,
        costs=costs,
        pictures=seen,
        shares=_shares(agenda, cases, recommended, profiles, seen),
        ids=ids_of(trial, cases, profiles),
        spread=_or_none(attempted(lambda: spread_of(subject.train, subject.render))),
    )


def _shares(
    agenda: Agenda,
    cases: Sequence[Case],
    recommended: Recommendation,
    profiles: Mapping[str, Profile | Inapplicable],
    seen: Mapping[tuple[str, int], Shown],
) -> dict[tuple[int, int], Shares]:
    """Of the cases that are shown by the recommended metric; none if it has no parts, or if none is."""
    name = recommended.metric
    profile = None if name is None else profiles[name]
    if name is None or not isinstance(profile, Profile):
        return {}
    sharing = Sharing(agenda.metrics[name], name, agenda.trial.workspace.subject)
    made = attempted(partial(shares, agenda.trial, cases, sharing, profile, seen))
    return {} if isinstance(made, Inapplicable) else made


def do(agenda: Agenda, cases: Sequence[int], ledger: Ledger, limits: Limits) -> None:
    """All pieces that are not in the ledger, kernel by kernel, from the least work to the most.

    What cannot be afforded is left out: its pieces get the reason. So does a piece that cannot end in what is
    left of the time, by its estimate and by how much longer others took than theirs, and one that is broken off
    when the time is over. `cases` are those that are shown.
    """
    time, turn = Time(limits, monotonic), Turn()
    every = [(work, list(pieces(agenda, work, cases, ledger.values))) for work in works(agenda, limits.within)]
    tasks = [(work, left, piece) for work, left in every for piece in left]
    expected = list(_expected(every, limits))
    for work, left, piece in tracked(tasks, "audit", work=expected):
        if piece is left[0]:
            turn = turn_of(agenda, work, cases, ledger, time)
        seconds = turn.seconds.get(piece.name, 0.0)
        known = turn.lack or time.late(seconds) or lack_of_profile(piece.name, ledger.values)
        if known is not None:
            ledger.once(piece.name, partial(asdict, known))
        else:
            with time.of(seconds):
                ledger.once(piece.name, piece.make)
        if piece is left[-1] and not time.late():
            forget(ledger.folder)


def lack_of(work: KernelWork, left: Sequence[PieceOfWork], time: Time) -> Inapplicable | None:
    """Why the work of a kernel is left out; what has no meaning or fails says so itself when it is tried."""
    if work.lack is not None:
        return work.lack if work.lack.kind == "left out" else None
    return time.limits.dear(work.first) or time.late(sum(piece.seconds for piece in left))


@dataclass(frozen=True)
class Turn:
    """What is known of a kernel's work when it begins: why it is left out, or the seconds of its pieces."""

    lack: Inapplicable | None = None
    seconds: Mapping[Name, float] = field(default_factory=dict)


def turn_of(agenda: Agenda, work: KernelWork, cases: Sequence[int], ledger: Ledger, time: Time) -> Turn:
    """Now that it is a kernel's turn: one that there was no time to measure before is measured now."""
    if over := time.late():
        return Turn(over)
    with time.held():
        now = measured(agenda, work)
    left = list(pieces(agenda, now, cases, ledger.values))
    return Turn(lack_of(now, left, time), {piece.name: piece.seconds for piece in left})


def lack_of_profile(name: Name, values: Mapping[Name, Any]) -> Inapplicable | None:
    """Why the profile of a metric was left out: its criteria need the same, and are not tried again."""
    if name[0] != "outcome":
        return None
    portrait = values.get(("portrait", name[1]))  # one that was kept was not left out
    found = None if portrait is None else read_profile(portrait)
    return found if isinstance(found, Inapplicable) and found.kind == "left out" else None


def _expected(every: Sequence[tuple[KernelWork, Sequence[PieceOfWork]]], limits: Limits) -> Iterator[float]:
    """The seconds of all pieces, none of what will be left out."""
    spent = 0.0
    time = Time(limits, lambda: spent, began=0.0)
    for work, left in every:
        seconds = [0.0 if lack_of(work, left, time) else piece.seconds for piece in left]
        spent += sum(seconds)
        yield from seconds


def names(agenda: Agenda) -> Iterator[Name]:
    """The names of all pieces."""
    for name in agenda.metrics:
        yield "portrait", name
        for text in agenda.criteria:
            yield "outcome", name, text
    for kernel in agenda.kernels:
        yield "norms", kernel


def pieces(
    agenda: Agenda, work: KernelWork, cases: Sequence[int], known: Mapping[Name, Any]
) -> Iterator[PieceOfWork]:
    """The work of one kernel that is not known yet; what is shared by several pieces counts for the first.

    `cases` are those that are shown with their precedents.
    """
    trial, shared = agenda.trial, dict(work.rounds)

    def seconds(rounds: Mapping[tuple[str, str], int]) -> float:
        return sum(shared.pop(key, 0.0) + ranking(m, trial) for key, m in rounds.items())

    for name in work.metrics:
        if ("portrait", name) not in known:
            make = maker(agenda, cases, ("portrait", name))
            took = seconds({("trained", "cases"): len(trial.cases)})
            yield PieceOfWork(("portrait", name), make, took + shared.pop(("one", "more"), work.again))
            shared["one", "more"] = 0.0  # it is measured once
    for kernel in dict.fromkeys(map(kernel_name, work.metrics.values())):
        if ("norms", kernel) not in known:
            yield PieceOfWork(("norms", kernel), maker(agenda, cases, ("norms", kernel)), ranking(1, trial))
    for name in work.metrics:
        for text, criterion in agenda.criteria.items():
            if ("outcome", name, text) not in known:
                make = maker(agenda, cases, ("outcome", name, text))
                yield PieceOfWork(("outcome", name, text), make, seconds(rounds_of(criterion, trial)))


def maker(agenda: Agenda, cases: Sequence[int], name: Name) -> Callable[[], Any]:
    """What makes the plain value of the piece called `name`; `cases` are those that are shown."""
    kind, what, *criterion = name
    if kind == "norms":
        return partial(_norms, agenda.trial, agenda.kernels[what])
    metric = agenda.metrics[what]
    if kind == "portrait":
        return partial(_profile, agenda, metric, cases)
    return partial(_outcome, agenda, agenda.criteria[criterion[0]], metric)


def _profile(agenda: Agenda, metric: Metric, cases: Sequence[int]) -> dict[str, Any]:
    """With the measured seconds of explaining one more case beside it."""
    trial, k = agenda.trial, agenda.k

    def made() -> dict[str, Any]:
        found = profile(trial, metric, k, cases)
        relevance, one = trial.relevance(metric), trial.cases.selected([0])
        slot = ONE_MORE.at(metric.features, relevance.metric.preconditioner)
        seconds = trial.workspace.once(slot, lambda: elapsed(lambda: relevance.top(one, k), times=1))
        agenda.kernels_beside([trial], metric)
        return asdict(found) | {"seconds": seconds}

    found = attempted(made)
    return asdict(found) if isinstance(found, Inapplicable) else found


def _norms(trial: Trial, metric: Metric) -> list[float] | dict[str, Any]:
    made = attempted(lambda: norms(trial, metric))
    return asdict(made) if isinstance(made, Inapplicable) else made


def _or_none(spread: dict[str, float] | Inapplicable) -> dict[str, float]:
    """No spread where an instance cannot be shown."""
    return {} if isinstance(spread, Inapplicable) else spread


def _norms_of(value: Any) -> Sequence[float]:
    """None where there is a reason in their place."""
    return value if isinstance(value, list) else []


def _outcome(agenda: Agenda, criterion: Criterion, metric: Metric) -> dict[str, Any]:
    trial = agenda.trial

    def made() -> dict[str, Any]:
        if criterion.inapplicable(trial) is None:
            agenda.kernels_beside(criterion.trials(trial), metric)
        return plain_outcome(outcome(criterion, trial, metric, agenda.rule))

    found = attempted(made)
    return asdict(found) if isinstance(found, Inapplicable) else found


def _agreement(trial: Trial, metrics: Mapping[str, Metric], k: int, time: Time) -> dict[str, Any]:
    """Of metrics whose kernels are here, and of others as far as there is time."""
    there = all(map(trial.has_kernel, metrics.values()))
    if not there and (late := time.late()):
        return asdict(late)
    with nullcontext() if there else time.held():
        made = attempted(lambda: plain_agreement(agreement(trial, metrics, k)))
    return asdict(made) if isinstance(made, Inapplicable) else made


def _judgement(agenda: Agenda, values: Mapping[Name, Any]) -> Judgement:
    outcomes = {
        (name, text): read_outcome(values["outcome", name, text] | {"criterion": text})
        for text in agenda.criteria
        for name in agenda.metrics
    }
    return Judgement(outcomes, agenda.criteria)


def _profiles(agenda: Agenda, values: Mapping[Name, Any]) -> dict[str, Profile | Inapplicable]:
    return {name: read_profile(values["portrait", name]) for name in agenda.metrics}
