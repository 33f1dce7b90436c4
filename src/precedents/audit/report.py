"""An audit as the values that the report page shows."""

from collections.abc import Iterator, Sequence
from math import isfinite

from precedents.audit.audit import Audit
from precedents.audit.instances import COPIES, HUBS, Case
from precedents.audit.profile import Offered, Profile
from precedents.audit.wording import meaning, recommended
from precedents.criteria._judgement import Inapplicable, described
from precedents.criteria._result import Result
from precedents.seen import clipped
from precedents.views.instance import Cell, Shown, scores
from precedents.views.report import Example, Hub, Report, ReportRow

FACT = 300  # letters of a fact


def report(audit: Audit, command: str, name: str = "") -> Report:
    """What the page shows of an audit; `command` is what reproduces it, `name` what the model is called."""
    outcomes = audit.judgement.outcomes
    profiles = {name: each for name, each in audit.profiles.items() if isinstance(each, Profile)}
    return Report(
        title=f"Audit of {clipped(name or audit.scope.facts['model'])}",
        verdict=[
            *audit.recommendation.sentences,
            *recommended(audit.recommendation.metric, audit.costs),
            *audit.cautions,
        ],
        rows=[_row(metric, criterion, outcome) for (metric, criterion), outcome in outcomes.items()],
        values={key: each.values.tolist() for key, each in outcomes.items() if isinstance(each, Result)},
        norms={
            name: (audit.norms[each.kernel], each.selected) for name, each in profiles.items() if each.selected
        },
        hubs=[hub for name, each in profiles.items() for hub in _hubs(audit, name, each)],
        agreement=audit.agreement,
        examples=[_example(audit, profiles, i, case) for i, case in enumerate(audit.examples)],
        label_agreement={name: each.label_agreement for name, each in profiles.items()},
        duplicates=[(audit.called("case", case), audit.called("train", i)) for case, i in audit.duplicates],
        costs=audit.costs,
        facts={name: clipped(text, FACT) for name, text in audit.scope.facts.items()},
        command=command,
        spread=audit.spread,
        null=_null([each for each in outcomes.values() if isinstance(each, Result)]),
        better={criterion: described(criterion).better for criterion in audit.criteria},
        compared={metric: said for metric in audit.metrics if (said := meaning(metric))},
        why={key: said for key in outcomes if (said := audit.judgement.explained(*key))},
        copies=_copies(audit),
        meaning={criterion: described(criterion).sentence for criterion in audit.criteria},
    )


def _copies(audit: Audit) -> dict[tuple[str, str], Shown]:
    """What is seen of the first duplicates, by what the case and the training instance are called."""
    return {
        (audit.called("case", case), audit.called("train", i)): audit.pictures["train", i]
        for case, i in audit.duplicates[:COPIES]
        if ("train", i) in audit.pictures
    }


def _null(results: list[Result]) -> float | None:
    """Half the interval around zero within which correlations of independent rankings fall.

    The paper's over the cases is left out: fewer cases would make it wider.
    """
    notes = [(name, value) for each in results for name, value in each.notes.items()]
    halves = [value for name, value in notes if name.startswith("null") and name != "null over cases"]
    return max(halves, default=None)


def _row(metric: str, criterion: str, outcome: Result | Inapplicable) -> ReportRow:
    if isinstance(outcome, Inapplicable):
        return ReportRow(metric, criterion, None, None, None, None, outcome.kind, outcome.reason)
    value, low, high, chance = (
        number if isfinite(number) else None
        for number in (outcome.mean, outcome.low, outcome.high, outcome.chance)
    )
    return ReportRow(metric, criterion, value, low, high, chance, outcome.verdict, outcome.noted)


def _hubs(audit: Audit, name: str, profile: Profile) -> Iterator[Hub]:
    for first in profile.firsts[:HUBS]:
        if first.count > 1:
            title = f"{audit.called('train', first.index)} {audit.scope.name(first.label)}"
            cell = Cell(title, _picture(audit, "train", first.index))
            yield Hub(name, first.index, first.count / audit.scope.cases, cell)


def _example(audit: Audit, profiles: dict[str, Profile], place: int, case: Case) -> Example:
    said, truth = audit.scope.name(case.prediction), audit.scope.name(case.truth)
    wrong = "" if said == truth else f", in truth {truth}"
    title = f"case {audit.called('case', case.index)}\npredicted {said}{wrong}"
    strips = {
        name: [_cell(audit, case, each, score) for each, score in _scored(profile.examples[place])]
        for name, profile in profiles.items()
    }
    cell = Cell(title, _picture(audit, "case", case.index))
    best = audit.recommendation.metric or ""
    divided = [] if best not in strips else _divided(audit, case, profiles[best].examples[place], strips[best])
    return Example(cell, case.prediction == case.truth, strips, {best: divided} if divided else {})


def _divided(audit: Audit, case: Case, offered: Sequence[Offered], cells: Sequence[Cell]) -> list[Cell]:
    """The precedents of a case with the shares of their scores, as far as these were made."""
    found = [
        (audit.shares.get((case.index, each.index)), cell) for each, cell in zip(offered, cells, strict=True)
    ]
    return [shares.cell(cell.title, cell.agrees) for shares, cell in found if shares is not None]


def _scored(offered: Sequence[Offered]) -> list[tuple[Offered, str]]:
    """With their scores in words."""
    return list(zip(offered, scores([each.score for each in offered]), strict=True))


def _cell(audit: Audit, case: Case, each: Offered, score: str) -> Cell:
    title = f"{audit.called('train', each.index)} {audit.scope.name(each.label)}\n{score}"
    return Cell(title, _picture(audit, "train", each.index), each.label == case.prediction)


def _picture(audit: Audit, kind: str, index: int) -> Shown:
    return audit.pictures.get((kind, index), "(not kept with the audit)")
