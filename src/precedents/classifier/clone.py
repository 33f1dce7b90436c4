"""Clones that share their tensors: for hooks, changed layers and passes that the module itself must not see."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from types import FunctionType, ModuleType
from typing import Any, Generic, TypeVar

from torch import Tensor, nn

C = TypeVar("C")


def sharing_clone(module: nn.Module, apart: Collection[str] = ()) -> nn.Module:
    """A copy of the module, layer by layer, with the very parameters and buffers of the original.

    The buffers whose names are in `apart` are copied.
    """
    buffers = (buffer for name, buffer in module.named_buffers() if name not in apart)
    shared = {id(tensor): tensor for tensor in [*module.parameters(), *buffers]}
    return deepcopy(module, {**_without_graph(module), **shared})


def whole_copy(module: nn.Module) -> nn.Module:
    """A copy of the module with tensors of its own."""
    return deepcopy(module, _without_graph(module))


def _without_graph(module: nn.Module) -> dict[int, Any]:
    """By id, copies of the tensors that the module keeps of a pass, without its graph.

    They are made anew by the next: attention that is kept to be looked at, the weights of pruned layers.
    """
    return {id(each): each.detach().clone() for each in _of_a_pass(module)}


def _of_a_pass(module: nn.Module) -> Iterator[Tensor]:
    """Every tensor with a graph that a copy would meet, in attributes, dicts, lists, tuples and hooks."""
    found: list[Any] = [module]
    seen: dict[int, Any] = {}
    while found:
        each = found.pop()
        if id(each) in seen or isinstance(each, (type, ModuleType, FunctionType)):
            continue
        seen[id(each)] = each  # and keeps it, so that no other has its id
        if isinstance(each, Tensor):
            if each.grad_fn is not None:
                yield each
        elif isinstance(each, (list, tuple, set, deque)):
            found += each
        else:
            found += each.values() if isinstance(each, dict) else ()
            found += (*getattr(each, "__dict__", {}).values(), getattr(each, "__self__", None))


def uncopied(module: nn.Module) -> str | None:
    """The attribute because of which a module cannot be copied; none if it is not one alone."""
    for name, part in module.named_modules():
        for key, value in vars(part).items():
            if key != "_modules":
                try:
                    deepcopy(value, {id(part): part})
                except Exception:
                    return f"{name}.{key}" if name else key
    return None


class Clones(Generic[C]):
    """Clones that are lent to one pass at a time, so that passes in several threads do not meet.

    There are as many as there were passes at once. One whose pass failed or was interrupted is not lent again.
    """

    def __init__(self, fresh: Callable[[], C], free: Iterable[C] = ()) -> None:
        self.fresh = fresh  # makes one more
        self._free = deque(free)

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process, clones are made anew."""
        return Clones, (self.fresh,)

    @contextmanager
    def lent(self) -> Iterator[C]:
        """One that nobody else has meanwhile."""
        try:
            clone = self._free.pop()
        except IndexError:
            clone = self.fresh()
        try:
            yield clone
        except GeneratorExit:  # nobody wants the rest, but nothing failed
            self._free.append(clone)
            raise
        self._free.append(clone)
