"""Whether a module puts the instances of a batch in another order within, as to sort them by their lengths.

Its logits may be in order again, while its hidden layers and what comes back to them are not. So one instance
goes in at both ends of a batch, and twice at the first: whatever sorts, turns or rolls the others moves it.
"""

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from precedents.classifier.hidden_layers import Tap, watched
from precedents.data.examples import Examples
from precedents.data.inputs import Inputs, count, mapped, ordered
from precedents.errors import PrecedentsError
from precedents.seen import clipped, told

if TYPE_CHECKING:
    from precedents.classifier.classifier import Classifier

SOME = 4  # instances that are tried together
ENDS = [0, 1, -1]  # where the first of them is
LEAST = 4  # of a batch in which something can move


class SlowPassesWarning(UserWarning):
    """The instances of a batch pass one at a time: the numbers are the same."""


def some_of(train: Examples) -> Inputs | None:
    """A few instances to try the order on; none where there is but one."""
    last = len(train) - 1
    if last < 1:
        return None
    step = 1 if train.ordered else last / (SOME - 1)  # what is read in its order alone is read no further
    places = dict.fromkeys(min(last, round(i * step)) for i in range(SOME))
    return train.take([*places]).inputs


def among(some: Inputs, most: int, *, more: int = 0) -> Inputs:
    """A batch of about so many, at least `LEAST`, with the first at the `ENDS`; the second some times more."""
    stop = min(count(some), max(LEAST, most) - len(ENDS) + 1)
    return mapped(lambda leaf: leaf[[0, 0, *range(1, stop), *[1] * more, 0]], some)


def kept(model: "Classifier") -> "Classifier":
    """The classifier, with instances that pass one at a time where they are moved; else to be tried no further.

    Where not all layers have shown that they have the instances in place, the gradients are tried, too.
    """
    if model.several is None:
        return model
    found = _kept(model, among(model.several, model.at_once))
    for more in (1, 2):  # as many positions as instances may have been taken for these, along either axis
        if False in found.values():
            again = _kept(model, among(model.several, model.at_once, more=more))
            found = {
                tap: None if kept is False and again.get(tap) is not False else kept
                for tap, kept in found.items()
            }
    if False not in found.values():
        return replace(model, several=None) if None not in found.values() else model
    kind = clipped(type(model.module).__name__)
    said = f"{kind} puts the instances of a batch in another order within, so they pass one at a time, slower."
    warnings.warn(told(f"{said} The numbers are the same."), SlowPassesWarning, stacklevel=2)
    return replace(model, apart=True)


@torch.no_grad()
def _kept(model: "Classifier", inputs: Inputs) -> dict[Tap, bool | None]:
    """Whether layers and taps have the instances in place; none where that is not seen."""
    taps = {*model.taps, *([] if model.head is None else [Tap(model.head, 0, returned=False)])}
    owners = {name: part for name, part in model.module.named_modules() if trainable(part)}
    seen = dict[Tap, Any]()
    names = {*owners, *(tap.module for tap in taps)}
    try:
        with model.clones.lent() as module, watched(module, names, seen.__setitem__):
            model.outputs.of(module, inputs)
    except PrecedentsError:  # which is said where these instances are asked for
        return {Tap("", 0, returned=True): None}
    calls = [tap for tap in seen if tap in taps or (tap.returned and tap.module in owners)]
    called = {tap.module for tap in calls}
    unseen = [name for name, part in owners.items() if name not in called or not _is_plain(part)]
    found = {tap: _in_place(inputs, model.module.get_submodule(tap.module), seen[tap]) for tap in calls}
    return {**dict.fromkeys((Tap(name, -1, returned=True) for name in unseen), None), **found}


def trainable(part: nn.Module) -> bool:
    """Whether parameters of its own count."""
    return any(parameter.requires_grad for parameter in part.parameters(recurse=False))


def _is_plain(part: nn.Module) -> bool:
    """Whether it is a layer of torch's own, in which nothing is moved."""
    return type(part).__module__.startswith("torch.nn.")


def _in_place(inputs: Inputs, part: nn.Module, value: Any) -> bool | None:
    """Whether the rows at the ends of the batch are the same, along the first or the second axis."""
    if isinstance(part, nn.RNNBase) and isinstance(value, tuple):
        value = value[1]  # the last states
    value = value[0] if isinstance(value, tuple) and value else value
    if not isinstance(value, Tensor) or value.is_nested:
        return None
    if value.ndim and len(value) == 1:  # all instances have the same
        return True
    axes = [axis for axis, size in enumerate(value.shape[:2]) if size == count(inputs)]
    return None if not axes else any(_same(ordered(inputs, value.movedim(axis, 0))[ENDS]) for axis in axes)


def _same(rows: Tensor) -> bool:
    rows = rows.double().nan_to_num()
    return torch.allclose(rows, rows[:1], rtol=1e-3, atol=1e-6 * float(rows.norm()))
