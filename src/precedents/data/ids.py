"""Ids: what instances are called by their owner: by a frame's index, by a column, or as they are given.

An id is a text or a whole number; a person sees a text as it is and a number as #57. Where instances have none,
their places are shown so.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import date
from operator import index
from typing import Any, TypeAlias

from torch.utils.data import DataLoader, default_collate

from precedents.errors import InputError
from precedents.runtime.given import whole_number
from precedents.runtime.users_code import users
from precedents.runtime.wording import a_type
from precedents.seen import clipped

Id: TypeAlias = str | int
ADVICE = "Pass one text or whole number for each instance, as list(map(str, ids))"
SOME = 3  # ids that a message has as examples


def shown_id(own: Id) -> str:
    r"""An id as a person sees it.

    >>> shown_id(57), shown_id("order-57")
    ('#57', 'order-57')
    """
    return f"#{own}" if isinstance(own, int) else clipped(own)


def checked_ids(ids: Any, count: int, what: str) -> list[Id]:
    """The ids of so many instances, or an error that says what is wrong with them.

    >>> checked_ids(["a", "b"], 2, "training set")
    ['a', 'b']
    """
    if isinstance(ids, (str, bytes, Set, Mapping)) or not isinstance(ids, Iterable):
        raise InputError(f"ids is {a_type(ids)}. {ADVICE}, or the name of the column that has them.")
    values = _listed(ids)
    if len(values) != count:
        raise InputError(f"There are {len(values)} ids, but the {what} has {count} instances. {ADVICE}.")
    places: dict[Id, int] = {}
    for i, value in enumerate(values):
        own = _id(value)
        if own is None:
            raise InputError(f"The id of instance {i} of the {what} is {clipped(repr(value))}. {ADVICE}.")
        if own in places:
            raise InputError(
                f"The id {clipped(repr(own))} is that of instances {places[own]} and {i} of the {what}. Ids "
                "tell instances apart: pass another for each, or leave ids= out, and their places are shown."
            )
        places[own] = i
    return list(places)


def place_of(own: Any, ids: Sequence[Id] | None, count: int, name: str) -> int:
    """The place of a training instance among so many: a text is its id, and a number always its place.

    `name` is what the argument is called.

    >>> place_of("b", ["a", "b"], 2, "j"), place_of(0, ["a", "b"], 2, "j")
    (1, 0)
    """
    own = own.item() if getattr(own, "ndim", None) == 0 else own  # of an array or a tensor
    advice = f"Pass the place of a training instance, from 0 to {count - 1}"
    if not isinstance(own, str) or ids is None:
        return whole_number(own, name, 0, count - 1, advice)
    if own not in ids:
        some = ", ".join(clipped(repr(each)) for each in ids[:SOME])
        raise InputError(
            f"No training instance has the id {clipped(own)!r}. Ids are: {some}, ... {advice}, or an id."
        )
    return ids.index(own)


def ids_among(values: Iterable[Any], unique: bool = True) -> list[Id] | None:
    """The ids that values are; none if some are missing, if they are just 0, 1, ..., or not all different."""
    found = [_id(_written(value)) for value in values]
    if None in found or found == list(range(len(found))) or (unique and len(set(found)) < len(found)):
        return None
    return found  # type: ignore[return-value]


def index_ids(frame: Any, unique: bool = True) -> list[Id] | None:
    """The ids in the index of a frame or a column of pandas; none of what has none."""
    own = getattr(frame, "index", None)
    return None if own is None or callable(own) else ids_among(_listed(own), unique)


def _listed(values: Any) -> list[Any]:
    """With the plain values of Python, where an array or a tensor has them."""
    return list(values.tolist()) if hasattr(values, "tolist") and _kind(values) != "M" else list(values)


def _kind(values: Any) -> str:
    return str(getattr(getattr(values, "dtype", None), "kind", ""))


def _id(value: Any) -> Id | None:
    """The id that a value is; none if it is neither a text nor a whole number, or an empty text."""
    if isinstance(value, str):
        return str(value) if value.strip() else None
    try:
        return None if isinstance(value, bool) else index(value)
    except TypeError:
        return None


def _written(value: Any) -> Any:
    """What an index may have besides, as a text: dates, periods, and several levels."""
    if isinstance(value, tuple):
        return " / ".join(str(_written(part)) for part in value)
    if isinstance(value, date) and value == value:
        return str(value).removesuffix(" 00:00:00")
    return str(value) if type(value).__name__ in ("Period", "UUID", "Interval", "Timedelta") else value


def without_ids(data: Any, column: str, what: str) -> tuple[Any, Sequence[Any]]:
    """The data without the ids, and the ids: a column, the key of each item, or an attribute of a dataset."""
    if isinstance(data, DataLoader):
        return _without_ids(data, column, what)
    pair = isinstance(data, (tuple, list)) and len(data) == 2
    if pair and column in _columns(data[0]):
        x, found = without_ids(data[0], column, what)
        return (x, data[1]), found
    if column in _columns(data):
        if isinstance(data, Mapping):
            return {name: values for name, values in data.items() if name != column}, data[column]
        return data[[name for name in data.columns if name != column]], data[column]
    own = getattr(data, column, None)
    if own is not None and not callable(own):
        return data, own
    if not pair and hasattr(data, "__getitem__") and hasattr(data, "__len__") and len(data):
        with users(f"item 0 of the {what}"):
            first = data[0]
        if isinstance(first, Mapping) and column in first:
            return Unnamed(data, column), [_plain(data[i][column]) for i in range(len(data))]
    known = list(_columns(data[0] if pair else data))
    has = f"It has: {', '.join(map(str, known))}. " if known else ""
    raise InputError(
        f"ids is {column!r}, but the {what} has neither a column, a key of its items nor an attribute of that "
        f"name. {has}Pass the ids themselves: one text or whole number for each instance."
    )


def _without_ids(loader: DataLoader[Any], column: str, what: str) -> tuple[Any, Sequence[Any]]:
    """Of its dataset; a collate_fn of the user's own gets the items as they are."""
    data, found = without_ids(loader.dataset, column, what)
    if data is loader.dataset or loader.collate_fn is not default_collate:
        return loader, found
    if loader.batch_sampler is None:
        return DataLoader(data, batch_size=None, sampler=loader.sampler), found
    return DataLoader(data, batch_sampler=loader.batch_sampler), found


class Unnamed:
    """A dataset of dicts without the key that has their ids."""

    def __init__(self, dataset: Any, key: str) -> None:
        self.dataset, self.key = dataset, key

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, i: int) -> dict[str, Any]:
        return {name: value for name, value in self.dataset[i].items() if name != self.key}


def _columns(data: Any) -> Sequence[Any]:
    """The names of the columns of a frame or a mapping of them."""
    return list(data) if isinstance(data, Mapping) else list(getattr(data, "columns", ()))


def _plain(value: Any) -> Any:
    """A number of Python, where a tensor or an array has one."""
    return value.item() if hasattr(value, "item") else value
