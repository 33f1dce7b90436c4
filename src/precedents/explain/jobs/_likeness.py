"""Likeness: how near duplicates are told: pictures by pixels, texts by letters, table rows by values.

What is compared first is a short description, in which what does not matter is left out: of a picture the
strengths of its waves, which do not change when it is moved; of a text its letters in threes, without case,
blanks and punctuation; of a table row its values in standard deviations. Those that are described alike are
then compared themselves.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unicodedata import category
from unicodedata import normalize as normal_form

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, normalize

from precedents.data.batch import Batch
from precedents.data.examples import Examples
from precedents.data.inputs import Inputs, leaves
from precedents.errors import InputError
from precedents.explain.jobs._portrayal import Portrayal
from precedents.index.sketch import hashed
from precedents.runtime.progress import tracked
from precedents.runtime.sparse import SparseRows
from precedents.views.instance import Shown, is_picture

SIDE = 32  # pixels of a side at which pictures are compared, at most
MOVED = 14  # parts of a side by one of which a picture may be moved against the other
WAVES = 8  # frequencies of a side that describe a picture
LETTERS = 3  # that are taken together
BUCKETS = 512  # numbers that describe a text
READ = 512  # instances that are read at once, at most,
NUMBERS = 2**22  # of which they have no more,
TEXTS = 64  # or texts, which may be long
CODE = np.uint64(21)  # bits of a letter
KEPT = "LMNS"  # categories of Unicode: letters, marks on them, digits and symbols, as emoji are


class Likeness(ABC):
    """How instances of one kind are described and compared."""

    rule: str  # what a near duplicate is, in words
    together = READ  # instances that are read at once, at most

    @abstractmethod
    def read(self, examples: Examples, batch: Batch) -> Any:
        """What is compared of some instances: a tensor [b, ...], or a list."""

    @abstractmethod
    def described(self, read: Any) -> Tensor:
        """Short descriptions [b, d] of what was read."""

    @abstractmethod
    def alike(self, one: Any, other: Any) -> Tensor:
        """How alike instances that were read are, one by one [b]: one if they are the same."""

    def at_once(self, examples: Examples) -> int:
        """How many instances are read at once."""
        return at_once(examples, self.together)


@dataclass(frozen=True)
class PictureLikeness(Likeness):
    """Grey pictures of at most 32 pixels a side."""

    portrayal: Portrayal
    rule = f"the correlation of the pixels, at the best shift by up to 1/{MOVED} of a side"

    def read(self, examples: Examples, batch: Batch) -> Tensor:
        """Grey pictures [b, h, w], no larger than they are compared at."""
        pixels = batch.inputs
        if not isinstance(pixels, Tensor) or pixels.ndim < 3:
            shown = self.portrayal.several(examples, batch)
            return torch.stack([_square(each, i) for each, i in zip(shown, batch.indices, strict=True)])
        last = pixels.ndim == 4 and pixels.shape[3] in (1, 3) and pixels.shape[1] not in (1, 3)
        pixels = (pixels.movedim(3, 1) if last else pixels).float().cpu()
        pixels = pixels.flatten(1, -3).mean(dim=1) if pixels.ndim > 3 else pixels
        height, width = (min(SIDE, side) for side in pixels.shape[1:])
        return pixels if pixels.shape[1:] == (height, width) else adaptive_avg_pool2d(pixels, (height, width))

    def described(self, read: Tensor) -> Tensor:
        """The strengths of the long waves, without their places."""
        waves = torch.fft.fft2(read).abs()
        kept = [waves[:, :WAVES, :WAVES], waves[:, 1 - WAVES :, :WAVES]]
        return torch.cat([part.flatten(1) for part in kept], dim=1)[:, 1:]  # the first is the mean brightness

    def alike(self, one: Tensor, other: Tensor) -> Tensor:
        """The correlation of the pixels at the best shift."""
        down, across = (range(-(side // MOVED), side // MOVED + 1) for side in one.shape[1:])
        found = [_correlated(one, other, i, j) for i in down for j in across]
        return torch.stack(found).amax(dim=0)


def _square(shown: Shown, place: int) -> Tensor:
    """A picture that is shown, which may have a size of its own, in grey and at one size."""
    if not is_picture(shown):
        raise InputError(
            f"Instance {place} is not shown as a picture, but the first is. Pass a render that shows all alike."
        )
    pixels = torch.as_tensor(shown).float()
    grey = pixels.mean(dim=2) if pixels.ndim == 3 else pixels
    return adaptive_avg_pool2d(grey[None], (SIDE, SIDE))[0]


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
    together = TEXTS

    def read(self, examples: Examples, batch: Batch) -> list[str]:
        """The letters, digits and symbols, in small letters."""
        return [letters(str(text)) for text in self.portrayal.several(examples, batch)]

    def described(self, read: Sequence[str]) -> Tensor:
        """How often each group of three letters occurs, in buckets."""
        return torch.from_numpy(np.stack([groups_of_letters(text) for text in read])).float()

    def alike(self, one: Sequence[str], other: Sequence[str]) -> Tensor:
        """One for the same letters; else the cosine of the groups of letters."""
        left, right = (normalize(self.described(side).double(), dim=1) for side in (one, other))
        cosines = (left * right).sum(dim=1).float()
        same = torch.tensor([a == b for a, b in zip(one, other, strict=True)])
        return torch.where(same, torch.ones_like(cosines), cosines.clamp(max=0.999))


class _Plain(dict[int, int | None]):
    """By its number each letter itself, and nothing for blanks, punctuation and what cannot be seen."""

    def __missing__(self, code: int) -> int | None:
        self[code] = code if category(chr(code))[0] in KEPT else None
        return self[code]


PLAIN = _Plain()


def letters(text: str) -> str:
    """The text without case, blanks and punctuation; one that has nothing else as it is.

    >>> letters("E-mail me!"), letters("?!")
    ('emailme', '?!')
    """
    return normal_form("NFKC", text).casefold().translate(PLAIN) or text


def groups_of_letters(text: str) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """How often each group of three letters occurs, in buckets by a hash.

    >>> int(groups_of_letters("ana ana").sum())
    7
    """
    padded = f" {text} ".ljust(LETTERS).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(padded, dtype="<u4").astype(np.uint64)
    groups = (codes[:-2] << CODE << CODE) | (codes[1:-1] << CODE) | codes[2:]
    return np.bincount((hashed(groups, 0) % np.uint64(BUCKETS)).astype(np.int64), minlength=BUCKETS)


@dataclass(frozen=True, eq=False)
class RowLikeness(Likeness):
    """How alike rows of numbers are, column by column in standard deviations."""

    mean: Tensor
    deviation: Tensor
    rule = "1 less the root mean square difference of the columns, in standard deviations"

    def read(self, examples: Examples, batch: Batch) -> Tensor:  # noqa: ARG002
        """The values in standard deviations."""
        return (_flat(batch.inputs) - self.mean) / self.deviation

    def described(self, read: Tensor) -> Tensor:
        """The same, and a one."""
        return torch.cat([read, torch.ones(len(read), 1, dtype=read.dtype)], dim=1).float()

    def alike(self, one: Tensor, other: Tensor) -> Tensor:
        """How near the values are."""
        return 1 - ((one - other).square().sum(dim=1) / max(1, one.shape[1])).sqrt().float()


def _flat(inputs: Inputs) -> Tensor:
    assert isinstance(inputs, Tensor)
    whole = inputs.to_dense() if isinstance(inputs, SparseRows) else inputs
    return whole.double().cpu().flatten(1)


def at_once(examples: Examples, most: int = READ) -> int:
    """How many instances are read at once."""
    numbers = sum(leaf.numel() for leaf in leaves(examples.first) if isinstance(leaf, Tensor))
    return max(1, min(most, NUMBERS // max(1, numbers)))


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
    return RowLikeness(*_columns(train))


def _columns(train: Examples) -> tuple[Tensor, Tensor]:
    """The means and the standard deviations of the columns; those of a constant column are one."""
    total = squares = torch.zeros(1, dtype=torch.double)
    size = at_once(train)
    for start in tracked(range(0, len(train), size), "columns"):
        rows = _flat(train.take(range(start, min(start + size, len(train)))).inputs)
        total, squares = total + rows.sum(dim=0), squares + rows.square().sum(dim=0)
    mean = total / len(train)
    deviation = (squares / len(train) - mean.square()).clamp(min=0).sqrt()
    return mean, torch.where(deviation > 1e-9 * (1 + mean.abs()), deviation, 1.0)
