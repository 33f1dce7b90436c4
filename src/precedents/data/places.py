"""Where the labels are in batches that a collate_fn makes, and in the items that it is given.

They may stand first or last, beside lengths and offsets. Offsets and lengths are told from labels by what they
say; what cannot be told is asked for.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from precedents.data.inputs import leaves
from precedents.data.labels import KEYS, ItemForm
from precedents.data.layouts import AlongAxis, Layout, OneByOne
from precedents.errors import InputError
from precedents.runtime.wording import a_type

PartPlace = str | int  # of a part: a key or a position


def label_form(layout: Layout, ones: Sequence[Any], items: Sequence[Any], labels: Any, what: str) -> ItemForm:
    """Where the labels are in a batch: where `labels` says, or in the one part that can be labels.

    `ones` are the batches of single items.
    """
    places = _places(layout)
    if isinstance(labels, (str, int)):
        within = isinstance(labels, int) and isinstance(layout, tuple) and -len(places) <= labels < len(places)
        place = places[labels] if within else labels  # type: ignore[index]
        if place not in places:
            raise InputError(
                f"labels is {labels!r}, but the batches that the collate_fn of the {what} makes are "
                f"{_described(ones[0])}. Name one of its parts: {', '.join(map(repr, places))}."
            )
        return ItemForm(place)
    if labels is not None:
        return ItemForm(None)
    found = _found(layout, ones, items)
    if len(found) == 1:
        return ItemForm(found[0])
    said = " or ".join(map(repr, found))
    wrong = f"the labels could be part {said}" if found else "no part of them is a class number for each item"
    raise InputError(
        f"The batches that the collate_fn of the {what} makes are {_described(ones[0])}: {wrong}. Say "
        f"which part has the labels: pr.Examples.of(loader, labels={said.partition(' or ')[0] or '...'}), "
        "or pass the class numbers themselves: labels=y."
    )


def _places(layout: Layout) -> list[PartPlace]:
    return (
        list(layout)
        if isinstance(layout, dict)
        else list(range(len(layout) if isinstance(layout, tuple) else 0))
    )


def _found(layout: Layout, ones: Sequence[Any], items: Sequence[Any]) -> list[PartPlace]:
    """The parts that could be labels, the likeliest alone if it can be told."""
    places = _places(layout)
    named: list[PartPlace] = [place for place in places if place in KEYS]
    if len(named) == 1:
        return named
    values = {place: _values(layout[place], [one[place] for one in ones]) for place in places}
    known = {place: own for place, own in values.items() if own is not None}
    kept = {place: own for place, own in known.items() if not _are_lengths(own, place, ones)} or known
    if len(kept) > 1 and len(places) == 2 and 1 in kept:
        return [1]  # a pair (x, y)
    told = [place for place, own in kept.items() if _passed_on(own, items)]
    return told if len(kept) > 1 and len(told) == 1 else list(kept)


def _values(way: Any, parts: Sequence[Any]) -> list[float] | None:
    """The one number of each part that is whole and not negative; none if some are not."""
    if not isinstance(way, (AlongAxis, OneByOne)):
        return None
    found = [_number(part[0] if isinstance(part, (list, tuple)) else part) for part in parts]
    if any(value is None or value < 0 or value != int(value) for value in found):
        return None
    return [value for value in found if value is not None]


def _number(value: Any) -> float | None:
    """A number that stands alone."""
    if isinstance(value, (bool, str)) or value is None:
        return None
    if isinstance(value, (Tensor, np.ndarray)):
        return float(value.reshape(-1)[0]) if value.ndim < 3 and value.reshape(-1).shape[0] == 1 else None
    return float(value) if isinstance(value, (int, float, np.number)) else None


def _are_lengths(values: Sequence[float], place: PartPlace, ones: Sequence[Any]) -> bool:
    """Whether the numbers are how long the items are: the length of an axis of another part."""
    for other in _places_of(ones[0]):
        sizes = [_axes(one[other]) for one in ones] if other != place else [()]
        for axis in range(min(map(len, sizes))):
            if [float(each[axis]) for each in sizes] == list(values) and (
                max(values) > 1 or len(set(values)) > 1
            ):
                return True
    return False


def _places_of(batch: Any) -> list[PartPlace]:
    return list(batch) if isinstance(batch, Mapping) else list(range(len(batch)))


def _axes(part: Any) -> tuple[int, ...]:
    """The lengths of the axes of a part of a batch."""
    if isinstance(part, PackedSequence):
        return tuple(part.data.shape)
    if isinstance(part, (list, tuple)) and len(part) == 1:
        return _axes(part[0])
    if isinstance(part, (tuple, list, Mapping)):
        return tuple(size for leaf in leaves(part) for size in _axes(leaf))
    if isinstance(part, Tensor):
        return tuple(part.values().shape if part.is_nested else part.shape)
    return ()


def _passed_on(values: Sequence[float], items: Sequence[Any]) -> bool:
    """Whether a part of the items is these numbers."""
    return any([_number(part) for part in column] == list(values) for column in _columns(items).values())


def _columns(items: Sequence[Any]) -> dict[PartPlace, list[Any]]:
    """The parts of items, by their place."""
    first = items[0]
    if not isinstance(first, (Mapping, tuple, list)) or (
        isinstance(first, list) and len(set(map(len, items))) > 1
    ):
        return {}
    return {place: [item[place] for item in items] for place in _places_of(first)}


def item_form(items: Sequence[Any], numbers: Sequence[float | None]) -> ItemForm | None:
    """Where the label is in an item; none, if that cannot be told.

    It is called so, is the class number, or decides on it and has fewer values than there are items.
    """
    columns = _columns(items)
    if len(columns) < 2:
        return None
    named = [place for place in columns if place in KEYS]
    if len(named) == 1:
        return ItemForm(named[0])
    own = {place: [_key(part) for part in column] for place, column in columns.items()}
    scalar = {place: keys for place, keys in own.items() if None not in keys and _decides(keys, numbers)}
    same = [place for place, keys in scalar.items() if keys == list(numbers)]
    few = [place for place, keys in scalar.items() if len(set(keys)) < len(items)]
    whole = [place for place, keys in scalar.items() if not any(isinstance(key, str) for key in keys)]
    for found in (same, few, whole):
        if len(found) == 1:
            return ItemForm(found[0])
    return None


def _key(part: Any) -> Any:
    """What a label can be in an item: a text, a truth value or a number."""
    return part if isinstance(part, (str, bool)) else _number(part)


def _decides(keys: Sequence[Any], numbers: Sequence[float | None]) -> bool:
    """Whether equal keys have equal numbers."""
    return len(set(zip(keys, numbers, strict=True))) == len(set(keys))


def _described(batch: Any) -> str:
    """A batch of one item in words."""
    if isinstance(batch, Mapping):
        return (
            "dicts of " + ", ".join(f"{key!r} {_shape(part)}" for key, part in batch.items()) + " for one item"
        )
    if isinstance(batch, (tuple, list)) and not isinstance(batch, PackedSequence):
        return "tuples of " + ", ".join(map(_shape, batch)) + " for one item"
    return f"{a_type(batch)} by itself"


def _shape(part: Any) -> str:
    return str(tuple(part.shape)) if isinstance(part, Tensor) and not part.is_nested else a_type(part)
