"""What turns an instance into what a person sees, to be passed as `render`: images, texts, tables."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from precedents.data.inputs import Inputs, leaves, plain_array
from precedents.errors import InputError
from precedents.runtime.wording import a_type
from precedents.views.instance import CHANNELS, Channels, Render, channels_last, unit

PADDING = ("<pad>", "[pad]")  # words, in small letters

Words: TypeAlias = Sequence[str] | Mapping[int, str] | Callable[[list[int]], str] | Any


def images(mean: Any = None, std: Any = None, channels: Channels | None = None) -> Render:
    """Images as they were before `(x - mean) / std`: one number for all channels or one for each.

    `channels` are the "first" or the "last" axis; without it, the one that has 1 or 3 entries. Without mean and
    std, values outside of 0..1 are scaled so that the smallest is black and the largest white.
    """
    if channels not in (None, *CHANNELS):
        raise InputError(f"channels is {channels!r}. Use one of: {', '.join(CHANNELS)}; or leave it out.")
    return Images(_numbers(mean, "mean"), _numbers(std, "std"), channels)


def texts(words: Words) -> Render:
    """Token numbers as a text by `words`: a vocabulary, a tokenizer that decodes, or a function of a list.

    A vocabulary is a list of words, or a mapping: from numbers to words or from words to their numbers.
    An empty word is not shown: let it be that of the padding. Nor is padding at the end, where it is known by a
    tokenizer's `pad_token_id`, or by its word: `<pad>` or `[PAD]`.
    """
    if isinstance(words, Mapping) and all(isinstance(i, int) for i in words.values()):
        words = {i: word for word, i in reversed(list(words.items()))}  # of two words of one number the first
    return Texts(words)


def tables(columns: Sequence[str], mean: Any = None, std: Any = None) -> Render:
    """Table rows with the names of their columns, as they were before `(x - mean) / std`."""
    if not isinstance(columns, Iterable):
        raise InputError(f"columns is {a_type(columns)}. Pass the names of the columns in their order.")
    return Tables(tuple(map(str, columns)), _numbers(mean, "mean"), _numbers(std, "std"))


@dataclass(frozen=True, eq=False)
class Images:
    """Renders pictures."""

    mean: Tensor | None
    std: Tensor | None
    channels: Channels | None

    def __call__(self, instance: Inputs) -> Tensor:
        """Colours [h, w, 3] within 0..1; white is 1."""
        image = channels_last(leaves(instance)[0].detach().cpu(), self.channels)
        if self.mean is None and self.std is None:
            image = unit(image)
        else:
            image = _undone(image, self.mean, self.std, "channels")
            bytes = any(part is not None and bool((part > 1).any()) for part in (self.mean, self.std))
            image = (image / 255 if bytes else image).clamp(0, 1)
        return image if image.shape[-1] == 3 else image.mean(dim=-1, keepdim=True).expand(-1, -1, 3)


@dataclass(frozen=True, eq=False)
class Texts:
    """Renders texts."""

    words: Words

    def __call__(self, instance: Inputs) -> str:
        """The words with spaces between, or what the function says."""
        numbers = self._unpadded(leaves(instance)[0].flatten().tolist())
        decode = getattr(self.words, "decode", self.words)
        if callable(decode):
            return str(decode(numbers))
        return " ".join(filter(None, map(self._word, numbers)))

    def _unpadded(self, numbers: list[int]) -> list[int]:
        """Without the padding at the end."""
        kept = len(numbers)
        while kept and self._is_padding(numbers[kept - 1]):
            kept -= 1
        return numbers[:kept]

    def _is_padding(self, number: int) -> bool:
        words: Any = self.words
        if getattr(words, "pad_token_id", None) is not None:
            return bool(number == words.pad_token_id)
        named = not callable(words) and not hasattr(words, "decode")
        return named and self._word(number).lower() in PADDING

    def word(self, number: int) -> str:
        """What one token is called."""
        decode = getattr(self.words, "decode", self.words)
        return str(decode([number])) if callable(decode) else self._word(number)

    def _word(self, number: int) -> str:
        words: Any = self.words
        if not (number in words if isinstance(words, Mapping) else number in range(len(words))):
            raise InputError(f"Token {number} has no word; there are {len(words)}. Pass the whole vocabulary.")
        return str(words[number])


@dataclass(frozen=True, eq=False)
class Tables:
    """Renders table rows."""

    columns: tuple[str, ...]
    mean: Tensor | None
    std: Tensor | None

    def __call__(self, instance: Inputs) -> dict[str, Any]:
        """The values by the names of their columns."""
        row = leaves(instance)[0].detach().cpu().flatten()
        if len(row) != len(self.columns):
            raise InputError(
                f"A row has {len(row)} values, but {len(self.columns)} columns are named. Name each."
            )
        if self.mean is not None or self.std is not None:
            row = _undone(row, self.mean, self.std, "columns")
        return dict(zip(self.columns, row.tolist(), strict=True))


def _undone(values: Tensor, mean: Tensor | None, std: Tensor | None, what: str) -> Tensor:
    """Values * std + mean along the last axis."""
    for name, part in (("mean", mean), ("std", std)):
        if part is not None and len(part) not in (1, values.shape[-1]):
            count = f"{name} has {len(part)} numbers, but there are {values.shape[-1]} {what}"
            raise InputError(f"{count}. Pass one for each, or one for all.")
    scaled = values.double() if std is None else values.double() * std
    return scaled if mean is None else scaled + mean


def _numbers(values: Any, what: str) -> Tensor | None:
    """One number or several as a vector."""
    if values is None:
        return None
    try:
        return torch.as_tensor(plain_array(values), dtype=torch.double).flatten()
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"{what} is {values!r}. Pass a number, or one for each.") from None
