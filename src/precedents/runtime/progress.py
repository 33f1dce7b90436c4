"""Progress of whatever takes longer than a second, on stderr: a bar on terminals, and plain lines if asked for.

A library says nothing where there is no terminal; a command does, so it asks for lines. Work within work
that is shown already is shown too once it takes long.
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
Tell = Callable[[str], None]  # is given a line
Show = Callable[[str, int | None], AbstractContextManager[Advance]]  # is given a title and a number of items

LONGEST = 30.0  # seconds between two lines
LONG = 5.0  # seconds after which work within work has a bar of its own

_inner: ContextVar[Show | None] = ContextVar("inner", default=None)  # shows what is within work that is shown
_lines_wanted: ContextVar[bool] = ContextVar("lines wanted", default=False)  # where there is no terminal
_told: ContextVar[Tell | None] = ContextVar("told", default=None)  # whoever shows the lines instead of stderr
_within: ContextVar[str] = ContextVar("within", default="")  # what the work is part of, before its titles


@contextmanager
def quiet() -> Iterator[None]:
    """Nothing is shown within."""
    before = _inner.set(lambda *_: nullcontext(_nothing))
    try:
        yield
    finally:
        _inner.reset(before)


@contextmanager
def in_lines() -> Iterator[None]:
    """Plain lines are shown within where there is no terminal."""
    before = _lines_wanted.set(True)
    try:
        yield
    finally:
        _lines_wanted.reset(before)


@contextmanager
def told(tell: Tell) -> Iterator[None]:
    """Lines are given to somebody else within, who can show them."""
    before = _told.set(tell)
    try:
        yield
    finally:
        _told.reset(before)


@contextmanager
def within(title: str) -> Iterator[None]:
    """Says what the work within is part of."""
    before = _within.set(f"{title}: ")
    try:
        yield
    finally:
        _within.reset(before)


def tracked(items: Iterable[T], title: str, total: int | None = None, patience: float = 1.0) -> Iterator[T]:
    """The items, with the progress and the remaining time once `patience` seconds have passed."""
    total = total if total is not None or not isinstance(items, Sized) else len(items)
    title, show = _within.get() + title, _inner.get()
    with show(title, total) if show else _outermost(title, total, patience) as advance:
        for item in items:
            yield item
            advance()


@contextmanager
def _outermost(title: str, total: int | None, patience: float) -> Iterator[Advance]:
    tell = _told.get()
    if tell is None and sys.stderr.isatty():
        display = _bar(title, total, patience)
    elif tell is not None or _lines_wanted.get():
        display = _lines(title, total, patience, tell or _on_stderr)
    else:
        yield _nothing
        return
    with display as (advance, show):
        _inner.set(show)
        try:
            yield advance
        finally:
            _inner.set(None)


@contextmanager
def _bar(title: str, total: int | None, patience: float) -> Iterator[tuple[Advance, Show]]:
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

    @contextmanager
    def show(title: str, total: int | None) -> Iterator[Advance]:
        began, inner = monotonic(), bar.add_task(title, total=total, visible=False)
        try:
            yield lambda: bar.update(inner, advance=1, visible=monotonic() - began > LONG)
        finally:
            bar.remove_task(inner)

    clock = Timer(max(patience, 0), start)
    clock.daemon = True
    clock.start()
    try:
        yield lambda: bar.advance(task), show
    finally:
        clock.cancel()
        with lock:
            over = True
        bar.stop()


@contextmanager
def _lines(title: str, total: int | None, patience: float, tell: Tell) -> Iterator[tuple[Advance, Show]]:
    """A line after the first item that ends too late, then after twice the time, at least every half minute.

    Work within an item has a line when none came for half a minute.
    """
    latest = monotonic()

    @contextmanager
    def show(title: str, total: int | None, due: float | None = None) -> Iterator[Advance]:
        began, done = monotonic(), 0

        def advance() -> None:
            nonlocal latest, due, done
            done, now = done + 1, monotonic()
            spent = now - began
            late = spent > due if due is not None else now > latest + LONGEST
            if late and done != total:
                due = None if due is None else min(2 * spent, spent + LONGEST)
                latest = now
                tell(f"{title}: {_state(done, total, spent)}")

        yield advance

    with show(title, total, patience) as advance:
        yield advance, show


def _nothing() -> None:
    pass


def _on_stderr(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


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
