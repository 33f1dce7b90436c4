"""Buffers: memory that is used again, since fresh pages cost more than the numbers written to them."""

import mmap
from collections.abc import Sequence
from math import prod
from threading import RLock
from weakref import finalize

import torch
from torch import Tensor

LEAST_BYTES = 2**20  # from which on memory is worth using again


class BufferPool:
    """Memory that is used again: fresh pages cost more than the numbers written to them.

    A room is free when no tensor shows it any more. Free rooms are kept while somebody is `with` them.
    """

    def __init__(self) -> None:
        self._free: list[mmap.mmap] = []
        self._users = 0
        self._lock = RLock()

    def __enter__(self) -> None:
        with self._lock:
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                self._free.clear()

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """A tensor on the CPU whose numbers are not set."""
        count = prod(shape)
        size = count * dtype.itemsize
        if size < LEAST_BYTES:
            return torch.empty(*shape, dtype=dtype)
        return torch.frombuffer(self._taken(size), dtype=dtype, count=count).reshape(*shape)

    def like(self, values: Tensor, *shape: int) -> Tensor:
        """The same where the values are, in their precision; of their shape, unless another is given."""
        shape = shape or tuple(values.shape)
        return self.empty(shape, values.dtype) if values.device.type == "cpu" else values.new_empty(shape)

    def copy(self, values: Tensor) -> Tensor:
        """The values in the usual layout, as they are if they have it."""
        return values if values.is_contiguous() else self.like(values).copy_(values)

    def _taken(self, size: int) -> memoryview:
        """A room that a tensor will hold for as long as anything shows its numbers."""
        with self._lock:
            fitting = (i for i, room in enumerate(self._free) if size <= len(room) <= 2 * size)
            place = next(fitting, None)
            room = _pages(size) if place is None else self._free.pop(place)
        shown = memoryview(room)
        finalize(shown, self._freed, room).atexit = False
        return shown

    def _freed(self, room: mmap.mmap) -> None:
        with self._lock:
            if self._users:
                self._free.append(room)


def _pages(size: int) -> mmap.mmap:
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    return mmap.mmap(-1, size, **private)


BUFFERS = BufferPool()
