"""Collation: a user's collate_fn, used as it is: items in, the batch that the model is fed out.

What its batches are is learned from a few: where the labels are, how instances lie in them, and whether it
brings them into another order. An instance must be the same in every batch, but for padding.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from precedents.data.inputs import Inputs, MadeBatch, leaves, plain_array
from precedents.data.labels import ItemForm, class_number
from precedents.data.layouts import (
    InARow,
    Layout,
    begins,
    fed,
    learned,
    leaves_of,
    lengths_in,
    of_one,
    parted,
    spans_in,
)
from precedents.data.places import item_form, label_form
from precedents.errors import InputError
from precedents.runtime.guards import Guard
from precedents.runtime.users_code import users

MIXING = (
    "Relevance is of instances by themselves: let it draw nothing, keep every item, and let no item depend on "
    "the others of its batch but for padding."
)

UNKNOWN_FORM = ItemForm(None)


@dataclass(frozen=True, eq=False)
class Member:
    """An instance as its owner has it, and what its collate_fn makes of it alone."""

    item: Any
    label: int = 0  # as the batch of it alone says; 0 if batches have none
    sizes: tuple[int, ...] = ()  # positions in each part that has those of all instances in one row
    numbers: int = 0  # that the model is fed
    mark: bytes = b""  # differs when what the model is fed differs
    raw: bytes | None = None  # differs when the item differs; none if that cannot be told


@dataclass(frozen=True, eq=False)
class Collation:
    """A collate_fn, and what is known of its batches."""

    function: Any
    what: str  # the set is called in messages
    first: Any = field(repr=False)  # an item
    form: ItemForm = UNKNOWN_FORM  # where the labels are in a batch
    layout: Layout = None  # of a whole batch
    items: ItemForm | None = None  # where the label is in an item, if that is known
    called: str | None = None  # the key of an item that has its id, if it is known
    listed: bool = False  # whether a batch is a list of its parts
    reorders: bool = False  # whether batches have the instances in another order
    guard: Guard = field(default_factory=Guard, repr=False)

    @classmethod
    def of(cls, function: Any, items: Sequence[Any], what: str, labels: Any) -> "Collation":
        """Learned from what the function makes of some items; `labels` says where labels are, or nothing."""
        items = list(items) if len(items) > 1 else [items[0], items[0]]
        draft = cls(function, what, items[0])
        ones, batch = [draft.batch([item]) for item in items], draft.batch(items)
        try:
            layout = learned(batch, ones)
        except (LookupError, TypeError, ValueError):
            raise draft.mixing("makes batches of several forms") from None
        form = label_form(layout, ones, items, labels, what)
        made = replace(draft, form=form, layout=layout, listed=isinstance(batch, list))
        members = [made.member(item, "an item") for item in items]
        made = replace(made, items=item_form(items, [float(member.label) for member in members]))
        members.sort(key=lambda member: member.numbers)
        both = [made.order(made.batch([m.item for m in some]), some) for some in (members, members[::-1])]
        return replace(made, reorders=any(order is not None for order in both))

    def batch(self, items: Sequence[Any]) -> Any:
        """What the function makes of items, with arrays as tensors; one thread at a time."""
        given = [
            copy(item) if isinstance(item, (dict, list)) else item for item in items
        ]  # it may take parts out
        with self.guard.lock, users(f"the collate_fn of the {self.what}", "It is called with a list of items"):
            return plain(self.function(given))

    def member(self, item: Any, where: str) -> Member:
        """An item as an instance."""
        x, y = self._parts(self.batch([item]))
        alone = of_one(self.inner, x)
        label = 0 if self.form.label is None else class_number(_listed(y)[0], where)
        sizes = tuple(len(part) for way, part in leaves_of(self.inner, x) if isinstance(way, InARow))
        numbers = sum(leaf.numel() for leaf in leaves(alone))
        return Member(item, label, sizes, numbers, mark_of(alone), item_mark(item))

    def made(self, members: Sequence[Member]) -> MadeBatch:
        """The batch of these instances, without its labels."""
        batch = self.batch([member.item for member in members])
        x, y = self._parts(batch)
        labels = [] if y is None else [class_number(each, f"the {self.what}") for each in _listed(y)]
        told = y is None or labels == [member.label for member in members]
        order = self.order(batch, members) if self.reorders or not told else None
        rows = range(len(members)) if order is None else order.argsort().tolist()
        sizes = torch.tensor([members[i].sizes for i in rows]).T  # of each part
        return MadeBatch(fed(self.inner, x), order, spans_in(self.inner, x, list(sizes)))

    def alone(self, member: Member) -> Inputs:
        """What the model is fed of one instance, without a batch's axis."""
        return of_one(self.inner, self._parts(self.batch([member.item]))[0])

    def unlabelled(self, item: Any) -> Any:
        """An item without its label, if it is known where that is."""
        return item if self.items is None else self.items.parts(item, "The item")[0]

    @cached_property
    def inner(self) -> Layout:
        """The layout of a batch without its labels."""
        return self._parts(self.layout)[0]

    def _parts(self, batch: Any) -> tuple[Any, Any]:
        return self.form.parts(batch, f"A batch of the {self.what}")

    def order(self, batch: Any, members: Sequence[Member]) -> Tensor | None:
        """For each instance its row in the batch; none: the same.

        The longest come first: so what begins as a shorter one does has its row already.
        """
        ones = [self._apart(self.batch([member.item]), [member])[0] for member in members]
        rows = self._apart(batch, members)
        if len(rows) == len(ones) and all(map(_is, rows, ones)):
            return None
        places, free = [-1] * len(ones), list(range(len(rows)))
        for i in sorted(range(len(ones)), key=lambda i: -members[i].numbers):
            found = next((j for j in free if _is(rows[j], ones[i])), None)
            if found is None:
                raise self.mixing("makes something else of an item in a batch than of the same item alone")
            places[i] = found
            free.remove(found)
        return torch.tensor(places)

    def _apart(self, batch: Any, members: Sequence[Member]) -> list[list[Any]]:
        """What of a batch belongs to each of its instances."""
        lengths = lengths_in(self.layout, batch)
        if lengths is None and members[0].sizes:
            lengths = torch.tensor([member.sizes[0] for member in members])
        try:
            return parted(self.layout, batch, lengths)
        except (LookupError, TypeError, ValueError):
            raise self.mixing(f"makes something else of {len(members)} items than of others") from None

    def mixing(self, does: str) -> InputError:
        """That instances are not the same in every batch."""
        return InputError(f"The collate_fn of the {self.what} {does}. {MIXING}")


