"""Training sets of parts: one after another, or without some of their instances; read where they are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from precedents.data.examples import Chosen, Examples
from precedents.data.inputs import Inputs, joined, leaves, shapes, taken
from precedents.data.sources import Source
from precedents.errors import InputError

Joining = Callable[[Sequence[Inputs]], Inputs]


@dataclass(frozen=True, eq=False)
class JoinedSource(Source):
    """Two sets, one after the other."""

    first: Examples
    second: Examples
    joining: Joining = joined  # makes one batch of one of each set

    @property
    def streamed(self) -> bool:
        """Whether one of them is."""
        return self.first.streamed or self.second.streamed

    @property
    def ragged(self) -> bool:
        """Whether instances differ in length."""
        return self.first.source.ragged

    @property
    def largest(self) -> tuple[int, int]:
        """Of both sets, where instances differ in length; else the first ones."""
        n = len(self.first)
        places = [*self.first.largest, *(n + place for place in self.second.largest)]
        if self.ragged:
            sizes = {place: sum(leaf.numel() for leaf in leaves(self.read([place]))) for place in places}
            places.sort(key=lambda place: (-sizes[place], place))
        return places[0], places[1]

    def unchanged(self) -> None:
        """Refuses data of either set that are no longer what they were."""
        self.first.unchanged()
        self.second.unchanged()

    def read(self, indices: Sequence[int]) -> Inputs:
        """Those of each set at once, put in order."""
        n = len(self.first)
        own = [i for i, place in enumerate(indices) if place < n]
        rest = [i for i, place in enumerate(indices) if place >= n]
        if not rest:
            return self.first.take(_straight(indices, 0)).inputs
        if not own:
            return self.second.take(_straight(indices, n)).inputs
        parts = [
            self.first.take([indices[i] for i in own]).inputs,
            self.second.take([indices[i] - n for i in rest]).inputs,
        ]
        order = torch.tensor(own + rest).argsort()
        return taken(self.joining(parts), order.tolist())


def _straight(indices: Sequence[int], shift: int) -> Sequence[int]:
    """Places less a shift; consecutive ones stay a range, which is read without a copy."""
    if isinstance(indices, range):
        return range(indices.start - shift, indices.stop - shift, indices.step)
    return [place - shift for place in indices]


@dataclass(frozen=True, eq=False)
class Portion(Source):
    """Some instances of a set."""

    whole: Examples
    places: Sequence[int]

    @property
    def streamed(self) -> bool:
        """As the whole set is."""
        return self.whole.streamed

    @property
    def ragged(self) -> bool:
        """Whether instances differ in length."""
        return self.whole.source.ragged

    def unchanged(self) -> None:
        """Refuses data of the whole set that are no longer what they were."""
        self.whole.unchanged()

    def read(self, indices: Sequence[int]) -> Inputs:
        """At their places in the whole set."""
        return self.whole.take([self.places[i] for i in indices]).inputs


@dataclass(frozen=True, eq=False)
class OneAfterAnother:
    """Instances of two sets as their owner has them."""

    first: Any
    second: Any

    def __len__(self) -> int:
        return len(self.first) + len(self.second)

    def __getitem__(self, i: int) -> Any:
        return self.first[i] if i < len(self.first) else self.second[i - len(self.first)]


def together(first: Examples, second: Examples, joining: Joining = joined) -> Examples:
    """Two sets of instances of one kind, one after the other; `joining` fills up batches that differ in length.

    >>> one, other = (Examples.of((torch.eye(2) + i, torch.tensor([0, 1]))) for i in range(2))
    >>> together(one, other).take([3, 0]).inputs
    tensor([[1., 2.],
            [1., 0.]])
    """
    known, here = shapes(first.first), shapes(second.first)
    if not first.source.ragged and (second.source.ragged or here != known):
        own = "differ in length" if second.source.ragged else f"have the shape {here}"
        raise InputError(
            f"The new rows {own}, those of the training set have the shape {known}. "
            "Pass rows of the same shape."
        )
    originals = ids = None
    if first.originals is not None and second.originals is not None:
        originals = OneAfterAnother(first.originals, second.originals)
    if first.ids is not None and second.ids is not None:
        ids = [*first.ids, *second.ids]
    labels = torch.cat([first.labels, second.labels])
    joined_set = JoinedSource(first, second, joining)
    return Examples(joined_set, labels, originals, ids=ids, classes=first.classes, columns=first.columns)


def without(whole: Examples, places: Sequence[int]) -> Examples:
    """The set without the instances at these places.

    >>> without(Examples.of((torch.eye(3), torch.tensor([0, 1, 2]))), [1]).labels
    tensor([0, 2])
    """
    gone = set(places)
    kept = [i for i in range(len(whole)) if i not in gone]
    originals = None if whole.originals is None else Chosen(whole.originals, kept)
    ids = None if whole.ids is None else [whole.ids[i] for i in kept]
    portion, labels = Portion(whole, kept), whole.labels[kept]
    return Examples(portion, labels, originals, ids=ids, classes=whole.classes, columns=whole.columns)
