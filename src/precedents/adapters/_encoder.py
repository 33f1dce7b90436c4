"""Encoder: how texts, images and rows of named fields become the tensors that a Hugging Face model is given."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import permutations
from numbers import Integral
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.functional import pad

from precedents.adapters._collator import Collator
from precedents.adapters._columns import LABELS, Columns
from precedents.data.examples import numbers
from precedents.data.inputs import Inputs, joined, stacked
from precedents.errors import InputError
from precedents.runtime.guards import Guard
from precedents.runtime.users_code import users
from precedents.runtime.wording import a_type
from precedents.seen import nearest

TOKENS, PIXELS, MASK = "input_ids", "pixel_values", "attention_mask"
TEXT, PAIR = "text", "text_pair"  # what texts are called in rows, if nothing is said
COLUMNS = 4  # of texts, of which it is tried which were tokenized
UNLIMITED = 10**9  # a tokenizer without a limit says 10**30

Fields = dict[str, Tensor]


class OwnTokenizer:
    """A copy of a tokenizer for one thread at a time: each call changes how the next ones cut and fill up."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer, self._guard = deepcopy(tokenizer), Guard()
        self.limited = tokenizer.model_max_length < UNLIMITED
        every = tokenizer.all_special_ids  # of which the unknown word is one in the text
        self.special = [token for token in every if token != tokenizer.unk_token_id]

    def __call__(self, firsts: list[str], seconds: list[str] | None) -> Mapping[str, Any]:
        """The tokens of texts, or of pairs of them."""
        with self._guard.lock:
            return cast("Mapping[str, Any]", self._tokenizer(firsts, seconds, truncation=self.limited))

    def decode(self, tokens: list[int]) -> str:
        """The text of tokens."""
        with self._guard.lock:
            return str(self._tokenizer.decode(tokens))

    def bare(self, tokens: Sequence[int]) -> list[int]:
        """Without those that stand for nothing in the text."""
        return [token for token in tokens if token not in self.special]


