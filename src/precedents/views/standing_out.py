"""What some instances share that others do not: the pixels, columns or words in which two lists of them differ.

Numbers (of pixels and columns) are compared by the difference of their means, in standard deviations within the
lists; words, and values that are no numbers or are missing, by the difference of the shares of instances that
have them. What random lists of the same lengths might show as well does not stand out: the shorter the lists
are and the more pixels, columns, values or words are tried, the larger a difference must be.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from math import exp, lgamma
from typing import Any

import numpy as np

from precedents.views.comparison import WORD, is_missing, measure
from precedents.views.instance import Shown, is_date, on_day, written

FEWEST = 3  # instances of a list, of fewer of which nothing can be told
CHANCE = 0.05  # how often something may stand out of random lists, at most
WINDOW = 3  # pixels of a side that are taken together
MOST = 3  # columns or words that are named
DRAWS = 40  # random lists, for each column, value or word that is tried
AT_ONCE = 2**20  # numbers of random lists, at most, that are computed together
GONE = "missing"  # what a value is called that is not there
ENOUGH = 0.5  # standard deviations, or the difference of two shares, from which on something stands out
SMALLEST = 1e-9  # a deviation that is none
FLOOR = 0.1  # of the deviation of all values, which that within lists of pictures is at least taken for
LARGEST = 99.0  # deviations, beyond which all are the same
NUMBER = ".3g"

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Trait:
    """A column or a word in which two lists of instances differ."""

    name: str
    one: float  # the mean of the first list, or the share of its texts that have the word
    other: float
    apart: float  # the difference, in standard deviations; of words, of the shares
    case: float | None = None  # the case's own value
    date: bool = False  # whether the means are of dates, as days since 1970

    @property
    def nearer(self) -> str | None:
        """Which list the case is nearer to here: one, other; none if there is no case, or it is between."""
        if self.case is None or abs(self.case - self.one) == abs(self.case - self.other):
            return None
        return "one" if abs(self.case - self.one) < abs(self.case - self.other) else "other"


@dataclass(frozen=True, eq=False)
class StandingOut:
    """In what two lists of instances differ, most first."""

    kind: str  # picture, row or text
    traits: Sequence[Trait] = ()  # of rows and texts
    picture: Array | None = (
        None  # [h, w], of pictures: how much larger the first list's values are, in deviations; 0 by chance
    )

    def sentences(self, one: str, other: str) -> list[str]:
        """What separates the lists of these names."""
        if self.picture is not None:
            return [self._region(one, other)] if self.picture.size else []
        said = [f"{self._told(trait)}: {_pair(trait, one, other, self.kind)}" for trait in self.traits[:MOST]]
        cases = [
            f"The case is nearer to {name} in {_listed(found)}."
            for side, name in (("one", one), ("other", other))
            if (found := [self._told(trait) for trait in self.traits[:MOST] if trait.nearer == side])
        ]
        return [f"What separates them: {'; '.join(said)}."] * bool(said) + cases

    def _told(self, trait: Trait) -> str:
        return f'"{trait.name}"' if self.kind == "text" else trait.name

    def _region(self, one: str, other: str) -> str:
        """Where pictures differ most."""
        assert self.picture is not None
        row, column = np.unravel_index(int(np.abs(self.picture).argmax()), self.picture.shape)
        apart = float(self.picture[row, column])
        if not apart:
            return "No region of the pictures separates them."
        high, low = (one, other) if apart > 0 else (other, one)
        return (
            f"They differ most around row {row}, column {column}, where {high} have larger values than {low} "
            f"({abs(apart):.1f} standard deviations)."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "kind": self.kind,
            "traits": [
                {"name": t.name, "one": t.one, "other": t.other, "apart": t.apart, "case": t.case}
                for t in self.traits
            ],
            "picture": None if self.picture is None else np.round(self.picture, 4).tolist(),
        }


def standing_out(one: Sequence[Shown], other: Sequence[Shown], case: Shown | None = None) -> StandingOut:
    """In what two lists of instances differ, and where a case is between them.

    >>> young, old = [{"age": 30.0 + i} for i in range(5)], [{"age": 60.0 + i} for i in range(5)]
    >>> found = standing_out(young, old, {"age": 40.0})
    >>> [(trait.name, trait.one, trait.other, trait.nearer) for trait in found.traits]
    [('age', 32.0, 62.0, 'one')]
    >>> standing_out(young[:2], old[:2]).traits  # of so few, chance says as much
    []
    """
    every = [*one, *other]
    if every and all(isinstance(each, str) for each in every):
        return StandingOut("text", _words(one, other, case))
    if every and all(isinstance(each, Mapping) for each in every):
        return StandingOut("row", _columns(one, other, case))
    pictures = [[each for each in side if isinstance(each, np.ndarray)] for side in (one, other)]
    shapes = {each.shape[:2] for side in pictures for each in side}
    if len(shapes) != 1 or not all(pictures):
        return StandingOut("picture", picture=np.zeros((0, 0)))
    return StandingOut("picture", picture=_difference(*pictures))


def _by_chance(spread: Any, sizes: tuple[int, int], tried: float) -> Any:
    """How far apart the means of random lists of these sizes may be, by the deviation of both as one list.

    Of n values, the share of the variance that lies between two random lists is above s with a probability of
    at most (1 - s)^((n - 2) / 2); of all that are tried, no more than `CHANCE` may be.
    """
    if min(sizes) < FEWEST:
        return spread + np.inf
    n = sum(sizes)
    share = 1 - (CHANCE / max(1.0, tried)) ** (2 / (n - 2))
    return spread * np.sqrt(share * n * (1 / sizes[0] + 1 / sizes[1]))


def _difference(one: Sequence[Array], other: Sequence[Array]) -> Array:
    """Of the means of two lists of pictures, in standard deviations of both; zero where chance does as much."""
    left, right = (np.stack([_smooth(_grey(each)) for each in side]) for side in (one, other))
    apart = left.mean(axis=0) - right.mean(axis=0)
    limit = _by_chance(np.concatenate([left, right]).std(axis=0), (len(left), len(right)), apart.size / WINDOW)
    size = apart / _deviation(one, other)
    return np.where((np.abs(apart) > limit) & (np.abs(size) >= ENOUGH), size, 0.0)


def _deviation(one: Sequence[Array], other: Sequence[Array]) -> float:
    """Of the pixels within two lists of pictures."""
    left, right = (np.stack([_grey(each) for each in side]) for side in (one, other))
    spread = np.sqrt((left.var(axis=0) + right.var(axis=0)) / 2)
    whole = float(np.concatenate([left, right]).std())  # of few pictures, which hardly vary among themselves
    return max(float(spread.mean()), whole * FLOOR, SMALLEST)


def _smooth(picture: Array) -> Array:
    """Each pixel with its neighbours, so that a region counts more than a pixel."""
    wide = np.pad(picture, WINDOW // 2, mode="edge")
    h, w = picture.shape
    found: Array = np.mean(
        [wide[i : i + h, j : j + w] for i in range(WINDOW) for j in range(WINDOW)], axis=0, dtype=float
    )
    return found


def _grey(picture: Array) -> Array:
    found: Array = picture.mean(axis=2) if picture.ndim == 3 else picture
    return found


def _columns(one: Sequence[Any], other: Sequence[Any], case: Any) -> list[Trait]:
    """Columns of numbers and dates by the means of those that are there; others, and gaps, by their shares."""
    names = [name for name in one[0] if all(name in row for row in (*one, *other))]
    sizes, every = (len(one), len(other)), {name: [row[name] for row in (*one, *other)] for name in names}
    numbers = {name: column for name, column in every.items() if all(map(_is_measured, column))}
    values = {name: _held(_called(column, name in numbers), sizes) for name, column in every.items()}
    tried = _tried([held for each in values.values() for held in each.values()], sizes, len(numbers))
    found = _means(numbers, sizes, tried, case)
    for name, held in values.items():
        traits = [
            Trait(f"{name} = {value}", left, right, 2 * (left - right))
            for value, left, right in _unequal(held, sizes, tried)
        ]
        found += sorted(traits, key=lambda trait: -abs(trait.apart))[:1]
    return _largest(found)


def _is_measured(value: Any) -> bool:
    """Whether it may stand in a column of numbers or dates."""
    return measure(value) is not None or isinstance(value, float) or is_missing(value)


def _called(column: Sequence[Any], numbers: bool) -> list[set[str]]:
    """What each instance has there, as a text; of numbers only whether they are missing."""
    return [{GONE} if is_missing(value) else set() if numbers else {written(value)} for value in column]


def _means(columns: Mapping[Any, Sequence[Any]], sizes: tuple[int, int], tried: int, case: Any) -> list[Trait]:
    """The columns whose means are farther apart than those of random lists."""
    found, measured = [], [[measure(value) for value in column] for column in columns.values()]
    table = np.array(measured, dtype=float).reshape(len(columns), sum(sizes)).T  # [n, columns], nan for gaps
    likely = _as_random(table, sizes, tried)
    for i, (name, column) in enumerate(columns.items()):
        a, b = (side[~np.isnan(side)] for side in (table[: sizes[0], i], table[sizes[0] :, i]))
        if min(len(a), len(b)) < FEWEST or likely[i]:
            continue
        apart, spread = float(a.mean() - b.mean()), float(np.sqrt((a.var() + b.var()) / 2))
        size = apart / spread if spread > SMALLEST else np.sign(apart) * LARGEST
        own = measure(case[name]) if isinstance(case, Mapping) and name in case else None
        dates = all(is_date(value) for value in column if not is_missing(value))
        found.append(Trait(str(name), float(a.mean()), float(b.mean()), float(size), own, dates))
    return found


def _as_random(table: Array, sizes: tuple[int, int], tried: int) -> Array:
    """Whether the means of columns [n, columns] are no farther apart than chance, among so many that are tried.

    They must be farther apart than those of normal numbers may be. And whatever the numbers are, of r random
    lists no more than r CHANCE / tried, with the one that there is, may be as far apart: then one of all that
    are tried passes with a probability of at most `CHANCE`. Few instances make few lists, and the same one is
    drawn again and again: where most numbers are different it does not count.
    """
    n, count = sum(sizes), DRAWS * tried
    first, draw = np.arange(n) < sizes[0], np.random.default_rng(0)
    apart, spreads = _apart(first[None], table)[0], np.array([_spread(column) for column in table.T])
    own = np.array([len(np.unique(column)) > n / 2 for column in table.T], dtype=bool)
    reached = np.zeros(table.shape[1])
    for start in range(0, count, at_once := max(1, AT_ONCE // n)):
        lists = draw.permuted(np.tile(first, (min(at_once, count - start), 1)), axis=1)
        same = (lists == first).all(axis=1) | (lists != first).all(axis=1)
        far = ~(_apart(lists, table) < apart * (1 - SMALLEST))
        reached += (far & ~(same[:, None] & own)).sum(axis=0)
    likely: Array = tried * (reached + 1) > CHANCE * (count + 1)
    return likely | (apart <= np.maximum(_by_chance(spreads, sizes, tried), SMALLEST))


def _spread(column: Array) -> float:
    """The standard deviation of the numbers that are there."""
    there = column[~np.isnan(column)]
    return float(there.std()) if len(there) else 0.0


def _apart(lists: Array, table: Array) -> Array:
    """How far apart the means of lists [r, n] and of the rest are, by columns [n, c]; nan of none."""
    there, inside = ~np.isnan(table), lists.astype(float)
    values, counts = np.where(there, table, 0.0), there.astype(float)
    sums, own = inside @ values, inside @ counts
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Array = np.abs(sums / own - (values.sum(axis=0) - sums) / (counts.sum(axis=0) - own))
    return found


def _words(one: Sequence[Any], other: Sequence[Any], case: Any) -> list[Trait]:
    """The words that one list has much more often than the other; few are frequent enough for that."""
    sizes = len(one), len(other)
    held = _held([_set(text) for text in (*one, *other)], sizes)
    tried = _tried(held.values(), sizes)
    own = _set(case) if isinstance(case, str) else None
    return _largest(
        [
            Trait(word, left, right, left - right, None if own is None else float(word in own))
            for word, left, right in _unequal(held, sizes, tried)
        ]
    )


def _held(instances: Sequence[set[str]], sizes: tuple[int, int]) -> dict[str, tuple[int, int]]:
    """How many of each list have it, for all that any of them has."""
    one, other = (Counter(chain(*side)) for side in (instances[: sizes[0]], instances[sizes[0] :]))
    return {each: (one[each], other[each]) for each in sorted(one | other)}


def _tried(held: Iterable[tuple[int, int]], sizes: tuple[int, int], numbers: int = 0) -> int:
    """How many tries count, with those of numbers: not what is too rare to stand out (Tarone, 1990)."""
    least = [(_least(total, sizes), count) for total, count in Counter(map(sum, held)).items()]
    tried = 1
    while numbers + sum(count for chance, count in least if tried * chance <= CHANCE) > tried:
        tried += 1
    return tried


def _least(total: int, sizes: tuple[int, int]) -> float:
    """The smallest `_chance` of what so many of both lists have."""
    few, most = max(0, total - sizes[1]), min(total, sizes[0])
    return min(_chance((left, total - left), sizes) for left in (few, most))


def _unequal(
    held: Mapping[str, tuple[int, int]], sizes: tuple[int, int], tried: int
) -> list[tuple[str, float, float]]:
    """What the lists have in shares that are farther apart than those of random lists, with both shares."""
    few = min(sizes) < FEWEST
    return [
        (each, left / sizes[0], right / sizes[1])
        for each, (left, right) in held.items()
        if not few and tried * _chance((left, right), sizes) <= CHANCE
    ]


def _chance(held: tuple[int, int], sizes: tuple[int, int]) -> float:
    """How likely random lists of these sizes share out as unequally what so many of both have, exactly."""
    total, n = sum(held), sum(sizes)
    unequal = abs(held[0] * sizes[1] - held[1] * sizes[0])
    ways = range(max(0, total - sizes[1]), min(total, sizes[0]) + 1)
    far = [i for i in ways if abs(i * sizes[1] - (total - i) * sizes[0]) >= unequal]
    logs = (_choices(total, i) + _choices(n - total, sizes[0] - i) - _choices(n, sizes[0]) for i in far)
    return sum(map(exp, logs))


def _choices(n: int, k: int) -> float:
    """The logarithm of in how many ways k of n are chosen."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _set(text: str) -> set[str]:
    return {word.casefold() for word in WORD.findall(text)}


def _largest(traits: Sequence[Trait]) -> list[Trait]:
    """Those that stand out, most first."""
    kept = [trait for trait in traits if abs(trait.apart) >= ENOUGH]
    return sorted(kept, key=lambda trait: -abs(trait.apart))


def _pair(trait: Trait, one: str, other: str, kind: str) -> str:
    shares = kind == "text" or " = " in trait.name
    told = on_day if trait.date else "{:.0%}".format if shares else partial(written, digits=NUMBER)
    return f"{told(trait.one)} in {one}, {told(trait.other)} in {other}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
