"""Rows of named fields, as the Trainer of transformers takes them: read when needed, and none is kept."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import torch
from torch.utils.data import IterableDataset

from precedents.adapters._columns import ID_COLUMNS
from precedents.adapters._containers import is_frame
from precedents.adapters._encoder import MASK, PAIR, TEXT, TOKENS, Encoder, Fields, is_pair, unlabelled
from precedents.data.examples import Examples, fingerprint
from precedents.data.ids import Id, checked_ids, ids_among, index_ids
from precedents.data.inputs import Inputs
from precedents.data.sources import another, chunk_of, read_again
from precedents.data.watch import same_count
from precedents.errors import InputError
from precedents.runtime.guards import Guard
from precedents.runtime.users_code import users
from precedents.runtime.wording import a_type, none_there


@dataclass(frozen=True, eq=False)
class Items:
    """A user's instances by index, in whatever form they come."""

    data: Any  # a sequence of items, or a mapping of columns
    labels: Any = None  # a column of labels beside the items
    called: Sequence[Id] | None = None  # by the index of the frame that they come from
    guard: Guard = field(default_factory=Guard, repr=False)  # they are read by one thread at a time

    @classmethod
    def of(cls, data: Any, what: str) -> "Items":
        """From a set, a mapping of columns or a pair with labels; or an error that says what to pass."""
        if isinstance(data, (IterableDataset, Iterator)) or hasattr(data, "_ex_iterable"):
            raise InputError(
                f"The {what} is {a_type(data)}, whose instances have no places by which they could be cited. "
                "Pass a datasets.Dataset, as Dataset.from_list(list(data)), or a list of dicts with a field "
                "'label'."
            )
        splits = isinstance(data, Mapping) and [key for key in data if hasattr(data[key], "column_names")]
        if splits:
            raise InputError(
                f"The {what} has splits: {', '.join(splits)}. Pass one of them: data[{splits[0]!r}]."
            )
        called = None
        if is_frame(data):
            called = index_ids(data)
            data = {str(name): list(data[name]) for name in data.columns}
        if isinstance(data, tuple) and len(data) == 2:
            column = hasattr(data[0], "iloc")
            found = cls(_listed(data[0]), _listed(data[1]), index_ids(data[0]) if column else None)
        elif not isinstance(data, (str, bytes)) and hasattr(data, "__getitem__") and hasattr(data, "__len__"):
            found = cls(_listed(data), None, index_ids(data) if hasattr(data, "iloc") else called)
        else:
            raise InputError(
                f"The {what} is {a_type(data)}. Pass a datasets.Dataset, a list of dicts with a field "
                "'label', or a pair (texts or images, labels)."
            )
        if len(found) == 0:
            raise InputError(f"{none_there(what)} Pass at least one labelled instance.")
        if found.labels is not None and len(found.labels) != len(found):
            raise InputError(f"The {what} has {len(found)} instances, but {len(found.labels)} labels.")
        return found

    def __len__(self) -> int:
        return len(next(iter(self.data.values()), ())) if isinstance(self.data, Mapping) else len(self.data)

    def items(self, indices: Sequence[int]) -> list[Any]:
        """These instances, as the data give them."""
        if isinstance(self.data, Mapping):
            return [{name: column[i] for name, column in self.data.items()} for i in indices]
        several = getattr(self.data, "__getitems__", None)  # of datasets: one look into the file for all
        with self.guard.lock, users("the data set"):
            return several(list(indices)) if several is not None else [self.data[i] for i in indices]

    @cached_property
    def plain(self) -> "Items":
        """Without what a dataset makes of its rows when they are read: as they are in its columns."""
        if hasattr(self.data, "with_format") and hasattr(self.data, "column_names"):
            return Items(self.data.with_format(None), self.labels, self.called)
        return self

    def ids(self, column: str | None, what: str) -> Sequence[Id] | None:
        """What the instances are called: by the column that was said, a column of a usual name, or an index."""
        if column is None:
            return self.known_ids(None)
        found = self._column(column)
        if found is None:
            row = self.items([0])[0]
            has = f": {', '.join(map(str, row))}" if isinstance(row, Mapping) else " no names"
            raise InputError(f"ids names the column {column!r}, but the instances of the {what} have{has}.")
        return checked_ids(found, len(self), what)

    def known_ids(self, column: str | None, unique: bool = True) -> Sequence[Id] | None:
        """The ids that a column has, or else those that are known; nothing is refused, as of cases."""
        names = ID_COLUMNS if column is None else (column,)
        found = next((each for each in map(self._column, names) if each is not None), None)
        return self.called if found is None else ids_among(found, unique)

    def _column(self, name: str) -> Sequence[Any] | None:
        """The values of a column; none if it is not there."""
        data = self.plain.data
        if isinstance(data, Mapping):
            return data.get(name)
        known = getattr(data, "column_names", None)
        if known is not None:
            return data[name][:] if name in known else None
        rows = data if isinstance(data, (list, tuple)) else ()
        every = len(rows) > 0 and all(isinstance(row, Mapping) and name in row for row in rows)
        return [row[name] for row in rows] if every else None

    def class_names(self, labels: Sequence[str]) -> list[str] | None:
        """The names of the classes, if a dataset has them for its column of labels."""
        features = getattr(self.data, "features", None)
        column = (
            next((name for name in labels if name in features), None) if isinstance(features, Mapping) else None
        )
        names = None if column is None else getattr(features[column], "names", None)  # type: ignore[index]
        return None if names is None else [str(name) for name in names]


