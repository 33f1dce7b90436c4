"""What work will cost: operations, passes over the training set, and bytes; as time on this machine."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import TypeVar

import torch

from precedents.runtime.progress import duration
from precedents.runtime.wording import readable
from precedents.seen import boxed

T = TypeVar("T")


@dataclass(frozen=True)
class Cost:
    """What a step needs."""

    flops: float = 0.0  # multiplications and additions in float64
    passes: float = 0.0  # forward and backward passes over the training set
    bytes: int = 0
    disk: int = 0  # bytes of the result, if it is saved
    itemsize: int = (
        0  # bytes of each number of the coordinates that the training set is then saved by, if it is
    )


@dataclass(frozen=True)
class Estimate:
    """What a run is expected to take, before it starts."""

    seconds: float
    memory: int  # bytes
    disk: int = 0  # bytes

    def __str__(self) -> str:
        return (
            f"about {duration(self.seconds)}, {readable(self.memory)} of memory, {readable(self.disk)} on disk"
        )

    def _repr_html_(self) -> str:
        return boxed(str(self))


@cache
def speed(dtype: torch.dtype) -> float:
    """Operations per second of a matrix product on this machine."""
    left = torch.ones(512, 2048, dtype=dtype)
    left @ left.T
    return 2 * 512 * 512 * 2048 / elapsed(lambda: left @ left.T)


@cache
def bandwidth() -> float:
    """Bytes per second that are copied on this machine."""
    values = torch.ones(2**22)
    return values.numel() * values.element_size() / elapsed(values.clone)


def elapsed(work: Callable[[], object], times: int = 3) -> float:
    """Seconds of the fastest of a few runs."""
    best = float("inf")
    for _ in range(times):
        began = perf_counter()
        work()
        best = min(best, perf_counter() - began)
    return best


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Seconds that the work took, and what it gave."""
    began = perf_counter()
    made = work()
    return perf_counter() - began, made
