import ctypes
import sys

import pytest
import torch

from precedents.runtime.workers import in_workers

GLIBC = sys.platform == "linux" and hasattr(ctypes.CDLL(None), "mallopt")


def given(times: int) -> int:
    """How many pages the system gives when 64 MB are taken and freed that often."""
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        torch.ones(2**24)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(not GLIBC, reason="other allocators have no such option")
def test_workers_keep_the_memory_that_they_freed() -> None:
    from resource import getpagesize

    (pages,) = in_workers(given, [40], 1)
    assert pages * getpagesize() < 20 * 2**26
