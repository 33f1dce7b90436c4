"""Rows of named fields, as the Trainer of transformers takes them: read when needed, and none is kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch

from precedents.adapters._encoder import LABELS, MASK, Encoder, Fields
from precedents.data.examples import Examples, fingerprint
from precedents.data.inputs import Inputs
from precedents.errors import InputError

SIZE = 256  # rows that are looked at together at the first reading


@dataclass(frozen=True, eq=False)
class Items:
    """A user's instances by index, in whatever form they come."""

    data: Any  # a sequence of items, or a mapping of columns
    labels: Any = None  # a column of labels beside the items

    @classmethod
    def of(cls, data: Any, what: str) -> "Items":
        """From a set, a mapping of columns or a pair with labels; or an error that says what to pass."""
        splits = isinstance(data, Mapping) and [key for key in data if hasattr(data[key], "column_names")]
        if splits:
            raise InputError(
                f"The {what} has splits: {', '.join(splits)}. Pass one of them: data[{splits[0]!r}]."
            )
        if isinstance(data, tuple) and len(data) == 2:
            found = cls(*data)
        elif isinstance(data, Mapping) or (hasattr(data, "__getitem__") and hasattr(data, "__len__")):
            found = cls(data)
        else:
            raise InputError(
                f"The {what} is a {type(data).__name__}. Pass a datasets.Dataset, a list of dicts with a field "
                "'label', or a pair (texts or images, labels)."
            )
        if len(found) == 0:
            raise InputError(f"The {what} is empty. Pass at least one labelled instance.")
        if found.labels is not None and len(found.labels) != len(found):
            raise InputError(f"The {what} has {len(found)} instances, but {len(found.labels)} labels.")
        return found

    def __len__(self) -> int:
        return len(next(iter(self.data.values()), ())) if isinstance(self.data, Mapping) else len(self.data)

    def labelled(self, indices: Sequence[int]) -> list[tuple[Any, Any]]:
        """These instances, each with its label, which is None if there is none."""
        if isinstance(self.data, Mapping):
            items = [{name: column[i] for name, column in self.data.items()} for i in indices]
        else:
            several = getattr(self.data, "__getitems__", None)  # of datasets: one look into the file for all
            items = several(list(indices)) if several is not None else [self.data[i] for i in indices]
        if self.labels is not None:
            return [(item, self.labels[i]) for i, item in zip(indices, items, strict=True)]
        return [_labelled(item) for item in items]

    def items(self, indices: Sequence[int]) -> list[Any]:
        """These instances."""
        return [item for item, _ in self.labelled(indices)]


def _labelled(item: Any) -> tuple[Any, Any]:
    if isinstance(item, tuple) and len(item) == 2:
        return item
    names = [name for name in LABELS if isinstance(item, Mapping) and name in item]
    return item, item[names[0]] if names else None


@dataclass(frozen=True, eq=False)
class Encoded:
    """Instances that are encoded at every reading; one that differs from the first is an error."""

    rows: Items
    encoder: Encoder
    marks: Sequence[bytes]  # a fingerprint of each instance at the first reading
    largest: tuple[int, int]  # the two longest texts
    ragged: bool = False  # whether they differ in length

    @property
    def streamed(self) -> bool:
        """Whether the rows come from elsewhere than memory."""
        return not isinstance(self.rows.data, (list, tuple, Mapping))

    def read(self, indices: Sequence[int]) -> Inputs:
        """The instances, each compared with its first reading, padded to the longest of them."""
        fields = self.encoder.encoded(self.rows.items(indices))
        for i, each in zip(indices, fields, strict=True):
            if _mark(each) != self.marks[i]:
                raise InputError(
                    f"Instance {i} differs at its second reading. Explanations cite training instances by "
                    "index, so the data must be the same each time: switch off random transforms."
                )
        return self.encoder.padded(fields)


def _mark(fields: Fields) -> bytes:
    return fingerprint(cast("Inputs", fields), 0)


def examples(encoder: Encoder, data: Any, what: str) -> Examples:
    """Labelled instances; all are looked at once."""
    if isinstance(data, Examples):
        return data
    rows = Items.of(data, what)
    marks: list[bytes] = []
    labels: list[int] = []
    lengths: list[int] = []
    first: Fields | None = None
    for start in range(0, len(rows), SIZE):
        places = range(start, min(start + SIZE, len(rows)))
        items = rows.labelled(places)
        fields = encoder.encoded([item for item, _ in items])
        for i, each, (_, label) in zip(places, fields, items, strict=True):
            first = first or each
            _check(encoder, each, first, f"Instance {i} of the {what}")
            marks.append(_mark(each))
            lengths.append(len(each[encoder.main]))
            if label is None:
                raise InputError(
                    f"Instance {i} of the {what} has no label. Call the field {' or '.join(LABELS)}, or pass a "
                    "pair (instances, labels)."
                )
            labels.append(encoder.label(label, i))
    longest = sorted(range(len(rows)), key=lambda i: -lengths[i])
    source = Encoded(rows, encoder, marks, (longest[0], longest[min(1, len(rows) - 1)]), len(set(lengths)) > 1)
    for i in sorted({0, len(rows) // 2, len(rows) - 1}):
        source.read([i])  # a second reading, so that what is random is found before any work
    return Examples(source, torch.tensor(labels))


def _check(encoder: Encoder, fields: Fields, first: Fields, which: str) -> None:
    """Refuses what cannot be in one batch with the first instance."""
    own, wanted = encoder.outline(fields), encoder.outline(first)
    if own != wanted:
        raise InputError(
            f"{which} has the fields {_told(own)}, but the first one {_told(wanted)}. All need the same."
        )
    n, wanted_n = len(fields[encoder.main]), len(first[encoder.main])
    if n != wanted_n and MASK not in encoder.accepted:
        raise InputError(
            f"{which} has {n} tokens, the first one {wanted_n}, and the model takes no attention mask, so that "
            "padding would change what it predicts. Pass texts of one length."
        )


def _told(outline: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in outline.items())


def cases(encoder: Encoder, x: Any) -> tuple[Inputs, bool]:
    """Inputs [m, ...] of one instance or several; and whether it was one."""
    single = _axes(x, encoder) == encoder.axes
    several = [x] if single else list(x) if isinstance(x, tuple) else x
    rows = Items.of(several, "set of cases")
    fields = encoder.encoded(rows.items(range(len(rows))))
    for i, each in enumerate(fields):
        _check(encoder, each, fields[0], f"Case {i}")
    return encoder.padded(fields), single


def _axes(x: Any, encoder: Encoder) -> int:
    """How many axes a nest of numbers has; a text, a picture or a row counts as a whole instance."""
    if isinstance(x, Mapping):
        fields = [x[encoder.main]] if encoder.main in x else [x[name] for name in x if name not in LABELS]
        return _axes(fields[0], encoder) if fields else encoder.axes
    if hasattr(x, "ndim"):
        return encoder.axes if x.ndim == 2 and encoder.processor is not None else int(x.ndim)  # a grey picture
    if isinstance(x, str) or not (hasattr(x, "__getitem__") and hasattr(x, "__len__")):
        return 0 if isinstance(x, (int, float)) else encoder.axes
    return 1 + (_axes(x[0], encoder) if len(x) else 0)
