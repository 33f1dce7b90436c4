"""Dataset: labelled instances as their owners publish them; Split: what one repeat draws from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from precedents.classifier.classifier import Vectorise
from precedents.criteria._trial import merge
from precedents.data.examples import Examples, InMemory, Source
from precedents.data.inputs import Inputs, leaves
from precedents.errors import InputError
from precedents.zoo.text import counted, written

Subclasses = tuple[Tensor, Tensor]  # of training and of test instances


@dataclass(frozen=True, eq=False)
class Pixels(Source):
    """Images kept as bytes and read as numbers within 0..1."""

    images: Tensor  # uint8 [n, channels, height, width]

    def read(self, indices: Sequence[int]) -> Tensor:
        """Float images [b, channels, height, width]."""
        return self.images[list(indices)].float() / 255


@dataclass(frozen=True, eq=False)
class Subset(Source):
    """Some instances of another source, read when needed."""

    source: Source
    places: Sequence[int]

    def read(self, indices: Sequence[int]) -> Inputs:
        """The instances at these places among the chosen ones."""
        return self.source.read([self.places[i] for i in indices])


def subset(examples: Examples, places: Tensor) -> Examples:
    """Some of the instances, in this order; nothing is copied."""
    return Examples(Subset(examples.source, places.tolist()), examples.labels[places])


@dataclass(frozen=True, eq=False)
class Split:
    """What one repeat trains on, chooses its epoch by and is tried on; no instance is in two of the three."""

    train: Examples
    pool: Examples  # everything that may be trained on, `train` among it: for pre-training
    dev: Examples
    test: Examples  # in an order drawn by the seed: the first ones are the cases
    subclasses: Subclasses | None = None  # finer labels of `train` and `test`

    def merged(self, classes: int, seed: int) -> "Split":
        """With the classes merged at random into two; the old ones are the subclasses."""
        groups = merge(classes, seed)
        merged = self._mapped(lambda part: part.relabelled(groups[part.labels]))
        return replace(merged, subclasses=(self.train.labels, self.test.labels))

    def standardized(self) -> "Split":
        """For tables: each column less its mean over `train`, over its deviation; constant ones become 0."""
        rows = _table(self.train)
        deviation, mean = torch.std_mean(rows, dim=0, correction=0)
        scale = torch.where(deviation > 1e-6 * mean.abs(), 1 / deviation, 0.0)

        def scaled(part: Examples) -> Examples:
            return Examples(InMemory(((_table(part) - mean) * scale).float()), part.labels)

        return self._mapped(scaled)

    def _mapped(self, change: Callable[[Examples], Examples]) -> "Split":
        parts = (change(part) for part in (self.train, self.pool, self.dev, self.test))
        return Split(*parts, self.subclasses)  # type: ignore[call-arg, arg-type]


def _table(examples: Examples) -> Tensor:
    inputs = examples.take(range(len(examples))).inputs
    if not (isinstance(inputs, Tensor) and inputs.ndim == 2 and inputs.is_floating_point()):
        raise InputError("Only tables have columns to standardize: rows [n, d] of floating point numbers.")
    return inputs.double()


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled instances in the order of the files. What the owners do not fix is drawn from `train`."""

    name: str
    kind: Literal["image", "text", "table"]
    classes: tuple[str, ...]
    train: Examples
    keep: int  # how many a repeat trains on
    held: int = 0  # how many are drawn as development set; 0 where the set is fixed
    dev: Examples | None = None
    test: Examples | None = None
    columns: tuple[str, ...] = ()  # of a table
    words: tuple[str, ...] = field(default=(), repr=False)  # of texts, by token number
    subclasses: Subclasses | None = field(default=None, repr=False)  # of `train` and `test`
    note: str = ""  # how this differs from what the owners publish

    @property
    def shape(self) -> tuple[int, ...]:
        """What an architecture is told: the shape of an image or a row, the number of words of texts."""
        if self.kind == "text":
            return (len(self.words),)
        return tuple(leaves(self.train.take([0]).inputs)[0].shape[1:])

    @property
    def vectorise(self) -> Vectorise | None:
        """How metrics on inputs see an instance: texts are word counts, others are flattened."""
        return partial(counted, words=len(self.words)) if self.kind == "text" else None

    def render(self, instance: Any) -> Any:
        """What a person sees: an image, a text with unknown words marked, or named values."""
        if self.kind == "text":
            return written(instance, self.words)
        if self.kind == "table":
            return dict(zip(self.columns, instance.tolist(), strict=True))
        return instance

    def split(self, seed: int, keep: int | None = None) -> Split:
        """A repeat's training, development and test instances, the same for the same seed."""
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(self.train), generator=generator)
        keep, free = self.keep if keep is None else keep, len(order) - self.held
        if not 0 < keep <= free - (self.test is None):
            raise InputError(
                f"{keep} training instances cannot be drawn from {self.name}: {len(order)} are there, "
                f"{self.held} of them held out. Pass keep=1 to keep={free - (self.test is None)}."
            )
        train, pool, dev = order[:keep], order[:free], order[free:]
        if self.test is None:
            pool, test, among = train, self.train, order[keep:free]
        else:
            test, among = self.test, torch.randperm(len(self.test), generator=generator)
        return Split(
            train=subset(self.train, train),
            pool=subset(self.train, pool),
            dev=subset(self.train, dev) if self.dev is None else self.dev,
            test=subset(test, among),
            subclasses=self.subclasses and (self.subclasses[0][train], self.subclasses[1][among]),
        )


Load = Callable[..., Dataset]  # (folder=None) -> the data set
