"""Progress of whatever takes longer than a second, on stderr: a bar on terminals, and plain lines if asked for.

A library says nothing where there is no terminal; a command does, so it asks for lines. Work within work
that is shown already is not shown.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from threading import Lock, Timer
from time import monotonic
from typing import TypeVar

T = TypeVar("T")

Advance = Callable[[], None]  # to be called after each item

LONGEST = 30.0  # seconds between two lines

_shown: ContextVar[bool] = ContextVar("shown", default=False)  # whether nothing (more) is to be shown
_lines_wanted: ContextVar[bool] = ContextVar("lines wanted", default=False)  # where there is no terminal


@contextmanager
def quiet() -> Iterator[None]:
    """Nothing is shown within."""
    before = _shown.set(True)
    try:
        yield
    finally:
        _shown.reset(before)


@contextmanager
def in_lines() -> Iterator[None]:
    """Plain lines are shown within where there is no terminal."""
    before = _lines_wanted.set(True)
    try:
        yield
    finally:
        _lines_wanted.reset(before)


def tracked(items: Iterable[T], title: str, total: int | None = None, patience: float = 1.0) -> Iterator[T]:
    """The items, with the progress and the remaining time once `patience` seconds have passed."""
    total = total if total is not None or not isinstance(items, Sized) else len(items)
    with _display(title, total, patience) as advance:
        if advance is None:
            yield from items
            return
        _shown.set(True)
        try:
            for item in items:
                yield item
                advance()
        finally:
            _shown.set(False)


def _display(title: str, total: int | None, patience: float) -> AbstractContextManager[Advance | None]:
    if _shown.get():
        return nullcontext()
    if sys.stderr.isatty():
        return _bar(title, total, patience)
    return _lines(title, total, patience) if _lines_wanted.get() else nullcontext()


@contextmanager
def _bar(title: str, total: int | None, patience: float) -> Iterator[Advance]:
    """A bar that a clock starts, so that it is there before a long first item is done."""
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True, redirect_stdout=False)
    task = bar.add_task(title, total=total)
    lock, over = Lock(), False

    def start() -> None:
        with lock:
            if not over:
                bar.start()

    clock = Timer(max(patience, 0), start)
    clock.daemon = True
    clock.start()
    try:
        yield lambda: bar.advance(task)
    finally:
        clock.cancel()
        with lock:
            over = True
        bar.stop()


@contextmanager
def _lines(title: str, total: int | None, patience: float) -> Iterator[Advance]:
    """A line after the first item that ends too late, then after twice the time, at least every half minute."""
    began, due, done = monotonic(), patience, 0

    def advance() -> None:
        nonlocal due, done
        done += 1
        spent = monotonic() - began
        if spent > due and done != total:
            due = min(2 * spent, spent + LONGEST)
            sys.stderr.write(f"{title}: {_state(done, total, spent)}\n")
            sys.stderr.flush()

    yield advance


def _state(done: int, total: int | None, spent: float) -> str:
    if total is None:
        return f"{done} done in {duration(spent)}"
    return f"{done} of {total}, {duration(spent * (total - done) / done)} left"


def duration(seconds: float) -> str:
    """Seconds for people: 12 s, 3 min 5 s, 2 h 10 min."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{rest} s" if seconds >= 10 else f"{seconds:.2g} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
