"""Near duplicates: instances that are the same or nearly, within the training set and between two sets."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from precedents.data.examples import Examples
from precedents.explain.jobs._likeness import IndexPair, Likeness, compared, likeness_of
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
DESCRIBED = 0.9  # the cosine of descriptions below which no two instances are compared


@dataclass(frozen=True)
class Duplicate:
    """Two instances that are the same, or nearly."""

    index: int  # of a training instance
    other: int  # the place of the other
    where: str  # the set of the other: train or test
    exact: bool  # whether the model is fed the same
    likeness: float
    conflict: bool  # whether their labels differ


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
        "likeness",
        "conflict",
    )

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
        """The rule."""
        return [f"Near: {self.rule}, is at least {self.least:g}."]

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
            "likeness": pair.likeness,
            "conflict": pair.conflict,
        }

    def printed(self) -> list[Sequence[str]]:
        """Both instances, how alike they are, and whether their labels differ."""
        return [
            (
                self.portrayal.tag(pair.index),
                str(row["label"]),
                "the same as" if pair.exact else "nearly",
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
    asked = None if least is None else share(least, "least")
    own = likeness.units(train, "training set")
    least = _least(likeness, train, own) if asked is None else asked
    pairs = list(_found(likeness, train, train, (own, own), least))
    if test is not None:
        pairs += _found(likeness, train, test, (own, likeness.units(test, "test set")), least)
    pairs.sort(key=lambda pair: (not pair.exact, pair.where != "train", -pair.likeness, pair.index, pair.other))
    return NearDuplicates(pairs, likeness.rule, least, test, portrayal)


def _least(likeness: Likeness, train: Examples, own: Units) -> float:
    """How alike near duplicates are: much more than an instance and its nearest are, as a rule."""
    places = list(range(0, len(train), -(-len(train) // SAMPLE)))
    top = nearest(Units(own.rows[places]), own, 2, "pairs", same=False)
    pairs = [
        (i, next(int(j) for j in row if int(j) != i or len(train) == 1))
        for i, row in zip(places, top.indices.tolist(), strict=True)
        if any(int(j) != i for j in row)
    ]
    found = sorted(compared(likeness, (train, train), pairs)) or [LOWEST]
    return round(min(HIGHEST, max(LOWEST, 1 - (1 - median(found)) / NEARER)), 3)


def _found(
    likeness: Likeness, train: Examples, others: Examples, described: tuple[Units, Units], least: float
) -> Iterator[Duplicate]:
    """The pairs of training instances and others, each once."""
    same, where = others is train, "train" if others is train else "test"
    exact = _exact(train, others)
    own, other = train.marks(), others.marks()
    near = [(i, j) for i, j in _candidates(*described) if own[i] != other[j]]  # copies of copies are exact
    values = compared(likeness, (train, others), near)
    found = [(pair, True, 1.0) for pair in exact]
    known = _families(exact) if same else {}
    for pair, value in zip(near, values, strict=True):
        if value >= least and (not same or known.get(pair[0], pair[0]) != known.get(pair[1], pair[1])):
            found.append((pair, False, min(1.0, value)))
    for (i, j), is_exact, value in found:
        conflict = bool(train.labels[i] != others.labels[j])
        yield Duplicate(i, j, where, is_exact, value, conflict)


def _exact(train: Examples, others: Examples) -> dict[IndexPair, None]:
    """Pairs that the model is fed the same: the first of equal instances with each later one."""
    first: dict[bytes, int] = {}
    marks = train.marks()
    for i, mark in enumerate(marks):
        first.setdefault(mark, i)
    if others is train:
        return {(first[mark], i): None for i, mark in enumerate(marks) if first[mark] != i}
    return {(first[mark], j): None for j, mark in enumerate(others.marks()) if mark in first}


def _families(exact: dict[IndexPair, None]) -> dict[int, int]:
    """For each copy the first of its like: pairs of copies are known already."""
    return {j: i for i, j in exact}


def _candidates(own: Units, others: Units) -> list[IndexPair]:
    """Pairs that are described alike, each once, the smaller index first within the training set."""
    same = others is own
    top = nearest(others, own, CANDIDATES, "pairs", same)
    kept = (top.scores >= DESCRIBED).nonzero().tolist()
    found = dict[IndexPair, None]()
    for j, place in kept:
        i = int(top.indices[j, place])
        found[(min(i, j), max(i, j)) if same else (i, j)] = None
    return sorted(found)
