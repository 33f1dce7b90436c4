import ctypes
import sys

import pytest
import torch

from precedents.runtime.allocator import memory_kept
from precedents.runtime.engines._find import engine_of

GLIBC = sys.platform == "linux" and hasattr(ctypes.CDLL(None), "mallopt")
needs_glibc = pytest.mark.skipif(not GLIBC, reason="other allocators have no such option")


def given(times: int) -> int:
    """How many pages the system gives when 64 MB are taken and freed that often."""
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        torch.ones(2**24)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def given_while_kept(times: int) -> int:
    """The same while memory is kept."""
    with memory_kept():
        return given(times)


@needs_glibc
def test_workers_keep_the_memory_that_they_freed() -> None:
    from resource import getpagesize

    ((_, pages),) = engine_of("processes").run(given_while_kept, [40])
    assert pages * getpagesize() < 20 * 2**26


def holes(large: int) -> tuple[int, int]:
    """Bytes that are held before and after large pieces of memory were taken, and freed but for the last."""
    import psutil

    with memory_kept():
        torch.ones(2**24)
    before = psutil.Process().memory_info().rss
    pieces = [torch.ones(2**24) for _ in range(large)]
    del pieces[:-1]
    return before, psutil.Process().memory_info().rss


@needs_glibc
def test_large_pieces_leave_no_holes_afterwards() -> None:
    ((_, (before, after)),) = engine_of("processes").run(holes, [10])
    assert after - before < 4 * 2**26


def test_the_users_own_process_is_left_alone(monkeypatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda *_: pytest.fail("its allocator was asked for"))
    with memory_kept():
        pass
