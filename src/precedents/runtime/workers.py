"""Independent work in several processes of one thread each, so that no number depends on how many there are."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from threading import Thread
from typing import Any, TypeVar

from precedents.runtime.progress import quiet

T = TypeVar("T")
R = TypeVar("R")


def in_workers(work: Callable[[T], R], tasks: Sequence[T], workers: int) -> Iterator[R]:
    """What the work gives for each task, as they end; a failure stops the others after their present task."""
    with ProcessPoolExecutor(min(workers, len(tasks)) or 1, get_context("spawn"), _begin) as pool:
        futures = [pool.submit(work, task) for task in tasks]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _begin() -> None:
    """A worker has one thread, is silent, for who started it shows the progress, and ends with it."""
    import torch

    torch.set_num_threads(1)
    quiet().__enter__()
    Thread(target=_end_with, args=(parent_process(),), daemon=True).start()


def _end_with(parent: Any) -> None:
    wait([parent.sentinel])
    os._exit(1)  # killed with what started it: nothing more is written
