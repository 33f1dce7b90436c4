"""Described: a set that is searched for near duplicates, in one pass; what is compared is kept if it fits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from precedents.data.examples import Examples
from precedents.data.sources import marks
from precedents.explain.jobs._likeness import Likeness
from precedents.explain.jobs._neighbours import FLOAT32, WIDEST, Units
from precedents.explain.jobs._portrayal import Portrayal
from precedents.gradients.rows import Rows
from precedents.index.codes import unit
from precedents.index.sketch import CountSketch
from precedents.runtime.budget import Budget
from precedents.runtime.progress import tracked
from precedents.views.instance import is_picture

LETTER = 4  # bytes of a letter, at most
PART = 16  # of the budget: what is kept of a set, and a block of cosines


@dataclass(frozen=True, eq=False)
class Described:
    """The descriptions and the marks of a set's instances, and what is compared of them."""

    examples: Examples
    likeness: Likeness
    units: Units
    marks: list[bytes]  # of what the model is fed, for each instance
    portrayal: Portrayal
    kept: Any = None  # what is compared of all; None where it is read again

    @classmethod
    def of(cls, examples: Examples, likeness: Likeness, portrayal: Portrayal, title: str) -> "Described":
        """Reads the examples in one pass, and keeps what is compared as far as there is room."""
        budget, size, n = portrayal.subject.classifier.budget, likeness.at_once(examples), len(examples)
        first = likeness.described(likeness.read(examples, examples.take(range(1))))
        sketch = CountSketch(first.shape[1], WIDEST)
        budget.bound(
            2 * FLOAT32 * n * sketch.length, f"Descriptions of {n} instances", "Allow more memory: memory=."
        )
        units, kept = torch.empty(n, sketch.length), Kept(budget)
        found = list[bytes]()
        for start in tracked(range(0, n, size), title):
            batch = examples.take(range(start, min(start + size, n)))
            read = likeness.read(examples, batch)
            units[start : start + len(batch.labels)] = unit(sketch, Rows.of(likeness.described(read)))
            kept.add(read)
            found += marks(batch.inputs, [0] * len(batch.labels))
        return cls(examples, likeness, Units(units), found, portrayal, kept.all)

    def read(self, places: Sequence[int]) -> Any:
        """What is compared of the instances at these places."""
        if self.kept is None:
            return self.likeness.read(self.examples, self.examples.take(places))
        return self.kept[list(places)] if isinstance(self.kept, Tensor) else [self.kept[i] for i in places]


class Kept:
    """What is compared of all instances, as long as it takes no more than its part of the budget."""

    def __init__(self, budget: Budget) -> None:
        self.room, self.parts = budget.bytes // PART, list[Any]()

    def add(self, read: Any) -> None:
        """Keeps it if there is room, and else lets go of all."""
        self.room -= _bytes(read)
        self.parts.append(read)
        if self.room < 0:
            self.parts.clear()

    @property
    def all(self) -> Any:
        """All of it, if it was kept."""
        if self.room < 0:
            return None
        if isinstance(self.parts[0], Tensor):
            return torch.cat(self.parts)
        return [each for part in self.parts for each in part]


def _bytes(read: Any) -> int:
    if isinstance(read, Tensor):
        return 2 * read.numel() * read.element_size()  # once more where all are put together
    return sum(LETTER * len(text) for text in read)


def look_alike(one: Described, other: Described, i: int, j: int) -> bool:
    """Whether a person sees the same in two instances that are the same to the model."""
    if one.examples.originals is None or other.examples.originals is None:
        return True  # what is seen is made from what the model is fed
    left, right = one.portrayal.of(one.examples, i), other.portrayal.of(other.examples, j)
    if is_picture(left) and is_picture(right):
        return np.array_equal(left, right)
    return repr(left) == repr(right)  # values that are no numbers are equal, too


def compared(one: Described, other: Described, pairs: Tensor) -> list[float]:
    """How alike the instances of each pair [p, 2] are, a few pairs at a time; each is read once for those."""
    found: list[float] = []
    size = one.likeness.at_once(one.examples)
    for start in tracked(range(0, len(pairs), size), "pairs"):
        left, right = (_read_once(side, pairs[start : start + size, i]) for i, side in enumerate((one, other)))
        found += one.likeness.alike(left, right).tolist()
    return found


def _read_once(described: Described, places: Tensor) -> Any:
    """What is compared of instances, of which there may be equal ones, one for each place."""
    unique, own = places.unique(return_inverse=True)
    read = described.read(unique.tolist())
    return read[own] if isinstance(read, Tensor) else [read[i] for i in own.tolist()]
