"""What a user's module does to this process is contained: stdout has results alone, and paths stay.

Undone are another current folder, other arguments, signal handlers, warning filters and standard streams. Left
as they are, without a consequence for the outcome: the environment, logging, the locale, and torch's settings.
What cannot be contained is a process that ends itself at once (os._exit, also while it exits) or is killed.
"""

import ctypes
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def apart() -> Iterator[TextIO]:
    """The real stdout, for results; what else is printed meanwhile, also by compiled code, goes to stderr."""
    out = sys.stdout
    out.flush()
    try:
        own = os.dup(out.fileno())
    except (OSError, ValueError):  # no file but a stream in memory
        own = None
    results = out if own is None else os.fdopen(own, "w", encoding=out.encoding, errors="backslashreplace")
    first = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = shadow = os.fdopen(os.dup(2), "w", encoding="utf-8", errors="backslashreplace", buffering=1)
    try:
        yield results
    finally:
        _flushed(out, shadow)
        sys.stdout = out
        with suppress(OSError):
            shadow.close()
        os.dup2(first, 1)
        os.close(first)
        if results is not out:
            with suppress(OSError):  # nobody reads it any more, as was said before
                results.close()


def _flushed(*streams: TextIO) -> None:
    """What was printed and is held back goes to where it was printed."""
    for stream in (*streams, sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).fflush(None)


def opened_streams() -> None:
    """Standard streams that the process was begun without lead nowhere, and are no file that it opens next."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:  # noqa: PERF203  three times
            os.open(os.devnull, os.O_RDWR)  # has the smallest number that is free, which is this one
            setattr(sys, name, os.fdopen(number, mode))


def silenced() -> None:
    """Stdout is over: what is printed while the process ends goes to stderr."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        os.dup2(2, 1)


@contextmanager
def restored() -> Iterator[None]:
    """Around a user's module and factory: the folder, arguments, handlers and streams are those from before."""
    folder, arguments = os.open(".", os.O_RDONLY), list(sys.argv)
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    streams = sys.stdin, sys.stdout, sys.stderr
    try:
        with warnings.catch_warnings():
            yield
    finally:
        os.fchdir(folder)
        os.close(folder)
        sys.argv[:] = arguments
        sys.stdin, sys.stdout, sys.stderr = streams
        for number, handler in handlers.items():
            with suppress(ValueError, TypeError):  # not of this thread, or not set by Python
                signal.signal(number, handler)
