"""A bar for whatever takes longer than a second, on terminals only; otherwise nothing is printed."""

import sys
from collections.abc import Iterable, Iterator, Sized
from contextvars import ContextVar
from time import monotonic
from typing import TypeVar

T = TypeVar("T")

_shown: ContextVar[bool] = ContextVar("shown", default=False)  # whether an outer bar is up already


def tracked(items: Iterable[T], title: str, total: int | None = None, patience: float = 1.0) -> Iterator[T]:
    """The items, with a bar and the remaining time once `patience` seconds have passed."""
    if _shown.get() or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import Progress

    _shown.set(True)
    bar = Progress(console=Console(stderr=True), transient=True)
    task, began = (
        bar.add_task(title, total=total or (len(items) if isinstance(items, Sized) else None)),
        monotonic(),
    )
    try:
        for item in items:
            yield item
            bar.advance(task)
            if monotonic() - began > patience and not bar.live.is_started:
                bar.start()
    finally:
        bar.stop()
        _shown.set(False)
