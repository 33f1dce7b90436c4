"""Waiting for what happens elsewhere, for as long as it takes, and a clock that tests set."""

from collections.abc import Callable
from time import monotonic, sleep


def until(happened: Callable[[], object], seconds: float = 120.0) -> None:
    """Waits for a condition; the limit is for what never happens, however busy the machine is."""
    limit = monotonic() + seconds
    while not happened():
        assert monotonic() < limit, f"it did not happen within {seconds:.0f} s"
        sleep(0.005)


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += seconds