@dataclass(frozen=True, eq=False)
class Encoder:
    """What one model is given: the fields of an instance, and how instances share a batch."""

    main: str  # the field that every instance has: TOKENS or PIXELS
    accepted: frozenset[str]  # the fields that the model can be given
    padding: int = 0  # the token that fills up shorter texts
    tokenizer: OwnTokenizer | None = None
    processor: Any = None  # of images
    classes: Mapping[str, int] = field(default_factory=dict)  # the number of each class name
    columns: Columns = field(default_factory=Columns)  # where texts, images and labels are
    labels: Sequence[str] = LABELS  # what labels are called; the first that is there is taken
    collator: Collator | None = None  # of a Trainer or a DataLoader: makes a row of an instance

    @property
    def axes(self) -> int:
        """How many axes the main field of one instance has."""
        return 1 if self.main == TOKENS else 3

    @property
    def paired(self) -> bool:
        """Whether instances are known to be pairs of texts."""
        return len(self.columns.text) == 2

    def opened(self, item: Any, labelled: bool = True) -> tuple[Any, Any]:
        """A row, or what a row is made of, and its label; None if it has none."""
        if self.collator is not None:
            row = self.collator(item)
            item = item if isinstance(item, Mapping) and isinstance(self.columns.labels, str) else row
            return row, _first(item, self.labels)
        if labelled and isinstance(item, tuple) and len(item) == 2:
            return item
        rest = unlabelled(item) if labelled else item
        return (item, _first(item, self.labels)) if rest is item else (rest, item[-1])

    def by_order(self, item: Any) -> Fields | None:
        """Of a pair of tensors the tokens and their attention mask, by name, if that is what they are."""
        if not _are_tensors(item) or len(item) != 2 or not {TOKENS, MASK} <= self.accepted:
            return None
        tokens, mask = item
        fits = tokens.shape == mask.shape and not (tokens.is_floating_point() or mask.is_floating_point())
        return {TOKENS: tokens, MASK: mask} if fits and torch.equal(mask != 0, tokens != self.padding) else None

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

    def joined(self, batches: Sequence[Inputs]) -> Inputs:
        """Batches as one, which are filled up to the longest text of all."""
        rows = [cast("Fields", batch) for batch in batches]
        most = max(row[self.main].shape[-1] for row in rows)
        return joined([cast("Inputs", self._filled(row, most)) for row in rows])

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
        advice = " Pass classes=[...], in the order of the model's outputs." if isinstance(value, str) else ""
        near = nearest(value, list(self.classes)) if isinstance(value, str) else ""
        raise InputError(
            f"The label of instance {i} is {value!r}.{near} {reason}"
            f"Labels are class numbers 0, 1, ..., classes - 1{names}.{advice}"
        )

    def original(self, item: Any) -> str | None:
        """The text of an instance as it was given, if it is there; of a pair both."""
        if isinstance(item, str):
            return item
        texts = item if is_pair(item) else [item[name] for name in self._known(item)] if _is_row(item) else ()
        return " / ".join(texts) or None

    def text_columns(self, row: Mapping[str, Any], tokens: Any) -> tuple[str, ...]:
        """Of a row the columns that have the text: as they were said, by their names, or by its `tokens`."""
        if missing := [name for name in self.columns.text if name not in row]:
            raise InputError(
                f"text names the column {missing[0]!r}, but the instances have: {', '.join(map(str, row))}."
            )
        found = self._known(row)
        if found or tokens is None:
            return found
        names = [name for name, value in row.items() if isinstance(value, str) and name in self.inputs(row)]
        if self.tokenizer is None:
            return tuple(names) if len(names) == 1 else ()
        wanted = self.tokenizer.bare(_listed(tokens))
        tried = [(name,) for name in names[:COLUMNS]] + list(permutations(names[:COLUMNS], 2))
        texts = {each: self._bare([row[name] for name in each]) for each in tried}
        alike = [each for each in tried if texts[each] == wanted]
        return next(iter(alike or [each for each in tried if texts[each][: len(wanted)] == wanted]), ())

    def _named(self, item: Any) -> dict[str, Any]:
        """An item without names: a text, an image, or the main field itself."""
        if isinstance(item, str) and self.main == TOKENS:
            return {TEXT: item}
        if is_pair(item):
            return dict(zip((TEXT, PAIR), item, strict=True))
        if self.processor is not None and not isinstance(item, Tensor):
            return {"image": item}
        if item is None or isinstance(item, (bytes, float)):
            known = f"a row {{{self.main!r}: ...}}"
            wanted = f"a text, {known}" if self.tokenizer is not None else known
            raise InputError(f"An instance is {item!r:.40}. Pass {wanted} or a list of them.")
        if not _are_tensors(item):
            return {self.main: item}
        found = self.by_order(item)
        if found is None:
            raise InputError(
                f"An instance is {a_type(item)} of {len(item)} tensors, and the model takes fields by name. "
                f"Make each item a dict: {{{self.main!r}: ..., {MASK!r}: ..., {self.labels[0]!r}: ...}}."
            )
        return dict(found)

    def _tokenized(self, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        firsts, seconds = zip(*map(self._texts, rows), strict=True)
        assert self.tokenizer is not None
        encoding = self.tokenizer(list(firsts), None if None in seconds else list(seconds))
        return [{name: column[i] for name, column in encoding.items()} for i in range(len(rows))]

    def _processed(self, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        found = self.processor(images=[self._image(row) for row in rows], return_tensors="pt")
        return [{self.main: pixels} for pixels in found[self.main]]

    def inputs(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        """The columns of a row that are neither its label nor its id."""
        others = (*self.labels, *LABELS, self.columns.id_column)
        return tuple(name for name in row if name not in others)

    def parts(self, item: Any) -> Sequence[Any]:
        """What a row is made of, from an item without names: one text or picture, or two texts."""
        return item if self.paired and is_pair(item) else [item]

    def _known(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        """The columns of a row's text, by what was said or by the usual names; none if they are not there."""
        for names in (self.columns.text, (TEXT, PAIR), (TEXT,)):
            if names and all(isinstance(row.get(name), str) for name in names):
                return names
        return ()

    def _texts(self, row: Mapping[str, Any]) -> tuple[str, str | None]:
        """The text of a row, and the second one of a pair."""
        names = self._known(row) or [
            name for name, value in row.items() if isinstance(value, str) and name in self.inputs(row)
        ]
        known = len(names) == 1 or bool(self._known(row))
        if known and len(names) >= len(self.columns.text):
            return row[names[0]], row[names[1]] if len(names) == 2 else None
        if known:
            wanted = " and ".join(map(repr, self.columns.text))
            raise InputError(
                f"The instances are pairs of texts: pass both, as a dict with {wanted}, or as a tuple."
            )
        if not names:
            raise InputError(
                f"No text is in: {', '.join(map(str, row))}. Call the text that the model is given {TEXT!r}, "
                f"and the second of a pair {PAIR!r}; or say what they are called: text='...'."
            )
        raise InputError(
            f"Several fields are texts: {', '.join(names)}. Say which the model is given: text={names[0]!r}, "
            f"or text={tuple(names[:2])} for a pair."
        )

    def _image(self, row: Mapping[str, Any]) -> Any:
        others, said = self.inputs(row), self.columns.image
        if said is not None and said not in row and others != ("image",):
            has = ", ".join(map(str, row))
            raise InputError(f"image names the column {said!r}, but the instances have: {has}.")
        found = [name for name in (said, "image", "img") if name is not None and name in row]
        if not found and len(others) != 1:
            which = ", ".join(map(str, others))
            raise InputError(f"Which of the fields {which} is the image? Say it: image={others[0]!r}.")
        return _colours(row[(found or others)[0]])

    def _bare(self, texts: Sequence[str]) -> list[int]:
        """The tokens of a text, or of a pair, that stand for something in it."""
        assert self.tokenizer is not None
        firsts, seconds = [texts[0]], [texts[1]] if len(texts) == 2 else None
        return self.tokenizer.bare(_listed(self.tokenizer(firsts, seconds)[TOKENS][0]))

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
        room = (0, most - row[self.main].shape[-1])
        fill = {TOKENS: self.padding}
        return {
            name: pad(row[name], room, value=fill.get(name, 0)) if self._per_token(row, name) else row[name]
            for name in row
        }

    def _per_token(self, row: Fields, name: str) -> bool:
        return self.main == TOKENS and row[name].shape == row[TOKENS].shape


def _first(item: Any, names: Sequence[str]) -> Any:
    """The first of these fields that an item has; None if it has none of them."""
    return next((item[name] for name in names if name in item), None) if _is_row(item) else None


def unlabelled(item: Any) -> Any:
    """Of several tensors, of which the last is one number, those before it; all else as it is."""
    ends = isinstance(item, (tuple, list)) and len(item) > 2 and isinstance(item[-1], Tensor)
    return item[:-1] if ends and item[-1].ndim == 0 and _are_tensors(item[:-1]) else item


def _are_tensors(item: Any) -> bool:
    """Whether an item is several tensors, each with an axis."""
    several = isinstance(item, (tuple, list)) and len(item) > 0
    return several and all(isinstance(part, Tensor) and part.ndim > 0 for part in item)


def _is_row(item: Any) -> bool:
    return isinstance(item, Mapping)


def is_pair(item: Any) -> bool:
    """Whether an item is two texts."""
    return isinstance(item, (tuple, list)) and len(item) == 2 and all(isinstance(each, str) for each in item)


def _listed(tokens: Any) -> list[int]:
    return [int(token) for token in tokens]


def _colours(image: Any) -> Any:
    """A picture of PIL in three colours, as processors take it; a file's name is opened, all else is left."""
    if isinstance(image, (str, Path)):
        from PIL import Image

        with users(f"the image {str(image)!r}"), Image.open(image) as opened:
            return opened.convert("RGB")
    return (
        image.convert("RGB") if getattr(image, "mode", "RGB") != "RGB" and hasattr(image, "convert") else image
    )
