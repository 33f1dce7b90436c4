"""An audit as the values that the report page shows."""

from collections.abc import Iterable, Iterator

from precedents.audit.audit import Audit, Case
from precedents.audit.profile import Profile
from precedents.criteria._judgement import Inapplicable
from precedents.criteria._result import Result
from precedents.views.instance import Cell, Shown, scores
from precedents.views.report import Example, Hub, Report, ReportRow

HUBS = 3  # that are shown of each metric
MEANING = {  # of criteria, by name
    "model_randomization": (
        "A metric that looks at the model ranks the training set otherwise once the model's parameters are "
        "drawn at random. The rank correlation of the two should be near 0; 1 means that the model is not "
        "looked at."
    ),
    "identical_class": "The most relevant training instances have the class that the model predicted.",
    "identical_subclass": (
        "Classes are merged for training; the most relevant instances should still come from the case's own "
        "class."
    ),
    "identical_instance": "A training instance, asked about as a case, finds itself.",
}


def report(audit: Audit, command: str) -> Report:
    """Values by metric where there are some."""
    outcomes = audit.judgement.outcomes
    profiles = {name: each for name, each in audit.profiles.items() if isinstance(each, Profile)}
    return Report(
        title=f"Audit of {audit.scope.facts['model']}",
        verdict=[*audit.recommendation.sentences, *audit.cautions],
        rows=[_row(metric, criterion, outcome) for (metric, criterion), outcome in outcomes.items()],
        values={key: each.values.tolist() for key, each in outcomes.items() if isinstance(each, Result)},
        norms={
            name: (audit.norms[each.kernel], each.selected) for name, each in profiles.items() if each.selected
        },
        hubs=[hub for name, each in profiles.items() for hub in _hubs(audit, name, each)],
        agreement=audit.agreement,
        examples=[_example(audit, profiles, i, case) for i, case in enumerate(audit.examples)],
        label_agreement={name: each.label_agreement for name, each in profiles.items()},
        duplicates=audit.duplicates,
        costs=audit.costs,
        facts=audit.scope.facts,
        command=command,
        spread=audit.spread,
        null=_null([each for each in outcomes.values() if isinstance(each, Result)]),
        better=_better(criterion for _, criterion in outcomes),
        meaning=_meaning(criterion for _, criterion in outcomes),
    )


def _better(criteria: Iterable[str]) -> dict[str, str]:
    """The criteria, by their texts, for which "zero" is best; for the others higher is better."""
    return {each: "zero" for each in criteria if each.partition("(")[0] == "model_randomization"}


def _meaning(criteria: Iterable[str]) -> dict[str, str]:
    """By the texts of criteria, what each asks of a metric."""
    names = {each: each.partition("(")[0] for each in criteria}
    return {each: MEANING[name] for each, name in names.items() if name in MEANING}


def _null(results: list[Result]) -> float | None:
    """Half the interval around zero within which correlations of independent rankings fall, the wider one."""
    halves = [value for each in results for name, value in each.notes.items() if name.startswith("null")]
    return max(halves, default=None)


def shown_instances(profiles: list[Profile]) -> list[int]:
    """The training instances whose pictures the page shows."""
    offered = {each.index for profile in profiles for case in profile.examples for each in case}
    return sorted(offered | {first.index for profile in profiles for first in profile.firsts[:HUBS]})


def _row(metric: str, criterion: str, outcome: Result | Inapplicable) -> ReportRow:
    if isinstance(outcome, Inapplicable):
        return ReportRow(metric, criterion, None, None, None, None, "not applicable", outcome.reason)
    numbers = outcome.mean, outcome.low, outcome.high, outcome.chance
    return ReportRow(metric, criterion, *numbers, outcome.verdict, outcome.noted)


def _hubs(audit: Audit, name: str, profile: Profile) -> Iterator[Hub]:
    for first in profile.firsts[:HUBS]:
        if first.count > 1:
            cell = Cell(
                f"#{first.index} {audit.scope.name(first.label)}", _picture(audit, "train", first.index)
            )
            yield Hub(name, first.index, first.count / audit.scope.cases, cell)


def _example(audit: Audit, profiles: dict[str, Profile], place: int, case: Case) -> Example:
    said, truth = audit.scope.name(case.prediction), audit.scope.name(case.truth)
    title = f"case {case.index}\npredicted {said}" + ("" if said == truth else f", in truth {truth}")
    strips = {}
    for name, profile in profiles.items():
        found = profile.examples[place]
        strips[name] = [
            Cell(
                f"#{each.index} {audit.scope.name(each.label)}\n{score}",
                _picture(audit, "train", each.index),
                each.label == case.prediction,
            )
            for each, score in zip(found, scores([each.score for each in found]), strict=True)
        ]
    cell = Cell(title, _picture(audit, "case", case.index))
    return Example(cell, case.prediction == case.truth, strips)


def _picture(audit: Audit, kind: str, index: int) -> Shown:
    return audit.pictures.get((kind, index), "(not kept with the audit)")
