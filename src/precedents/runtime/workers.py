"""Independent work in several processes of one thread each, so that no number depends on how many there are."""

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TypeVar

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
    """Each worker has one thread, and is silent: who started it shows the progress."""
    import torch

    torch.set_num_threads(1)
    sys.stdin.close()
    quiet().__enter__()