@dataclass(frozen=True, eq=False)
class Encoded:
    """Instances that are encoded at every reading; one that differs from the first is an error."""

    rows: Items
    encoder: Encoder
    marks: Sequence[bytes]  # a fingerprint of each instance at the first reading
    largest: tuple[int, int]  # the two longest texts
    shortest: int = 0
    ragged: bool = False  # whether they differ in length

    @property
    def streamed(self) -> bool:
        """Whether the rows come from elsewhere than memory."""
        return not isinstance(self.rows.data, (list, tuple, Mapping))

    def read(self, indices: Sequence[int]) -> Inputs:
        """The instances, each compared with its first reading, padded to the longest of them."""
        items = _opened(self.encoder, self.rows, indices)
        fields = self.encoder.encoded([item for item, _ in items])
        for i, each, (_, label) in zip(indices, fields, items, strict=True):
            if _mark(each, self.encoder.label(label, i)) != self.marks[i]:
                raise another(f"Instance {i}")
        return self.encoder.padded(fields)

    def unchanged(self) -> None:
        """Refuses rows that are no longer what they were, of a few that are read again."""
        same_count(self.rows, len(self.marks), "data set")
        read_again(self, len(self.marks))

    def known_marks(self, indices: Sequence[int]) -> list[bytes] | None:  # noqa: ARG002
        """None: those of the first reading are not of what is read, which is padded."""
        return None


@dataclass(frozen=True, eq=False)
class GivenTexts:
    """Instances as a person sees them: their texts as they were given, or else what the model is fed."""

    rows: Items
    encoder: Encoder
    cases: bool = False  # whether they are such, of which a collator is given more

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int) -> Any:
        item = self.rows.plain.items([i])[0]
        item = item[0] if self.rows.labels is None and _is_labelled(item, self.encoder) else item
        text = self.encoder.original(item)
        if text is not None:
            return text
        row = _case(self.encoder, item) if self.cases else _opened(self.encoder, self.rows, [i])[0][0]
        return self.encoder.encoded([row])[0]


def _listed(values: Any) -> Any:
    """A column of pandas as a list, which is counted from 0; all else as it is."""
    return list(values) if hasattr(values, "iloc") and not is_frame(values) else values


def _is_labelled(item: Any, encoder: Encoder) -> bool:
    """Whether an item is a pair of an instance and its label, and not of two texts."""
    return isinstance(item, tuple) and len(item) == 2 and not (encoder.paired and is_pair(item))


def _opened(encoder: Encoder, rows: Items, indices: Sequence[int]) -> list[tuple[Any, Any]]:
    """Rows and their labels, which are None where there are none."""
    found = [encoder.opened(item, rows.labels is None) for item in rows.items(indices)]
    if rows.labels is None:
        return found
    return [(item, rows.labels[i]) for i, (item, _) in zip(indices, found, strict=True)]


def learned(encoder: Encoder, rows: Items) -> Encoder:
    """The encoder with what the first instance shows: which columns are its text, what a case must have."""
    if encoder.collator is not None:
        encoder.collator.template = rows.items([0])[0]
    opened, _ = _opened(encoder, rows, [0])[0]
    item = rows.plain.items([0])[0]
    if encoder.main != TOKENS or not isinstance(item, Mapping):
        pair = not isinstance(opened, (str, Mapping)) and encoder.original(opened) is not None
        return replace(encoder, columns=replace(encoder.columns, text=(TEXT, PAIR))) if pair else encoder
    tokens = opened.get(TOKENS) if isinstance(opened, Mapping) else None
    return replace(encoder, columns=replace(encoder.columns, text=encoder.text_columns(item, tokens)))


def _mark(fields: Fields, label: int) -> bytes:
    return fingerprint(cast("Inputs", fields), label)


