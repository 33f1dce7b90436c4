"""Failures in one line: what was raised by whatever a user brings, and whether memory ran out."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from precedents.errors import BudgetError
from precedents.runtime.budget import readable

LONGEST = 300  # letters of a line
NO_MEMORY = re.compile(r"out of memory|not enough memory|(can't|cannot|unable to) allocate", re.IGNORECASE)
ASKED = re.compile(r"allocate (\d+) bytes")


def first_line(error: BaseException) -> str:
    r"""The type of an error and the first line of what it says.

    >>> first_line(ValueError("no such word\nat line 3"))
    'ValueError: no such word'
    """
    said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    said = said if len(said) <= LONGEST else f"{said[:LONGEST]}..."
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def out_of_memory(error: BaseException) -> str | None:
    """One line about the memory that there was not, if that is what an error says.

    >>> out_of_memory(RuntimeError("can't allocate memory: you tried to allocate 43072299008 bytes."))
    'It ran out of memory: 40.1 GiB more were asked for. Use fewer instances, or say what may be used: memory=.'
    """
    spoken = isinstance(error, RuntimeError) and NO_MEMORY.search(str(error))
    if not (spoken or isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM):
        return None
    asked = ASKED.search(str(error))
    told = f": {readable(int(asked[1]))} more were asked for" if asked else ""
    return f"It ran out of memory{told}. Use fewer instances, or say what may be used: memory=."


@contextmanager
def memory_told() -> Iterator[None]:
    """Turns an allocation that failed, of whichever library, into one line of ours; also as a decorator."""
    try:
        yield
    except (MemoryError, RuntimeError, OSError) as error:
        told = out_of_memory(error)
        if told is None:
            raise
        raise BudgetError(told) from error
