"""Clones that share their tensors: for hooks, changed layers and passes that the module itself must not see."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from torch import nn

C = TypeVar("C")


def sharing_clone(
    module: nn.Module, apart: Collection[str] = (), known: Mapping[int, Any] = MappingProxyType({})
) -> nn.Module:
    """A copy of the module, layer by layer, with the very parameters and buffers of the original.

    The buffers whose names are in `apart` are copied. Of what is `known`, by id, the copies are there already.
    """
    buffers = (buffer for name, buffer in module.named_buffers() if name not in apart)
    shared = {id(tensor): tensor for tensor in [*module.parameters(), *buffers]}
    return deepcopy(module, {**known, **shared})


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
