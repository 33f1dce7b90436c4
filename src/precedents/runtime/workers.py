"""Independent work in several processes of one thread each, so that no number depends on how many there are."""

import ctypes
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from multiprocessing.context import SpawnContext
from multiprocessing.queues import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from precedents.runtime.progress import Tell, quiet, told

T = TypeVar("T")
R = TypeVar("R")

TRIM_THRESHOLD, MMAP_MAX = -1, -4  # options of mallopt, by the numbers that malloc.h gives them
KEPT = 2**30  # bytes at the heap's end that a worker does not give back when they are free

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
    _keep_memory()
    _for_good.enter_context(quiet() if lines is None else told(lines.put))
    Thread(target=_end_with, args=(parent_process(),), daemon=True).start()


def _keep_memory() -> None:
    """Has glibc keep what is freed: each step of a training takes it again, and new pages are slow."""
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if set_option is not None:
        set_option(MMAP_MAX, 0)
        set_option(TRIM_THRESHOLD, KEPT)


def _end_with(parent: Any) -> None:
    wait([parent.sentinel])
    os._exit(1)  # killed with what started it: nothing more is written
