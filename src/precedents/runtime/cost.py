"""What work will cost: operations, passes over the training set, and bytes; as time on this machine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import inf
from time import perf_counter
from typing import TypeVar

import torch

from precedents.runtime.progress import duration
from precedents.runtime.wording import readable
from precedents.seen import boxed

SHARE = 0.03  # of what is estimated, that a trial of much work may take,
MOST_ALLOWED = 2.0  # and not more seconds

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


Trials = Sequence[tuple[int, float]]  # sizes and seconds


def allowed(least: float, seconds: float) -> float:
    """Seconds that trials of a work of so many may take: a share of it, `least` of little."""
    return min(MOST_ALLOWED, max(least, SHARE * seconds))


def trials(
    work: Callable[[int], object], most: int, allowed: Callable[[float], float], least: int = 1
) -> Trials:
    """Does work of size one, and then of larger sizes, as long as the clock allows, but of `least` sizes.

    What comes first is slower, and is not told; what is short is done twice, and the better is told. `allowed`
    are the seconds for all, by the best for size one.
    """
    found, size = list[tuple[int, float]](), 1
    spent, _ = timed(partial(work, 1))
    best = inf
    while size:
        seconds, _ = timed(partial(work, size))
        spent, best = spent + seconds, min(best, seconds / size)
        if 2 * (spent + seconds) <= allowed(best):
            second, _ = timed(partial(work, size))
            spent, seconds = spent + second, min(seconds, second)
            best = min(best, seconds / size)
        found.append((size, seconds))
        larger = (each for each in (min(4 * size, most), min(2 * size, most)) if each > size)
        more = len(found) < least
        size = next((each for each in larger if more or spent + each * best <= allowed(best)), 0)
    return found


def parted(found: Trials) -> tuple[float, float]:
    """Seconds spent once, whatever the size, and for each one more, by the first trial and the best."""
    few, short = found[0]
    many, long = min(found, key=lambda trial: trial[1] / trial[0])
    if many == few:
        return 0.0, long / many
    best = long / many
    each = min(best, max(best / 2, (long - short) / (many - few)))
    return long - many * each, each


def rate(found: Trials, block: int) -> float:
    """Seconds for one in a block of so many, where what is spent once for a block is shared by all of it."""
    once, each = parted(found)
    return each + once / max(block, found[-1][0])
