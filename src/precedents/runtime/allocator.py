"""The allocator: what glibc keeps of freed memory, in workers and before large matrices."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from precedents.runtime.engines._travel import in_worker

TRIM_THRESHOLD, MMAP_THRESHOLD, MMAP_MAX = -1, -3, -4  # options of mallopt, by malloc.h's numbers
KEPT = 2**30  # bytes at the heap's end that are not given back when they are free
LARGE = 2**25  # bytes that glibc gives back at once by itself
MAPPED = 2**16  # pieces of memory that it gives back at once, at most
MUCH = 2**27  # bytes of a matrix, before which what is free is given back


def given_back(needed: int) -> None:
    """Has glibc give back the holes of small blocks, where many bytes are needed: no matrix fits there."""
    if needed >= MUCH and sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


@contextmanager
def memory_kept() -> Iterator[None]:
    """In a worker, has glibc keep what is freed: each step of a training takes it again, and fresh pages cost.

    Only for as long: of large matrices, holes would stay.
    """
    library = ctypes.CDLL(None) if sys.platform == "linux" and in_worker() else None
    set_option = getattr(library, "mallopt", None)
    if library is None or set_option is None:
        yield
        return
    set_option(MMAP_MAX, 0)
    set_option(TRIM_THRESHOLD, KEPT)
    try:
        yield
    finally:
        for option, value in ((MMAP_MAX, MAPPED), (MMAP_THRESHOLD, LARGE), (TRIM_THRESHOLD, 2 * LARGE)):
            set_option(option, value)
        library.malloc_trim(0)
