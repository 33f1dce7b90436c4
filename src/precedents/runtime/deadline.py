"""A deadline: work within it ends between two steps of its loops once the time is over."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Over = Callable[[], str | None]  # why work is broken off, once it is time

OVER: ContextVar[Over | None] = ContextVar("over", default=None)


@contextmanager
def ending(over: Over) -> Iterator[None]:
    """Loops within that are `tracked` ask `over` before each step, and end with a reason when it gives one."""
    before = OVER.set(over)
    try:
        yield
    finally:
        OVER.reset(before)
