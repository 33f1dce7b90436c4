"""Encoder: how texts, images and rows of named fields become the tensors that a Hugging Face model is given."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.functional import pad

from precedents.data.examples import numbers
from precedents.data.inputs import Inputs, stacked
from precedents.errors import InputError
from precedents.runtime.guards import Guard

TOKENS, PIXELS, MASK = "input_ids", "pixel_values", "attention_mask"
LABELS = ("label", "labels", "label_ids")
UNLIMITED = 10**9  # a tokenizer without a limit says 10**30

Fields = dict[str, Tensor]


class OwnTokenizer:
    """A copy of a tokenizer for one thread at a time: each call changes how the next ones cut and fill up."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer, self._guard = deepcopy(tokenizer), Guard()
        self.limited = tokenizer.model_max_length < UNLIMITED

    def __call__(self, firsts: list[str], seconds: list[str] | None) -> Mapping[str, Any]:
        """The tokens of texts, or of pairs of them."""
        with self._guard.lock:
            return cast("Mapping[str, Any]", self._tokenizer(firsts, seconds, truncation=self.limited))

    def decode(self, tokens: list[int]) -> str:
        """The text of tokens."""
        with self._guard.lock:
            return str(self._tokenizer.decode(tokens))


@dataclass(frozen=True, eq=False)
class Encoder:
    """What one model is given: the fields of an instance, and how instances share a batch."""

    main: str  # the field that every instance has: TOKENS or PIXELS
    accepted: frozenset[str]  # the fields that the model can be given
    padding: int = 0  # the token that fills up shorter texts
    tokenizer: OwnTokenizer | None = None
    processor: Any = None  # of images
    classes: Mapping[str, int] = field(default_factory=dict)  # the number of each class name

    @property
    def axes(self) -> int:
        """How many axes the main field of one instance has."""
        return 1 if self.main == TOKENS else 3

    def encoded(self, items: Sequence[Any]) -> list[Fields]:
        """The fields of each item, without a batch axis and without padding at their end."""
        rows = [item if isinstance(item, Mapping) else self._named(item) for item in items]
        if any(self.main not in row for row in rows):
            if self.tokenizer is not None:
                rows = self._tokenized(rows)
            elif self.processor is not None:
                rows = self._processed(rows)
        return [self._fields(row) for row in rows]

    def padded(self, rows: Sequence[Fields]) -> Inputs:
        """One batch; fields with a number for each token are filled up to the longest text."""
        most = max(len(row[self.main]) for row in rows)
        return stacked([cast("Inputs", self._filled(row, most)) for row in rows])

    def outline(self, row: Fields) -> dict[str, Any]:
        """What instances of one batch must have in common: their fields, and the shapes that are not padded."""
        return {name: "tokens" if self._per_token(row, name) else tuple(row[name].shape) for name in row}

    def label(self, value: Any, i: int) -> int:
        """A class number, given as one or as the name of a class."""
        if isinstance(value, str) and value in self.classes:
            return self.classes[value]
        if isinstance(value, Tensor) and value.ndim == 0 and not value.is_floating_point():
            value = value.item()
        if isinstance(value, Integral) and not isinstance(value, bool):
            return int(value)
        several = isinstance(value, (Sequence, Tensor)) and not isinstance(value, str)
        reason = "An instance with several labels cannot be explained: it has no one class. " if several else ""
        names = f", or names of classes: {', '.join(self.classes)}" if self.classes else ""
        raise InputError(
            f"The label of instance {i} is {value!r}. {reason}"
            f"Labels are class numbers 0, 1, ..., classes - 1{names}."
        )

    def _named(self, item: Any) -> dict[str, Any]:
        """An item without names: a text, an image, or the main field itself."""
        if isinstance(item, str):
            return {"text": item}
        if self.processor is not None and not isinstance(item, Tensor):
            return {"image": item}
        return {self.main: item}

    def _tokenized(self, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        firsts, seconds = zip(*map(_texts, rows), strict=True)
        assert self.tokenizer is not None
        encoding = self.tokenizer(list(firsts), None if None in seconds else list(seconds))
        return [{name: column[i] for name, column in encoding.items()} for i in range(len(rows))]

    def _processed(self, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        found = self.processor(images=[_image(row) for row in rows], return_tensors="pt")
        return [{self.main: pixels} for pixels in found[self.main]]

    def _fields(self, row: Mapping[str, Any]) -> Fields:
        if self.main not in row:
            tool = "a tokenizer" if self.main == TOKENS else "an image processor"
            raise InputError(
                f"The model takes {self.main}, but the instances have: {', '.join(map(str, row))}. Pass {tool} "
                f"with the model, as a pair (model, {tool.split()[-1]}), or a pipeline in place of the model."
            )
        names = [self.main, *(name for name in row if name in self.accepted and name != self.main)]
        fields = {name: cast("Tensor", numbers(row[name], f"The field {name!r}")) for name in names}
        shape = tuple(fields[self.main].shape)
        if len(shape) != self.axes or 0 in shape:
            wanted = "(tokens,)" if self.main == TOKENS else "(channels, height, width)"
            raise InputError(f"The field {self.main!r} of an instance has the shape {shape}, not {wanted}.")
        return self._masked(fields) if self.main == TOKENS and MASK in self.accepted else fields

    def _masked(self, fields: Fields) -> Fields:
        """With an attention mask, and cut after the last token that it leaves."""
        mask = fields.setdefault(MASK, torch.ones_like(fields[TOKENS]))
        real = mask.nonzero()[:, 0]
        if len(real) == 0:
            raise InputError("The attention mask of an instance leaves no token. Leave out empty texts.")
        end = int(real[-1]) + 1
        return {name: fields[name][:end] if self._per_token(fields, name) else fields[name] for name in fields}

    def _filled(self, row: Fields, most: int) -> Fields:
        room = (0, most - len(row[self.main]))
        fill = {TOKENS: self.padding}
        return {
            name: pad(row[name], room, value=fill.get(name, 0)) if self._per_token(row, name) else row[name]
            for name in row
        }

    def _per_token(self, row: Fields, name: str) -> bool:
        return self.main == TOKENS and row[name].shape == row[TOKENS].shape


def _texts(row: Mapping[str, Any]) -> tuple[str, str | None]:
    """The text of a row, and the second one of a pair."""
    texts = {name: value for name, value in row.items() if isinstance(value, str) and name not in LABELS}
    if "text" in texts:
        return texts["text"], texts.get("text_pair")
    if len(texts) == 1:
        return next(iter(texts.values())), None
    found = (
        f"Several fields are texts: {', '.join(texts)}"
        if texts
        else f"No text is in: {', '.join(map(str, row))}"
    )
    raise InputError(
        f"{found}. Call the one that the model is given 'text', and the second of a pair 'text_pair'."
    )


def _image(row: Mapping[str, Any]) -> Any:
    others = [name for name in row if name not in LABELS]
    found = [name for name in others if name in ("image", "img")] or others
    if len(found) != 1:
        raise InputError(f"Which of the fields {', '.join(map(str, others))} is the image? Call it 'image'.")
    return row[found[0]]