def _is(row: Sequence[Any], one: Sequence[Any]) -> bool:
    return all(map(begins, row, one))


def plain(batch: Any) -> Any:
    """Dicts, tuples and lists with tensors for what is an array; objects as what they hold."""
    if isinstance(batch, Tensor):
        return batch.detach()
    if isinstance(batch, (PackedSequence, str, int, float, type(None))):
        return batch
    if isinstance(batch, np.ndarray):
        return torch.as_tensor(plain_array(batch)) if batch.dtype.kind in "biuf" else list(batch)
    if hasattr(batch, "_asdict"):
        batch = batch._asdict()
    if isinstance(batch, Mapping):
        return {key: plain(part) for key, part in batch.items()}
    if isinstance(batch, (tuple, list)):
        return type(batch)(map(plain, batch))
    return {key: plain(part) for key, part in vars(batch).items()} if hasattr(batch, "__dict__") else batch


def _listed(y: Any) -> list[Any]:
    """The labels of a batch one by one."""
    return (
        list(y.reshape(len(y), -1))
        if isinstance(y, Tensor) and y.ndim
        else [y]
        if isinstance(y, Tensor)
        else list(y)
    )


def mark_of(nest: Any) -> bytes:
    """Eight bytes that differ when a value of a nest differs."""
    digest = blake2b(digest_size=8)
    _written(nest, digest)
    return digest.digest()


def item_mark(item: Any) -> bytes | None:
    """Eight bytes that differ when an item differs; none of what is not made of texts, numbers and tensors."""
    return mark_of(item) if _is_plain(item) else None


def _is_plain(item: Any) -> bool:
    if isinstance(item, (tuple, list, dict)):
        return all(map(_is_plain, item.values() if isinstance(item, dict) else item))
    if isinstance(item, np.ndarray):
        return item.dtype.kind in "biuf"
    return isinstance(item, (str, int, float, bytes, type(None), np.generic)) or (
        isinstance(item, Tensor) and item.layout is torch.strided and not item.is_nested
    )


def _written(nest: Any, digest: Any) -> None:
    if isinstance(nest, np.ndarray):
        nest = torch.as_tensor(plain_array(nest))
    if isinstance(nest, Tensor):
        digest.update(f"{tuple(nest.shape)} {nest.dtype}".encode())
        digest.update(nest.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    elif isinstance(nest, (dict, tuple, list)):
        digest.update(f"{type(nest).__name__} {len(nest)}:".encode())
        for part in nest.values() if isinstance(nest, dict) else nest:
            _written(part, digest)
    else:
        digest.update(f"{nest!r},".encode(errors="backslashreplace"))
