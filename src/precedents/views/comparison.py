"""An instance beside the case: where two table rows are nearest and farthest, and which words texts share.

Distances of numbers and dates are in standard deviations (sd) of the training set's columns, so that columns
compare; another category counts as one. A column that is constant in the training set makes any difference the
farthest.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import inf, isfinite
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from precedents.seen import clipped
from precedents.views.instance import Render, Shown, days, shown, written

if TYPE_CHECKING:
    from precedents.data.examples import Examples

MOST = 1000  # training instances, evenly apart, that standard deviations are taken over
EACH = 3  # columns that are shown of the nearest and of the farthest
FEWER = 2  # the same in print
SAME = 0.05  # standard deviations within which two numbers are as good as equal
ODD = 0.5  # standard deviations from which on print says how far a near column is
WIDTH = 100  # letters of a text in print
NAME = 24  # letters of a name or a value in a list
UNKNOWN = re.compile(r"(‹[^‹›]*›)")  # a word outside the vocabulary
WORD = re.compile(r"(\w+)")
MISSING = ("NAType", "NaTType")  # of pandas
MEASURED = (Real, np.datetime64, np.timedelta64)  # kinds of which one value is that there is none
LONG = 4  # letters of a word that is marked when it is shared


@dataclass(frozen=True)
class Column:
    """A column of a table row, beside the same column of the case."""

    name: str
    value: str
    apart: float = 0.0  # standard deviations, with a sign
    said: str = ""  # how far it is from the case's, in words

    def __str__(self) -> str:
        return f"{self.name} {self.value}" + (f" ({self.said})" if self.said else "")


def compared(row: Mapping[str, Any], case: Mapping[str, Any], spread: Mapping[str, float]) -> list[Column]:
    """All columns of the row, nearest first."""
    every = [_column(str(name), value, case.get(name), spread) for name, value in row.items()]
    return sorted(every, key=lambda column: abs(column.apart))


def sides(columns: Sequence[Column], each: int = EACH) -> tuple[Sequence[Column], Sequence[Column]]:
    """The nearest columns, nearest first, and the farthest, farthest first; equal ones are not far."""
    each = min(each, -(-len(columns) // 2))
    far = [column for column in columns[each:] if column.apart]
    return columns[:each], far[: -each - 1 : -1]


def spread_of(train: "Examples", render: Render | None) -> dict[str, float]:
    """The standard deviations of the training set's columns; none where its instances have no named columns."""
    if render is None or not isinstance(_seen(train, [0], render)[0], Mapping):
        return {}
    return spreads(_seen(train, range(0, len(train), -(-len(train) // MOST)), render))


def spreads(rows: Iterable[Shown]) -> dict[str, float]:
    """The standard deviations of the numbers of some table rows, by column."""
    places: dict[str, int] = {}
    columns: list[int] = []
    values: list[float] = []
    for row in rows:
        for name, value in row.items() if isinstance(row, Mapping) else ():
            if (number := measure(value)) is not None:
                columns.append(places.setdefault(str(name), len(places)))
                values.append(number)
    return dict(zip(places, _deviations(columns, values), strict=True)) if values else {}


def _deviations(columns: Sequence[int], values: Sequence[float]) -> list[float]:
    """The standard deviation of the values of each column."""
    column, value = np.array(columns), np.array(values)
    counts = np.bincount(column)
    apart = value - (np.bincount(column, value) / counts)[column]
    found: list[float] = np.sqrt(np.bincount(column, apart**2) / counts).tolist()
    return found


def line(instance: Shown, case: Shown, spread: Mapping[str, float]) -> str | None:
    """What is printed of a precedent: how a text begins, some columns of a table row, nothing of a picture."""
    if isinstance(instance, str):
        return beginning(instance)
    if not isinstance(instance, Mapping) or not isinstance(case, Mapping):
        return None
    near, far = sides(compared(instance, case, spread), FEWER)
    named = (("near", [replace(c, said="") if abs(c.apart) < ODD else c for c in near]), ("far", far))
    said = [f"{side}: {', '.join(map(str, columns))}" for side, columns in named if columns]
    return beginning("; ".join(said), 2 * WIDTH)


def lines(instance: Mapping[str, Any], case: Mapping[str, Any], spread: Mapping[str, float]) -> list[str]:
    """The nearest and the farthest columns of a table row, one below the other."""
    near, far = sides(compared(instance, case, spread))
    every = [Column(beginning(c.name, NAME), beginning(c.value, NAME), c.apart, c.said) for c in (*near, *far)]
    name, value = (max((len(getattr(c, part)) for c in every), default=0) for part in ("name", "value"))
    rows = [f" {c.name:<{name}} {c.value:>{value}} {c.said}".rstrip() for c in every]
    return ["nearest", *rows[: len(near)], *(["farthest", *rows[len(near) :]] if far else [])]


def told_first(case: Shown, precedents: Iterable[Shown], spread: Mapping[str, float]) -> Shown:
    """The case's row, with the columns first that are shown of most of its precedents."""
    if not isinstance(case, Mapping):
        return case
    rows = (row for row in precedents if isinstance(row, Mapping))
    told = Counter(
        column.name for row in rows for side in sides(compared(row, case, spread)) for column in side
    )
    return {name: case[name] for name in sorted(case, key=lambda name: -told[str(name)])}


def beginning(text: str, width: int = WIDTH) -> str:
    """The text on one line, cut."""
    return clipped(text, width)


def parts(text: str, case: Shown | None = None) -> tuple[tuple[str, str], ...]:
    """The text in parts, each of a kind: "unknown", between ‹ and ›; "shared" with the case's text; or ""."""
    shared = set(_words(UNKNOWN.sub(" ", case))) if isinstance(case, str) else set()
    pieces = []
    for piece in UNKNOWN.split(text):
        if UNKNOWN.fullmatch(piece):
            pieces.append((piece, "unknown"))
        else:
            pieces += [(word, "shared" if word.casefold() in shared else "") for word in WORD.split(piece)]
    together = groupby((piece for piece in pieces if piece[0]), key=lambda piece: piece[1])
    return tuple(("".join(word for word, _ in run), kind) for kind, run in together)


def is_number(value: Any) -> bool:
    """Whether it is a finite number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)


def measure(value: Any) -> float | None:
    """A number, or the days of a date or a span of time, by which columns compare; none of anything else."""
    return float(value) if is_number(value) else days(value)


def is_missing(value: Any) -> bool:
    """Whether it is none, no number, or what pandas and numpy have for that."""
    return value is None or type(value).__name__ in MISSING or (isinstance(value, MEASURED) and value != value)


def _words(text: str) -> list[str]:
    return [word.casefold() for word in WORD.findall(text) if len(word) >= LONG]


def _seen(train: "Examples", places: Sequence[int], render: Render) -> list[Shown]:
    return [shown(instance, render) for instance in train.seen(places)]


def _column(name: str, value: Any, other: Any, spread: Mapping[str, float]) -> Column:
    text, beside = written(value, ".4g"), written(other, ".4g")
    own, theirs = measure(value), measure(other)
    if own is not None and theirs is not None and spread.get(name, 0.0) > 0:
        apart = (own - theirs) / spread[name]
        return Column(name, text, apart, f"{apart:+.1f} sd" if abs(apart) >= SAME else "")
    if text == beside:
        return Column(name, text)
    apart = inf if own is not None and theirs is not None else 1.0
    return Column(name, text, apart, f"case: {beside}")
