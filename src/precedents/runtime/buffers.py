"""A buffer pool: memory that is used again, since fresh pages cost more than the numbers written to them."""

import mmap
from collections.abc import Sequence
from math import prod
from threading import local
from weakref import finalize

import torch
from torch import Tensor

from precedents.runtime.guards import Guard

LEAST_BYTES = 2**20  # from which on memory is worth using again


class FreeBuffers:
    """The free buffers of one thread, kept while somebody is `with` them.

    A buffer that is freed on another thread comes back here, under the lock.
    """

    def __init__(self) -> None:
        self._free: list[mmap.mmap] = []
        self._users = 0
        self._guard = Guard()  # a buffer may be freed while another is taken, even in one thread

    def __len__(self) -> int:
        return len(self._free)

    def __enter__(self) -> None:
        with self._guard.lock:
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._guard.lock:
            self._users = max(0, self._users - 1)
            if not self._users:
                self._free.clear()

    def taken(self, size: int) -> memoryview:
        """A buffer of at least so many bytes, for as long as anything shows its numbers."""
        with self._guard.lock:
            fitting = (i for i, buffer in enumerate(self._free) if size <= len(buffer) <= 2 * size)
            place = next(fitting, None)
            buffer = _pages(size) if place is None else self._free.pop(place)
        shown = memoryview(buffer)
        finalize(shown, self._freed, buffer).atexit = False
        return shown

    def _freed(self, buffer: mmap.mmap) -> None:
        with self._guard.lock:
            if self._users:
                self._free.append(buffer)


class _Own(local):
    """The free buffers of the thread that asks."""

    def __init__(self) -> None:
        self.free = FreeBuffers()


class BufferPool:
    """Gives tensors whose memory is used again; no two threads share a buffer.

    A buffer is free when no tensor shows it any more. Free ones are kept while their thread is `with` the pool.
    A generator, which another thread may close, is `with` the free buffers of the thread that began it.
    """

    def __init__(self) -> None:
        self._own = _Own()

    @property
    def free(self) -> FreeBuffers:
        """The free buffers of this thread."""
        return self._own.free

    def __enter__(self) -> None:
        self.free.__enter__()

    def __exit__(self, *_: object) -> None:
        self.free.__exit__()

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """A tensor on the CPU whose numbers are not set."""
        count = prod(shape)
        size = count * dtype.itemsize
        if size < LEAST_BYTES:
            return torch.empty(*shape, dtype=dtype)
        return torch.frombuffer(self.free.taken(size), dtype=dtype, count=count).reshape(*shape)

    def like(self, values: Tensor, *shape: int) -> Tensor:
        """An empty tensor where the values are, in their precision; of their shape, unless another is given."""
        shape = shape or tuple(values.shape)
        return self.empty(shape, values.dtype) if values.device.type == "cpu" else values.new_empty(shape)

    def copy(self, values: Tensor) -> Tensor:
        """The values in the usual layout, as they are if they have it."""
        return values if values.is_contiguous() else self.like(values).copy_(values)


def _pages(size: int) -> mmap.mmap:
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    return mmap.mmap(-1, size, **private)


BUFFERS = BufferPool()
