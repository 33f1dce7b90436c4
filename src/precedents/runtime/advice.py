"""What to type: errors advise a call of Python, and a command where a command is running."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

_of: ContextVar[str | None] = ContextVar("what the command is of", default=None)


@contextmanager
def commands(of: str = "RUN") -> Iterator[None]:
    """Commands are advised within, of a run or a target as it is typed."""
    before = _of.set(of)
    try:
        yield
    finally:
        _of.reset(before)


def named(of: str) -> None:
    """Says what the command that is running is of, as it is typed; where none is, it is not asked."""
    if _of.get() is not None:
        _of.set(of)


def typed(call: str, command: str) -> str:
    """The call; where a command is running, the command, in which {of} stands for what it is of.

    >>> typed("Index.build(...)", "precedents index build {of}")
    'Index.build(...)'
    >>> with commands("runs/mine"):
    ...     typed("Index.build(...)", "precedents index build {of}")
    'precedents index build runs/mine'
    """
    of = _of.get()
    return call if of is None else command.replace("{of}", of)


def advising(work: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The work, which advises in other processes what it would advise here."""
    of = _of.get()
    return work if of is None else partial(_advised, of, work)


def _advised(of: str, work: Callable[[Any], Any], task: Any) -> Any:
    with commands(of):
        return work(task)
