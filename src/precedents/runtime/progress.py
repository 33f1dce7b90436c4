"""Progress of whatever takes longer than a second, on stderr: a bar on terminals, and plain lines if asked for.

A library says nothing where there is no terminal; a command does, so it asks for lines. Work within work
that is shown already is shown too once it takes long. How long the rest will take is said by the seconds that
the items were expected to take, where they are known, and by those that they have taken.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from threading import Lock, Timer
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import ProgressColumn, TaskID

T = TypeVar("T")

Advance = Callable[[], None]  # to be called after each item
Tell = Callable[[str], None]  # is given a line
Show = Callable[[str, "Pace"], AbstractContextManager[Advance]]  # is given a title and how far the work is

LONGEST = 30.0  # seconds between two lines
LONG = 5.0  # seconds after which work within work has a bar of its own
TRUST = 0.1  # the share of all work that the expectation counts for beside what the finished items took
MOST = 4.0  # times its expected seconds that an item counts for: what nobody expected says little of the rest

_inner: ContextVar[Show | None] = ContextVar("inner", default=None)  # shows what is within work that is shown
_lines_wanted: ContextVar[bool] = ContextVar("lines wanted", default=False)  # where there is no terminal
_told: ContextVar[Tell | None] = ContextVar("told", default=None)  # whoever shows the lines instead of stderr
_within: ContextVar[str] = ContextVar("within", default="")  # what the work is part of, before its titles


class Pace:
    """How far some work is, and how long the rest will take.

    `total` is how many items there are, `work` how many seconds each is expected to take; both if known.
    """

    def __init__(self, total: int | None, work: Sequence[float] | None = None) -> None:
        self.total, self.done = total, 0
        self.work = work if work is not None and sum(work) > 0 else None
        self.began = self.latest = monotonic()
        self.counted = 0.0  # seconds of the finished items, as far as they were to be expected

    def advance(self) -> None:
        """One item more is done."""
        took = monotonic() - self.latest
        self.counted += took if self.work is None else min(took, MOST * self._expected)
        self.done, self.latest = self.done + 1, self.latest + took

    @property
    def _expected(self) -> float:
        """What the item is expected to take that is being worked on."""
        return 1.0 if self.work is None else self.work[self.done] if self.done < len(self.work) else 0.0

    @property
    def size(self) -> float | None:
        """All of the work: in expected seconds, or else in items."""
        return self.total if self.work is None else sum(self.work)

    @property
    def completed(self) -> float:
        """The part of it that is done."""
        return self.done if self.work is None else sum(self.work[: self.done])

    def left(self) -> float | None:
        """Seconds from now on: expected ones, as many times as those of the finished items took longer."""
        size, completed = self.size, self.completed
        if size is None or (self.work is None and not self.done):
            return None
        trust = 0.0 if self.work is None else TRUST * size
        slower = (self.counted + trust) / (completed + trust)
        current, running = min(self._expected, size - completed), monotonic() - self.latest
        return slower * (size - completed - current) + max(slower * current - running, running / 10)


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
def told(tell: Tell | None) -> Iterator[None]:
    """Lines are given to somebody else within, who can show them; without anybody it is as before."""
    before = _told.set(tell or _told.get())
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


def tracked(
    items: Iterable[T],
    title: str,
    total: int | None = None,
    patience: float = 1.0,
    work: Sequence[float] | None = None,
) -> Iterator[T]:
    """The items, with the progress and the remaining time once `patience` seconds have passed.

    `work` are the seconds that each item is expected to take; without it all are taken for equal.
    """
    pace = Pace(total if total is not None or not isinstance(items, Sized) else len(items), work)
    title, show = _within.get() + title, _inner.get()
    with show(title, pace) if show else _outermost(title, pace, patience) as advance:
        for item in items:
            yield item
            if advance is not _nothing:
                advance()


@contextmanager
def _outermost(title: str, pace: Pace, patience: float) -> Iterator[Advance]:
    tell = _told.get()
    if tell is None and sys.stderr.isatty():
        display = _bar(title, pace, patience)
    elif tell is not None or _lines_wanted.get():
        display = _lines(title, pace, patience, tell or _on_stderr)
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
def _bar(title: str, pace: Pace, patience: float) -> Iterator[tuple[Advance, Show]]:
    """A bar that a clock starts, so that it is there before a long first item is done."""
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(*_columns(), console=Console(stderr=True), transient=True, redirect_stdout=False)
    task = bar.add_task(title, total=pace.size, pace=pace)
    lock, over = Lock(), False

    def start() -> None:
        with lock:
            if not over:
                bar.start()

    def advance(task: "TaskID", pace: Pace, after: float) -> None:
        pace.advance()
        bar.update(task, completed=pace.completed, visible=pace.latest - pace.began > after)

    @contextmanager
    def show(title: str, pace: Pace) -> Iterator[Advance]:
        inner = bar.add_task(title, total=pace.size, visible=False, pace=pace)
        try:
            yield partial(advance, inner, pace, LONG)
        finally:
            bar.remove_task(inner)

    clock = Timer(max(patience, 0), start)
    clock.daemon = True
    clock.start()
    try:
        yield partial(advance, task, pace, -1.0), show
    finally:
        clock.cancel()
        with lock:
            over = True
        bar.stop()


def _columns() -> Iterator["ProgressColumn"]:
    """Of a bar: the title, the bar, how much is done, and the time that is left."""
    from rich.progress import BarColumn, ProgressColumn, Task, TaskProgressColumn, TextColumn
    from rich.text import Text

    class Left(ProgressColumn):
        """The time that is left."""

        def render(self, task: Task) -> Text:
            """In words."""
            left = task.fields["pace"].left()
            return Text("" if left is None else f"{duration(left)} left", style="progress.remaining")

    yield from (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), Left())


@contextmanager
def _lines(title: str, pace: Pace, patience: float, tell: Tell) -> Iterator[tuple[Advance, Show]]:
    """A line after the first item that ends too late, then after twice the time, at least every half minute.

    Work within an item has a line when none came for half a minute.
    """
    latest = monotonic()

    @contextmanager
    def show(title: str, pace: Pace, due: float | None = None) -> Iterator[Advance]:
        def advance() -> None:
            nonlocal latest, due
            pace.advance()
            now, spent = pace.latest, pace.latest - pace.began
            late = spent > due if due is not None else now > latest + LONGEST
            if late and pace.done != pace.total:
                due = None if due is None else min(2 * spent, spent + LONGEST)
                latest = now
                tell(f"{title}: {_state(pace)}")

        yield advance

    with show(title, pace, patience) as advance:
        yield advance, show


def _nothing() -> None:
    pass


def _on_stderr(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _state(pace: Pace) -> str:
    left = pace.left()
    if left is None:
        return f"{pace.done} done in {duration(pace.latest - pace.began)}"
    return f"{pace.done} of {pace.total}, {duration(left)} left"


def duration(seconds: float) -> str:
    """Seconds for people: 12 s, 3 min 5 s, 2 h 10 min."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{rest} s" if seconds >= 10 else f"{seconds:.2g} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
