"""Cases of a set with a collate_fn: items with or without a label, or a batch as the collate_fn gives it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from precedents.data.collation import Collation, Member, mark_of, plain
from precedents.data.inputs import Collated, Inputs, MadeBatch, leaves
from precedents.data.labels import ItemForm
from precedents.data.layouts import (
    AlongAxis,
    InARow,
    Jagged,
    Layout,
    OneByOne,
    Packed,
    Shared,
    Starts,
    changed,
    fed,
    leaves_of,
    lengths_in,
    spans_in,
)
from precedents.errors import InputError
from precedents.runtime.wording import a_type

TENSORS = (AlongAxis, InARow, Starts)


def collated_cases(x: Any, collation: Collation) -> tuple[Collated, bool]:
    """One case or several, as items or as a batch; and whether it was one."""
    if isinstance(x, Collated):
        return (x, False) if x.shape else (x[None], True)
    item = _item(x, collation)
    if item is not None:
        return Collated([collation.member(item[0], "the case")], collation), True
    several = _several(x, collation)
    if several and not _is_batch(x, collation):
        return Collated(
            [collation.member(each, f"case {i}") for i, each in enumerate(several)], collation
        ), False
    ready = _ready(plain(x), collation)
    if ready is not None:
        return ready, False
    raise InputError(
        f"What was passed as cases is {_described(x)}. Pass one item as the {collation.what} has them, which "
        f"is {_described(collation.first)}, with or without its label; a list of items; or a batch as the "
        "collate_fn gives it."
    )


def _item(x: Any, collation: Collation) -> tuple[Any] | None:
    """The item that a case is, with a label of another where it has none; none if it is no item."""
    first, form, key = collation.first, collation.items, collation.called
    own = {key: first[key]} if isinstance(first, Mapping) and key in first else {}
    x = {**own, **x} if isinstance(x, Mapping) else x  # a case needs no id
    if _alike(x, first):
        return (x,)
    rest = collation.unlabelled(first)
    if own and isinstance(rest, Mapping) and not isinstance(x, Mapping) and len(rest) == 2:
        return _item({name: x for name in rest if name != key}, collation)  # the one field beside the id
    if form is not None and isinstance(rest, Mapping) and len(rest) == 1 and not isinstance(x, Mapping):
        x, rest = dict.fromkeys(rest, x), rest  # the one field that it has
    return (_labelled(x, first, form),) if form is not None and _alike(x, rest) else None


def _labelled(x: Any, first: Any, form: ItemForm) -> Any:
    """What an item is without its label, with the label of the first item: predictions take its place."""
    if isinstance(first, Mapping):
        return {**x, form.label: first[form.label]}
    assert isinstance(form.label, int)
    parts = list(x) if len(first) > 2 else [x]
    parts.insert(range(len(first))[form.label], first[form.label])
    return type(first)(parts)


def _several(x: Any, collation: Collation) -> list[Any]:
    """The items that several cases are; none if they are no items."""
    if isinstance(x, (str, bytes, Mapping)) or not (hasattr(x, "__getitem__") and hasattr(x, "__len__")):
        return []
    if isinstance(x, Tensor) and (x.ndim == 0 or x.is_nested):
        return []
    found = [_item(x[i], collation) for i in range(len(x))]
    return [] if None in found else [each[0] for each in found if each is not None]


def _alike(x: Any, item: Any) -> bool:
    """Whether a value is made as an item is."""
    if isinstance(item, Mapping):
        return isinstance(x, Mapping) and set(item) <= set(x) and all(_alike(x[key], item[key]) for key in item)
    if isinstance(item, (Tensor, np.ndarray)):
        floats = [
            each.dtype.is_floating_point if isinstance(each, Tensor) else each.dtype.kind == "f"
            for each in (x, item)
            if isinstance(each, (Tensor, np.ndarray))
        ]
        return len(floats) == 2 and x.ndim == item.ndim and (x.ndim == 0 or floats[0] == floats[1])
    if isinstance(item, (tuple, list)):
        if not isinstance(x, tuple if isinstance(item, tuple) else list) or isinstance(x, PackedSequence):
            return False
        if _is_sequence(item):
            return len(x) == 0 or (_is_sequence(x) and _alike(x[0], item[0]))
        return len(x) == len(item) and all(map(_alike, x, item))
    if isinstance(item, (int, float, np.number)):
        return isinstance(x, (int, float, np.number)) or (isinstance(x, Tensor) and x.ndim == 0)
    return isinstance(x, type(item))


def _is_sequence(item: Sequence[Any]) -> bool:
    """Whether it is a list of numbers or of words, of any length."""
    kinds = {str if isinstance(part, str) else float for part in item if isinstance(part, (str, int, float))}
    return isinstance(item, list) and len(kinds) == 1 and all(isinstance(p, (str, int, float)) for p in item)


def _is_batch(x: Any, collation: Collation) -> bool:
    """Whether what could be several items is a batch: a tuple; or a list as batches are, with their labels."""
    try:
        if isinstance(x, tuple):
            return _ready(plain(x), collation) is not None
        listed = collation.listed and isinstance(x, list) and all(isinstance(part, Tensor) for part in x)
        return listed and _fits(collation.layout, x) and ReadyBatch(collation.layout, x).count > 0
    except (InputError, RuntimeError):  # its parts do not belong together
        return False


def _ready(x: Any, collation: Collation) -> Collated | None:
    """A batch that is there already, with or without its labels; none if it is none."""
    layout, whole = collation.inner, collation.layout
    if collation.form.label is not None and _fits(whole, x):
        x = collation.form.parts(x, "The batch of cases")[0]
    elif not _fits(layout, x):
        return None
    batch = ReadyBatch(layout, x)
    return Collated([batch.member(i) for i in range(batch.count)], batch)


def _fits(layout: Layout, x: Any) -> bool:
    """Whether a value has the form of a batch."""
    if isinstance(layout, dict):
        return (
            isinstance(x, Mapping)
            and set(layout) <= set(x)
            and all(_fits(layout[key], x[key]) for key in layout)
        )
    if isinstance(layout, tuple):
        tied = isinstance(x, (tuple, list)) and not isinstance(x, PackedSequence)
        return tied and len(x) == len(layout) and all(map(_fits, layout, x))
    if isinstance(layout, TENSORS):
        plain_tensor = isinstance(x, Tensor) and not x.is_nested and x.ndim == layout.axes
        return plain_tensor and (not isinstance(layout, Starts) or _begin(x))
    if isinstance(layout, Jagged):
        return isinstance(x, Tensor) and x.is_nested
    kinds = {Packed: PackedSequence, OneByOne: (list, tuple)}
    return isinstance(x, kinds.get(type(layout), object))  # type: ignore[arg-type]


def _begin(starts: Tensor) -> bool:
    """Whether numbers are where instances begin: the first at 0, and none before another."""
    return len(starts) == 0 or (int(starts[0]) == 0 and bool((starts.diff() >= 0).all()))


@dataclass(frozen=True, eq=False)
class ReadyBatch:
    """A batch that came as one; its instances may be taken apart."""

    layout: Layout
    batch: Any

    @property
    def count(self) -> int:
        """How many instances there are."""
        counts = {len(column) for column in self._columns if column is not None}
        if len(counts) != 1 or 0 in counts:
            raise InputError(f"The batch of cases has inputs of different lengths: {sorted(counts)}.")
        return counts.pop()

    @property
    def _columns(self) -> list[Sequence[Any] | None]:
        lengths = lengths_in(self.layout, self.batch)
        return [way.apart(part, lengths) for way, part in leaves_of(self.layout, self.batch)]

    def member(self, i: int) -> Member:
        """The instance at a place."""
        draft = Member(i)
        alone = self.alone(draft)
        return Member(i, numbers=sum(leaf.numel() for leaf in leaves(alone)), mark=mark_of(alone))

    def made(self, members: Sequence[Member]) -> MadeBatch:
        """A batch of some of the instances; of all of them it is the one that came."""
        places, lengths = [member.item for member in members], lengths_in(self.layout, self.batch)
        batch = self.batch
        if places != list(range(self.count)):
            batch = changed(lambda way, part: way.taken(part, places, lengths), self.layout, batch)
        spans = spans_in(self.layout, batch, [] if lengths is None else [lengths[places]])
        return MadeBatch(fed(self.layout, batch), None, spans)

    def alone(self, member: Member) -> Inputs:
        """An instance without a batch's axis, and without its padding."""
        lengths = lengths_in(self.layout, self.batch)

        def own(way: Shared, part: Any) -> Any:
            found = way.apart(part, lengths)
            return None if found is None else _bare(way, found[member.item])

        return changed(own, self.layout, self.batch)


def _bare(way: Shared, row: Any) -> Any:
    """A row without what fills it up at its end."""
    if not isinstance(way, AlongAxis) or way.padding is None or row.ndim != 1:
        return row
    real = (row != way.padding).nonzero().flatten()
    return row[: int(real[-1]) + 1 if len(real) else 0]


def _described(x: Any) -> str:
    """A value in words, with its parts."""
    if isinstance(x, Mapping):
        return f"{a_type(x)} with {', '.join(map(repr, x))}"
    if isinstance(x, Tensor) and not x.is_nested:
        return f"a tensor {tuple(x.shape)} of {x.dtype}"
    if isinstance(x, tuple) and not isinstance(x, PackedSequence) and len(x) <= 5:
        return f"{a_type(x)} of {', '.join(map(_described, x))}" if x else "an empty tuple"
    return f"{a_type(x)} of {a_type(x[0])}" if isinstance(x, list) and x else a_type(x)
