"""The user's own code: what it raises becomes one line of ours, with its error and the user's own line."""

import re
import sysconfig
from collections.abc import Iterator
from errno import ENOMEM
from pathlib import Path
from traceback import walk_tb
from types import TracebackType

from precedents.errors import BudgetError, PrecedentsError, UserCodeError
from precedents.runtime.wording import first_line, readable
from precedents.seen import clipped

OURS = str(Path(__file__).parents[1])
LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
SAID = 300  # letters of what an error says
NO_MEMORY = re.compile(r"out of memory|not enough memory|(can't|cannot|unable to) allocate", re.IGNORECASE)
ASKED = re.compile(r"allocate (\d+) bytes")


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
    told = out_of_memory(error)
    if told is not None:
        return BudgetError(told.replace("It", name, 1))
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


def out_of_memory(error: BaseException) -> str | None:
    """One line about the memory that there was not, if that is what an error says.

    >>> out_of_memory(RuntimeError("can't allocate memory: you tried to allocate 43072299008 bytes."))
    'It ran out of memory: 40.1 GiB more were asked for. Use fewer instances, or say what may be used: memory=.'
    """
    spoken = isinstance(error, RuntimeError) and NO_MEMORY.search(str(error))
    if not (spoken or isinstance(error, MemoryError) or getattr(error, "errno", None) == ENOMEM):
        return None
    asked = ASKED.search(str(error))
    told = f": {readable(int(asked[1]))} more were asked for" if asked else ""
    return f"It ran out of memory{told}. Use fewer instances, or say what may be used: memory=."


def _lines(error: BaseException) -> Iterator[tuple[str, int | None]]:
    """The files and lines that an error came through, from the outermost."""
    for frame, line in walk_tb(error.__traceback__):
        yield frame.f_code.co_filename, line
    if isinstance(error, SyntaxError) and error.filename is not None:
        yield error.filename, error.lineno
