"""The instances that an audit shows: example cases, copies of training instances, and pictures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from precedents.audit.profile import Profile, example_places
from precedents.criteria._judgement import Inapplicable, attempted
from precedents.criteria._trial import Trial
from precedents.data.ids import Id
from precedents.explain.naming import Sharing
from precedents.explain.shares import Shares
from precedents.views.instance import Shown, shown

EACH = 2  # right and wrong predictions that are shown
HUBS = 3  # that are shown of each metric
COPIES = 40  # duplicates that are shown


@dataclass(frozen=True)
class Case:
    """A case that is shown with its precedents."""

    index: int
    prediction: int
    truth: int


def example_cases(trial: Trial) -> list[Case]:
    """The first cases that are predicted right, and the first that are not."""
    places = example_places(trial, EACH)
    return [Case(i, int(trial.cases.labels[i]), int(trial.truth[i])) for i in places]


def duplicates(trial: Trial) -> list[tuple[int, int]]:
    """Cases and training instances whose inputs are equal, byte for byte."""
    places: dict[bytes, list[int]] = {}
    for index, mark in enumerate(trial.workspace.train.marks()):
        places.setdefault(mark, []).append(index)
    return [(case, index) for case, mark in enumerate(trial.cases.marks()) for index in places.get(mark, [])]


def ids_of(
    trial: Trial, cases: Sequence[Case], profiles: Mapping[str, Profile | Inapplicable]
) -> dict[tuple[str, int], Id]:
    """What their owner calls the cases and training instances that an audit names, by "case" or "train"."""
    known = {"case": trial.cases.ids, "train": trial.workspace.train.ids}
    copies = [] if known["case"] is known["train"] is None else duplicates(trial)
    shown = {"case": {each.index for each in cases} | {case for case, _ in copies}}
    found = [each for each in profiles.values() if isinstance(each, Profile)]
    firsts = {first.index for profile in found for first in profile.firsts}
    shown["train"] = firsts | set(_precedents(found)) | {index for _, index in copies}
    return {(kind, i): ids[i] for kind, ids in known.items() if ids is not None for i in sorted(shown[kind])}


def pictures(
    trial: Trial,
    cases: Sequence[Case],
    profiles: Mapping[str, Profile | Inapplicable],
    copies: Sequence[tuple[int, int]],
) -> dict[tuple[str, int], Shown]:
    """What a person sees of the cases, their precedents and `copies` on the report page, by "case" or "train".

    `copies` are the pairs that `duplicates` found.
    """
    render = trial.workspace.subject.render
    indices = [case.index for case in cases]
    offered = _precedents([each for each in profiles.values() if isinstance(each, Profile)])
    instances = sorted({*offered, *(index for _, index in copies[:COPIES])})
    made = {}
    for kind, examples, places in (("case", trial.cases, indices), ("train", trial.workspace.train, instances)):
        for place, instance in zip(places, examples.seen(places), strict=True):
            picture = attempted(partial(shown, instance, render))
            made[kind, place] = f"({picture.reason})" if isinstance(picture, Inapplicable) else picture
    return made


def shares(
    trial: Trial,
    cases: Sequence[Case],
    sharing: Sharing,
    profile: Profile,
    seen: Mapping[tuple[str, int], Shown],
) -> dict[tuple[int, int], Shares]:
    """The scores of the cases and their precedents by one metric in parts, by the places of both.

    None of what has no parts, and of what fails: an audit does not. `seen` is what `pictures` gives.
    """
    places = sorted({each.index for offered in profile.examples for each in offered})
    if not sharing.applies or not places:
        return {}
    asked, train = trial.cases.selected([case.index for case in cases]), trial.workspace.train.selected(places)
    made = {}
    for i, (case, offered) in enumerate(zip(cases, profile.examples, strict=True)):
        for place in (each.index for each in offered):
            one, other = asked.take([i]), train.take([places.index(place)])._replace(indices=[place])
            pair = seen["case", case.index], seen["train", place]
            found = attempted(partial(sharing.between, one, other, pair, ("case", "precedent"), None))
            if isinstance(found, Shares) and found.visible:
                made[case.index, place] = found
    return made


def _precedents(profiles: Sequence[Profile]) -> list[int]:
    """The training instances whose pictures the page shows."""
    offered = {each.index for profile in profiles for case in profile.examples for each in case}
    return sorted(offered | {first.index for profile in profiles for first in profile.firsts[:HUBS]})
