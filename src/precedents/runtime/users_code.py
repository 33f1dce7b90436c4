"""The user's own code: what it raises becomes one line of ours, with its error and the user's own line."""

import sysconfig
from collections.abc import Iterator
from pathlib import Path
from traceback import walk_tb
from types import TracebackType

from precedents.errors import BudgetError, PrecedentsError, UserCodeError
from precedents.runtime.wording import first_line
from precedents.seen import clipped

OURS = str(Path(__file__).parents[1])
LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
SAID = 300  # letters of what an error says
NO_ROOM = ("alloc", "out of memory")  # what torch says in a RuntimeError where there is no memory left


class users:  # noqa: N801  read as a word: `with users("the loss"):`
    """A context in which a user's code runs: whatever it raises is an error of ours about `what`.

    `advice` says what would be right. Ctrl-C stays what it is.
    """

    __slots__ = ("advice", "what")

    def __init__(self, what: str, advice: str = "") -> None:
        self.what, self.advice = what, advice

    def __enter__(self) -> None:
        """Nothing is to be done before."""

    def __exit__(self, _: object, error: BaseException | None, __: TracebackType | None) -> None:
        """Errors of ours pass."""
        if error is not None and not isinstance(error, (PrecedentsError, KeyboardInterrupt)):
            raise refused(error, self.what, self.advice) from error


def refused(
    error: BaseException, what: str = "what was passed", advice: str = ""
) -> UserCodeError | BudgetError:
    """What a user's code raised, as an error of ours about `what` it was."""
    name, more = f"{what[:1].upper()}{what[1:]}", f" {advice}." if advice else ""
    if out_of_memory(error):
        return BudgetError(f"{name} ran out of memory: {why(error)}.{more}")
    return UserCodeError(f"{name} failed: {why(error)}.{more}")


def why(error: BaseException) -> str:
    """The type of an error, what it says, and the user's own line that it comes from."""
    said = clipped(first_line(error), SAID)
    name = type(error).__name__
    return (name if said == name else f"{name}: {said}") + place(error)


def place(error: BaseException) -> str:
    """The user's own line that an error comes from, as in ` (model.py, line 3)`; empty if there is none."""
    own = [(file, line) for file, line in _lines(error) if is_users(file)]
    return f" ({clipped(Path(own[-1][0]).name)}, line {own[-1][1]})" if own else ""


def is_users(file: str) -> bool:
    """Whether a file is neither ours nor of Python and its packages."""
    return not file.startswith((OURS, *LIBRARIES, "<frozen"))


def out_of_memory(error: BaseException) -> bool:
    """Whether there was no memory left."""
    said = str(error).lower() if isinstance(error, RuntimeError) else ""
    return isinstance(error, MemoryError) or any(word in said for word in NO_ROOM)


def _lines(error: BaseException) -> Iterator[tuple[str, int | None]]:
    """The files and lines that an error came through, from the outermost."""
    for frame, line in walk_tb(error.__traceback__):
        yield frame.f_code.co_filename, line
    if isinstance(error, SyntaxError) and error.filename is not None:
        yield error.filename, error.lineno
