"""Near duplicates: instances that are the same or nearly, within the training set and between two sets."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

import torch

from precedents.data.examples import Examples
from precedents.explain.jobs._described import PART, Described, compared, look_alike
from precedents.explain.jobs._likeness import likeness_of
from precedents.explain.jobs._neighbours import Units, nearest
from precedents.explain.jobs._portrayal import Portrayal, tag
from precedents.explain.jobs._tabled import DRAWN, Row, Tabled
from precedents.runtime.given import share
from precedents.views.gallery import Strip
from precedents.views.instance import Cell

CANDIDATES = 3  # instances most like each in their description, which are compared with it
LOWEST, HIGHEST = 0.95, 0.99  # how alike near duplicates are, at least and at most, if nothing is said
NEARER = 3  # times that they are nearer than an instance and its nearest are, as a rule,
SAMPLE = 500  # which is found from no more of them
DESCRIBED = 0.9  # the cosine of descriptions below which no two instances are that much alike


@dataclass(frozen=True)
class Duplicate:
    """Two instances that are the same, or nearly."""

    index: int  # of a training instance
    other: int  # the place of the other
    where: str  # the set of the other: train or test
    exact: bool  # whether the model is fed the same,
    same: bool  # and a person sees the same, too
    likeness: float
    conflict: bool  # whether their labels differ

    @property
    def relation(self) -> str:
        """What one is to the other, in words."""
        return "the same as" if self.same else "the same to the model as" if self.exact else "nearly"


@dataclass(frozen=True, eq=False)
class NearDuplicates(Tabled):
    """Pairs of instances that are the same or nearly: exact ones first, then the most alike.

    >>> import torch, precedents as pr
    >>> x = torch.tensor([[1.0, 5.0], [2.0, 3.0], [1.0, 5.0], [9.0, 1.0]])
    >>> explainer = pr.Explainer(torch.nn.Linear(2, 2), (x, torch.tensor([0, 1, 1, 0])))
    >>> print(explainer.near_duplicates((x[1:2], torch.tensor([1]))))
    1 exact and 0 near duplicates within the training set; 1 exact and 0 near between it and the test set
      #0  0  the same as  #2       1  exact  labels differ
      #1  1  the same as  test #0  1  exact
    Near: 1 less the root mean square difference of the columns, in standard deviations, is at least 0.95.
    """

    pairs: Sequence[Duplicate]
    rule: str
    least: float
    test: Examples | None = field(repr=False)
    portrayal: Portrayal = field(repr=False)

    columns = (
        "index",
        "id",
        "label",
        "where",
        "other",
        "other_id",
        "other_label",
        "exact",
        "same",
        "likeness",
        "conflict",
    )

    @property
    def legend(self) -> str:
        """What the pairs that there are mean."""
        told = [
            (
                any(pair.where == "test" for pair in self.pairs),
                "Cases that are in the training set, too, make the accuracy look better than it is.",
            ),
            (
                any(pair.conflict and pair.exact for pair in self.pairs),
                "✗: the labels differ. One of the two is wrong, or the label cannot be told from the input.",
            ),
            (
                any(pair.conflict and not pair.exact for pair in self.pairs),
                "Of nearly the same inputs, two labels (✗) may both be right.",
            ),
        ]
        return " ".join(sentence for holds, sentence in told if holds)

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def heading(self) -> str:
        """How many of which kind."""
        within = f"{self._count('train', True)} exact and {self._count('train', False)} near duplicates"
        between = f"; {self._count('test', True)} exact and {self._count('test', False)} near"
        rest = "" if self.test is None else f"{between} between it and the test set"
        return f"{within} within the training set{rest}"

    def _count(self, where: str, exact: bool) -> int:
        return sum(pair.where == where and pair.exact == exact for pair in self.pairs)

    @property
    def notes(self) -> Sequence[str]:
        """The rule, and what is exact to the model alone."""
        unlike = sum(pair.exact and not pair.same for pair in self.pairs)
        told = [f"The model is fed the same, and a person sees something else: {unlike} of the exact ones."]
        return [f"Near: {self.rule}, is at least {self.least:g}.", *(told if unlike else [])]

    def _set(self, where: str) -> Examples:
        if where == "train" or self.test is None:
            return self.portrayal.subject.train
        return self.test

    def rows(self) -> list[Row]:
        """The pairs."""
        return [self._row(pair) for pair in self.pairs]

    def _row(self, pair: Duplicate) -> Row:
        others = self._set(pair.where)
        return {
            "id": None,
            **self.portrayal.own(pair.index),
            "where": pair.where,
            "other": pair.other,
            "other_id": None if others.ids is None else others.ids[pair.other],
            "other_label": self.portrayal.plain(int(others.labels[pair.other])),
            "exact": pair.exact,
            "same": pair.same,
            "likeness": pair.likeness,
            "conflict": pair.conflict,
        }

    def printed(self) -> list[Sequence[str]]:
        """Both instances, how alike they are, and whether their labels differ."""
        return [
            (
                self.portrayal.tag(pair.index),
                str(row["label"]),
                pair.relation,
                ("test " if pair.where == "test" else "") + tag(self._set(pair.where), pair.other),
                str(row["other_label"]),
                "exact" if pair.exact else f"{pair.likeness:.3f}",
                "labels differ" if pair.conflict else "",
            )
            for pair, row in zip(self.pairs, self.rows(), strict=True)
        ]

    def strips(self) -> list[Strip]:
        """The two instances of each pair."""
        return [
            Strip(
                self.portrayal.cell(pair.index),
                [
                    Cell(
                        f"{'test ' if pair.where == 'test' else ''}{tag(others, pair.other)} "
                        f"{self.portrayal.name(int(others.labels[pair.other]))}\n"
                        f"{'exact' if pair.exact else f'{pair.likeness:.3f}'}",
                        self.portrayal.of(others, pair.other),
                        not pair.conflict,
                    )
                ],
            )
            for pair in self.pairs[:DRAWN]
            for others in [self._set(pair.where)]
        ]


def near_duplicates(portrayal: Portrayal, test: Examples | None, least: float | None) -> NearDuplicates:
    """Within a subject's training set, and between it and a test set if one is given."""
    train, likeness = portrayal.subject.train, likeness_of(portrayal)
    train.unchanged()
    if test is not None:
        test.unchanged()
    room = portrayal.subject.classifier.budget.bytes // PART
    asked = None if least is None else share(least, "least")
    own = Described.of(train, likeness, portrayal, "training set")
    least = _least(own, room) if asked is None else asked
    pairs = list(_found(own, own, least, room))
    if test is not None:
        pairs += _found(own, Described.of(test, likeness, portrayal, "test set"), least, room)
    pairs.sort(key=lambda pair: (not pair.exact, pair.where != "train", -pair.likeness, pair.index, pair.other))
    return NearDuplicates(pairs, likeness.rule, least, test, portrayal)


