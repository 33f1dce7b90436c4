"""Independent work in several processes of one thread each, so that no number depends on how many there are."""

import ctypes
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from multiprocessing.context import SpawnContext
from multiprocessing.queues import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from precedents.errors import BudgetError
from precedents.runtime.progress import Tell, quiet, told

T = TypeVar("T")
R = TypeVar("R")

TRIM_THRESHOLD, MMAP_THRESHOLD, MMAP_MAX = -1, -3, -4  # options of mallopt, by malloc.h's numbers
KEPT = 2**30  # bytes at the heap's end that are not given back when they are free
LARGE = 2**25  # bytes that glibc gives back at once by itself
MAPPED = 2**16  # pieces of memory that it gives back at once, at most

_for_good = ExitStack()  # what a worker keeps until it ends


def in_workers(
    work: Callable[[T], R], tasks: Sequence[T], workers: int, tell: Tell | None = None
) -> Iterator[R]:
    """What the work gives for each task, as they end; a failure stops the others after their present task.

    `tell` is given lines with the progress within the tasks.
    """
    spawn = get_context("spawn")
    most = min(workers, len(tasks)) or 1
    with _heard(tell, spawn) as lines, ProcessPoolExecutor(most, spawn, _begin, (lines,)) as pool:
        futures = [pool.submit(work, task) for task in tasks]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BrokenProcessPool:
            pool.shutdown(wait=False, cancel_futures=True)
            raise BudgetError(
                "A worker was killed, as systems do when memory is short. What was finished is kept. Start "
                "again with fewer workers or less memory for each."
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _heard(tell: Tell | None, spawn: SpawnContext) -> Iterator[SimpleQueue[str | None] | None]:
    """What the workers write their lines to, with somebody who reads them; nothing if nobody wants them."""
    if tell is None:
        yield None
        return
    lines = spawn.SimpleQueue()
    reader = Thread(target=lambda: deque(map(tell, iter(lines.get, None)), maxlen=0), daemon=True)
    reader.start()
    try:
        yield lines
    finally:
        lines.put(None)
        reader.join()


def _begin(lines: SimpleQueue[str | None] | None) -> None:
    """A worker has one thread, shows nothing itself, and ends with who started it."""
    import torch

    torch.set_num_threads(1)
    _for_good.enter_context(quiet() if lines is None else told(lines.put))
    Thread(target=_end_with, args=(parent_process(),), daemon=True).start()


@contextmanager
def memory_kept() -> Iterator[None]:
    """In a worker, has glibc keep what is freed: each step of a training takes it again, and fresh pages cost.

    Only for as long: of large matrices, holes would stay.
    """
    library = ctypes.CDLL(None) if sys.platform == "linux" and parent_process() is not None else None
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


def _end_with(parent: Any) -> None:
    wait([parent.sentinel])
    os._exit(1)  # killed with what started it: nothing more is written
