"""What some instances share that others do not: the pixels, columns or words in which two lists of them differ.

Numbers (of pixels and columns) are compared by the difference of their means, in standard deviations of both
lists together; words by the difference of the shares of texts that have them. What random lists of the same
lengths might show as well does not stand out: the shorter the lists are and the more pixels, columns or words
are tried, the larger a difference must be.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from precedents.views.comparison import WORD, measure
from precedents.views.instance import Shown, is_date, on_day, written

FEWEST = 3  # instances of a list, of fewer of which nothing can be told
CHANCE = 0.05  # how often something may stand out of random lists, at most
WINDOW = 3  # pixels of a side that are taken together
MOST = 3  # columns or words that are named
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
    """Columns of numbers by their means, in deviations; others by the shares of a value."""
    names = [name for name in one[0] if all(name in row for row in (*one, *other))]
    sizes, found = (len(one), len(other)), []
    for name in names:
        left, right = ([measure(row[name]) for row in side] for side in (one, other))
        own = measure(case[name]) if isinstance(case, Mapping) and name in case else None
        if None in left or None in right:
            found += _values(name, [[row[name] for row in side] for side in (one, other)], len(names))
            continue
        a, b = np.array(left, dtype=float), np.array(right, dtype=float)
        apart = float(a.mean() - b.mean())
        if abs(apart) <= max(_by_chance(float(np.concatenate([a, b]).std()), sizes, len(names)), SMALLEST):
            continue
        spread = float(np.sqrt((a.var() + b.var()) / 2))
        size = apart / spread if spread > SMALLEST else np.sign(apart) * LARGEST
        dates = all(is_date(row[name]) for row in one)
        found.append(Trait(str(name), float(a.mean()), float(b.mean()), float(size), own, dates))
    return _largest(found)


def _values(name: Any, sides: Sequence[Sequence[Any]], tried: int) -> list[Trait]:
    """The value of a column that one list has much more often than the other, if there is one."""
    counts = [Counter(written(value) for value in side) for side in sides]
    sizes = len(sides[0]), len(sides[1])
    shares = {
        value: [count[value] / size for count, size in zip(counts, sizes, strict=True)]
        for value in set(counts[0]) | set(counts[1])
    }
    value = max(sorted(shares), key=lambda each: abs(shares[each][0] - shares[each][1]))
    one, other = shares[value]
    if abs(one - other) <= _by_chance(_varying(sum(count[value] for count in counts), sizes), sizes, tried):
        return []
    return [Trait(f"{name} = {value}", one, other, 2 * (one - other))]


def _words(one: Sequence[Any], other: Sequence[Any], case: Any) -> list[Trait]:
    """The words that one list has much more often than the other; few are frequent enough for that."""
    counts = [Counter(word for text in side for word in _set(text)) for side in (one, other)]
    sizes, together = (len(one), len(other)), counts[0] + counts[1]
    tried = sorted(word for word, count in together.items() if count >= ENOUGH * min(sizes))
    own = _set(case) if isinstance(case, str) else None
    found = []
    for word in tried:
        left, right = counts[0][word] / len(one), counts[1][word] / len(other)
        if abs(left - right) > _by_chance(_varying(together[word], sizes), sizes, len(tried)):
            found.append(Trait(word, left, right, left - right, None if own is None else float(word in own)))
    return _largest(found)


def _varying(count: int, sizes: tuple[int, int]) -> float:
    """The standard deviation of whether an instance has what so many of both lists have."""
    share = count / sum(sizes)
    return float(np.sqrt(share * (1 - share)))


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