def examples(encoder: Encoder, rows: Items, what: str) -> Examples:
    """Labelled instances; all are looked at once."""
    marks: list[bytes] = []
    labels: list[int] = []
    lengths: list[int] = []
    first: Fields | None = None
    while len(marks) < len(rows):
        size = 1 if first is None else chunk_of(sum(each.nbytes for each in first.values()))
        places = range(len(marks), min(len(marks) + size, len(rows)))
        items = _opened(encoder, rows, places)
        fields = encoder.encoded([item for item, _ in items])
        for i, each, (item, label) in zip(places, fields, items, strict=True):
            first = first or each
            _check(encoder, each, first, f"Instance {i} of the {what}")
            lengths.append(len(each[encoder.main]))
            if label is None:
                raise _unlabelled(encoder, item, f"Instance {i} of the {what}")
            labels.append(encoder.label(label, i))
            marks.append(_mark(each, labels[i]))
    longest = sorted(range(len(rows)), key=lambda i: -lengths[i])
    ends = (longest[0], longest[min(1, len(rows) - 1)]), longest[-1]
    source = Encoded(rows, encoder, marks, *ends, len(set(lengths)) > 1)
    for i in sorted({0, len(rows) // 2, len(rows) - 1}):
        source.read([i])  # a second reading, so that what is random is found before any work
    called = rows.ids(encoder.columns.id_column, what)
    return Examples(source, torch.tensor(labels), seen(encoder, rows), ids=called)


def seen(encoder: Encoder, rows: Items, cases: bool = False) -> GivenTexts | None:
    """Texts as they were given; pictures are shown as the model is fed them."""
    known = encoder.tokenizer is not None or bool(encoder.columns.text)
    return GivenTexts(rows, encoder, cases) if encoder.main == TOKENS and known else None


def _unlabelled(encoder: Encoder, item: Any, which: str) -> InputError:
    has = f" It has: {', '.join(map(str, item))}." if isinstance(item, Mapping) else ""
    if encoder.columns.labels is not None:
        return InputError(f"{which} has no {encoder.columns.labels!r}, which labels= names.{has}")
    return InputError(
        f"{which} has no label. Call the field {' or '.join(encoder.labels)}, say what it is called: "
        f"labels='...', or pass a pair (instances, labels).{has}"
    )


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
    rows, single = asked(encoder, x)
    fields = encoder.encoded([_case(encoder, item) for item in rows.items(range(len(rows)))])
    for i, each in enumerate(fields):
        _check(encoder, each, fields[0], f"Case {i}")
    return encoder.padded(fields), single


def asked(encoder: Encoder, x: Any) -> tuple[Items, bool]:
    """The cases that a user passes, as items; and whether it was one."""
    if is_row(encoder, x):
        x = x.to_dict()
    elif getattr(x, "ndim", 0) == 1 and any(isinstance(each, str) for each in x):  # a column of texts
        return Items.of(x if hasattr(x, "iloc") else x.tolist(), "set of cases"), False
    x = encoder.by_order(unlabelled(x)) or x
    single = _axes(x, encoder, encoder.paired) == encoder.axes
    several = [x] if single else list(x) if isinstance(x, tuple) else x
    return Items.of(several, "set of cases"), single


def is_row(encoder: Encoder, x: Any) -> bool:
    """Whether it is a row of a frame of pandas, which has names for its places, and no column of texts."""
    if is_frame(x) or not (hasattr(x, "to_dict") and hasattr(x, "index")):
        return False
    return any(isinstance(key, str) for key in x.index) and x.name not in (TEXT, PAIR, *encoder.columns.text)


def _case(encoder: Encoder, item: Any) -> Any:
    """The row of a case, by the collator where there is one; a label that came with it is left away."""
    if _is_labelled(item, encoder):
        item = item[0]
    item = unlabelled(item)
    if encoder.collator is None or (isinstance(item, Mapping) and encoder.main in item):
        return item
    template = encoder.collator.template
    if not isinstance(template, Mapping):
        return encoder.collator((item, *template[1:]) if isinstance(template, tuple) else item)
    if encoder.main in template:  # what is collated was encoded before, and so is the case
        return item
    names = encoder.columns.text or encoder.inputs(template)
    given = item if isinstance(item, Mapping) else dict(zip(names, encoder.parts(item), strict=False))
    if missing := [name for name in names if name not in given]:
        raise InputError(
            f"A case has no {missing[0]!r}, which the data collator is given of training instances: "
            f"{', '.join(map(str, template))}."
        )
    return encoder.collator({**template, **given})  # its label is another's, and nobody looks at it


def _axes(x: Any, encoder: Encoder, paired: bool = False) -> int:
    """How many axes a nest of numbers has; a text, a pair, a picture or a row counts as a whole instance."""
    if isinstance(x, Mapping):
        known = (encoder.main, *encoder.columns.text, encoder.columns.image, TEXT)
        others = [name for name in x if name not in encoder.labels]
        fields = [x[name] for name in (*known, *others) if name in x]
        return _axes(fields[0], encoder) if fields else encoder.axes
    if hasattr(x, "ndim"):
        return encoder.axes if x.ndim == 2 and encoder.processor is not None else int(x.ndim)  # a grey picture
    if isinstance(x, str) or not (hasattr(x, "__getitem__") and hasattr(x, "__len__")):
        return 0 if isinstance(x, (int, float)) else encoder.axes
    if paired and is_pair(x):
        return encoder.axes
    return 1 + (_axes(x[0], encoder, paired) if len(x) else 0)
