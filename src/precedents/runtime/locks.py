"""Locks between processes on a file or folder, which end with the process that holds them (flock).

Where there are none (Windows, some network disks), nobody waits, and who is at work is known by its number.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def taken(file: int, *, wait: bool, process: int | None = None) -> bool:
    """Locks an open file or folder; False if another one has it and it is not waited for.

    Without locks it is had unless `process`, who would have it, is alive.
    """
    try:
        if fcntl is None:
            raise OSError
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        return process is None or not alive(process)
    return True


def released(file: int) -> None:
    """Ends a lock, also for processes that were forked while it was held, and closes the file."""
    with suppress(OSError):
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_UN)
    os.close(file)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Waits until nobody else has the folder, and has it meanwhile. For what is short."""
    try:
        file = os.open(folder, os.O_RDONLY)
    except OSError:  # no folder, or none that may be read: whoever writes to it will be told
        yield
        return
    try:
        taken(file, wait=True)
        yield
    finally:
        released(file)


def alive(process: int) -> bool:
    """Whether there is a process of this number."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
