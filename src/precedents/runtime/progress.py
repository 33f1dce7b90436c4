"""Progress of whatever takes longer than a second: a bar on terminals and in notebooks, plain lines elsewhere.

Lines go to stderr: a command asks for them after a second, a script without a terminal has them after five.
Work within work that is shown already is shown too once it takes long. How long the rest will take is said by
the seconds that the items were expected to take, where they are known, and by those that they have taken.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from html import escape
from importlib import import_module
from threading import Lock, Timer
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ref

from precedents.errors import BudgetError
from precedents.runtime.deadline import OVER

if TYPE_CHECKING:
    from rich.progress import ProgressColumn, TaskID

T = TypeVar("T")

Advance = Callable[[], None]  # to be called after each item
Tell = Callable[[str], None]  # is given a line
Show = Callable[[str, "Pace"], AbstractContextManager[Advance]]  # is given a title and how far the work is

LONGEST = 30.0  # seconds between two lines
LONG = 5.0  # seconds after which work within work has a bar of its own,
SCRIPT = 5.0  # and after which a script without a terminal has its first line
OFTEN = 0.2  # seconds between two pictures of a notebook's bar
TRUST = 0.1  # the share of all work that the expectation counts for beside what the finished items took
MOST = 4.0  # times its expected seconds that an item counts for: what nobody expected says little of the rest


@dataclass(frozen=True, eq=False)
class Display:
    """Work that is shown; whoever does it holds this, so that it is gone with work that nobody ends."""

    show: Show  # shows what is within it
    over: Callable[[], None]  # ends what is shown, once


SHOWN: ContextVar[Callable[[], Display | None]] = ContextVar("shown", default=lambda: None)  # what is done
_lines_wanted: ContextVar[bool] = ContextVar("lines wanted", default=False)  # where there is no terminal
_told: ContextVar[Tell | None] = ContextVar("told", default=None)  # whoever shows the lines instead of stderr
_within: ContextVar[str] = ContextVar("within", default="")  # what the work is part of, before its titles


class Pace:
    """How far some work is, and how long the rest will take.

    `total` is how many items there are, `work` how many seconds each is expected to take; both if known. Of
    items that workers elsewhere make, `at_once` at a time, the first came when they had started: it says
    nothing of the others.
    """

    def __init__(self, total: int | None, work: Sequence[float] | None = None, at_once: int = 0) -> None:
        self.total, self.done = total, 0
        self.work = work if work is not None and sum(work) > 0 else None
        self.at_once = at_once if self.work is None else 0
        self.began = self.latest = monotonic()
        self.counted = 0.0  # seconds of the finished items, as far as they were to be expected

    def advance(self) -> None:
        """One item more is done."""
        took = monotonic() - self.latest
        if self.done or not self.at_once:
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
        if size is None or (self.work is None and self.done <= self.at_once):
            return None
        trust = 0.0 if self.work is None else TRUST * size
        slower = (self.counted + trust) / (completed - bool(self.at_once) + trust)
        current, running = min(self._expected, size - completed), monotonic() - self.latest
        return slower * (size - completed - current) + max(slower * current - running, running / 10)


@contextmanager
def quiet() -> Iterator[None]:
    """Nothing is shown within."""
    silent = Display(lambda *_: nullcontext(_nothing), _nothing)
    before = SHOWN.set(ref(silent))
    try:
        yield
    finally:
        SHOWN.reset(before)


def left_in_the_middle(before: Callable[[], Display | None]) -> None:
    """Ends what is shown since `SHOWN` was as before: work that an error left in the middle."""
    left = SHOWN.get()()
    if left is not None and left is not before():
        left.over()
    SHOWN.set(before)


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
    at_once: int = 0,
) -> Iterator[T]:
    """The items, with the progress and the remaining time once `patience` seconds have passed.

    `work` are the seconds that each item is expected to take; without it all are taken for equal. `at_once`
    says how many of them workers elsewhere make at a time, which have to start first. No item is begun after
    the deadline of the work, if there is one.
    """
    pace = Pace(total if total is not None or not isinstance(items, Sized) else len(items), work, at_once)
    title, outer = _within.get() + title, SHOWN.get()()
    with outer.show(title, pace) if outer else _outermost(title, pace, patience) as advance:
        for item in items:
            if (over := OVER.get()) and (reason := over()):
                raise BudgetError(reason)
            yield item
            if advance is not _nothing and pace.total != 1:  # after which there is nothing to wait for
                advance()


@contextmanager
def _outermost(title: str, pace: Pace, patience: float) -> Iterator[Advance]:
    tell = _told.get()
    if tell is None and sys.stderr.isatty():
        display = _bar(title, pace, patience)
    elif tell is None and (shown := _notebook()) is not None:
        display = _in_cell(title, pace, patience, shown)
    else:
        asked = tell is not None or _lines_wanted.get()
        display = _lines(title, pace, patience if asked else max(patience, SCRIPT), tell or _on_stderr)
    with ExitStack() as stack:
        advance, show = stack.enter_context(display)
        this, before = Display(show, stack.close), SHOWN.get()
        SHOWN.set(ref(this))
        try:
            yield advance
        finally:
            if SHOWN.get()() is this:  # not where another thread ends what was left in the middle
                SHOWN.set(before)


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


def _notebook() -> Callable[..., Any] | None:
    """What shows HTML below a cell, where this runs in a kernel of a notebook."""
    core = sys.modules.get("IPython")
    shell = None if core is None else core.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    shows: Any = import_module("IPython.display")
    return lambda text, **how: shows.display(shows.HTML(text), **how)


@contextmanager
def _in_cell(
    title: str, pace: Pace, patience: float, shown: Callable[..., Any]
) -> Iterator[tuple[Advance, Show]]:
    """A bar below the cell of a notebook, which is gone when the work is done."""
    name, latest, first = f"precedents-{id(pace)}", monotonic(), True

    def advance() -> None:
        nonlocal latest, first
        pace.advance()
        if pace.latest - pace.began > patience and pace.latest - latest > OFTEN:
            shown(_bar_of(title, pace), display_id=name, update=not first)
            latest, first = pace.latest, False

    @contextmanager
    def show(_: str, pace: Pace) -> Iterator[Advance]:
        yield pace.advance

    try:
        yield advance, show
    finally:
        if not first:
            shown("", display_id=name, update=True)


def _bar_of(title: str, pace: Pace) -> str:
    """A bar and its state in words, as HTML."""
    size = pace.size
    bar = "" if not size else f"<progress max='1' value='{pace.completed / size:.3f}'></progress> "
    return f"<label>{escape(title)} {bar}{escape(_state(pace))}</label>"


def _columns() -> Iterator["ProgressColumn"]:
    """Of a bar: the title, the bar, how much is done, and the time that is left."""
    from rich.progress import BarColumn, ProgressColumn, Task, TaskProgressColumn, TextColumn
    from rich.text import Text

    class Left(ProgressColumn):
        """The time that is left."""

        def render(self, task: Task) -> Text:
            """How long the rest takes, in words."""
            left = task.fields["pace"].left()
            return Text("" if left is None else f"{duration(left)} left", style="progress.remaining")

    yield from (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), Left())


@contextmanager
def _lines(title: str, pace: Pace, patience: float, tell: Tell) -> Iterator[tuple[Advance, Show]]:
    """A line after the first item that ends too late, then after twice the time, at least every half minute.

    If there were any, a last one says that all is done. Work within an item has a line when none came for half
    a minute.
    """
    latest = monotonic()

    @contextmanager
    def show(title: str, pace: Pace, due: float | None = None) -> Iterator[Advance]:
        begun = False

        def advance() -> None:
            nonlocal latest, due, begun
            pace.advance()
            now, spent, over = pace.latest, pace.latest - pace.began, pace.done == pace.total
            late = spent > due if due is not None else now > latest + LONGEST
            if (late and not over) or (begun and over):
                due = None if due is None else min(2 * spent, spent + LONGEST)
                latest, begun = now, due is not None
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
    left, took = pace.left(), duration(pace.latest - pace.began)
    if pace.total is None:
        return f"{pace.done} done in {took}"
    told = f"{pace.done} of {pace.total}"
    return f"{told} in {took}" if pace.done == pace.total or left is None else f"{told}, {duration(left)} left"


def duration(seconds: float) -> str:
    """Seconds for people: 12 s, 3 min 5 s, 2 h 10 min."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{rest} s" if seconds >= 10 else f"{seconds:.2g} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
