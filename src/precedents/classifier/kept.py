"""What a module keeps of a pass in its attributes, dicts and lists: every pass begins without it.

A module may keep a function of its parameters, as a table of biases that is made once. Kept of a pass without
gradients, it would be a constant to all that follow. So what a pass writes is put back, and what is there of
the user's own passes is taken away where a pass makes the very same again.
"""

from collections.abc import Callable, Iterator
from copy import copy
from types import FunctionType, MethodType, ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from precedents.classifier.clone import sharing_clone
from precedents.errors import PrecedentsError

OWN = frozenset(vars(nn.Module()))  # the attributes of every module: its tensors, children, hooks and mode
WHOLE = (Tensor, FunctionType, MethodType, ModuleType, type)  # in which nothing is looked for


class Missing:
    """Stands for an attribute that is not there."""


class Attributes:
    """What the attributes of a module's parts hold now, with all dicts, lists, sets and objects in them."""

    def __init__(self, module: nn.Module) -> None:
        self.before = [(owner, _contents(owner)) for owner in _owners(module)]

    def written(self) -> list[tuple[Any, Any]]:
        """What was written to since, with what it held; nothing if no tensor is in it."""
        changed = [
            (owner, _changed(had, now) if isinstance(owner, nn.Module) else had)
            for owner, had in self.before
            if not _same(had, now := _contents(owner))
        ]
        return changed if any(_has_tensors(_contents(owner)) for owner, _ in changed) else []


class PutBack:
    """A hook that puts back what passes write; a copy of the module has its own."""

    def __init__(self, places: list[tuple[Any, Any]]) -> None:
        self.places = places

    def __call__(self, *_: Any) -> None:
        """Before a pass and after it."""
        for owner, had in self.places:
            if isinstance(owner, list):
                owner[:] = had
            elif isinstance(owner, set):
                owner.intersection_update(had)
                owner.update(had)
            else:
                _put(owner if isinstance(owner, dict) else vars(owner), had, isinstance(owner, nn.Module))


def _put(held: dict[Any, Any], had: dict[Any, Any], some: bool) -> None:
    """Puts entries back: some of them, or all that there are to be."""
    if not some:
        held.clear()
    for key, value in had.items():
        if value is Missing:
            held.pop(key, None)
        else:
            held[key] = value


@torch.no_grad()
def settled(module: nn.Module, kept: Attributes, run: Callable[[nn.Module], Tensor], logits: Tensor) -> None:
    """The module as it was when `kept` was made, and with hooks by which its passes leave it so.

    `run` gives the `logits` of the first instances.
    """
    places = kept.written()
    PutBack(places)()
    if _emptied(module, run, logits):
        kept = Attributes(module)
        run(module)
        places += kept.written()
    if places:
        back = PutBack(places)
        back()
        module.register_forward_pre_hook(back)
        module.register_forward_hook(back, always_call=True)


def _emptied(module: nn.Module, run: Callable[[nn.Module], Tensor], logits: Tensor) -> bool:
    """Takes away tensors that a pass makes again as they were; whether there are any."""
    found = False
    for kind, name in dict.fromkeys(_held(module)):
        for empty in (_cleared, lambda _: Missing):
            clone = sharing_clone(module)
            before = _take(clone, kind, name, empty)
            try:
                again = torch.equal(run(clone).nan_to_num(), logits.nan_to_num())
            except PrecedentsError:
                continue
            if again and all(_again(had, vars(part).get(name)) for part, had in before):
                _take(module, kind, name, empty)
                found = True
                break
    return found


def _held(module: nn.Module) -> Iterator[tuple[type, str]]:
    """The types of modules and the names of the attributes that have tensors, of no parameter that is trained.

    What is made before each call by a hook, as a pruned weight, is left: it belongs to the layer.
    """
    for part in module.modules():
        if not part._forward_pre_hooks:
            for name, value in _contents(part).items():
                if isinstance(value, (Tensor, dict, list)) and _has_tensors(value):
                    yield type(part), name


def _take(module: nn.Module, kind: type, name: str, empty: Callable[[Any], Any]) -> list[tuple[nn.Module, Any]]:
    """Empties an attribute of all modules of a type; what they had."""
    had = [(part, vars(part)[name]) for part in module.modules() if type(part) is kind and name in vars(part)]
    for part, value in had:
        vars(part)[name] = empty(value)
        if vars(part)[name] is Missing:
            del vars(part)[name]
    return had


def _cleared(value: Any) -> Any:
    """An empty dict or list of the kind."""
    if isinstance(value, Tensor):
        return None
    value = copy(value)
    value.clear()
    return value


def _again(had: Any, now: Any) -> bool:
    """Whether what is there again is what was there; of a dict, as far as its keys are."""
    if isinstance(had, Tensor):
        return isinstance(now, Tensor) and not isinstance(now, nn.Parameter) and torch.equal(had, now)
    if isinstance(had, dict):
        return (
            isinstance(now, dict) and bool(now) and all(_again(had[key], now[key]) for key in now if key in had)
        )
    if isinstance(had, (list, tuple)):
        same = isinstance(now, type(had)) and len(now) == len(had)
        return same and all(map(_again, had, now))
    return type(had) is type(now)


def _owners(module: nn.Module) -> Iterator[Any]:
    """The module's parts, and whatever they hold that can be written to."""
    found, seen = list[Any](module.modules()), dict[int, Any]()
    while found:
        each = found.pop()
        if id(each) in seen or isinstance(each, WHOLE):
            continue
        seen[id(each)] = each  # and keeps it, so that no other has its id
        if isinstance(each, (list, tuple, set)):
            found += each
        elif isinstance(each, nn.Module) or hasattr(each, "__dict__") or isinstance(each, dict):
            found += _contents(each).values()
        else:
            continue
        if not isinstance(each, tuple):
            yield each


def _contents(owner: Any) -> Any:
    """What it holds itself; of a module what every module has is left out."""
    if isinstance(owner, (list, set, dict)):
        return copy(owner)
    left_out = OWN if isinstance(owner, nn.Module) else ()
    return {key: value for key, value in vars(owner).items() if key not in left_out}


def _same(had: Any, now: Any) -> bool:
    """Whether the very same is held."""
    if len(had) != len(now):
        return False
    if isinstance(had, dict):
        return all(key in now and now[key] is value for key, value in had.items())
    if isinstance(had, set):
        return {*map(id, had)} == {*map(id, now)}
    return all(one is other for one, other in zip(had, now, strict=True))


def _changed(had: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Of a module's attributes those that are others now."""
    keys = dict.fromkeys([*had, *now])
    return {key: had.get(key, Missing) for key in keys if had.get(key, Missing) is not now.get(key, Missing)}


def _has_tensors(value: Any) -> bool:
    """Whether there are tensors in it that are no parameters."""
    if isinstance(value, Tensor):
        return not isinstance(value, nn.Parameter)
    values = value.values() if isinstance(value, dict) else value
    return isinstance(value, (dict, list, tuple, set)) and any(map(_has_tensors, values))