def _least(own: Described, room: int) -> float:
    """How alike near duplicates are: much more than an instance and its nearest are, as a rule."""
    n = len(own.units)
    places = torch.arange(0, n, -(-n // SAMPLE))
    top = nearest(Units(own.units.rows[places]), own.units, 2, "pairs", same=False, room=room).indices
    if n == 1:
        return LOWEST
    other = torch.where(top[:, 0] == places, top[:, 1], top[:, 0])
    found = compared(own, own, torch.stack([places, other], dim=1))
    return round(min(HIGHEST, max(LOWEST, 1 - (1 - median(found)) / NEARER)), 3)


def _found(own: Described, others: Described, least: float, room: int) -> Iterator[Duplicate]:
    """The pairs of training instances and others, each once."""
    same, where = others is own, "train" if others is own else "test"
    exact = _exact(own, others)
    alike = [look_alike(own, others, i, j) for i, j in exact]
    unlike = [pair for pair, is_same in zip(exact, alike, strict=True) if not is_same]
    near = [(i, j) for i, j in _candidates(own, others, least, room) if own.marks[i] != others.marks[j]]
    values = iter(compared(own, others, torch.tensor([*unlike, *near], dtype=torch.long).reshape(-1, 2)))
    found = [
        (*pair, True, is_same, 1.0 if is_same else next(values))
        for pair, is_same in zip(exact, alike, strict=True)
    ]
    known = {j: i for i, j in exact} if same else {}  # the first of its like: pairs of copies are known already
    for (i, j), value in zip(near, values, strict=True):
        if value >= least and (not same or known.get(i, i) != known.get(j, j)):
            found.append((i, j, False, False, value))
    for i, j, is_exact, is_same, value in found:
        conflict = bool(own.examples.labels[i] != others.examples.labels[j])
        yield Duplicate(i, j, where, is_exact, is_same, min(1.0, value), conflict)


def _exact(own: Described, others: Described) -> list[tuple[int, int]]:
    """Pairs that the model is fed the same: the first of equal instances with each later one."""
    first: dict[bytes, int] = {}
    for i, mark in enumerate(own.marks):
        first.setdefault(mark, i)
    places = ((first.get(mark), j) for j, mark in enumerate(others.marks))
    return [(i, j) for i, j in places if i is not None and not (others is own and i == j)]


def _candidates(own: Described, others: Described, least: float, room: int) -> list[tuple[int, int]]:
    """Pairs that are described alike, each once, the smaller index first within the training set."""
    same = others is own
    top = nearest(others.units, own.units, CANDIDATES, "pairs", same, room)
    j, place = (top.scores >= (DESCRIBED if least >= LOWEST else -1.0)).nonzero(as_tuple=True)
    i = top.indices[j, place]
    pairs = torch.stack([torch.minimum(i, j), torch.maximum(i, j)] if same else [i, j], dim=1)
    return [(i, j) for i, j in pairs.unique(dim=0).tolist()]
