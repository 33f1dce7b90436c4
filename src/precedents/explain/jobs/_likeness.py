"""Likeness: how near duplicates are told: pictures by pixels, texts by letters, table rows by values.

What is compared first is a short description, in which what does not matter is left out: of a picture the
strengths of its waves, which do not change when it is moved; of a text its letters in threes, without case,
blanks and punctuation; of a table row its values in standard deviations. Those that are described alike are
then compared themselves.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, normalize

from precedents.data.batch import Batch
from precedents.data.examples import Examples
from precedents.data.inputs import Inputs, leaves
from precedents.explain.jobs._neighbours import WIDEST, Units
from precedents.explain.jobs._portrayal import Portrayal
from precedents.gradients.rows import Rows
from precedents.index.codes import unit
from precedents.index.sketch import CountSketch
from precedents.runtime.progress import tracked
from precedents.runtime.sparse import SparseRows

SIDE = 32  # pixels of a side at which pictures are compared, at most
MOVED = 14  # parts of a side by one of which a picture may be moved against the other
WAVES = 8  # frequencies of a side that describe a picture
LETTERS = 3  # that are taken together
BUCKETS = 512  # numbers that describe a text
READ = 512  # instances that are read at once, at most,
NUMBERS = 2**22  # of which they have no more
PLAIN = re.compile(r"[\W_]+")  # what is neither letter nor digit

IndexPair = tuple[int, int]


class Likeness(ABC):
    """How instances of one kind are described and compared."""

    rule: str  # what a near duplicate is, in words

    @abstractmethod
    def described(self, examples: Examples, batch: Batch) -> Tensor:
        """Short descriptions [b, d] of some instances."""

    @abstractmethod
    def alike(self, one: tuple[Examples, Batch], other: tuple[Examples, Batch]) -> Tensor:
        """How alike the instances of two batches are, one by one [b]: one if they are the same."""

    def units(self, examples: Examples, title: str) -> Units:
        """The descriptions of all instances, of length one."""
        size = at_once(examples)
        width = self.described(examples, examples.take(range(1))).shape[1]
        sketch = CountSketch(width, WIDEST)
        found = torch.empty(len(examples), sketch.length)
        for start in tracked(range(0, len(examples), size), title):
            batch = examples.take(range(start, min(start + size, len(examples))))
            part = Rows.of(self.described(examples, batch).float())
            found[start : start + len(batch.labels)] = unit(sketch, part)
        return Units(found)


@dataclass(frozen=True)
class PictureLikeness(Likeness):
    """Grey pictures of at most 32 pixels a side."""

    portrayal: Portrayal
    rule = f"the correlation of the pixels, at the best shift by up to 1/{MOVED} of a side"

    def described(self, examples: Examples, batch: Batch) -> Tensor:
        """The strengths of the long waves, without their places."""
        waves = torch.fft.fft2(self._grey(examples, batch)).abs()
        kept = [waves[:, :WAVES, :WAVES], waves[:, 1 - WAVES :, :WAVES]]
        return torch.cat([part.flatten(1) for part in kept], dim=1)[:, 1:]  # the first is the mean brightness

    def alike(self, one: tuple[Examples, Batch], other: tuple[Examples, Batch]) -> Tensor:
        """The correlation of the pixels at the best shift."""
        left, right = (self._grey(*each) for each in (one, other))
        down, across = (range(-(side // MOVED), side // MOVED + 1) for side in left.shape[1:])
        found = [_correlated(left, right, i, j) for i in down for j in across]
        return torch.stack(found).amax(dim=0)

    def _grey(self, examples: Examples, batch: Batch) -> Tensor:
        """Pictures [b, h, w], no larger than they are compared at."""
        pixels = batch.inputs
        if not isinstance(pixels, Tensor) or pixels.ndim < 3:
            pixels = torch.stack([torch.as_tensor(each) for each in self.portrayal.several(examples, batch)])
        last = pixels.ndim == 4 and pixels.shape[3] in (1, 3) and pixels.shape[1] not in (1, 3)
        pixels = (pixels.movedim(3, 1) if last else pixels).float().cpu()
        pixels = pixels.flatten(1, -3).mean(dim=1) if pixels.ndim > 3 else pixels
        height, width = (min(SIDE, side) for side in pixels.shape[1:])
        return pixels if pixels.shape[1:] == (height, width) else adaptive_avg_pool2d(pixels, (height, width))


def _correlated(left: Tensor, right: Tensor, down: int, across: int) -> Tensor:
    """Of what is on both pictures when one is moved."""
    h, w = left.shape[1:]
    one = left[:, max(0, down) : h + min(0, down), max(0, across) : w + min(0, across)].flatten(1)
    other = right[:, max(0, -down) : h - max(0, down), max(0, -across) : w - max(0, across)].flatten(1)
    one, other = (part - part.mean(dim=1, keepdim=True) for part in (one, other))
    return (normalize(one, dim=1) * normalize(other, dim=1)).sum(dim=1)


@dataclass(frozen=True)
class TextLikeness(Likeness):
    """Texts as a person reads them."""

    portrayal: Portrayal
    rule = f"the cosine of letters in groups of {LETTERS}, whatever their case, blanks and punctuation"

    def described(self, examples: Examples, batch: Batch) -> Tensor:
        """How often each group of three letters occurs, in buckets."""
        found = torch.zeros(len(batch.labels), BUCKETS)
        for row, text in enumerate(self._plain(examples, batch)):
            padded = f" {text} "
            for i in range(max(1, len(padded) - LETTERS + 1)):
                found[row, crc32(padded[i : i + LETTERS].encode("utf-8", "replace")) % BUCKETS] += 1
        return found

    def alike(self, one: tuple[Examples, Batch], other: tuple[Examples, Batch]) -> Tensor:
        """One for the same letters; else the cosine of the groups of letters."""
        cosines = (normalize(self.described(*one), dim=1) * normalize(self.described(*other), dim=1)).sum(dim=1)
        same = [a == b for a, b in zip(self._plain(*one), self._plain(*other), strict=True)]
        return torch.where(torch.tensor(same), torch.ones_like(cosines), cosines.clamp(max=0.999))

    def _plain(self, examples: Examples, batch: Batch) -> list[str]:
        shown = self.portrayal.several(examples, batch)
        return [PLAIN.sub(" ", str(text).casefold()).strip() for text in shown]


@dataclass(frozen=True, eq=False)
class RowLikeness(Likeness):
    """Rows of numbers."""

    mean: Tensor
    deviation: Tensor
    rule = "1 less the root mean square difference of the columns, in standard deviations"

    def described(self, examples: Examples, batch: Batch) -> Tensor:  # noqa: ARG002
        """The values in standard deviations, and a one."""
        rows = (_flat(batch.inputs) - self.mean) / self.deviation
        return torch.cat([rows, torch.ones(len(rows), 1, dtype=rows.dtype)], dim=1)

    def alike(self, one: tuple[Examples, Batch], other: tuple[Examples, Batch]) -> Tensor:
        """How near the values are."""
        apart = self.described(*one) - self.described(*other)
        return 1 - (apart.square().sum(dim=1) / max(1, apart.shape[1] - 1)).sqrt().float()


def _flat(inputs: Inputs) -> Tensor:
    assert isinstance(inputs, Tensor)
    whole = inputs.to_dense() if isinstance(inputs, SparseRows) else inputs
    return whole.double().cpu().flatten(1)


def at_once(examples: Examples) -> int:
    """How many instances are read at once."""
    numbers = sum(leaf.numel() for leaf in leaves(examples.first) if isinstance(leaf, Tensor))
    return max(1, min(READ, NUMBERS // max(1, numbers)))


def likeness_of(portrayal: Portrayal) -> Likeness:
    """How the instances of a training set are compared, by what they are."""
    train = portrayal.subject.train
    first = train.take([0]).inputs
    numeric = isinstance(first, Tensor) and first.is_floating_point()
    shown = portrayal.seen(0)
    if not isinstance(shown, (str, Mapping)):
        return PictureLikeness(portrayal)
    if isinstance(shown, str) or not numeric:
        return TextLikeness(portrayal)
    total = squares = torch.zeros(1, dtype=torch.double)
    for batch in train.batches(at_once(train)):
        rows = _flat(batch.inputs)
        total, squares = total + rows.sum(dim=0), squares + rows.square().sum(dim=0)
    mean = total / len(train)
    deviation = (squares / len(train) - mean.square()).clamp(min=0).sqrt()
    return RowLikeness(mean, torch.where(deviation > 1e-9 * (1 + mean.abs()), deviation, 1.0))


def compared(likeness: Likeness, sets: tuple[Examples, Examples], pairs: Sequence[IndexPair]) -> list[float]:
    """How alike the instances of each pair are, a few pairs at a time."""
    found: list[float] = []
    size = at_once(sets[0])
    for start in tracked(range(0, len(pairs), size), "pairs"):
        some = pairs[start : start + size]
        left, right = ([pair[side] for pair in some] for side in (0, 1))
        one, other = (sets[0], sets[0].take(left)), (sets[1], sets[1].take(right))
        found += likeness.alike(one, other).tolist()
    return found
