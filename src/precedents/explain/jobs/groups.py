"""Groups: the precedents of many cases summed up: which there are most, of which classes, and what they share.

A shortcut shows as something that the precedents of wrong predictions share, and that other training instances
of their classes do not have.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from precedents.data.examples import Examples
from precedents.errors import InputError
from precedents.explain.jobs._portrayal import Portrayal
from precedents.explain.jobs._tabled import DRAWN, SHOWN, Row, Tabled
from precedents.runtime.budget import FLOAT64
from precedents.runtime.wording import a_type
from precedents.seen import NAME, clipped
from precedents.views.comparison import is_missing
from precedents.views.gallery import Strip
from precedents.views.instance import Cell, Shown
from precedents.views.standing_out import StandingOut, standing_out

BY = ("prediction", "truth", "error")
TAKEN = " taken for "  # between the two classes of an error
BESIDE = 5  # precedents that are drawn
MOST = 200  # instances, evenly apart, that precedents are compared with
KEPT = 2**14  # instances that are kept for other groups, at most,
PART = 16  # and of the budget

SeenOf = Callable[[int], Shown]


@dataclass(frozen=True, eq=False)
class Group:
    """Some cases, and what their precedents are."""

    name: str  # whole, however long it is
    cases: Sequence[int]  # their places
    counts: Mapping[int, int]  # of how many cases each training instance is a precedent, most first
    classes: Mapping[int, int]  # how many of the precedents have each label, most first
    shared: StandingOut = field(repr=False)  # what they have that other instances of their classes do not

    @property
    def precedents(self) -> list[int]:
        """The training instances, those first that are precedents of the most cases."""
        return list(self.counts)


@dataclass(frozen=True, eq=False)
class Groups(Tabled):
    """Cases in groups, the largest first, each with its precedents summed up.

    >>> import torch, precedents as pr
    >>> model = torch.nn.Linear(2, 2, bias=False)
    >>> _ = model.weight.data.copy_(2 * torch.eye(2))
    >>> explainer = pr.Explainer(model, (torch.eye(2), torch.tensor([0, 1])), classes=["cat", "dog"])
    >>> print(explainer.groups(torch.tensor([[3.0, 1.0], [2.0, 0.0], [0.0, 1.0]]), k=1))
    3 cases in 2 groups by their prediction, with their first 1 precedents
      cat  2 cases  precedents: 100% cat  most often #0 (2 of 2)
      dog  1 case   precedents: 100% dog  most often #1 (1 of 1)
    """

    metric: str
    by: str
    k: int
    groups: Sequence[Group]
    cases: Examples = field(repr=False)
    portrayal: Portrayal = field(repr=False)
    left_out: Sequence[str] = ()  # what is said of cases that the metric cannot rank for: they are in no group

    columns = ("group", "cases", "rank", "index", "id", "label", "count", "share")

    legend = (
        "A case of each group stands first, and then the training instances that are most often among its "
        "first precedents. What these share and others of their class do not may be a shortcut."
    )

    def __len__(self) -> int:
        return len(self.groups)

    def __getitem__(self, name: str) -> Group:
        """The group of this name."""
        found = {group.name: group for group in self.groups}
        if name not in found:
            raise InputError(f"There is no group {name!r}. There are: {', '.join(found) or 'none'}.")
        return found[name]

    @property
    def heading(self) -> str:
        """How many of what."""
        m, g = sum(len(group.cases) for group in self.groups), len(self.groups)
        own = f" by their {self.by}" if self.by in BY else ""
        return f"{_many(m, 'case')} in {_many(g, 'group')}{own}, with their first {self.k} precedents"

    @property
    def notes(self) -> Sequence[str]:
        """What the precedents of each group share, and how many cases are in none."""
        return self._notes(self.groups)

    @property
    def shown_notes(self) -> Sequence[str]:
        """Of the groups that are listed."""
        return self._notes(self.groups[:SHOWN])

    def _notes(self, groups: Sequence[Group]) -> list[str]:
        shared = [
            f"{_short(group.name)}: {sentence}"
            for group in groups
            for sentence in group.shared.sentences("its precedents", "others of their classes")
        ]
        return [*shared, *self.left_out]

    def rows(self) -> list[Row]:
        """For each group its precedents, most frequent first."""
        return [
            {
                "group": group.name,
                "cases": len(group.cases),
                "rank": rank,
                "id": None,
                **self.portrayal.own(i),
                "count": count,
                "share": count / len(group.cases),
            }
            for group in self.groups
            for rank, (i, count) in enumerate(group.counts.items(), 1)
        ]

    def printed(self) -> list[Sequence[str]]:
        """Group, cases, classes of precedents, the most frequent one."""
        return [
            (
                _short(group.name),
                _many(len(group.cases), "case"),
                f"precedents: {self._classes(group)}",
                f"most often {self._first(group)}",
            )
            for group in self.groups
        ]

    def _classes(self, group: Group) -> str:
        total = sum(group.classes.values())
        first = list(group.classes.items())[:3]
        return ", ".join(
            f"{count / total:.0%} {_short(str(self.portrayal.plain(label)))}" for label, count in first
        )

    def _first(self, group: Group) -> str:
        i, count = next(iter(group.counts.items()))
        return f"{self.portrayal.tag(i)} ({count} of {len(group.cases)})"

    def strips(self) -> list[Strip]:
        """For each group its first case and its most frequent precedents."""
        return [
            Strip(
                Cell(
                    f"{_short(group.name)}\n{_many(len(group.cases), 'case')}",
                    self.portrayal.of(self.cases, group.cases[0]),
                ),
                [
                    *(
                        self.portrayal.cell(i, f"{count} of {len(group.cases)}", None)
                        for i, count in list(group.counts.items())[:BESIDE]
                    ),
                    *_drawn(group.shared),
                ],
            )
            for group in self.groups[:DRAWN]
        ]


def _drawn(shared: StandingOut) -> list[Cell]:
    """Of pictures, where the precedents have more than others of their classes."""
    if shared.picture is None or not shared.picture.size or shared.picture.max() <= 0:
        return []
    return [Cell("what precedents share\nbeside others", (shared.picture / shared.picture.max()).clip(0, 1))]


def _short(name: str) -> str:
    """The name of a group on one line; of a long class the beginning and the end, in which others may differ.

    >>> _short(f"{'Home & Garden > ' * 9}Skillets taken for Toys")
    'Home & Garden > Home & Garden...n > Home & Garden > Skillets taken for Toys'
    """
    parts = [clipped(part, max(NAME, len(part))) for part in name.split(TAKEN)]
    half = NAME // 2
    return TAKEN.join(
        part if len(part) <= NAME else f"{part[: half - 1]}...{part[2 - half :]}" for part in parts
    )


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def checked_by(by: Any) -> Any:
    """One of the words that say how cases are grouped, or what may be a name for each case."""
    if isinstance(by, str) and by not in BY:
        raise InputError(f"by is {clipped(by)!r}. Use one of: {', '.join(BY)}; or pass a name for each case.")
    if isinstance(by, (bytes, Mapping)) or not hasattr(by, "__len__"):
        raise InputError(f"by is {a_type(by)}. Use one of: {', '.join(BY)}; or pass a name for each case.")
    return by


def names_of(by: Any, cases: Examples, truth: Tensor | None, portrayal: Portrayal) -> list[str | None]:
    """For each case the name of its group; none for a case that is in no group. `by` is checked."""
    if isinstance(by, str):
        predicted = _classes(cases.labels, portrayal)
        if by == "prediction":
            return list(predicted)
        assert truth is not None
        right = _classes(truth, portrayal)
        if by == "truth":
            return list(right)
        return [None if a == b else f"{a}{TAKEN}{b}" for a, b in zip(right, predicted, strict=True)]
    given = by.tolist() if hasattr(by, "tolist") else list(by)
    if len(given) != len(cases):
        raise InputError(f"by has {len(given)} names, but there are {len(cases)} cases. Pass one for each.")
    return [None if is_missing(name) else str(name) for name in given]


def _classes(labels: Tensor, portrayal: Portrayal) -> list[str]:
    """The whole names of classes; what several classes are called has the number of each."""
    same = Counter(portrayal.subject.classes or ())
    names = {label: str(portrayal.plain(label)) for label in labels.unique().tolist()}
    names = {label: f"{name} ({label})" if same[name] > 1 else name for label, name in names.items()}
    return [names[label] for label in labels.tolist()]


def grouped(names: Sequence[str | None], top: Mapping[int, Sequence[int]], portrayal: Portrayal) -> list[Group]:
    """The groups of these names, the largest first, then by name; `top` has the precedents of cases."""
    places: dict[str, list[int]] = {}
    for case, name in enumerate(names):
        if name is not None and case in top:
            places.setdefault(name, []).append(case)
    order = sorted(places, key=lambda name: (-len(places[name]), name))
    model, labels = portrayal.subject.classifier, portrayal.subject.train.labels
    kept = model.budget.bytes // (PART * max(FLOAT64, 2 * model.input_bytes))
    seen = lru_cache(max(1, min(kept, KEPT)))(portrayal.seen)  # an instance may be compared with in many groups
    return [_group(name, places[name], top, labels, seen) for name in order]


def _group(
    name: str, cases: Sequence[int], top: Mapping[int, Sequence[int]], labels: Tensor, seen: SeenOf
) -> Group:
    found = Counter(i for case in cases for i in top[case])
    counts = dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))
    classes = Counter[int]()
    for i, count in counts.items():
        classes[int(labels[i])] += count
    ordered = dict(sorted(classes.items(), key=lambda item: (-item[1], item[0])))
    return Group(name, cases, counts, ordered, _shared(list(counts), labels, seen))


def _shared(precedents: Sequence[int], labels: Tensor, seen: SeenOf) -> StandingOut:
    """What the precedents have beside other training instances of the same classes, in the same shares."""
    first, second = ([seen(i) for i in listed] for listed in beside(precedents, labels))
    return standing_out(first, second) if first and second else StandingOut("none")


def beside(precedents: Sequence[int], labels: Tensor) -> tuple[list[int], list[int]]:
    """Some of the precedents, and others with the same shares of classes, evenly apart; none if there are not.

    A class of which all are precedents is left out of both; if most precedents are of such classes, there is
    nothing to compare them with.
    """
    places, free = torch.tensor(precedents, dtype=torch.long), torch.ones(len(labels), dtype=torch.bool)
    free[places] = False
    sides = []
    for label in labels[places].unique():
        offered = (free & (labels == label)).nonzero().flatten()
        if len(offered):
            sides.append((places[labels[places] == label], offered))
    total = sum(len(own) for own, _ in sides)
    if 2 * total <= len(places):
        return [], []
    most = min(MOST, *(len(offered) * total / len(own) for own, offered in sides))
    first = [_evenly(own, round(min(MOST, total) * len(own) / total)) for own, _ in sides]
    second = [_evenly(offered, round(most * len(own) / total)) for own, offered in sides]
    return list(chain(*first)), list(chain(*second))


def _evenly(places: Tensor, count: int) -> list[int]:
    """So many of the places, evenly apart."""
    found: list[int] = places[torch.arange(count) * len(places) // max(1, count)].tolist()
    return found
